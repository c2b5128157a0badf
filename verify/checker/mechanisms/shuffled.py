"""Shuffled reports: of few users by randomised response their histogram, of many two bounds.

*The histogram.* User by user: with g the law of the histogram of the others, a user who holds c
adds one report, c with e^ε times the chance of every other category. One user changes from the
first category to the second, with others who hold anything; the categories after the second have
names alone, so that of their counts one order is enough. A report is ε-DP, and so is what is made
of it: no loss exceeds ε.

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
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, TypeAlias

from flint import arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.masses import Bounded, binomial_mass, binomial_tail
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import Real, UnknownError, ball, exp, hull

Law: TypeAlias = dict[str, Any]
_BLOCKS: Final = 300
"""Blocks of the numbers of clones: more are slower, fewer give a looser bound."""
_DEVIATIONS: Final = 14
"""Standard deviations of them between which the blocks are."""
_BOUND_BITS: Final = 192
"""At which both ends of many users are found."""
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
    with ctx.workprec(_BOUND_BITS):
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
    with ctx.workprec(max(ctx.prec, _BOUND_BITS)):
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


Histogram: TypeAlias = dict[tuple[int, ...], Any]
_MOST_MASSES: Final = 60_000
"""Of all laws together."""
_LARGEST_EPSILON: Final = 100
"""Of one report: the digits of the least mass grow with it."""
_MOST_EXACT: Final = 8
"""Users up to whom masses are kept as polynomials in e^ε, so that equal ones are seen."""
_BITS: Final = 64
"""Bits beyond those of the least mass, for the rounding of n additions."""


def shuffled(noise: Noise) -> Sequence[dict[str, Any]]:
    """Return the pair of every dataset of the others; of many users their bounds."""
    inner, users = noise["mechanism"], int(noise["users"])
    if inner["epsilon"] > _LARGEST_EPSILON:
        raise UnknownError(f"all pairs of {users} users")
    if inner.name != "RandomizedResponse":
        return reports(noise)
    k = int(inner["categories"])
    if (k - 1) * math.log2(users + 1) > math.log2(_MOST_MASSES):
        return reports(noise)
    listed = users if k == 2 else _arrangements(users - 1, k)
    if listed * (users + 1) ** (k - 1) > _MOST_MASSES:
        return reports(noise)
    return _laws(inner["epsilon"], k, users, ctx.prec)


def _arrangements(others: int, k: int) -> int:
    """Return how many datasets of the others are looked at: the counts after the second fall."""
    return sum((s + 1) * _falling(others - s, k - 2, others) for s in range(others + 1))


@lru_cache(maxsize=4096)
def _falling(total: int, parts: int, most: int) -> int:
    """Return how many falling lists of integers from 0 to `most` have a sum."""
    if parts == 0:
        return int(total == 0)
    return sum(_falling(total - m, parts - 1, m) for m in range(min(total, most) + 1))


@lru_cache(maxsize=8)
def _laws(epsilon: Any, k: int, users: int, precision: int) -> list[Bounded]:
    # the least mass is above (e^ε + k)^{−n}, and log2(e^ε + k) ≤ 1.5 ε + k
    spread = users * (math.ceil(1.5 * float(ball(epsilon).upper())) + k)
    found: list[Bounded] = []
    with ctx.workprec(precision + spread + _BITS):
        exact = users <= _MOST_EXACT
        odds, one = (exp(epsilon), Fraction(1)) if exact else (ball(exp(epsilon)), arb(1))
        whole = (odds + (k - 1)) ** users
        for law in _others({(0,) * k: one}, (0, users - 1, users - 1), odds):
            first, second = (_one_more(law, c, odds) for c in (0, 1))
            names = sorted(first, key=lambda counts: counts[-2::-1])
            p, q = ([_number(side[n] / whole) for n in names] for side in (first, second))
            if (len(found) + 1) * len(names) > _MOST_MASSES:
                raise UnknownError(f"all pairs of {users} users")
            found.append(Bounded({"law": "finite", "p": p, "q": q}, (epsilon, Fraction(0))))
    return found[::-1]


def _number(mass: Any) -> Any:
    return mass if isinstance(mass, (Real, Fraction)) else Real(mass)


def _others(law: Histogram, place: tuple[int, int, int], odds: Any) -> Iterator[Histogram]:
    """Yield the weights of the reports where more users hold a category or later ones.

    The place is the category, how many users are left, and the count of the category before.
    """
    category, left, before = place
    ordered = category > 2  # one order of the counts after the second category
    if category == len(next(iter(law))) - 1:
        if ordered and left > before:
            return
        for _ in range(left):
            law = _one_more(law, category, odds)
        yield law
        return
    for count in range((min(left, before) if ordered else left) + 1):
        yield from _others(law, (category + 1, left - count, count), odds)
        law = _one_more(law, category, odds)


def _one_more(law: Histogram, holds: int, odds: Any) -> Histogram:
    """Return the weights with one more user, who holds a category."""
    after: Histogram = {}
    for counts, weight in law.items():
        for report in range(len(counts)):
            counted = (*counts[:report], counts[report] + 1, *counts[report + 1 :])
            share = odds * weight if report == holds else weight
            after[counted] = after[counted] + share if counted in after else share
    return after
