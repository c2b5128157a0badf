"""What fits into a privacy budget: the largest count, sampling probability or share of ε.

Each answer is certified: it provably keeps the budget, and the enclosure of the largest value
bounds how much more would.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR
from fractions import Fraction
from functools import partial
from typing import final

from flint import arb

from dpassay.accountant.budget.calibrate import calibrate
from dpassay.accountant.budget.target import MOST_RELEASES, Target, Width, decided, largest_count
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import exact_list, integer
from dpassay.accountant.errors import NotApplicableError, UndecidedError, expected
from dpassay.accountant.mechanisms.wrappers.channel import RandomizedResponse
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.sampling import PoissonSubsampled
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import Interval, decimal_context

_WIDTHS = tuple(Fraction(1, 10**digits) for digits in (9, 6, 3))
"""Relative widths of the enclosure of a sampling probability that are tried in turn."""


@final
@dataclass(frozen=True, slots=True)
class Share:
    """The largest value that keeps a budget."""

    largest: Interval
    """An enclosure of the largest value."""
    safe: Fraction
    """A value just below it, of at most 15 digits, that provably keeps the budget."""


def most_releases(
    mechanism: Mechanism, target: Target, *, adjacency: Adjacency | str | None = None
) -> int:
    """Return the largest count for which `Composed(mechanism, count)` satisfies a guarantee.

    It is proved that this count satisfies the guarantee and the next one does not.

    Raises
    ------
    NotApplicableError
        If not even one release satisfies it, or 10^12 releases do.
    UndecidedError
        If a count cannot be decided.
    """
    relation = Adjacency.read(adjacency)

    def fits(count: int) -> bool:
        found = decided(target, Composed(mechanism, count), relation)
        if found is None:
            raise UndecidedError(
                f"Whether {count} releases meet {target} was not decided. Give a slightly "
                "larger budget."
            )
        return found

    found = largest_count(fits)
    if found == MOST_RELEASES:
        raise NotApplicableError(
            f"{MOST_RELEASES} releases still meet {target}. No more are tried."
        )
    if not found:
        raise NotApplicableError(f"Not even one release meets {target}. Give it more noise.")
    return found


def largest_sampling_prob(mechanism: Mechanism, target: Target, count: int) -> Share:
    """Return the largest q for which `count` Poisson-subsampled releases satisfy a guarantee.

    The neighbouring relation is add-remove. Raises NotApplicableError if q = 1 satisfies it too.
    """
    relation, count = Adjacency.ADD_REMOVE, integer("count", count, least=1)

    def excess(less: ExactReal, width: Width) -> arb:
        # in terms of −q: δ increases with q, and solve.root needs a decreasing function
        release = PoissonSubsampled(mechanism, -less)
        return target.excess(Composed(release, count), relation, width)

    if excess(ExactReal.of_rational(-1), None) <= 0:
        raise NotApplicableError(f"Every sampling rate up to 1 meets {target}.")
    low = Fraction(1)
    while not excess(ExactReal.of_rational(-low), _WIDTHS[-1]) < 0:
        low /= 4
    for width in _WIDTHS:
        with contextlib.suppress(UndecidedError):
            near = partial(excess, width=width / 16)
            found = solve.root(near, (-4 * low, -low), relative_width=width)
            largest = Interval(-found.upper, -found.lower)
            safe = _rounded_down(Fraction(largest.lower))
            if excess(ExactReal.of_rational(-safe), width / 16) < 0:
                return Share(largest, safe)
    raise UndecidedError(
        f"The largest sampling probability is in [{low}, {4 * low}]; no digit of it is certain."
    )


def shares_of_epsilon(target: Target, weights: Sequence[Number], *, count: int = 1) -> Share:
    """Return the largest t such that releases with ε proportional to weights keep a guarantee.

    The guarantee holds for any (t·w)-DP releases, one for each weight w > 0, all of them `count`
    times. It is computed for randomised response, which dominates every ε-DP mechanism (Kairouz, Oh
    and Viswanath 2015).
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
    """Round down to 12 significant digits."""
    found = decimal_context(12, ROUND_FLOOR).divide(value.numerator, value.denominator)
    return Fraction(found)
