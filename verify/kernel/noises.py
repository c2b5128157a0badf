"""Laws of the privacy loss of less common noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from flint import arb, ctx, fmpq

from .laws import (
    INFINITE,
    MOST_MASSES,
    ONE,
    ZERO,
    Answer,
    Law,
    below_all,
    between,
    from_tails,
    gaussian,
    normal_above,
    resolve,
)
from .numbers import (
    NotProved,
    Number,
    TooFewDigits,
    ball,
    compare,
    exp,
    log,
    maximum,
    precision,
    whole,
)


def several(mu: Number, count: Number) -> Law:
    """Return min(1, count·H) with H of N(μ, 1) against N(0, 1): an upper bound only."""
    law = gaussian(mu)

    def answer(loss: Number) -> Answer:
        height, slope = law.at(loss)
        return -maximum([-count * height, -ONE]), count * slope

    return Law("a number of Gaussian bounds", answer)


def logistic(t: Number) -> Law:
    """Return logistic laws of scale 1 at distance t.

    With y = e^{−x} the likelihood ratio is e^t((1 + y)/(1 + e^t y))², decreasing in y, and {y < c}
    has probability c/(1 + c) under Q and e^t c/(1 + e^t c) under P. L > l is equivalent to
    y < (1 − r)/(e^t r − 1) with r = e^{(l−t)/2}.
    """

    def inside(loss: Number) -> Answer:
        r = exp((loss - t) / 2)
        q = (1 - r) / (r * (exp(t) - 1))
        return from_tails(loss, q * r * exp(t), q)

    return Law("logistic noise", between(t, inside), t)


def bounded_range(t: Number) -> Law:
    """Return the exponential mechanism: an event of probability p rises to pe^t/(1 + p(e^t − 1)).

    The best event for l has 1 + p(e^t − 1) = r = e^{(t−l)/2}, so H(l) = e^l (r − 1)²/(e^t − 1).
    """

    def inside(loss: Number) -> Answer:
        root = exp((t - loss) / 2)
        q = (root - 1) / (exp(t) - 1)
        return from_tails(loss, q * exp(t) / root, q)

    law = Law("the exponential mechanism", between(t, inside), t, rho=t * t / 8)
    return replace(law, only_alone=True)


def truncated_laplace(t: Number, a: Number) -> Law:
    """Return Laplace laws of scale 1 truncated to [−a, a], at distance t ≤ a; P is the left one.

    The likelihood ratio is ∞ for x < t − a, then e^t for x < 0, e^{t−2x} for x < t, then e^{−t}.
    """

    def below(x: Number) -> Number:
        size = maximum([x, -x])
        share = (exp(-size) - exp(-a)) / (2 * (1 - exp(-a)))
        return share if resolve(x, "<=", ZERO) else 1 - share

    def answer(loss: Number) -> Answer:
        if resolve(loss, ">=", t):
            return below(t - a), ZERO
        if resolve(loss, "<", -t):
            return from_tails(loss, ONE, 1 - below(t - a))
        x = (t - loss) / 2
        return from_tails(loss, below(x), below(x - t))

    return Law("truncated Laplace noise", answer, infinite=below(t - a))


def clones(t: Number, others: int) -> Law:
    """Return a law above a t-private report that is shuffled with `others` more of them.

    Let E = e^t, q = E/(E + 1), and P, Q the laws of the report for two records. There are laws A, B
    with A + B = P + Q, P = qA + (1 − q)B and Q = (1 − q)A + qB. The law of every other report is at
    least P/E and at least Q/E, so at least (A + B)/(2E). So each other report is, independently and
    with probability 1/E, a draw from A or B by a fair coin. Reveal the reports that are not. Of the
    C ~ Bin(others, 1/E) coins and the report itself only the number a of draws from A matters: its
    probability is q f(a − 1) + (1 − q) f(a) under P and (1 − q) f(a − 1) + q f(a) under Q, with f
    the law of Bin(C, 1/2). The ratio increases in a and equals e^l at
    a = (C + 1)(e^l E − 1)/((E − 1)(e^l + 1)). More coins reveal no more, so values of C in an
    interval may be replaced with the least one.
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
                raise TooFewDigits("a ball holds several numbers of reports")
            for end in (low, high):  # at a tie either gives the same H
                first, second = tail(c, end, arb(0.5)), tail(c, end + 1, arb(0.5))
                p, q = (odds * first + second) / (odds + 1), (first + odds * second) / (odds + 1)
                found.append((p - factor * q, q))
            height += (fewer - some) * found[0][0].union(found[-1][0])
            slope += (fewer - some) * found[0][1].union(found[-1][1])
        return height, slope

    def quickly(loss: Number) -> Answer:
        with precision(min(ctx.prec, 128)):
            return inside(loss)

    return Law("shuffled reports", between(t, quickly), t, slow=True)


def happening(p: Number, q: Number) -> Law:
    """Return a lower bound of H from an event with P(E) ≥ p and Q(E) ≤ q."""
    law = Law("an event", lambda loss: (maximum([p - exp(loss) * q, ZERO]), ZERO))
    return replace(law, is_pair=False)


def discrete_laplace(scale: Number, shift: int) -> Law:
    """Return masses ~ e^{−|z|/b} at distance s: L(z) = (2z − s)/b, clipped to [−s/b, s/b]."""
    decay, t = exp(-1 / scale), shift / scale

    def above(k: int) -> Number:
        return decay**k / (1 + decay) if k > 0 else 1 - decay ** (1 - k) / (1 + decay)

    def inside(loss: Number) -> Answer:
        k = whole(loss * scale / 2 + fmpq(shift, 2)) + 1
        return from_tails(loss, above(k - shift), above(k))

    name = "discrete Laplace noise"
    return Law(name, between(t, inside), t, last=above(shift), grid=1 / scale)


def _symmetric_above(masses: list[arb], rest: arb) -> Callable[[int], arb]:
    """Return k → P(Z ≥ k) of symmetric integer noise.

    `masses` are weights of 0, 1, …, up to a constant factor; `rest` contains the sum of all further
    ones.
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

    The tail beyond the last weight is bounded by a geometric series.
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
        raise NotProved("a divergence of discrete Gaussian noise of fractional order")

    name, rho, grid = "discrete Gaussian noise", fmpq(shift * shift) / (2 * v), shift / (2 * v)
    return Law(name, answer, divergence=divergence, rho=rho, grid=grid)


def skellam(v: Number, shift: int) -> Law:
    """Return masses e^{−v} I_k(v), a difference of Poisson(v/2) variables, at distance s.

    The masses are log-concave, and computed downwards by I_{k−1} = I_{k+1} + (2k/v)I_k. Ratios of
    successive masses decrease, which bounds the tail. P(Z ≥ N) ≤ e^{−N²/(2v + 2N/3)} (Bernstein)
    gives the number of masses.
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
        factor, low, high = exp(loss), shift - last, last  # loss at low ≤ l < loss at high
        while high - low > 1:
            middle = (low + high) // 2
            larger = resolve(masses[abs(middle - shift)], ">", factor * masses[abs(middle)])
            low, high = (low, middle) if larger else (middle, high)
        if low == shift - last or high == last:
            raise TooFewDigits("a loss of Skellam noise is too far out")
        return from_tails(loss, above(high - shift), above(high))

    return Law("Skellam noise", answer)


def gaussian_mixture(p: Sequence[Answer], q: Sequence[Answer]) -> Law:
    """Return Σ w N(m, 1) over the (w, m) of p, all m ≥ 0, against that of q, all m ≤ 0.

    The loss increases with the outcome; bisection brackets the outcome at which it is l.
    """

    def density(side: Sequence[Answer], x: arb) -> arb:
        return sum((w * (ball(m) * (x - ball(m) / 2)).exp() for w, m in side), arb(0))

    plain_p, plain_q = (sum((w for w, m in s if compare(m, "==", 0)), ZERO) for s in (p, q))
    only_p, only_q = (all(compare(m, "==", 0) for _, m in side) for side in (p, q))

    def answer(loss: Number) -> Answer:
        factor = exp(loss)
        if only_q and resolve(plain_p, ">=", factor):
            return below_all(loss)  # e^l is at most the infimum of the ratio
        if only_p and resolve(plain_q * factor, ">=", ONE):
            return ZERO, ZERO  # e^l is at least the supremum of the ratio

        def rises(x: arb) -> bool | None:
            return compare(density(p, x) - factor * density(q, x), ">", ZERO)

        low, high = arb(-1), arb(1)
        while not (rises(low) is False and rises(high) is True):
            low, high = (
                low if rises(low) is False else 2 * low,
                high if rises(high) is True else 2 * high,
            )
            if max(high, -low) > 1 << 20:
                raise TooFewDigits("a loss of a mixture is too far out")
        for _ in range(2 * ctx.prec):
            for share in (0.5, 0.4375):  # the middle may be the exact root
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

    largest = -log(plain_q) if only_p and resolve(plain_q, ">", ZERO) else INFINITE
    return Law("a mixture of Gaussian laws", answer, largest, symmetric=False)
