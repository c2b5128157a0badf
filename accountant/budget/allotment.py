"""How much fits into a privacy budget: the most releases, the largest sampling rate, shares of ε.

Each answer is certified: it keeps the budget, and the next larger one of its digits does not, as
far as the enclosure says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.budget.calibrate import calibrate
from dpassay.accountant.budget.target import (
    MOST_RELEASES,
    EpsilonDelta,
    Target,
    Width,
    decided,
    largest_count,
)
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.core.validate import exact_list, integer
from dpassay.accountant.errors import (
    InvalidInputError,
    NotApplicableError,
    UndecidedError,
    expected,
)
from dpassay.accountant.mechanisms.wrappers.channel import RandomizedResponse
from dpassay.accountant.mechanisms.wrappers.composed import Composed, Guaranteed
from dpassay.accountant.mechanisms.wrappers.sampling import PoissonSubsampled
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile

WIDTH = Fraction(1, 10**12)
_SPLIT_WIDTH = Fraction(1, 10**15)


@final
@dataclass(frozen=True, slots=True)
class Share:
    """The largest share that keeps a budget."""

    largest: Interval
    safe: Fraction
    """A number of at most 15 digits just below it, at which the budget is proved to be kept."""


def most_releases(
    mechanism: Mechanism, target: Target, *, adjacency: Adjacency | str | None = None
) -> int:
    """Return the largest count for which `Composed(mechanism, count)` has a guarantee.

    Proved on both sides: it has it at the count that is returned and not at the next.

    Raises
    ------
    NotApplicableError
        If not even one release has it, or 10^12 have.
    UndecidedError
        If a count cannot be decided.
    """
    relation = Adjacency.read(adjacency)

    def fits(count: int) -> bool:
        found = decided(target, Composed(mechanism, count), relation)
        if found is None:
            raise UndecidedError(f"It is undecided whether {count} releases meet {target}.")
        return found

    found = largest_count(fits)
    if found == MOST_RELEASES:
        raise NotApplicableError(f"{MOST_RELEASES} releases still meet {target}.")
    if not found:
        raise NotApplicableError(f"Not even one release meets {target}.")
    return found


def largest_sampling_prob(
    mechanism: Mechanism, target: Target, count: int, *, relative_width: Fraction = WIDTH
) -> Share:
    """Return the largest q with which `count` Poisson-subsampled releases have a guarantee.

    Under add/remove. Raises NotApplicableError if q = 1 has it too.
    """
    relation, count = Adjacency.ADD_REMOVE, integer("count", count, least=1)

    def excess(less: ExactReal, width: Width = relative_width / 16) -> arb:
        release = PoissonSubsampled(mechanism, -less)  # δ grows with q, and roots are of what falls
        return target.excess(Composed(release, count), relation, width)

    if excess(ExactReal.of_rational(-1), None) <= 0:
        raise NotApplicableError(f"Every sampling rate up to 1 meets {target}.")
    found = _beside_estimate(mechanism, target, count, relative_width)
    if found is not None:
        return found
    return _largest_rate(excess, relative_width)


def _beside_estimate(
    mechanism: Mechanism, target: Target, count: int, relative_width: Fraction
) -> Share | None:
    """Return the largest rate q by estimates of 1/q, proved; None where they do not lead there."""
    first = Fraction(math.isqrt(count))
    if isinstance(target, EpsilonDelta):
        if target.delta.sign == 0 or target.epsilon.sign <= 0:
            return None
        depth = -float(target.delta.ball().log().mid())
        first = Fraction(math.sqrt(2 * depth * count) / float(target.epsilon))

    def pairs(inverse: ExactReal) -> Sequence[Pair]:
        q = min(ExactReal.of_rational(1) / inverse, ExactReal.of_rational(1))
        release = Composed(PoissonSubsampled(mechanism, q), count)
        return release.worst_case(Adjacency.ADD_REMOVE).pairs(None)

    found = target.beside_estimates(pairs, max(first, Fraction(1)), relative_width)
    if found is None:
        return None
    ends = (
        Interval.of_exact(1 / Fraction(found.least.upper)),
        Interval.of_exact(1 / Fraction(found.least.lower)),
    )
    largest = ends[0].hull(ends[1])
    return Share(largest, _rounded_down(Fraction(largest.lower)))


def _largest_rate(excess: Callable[[ExactReal], arb], relative_width: Fraction) -> Share:
    """Return the largest q, where the excess falls with −q."""
    low = high = Fraction(1)
    for _ in range(400):
        low, high = low / 4, low
        if excess(ExactReal.of_rational(-low)) < 0:
            break
    found = solve.root(excess, (-high, -low), relative_width=relative_width)
    largest = Interval(-found.upper, -found.lower)
    safe = _rounded_down(Fraction(largest.lower))
    if not excess(ExactReal.of_rational(-safe)) < 0:
        raise UndecidedError(f"The rate {float(safe)} could not be certified.")
    return Share(largest, safe)


def equal_epsilon(target: EpsilonDelta, count: int) -> Share:
    """Return the largest ε₀ such that any `count` releases of ε₀-DP keep (ε, δ)-DP together.

    By optimal composition (Kairouz, Oh and Viswanath 2015): nothing else is known of the releases.
    """

    def excess(less: ExactReal) -> arb:
        share = ExactReal.of_rational(-(less.rational or Fraction(0)))
        if share.sign == 0:
            return arb(-1)
        whole = Composed(Guaranteed(share), count)
        delta = profile.delta(whole, target.epsilon, relative_width=_SPLIT_WIDTH)
        return delta.ball() - target.delta.ball()

    count = integer("count", count, least=1)
    if objection := target.objection():
        raise InvalidInputError(objection)
    total = target.epsilon.rational
    if total is None or total <= 0:
        raise NotApplicableError("An equal split needs a rational epsilon > 0.")
    low = total / count  # basic composition: always kept
    high = 2 * low
    while excess(ExactReal.of_rational(-high)) < 0:
        high *= 2
    if target.delta.sign == 0:
        return Share(Interval.of_exact(low), low)
    found = solve.root(excess, (-high, -low), relative_width=WIDTH)
    largest = Interval(-found.upper, -found.lower)
    safe = max(low, _rounded_down(Fraction(largest.lower)))
    if safe != low and not excess(ExactReal.of_rational(-safe)) < 0:
        raise UndecidedError(f"The share {float(safe)} could not be certified.")
    return Share(largest, safe)


def shares_of_epsilon(target: Target, weights: Sequence[Number], *, count: int = 1) -> Share:
    """Return the largest t such that releases of unequal ε keep a guarantee together.

    Any releases of (t·w)-DP do, one for each weight w > 0, all of them `count` times. Randomised
    response dominates whatever is ε-DP (Kairouz, Oh and Viswanath 2015): it is calibrated.
    """
    factors = exact_list("weights", weights)
    for index, weight in enumerate(factors):
        if weight.sign <= 0:
            raise expected(f"weights[{index}]", weight, "> 0")
    one = ExactReal.of_rational(1)
    schedule = [one / weight for weight in factors]
    found = calibrate(RandomizedResponse, target, count=count, schedule=schedule)
    safe = exact(getattr(found.mechanism, found.argument)).rational
    assert safe is not None  # a decimal
    return Share(found.least, safe)


def _rounded_down(value: Fraction) -> Fraction:
    """Return the number with 12 significant digits below."""
    scale = Fraction(10) ** (12 - len(str(int(value))) if value >= 1 else 12)
    while value * scale < 10**11:
        scale *= 10
    return Fraction(int(value * scale)) / scale
