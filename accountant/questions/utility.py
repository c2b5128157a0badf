"""How much noise a mechanism adds: variance, mean squared error, covariance, quantiles."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from flint import arb

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import probability
from dpassay.accountant.numbers.exact import Number
from dpassay.accountant.numbers.interval import RELATIVE_WIDTH, Interval, enclose


def variance(mechanism: Mechanism, *, relative_width: Fraction = RELATIVE_WIDTH) -> list[Interval]:
    """Enclose the variance of each released coordinate; one entry where they are all equal."""

    def entry(index: int) -> arb:
        return mechanism.variances()[index]

    count = len(mechanism.variances())
    return [enclose(partial(entry, j), relative_width=relative_width) for j in range(count)]


def mean_squared_error(
    mechanism: Mechanism, *, relative_width: Fraction = RELATIVE_WIDTH
) -> Interval:
    """Enclose the average over the outputs of E[(released − true)²]."""
    return enclose(mechanism.mean_squared_error, relative_width=relative_width)


def covariance(
    mechanism: Mechanism, *, relative_width: Fraction = RELATIVE_WIDTH
) -> list[list[Interval]]:
    """Enclose every entry of the covariance matrix of the noise."""
    size = len(mechanism.covariance_matrix())

    def entry(i: int, j: int) -> Interval:
        return enclose(lambda: mechanism.covariance_matrix()[i][j], relative_width=relative_width)

    return [[entry(i, j) for j in range(size)] for i in range(size)]


def quantile(
    mechanism: Mechanism, level: Number, *, relative_width: Fraction = RELATIVE_WIDTH
) -> Interval:
    """Enclose the least x with P(noise ≤ x) ≥ level, for mechanisms with one scalar law."""
    p = probability("level", level)
    return enclose(lambda: mechanism.quantile(p), relative_width=relative_width)
