"""What noise on the integers shares, and symmetric log-concave noise among it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from flint import arb

from accountant.core.adjacency import Adjacency
from accountant.core.arrays import Array, ArrayLike
from accountant.core.mechanism import Mechanism
from accountant.core.pair import Pair, WorstCase
from accountant.core.randomness import Randomness
from accountant.core.validate import Integer
from accountant.mechanisms.additive.integer_quantile import integer_quantile
from accountant.numbers.exact import ExactReal
from accountant.release import sampling
from accountant.release.lattice import release_integers


class AddedIntegers(Mechanism, ABC):
    """Integer noise that `sample` draws exactly."""

    @abstractmethod
    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the integer noise of `size` releases, exactly."""

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Add exact integer noise to every entry of an integer answer."""
        return release_integers(lambda count: self.sample(count, rng=rng), value, times)


class LogConcaveIntegers(AddedIntegers, ABC):
    """Noise Z of masses p with p(−z) = p(z) and p(z)² ≥ p(z − 1) p(z + 1)."""

    sensitivity: Integer

    @abstractmethod
    def pair(self) -> Pair:
        """Return the laws of Z + sensitivity and Z."""

    @abstractmethod
    def at_most(self, x: int) -> arb:
        """Return P(Z ≤ x) = P(Z ≥ −x)."""

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the laws of Z + sensitivity and Z: the proof is in `DiscreteGaussian`."""
        return WorstCase.symmetric(
            self.pair(),
            "The law is log-concave, so the best event is a half-line, whose probability "
            "increases with the shift: the worst pair is at distance sensitivity.",
        )

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the integer noise of `size` releases, exactly."""
        return sampling.integers_by_inversion(self.at_most, size, rng=rng)

    @property
    def is_symmetric(self) -> bool:
        """True."""
        return True

    def worst_shift(self) -> Any:
        """Return the full distance."""
        return self.sensitivity

    def quantile(self, probability: ExactReal) -> arb:
        """Return the least integer x with P(Z ≤ x) ≥ probability."""
        return integer_quantile(self.at_most, lambda x: self.at_most(-x - 1), probability)
