"""What noise on the integers shares, and symmetric log-concave noise among it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.halving import first
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.release import sampling
from dpassay.accountant.release.lattice import release_integers

Tail = Callable[[int], arb]


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


def integer_quantile(at_most: Tail, above: Tail, probability: ExactReal) -> arb:
    """Return the least integer x with P(Z ≤ x) ≥ probability, ∓∞ at 0 and 1.

    Parameters
    ----------
    at_most, above
        P(Z ≤ x) and P(Z > x), at flint's current precision; the smaller of the two is asked, so
        that a probability near 1 costs no more digits than one near 0.
    probability
        In [0, 1]. The support is unbounded on both sides.

    Notes
    -----
    Where the precision does not decide a comparison, the ball covers every integer in question.
    """
    if probability.sign == 0:
        return arb.neg_inf()
    if probability.rational == 1:
        return arb.pos_inf()
    upper = probability > ExactReal.of_rational(Fraction(1, 2))
    target = _complement(probability) if upper else probability.ball()
    if not target > 0:  # an irrational probability within one rounding of 1
        return arb("0 +/- inf")

    def excess(x: int) -> arb:
        return target - above(x) if upper else at_most(x) - target

    low = first(lambda x: not excess(x) < 0)
    return arb(low).union(arb(first(lambda x: excess(x) >= 0, low)))


def _complement(probability: ExactReal) -> arb:
    if probability.rational is None:
        return 1 - probability.ball()
    return ball(1 - probability.rational)
