"""What follows from the shape of the noise alone, for every mechanism of that shape."""

from __future__ import annotations

from abc import ABC
from dataclasses import fields
from typing import Any

from flint import arb

from dpassay.accountant.core.arrays import np
from dpassay.accountant.core.mechanism import Mechanism

_SENSITIVITIES = ("sensitivity", "l1_sensitivity", "l2_sensitivity")
"""Arguments of mechanisms that no difference of true answers exceeds, and that one attains."""


class SymmetricDensity(Mechanism, ABC):
    """Every coordinate of the noise has a density that is symmetric about 0."""

    @property
    def is_symmetric(self) -> bool:
        """True."""
        return True

    def worst_shift(self) -> Any:
        """Return the full sensitivity, of a vector in its first coordinate; None without one."""
        known = [field.name for field in fields(self) if field.name in _SENSITIVITIES]  # type: ignore[arg-type]  # dataclasses
        if not known:
            return None
        shift = float(getattr(self, known[0]))
        if getattr(type(self), "dimension", None) is Mechanism.dimension:
            return shift
        return np.array([shift] + [0.0] * (self.dimension - 1))

    def probability_exact(self) -> arb:
        """Return 0: a law with a density has no atoms."""
        return arb(0)


class GaussianNoise(SymmetricDensity, ABC):
    """Every coordinate of the noise is normal with mean 0; coordinates may be dependent."""

    def mean_absolute_error(self) -> arb:
        """Return √(2/π) times the average standard deviation of the coordinates."""
        deviations = [entry.sqrt() for entry in self.variances()]
        return (2 / arb.pi()).sqrt() * sum(deviations, start=arb(0)) / len(deviations)
