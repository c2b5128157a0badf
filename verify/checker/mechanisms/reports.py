"""Shuffled reports of many users: an upper bound of H(ε), and the event of two datasets.

*Above.* A report of an ε₀-DP randomiser has at least the chance γ(Q_a + Q_b) of everything, where
(e^ε₀ Q_a + Q_b)/(e^ε₀ + 1) and (Q_a + e^ε₀ Q_b)/(e^ε₀ + 1) are the laws of user 1's two reports:
γ = e^−ε₀/2 for any randomiser, and γ = p = 1/(e^ε₀ + k − 1) for randomised response of k
categories, whose report tells a from b with probability w = (e^ε₀ + 1)p only (else w = 1). Each
other user who sends Q_a + Q_b, C of them, is a fair coin beside the one of user 1, which shows a
with q = e^ε₀/(e^ε₀ + 1) or 1 − q. With H_c the divergence of c + 1 coins, which falls with c,

    H(ε) ≤ w E H_C ≤ w Σ_i P(c_i ≤ C < c_{i+1}) H_{c_i},   c_0 = 0.

*The event.* By randomised response, where all others hold a, or all b, the number of their reports
of a is Bin(n − 1, s), s = e^ε₀ p or p, and user 1's is one more with chance e^ε₀ p, or p.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, TypeAlias

from flint import arb

from accountant.numbers.precision import ctx
from verify.checker.masses import binomial_mass, binomial_tail
from verify.checker.reals import Real, UnknownError, ball, exp, hull

Law: TypeAlias = dict[str, Any]
_BLOCKS: Final = 300
"""Blocks of the numbers of clones: more are slower, fewer give a looser bound."""
_DEVIATIONS: Final = 14
"""Standard deviations of them between which the blocks are."""
_BITS: Final = 192
_MOST_USERS: Final = 10**7


def reports(noise: Any) -> list[Law]:
    """Return the pair with both ends, and the datasets whose others are alike."""
    inner, users = noise["mechanism"], int(noise["users"])
    k = int(inner["categories"]) if inner.name == "RandomizedResponse" else 0
    shared = {"epsilon": inner["epsilon"], "of": Fraction(k), "users": Fraction(users)}
    if users > _MOST_USERS:
        raise UnknownError(f"the reports of {users} users")
    found: list[Law] = [{"law": "shuffled-reports", **shared}]
    for held in (0, 1, 2) if k != 2 else (0, 1):
        names = k or (3 if held == 2 else 2)
        other = {"law": "others-alike", "categories": Fraction(names), "held": Fraction(held)}
        found.append({**other, **shared})
    return found


def bounded(law: Law, epsilon: Any) -> Any:
    """Return a number between 0 and the bound of H(ε), of all the datasets of the mechanism."""
    if epsilon < 0:
        return 1 - exp(epsilon) + exp(epsilon) * bounded(law, -epsilon)
    if epsilon >= law["epsilon"]:
        return Fraction(0)
    k, users = int(law["of"]), int(law["users"])
    least = {**law, "law": "others-alike", "categories": Fraction(k or 2), "held": Fraction(1)}
    p, q = event(least, epsilon)
    return hull(p - exp(epsilon) * q, _most(law["epsilon"], k, users, epsilon))


@lru_cache(maxsize=64)
def _most(report: Any, k: int, users: int, epsilon: Any) -> Any:
    """Return the bound for 0 ≤ ε < ε₀, at one precision: it is no enclosure that gets narrow."""
    with ctx.workprec(_BITS):
        odds, x = ball(exp(report)), ball(exp(epsilon))
        choices = [(1 / (2 * odds), arb(1))]
        if k:
            choices.append((1 / (odds + k - 1), (odds + 1) / (odds + k - 1)))
        found = [w * _clones(users - 1, 2 * gamma, odds, x) for gamma, w in choices]
        return Real(min(bound.upper() for bound in found))


def _clones(others: int, share: arb, odds: arb, x: arb) -> arb:
    mean = others * float(share.mid())
    reach = _DEVIATIONS * math.sqrt(mean + 1) + 1
    low, high = max(1, int(mean - reach)), min(others, int(mean + reach))
    size = max(1, (high - low) // _BLOCKS)
    starts = [0, *range(low, high + 1, size)]
    above, mass = [binomial_tail(high + 1, others, share)], binomial_mass(high, others, share)
    tail = above[0]
    for c in range(high, low - 1, -1):
        tail += mass
        mass = mass * c * (1 - share) / ((others - c + 1) * share)
        if (c - low) % size == 0:
            above.insert(0, tail)
    above.insert(0, arb(1))
    total = arb(0)
    for start, here, after in zip(starts, above, above[1:], strict=False):
        total += (here - after).max(arb(0)) * _coins(start, odds, x)
    return total


def _coins(c: int, odds: arb, x: arb) -> arb:
    """Return H_c at ε = ln x: where P > x Q begins is known up to one outcome."""
    truth, half = odds / (odds + 1), arb(1) / 2
    edge = (c + 1) * (x * odds - 1) / ((odds - 1) * (x + 1))
    least = max(math.floor(float(edge.mid())), 1)
    found, here = arb(0), binomial_tail(least - 1, c, half)
    for j in (least, least + 1, least + 2):
        after = here - (binomial_mass(j - 1, c, half) if j - 1 <= c else 0)  # at least j
        found = found.max(here * (truth - x * (1 - truth)) - after * (x * truth - (1 - truth)))
        here = after
    return found


def event(law: Law, epsilon: Any) -> tuple[Any, Any]:
    """Return P and Q of the event that the loss exceeds ε."""
    if law["held"] == 2:
        raise UnknownError("the event of datasets whose others hold a third category")
    if not 0 <= epsilon < law["epsilon"]:
        raise UnknownError("an event beyond the losses of one report")
    with ctx.workprec(max(ctx.prec, _BITS)):
        odds, x, users = ball(exp(law["epsilon"])), ball(exp(epsilon)), int(law["users"])
        rates = [held / (odds + int(law["categories"]) - 1) for held in (odds, arb(1))]
        share = rates[int(law["held"])]
        # P/Q > x where g(a − 1)/g(a) exceeds this, for the law g of the others' reports
        ratio = (x * (1 - rates[1]) - (1 - rates[0])) / (rates[0] - x * rates[1])
        place = (users * ratio * share / (1 - share + ratio * share)).floor().unique_fmpz()
        if place is None:
            raise UnknownError("an event at the edge of which the loss is nearly epsilon")
        after, here = (binomial_tail(int(place) + j, users - 1, share) for j in (1, 0))
        p, q = ((1 - own) * after + own * here for own in rates)
        return Real(p), Real(q)
