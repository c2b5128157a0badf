"""Events say which outputs they hold: texts as texts, complex numbers as pairs of reals."""

from __future__ import annotations

from typing import Any

import numpy as np

from verify.audit import audit, audit_samples
from verify.audit.outputs import Alphabet


def named(dataset: int, size: int, rng: np.random.Generator) -> Any:
    return list(
        rng.choice(["ann", "bob", "cyd"], size, p=[[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]][dataset])
    )


def test_events_over_texts_print_them() -> None:
    found = audit(named, "0.1", pairs=[(0, 1)], samples=3000, seed=1)
    assert found.refuted
    shown = str(found) + str(found.certificate()["event"])
    assert "{'cyd'}" in shown or "{'ann'}" in shown
    assert "np.str_" not in shown
    rng = np.random.default_rng(1)
    given = audit_samples(named(0, 700, rng), named(1, 800, rng), "0.1", seed=1)
    assert "'ann'" in str(given) or "'cyd'" in str(given)


def test_complex_outputs_are_pairs_of_reals() -> None:
    values = np.array([1 + 2j, -0.5j, 3.0])
    wanted = [[1.0, 2.0], [0.0, -0.5], [3.0, 0.0]]
    assert Alphabet().matrix(values).tolist() == wanted
    assert Alphabet().matrix(values.tolist()).tolist() == wanted
    assert Alphabet().matrix(values.astype(np.complex64)).dtype == np.float32
    assert Alphabet().matrix(np.array([values, values])).shape == (2, 6)
    mixed = Alphabet().matrix([1 + 2j, "text"])
    assert mixed[0].tolist()[0] == 2.0

    def rotated(dataset: int, size: int, rng: np.random.Generator) -> Any:
        return 1j * (dataset + np.round(rng.laplace(0, 1, size), 3))

    found = audit(rotated, "0.3", pairs=[(0, 1)], samples=3000, seed=1)
    assert found.refuted
    assert "output[1]" in found.rule.name
