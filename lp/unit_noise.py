"""A formula for the best integer noise of sensitivity 1 under (ε, δ)-DP.

The law is geometric with a trimmed end: for one m ≥ 1

    P(Z = ±z) = a E^{−z} for z < m,   P(Z = ±m) = b ≤ a E^{−m},   and 0 beyond.

Only the last two differences exceed what E allows, so that δ = a E^{−(m−1)} − (E − 1) b; with
a (1 + 2 Σ_{z=1}^{m−1} E^{−z}) + 2b = 1 this fixes a and b, and m is the one for which
0 ≤ b ≤ a E^{−m}. That nothing is better is proved case by case, by the multipliers of
`lp.integer_noise`: wherever the two were compared they agree exactly, for the variance and for
every tail P(|Z| ≥ k). So one law serves every symmetric cost there; for sensitivity 2 none does.
"""

from __future__ import annotations

from fractions import Fraction

from accountant._validate import rational
from accountant.errors import UndecidedError, expected
from accountant.number import Number

_LONGEST = 10_000


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
    limit = rational("delta", delta, least=0, strict=True)
    if limit >= 1:
        raise expected("delta", delta, "in (0, 1)", "With delta = 1 no noise is needed.")
    mass, last = Fraction(1), Fraction(1)  # of the part below m, in units of a
    for m in range(1, _LONGEST + 1):
        top = (limit + (growth - 1) / 2) / (last + (growth - 1) * mass / 2)
        end = (1 - top * mass) / 2
        if 0 <= end <= top * last / growth:
            side = [top / growth**z for z in range(m)]
            return [*side, end] if end else side
        last /= growth
        mass += 2 * last
    raise UndecidedError(f"The law needs errors beyond {_LONGEST}. Give a larger delta.")
