"""The best integer noise of sensitivity 1 under (ε, δ)-DP: one law for every symmetric cost.

Let T_j = P(Z ≥ j) for a symmetric law that is (ε, δ)-DP, E = e^ε. The events {y ≥ j} give
T_{j−1} ≤ E T_j + δ, and T_0 = 1 − T_1 by symmetry, so

    T_1 ≥ (1 − δ)/(1 + E),   T_j ≥ max(0, (T_{j−1} − δ)/E)   for j ≥ 2.

The law that attains all of these is geometric with a trimmed end. With m the first j for which
the bound is at most δ,

    P(Z = ±z) ∝ E^{−z} for z < m,   P(Z = ±m) = T_m,   and 0 beyond.

It is log-concave, for its ratios P(Z = z)/P(Z = z + 1) are E^{±1} inside, and from z = m − 1 on
(T_{m−1} − T_m)/T_m = E − 1 + δ/T_m ≥ E and then infinite. So only z ≥ m − 1 exceeds what E
allows, and the divergence is T_{m−1} − E T_m = δ (for m = 1, T_0 − E T_1 = δ). Hence |Z| is
stochastically least: the law is optimal for the mean of every non-decreasing function of |Z|,
over symmetric laws and so (see `lp.integer_problem`) over all laws, on any support. For
sensitivity 2 no law is best for the variance and P(Z ≠ 0) at once.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

from accountant.core.validate import rational
from accountant.errors import UndecidedError, expected
from accountant.numbers.exact import Number

_LONGEST = 10_000
"""Errors of a law that is listed."""


def unit_noise(ratio: Number, delta: Number) -> list[Fraction]:
    """Return P(Z = 0), …, P(Z = m).

    Parameters
    ----------
    ratio
        E = e^ε, rational and ≥ 1.
    delta
        δ, rational and in (0, 1).

    Raises
    ------
    InvalidInputError
        For numbers outside these ranges.
    UndecidedError
        If m exceeds 10,000.
    """
    growth = rational("ratio", ratio, least=1)
    slack = rational("delta", delta, least=0, strict=True)
    if slack >= 1:
        raise expected("delta", delta, "in (0, 1)", "With delta = 1 no noise is needed.")
    tails = [(1 - slack) / (1 + growth)]
    while tails[-1] > slack:
        if len(tails) == _LONGEST:
            raise UndecidedError(f"The law needs errors beyond {_LONGEST}. Give a larger delta.")
        tails.append((tails[-1] - slack) / growth)
    tails.append(Fraction(0))
    sides = [a - b for a, b in itertools.pairwise(tails)]
    return [1 - 2 * tails[0], *sides]
