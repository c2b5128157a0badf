"""Noisy counts of keys that are released where they reach a threshold."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer, Positive
from dpassay.accountant.errors import NotApplicableError, expected
from dpassay.accountant.mechanisms.additive.discrete_laplace import DiscreteLaplace
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.additive.laplace import Laplace
from dpassay.accountant.mechanisms.selection.partition_selection import add_remove
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.guaranteed import Guaranteed
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.pairs.finite import FiniteLaws, FinitePair
from dpassay.accountant.pairs.gaussian import normal_cdf

_ROUNDING = 1 + 2.0**-50
"""More than what rounding a threshold and a released count to doubles takes."""

_DIGITS = 15
"""Digits to which the probability of a new key is rounded up for compositions."""


class _Threshold(Mechanism, FiniteLaws):
    """Of every key that someone holds, release the key and its noisy count if it is ≥ τ.

    A user adds up to Δ to each of up to k counts. Let j of these keys be nobody else's. Without
    the user they cannot appear; with the user each does with a probability of at most
    m = P(Δ + noise ≥ τ). The other k − j counts move by at most Δ, and leaving out small values is
    post-processing. So the user's pair is dominated by j copies of (m, 1 − m) against (0, 1)
    together with k − j noises moved by Δ, which is attained by counts of Δ and, in the limit, of
    very frequent keys. The profile is the largest over j = 0, …, k.
    """

    noise_grows: ClassVar[bool] = True

    threshold: Positive
    partitions: Integer
    sensitivity: Positive

    @property
    def dominated_by(self) -> Mechanism:
        """Noise on all counts of a user, and a mass for new keys that is rounded up."""
        appears = Interval.of_ball(self.masses(self.partitions)[0][0], _DIGITS).upper
        new = Guaranteed(0, min(ExactReal.of_rational(Fraction(appears)), ExactReal.of_rational(1)))
        return Composed((Composed(self.count_noise(), self.partitions), new))

    def attained(self) -> tuple[Pair, ...]:
        """Return the pairs of all numbers of new keys."""
        return tuple(self._pair(new) for new in range(self.partitions, -1, -1))

    @abstractmethod
    def count_noise(self) -> Mechanism:
        """Return the noise of one count."""

    @abstractmethod
    def new_key(self) -> tuple[arb, arb]:
        """Return m, the probability that a key of one user appears, and 1 − m."""

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return a pair for every number of new keys; raise AdjacencyError for replaced users."""
        add_remove(adjacency, self)
        pairs = self.attained()
        return WorstCase(
            pairs,
            tuple(pair.reverse() for pair in pairs),
            "Some of the user's keys are nobody else's, and appear or not; the others are of very "
            "frequent keys, whose noisy counts are always released.",
        )

    def _pair(self, new: int) -> Pair:
        fresh, old = FinitePair(self, new), self.partitions - new
        if old == 0:
            return fresh
        noise = Composed(self.count_noise(), old).worst_case(None).remove[0]
        if new == 0:
            return noise
        from dpassay.accountant.composition.choose import (
            product,  # takes NumPy and SciPy, and a second
        )

        return product([(noise, 1), (fresh, 1)])

    def outcomes(self, index: int) -> Sequence[object]:
        """Name the two outcomes."""
        return "a key of this user alone appears", "none of them appears"

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return 1 − (1 − m)^j and (1 − m)^j, and 0 and 1."""
        appears, hidden = self.new_key()
        some = -(index * (-appears).log1p()).expm1() if index > 1 else appears
        return [some, hidden**index], [arb(0), arb(1)]

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Release noisy counts on a lattice, and −1 for the keys that do not appear.

        A lattice count differs from the real one by at most half a step, and is shown where it is
        at least τ and a step. So it is a function of what the mechanism releases, and as private.

        The value: the count of each key that someone holds; a key with the count 0 never appears.
        """
        counts = np.asarray(value, float)
        if (counts < 0).any():
            raise expected("value", value, "to be counts ≥ 0")
        sampler = self.count_noise().lattice_sampler()
        noisy = sampler.release(counts, times, rng=rng)
        least = (float(self.threshold) + float(max(sampler.lattice))) * _ROUNDING
        released: Array = np.where((counts > 0) & (noisy >= least), noisy, -1.0)
        return released

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of the counts."""
        drawn = self.count_noise().sample(size * self.partitions, rng=rng)
        return drawn if self.partitions == 1 else drawn.reshape(size, -1)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return keys that nobody holds, and that one user holds; and frequent ones."""
        none, each = np.zeros(self.partitions), np.full(self.partitions, float(self.sensitivity))
        many = np.full(self.partitions, 2 * float(self.threshold))
        return [(none, each), (many, many + each)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw noisy counts, −1 for keys that do not appear."""
        counts = np.asarray(answer, float)
        noisy = counts + self.sample(size, rng=rng).reshape(size, -1)
        shown = (counts > 0) & (noisy >= float(self.threshold))
        released: Array = np.where(shown, noisy, -1.0)
        return released

    def variances(self) -> list[arb]:
        """Raise NotApplicableError: what is left out has no error."""
        raise NotApplicableError(
            f"{type(self).__name__} leaves keys out: it has no variance. That of a released count "
            f"is the variance of {self.count_noise()!r}, given that the threshold is reached."
        )


@declared
class LaplaceThreshold(_Threshold):
    """Release keys with counts plus Laplace noise of at least a threshold, and no other key.

    Korolova, Kenthapadi, Mishra and Ntoulas (2009). A key without users is never released.

    Parameters
    ----------
    scale
        b > 0 of each count.
    threshold
        τ > 0: a key is released if its noisy count reaches τ.
    partitions
        k ≥ 1, how many keys a user has at most.
    sensitivity
        Δ, what a user adds at most to a count.
    """

    example = "LaplaceThreshold(scale=1, threshold=12)"
    noise_argument = "scale"

    scale: Positive = Positive()
    threshold: Positive = Positive()
    partitions: Integer = Integer(1, least=1)
    sensitivity: Positive = Positive(1)

    def count_noise(self) -> Mechanism:
        """Return Laplace noise."""
        return Laplace(self.scale, self.sensitivity)

    def new_key(self) -> tuple[arb, arb]:
        """Return e^{−(τ − Δ)/b}/2 and the rest, the other way round where τ < Δ."""
        away = abs(self.threshold.ball() - self.sensitivity.ball()) / self.scale.ball()
        tail = (-away).exp() / 2
        return (tail, 1 - tail) if self.threshold >= self.sensitivity else (1 - tail, tail)


@declared
class DiscreteLaplaceThreshold(_Threshold):
    """Release keys with counts plus discrete Laplace noise of at least a threshold, and no others.

    A key without users is never released. A count of Δ reaches τ where the noise is at least
    k = ⌈τ⌉ − Δ: with the probability r^k/(1 + r) for k ≥ 0, r = e^{−1/b}. (At least, not more: the
    privacy map of OpenDP 0.16 has r^{k+1}/(1 + r).)

    Parameters
    ----------
    scale
        b > 0 of each count.
    threshold
        τ > 0: a key is released if its noisy count reaches τ.
    partitions
        k ≥ 1, how many keys a user has at most.
    sensitivity
        Δ, what a user adds at most to a count.
    """

    example = "DiscreteLaplaceThreshold(scale=1, threshold=12)"
    noise_argument = "scale"

    scale: Positive = Positive()
    threshold: Positive = Positive()
    partitions: Integer = Integer(1, least=1)
    sensitivity: Positive = Positive(1)

    def count_noise(self) -> Mechanism:
        """Return discrete Laplace noise."""
        return DiscreteLaplace(self.scale, self._whole)

    @property
    def _whole(self) -> int:
        """Δ; raise InvalidInputError unless it is an integer."""
        found = self.sensitivity.rational
        if found is None or found.denominator != 1:
            raise expected("sensitivity", self.sensitivity, "to be an integer, as counts are")
        return int(found)

    def new_key(self) -> tuple[arb, arb]:
        """Return r^k/(1 + r) and the rest; by symmetry 1 − r^{1−k}/(1 + r) for k < 0."""
        if self.threshold.rational is None:
            raise expected("threshold", self.threshold, "to be rational")
        away = math.ceil(self.threshold.rational) - self._whole
        r = (-1 / self.scale.ball()).exp()
        tail = r ** (away if away >= 0 else 1 - away) / (1 + r)
        return (tail, 1 - tail) if away >= 0 else (1 - tail, tail)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Release noisy counts, exactly, and −1 for the keys that do not appear.

        The value: the count of each key that someone holds, integers; a key with the count 0 never
        appears.
        """
        counts = np.asarray(value)
        if (counts < 0).any():
            raise expected("value", value, "to be counts ≥ 0")
        noisy = self.count_noise().releases(counts, times, rng)
        released: Array = np.where((counts > 0) & (noisy >= float(self.threshold)), noisy, -1)
        return released


@declared
class GaussianThreshold(_Threshold):
    """Release keys with counts plus Gaussian noise of at least a threshold, and no other key.

    A key without users is never released.

    Parameters
    ----------
    standard_deviation
        σ > 0 of each count.
    threshold
        τ > 0: a key is released if its noisy count reaches τ.
    partitions
        k ≥ 1, how many keys a user has at most.
    sensitivity
        Δ, what a user adds at most to a count.
    """

    example = "GaussianThreshold(standard_deviation=2, threshold=10)"
    noise_argument = "standard_deviation"

    standard_deviation: Positive = Positive()
    threshold: Positive = Positive()
    partitions: Integer = Integer(1, least=1)
    sensitivity: Positive = Positive(1)

    def count_noise(self) -> Mechanism:
        """Return Gaussian noise."""
        return Gaussian(self.standard_deviation, self.sensitivity)

    def new_key(self) -> tuple[arb, arb]:
        """Return Φ(−(τ − Δ)/σ) and Φ((τ − Δ)/σ)."""
        away = self.threshold.ball() - self.sensitivity.ball()
        away /= self.standard_deviation.ball()
        return normal_cdf(-away), normal_cdf(away)
