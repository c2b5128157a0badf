"""Vectors whose entries share noise on lattices, of which no entry and no difference tells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.verify.audit.zoo.case import EPSILON, control
from tests.verify.audit.zoo.draws import laplace, normal, row

_WIDE = 100
"""Entries of a wide output."""
_ONES, _TWOS = (1.0,) * _WIDE, (2.0,) * _WIDE
_FEW_ONES, _FEW_TWOS = (1.0,) * 20, (2.0,) * 20
_SHARED, _OWN = math.sqrt(0.5), math.sqrt(50.0)
"""Standard deviations with which 100 answers that all move by 1 are 1-GDP: μ² is the number of
entries over own variance plus that number times the shared one, 100/(50 + 100/2)."""
_SOURCE = "after Lebeda 2024, Algorithm 1"


@control("lattice-shared-then-own", {"mu": 1}, (_ONES, _TWOS), source=_SOURCE)
def lattice_shared_then_own(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Add both kinds of noise on lattices: no entry tells, nor do all together."""
    return (row(dataset) + normal(rng, _SHARED, (size, 1))) + normal(rng, _OWN, (size, _WIDE))


@control("lattice-noisy-then-copied", EPSILON, (_FEW_ONES, _FEW_TWOS), true=EPSILON, source=_SOURCE)
def lattice_noisy_then_copied(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """One variate on a lattice makes 20 copies 1-DP; what is added to them then is free."""
    shared = row(dataset) + laplace(rng, 1 / EPSILON, (size, 1))
    return shared + normal(rng, 1.0, (size, len(dataset)))


@control("float-vector-of-one-answer", "0.01", (_ONES, _ONES), true=0.0, source="nothing differs")
def vector_of_one_answer(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Doubles with all their bits, and two datasets with the same answers: nothing to learn."""
    eta, z = rng.normal(0.0, _SHARED, (size, 1)), rng.normal(0.0, _OWN, (size, _WIDE))
    return (row(dataset) + eta) + z
