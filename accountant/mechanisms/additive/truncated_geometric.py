"""The truncated geometric mechanism."""

from __future__ import annotations

from typing import Any, cast

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer, Positive, integer
from dpassay.accountant.errors import expected
from dpassay.accountant.mechanisms.additive.discrete_laplace import DiscreteLaplace
from dpassay.accountant.pairs.discrete_laplace import DiscreteLaplacePair


@declared
class TruncatedGeometric(Mechanism):
    """Release min(max(n + Z, low), high) for a count n in low..high, P(Z = z) ∝ e^{−|z|/b}.

    Ghosh, Roughgarden and Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms"
    (2009), Section 2: the tails of the geometric mechanism pile up at the two ends.

    Parameters
    ----------
    scale
        b > 0 of the noise before truncation.
    low, high
        The range of the counts and of the released value, low < high.
    sensitivity
        The largest distance between the counts of two neighbours, 1 ≤ sensitivity ≤ high − low.

    Notes
    -----
    Truncation costs the adversary nothing. Take counts n and n + d, both in low..high. The loss
    of the untruncated outcome y is −d/b for all y ≤ n and d/b for all y ≥ n + d. Truncation
    merges the outcomes y ≤ low ≤ n into one and the outcomes y ≥ high ≥ n + d into another, so
    it only merges outcomes of equal loss, and the loss keeps its law under both counts. Hence
    *every* pair of counts at distance d has exactly the profile of two discrete Laplace laws at
    distance d, whatever n is, and all pairs at distance `sensitivity` are worst together: the
    mechanism is exactly sensitivity/b-DP, as if nothing were truncated.
    """

    example = "TruncatedGeometric(scale=2, low=0, high=10)"
    no_variance = (
        "The noise of TruncatedGeometric depends on the true count. "
        "Ask for variance_at(count) or mean_squared_error_at(count)."
    )

    noise_argument = "scale"

    scale: Positive = Positive()
    low: Integer = Integer()
    high: Integer = Integer()
    sensitivity: Integer = Integer(1, least=1)

    def __post_init__(self) -> None:
        if self.high <= self.low:
            raise expected("high", self.high, f"> low={self.low}", "Give a larger high.")
        if self.sensitivity > self.high - self.low:
            raise expected(
                "sensitivity",
                self.sensitivity,
                f"≤ high − low = {self.high - self.low}",
                "Widen the range, or give a smaller sensitivity.",
            )

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return two untruncated laws at the full distance, whose loss has the same law."""
        return WorstCase.symmetric(
            DiscreteLaplacePair(self.scale, self.sensitivity),
            "Truncation merges only outcomes of equal loss, so every pair of counts in the range "
            "at distance d has the profile of the untruncated noise at distance d, which "
            "increases with d: every pair at distance sensitivity is worst.",
        )

    def masses(self, count: int) -> list[arb]:
        """Return P(released value = low), …, P(released value = high) for a true count."""
        n, low, high = self._count(count), self.low, self.high
        rate = 1 / self.scale.ball()
        outer = 1 + (-rate).exp()
        centre = (rate / 2).tanh()
        inner = [centre * (-rate * abs(y - n)).exp() for y in range(low + 1, high)]
        return [(-rate * (n - low)).exp() / outer, *inner, (-rate * (high - n)).exp() / outer]

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the integer noise of `size` releases before truncation, exactly."""
        return DiscreteLaplace(self.scale).sample(size, rng=rng)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw released values for one true count, exactly."""
        values = self._count(cast(int, value)) + self.sample(times, rng=rng)
        return np.asarray(np.clip(values, self.low, self.high))

    def mean_at(self, count: int) -> arb:
        """Return the mean of the released value for a true count (biased off the middle)."""
        n = self._count(count)
        return n + self._excess(n - self.low) - self._excess(self.high - n)

    def mean_squared_error_at(self, count: int) -> arb:
        """Return E[(released − n)²] for a true count n.

        The sum over both sides of E[min(Z⁺, R)²] = Σ_{1 ≤ k ≤ R} (2k − 1) P(Z ≥ k), where R is
        the room on that side and P(Z ≥ k) = r^k/(1 + r).
        """
        n = self._count(count)
        rate = 1 / self.scale.ball()
        r, less = (-rate).exp(), -(-rate).expm1()
        total = arb(0)
        for room in (n - self.low, self.high - n):
            top = r**room
            plain = r * (1 - top) / less
            weighted = r * (1 - (room + 1) * top + room * top * r) / less**2
            total += (2 * weighted - plain) / (1 + r)
        return total

    def variance_at(self, count: int) -> arb:
        """Return the variance of the released value for a true count."""
        bias = self.mean_at(count) - count
        return self.mean_squared_error_at(count) - bias**2

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return counts one apart, at both ends of the range and in its middle."""
        starts = (self.low, (self.low + self.high) // 2, self.high - 1)
        return [(count, count + 1) for count in dict.fromkeys(starts)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw released counts."""
        return self.release(int(answer), size, rng=rng)

    def _excess(self, room: int) -> arb:
        """Return E[(−Z − room)⁺] = Σ_{k > room} P(Z ≥ k) = r^{room+1}/(1 − r²)."""
        rate = 1 / self.scale.ball()
        return -(-rate * (room + 1)).exp() / (-2 * rate).expm1()

    def _count(self, count: int) -> int:
        n = integer("count", count)
        if not self.low <= n <= self.high:
            raise expected("count", n, f"in {self.low}..{self.high}", "Give a count of the range.")
        return n
