"""How much noise a mechanism adds: variance, mean squared error, covariance, quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import chain

from flint import arb

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import probability
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import Number
from dpassay.accountant.numbers.interval import RELATIVE_WIDTH, Interval, enclose
from dpassay.accountant.numbers.precision import ctx

MOST_ENTRIES = 1 << 22
"""Entries of a covariance matrix that are listed: more are seconds of balls, and gigabytes."""


def variance(mechanism: Mechanism, *, relative_width: Fraction = RELATIVE_WIDTH) -> list[Interval]:
    """Enclose the variance of each released coordinate; one entry where they are all equal."""
    return _each(mechanism.variances, relative_width)


def mean_squared_error(
    mechanism: Mechanism, *, relative_width: Fraction = RELATIVE_WIDTH
) -> Interval:
    """Enclose the average over the outputs of E[(released − true)²]."""
    return enclose(mechanism.mean_squared_error, relative_width=relative_width)


def covariance(
    mechanism: Mechanism, *, relative_width: Fraction = RELATIVE_WIDTH
) -> list[list[Interval]]:
    """Enclose every entry of the covariance matrix of the noise.

    Raises NotApplicableError where it has more than `MOST_ENTRIES`.
    """
    if (size := mechanism.dimension) ** 2 > MOST_ENTRIES:
        raise NotApplicableError(
            f"A covariance matrix of {size} x {size} entries is too long to write: at most "
            f"{MOST_ENTRIES} are. Ask for the variance of each coordinate."
        )
    found = _each(lambda: list(chain(*mechanism.covariance_matrix())), relative_width)
    side = math.isqrt(len(found))
    return [found[start : start + side] for start in range(0, len(found), side)]


def quantile(
    mechanism: Mechanism, level: Number, *, relative_width: Fraction = RELATIVE_WIDTH
) -> Interval:
    """Enclose the least x with P(noise ≤ x) ≥ level, for mechanisms with one scalar law."""
    p = probability("level", level)
    return enclose(lambda: mechanism.quantile(p), relative_width=relative_width)


def _each(compute: Callable[[], Sequence[arb]], relative_width: Fraction) -> list[Interval]:
    """Enclose numbers that are computed together: those that share a ball share its enclosure.

    An enclosure contains the ball that it was made of, and so every number of which that ball is
    an enclosure.
    """
    rungs: dict[int, Sequence[arb]] = {}
    known: dict[int, Interval] = {}  # by the identity of a ball, which `rungs` keeps

    def listed() -> Sequence[arb]:
        if ctx.prec not in rungs:
            rungs[ctx.prec] = compute()
        return rungs[ctx.prec]

    def enclosed(index: int) -> Interval:
        for balls in rungs.values():
            if (found := known.get(id(balls[index]))) is not None:
                return found
        last = arb(0)

        def entry() -> arb:
            nonlocal last
            last = listed()[index]
            return last

        found = enclose(entry, relative_width=relative_width)
        known[id(last)] = found
        return found

    return [enclosed(index) for index in range(len(compute()))]
