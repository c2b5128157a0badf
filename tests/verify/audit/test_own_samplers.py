"""Every continuous mechanism there is releases on one lattice, and its bits tell nothing."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from dpassay.accountant import notation
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import DESCRIPTIONS
from dpassay.accountant.notation import parse
from dpassay.verifier.audit import audit
from dpassay.verifier.audit.runs import Called

LEVEL = 1e-6
"""The significance of each audit; there are fewer than thirty."""

CONTINUOUS: dict[str, tuple[str, Any]] = {
    "BinaryTree": ("BinaryTree(steps=4, epsilon=1)", 1),
    "BridgedTree": ("BridgedTree(steps=7, arities=[2, 4], epsilon=1)", 1),
    "CorrelatedGaussian": ("CorrelatedGaussian(dimension=3, mu=1)", {"mu": 1}),
    "CountEllipse": ("CountEllipse(dimension=4, sparsity=1, mu=1)", {"mu": 1}),
    "DisjointGroupsGaussian": (
        "DisjointGroupsGaussian(groups=2, dimension=2, mu=1, adjacency='add-remove')",
        {"mu": 1},
    ),
    "EllipticalGaussian": ("EllipticalGaussian(sensitivities=[1, '0.1'], mu=1)", {"mu": 1}),
    "Gaussian": ("Gaussian(standard_deviation=2)", {"mu": "1/2"}),
    "GeneralGaussian": (
        "GeneralGaussian(covariance=Matrix(rows=[[4, 0], [0, 9]]), "
        "space=L2Ball(dimension=2, radius=2))",
        {"mu": 1},
    ),
    "KaryTree": ("KaryTree(steps=9, arity=3, epsilon=1)", 1),
    "KnownSizeGaussian": ("KnownSizeGaussian(dimension=3, mu=1)", {"mu": 1}),
    "Laplace": ("Laplace(scale='0.7')", "10/7"),
    "LaplaceVector": ("LaplaceVector(scale=2, shifts=[1, 1])", 1),
    "MatrixMechanism": (
        "MatrixMechanism(strategy=[1, '1/2'], noise_multiplier=1, steps=5, participation='single')",
        {"mu": "sqrt(5/4)"},
    ),
    "OneSidedGaussian": ("OneSidedGaussian(bounds=[1, 2, 8], mu=1)", {"mu": 1}),
    "OptimalEllipse": ("OptimalEllipse(dimension=3, sparsity=1, mu=1)", {"mu": 1}),
    "OptimalGroups": (
        "OptimalGroups(groups=2, counts=3, mu=1, adjacency='replace-one')",
        {"mu": 1},
    ),
    "SquareRootFactorization": ("SquareRootFactorization(steps=5, mu=1)", {"mu": 1}),
    "Staircase": ("Staircase(epsilon=1, gamma='0.3')", 1),
}
"""An example of every mechanism with continuous noise, and what is true of it."""


def by_inversion() -> dict[str, tuple[str, Any]]:
    """Return the example of what declares its inverse, and its largest loss, which is true."""
    return {
        name: (kind.example, str(parse(kind.example).worst_case(None).remove[0].known.max_loss()))
        for name, kind in DESCRIPTIONS.items()
        if issubclass(kind, Mechanism) and kind.inverse_noise is not Mechanism.inverse_noise
    }


def continuous() -> set[str]:
    """Return the mechanisms that the notation knows and that have a lattice sampler."""
    return {
        name
        for name, kind in notation._KNOWN.items()
        if inspect.isclass(kind) and issubclass(kind, Mechanism) and kind.adds_real_noise()
    }


CONTINUOUS = {**by_inversion(), **CONTINUOUS}


def test_every_mechanism_is_listed() -> None:
    """A new one has to be put among those that are tested here."""
    assert set(CONTINUOUS) == continuous()


QUICK = ("Gaussian", "Laplace", "KaryTree")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK))
        for name in sorted(CONTINUOUS)
    ],
)
def test_one_lattice_and_no_channel(name: str) -> None:
    mechanism = notation.parse(CONTINUOUS[name][0])
    assert isinstance(mechanism, Mechanism)
    sampler = mechanism.lattice_sampler()
    shift = np.zeros(len(sampler.lattice)) if len(sampler.lattice) > 1 else 0.0
    target = Called(lambda v, n, rng: sampler.release(v, n, rng=rng), name)
    rng = np.random.default_rng(1)
    steps = np.array([float(step) for step in sampler.lattice])  # powers of two
    for answer in (0.0, 0.3, 1 / 3, -2.5, 1 - 2.0**-53, 255.999, 1e6 + 0.7):
        places = np.reshape(sampler.release(shift + answer, 300, rng=rng), (300, -1)) / steps
        assert (places == np.rint(places)).all()
    near = shift + 0.1
    found = audit(
        target,
        CONTINUOUS[name][1],
        pairs=[(near, near + 2.0**-20)],
        samples=2000,
        significance=LEVEL,
        seed=2,
        bits=True,
    )
    assert not found.refuted
