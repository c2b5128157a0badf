"""Many samples of a release with little noise: a sum over how many of them have the record.

Let P = (1 − q)B + qA against Q = B, composed T times, and l = ln(dA/dB). A step has the record with
probability q: call it drawn. Its loss is ln(1 − q + q e^l), which is at least

    ln q + l of a drawn step (x ~ A),    ln(1 − q) of any other (x ~ B),

by the small rests w = ln(1 + e^{−l}(1 − q)/q), and w = ln(1 + e^l q/(1 − q)). With k ~ Bin(T, q)
drawn steps, ε_k = ε − k ln q − (T − k) ln(1 − q), and H_k the profile of k releases A^k against
B^k,

    S(ε) = Σ_k P(k) H_k(ε_k)

is E[(1 − e^{ε − X})⁺] for the sum X of these least losses, while H(ε) = E[(1 − e^{ε − X − W})⁺],
W the sum of the rests. So S(ε) ≤ H(ε): the lower end. As 0 ≤ (1 − y e^{−W})⁺ − (1 − y)⁺ ≤
1 − e^{−W} ≤ Σ (1 − e^{−w_j}), and it is 0 where the loss is at most ε,

    H(ε) ≤ S(ε) + Σ_j E[1 − e^{−w_j}; L > ε].

E[1 − e^{−w_j}] = 2 ∫ qA (1 − q)B/(qA + (1 − q)B) ≤ e := 2 ((1 − q) B(l > c) + q A(l ≤ c)) for any
c: the overlap of both laws, of the order of e^{−1/(8σ²)} for Gaussian noise and e^{−1/(2b)} for
Laplace noise. Where l ≤ m for a number m, L > ε takes L − L_j > ε − M, M = ln(1 − q + q e^m), which
is independent of step j; and l > m adds E[1 − e^{−w_j}; l > m] ≤ 2(1 − q) B(l > m). One step more
adds ln(1 − q) to a loss at least, and P(L > x) ≤ H(x − 1)/(1 − 1/e). So the upper end is

    H(ε) ≤ S(ε) + Te min(1, (S(x − 1) + Te)/(1 − 1/e)) + 2T(1 − q) B(l > m),

with x = ε − M + ln(1 − q).

*The other direction.* B against (1 − q)B + qA has the loss −ln(1 − q) − w in each step, x ~ B, so
that H(ε) is at most (1 − e^{ε + T ln(1 − q)})⁺, and at least that less T E_B[1 − e^{−w}] ≤
T (B(l > c) + A(l ≤ c) q/(1 − q)), by the same inequality.

Releases R that are composed with these, and not sampled, are in X: for H_k(ε_k) put the profile of
A^k R, and that of R alone at ε + T ln(1 − q) in the other direction.

*Few terms.* P(j) ≤ P(k) ρ^{j − k} for j ≥ k, ρ the ratio of P(k + 1) and P(k). A step that is
drawn exceeds ln(1 − q) with probability p = A(l ≥ ln((1 − q)/q)), so that H_j(ε_j) ≤
H_k(ε_k) p^{−T} for j ≤ k.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from flint import arb

from dpassay.accountant.composition.product import Engine, Factor, Product
from dpassay.accountant.core.pair import Pair, refined
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball, within
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.gaussian import GaussianPair, gaussian_tails
from dpassay.accountant.pairs.invert import ends, hockey_stick_at
from dpassay.accountant.pairs.subsampled import SubsampledPair

MOST_OVERLAP, MOST_OF_GAUSSIAN = 5e-3, 1e-4
"""T times the overlap from which on the sum is left to other engines, which is about its width; of
Gaussian noise contours give more digits before."""
MOST_TERMS = 20_000
"""Most terms of the sum, each of which takes some 50 microseconds for Gaussian noise."""
_CHOOSING = 128
"""Bits of what only chooses, or is far smaller than a value."""
_FINER = 16
"""Values are asked for so many times finer than a root."""
_SHARE = 8
"""Each end of the sum may leave out this share of the width that is asked for."""

Parts: TypeAlias = tuple[SubsampledPair, int, tuple[Factor, ...]]


def applies(factors: Sequence[Factor]) -> bool:
    """Whether all sampled releases are alike, and their two laws hardly overlap."""
    sampled = [(pair, count) for pair, count in factors if isinstance(pair, SubsampledPair)]
    if len(sampled) != 1 or sampled[0][1] < 2:
        return False
    pair, count = sampled[0]
    rest = [each for each, _ in factors if each is not pair]
    if any(not isinstance(each, type(pair.inner)) for each in rest):
        return False
    with ctx.workprec(_CHOOSING):
        try:
            most = MOST_OF_GAUSSIAN if isinstance(pair.inner, GaussianPair) else MOST_OVERLAP
            return bool(count * _overlap(pair) < most)
        except (NotApplicableError, UndecidedError):
            return False


@final
@dataclass(frozen=True)
class Draws(Engine):
    """Sums over the number of steps that have the record (`applies`)."""

    compose: Callable[[tuple[Factor, ...]], Pair]
    """Returns what k releases without sampling come to, with the others."""
    numerical = True

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return a ball around both ends; UndecidedError where it is wider than asked for."""
        asked = product.relative_width
        low, high = _both(product, epsilon)
        found = low.union(high)
        if asked is not None and not found.rad() * 2 <= found.lower() * ball(asked):
            known = Interval.of_ball(found)
            raise _too_wide("delta", known, asked)
        return found

    def inverse(self, product: Product, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ) by the roots of both ends."""
        fine = product.to_width(relative_width / _FINER)

        def excess(end: int) -> solve.Function:
            def value(at: ExactReal) -> arb:
                found = _both(fine, at)[end]
                nothing = not found > 0 and found < delta.ball()  # it may be 0: the sign is known
                return arb.neg_inf() if nothing else (found / delta.ball()).log()

            return value

        with within():
            between = solve.bracket(excess(0), Fraction(1))
        half = relative_width / 4
        least = solve.root(excess(0), between, relative_width=half)
        middle = (Fraction(least.lower) + Fraction(least.upper)) / 2
        most = solve.beside(excess(1), middle, relative_width=half)
        if most is None:
            with within():
                between = solve.bracket(excess(1), Fraction(1))
            most = solve.root(excess(1), between, relative_width=half)
        found = Interval(min(least.lower, most.upper), most.upper)
        if found.relative_width is None or found.relative_width > relative_width:
            raise _too_wide("epsilon", found, relative_width)
        return found

    def bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return the upper end."""
        try:
            return self.profile(product.to_width(None), epsilon).upper().min(arb(1))
        except UndecidedError:
            return arb(1)


def _too_wide(name: str, found: Interval, asked: Fraction) -> UndecidedError:
    reached = found.relative_width
    return UndecidedError(
        f"Reached {name} in [{found.lower:.8g}, {found.upper:.8g}] by the number of sampled steps. "
        "Ask for a larger relative_width.",
        reached=math.inf if reached is None else max(float(reached), float(asked)),
        interval=found,
    )


def _both(product: Product, epsilon: ExactReal) -> tuple[arb, arb]:
    """Return a ball around the lower end, and one around the upper end."""
    pair, count, rest = _parts(product)
    overlap = count * _overlap(pair)
    if pair.mixed_first:
        low = _sum(product, epsilon.ball())
        slight = _slight(overlap, low, product.relative_width)
        high = low + (overlap if slight else _excess(product, epsilon))
    else:
        shifted = epsilon.ball() + count * (1 - pair.sampling_prob.ball()).log()
        high = _unsampled(rest, shifted, product.relative_width, _compose(product))
        low = high - overlap
    sure = (-epsilon.ball().expm1()).max(arb(0))
    return low.max(sure).min(arb(1)), high.max(sure).min(arb(1))


def _compose(product: Product) -> Callable[[tuple[Factor, ...]], Pair]:
    engine = product.engine
    assert isinstance(engine, Draws)
    return engine.compose


def _parts(product: Product) -> Parts:
    """Return the sampled release, how often it is composed, and what is not sampled."""
    (found,) = (each for each in product.factors if isinstance(each[0], SubsampledPair))
    pair, count = found
    assert isinstance(pair, SubsampledPair)
    return pair, count, tuple(each for each in product.factors if each is not found)


@functools.lru_cache(maxsize=64)
def _overlap(pair: SubsampledPair) -> arb:
    """Return e; for the other direction the bound of E_B[1 − e^{−w}]."""
    q = pair.sampling_prob.ball()
    with ctx.workprec(_CHOOSING):
        middle = ((1 - q) / q).log()
        at = ends(middle if pair.mixed_first else -middle)[0]
        tails = pair.inner.tails(at)
        if pair.mixed_first:
            return (2 * ((1 - q) * tails.q_above + q * tails.p_below)).upper()
        return (tails.p_below + q / (1 - q) * tails.q_above).upper()


def _slight(error: arb, value: arb, asked: Fraction | None) -> bool:
    """Whether an error does not show in the width that is asked for."""
    share = arb(2) ** -ctx.prec if asked is None else ball(asked) / _SHARE
    return bool(error < share * value)


def _excess(product: Product, epsilon: ExactReal) -> arb:
    """Return what H exceeds S by at most."""
    pair, count, _ = _parts(product)
    overlap = count * _overlap(pair)
    known = _furthest(pair)
    if known is None:
        return overlap
    m, beyond = known
    q = pair.sampling_prob.ball()
    x = epsilon.ball() - (q * m.expm1()).log1p() + (1 - q).log()
    above = _sum(product, (x - 1).lower()) + overlap
    share = (above / (1 - (-arb(1)).exp())).min(arb(1))
    return (overlap * share + 2 * count * (1 - q) * beyond).upper()


@functools.lru_cache(maxsize=64)
def _furthest(pair: SubsampledPair) -> tuple[arb, arb] | None:
    """Return m and B(l > m), None where no m is known that serves."""
    with ctx.workprec(_CHOOSING):
        m = pair.inner.max_loss()
        if m.is_finite():
            return m.upper(), arb(0)
        try:
            at = ends(pair.inner.renyi(arb(1)))[1]
            return at.ball(), pair.inner.tails(at).q_above.upper()
        except (NotApplicableError, UndecidedError):
            return None


def _sum(product: Product, epsilon: arb) -> arb:
    """Return a ball around S(ε), for every ε in a ball."""
    pair, count, rest = _parts(product)
    q, asked = pair.sampling_prob.ball(), product.relative_width
    share = arb(2) ** -ctx.prec if asked is None else ball(asked) / _SHARE
    log_q, log_rest = q.log(), (1 - q).log()
    mode = min(math.floor(pair.sampling_prob * ExactReal.of_rational(count + 1)), count)
    odds = q / (1 - q)

    compose = _compose(product)

    def value(k: int) -> arb:
        at = epsilon - k * log_q - (count - k) * log_rest
        return _value(pair.inner, k, rest, at, asked, compose=compose)

    first = _mass(count, mode, log_q, log_rest)
    total, mass, k = first * value(mode), first, mode
    last = total
    while k < count:
        ratio = odds * (count - k) / (k + 1)
        beyond = mass * ratio / (1 - ratio) if ratio < 1 else arb(1)
        if beyond < share * total.lower():
            total += arb(0).union(beyond.upper())
            break
        mass, k = mass * ratio, k + 1
        total += mass * value(k)
        if k - mode > MOST_TERMS:
            raise UndecidedError(
                f"The sum over the number of sampled steps has more than {MOST_TERMS} terms."
            )
    mass, k = first, mode
    grown = _grown(pair, count)
    while k > 0:
        rest_below = k * mass * (last / mass) * grown if k <= mode else arb(1)
        if rest_below < share * total.lower():
            total += arb(0).union(rest_below.upper())
            break
        mass, k = mass * k / ((count - k + 1) * odds), k - 1
        last = mass * value(k)
        total += last
        if mode - k > MOST_TERMS:
            raise UndecidedError(
                f"The sum over the number of sampled steps has more than {MOST_TERMS} terms."
            )
    return total


def _mass(count: int, k: int, log_q: arb, log_rest: arb) -> arb:
    """Return the probability of k of T steps."""
    choices = arb(count + 1).lgamma() - arb(k + 1).lgamma() - arb(count - k + 1).lgamma()
    return (choices + k * log_q + (count - k) * log_rest).exp()


@functools.lru_cache(maxsize=64)
def _grown(pair: SubsampledPair, count: int) -> arb:
    """Return p^{−T}."""
    q = pair.sampling_prob.ball()
    with ctx.workprec(_CHOOSING):
        at = ends(((1 - q) / q).log())[1]
        missed = pair.inner.tails(at).p_below
        return (-count * (-missed).log1p()).exp().upper() if missed < 1 else arb.pos_inf()


def _value(
    inner: Pair,
    k: int,
    rest: Sequence[Factor],
    epsilon: arb,
    asked: Fraction | None,
    *,
    compose: Callable[[tuple[Factor, ...]], Pair],
) -> arb:
    """Return the profile of k releases and the rest, for every ε in a ball."""
    if isinstance(inner, GaussianPair):
        square = k * inner.mu() ** 2
        for pair, count in rest:
            assert isinstance(pair, GaussianPair)
            square += count * pair.mu() ** 2
        if square.is_zero():
            return (-epsilon.expm1()).max(arb(0))
        return _gaussian(square.sqrt(), epsilon)
    return _unsampled(((inner, k), *rest) if k else rest, epsilon, asked, compose)


def _gaussian(mu: arb, epsilon: arb) -> arb:
    """Return Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), at both ends of a ball."""
    found = []
    for end in ends(epsilon):
        tails = gaussian_tails(mu, end)
        found.append(tails.p_above - end.ball().exp() * tails.q_above)
    return found[0].union(found[1]).max(arb(0))


def _unsampled(
    rest: Sequence[Factor],
    epsilon: arb,
    asked: Fraction | None,
    compose: Callable[[tuple[Factor, ...]], Pair],
) -> arb:
    """Return the profile of releases that are not sampled, of none at all that of no loss."""
    if not rest:
        return (-epsilon.expm1()).max(arb(0))
    if all(isinstance(pair, GaussianPair) for pair, _ in rest):
        square = sum((n * pair.mu() ** 2 for pair, n in rest if isinstance(pair, GaussianPair)),
                     start=arb(0))  # fmt: skip
        return _gaussian(square.sqrt(), epsilon)
    return hockey_stick_at(refined(compose(tuple(rest)), asked and asked / _SHARE), epsilon)
