"""The largest noisy score with Gumbel noise, and which it is.

With Gumbel noise e^{−value} is when the first of independent clocks of rates e^{u_i} rings: the
index i is independent of it, with a chance of e^{u_i}/S, S the sum of all rates. Let S = 1, and let
neighbours have rates of the sum S′, with ratios r_i of the first to the second. P − e^ε Q at w is
the sum of (r_i e^{−w} − e^ε e^{−S′w}) over the second laws' weights, and its positive part is
convex in every r_i, of which the mean is given: so each r_i is the largest or the least. A share p
of the first law rises. H is then a sum of two integrals that have closed forms; it is a lower end
at every p. Above, as each integral grows with S′, which falls with p, a cell of p is bounded by its
ends.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

from flint import arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.declared.law import DeclaredLaw, Pair, unknown
from dpassay.verifier.checker.reals import INFINITE, FewDigitsError, Real, ball

_BITS, _ASIDE = 96, arb(2) ** -60
"""Of every number; how far S′ is moved up where it may be 1."""
_NEAR, _MOST_ROUNDS = 1e-4, 24
"""Relative distance of both ends; halvings of a cell."""


def _ranges(pair: Pair) -> list[tuple[arb, arb]]:
    """Return how far the exponents of one fall and rise: by t to both sides, or to one."""
    t = ball(pair["distance"])
    return [(arb(0), t), (-t, arb(0))] if pair["monotone"] else [(-t, t)]


def _part(a: arb, s: arb) -> arb:
    """Return the integral of max(e^{-w} - e^{a - sw}, 0) over w > 0."""
    whole = 1 - a.exp() / s
    cut = (-(abs(a) / abs(s - 1))).exp() * (1 - 1 / s)
    if s > 1:  # from the crossing on
        return cut if a > 0 else whole if a <= 0 else whole.union(1 - 1 / s)
    return arb(0) if a >= 0 else (whole - cut).max(arb(0))


def _value(ends: tuple[arb, arb], epsilon: arb, low: Fraction, high: Fraction) -> arb:
    """Return H at a share, or a bound of it between two."""
    falls, rises = ends
    s = ball(low) * (-rises).exp() + ball(1 - low) * (-falls).exp()
    if not (s > 1 or s < 1):
        if low == high:
            return arb(0)
        s = (s + _ASIDE).upper()
    first, second = ball(1 - low), ball(high)
    return first * _part(epsilon - falls, s) + second * _part(epsilon - rises, s)


def _shares() -> list[Fraction]:
    odds = [Fraction(2) ** i * (1 + Fraction(j, 8)) for i in range(-40, 41) for j in range(8)]
    return [each / (1 + each) for each in odds]


@lru_cache(maxsize=64)
def _best(distance: Any, monotone: bool, epsilon: Any) -> tuple[arb, int, Fraction]:
    """Return the largest value at a share that is tried, in which range, and the share."""
    e, places = ball(epsilon), _shares()
    found = (arb(-1), 0, Fraction(1, 2))
    for which, ends in enumerate(_ranges({"distance": distance, "monotone": monotone})):
        for p in places:
            value = _value(ends, e, p, p)
            if value > found[0]:
                found = (value, which, p)
    return found


def _hockey_stick(pair: Pair, epsilon: Any) -> Any:
    """Return what lies between the best share and the largest bound of all cells."""
    with ctx.workprec(_BITS):
        e = ball(epsilon)
        low = _best(pair["distance"], pair["monotone"], epsilon)[0].lower()
        low = low.max(1 - e.exp() if epsilon < 0 else arb(0))
        enough, most = (low * (1 + _NEAR)).upper(), low
        for ends in _ranges(pair):
            edges = [Fraction(0), *_shares(), Fraction(1)]
            cells = [*pairwise(edges)]
            for rounds in range(_MOST_ROUNDS):
                known = [(cell, _value(ends, e, *cell).upper()) for cell in cells]
                wide = [cell for cell, bound in known if not bound <= enough]
                last = rounds == _MOST_ROUNDS - 1 or len(wide) > 4 * len(edges)
                for cell, bound in known:
                    if last or cell not in wide:
                        most = most.max(bound)
                if last or not wide:
                    break
                halves = [(a, (a + b) / 2, b) for a, b in wide]
                cells = [half for a, m, b in halves for half in ((a, m), (m, b))]
        return Real(low.union(most))


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    """Return P and Q of the event of that share."""
    with ctx.workprec(_BITS):
        _, which, p = _best(pair["distance"], pair["monotone"], epsilon)
        falls, rises = _ranges(pair)[which]
        s = ball(p) * (-rises).exp() + ball(1 - p) * (-falls).exp()
        if not (s > 1 or s < 1):
            raise FewDigitsError("the best event of a value with Gumbel noise")
        first, second = arb(0), arb(0)
        for share, moved in ((ball(1 - p), falls), (ball(p), rises)):
            start = ((ball(epsilon) - moved) / (s - 1)).max(arb(0))
            after = (-start).exp(), (-s * start).exp()
            inside = after if s > 1 else (1 - after[0], 1 - after[1])
            first += share * inside[0]
            second += share * (-moved).exp() / s * inside[1]
        return Real(first), Real(second)


GUMBEL_VALUE = DeclaredLaw(
    name="gumbel-value",
    parameters=("distance", "monotone"),
    tails=_tails,
    largest_loss=lambda _: INFINITE,
    renyi=unknown("a divergence of a value with Gumbel noise"),
    only_alone=True,
    only_bounded=True,
    hockey_stick=_hockey_stick,
)
