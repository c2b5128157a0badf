"""Laws of the privacy loss: what a pair (P, Q) of neighbouring laws answers, in balls.

L = ln dP/dQ is the loss. A law answers, for a number l, with H(l) and Q(L > l), where

    H(l) = P(L > l) − e^l Q(L > l) = E_P[(1 − e^{l − L})⁺] = sup over events of P(E) − e^l Q(E),

the δ at ε = l. With x = e^l, H is convex and falls in x, from 1 at x = 0, and −Q(L > l) is a slope
of it. (P, Q) is (ε, δ)-private if and only if H(ε) ≤ δ; one event with P(E) − e^ε Q(E) > δ refutes.

Swap: the pair (Q, P) has H'(l) = 1 − e^l + e^l H(−l) and the slope −P(L < −l).
Sampling: ((1 − q)Q + qP, Q) has H'(l) = q H(ln((e^l − 1 + q)/q)), or 1 − e^l where e^l ≤ 1 − q.
Diluting: (P, (1 − q)P + qQ) has H'(l) = (1 − (1 − q)e^l) H(ln(qe^l/(1 − (1 − q)e^l))), or 0 where
(1 − q)e^l ≥ 1. All three follow from writing out P'(E) − e^l Q'(E).
Rényi divergence of order a > 1: ln E_Q[e^{aL}]/(a − 1).

At an atom of L the slope may be that of either side, as both are slopes of a convex function.
Where a ball cannot tell on which side of an atom l lies, `TooFewDigits` asks for more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import TypeAlias

from flint import arb, ctx, fmpq

from .numbers import (
    NotProved,
    Number,
    TooFewDigits,
    ball,
    compare,
    exactly,
    exp,
    log,
    maximum,
    precision,
    whole,
)

INFINITE = arb("inf")
ZERO, ONE = fmpq(0), fmpq(1)
MOST_OUTCOMES = 5000
"""Of a table that is made of others."""
MOST_MASSES = 100_000
"""Of one law of integer noise."""
Answer: TypeAlias = tuple[Number, Number]
"""H(l) and Q(L > l)."""


@dataclass(frozen=True)
class Law:
    """The loss of one pair: `answer` gives H(l) and Q(L > l), `largest` the supremum of L under P.

    `symmetric`: (Q, P) has the same law. `mu` is set for N(μ, 1) against N(0, 1). `atoms` are the
    masses (p, q) of a table. `divergence` is the Rényi divergence of an order above 1, and `rho` a
    number with D_a ≤ ρa for all of them. `infinite` is at most P(L = ∞), and `last` at most the
    chance under Q of the largest loss. `only_alone`: it is attained by one release,
    not by several of them at once; `is_pair` is False for what is less than the law of a pair.
    All finite losses of a table are multiples of
    `grid`, if given.
    """

    name: str
    answer: Callable[[Number], Answer]
    largest: Number = INFINITE
    symmetric: bool = True
    mu: Number | None = None
    atoms: Sequence[Answer] = ()
    divergence: Callable[[Number], Number] | None = None
    rho: Number | None = None
    infinite: Number = ZERO
    last: Number = ZERO
    only_alone: bool = False
    is_pair: bool = True
    grid: Number | None = None
    kept: dict[tuple[fmpq, int], tuple[arb, arb]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def at(self, loss: Number) -> tuple[arb, arb]:
        """Return H(loss) and Q(L > loss); those at rational losses are kept."""
        key = (loss, ctx.prec) if isinstance(loss, fmpq) else None
        if key is not None and key in self.kept:
            return self.kept[key]
        height, slope = self.answer(loss)
        found = ball(height), ball(slope)
        if key is not None:
            self.kept[key] = found
        return found

    def delta(self, loss: Number) -> Number:
        """Return H(loss), exact where it is."""
        return self.answer(loss)[0]


def told(a: Number, relation: str, b: Number) -> bool:
    """Return a comparison that the balls decide, or raise TooFewDigits."""
    found = compare(a, relation, b)
    if found is None:
        raise TooFewDigits("two numbers are too close to be told apart")
    return found


def from_tails(loss: Number, p: Number, q: Number) -> Answer:
    """Return H and the slope from P(L > l) and Q(L > l)."""
    return p - exp(loss) * q, q


def nothing(loss: Number) -> Answer:
    """Return H(l) and Q(L > l) below every loss."""
    return 1 - exp(loss), ONE


def between(t: Number, inside: Callable[[Number], Answer]) -> Callable[[Number], Answer]:
    """Return the answer of a law whose losses lie in [−t, t]."""

    def answer(loss: Number) -> Answer:
        if told(loss, ">=", t):
            return ZERO, ZERO
        return nothing(loss) if told(loss, "<", -t) else inside(loss)

    return answer


# --- laws with a formula ------------------------------------------------------------------------
def normal_above(x: Number) -> arb:
    """Return P(N(0, 1) > x)."""
    return (ball(x) / arb(2).sqrt()).erfc() / 2


def gaussian(mu: Number, square: Number | None = None) -> Law:
    """Return N(μ, 1) against N(0, 1): L ~ N(μ²/2, μ²) under P. The square may be exact."""
    if told(mu, "==", ZERO):
        return table([(ONE, ONE)])

    def answer(loss: Number) -> Answer:
        cut = ball(loss) / ball(mu)
        return from_tails(loss, normal_above(cut - mu / 2), normal_above(cut + mu / 2))

    half = (mu * mu if square is None else square) / 2
    return Law("Gaussian noise", answer, mu=mu, divergence=lambda a: a * half, rho=half)


def several(mu: Number, count: Number) -> Law:
    """Return so many times H of N(μ, 1) against N(0, 1), at most 1: an upper bound of a curve."""
    law = gaussian(mu)

    def answer(loss: Number) -> Answer:
        height, slope = law.at(loss)
        return -maximum([-count * height, -ONE]), count * slope

    return Law("a number of Gaussian bounds", answer)


def laplace(t: Number) -> Law:
    """Return Laplace laws of scale 1 at distance t: atoms at ±t, between them H = 1 − e^{(l−t)/2}.

    H is the largest of 0, 1 − e^l and that; near an atom its slope is one of both.
    """

    def answer(loss: Number) -> Answer:
        beyond, before = compare(loss, ">=", t), compare(loss, "<", -t)
        if beyond:
            return ZERO, ZERO
        if before:
            return nothing(loss)
        height, slope = 1 - exp((loss - t) / 2), exp(-(t + loss) / 2) / 2
        if before is None:
            return ball(height).union(ball(1 - exp(loss))), ball(slope).union(arb(1))
        if beyond is None:
            return maximum([height, ZERO]), ball(slope).union(arb(0))
        return height, slope

    def divergence(a: Number) -> Number:
        moment = (a * exp((a - 1) * t) + (a - 1) * exp(-a * t)) / (2 * a - 1)
        return log(moment) / (a - 1)

    return Law("Laplace noise", answer, t, divergence=divergence, last=exp(-t) / 2)


def logistic(t: Number) -> Law:
    """Return logistic laws of scale 1 at distance t.

    With y = e^{−x} the ratio is e^t((1 + y)/(1 + e^t y))², which falls with y, and y < c has the
    probabilities c/(1 + c) under Q and e^t c/(1 + e^t c) under P: L > l is y < (1 − r)/(e^t r − 1),
    r = e^{(l−t)/2}.
    """

    def inside(loss: Number) -> Answer:
        r = exp((loss - t) / 2)
        q = (1 - r) / (r * (exp(t) - 1))
        return from_tails(loss, q * r * exp(t), q)

    return Law("logistic noise", between(t, inside), t)


def bounded_range(t: Number) -> Law:
    """Return the exponential mechanism: the events of probability p rise to pe^t/(1 + p(e^t − 1)).

    The best one for l has 1 + p(e^t − 1) = e^{(t−l)/2} = r: H = (r − 1)²/(e^t − 1) · e^l.
    """

    def inside(loss: Number) -> Answer:
        root = exp((t - loss) / 2)
        q = (root - 1) / (exp(t) - 1)
        return from_tails(loss, q * exp(t) / root, q)

    law = Law("the exponential mechanism", between(t, inside), t, rho=t * t / 8)
    return replace(law, only_alone=True)


def truncated_laplace(t: Number, a: Number) -> Law:
    """Return Laplace laws of scale 1 on [−a, a], at distance t ≤ a, P the left one.

    Left of t − a there is only P; then the ratio is e^t up to 0, e^{t−2x} up to t, and e^{−t}.
    """

    def below(x: Number) -> Number:
        size = maximum([x, -x])
        share = (exp(-size) - exp(-a)) / (2 * (1 - exp(-a)))
        return share if told(x, "<=", ZERO) else 1 - share

    def answer(loss: Number) -> Answer:
        if told(loss, ">=", t):
            return below(t - a), ZERO
        if told(loss, "<", -t):
            return from_tails(loss, ONE, 1 - below(t - a))
        x = (t - loss) / 2
        return from_tails(loss, below(x), below(x - t))

    return Law("truncated Laplace noise", answer, infinite=below(t - a))


def clones(t: Number, others: int) -> Law:
    """Return a law above one of so many other reports that are t-private, in random order.

    E = e^t, q = E/(E + 1), P and Q the report's laws of two records: P = qA + (1 − q)B and
    Q = (1 − q)A + qB with two laws A, B whose sum is P + Q. A report of any record is at least P/E
    and Q/E, so at least (A + B)/(2E): each is of A or B, by a fair coin, with probability 1/E,
    independently of its record. Tell the others. Of the C coins and the one report of A or B only
    the number of A counts: a has the chances q f(a − 1) + (1 − q) f(a) and, for Q, 1 − q and q,
    where f is of C coins; the ratio rises, and is e^l at (C + 1)(e^l E − 1)/((E − 1)(e^l + 1)).
    One coin more tells no more, so a C between two numbers tells no more than the lesser one.
    """
    odds = ball(exp(t))
    share = 1 / odds
    middle, width = float(others * share.mid()), 1 + int(math.sqrt(others) / 4)
    spread = 13 * int(math.sqrt(middle)) + 20
    starts = range(max(1, int(middle) - spread), min(others, int(middle) + spread) + 1, width)

    def tail(trials: int, least: int, chance: arb) -> arb:
        if not 0 < least <= trials:
            return arb(least <= 0)
        return chance.beta_lower(arb(least), arb(trials - least + 1), regularized=True)

    def inside(loss: Number) -> Answer:
        factor = ball(exp(loss))
        place = (factor * odds - 1) / ((odds - 1) * (factor + 1))
        height, slope, some = arb(0), arb(0), arb(1)
        for c, after in pairwise([0, *starts, others + 1]):
            fewer, some = some, tail(others, after, share)
            cut, found = (c + 1) * place, []
            low, high = whole(cut.lower()), whole(cut.upper())
            if high - low > 1:
                raise TooFewDigits("too many numbers of reports are too close to call")
            for end in (low, high):  # at a tie both are as good
                first, second = tail(c, end, arb(0.5)), tail(c, end + 1, arb(0.5))
                p, q = (odds * first + second) / (odds + 1), (first + odds * second) / (odds + 1)
                found.append((p - factor * q, q))
            height += (fewer - some) * found[0][0].union(found[-1][0])
            slope += (fewer - some) * found[0][1].union(found[-1][1])
        return height, slope

    def quickly(loss: Number) -> Answer:
        with precision(min(ctx.prec, 128)):
            return inside(loss)

    return Law("shuffled reports", between(t, quickly), t)


def happening(p: Number, q: Number) -> Law:
    """Return what one event says that has at least the probability p under P, at most q under Q."""
    law = Law("an event", lambda loss: (maximum([p - exp(loss) * q, ZERO]), ZERO))
    return replace(law, is_pair=False)


def reaching(largest: Number) -> Law:
    """Return a law of which only the supremum of the loss is known."""

    def answer(_: Number) -> Answer:
        raise NotProved("the curve of a mechanism of which the largest loss is known")

    return Law("a largest loss", answer, largest, is_pair=False)


def event(p: Number, q: Number) -> Law:
    """Return whether one event happens, which has the probabilities p and q."""
    return table([(p, q), (1 - p, 1 - q)])


def level(law: Law, loss: Number) -> Law:
    """Return whether the loss is above a number: P = H(l) + e^l Q."""
    height, q = law.at(loss)
    return event(height + exp(loss) * q, q)


def joint(way: Sequence[tuple[Law, int]]) -> Law | None:
    """Return the table of independent tables, each a number of times; None where it is too long."""
    found: list[Answer] = [(ONE, ONE)]
    for law, count in way:
        if count > MOST_OUTCOMES:
            return None
        for _ in range(count):
            found = [(p * a, q * b) for p, q in found for a, b in law.atoms]
            if not 0 < len(found) <= MOST_OUTCOMES:
                return None
    return table(found)


# --- tables -------------------------------------------------------------------------------------
def table(atoms: Sequence[Answer]) -> Law:
    """Return the law of outcomes with masses (p, q): H = Σ (p − e^l q)⁺."""
    rows = [(p, q) for p, q in atoms if not (compare(p, "==", 0) and compare(q, "==", 0))]
    losses: list[Number] = [
        INFINITE if compare(q, "==", 0) else log(p / q) for p, q in rows if not compare(p, "==", 0)
    ]

    def answer(loss: Number) -> Answer:
        factor = exp(loss)
        height: Number = ZERO
        slope: Number = ZERO
        for p, q in rows:
            gain = p - factor * q
            side = compare(gain, ">", ZERO)
            if side:
                height, slope = height + gain, slope + q
            elif side is None:
                height += maximum([gain, ZERO])
                slope += ball(q).union(arb(0))
        return height, slope

    def divergence(a: Number) -> Number:
        parts = [(ball(p), ball(q)) for p, q in rows if not compare(p, "==", 0)]
        if any(compare(q, "==", 0) for _, q in parts):
            return INFINITE
        return sum((p ** ball(a) * q ** ball(1 - a) for p, q in parts), arb(0)).log() / (a - 1)

    texts = [(exactly(p), exactly(q)) for p, q in rows]
    same = sorted(texts) == sorted((q, p) for p, q in texts)
    largest = maximum(losses) if losses else ZERO
    only = sum((p for p, q in rows if compare(q, "==", 0)), ZERO)
    return Law("a table", answer, largest, same, atoms=rows, divergence=divergence, infinite=only)


def response(a: Number, r: Number, b: Number) -> Law:
    """Return the masses (a, r, b) against (b, r, a), over their sum."""
    whole_sum = a + r + b
    first, none, last = a / whole_sum, r / whole_sum, b / whole_sum
    return replace(table([(first, last), (none, none), (last, first)]), symmetric=True)


def guaranteed(epsilon: Number, delta: Number) -> Law:
    """Return the pair that dominates whatever is (ε, δ)-private."""
    odds, rest = exp(epsilon), 1 - delta
    a, b = rest * odds / (1 + odds), rest / (1 + odds)
    law = table([(delta, ZERO), (a, b), (b, a), (ZERO, delta)])

    def answer(loss: Number) -> Answer:
        return (delta, ZERO) if compare(loss, ">=", epsilon) else law.answer(loss)

    largest = epsilon if compare(delta, "==", 0) else INFINITE
    return replace(law, symmetric=True, largest=largest, answer=answer, grid=epsilon)


# --- integer noise whose loss does not fall -----------------------------------------------------
def discrete_laplace(scale: Number, shift: int) -> Law:
    """Return masses ~ e^{−|z|/b} at distance s: the loss of 0 ≤ z ≤ s is (2z − s)/b, then ±s/b."""
    decay, t = exp(-1 / scale), shift / scale

    def above(k: int) -> Number:
        return decay**k / (1 + decay) if k > 0 else 1 - decay ** (1 - k) / (1 + decay)

    def inside(loss: Number) -> Answer:
        k = whole(loss * scale / 2 + fmpq(shift, 2)) + 1
        return from_tails(loss, above(k - shift), above(k))

    name = "discrete Laplace noise"
    return Law(name, between(t, inside), t, last=above(shift), grid=1 / scale)


def _symmetric_above(masses: list[arb], rest: arb) -> Callable[[int], arb]:
    """Return the chance of a noise ≥ k from the masses of 0, 1, …, and a ball of all further ones.

    They are divided by their sum, which is that of the masses of all integers.
    """
    sums = [*accumulate(reversed(masses), initial=rest)][::-1]
    whole_sum = sums[0] + sums[1]

    def above(k: int) -> arb:
        if k <= 0:
            return 1 - above(1 - k)
        return sums[k] / whole_sum if k < len(sums) else arb(0).union(rest / whole_sum)

    return above


def discrete_gaussian(v: Number, shift: int) -> Law:
    """Return masses ~ e^{−z²/(2v)} at distance s: L(z) = (2z − s)s/(2v).

    They are divided by their sum; those beyond the last one are at most a geometric series.
    """
    size = (2 * ball(v) * (ctx.prec + 30)).sqrt()
    if not size < MOST_MASSES:
        raise NotProved("discrete Gaussian noise of so large a parameter takes too long")
    last = whole(size) + 2
    masses = [(-ball(fmpq(z * z)) / (2 * ball(v))).exp() for z in range(last + 2)]
    rest = arb(0).union(masses.pop() / (1 - (-(2 * last + 3) / (2 * ball(v))).exp()))
    above = _symmetric_above(masses, rest)

    def answer(loss: Number) -> Answer:
        k = whole(loss * v / shift + fmpq(shift, 2)) + 1
        return from_tails(loss, above(k - shift), above(k))

    def divergence(a: Number) -> Number:
        if isinstance(a, fmpq) and (a * shift).q == 1:
            return a * shift * shift / (2 * v)
        raise NotProved("a divergence of discrete Gaussian noise whose order is no whole number")

    name, rho, grid = "discrete Gaussian noise", fmpq(shift * shift) / (2 * v), shift / (2 * v)
    return Law(name, answer, divergence=divergence, rho=rho, grid=grid)


def skellam(v: Number, shift: int) -> Law:
    """Return masses e^{−v} I_k(v), the difference of Poisson numbers of mean v/2, at distance s.

    I_{k−1} = I_{k+1} + (2k/v)I_k makes them from the last two; the ratios of further ones fall. A
    tail from N on is at most e^{−N²/(2v + 2N/3)} (Bernstein). They are log-concave.
    """
    wanted = arb(2 * ctx.prec + 40)
    size = wanted / 3 + (wanted * wanted / 9 + 2 * wanted * ball(v)).sqrt()
    if not size < MOST_MASSES:
        raise NotProved("Skellam noise of so large a variance takes too long")
    last = whole(size) + 2
    found = [ball(v).bessel_i(arb(last + k), scaled=True) for k in (1, 0)]
    ratio = found[0] / found[1]
    for k in range(last, 0, -1):
        found.append(found[-2] + 2 * k / ball(v) * found[-1])
    masses = found[:0:-1]
    above = _symmetric_above(masses, arb(0).union(masses[-1] * ratio / (1 - ratio)))

    def answer(loss: Number) -> Answer:
        factor, low, high = exp(loss), shift - last, last  # low has a smaller loss, high a larger
        while high - low > 1:
            middle = (low + high) // 2
            larger = told(masses[abs(middle - shift)], ">", factor * masses[abs(middle)])
            low, high = (low, middle) if larger else (middle, high)
        if low == shift - last or high == last:
            raise TooFewDigits("a loss of Skellam noise so far out")
        return from_tails(loss, above(high - shift), above(high))

    return Law("Skellam noise", answer)


# --- other laws on a line -----------------------------------------------------------------------
def gaussian_mixture(p: Sequence[Answer], q: Sequence[Answer]) -> Law:
    """Return Σ w N(m, 1) for the (w, m) of p, all m ≥ 0, against those of q, all m ≤ 0.

    The loss rises with the outcome x; where it is l lies between two numbers that are compared.
    """

    def density(side: Sequence[Answer], x: arb) -> arb:
        return sum((w * (ball(m) * (x - ball(m) / 2)).exp() for w, m in side), arb(0))

    plain_p, plain_q = (sum((w for w, m in s if compare(m, "==", 0)), ZERO) for s in (p, q))
    only_p, only_q = (all(compare(m, "==", 0) for _, m in side) for side in (p, q))

    def answer(loss: Number) -> Answer:
        factor = exp(loss)
        if only_q and told(plain_p, ">=", factor):
            return nothing(loss)  # the least ratio, far to the left
        if only_p and told(plain_q * factor, ">=", ONE):
            return ZERO, ZERO  # the largest one, far to the right

        def rises(x: arb) -> bool | None:
            return compare(density(p, x) - factor * density(q, x), ">", ZERO)

        low, high = arb(-1), arb(1)
        while not (rises(low) is False and rises(high) is True):
            low, high = (
                low if rises(low) is False else 2 * low,
                high if rises(high) is True else 2 * high,
            )
            if max(high, -low) > 1 << 20:
                raise TooFewDigits("a loss of a mixture so far out")
        for _ in range(2 * ctx.prec):
            for share in (0.5, 0.4375):  # an exact root in the middle cannot be told from it
                middle = (low + (high - low) * share).mid()
                side = rises(middle)
                if side is not None:
                    break
            else:
                break
            low, high = (low, middle) if side else (middle, high)
        place = low.union(high)
        tails = (sum((w * normal_above(place - m) for w, m in side), ZERO) for side in (p, q))
        return from_tails(loss, *tails)

    largest = -log(plain_q) if only_p and told(plain_q, ">", ZERO) else INFINITE
    return Law("a mixture of Gaussian laws", answer, largest, symmetric=False)


# --- one law from another -----------------------------------------------------------------------
def tested(law: Law, a: Number, b: Number) -> Law:
    """Return a release of a pair with probability a under P, b under Q; else nothing is said."""

    def answer(loss: Number) -> Answer:
        height, slope = law.at(loss - log(a / b))
        fails = 1 - a - exp(loss) * (1 - b)
        side = compare(fails, ">", ZERO)
        more = 1 - b if side else ZERO if side is False else ball(1 - b).union(arb(0))
        return a * height + maximum([fails, ZERO]), b * slope + more

    largest = maximum([law.largest + log(a / b), log((1 - a) / (1 - b))])
    return Law(f"{law.name} after a test", answer, largest, symmetric=False)


def _of(law: Law, how: str, answer: Callable[[Number], Answer], largest: Number) -> Law:
    alone, pair = law.only_alone, law.is_pair
    name = f"{law.name}, {how}"
    return Law(name, answer, largest, symmetric=False, only_alone=alone, is_pair=pair)


def swapped(law: Law) -> Law:
    """Return the law of (Q, P)."""
    if law.symmetric:
        return law
    if law.atoms:
        return table([(q, p) for p, q in law.atoms])

    def answer(loss: Number) -> Answer:
        factor = exp(loss)
        height, slope = law.at(-loss)
        return 1 - factor + factor * height, 1 - height - slope / factor

    return _of(law, "reversed", answer, INFINITE)


def sampled(law: Law, rate: Number) -> Law:
    """Return ((1 − q)Q + qP, Q)."""
    if law.atoms:
        return table([((1 - rate) * q + rate * p, q) for p, q in law.atoms])

    def answer(loss: Number) -> Answer:
        inner = exp(loss) - 1 + rate
        if not told(inner, ">", ZERO):
            return nothing(loss)
        height, slope = law.at(_log(inner / rate, loss))
        return rate * height, slope

    largest = log(1 - rate + rate * exp(law.largest)) if _finite(law.largest) else INFINITE
    return _of(law, "sampled", answer, largest)


def diluted(law: Law, rate: Number) -> Law:
    """Return (P, (1 − q)P + qQ)."""
    if law.atoms:
        return table([(p, (1 - rate) * p + rate * q) for p, q in law.atoms])

    def answer(loss: Number) -> Answer:
        factor = exp(loss)
        rest = 1 - (1 - rate) * factor
        if not told(rest, ">", ZERO):
            return ZERO, ZERO
        inner = _log(rate * factor / rest, loss)
        height, slope = law.at(inner)
        above = height + exp(inner) * slope
        return rest * height, (1 - rate) * above + rate * slope

    if _finite(law.largest):
        largest = -log(1 - rate + rate * exp(-law.largest))
    else:
        largest = INFINITE if told(rate, "==", ONE) else -log(1 - rate)
    return _of(law, "sampled in reverse", answer, largest)


def _log(x: Number, loss: Number) -> Number:
    """Return ln x, which is 0 exactly at the loss 0."""
    return ZERO if isinstance(loss, fmpq) and not loss else log(x)


def _finite(x: Number) -> bool:
    return isinstance(x, fmpq) or x.is_finite()
