"""How much fits into a privacy budget: the most releases, the largest sampling rate, equal shares.

Each answer is certified: it keeps the budget, and the next larger one of its digits does not, as
far as the enclosure says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from accountant import solve
from accountant.adjacency import Adjacency
from accountant.baselines.kairouz import kairouz_delta
from accountant.composition.saddle_pair import SmoothPair
from accountant.errors import NotApplicableError, UndecidedError
from accountant.estimate import estimate_log_delta
from accountant.interval import Interval, narrowed, sign
from accountant.mechanism import Mechanism
from accountant.mechanisms.composed import Composed
from accountant.mechanisms.subsampled import PoissonSubsampled
from accountant.number import ExactReal
from accountant.target import EpsilonDelta, Target

WIDTH = Fraction(1, 10**12)
MOST_RELEASES = 10**12
_SIGN_PRECISION = 512
_SIGN_WIDTH = Fraction(1, 10**9)
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
        whole = Composed(mechanism, count)
        found = _sign(target, whole, relation)
        if found is None and not target.holds(whole, relation):
            raise UndecidedError(f"Whether {count} releases meet {target} is not decided.")
        return found is None or found <= 0

    if not fits(1):
        raise NotApplicableError(f"Not even one release meets {target}.")
    near = _estimated_count(mechanism, target, relation)
    if near is not None and fits(near) and not fits(near + 1):
        return near
    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
        if high > MOST_RELEASES:
            raise NotApplicableError(f"{MOST_RELEASES} releases still meet {target}.")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _sign(target: Target, whole: Mechanism, relation: Adjacency | None) -> int | None:
    """Return the sign of the excess, at a width that is reached fast wherever that tells it."""

    def excess() -> arb:
        return target.excess(whole, relation)

    try:
        with narrowed(_SIGN_WIDTH):
            found = sign(excess, max_precision=_SIGN_PRECISION)
    except UndecidedError:
        found = None
    return sign(excess, max_precision=_SIGN_PRECISION) if found is None else found


def _estimated_count(
    mechanism: Mechanism, target: Target, relation: Adjacency | None
) -> int | None:
    """Return the count by estimates in floats, None where there are none; it is proved later."""
    if not isinstance(target, EpsilonDelta) or target.delta.sign == 0:
        return None
    pairs = Composed(mechanism, 2).worst_case(relation).pairs(None)
    if not all(isinstance(pair, SmoothPair) for pair in pairs):
        return None
    epsilon, log_delta = float(target.epsilon), float(target.delta.ball().log().mid())

    def exceeds(count: int) -> bool:
        try:
            found = estimate_log_delta(Composed(mechanism, count), epsilon, adjacency=relation)
        except UndecidedError:  # few releases and a rare loss
            return False
        return bool(found > log_delta)

    high = 2
    while not exceeds(high):
        high *= 2
        if high > MOST_RELEASES:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if exceeds(middle) else (middle, high)
    return low


def largest_sampling_prob(
    mechanism: Mechanism, target: Target, count: int, *, relative_width: Fraction = WIDTH
) -> Share:
    """Return the largest q with which `count` Poisson-subsampled releases have a guarantee.

    Under add/remove. Raises NotApplicableError if q = 1 has it too.
    """
    relation = Adjacency.ADD_REMOVE

    def excess(less: ExactReal) -> arb:  # of −q: δ grows with q, and roots are of falling functions
        release = PoissonSubsampled(mechanism, -less)
        return target.excess(Composed(release, count), relation)

    with narrowed(relative_width / 16):
        return _largest_rate(excess, target, relative_width)


def _largest_rate(
    excess: Callable[[ExactReal], arb], target: Target, relative_width: Fraction
) -> Share:
    """Return the largest q, where the excess falls with −q."""
    if excess(ExactReal.of_rational(-1)) <= 0:
        raise NotApplicableError(f"Every sampling rate, 1 too, meets {target}.")
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
        delta = kairouz_delta([(share, 0, count)], target.epsilon, relative_width=_SPLIT_WIDTH)
        return delta.ball() - target.delta.ball()

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


def _rounded_down(value: Fraction) -> Fraction:
    """Return the number with 12 significant digits below."""
    scale = Fraction(10) ** (12 - len(str(int(value))) if value >= 1 else 12)
    while value * scale < 10**11:
        scale *= 10
    return Fraction(int(value * scale)) / scale
