"""Random allocation: a record takes part in one of t steps."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, final

from flint import acb, acb_mat, arb, arb_series

from dpassay.accountant.core.pair import (
    Known,
    Pair,
    ProfileOnly,
    Tails,
    WorstCase,
    only_bounded,
    rho_bound,
)
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import (
    COMPOSED_WIDTH,
    START_PRECISION,
    ball,
    within,
)
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.solve import rough_log_peak, shortened
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair, finite
from dpassay.accountant.pairs.gaussian import GaussianPair

"""Random allocation of steps whose losses have few values: the number of steps with each value.

A step has the outcome v with probability p_v with the record, q_v > 0 without it, r_v = p_v/q_v.
The numbers n_v of steps with each outcome tell all that the steps do. Under Q they are multinomial;
with k of t steps chosen uniformly P has against Q the density

    W = [y^k] Π_v (1 + r_v y)^{n_v} / C(t, k),

the mean of the products of the ratios of k steps.
"""

MOST_OUTCOMES = 1 << 12
"""Most numbers of steps that are listed: their profile takes a few ms."""
_MOST_TERMS = 1 << 20
"""Most coefficients of all power series: about a second."""


def allocated_values(pair: FinitePair, steps: int, participations: int) -> FinitePair | None:
    """Return the pair of an allocation; None where it is long, or a loss is infinite."""
    values = len(pair.source.outcomes(pair.index))
    if math.comb(steps + values - 1, values - 1) > MOST_OUTCOMES:
        return None
    if values * (steps + 1) * (participations + 1) > _MOST_TERMS:
        return None
    if any(mass.is_zero() for mass in pair.source.masses(pair.index)[not pair.flipped]):
        return None
    return FinitePair(AllocatedValues(pair, steps, participations), 0)


@final
@dataclass(frozen=True)
class AllocatedValues(FiniteLaws):
    """The numbers of steps with each outcome of a pair, with no q = 0."""

    pair: FinitePair
    steps: int
    participations: int

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the number of steps with the first of two outcomes, or those with each."""
        found = list(self._numbers())
        return [first for first, _ in found] if len(found[0]) == 2 else [*map(str, found)]

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return the probabilities of the numbers."""
        p, q = self.pair.source.masses(self.pair.index)[:: -1 if self.pair.flipped else 1]
        t, k = self.steps, self.participations
        with ctx.workcap(k + 1):
            factors = [
                [arb_series([1, a / b], prec=k + 1) ** arb_series([n], prec=k + 1)
                 for n in range(t + 1)]
                for a, b in zip(p, q, strict=True)
            ]  # fmt: skip
            ratios, without = [], []
            for numbers in self._numbers():
                series = [row[n] for row, n in zip(factors, numbers, strict=True)]
                ratios.append(functools.reduce(lambda x, y: x * y, series)[k] / math.comb(t, k))
                mass = arb(_ways(numbers))
                for b, n in zip(q, numbers, strict=True):
                    mass *= b**n
                without.append(mass)
        return [w * mass for w, mass in zip(ratios, without, strict=True)], without

    def _numbers(self) -> Iterator[tuple[int, ...]]:
        """Return all numbers of steps with each outcome, by bars between them."""
        bars = len(self.pair.source.outcomes(self.pair.index)) - 1
        end = self.steps + bars
        for places in itertools.combinations(range(end), bars):
            ends = (-1, *places, end)
            yield tuple(second - first - 1 for first, second in itertools.pairwise(ends))


def _ways(numbers: Sequence[int]) -> int:
    """Return the multinomial coefficient."""
    left, found = sum(numbers), 1
    for number in numbers:
        found *= math.comb(left, number)
        left -= number
    return found


def allocated(inner: WorstCase, steps: int, participations: int) -> Pair | None:
    """Return the pair of the allocation of a step; None where it is not known.

    Both directions of a step need one pair, whose losses are few and finite.
    """
    if len(inner.remove) != 1 or inner.enveloped or inner.add != (inner.remove[0].reverse(),):
        return None
    (pair,) = inner.remove
    masses = (pair.infinity_mass(), pair.reverse().infinity_mass())
    few = None if only_bounded(pair) or not all(m.is_zero() for m in masses) else finite(pair)
    return None if few is None else allocated_values(few, steps, participations)


"""Moments E_P W^{−z}, Re z = ½, of a mean of lognormal variables, in balls.

W = (1/t) Σ X_j of t independent X = e^{μZ − μ²/2} under Q, Z standard normal, EX = 1. P is the law
with s ≥ μ added to k of the Z, all sets of k being equally likely; dP/dQ = W for k = 1, s = μ. With
ψ(λ) = E e^{−λX/t} and ψ₁(λ) the same with Z + s for Z, φ(λ) := E_P e^{−λW} = ψ^{t−k} ψ₁^k.
Let v = μ²/t and z = ½ + iτ with τ ≥ 0.

*Integral.* Γ(z) E_P W^{−z} = ∫ λ^{z−1} φ(λ) dλ from 0 to ∞. |φ| ≤ 1 in the right half-plane, and
falls faster than every power there (see *End*), so that the path may be turned to λ = ie^u:

    M(τ) := ∫ e^{uz} φ(ie^u) du = e^{−iπz/2} Γ(z) E_P W^{−z}     for all real τ.

*More.* W grows with every Z. So a mean of what falls with W is largest for k = 1 and s = μ: that of
f(W) is at most E Wf(W).

*Decay.* Z̄ = ΣZ_j/t is normal with variance 1/t and independent of the Z_j − Z̄, so that
ln W = μZ̄ + R and, for a given set, the logarithm of the density of P is skZ̄ + R' with R and R'
independent of Z̄: |E_P W^{−z}| is at most e^{−vτ²/2} E_P W^{−½} (*More:* ≤ E W^½ ≤ (EW)^½ = 1).
As |Γ(½ + iτ)|² = π/cosh πτ,

    |M(τ)| ≤ √(2π) e^{−vτ²/2},   and e^{−π|τ|} times that for τ < 0.

*Rule.* By Poisson's formula the sum h Σ_k e^{kh z} φ(ie^{kh}) over all integers is
Σ_m M(τ + mR), R = 2π/h. For 0 ≤ τ ≤ T < R the terms with m ≠ 0 add up to at most

    √(2π) (q/(1 − q) + e^{−π(R−T) − v(R−T)²/2}/(1 − e^{−πR})),   q = e^{−vR²/2}.

*Start.* Up to u₀ = k₀h the terms are those of φ(ir) = Σ_{j<J} (−ir)^j E_P W^j/j! + ρ,
|ρ| ≤ r^J E_P W^J/J!: geometric series. With m_j = E(X/t)^j = e^{j(j−1)μ²/2} t^{−j} the moments are

    E_P W^j = j! [x^j] (Σ_i m_i x^i/i!)^{t−k} (Σ_i m_i e^{iμs} x^i/i!)^k.

*End.* For real η with 0 < ω = μη ≤ π/2, ψ(ir) is ∫ n(x − iη) exp(−ire^{−iω} e^{μx−μ²/2}/t) dx, n
the normal density, by moving the line, and ψ₁(ir) the same with n(x − iη − s); hence
|φ(ir)| ≤ e^{tη²/2} E_P e^{−ρW} ≤ e^{tη²/2} E We^{−ρW} (*More*), ρ = r sin ω. There
e^{−ρW} ≤ (n/(eρW))^n for every n > 1, and E W^{−r} ≤ e^{rμ²/2 + r²v/2} for r > 0, as
W ≥ e^{μZ̄ − μ²/2} by the inequality of the means (`log_least`). What is beyond u₁ = k₁h is at most

    e^{tη²/2} (n/(e sin ω))^n e^{(n−1)μ²/2 + (n−1)²v/2} e^{−(n−½)u₁}/(n − ½).

*ψ and ψ₁* at ie^{kh} are trapezium sums of the same integrals with η = a, of step g = lh/μ with a
whole l, so that e^{kh + μx} is a power of e^h: exponentials are shared by all k. In the strip
|Im x| < a, 2aμ < π, they are at most 1: the error is at most (e^{2a²} + 1)/(e^{2πa/g} − 1)
(Trefethen and Weideman 2014, Theorem 5.1), and what is beyond |x| = Ng > s at most
e^{a²/2} erfc((Ng − s)/√2).

Steps, ends and orders are chosen by floats; nothing that is proved rests on that.
"""

HALF = Fraction(1, 2)
"""Re z: |Γ| has a closed form on this line."""
MOST_ORDER = 128
"""Largest j of E_P W^{j−1}: more shorten the path hardly, and their logarithms grow as j²."""
_GUARD = 12
"""Bits for the rounding of sums, besides those of the largest terms."""
_TALLEST = 3.0
"""The largest a: weights grow to e^{a²/2}."""
_INSIDE = 0.999
"""Share of the widest strip that is used: floats round far less than the rest."""
_TURNS = 60
"""Angles ω that are tried for the end, down to a billionth."""
_MEAN_LOGNORMAL_POWERS = tuple(2.0 ** (i / 2) for i in range(1, 30))
"""The n that are tried for the end."""
_MEAN_LOGNORMAL_MOST_TERMS = 20_000_000
"""Terms of all sums for ψ at most: some seconds."""


@final
@dataclass(frozen=True)
class MeanLognormal:
    """W = (1/t) Σ X_j of t independent X = e^{μZ − μ²/2}, under P: s added to k of the Z."""

    mu: ExactReal
    steps: int
    participations: int = 1
    """k < t."""
    moved: ExactReal | None = None
    """s ≥ μ; None for μ."""

    @property
    def shift(self) -> ExactReal:
        """Return s."""
        return self.mu if self.moved is None else self.moved

    @property
    def variance(self) -> float:
        """The v of e^{−vτ²/2}, about."""
        return float(self.mu) ** 2 / self.steps

    def log_least(self, r: arb) -> arb:
        """Return a bound of ln E W^{−r}, r > 0."""
        square = self.mu.ball() ** 2
        return r * square / 2 + r * r * square / (2 * self.steps)

    def moments(self, order: int = MOST_ORDER) -> tuple[arb, ...]:
        """Return 1 and E_P W^{j−1}, 1 ≤ j ≤ order: E W^j for k = 1, s = μ, to the precision."""
        return _moments(self, order, ctx.prec)

    def on_line(self, period: Fraction, count: int, bits: int) -> list[acb]:
        """Return E_P W^{−z} for z = ½ + 2πij/period, j ≤ count, with errors of about 2^−bits.

        Raises UndecidedError where the sums are too long.
        """
        plan = _Plan(self, period, count, bits)
        with ctx.workprec(plan.precision):
            sums = plan.sums()
        with ctx.workprec(plan.precision + plan.lost):
            return plan.moments(sums)


@functools.lru_cache(maxsize=64)
def _moments(of: MeanLognormal, order: int, precision: int) -> tuple[arb, ...]:
    with ctx.workprec(precision), ctx.workcap(order):
        square, t, k = of.mu.ball() ** 2, arb(of.steps), of.participations
        moved = of.mu.ball() * of.shift.ball()
        factorials = [arb(math.factorial(j)) for j in range(order)]
        powers = [(j * (j - 1) * square / 2).exp() / t**j / f for j, f in enumerate(factorials)]
        one = arb_series(powers, prec=order)
        own = arb_series([m * (j * moved).exp() for j, m in enumerate(powers)], prec=order)
        whole = one ** arb_series([t - k], prec=order) * own ** arb_series([k], prec=order)
        return (arb(1), *(whole[j] * factorials[j] for j in range(order)))


@final
class _Plan:
    """The steps and ends of all sums."""

    def __init__(self, of: MeanLognormal, period: Fraction, count: int, bits: int) -> None:
        self.of, self.period, self.count = of, period, count
        mu, t, v, shift = float(of.mu), of.steps, of.variance, float(of.shift)
        wanted = bits * _LOG_2
        self.top = 2 * math.pi * count / float(period)
        end, self.power, self.turn = min(
            (
                (
                    t * (w / mu) ** 2 / 2
                    + n * (math.log(n / math.sin(w)) - 1)
                    + (n - 1) * (mu * mu + (n - 1) * v) / 2
                    + wanted
                )
                / (n - 0.5),
                n,
                w,
            )
            for n in _MEAN_LOGNORMAL_POWERS
            for w in (math.pi / 2 * _INSIDE * 2.0 ** (-i / 2) for i in range(_TURNS))
        )
        self.high = min(_INSIDE * math.pi / (2 * mu), _TALLEST)
        sizes = max(end, 0.0) + self.high**2  # of e^{u/2} and of the weights, twice
        self.precision = bits + _GUARD + t.bit_length() + math.ceil(sizes / (2 * _LOG_2))
        fall = self.precision * _LOG_2 + 2 * self.high**2
        widest = 2 * math.pi * self.high / fall * mu  # step of ψ, in units of u
        rate = max(math.sqrt(2 * wanted / v), self.top + wanted / math.pi, 2 * math.pi / widest)
        self.points = math.ceil(float(period) * rate / (2 * math.pi))
        """P/h: values at 2πj/P are those of a discrete transform of so many points."""
        self.step = period / self.points
        h = float(self.step)
        self.last = math.ceil(end / h)
        with ctx.workprec(START_PRECISION):
            logs = [float(moment.log().mid()) for moment in of.moments()]
        start, self.order = max(
            (-(wanted + log - math.lgamma(j + 1)) / (j + 0.5), j)
            for j, log in enumerate(logs[2:], 1)
        )
        terms = [start * j + logs[j + 1] - math.lgamma(j + 1) for j in range(self.order)]
        self.lost = math.ceil(max(terms) / _LOG_2)
        """Bits that alternating terms of φ lose."""
        self.first = min(math.floor(start / h), self.last - 1)
        self.stride = max(1, math.floor(widest / h))
        self.reach = math.ceil((math.sqrt(2 * fall) + shift) * mu / (self.stride * h))
        """N: terms of ψ on each side of 0."""
        if (self.last - self.first) * (2 * self.reach + 1) > _MEAN_LOGNORMAL_MOST_TERMS:
            raise UndecidedError(
                f"A random allocation of {t} steps takes sums of {self.last - self.first} times "
                f"{2 * self.reach + 1} terms here. Ask for a larger relative_width."
            )

    def moments(self, sums: list[acb]) -> list[acb]:
        """Return the moments on the line, from the sums of `sums`."""
        period, h, order = ball(self.period), ball(self.step), self.order
        known, start, weight = self.of.moments(), self.first * h, acb(1)
        taylor = []
        for j in range(order):
            taylor.append(weight * known[j + 1] * h * (start * j).exp() / math.factorial(j))
            weight *= acb(0, -1)
        shrinks = [(-h * j).exp() for j in range(order)]
        error = self._error(h, known[order + 1]).upper()
        doubtful = acb(arb(0, error), arb(0, error))
        found = []
        for j in range(self.count + 1):
            z = acb(ball(HALF), 2 * arb.pi() * j / period)
            grown, shrunk, near = (start * z).exp(), (-h * z).exp(), acb(0)
            for term, shrink in zip(taylor, shrinks, strict=True):
                near += term / (1 - shrunk * shrink)
            whole = sums[j] + grown * near + doubtful
            found.append(whole * (acb(0, arb.pi() / 2) * z).exp() * z.rgamma())
        return found

    def _error(self, h: arb, moment: arb) -> arb:
        """Return the bound of the errors of the rule and of both ends, for |Im z| ≤ T."""
        mu, t = self.of.mu.ball(), self.of.steps
        v, pi, rate = mu * mu / t, arb.pi(), 2 * arb.pi() / h
        rest = rate - 2 * pi * self.count / ball(self.period)
        share = (-v * rate**2 / 2).exp()
        folded = share / (1 - share)
        folded += (-pi * rest - v * rest**2 / 2).exp() / (1 - (-pi * rate).exp())
        folded *= (2 * pi).sqrt()
        grows = ball(HALF) + self.order
        start = moment / math.factorial(self.order) * h * (self.first * h * grows).exp()
        start /= 1 - (-h * grows).exp()
        n, w = arb(self.power), arb(self.turn)
        end = t * (w / mu) ** 2 / 2 + n * ((n / w.sin()).log() - 1)
        end += self.of.log_least(n - 1)
        falls = n - ball(HALF)
        bound: arb = folded + start + (end - falls * self.last * h).exp() / falls
        return bound

    def sums(self) -> list[acb]:
        """Return h Σ e^{kh z} φ(ie^{kh}) over first < k ≤ last, at all points of the transform."""
        h = ball(self.step)
        folded = [acb(0)] * self.points
        k = self.of.participations
        for i, (psi, own) in enumerate(self._transforms(), self.first + 1):
            value = psi ** (self.of.steps - k) * own**k
            folded[i % self.points] += (h * i * ball(HALF)).exp() * h * value
        return [each * self.points for each in acb.dft(folded, inverse=True)]

    def _transforms(self) -> list[tuple[acb, acb]]:
        """Return ψ(ie^{kh}) and ψ₁ there, for first < k ≤ last."""
        mu, s, h = self.of.mu.ball(), self.of.shift.ball(), ball(self.step)
        a = arb(self.high)
        g, reach, stride = self.stride * h / mu, self.reach, self.stride
        scale = g / (2 * arb.pi()).sqrt()
        weights = []
        for x in (g * j for j in range(-reach, reach + 1)):
            weight = scale * acb((a * a - x * x) / 2, x * a).exp()
            weights.append((weight, weight * acb(s * (x - s / 2), -s * a).exp()))
        size = 1 << ((self.last - self.first) // stride + 2 * reach + 1).bit_length()
        rest = [acb(0)] * (size - 2 * reach - 1)
        columns = [acb.dft([*column, *rest]) for column in zip(*reversed(weights), strict=True)]
        turned = -acb(0, arb.pi() / 2 - mu * a).exp() / self.of.steps
        low = self.first + 1 - reach * stride
        each = [
            (turned * (h * k - mu * mu / 2).exp()).exp()
            for k in range(low, self.last + reach * stride + 1)
        ]
        error = ((2 * a * a).exp() + 1) / (2 * arb.pi() * a / g).expm1()
        error += (a * a / 2).exp() * ((g * reach - s) / arb(2).sqrt()).erfc()
        doubtful = acb(arb(0, error.upper()), arb(0, error.upper()))
        found = [(doubtful, doubtful)] * (self.last - self.first)
        for start in range(min(stride, len(found))):  # a convolution of every stride-th term
            terms = each[start::stride]
            turns = acb.dft(terms + [acb(0)] * (size - len(terms)))
            psi, own = (
                acb.dft([x * y for x, y in zip(column, turns, strict=True)], inverse=True)
                for column in columns
            )
            for i, k in enumerate(range(start, len(found), stride), 2 * reach):
                found[k] = (psi[i] + doubtful, own[i] + doubtful)
        return found


"""Several epochs of random allocation, and Gaussian releases: one sum on a vertical line.

S = Σ k_i ln W_i + G under Q: W_i the mean of lognormal variables of a random allocation
(`dpassay.accountant.pairs.allocation`), G ~ N(−m/2, m) the loss of Gaussian releases, m = Σ k
μ², all independent; w = e^S is the density of P. With z = ½ + iτ,

    M(z) = E_Q w^{1−z} = e^{−z(1−z)m/2} Π (E W_i^{1−z})^{k_i},  |M(z)| ≤ M(½) e^{−Vτ²/2},  M(½) ≤ 1,

V = m + Σ k_i v_i. For K = e^x the three functions of x

    e^{−x/2} E min(w, K),   e^{−x/2} P(S ≤ x),   e^{x/2} Q(S > x)

have the Fourier transforms M(z)/(z(1 − z)), M(z)/z and M(z)/(1 − z) at the frequency τ. So by
Poisson's formula, for each of them, f, and every period p,

    Σ_m f(x + mp) = (1/p)(F_0 + 2 Re Σ_{j≥1} F_j e^{2πijx/p}),   F_j at τ = 2πj/p.

*Beyond j = N* the sum is at most M(½) e^{−VT²/2}/π times 1/T for the first function, 1/(VT²) for
the others, T = 2πN/p: by the integrals of e^{−Vτ²/2}/τ² and e^{−Vτ²/2}/τ from T on.

*m ≥ 1.* At X = x + mp the first two are e^{−X/2}, less E(w − e^X)⁺ or P(S > X) times that, and the
third is e^{X/2} Q(S > X): by Markov's inequality, and (w − K)⁺ ≤ w^a K^{1−a}, all these are at
most Λ_a e^{−(a−½)X} with Λ_a = E w^a, a ≥ 2.

*m ≤ −1.* There the first and the third are e^{X/2}, less E(1 − we^{−X})⁺ or Q(S ≤ X) times that,
the second is e^{−X/2} P(S ≤ X) ≤ e^{X/2} Q(S ≤ X): all at most E w^{−r} e^{(r+½)X} for r > 0. Here
ln E w^{−r} ≤ rD/2 + r²V/2, D = m + Σ k_i μ_i².

Geometric series have these sums. For the loss S of (P, Q) H(ε) is 1 − E min(w, e^ε), for −S of
(Q, P) it is 1 − e^ε E min(w, e^{−ε}). What cancels there is paid for in bits.
"""

_LOG_2 = math.log(2)
_USUAL_BITS = 66
"""Bits at flint's first precision: 42 of a usual width, as ε is relatively less certain than δ."""
_FIRST_LOST = 44
"""Bits that are lost at first: those of δ = 1e-12 and a few."""
_BLOCK = 32
"""Bits that are added at a time, at least."""
LEAST_BITS = 128
"""Bits at least: usual answers, bounds and estimates share a line."""
_SUM_STEPS = 3
"""Bits are rounded up to so many leading ones, so that questions share a line."""
_MOST_LOST = 500
"""Bits that a difference may lose."""
_SUM_ROUGH = 64
"""Bits of estimates, nearly those of usual answers, which share their lines."""
_USUAL = -28.0
"""ln δ of usual questions, whose ε share a line."""
_POWERS = tuple(2.0 ** (i / 4) for i in range(-4, 60))
"""The r that are tried: others have higher bounds by a few per cent."""
_TINY = 1e-30
"""What is less is only bounded in an estimate."""
_ESTIMATE_BITS = 40
"""Bits of an estimate of ε: proofs beside it fail if it is off by more than their width."""
_ZERO = ExactReal.of_rational(0)
_FAR_BELOW, _LEAST_LOG = 6.0, -600.0
"""How far below ln δ ln H is not followed, and the least number whose exponential floats hold."""


@final
@dataclass(frozen=True)
class AllocationSum:
    """The law of S, by its independent terms with their counts."""

    means: tuple[tuple[MeanLognormal, int], ...]
    normals: tuple[tuple[GaussianPair, int], ...] = ()

    def hockey_stick(self, epsilon: ExactReal, *, mixed_first: bool, floor: float = 0.0) -> arb:
        """Return H(ε) of S under P, or of −S under Q, for any real ε, to the precision.

        To a width that is asked for, where it is. What is below a floor, or about 1e-150, is
        bounded, and not known more closely. Raises UndecidedError where sums are too long.
        """
        at = epsilon if mixed_first else -epsilon
        wanted, lost = _wanted(), self._first_lost(at)
        while True:
            with ctx.workprec(max(wanted + lost, LEAST_BITS)):
                found = self._excess(at, wanted + lost, mixed_first=mixed_first)
            short = wanted - max(found.rel_accuracy_bits(), 0)
            if short <= 0:
                return found
            if lost > _MOST_LOST or found < floor:
                return found.max(arb(0))
            lost += max(short, _BLOCK)

    def tails(self, epsilon: ExactReal, *, mixed_first: bool) -> Tails:
        """Return P(S > ε) and so on, or those of −S with Q first.

        Two are 1 minus the others, all to the precision of 1, not relative to themselves.
        """
        at = epsilon if mixed_first else -epsilon
        bits = _wanted() + self._first_lost(at)
        low_p, high_q = self.below_and_above(at, bits)
        with ctx.workprec(max(bits, LEAST_BITS)):
            high_p, low_q = 1 - low_p, 1 - high_q
        if mixed_first:
            return Tails(high_p, low_p, high_q, low_q)
        return Tails(low_q, high_q, low_p, high_p)

    def below_and_above(self, at: ExactReal, bits: int) -> tuple[arb, arb]:
        """Return P(S ≤ x) and Q(S > x), with errors of about 2^−bits.

        The first is also known of a single random allocation with several participations, where w
        is not e^S: P(S ≤ x) is not larger than with one, and E_P W^{a−1} stands for Λ_a.
        """
        with ctx.workprec(max(bits, LEAST_BITS)):
            low, high = (each.max(arb(0)).min(arb(1)) for each in self._tails(at, bits))
        return low, high

    def bound(self, epsilon: ExactReal, *, mixed_first: bool) -> arb:
        """Return an upper bound of H(ε): what one line says, or what the moments of w do."""
        try:
            found = self.hockey_stick(epsilon, mixed_first=mixed_first, floor=1.0)
        except UndecidedError:
            x = epsilon.ball()
            found = self._above(x) if mixed_first else self._least(-x)
        return found.upper().min(arb(1))

    def _above(self, x: arb) -> arb:
        """Return a bound of P(S > x), hence of Q(S > x) for x ≥ 0, and of E_Q(e^S − e^x)⁺."""
        logs = (log - (a - 1) * x for a, log in self.log_moments.items())
        return _smallest(logs).exp().upper()

    def _least(self, x: arb) -> arb:
        """Return a bound of Q(S ≤ x), hence of P(S ≤ x) for x ≤ 0, and of E_Q(1 − e^{S−x})⁺."""
        logs = (self.log_least(r) + r * x for r in _POWERS)
        return _smallest(logs).exp().upper()

    def _excess(self, at: ExactReal, bits: int, *, mixed_first: bool) -> arb:
        """Return E(w − e^x)⁺, or E(1 − we^{−x})⁺; e^x times that is e^x − 1 more."""
        x, tiny = at.ball(), arb(2) ** (-bits)
        if x > self.usual and (rest := self._above(x)) < tiny:
            above = arb(0).union(rest)
            return above if mixed_first else (-x).exp() * above - (-x).expm1()
        if -x > self.usual and (rest := self._least(x)) < tiny:
            below = arb(0).union(rest)
            return x.exp() * below - x.expm1() if mixed_first else below
        least = self._line(at, bits).least(at)
        return 1 - (least if mixed_first else least * (-x).exp())

    def _tails(self, at: ExactReal, bits: int) -> tuple[arb, arb]:
        """Return P(S ≤ x) and Q(S > x)."""
        x, tiny = at.ball(), arb(2) ** (-bits)
        if x > self.usual and (rest := self._above(x)) < tiny:
            return 1 - arb(0).union(rest), arb(0).union(rest)
        if -x > self.usual and (rest := self._least(x)) < tiny:
            return arb(0).union(rest), 1 - arb(0).union(rest)
        return self._line(at, bits).tails(at)

    def estimate_log_delta(self, epsilon: float, *, mixed_first: bool) -> float | None:
        """Return ln H(ε), or at least that where it is tiny; None where it is not known soon."""
        at = ExactReal.of_rational(Fraction(epsilon))
        with ctx.workprec(_SUM_ROUGH), within():
            try:
                found = self.hockey_stick(at, mixed_first=mixed_first, floor=_TINY)
            except UndecidedError:
                return None
            log = (found if found > 0 else found.upper()).log()
        return float(log.mid()) if log.is_finite() else None

    def estimate_epsilon(self, log_delta: float, *, mixed_first: bool) -> float | None:
        """Return the ε with ln H(ε) = log_delta < 0, from few bits; None where they are lost.

        H(ε) ≥ 1 − e^ε says from where on, the moments say up to where.
        """
        if not log_delta < 0:
            return None
        floor = math.exp(max(log_delta - _FAR_BELOW, _LEAST_LOG))
        least = Fraction(math.log(-math.expm1(log_delta)))

        def excess(at: ExactReal) -> arb:
            found = self.hockey_stick(at, mixed_first=mixed_first, floor=floor)
            return found.mid().max(arb(floor)).log() - log_delta

        with ctx.workprec(_SUM_ROUGH), within(), suppress(UndecidedError):
            most = Fraction(self.largest_epsilon(log_delta))
            low, high = (Fraction(0), most) if excess(_ZERO) > 0 else (least, Fraction(0))
            return float(solve.approximate(excess, low, high, _ESTIMATE_BITS))
        return None

    def largest_epsilon(self, log_delta: float) -> float:
        """Return a bound of the ε with ln H(ε) = log_delta, from the moments."""
        return min(
            (float(log.mid()) - log_delta + rough_log_peak(a - 1)) / (a - 1)
            for a, log in self.log_moments.items()
        )

    @cached_property
    def log_moments(self) -> dict[int, arb]:
        """Logarithms of Λ_a for whole a ≥ 2."""
        with ctx.workprec(START_PRECISION):
            known = [(mean.moments(), count) for mean, count in self.means]
            half = self.square() / 2
            return {
                a: sum((count * each[a].log() for each, count in known), start=half * (a * a - a))
                for a in range(2, MOST_ORDER + 1)
            }

    @cached_property
    def _drift(self) -> arb:
        """D."""
        with ctx.workprec(START_PRECISION):
            terms = (count * mean.mu.ball() ** 2 for mean, count in self.means)
            return sum(terms, start=self.square())

    @cached_property
    def variance(self) -> arb:
        """V."""
        with ctx.workprec(START_PRECISION):
            terms = (count * mean.mu.ball() ** 2 / mean.steps for mean, count in self.means)
            return sum(terms, start=self.square())

    def log_least(self, r: float) -> arb:
        """Return a bound of ln E w^{−r}, r > 0."""
        return (r * self._drift + arb(r) ** 2 * self.variance) / 2

    def square(self) -> arb:
        """Return m, to the current precision."""
        return sum((count * pair.mu() ** 2 for pair, count in self.normals), start=arb(0))

    @cached_property
    def usual(self) -> float:
        """The largest size of x that usual questions have, about."""
        return min((float(log.mid()) - _USUAL) / (a - 1) for a, log in self.log_moments.items())

    def _first_lost(self, at: ExactReal) -> int:
        """Return the bits by which e^{|x|/2} exceeds a small δ, at first."""
        return _FIRST_LOST + math.ceil(min(abs(float(at)) / (2 * _LOG_2), _MOST_LOST))

    def _line(self, at: ExactReal, bits: int) -> _Line:
        size = abs(float(at)) / self.usual
        reach = self.usual * 2.0 ** max(math.ceil(math.log2(size)) if size > 1 else 0, 0)
        bits = max(bits, LEAST_BITS)
        block = max(_BLOCK, 1 << bits.bit_length() - _SUM_STEPS)
        return line(self, reach, -(-bits // block) * block)


def _wanted() -> int:
    """Return the bits that are wanted: a raised precision is meant."""
    return ctx.prec if ctx.prec > START_PRECISION else min(ctx.prec, _USUAL_BITS)


def _smallest(logs: Iterable[arb]) -> arb:
    return min(logs, key=lambda log: float(log.mid()))


@functools.lru_cache(maxsize=16)
def line(of: AllocationSum, reach: float, bits: int) -> _Line:
    """Return the line for all |x| up to a reach."""
    return _Line(of, reach, bits)


@final
class _Line:
    """The transforms at 2πj/p, j ≤ N, for all |x| up to a reach, with errors of about 2^−bits."""

    def __init__(self, of: AllocationSum, reach: float, bits: int) -> None:
        self.of = of
        self.precision = bits + _BLOCK
        wanted = bits * _LOG_2
        with ctx.workprec(self.precision):
            above = {a: float(log.mid()) for a, log in of.log_moments.items()}
            below = {r: float(of.log_least(r).mid()) for r in _POWERS}
            spread = float(of.variance)
        high, self.order = min(((wanted + log) / (a - 0.5), a) for a, log in above.items())
        low, self.power = min(((wanted + log) / (r + 0.5), r) for r, log in below.items())
        self.period = Fraction(reach + max(high, low))
        top = math.sqrt(2 * wanted / spread)
        self.count = math.ceil(top * float(self.period) / (2 * math.pi))
        own = bits + sum(count for _, count in of.means).bit_length()
        found = [(mean.on_line(self.period, self.count, own), n) for mean, n in of.means]
        with ctx.workprec(self.precision):
            self.points = [
                acb(ball(HALF), 2 * arb.pi() * j / ball(self.period)) for j in range(self.count + 1)
            ]
            half = of.square() / 2
            self.moments = []
            for j, z in enumerate(self.points):
                value = (half * z * (z - 1)).exp()
                for values, n in found:
                    value *= values[j] ** n
                self.moments.append(value)

    @cached_property
    def _least(self) -> acb_mat:
        return self._rows(lambda z: z * (1 - z))

    @cached_property
    def _tails(self) -> tuple[acb_mat, acb_mat]:
        return self._rows(lambda z: z), self._rows(lambda z: 1 - z)

    def _rows(self, divisor: Callable[[acb], acb]) -> acb_mat:
        """Return the terms in rows of a square: balls grow with every rotation of a sum."""
        pairs = zip(self.moments, self.points, strict=True)
        with ctx.workprec(self.precision):
            terms = [moment / divisor(z) for moment, z in pairs]
        width = math.isqrt(self.count) + 1
        return acb_mat(width, width, terms + [acb(0)] * (width * width - len(terms)))

    def least(self, at: ExactReal) -> arb:
        """Return E_Q min(w, e^x)."""
        x = at.ball()
        (whole,) = self._sums(x, 2, self._least)
        return (x / 2).exp() * (whole - self._aliases(x) - self._aliases(-x))

    def tails(self, at: ExactReal) -> tuple[arb, arb]:
        """Return P(S ≤ x) and Q(S > x)."""
        x = at.ball()
        p, q = self._sums(x, 1, *self._tails)
        return (
            (x / 2).exp() * (p - self._aliases(x)),
            (-x / 2).exp() * (q - self._aliases(-x)),
        )

    def _aliases(self, x: arb) -> arb:
        """Return Σ_{m≥1} e^{−(x + mp)/2}."""
        half = ball(self.period) / 2
        return (-x / 2 - half).exp() / (1 - (-half).exp())

    def _sums(self, x: arb, power: int, *functions: acb_mat) -> list[arb]:
        """Return (1/p)(F_0 + 2 Re Σ F_j e^{2πijx/p}) of terms like τ^−power, with errors."""
        period, error = ball(self.period), self._error(x, power).upper()
        width, turn = functions[0].nrows(), acb(0, 2 * arb.pi() * x / period)
        near = acb_mat(width, 1, [(turn * j).exp() for j in range(width)])
        far = acb_mat(1, width, [(turn * (j * width)).exp() for j in range(width)])
        return [
            (2 * (far * (terms * near))[0, 0].real - terms[0, 0].real) / period + arb(0, error)
            for terms in functions
        ]

    def _error(self, x: arb, power: int) -> arb:
        """Return the bound of what lies beyond N, and of what is not known of m ≠ 0."""
        period, half = ball(self.period), ball(HALF)
        top, spread = 2 * arb.pi() * self.count / period, self.of.variance
        error: arb = self.moments[0].real * (-spread * top**2 / 2).exp() / arb.pi()
        error /= top if power == 2 else spread * top**2
        grows = self.order - half
        log = self.of.log_moments[self.order]
        error += (log - grows * (x + period)).exp() / (1 - (-grows * period).exp())
        falls = self.power + half
        log = self.of.log_least(self.power)
        error += (log + falls * (x - period)).exp() / (1 - (-falls * period).exp())
        return error


"""Several Gaussian steps of a random allocation: what a mean of powers of likelihood ratios tells.

P adds μ to k of t normal coordinates, all sets being equally likely; Q to none. For 0 < θ ≤ 1 let W
be the mean of the e^{θμZ_j − θ²μ²/2}. For every c the event A = {W > c} has P(A) − e^ε Q(A) ≤ H(ε),
and for (Q, P) {W ≤ c} has. θ = 1 is nearly best where t is large: dP/dQ is about W^k. Elsewhere one
large coordinate is less than k of them, which a smaller θ sees.

*What is open.* With p_i = Σ_j X_j^i, X the likelihood ratio of a step, dP/dQ of k = 2 is
(p₁² − p₂)/(t(t − 1)). As e^{−sp₁²} = E e^{ayp₁} for normal y, a² = −2s, E e^{−s(p₁² − p₂)} is the
mean over y of (E e^{ayX + sX²})^t. For s = ir and a line of y where ayX is imaginary this power is
at most 1, but its integral is one of e^{iy²/2} with about t/r turns that count; on every other line
Re ayX grows with X at one end of it, and for a lognormal X the mean is infinite there. Turning the
line of X as well makes sX² grow, or ayX at the other end: only p₁² ≥ p₂ of all X together bounds
them. A proof would have to treat steps with large X apart, by their number.
"""

_ENOUGH = 40
"""Relative bits of a difference that are enough: the ends differ by far more."""
_MOST_BITS = 640
"""Bits of probabilities at most: those of a δ of 1e-180."""
_EVENT_SHARED = 7
"""Bits of the ε by which an event is chosen: those near it share one, which is nearly the best."""
_EVENT_NEAR = 0.5
"""Length of the range of ln c, in standard deviations of ln W, from which parabolas go on."""
_GOLDEN = (math.sqrt(5) - 1) / 2
"""Share of the golden section: each step asks for one value."""
_EVENT_DIGITS = 7
"""Of ln c."""
_EIGHTHS = (8, 6, 4, 3, 2)
"""The 8θ that are tried, as long as they help."""
_HELPS = 0.01
"""Growth of ln δ, or of ε, from which on a smaller θ helps."""
_VARIES = 1 / 1024
"""The variance of W under Q up to which no large coordinate shows, and θ = 1 is nearly best."""
_NEARLY_ALL = 3 / 4
"""Share of the steps from which on their sum tells nearly all, and θ = 1 is not improved."""
_NEVER = -1e9
"""Less than every ε, and than every logarithm of a probability that is seen."""
_UNSEEN = 2.0 ** (16 - LEAST_BITS)
"""Probabilities below that are rounding."""
_LARGEST = 700.0
"""The largest ε for which an event is chosen, and so on: floats hold its exponential."""
_ROUNDS = 8
"""Events of an estimate after the first, at most: each is that of the ε before."""


Gain = Callable[[float, float], float]
"""What is gained by an event, of P(A) and Q(A)."""


class Event(NamedTuple):
    """A, by θ and ln c."""

    power: ExactReal
    log_threshold: ExactReal


@final
@dataclass(frozen=True)
class AllocationEvent(ProfileOnly):
    """(P, Q), or (Q, P) with the mixture last, at one event for each ε; 1 ≤ k < t.

    H of the pair is at least `hockey_stick`, which is that of the event.
    """

    law_name = "allocation-event"

    mu: ExactReal
    steps: int
    participations: int
    mixed_first: bool = True
    chosen: Event | None = None
    """That of all ε, where it is the same."""

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return P(A) − e^ε Q(A), or 0 if that is more: not more than H(ε)."""
        event, bits = self.event(epsilon), LEAST_BITS
        while True:
            with ctx.workprec(bits + _ENOUGH):
                p, q = self._probabilities(event, bits)
                found = p - epsilon.ball().exp() * q
            if found.rel_accuracy_bits() >= _ENOUGH or found < 0 or bits > _MOST_BITS:
                return found.max(arb(0))
            bits *= 2

    @property
    def known(self) -> Known:
        """Return closed forms, and where a search may start."""
        return Known(attained=self._attained, epsilon=self._estimate_epsilon)

    def _estimate_epsilon(self, log_delta: float) -> float | None:
        """Return the ε with ln H(ε) = log_delta from few bits: ln (P(A) − δ)/Q(A) at the best A.

        None where floats do not tell δ from 1.
        """
        delta = math.exp(log_delta)
        if not delta < 1:
            return None
        largest = self.participations * _sum(self.mu, self.steps).largest_epsilon(log_delta)

        def gain(p: float, q: float) -> float:
            return math.log((p - delta) / q) if p > delta and q > _UNSEEN else _NEVER + p

        _, found = self._best(gain, (math.log1p(-delta), min(largest, _LARGEST)))
        for _ in range(_ROUNDS):
            event = self.event(ExactReal.of_rational(Fraction(found)))
            last, found = found, gain(*self._rough(event))
            if found in {last, _NEVER}:
                break
        return found

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the probabilities of A and of its complement."""
        p, q = self._probabilities(self.event(epsilon), max(ctx.prec, LEAST_BITS))
        return Tails(p, 1 - p, q, 1 - q)

    def event(self, epsilon: ExactReal) -> Event:
        """Return A."""
        at = max(-_LARGEST, min(float(epsilon), _LARGEST))
        return self.chosen or _event(self, shortened(at, _EVENT_SHARED))

    def _attained(self, epsilon: ExactReal) -> AllocationEvent:
        """Return the event for one ε."""
        return replace(self, chosen=self.event(epsilon))

    def _best(self, gain: Gain, losses: tuple[float, float]) -> tuple[Event, float]:
        """Return A with nearly the largest gain in P(A) and Q(A), and that, for ε in a range.

        Where nothing is seen of A the gain is the same everywhere, and A should be larger.
        """
        best: tuple[Event, float] | None = None
        for power in (Fraction(n, 8) for n in _EIGHTHS[: 1 if self._is_plain else None]):
            theta = ExactReal.of_rational(power)

            def value(at: float, theta: ExactReal = theta) -> float:
                return gain(*self._rough(self._at(theta, at)))

            between = self._range(float(power), losses)
            at, found = _largest(value, between, _EVENT_NEAR * float(power) * self._deviation)
            if best is not None and found < best[1] + _HELPS and best[1] > _NEVER / 2:
                break
            if best is None or found > best[1]:
                best = self._at(theta, at), found
        assert best is not None
        return best

    @property
    def _is_plain(self) -> bool:
        """Whether θ = 1 is enough."""
        variance = math.expm1(min(float(self.mu) ** 2, _LARGEST)) / self.steps
        return variance <= _VARIES or self.participations > _NEARLY_ALL * self.steps

    def _at(self, theta: ExactReal, at: float) -> Event:
        """Return A with ±ln c for which it falls."""
        log_threshold = at if self.mixed_first else -at
        return Event(theta, ExactReal.of_rational(Fraction(f"{log_threshold:.{_EVENT_DIGITS}g}")))

    def _rough(self, event: Event) -> tuple[float, float]:
        with ctx.workprec(LEAST_BITS):
            p, q = self._probabilities(event, LEAST_BITS)
            found_p, found_q = (float(x.mid()) if x.is_finite() else 0.0 for x in (p, q))
            return found_p, found_q

    @property
    def _deviation(self) -> float:
        """About that of the logarithm of the mean of the likelihood ratios."""
        return float(self.mu) / math.sqrt(self.steps)

    def _range(self, power: float, losses: tuple[float, float]) -> tuple[float, float]:
        """Return where ln c may be, or −ln c with the mixture last.

        dP/dQ is e^ε, or e^{−ε}, where all coordinates are somewhat larger, or k are large, or one.
        """
        t, k, ends = self.steps, self.participations, []
        grown = math.exp(power * (1 - power) * float(self.mu) ** 2 / 2)
        for epsilon in losses:
            level = epsilon if self.mixed_first else -epsilon
            one = math.expm1(level) / k
            if level <= 0 or not self.mixed_first or self._is_plain:
                ends += [power * level / k, power * math.log1p(max(one, _GOLDEN - 1))]
                continue
            several = math.exp((level + math.log(math.comb(t, k))) / k)
            ends += [
                power * level / k,
                math.log1p(k / t * (several**power * grown - 1)),
                math.log1p(((1 + t * one) ** power * grown - 1) / t),
            ]
        reach = self._deviation * math.sqrt(k * k + abs(losses[1]))
        low, high = min(ends) - reach, max(ends) + reach
        return (low, high) if self.mixed_first else (-high, -low)

    def _probabilities(self, event: Event, bits: int) -> tuple[arb, arb]:
        """Return P(A) and Q(A) with errors of about 2^−bits, of the laws in the order of the pair.

        W exceeds c in A, or does not with the mixture last.
        """
        mu, at = event.power * self.mu, event.log_threshold
        p_below, _ = _sum(mu, self.steps, self.participations, self.mu).below_and_above(at, bits)
        _, q_above = _sum(mu, self.steps).below_and_above(at, bits)
        return (1 - p_below, q_above) if self.mixed_first else (1 - q_above, p_below)

    @property
    def refusal(self) -> str:
        """Say what is known."""
        return "A Rényi divergence of several steps is not known. Ask for delta or epsilon."

    def max_loss(self) -> arb:
        """Return infinity: dP/dQ takes all positive values."""
        return arb.pos_inf()

    def reverse(self) -> AllocationEvent:
        """Return the other order."""
        return replace(self, mixed_first=not self.mixed_first)

    def law(self) -> dict[str, object]:
        """Return the pair, and "power" and "log_threshold" of one event."""
        found = super().law()
        found.pop("chosen")
        chosen = {} if self.chosen is None else self.chosen._asdict()
        return {**found, **{name: str(number) for name, number in chosen.items()}}

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe A."""
        sign, event = ">" if self.mixed_first else "<=", self.event(epsilon)
        mean = f"(1/{self.steps})*sum(exp(m*z_j - m^2/2))"
        return f"the outputs with {mean} {sign} exp({event.log_threshold}), m = {event.power}*mu"


def _largest(
    function: Callable[[float], float], between: tuple[float, float], near: float
) -> tuple[float, float]:
    """Return where a function with one maximum is nearly the largest, and its value there.

    By a golden section down to a length, and two parabolas.
    """
    seen: dict[float, float] = {}

    def value(at: float) -> float:
        seen[at] = function(at)
        return seen[at]

    low, high = between
    lower, higher = (high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
    rises = value(lower) < value(higher)
    while high - low > near:
        if rises:
            low, lower, higher = lower, higher, lower + _GOLDEN * (high - lower)
            rises = seen[lower] < value(higher)
        else:
            high, lower, higher = higher, higher - _GOLDEN * (higher - low), lower
            rises = value(lower) < seen[higher]
    for _ in range(2):
        value(_vertex(seen))
    at = max(seen, key=lambda at: seen[at])
    return at, seen[at]


def _vertex(seen: Mapping[float, float]) -> float:
    """Return where a parabola through the largest value and those beside it is largest."""
    order = sorted(seen)
    best = order.index(max(seen, key=lambda at: seen[at]))
    if not 0 < best < len(order) - 1:
        return order[best]
    left, at, right = order[best - 1 : best + 2]
    before, behind = (seen[at] - seen[left]) / (at - left), (seen[right] - seen[at]) / (right - at)
    if not before > behind:
        return at
    return (left + at) / 2 + (right - left) / 2 * before / (before - behind)


@functools.lru_cache(maxsize=64)
def _sum(
    mu: ExactReal, steps: int, taken: int = 1, moved: ExactReal | None = None
) -> AllocationSum:
    """Return ln W, a law that is made once, with what it has computed."""
    return AllocationSum(((MeanLognormal(mu, steps, taken, moved), 1),))


@functools.lru_cache(maxsize=4096)
def _event(pair: AllocationEvent, epsilon: float) -> Event:
    """Return nearly the best A for one ε."""
    growth = math.exp(epsilon)

    def gain(p: float, q: float) -> float:
        more = p - growth * q
        if more <= 0:
            return _NEVER + max(more, -1.0)
        return math.log(more) if more > _UNSEEN else _NEVER

    found, _ = pair._best(gain, (epsilon, epsilon))
    return found


"""A record in one of t Gaussian steps, chosen uniformly, against none.

W = dP/dQ = (1/t) Σ_j e^{μ Z_j − μ²/2} for P = (1/t) Σ_j N(μ e_j, I) and Q = N(0, I), with
independent standard normal Z_j under Q. Its profile and that of several epochs, whose losses ln W
add up, are integrals of its moments (`dpassay.accountant.pairs.allocation`): those of several
epochs, alone or with Gaussian noise, are one sum on a line
(`dpassay.accountant.composition.allocations`).
"""

_MOST_ORDER = 400
"""Largest order whose moment is a coefficient of a power series."""


@final
@dataclass(frozen=True)
class RandomAllocationPair(Pair):
    """P = (1/t) Σ N(μ e_j, I) against Q = N(0, I), t ≥ 2; or the reverse, with the mixture last."""

    law_name = "random-allocation"

    mu: ExactReal
    steps: int
    mixed_first: bool = True

    @property
    def mean(self) -> MeanLognormal:
        """W under Q."""
        return MeanLognormal(self.mu, self.steps)

    @cached_property
    def _sum(self) -> AllocationSum:
        return AllocationSum(((self.mean, 1),))

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return E(W − e^ε)⁺, or E(1 − e^ε W)⁺ with the mixture last, for any real ε."""
        return self._sum.hockey_stick(epsilon, mixed_first=self.mixed_first)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails of ±ln W: to the precision, but not relative to themselves."""
        return self._sum.tails(epsilon, mixed_first=self.mixed_first)

    @property
    def known(self) -> Known:
        """Return closed forms, and where a search may start."""
        ask = functools.partial
        return Known(
            bound=ask(self._sum.bound, mixed_first=self.mixed_first),
            log_delta=ask(self._sum.estimate_log_delta, mixed_first=self.mixed_first),
            epsilon=ask(self._sum.estimate_epsilon, mixed_first=self.mixed_first),
            # t^{1−a} e^{a(a−1)μ²/2} ≤ E W^a ≤ e^{a(a−1)μ²/2}
            rho=lambda: rho_bound(self) if self.mixed_first else None,
            # of one step, as Rényi divergences are jointly quasi-convex
            rho_bound=lambda: self.mu.ball() ** 2 / 2,
            # what comes within about a second
            width=lambda: COMPOSED_WIDTH,
        )

    def renyi(self, order: arb) -> arb:
        """Return ln E_Q W^a/(a − 1) at an integer a ≥ 2, mixture first.

        Raises NotApplicableError elsewhere.
        """
        whole = order.unique_fmpz() if order.is_exact() else None
        if not self.mixed_first or whole is None or not 2 <= whole <= _MOST_ORDER:
            raise NotApplicableError(
                "The Rényi divergence of a random allocation is computed at integer orders from 2 "
                f"to {_MOST_ORDER} in direction REMOVE. Ask for delta, epsilon or the trade-off "
                "function, which are known in both directions."
            )
        a = int(whole)
        return self.mean.moments(a)[a].log() / (a - 1)

    def max_loss(self) -> arb:
        """Return infinity: W takes all positive values."""
        return arb.pos_inf()

    def reverse(self) -> RandomAllocationPair:
        """Return (Q, P)."""
        return RandomAllocationPair(self.mu, self.steps, not self.mixed_first)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe {L > ε}."""
        sign = ">" if self.mixed_first else "<"
        at = epsilon if self.mixed_first else -epsilon
        return f"the outputs with (1/{self.steps})*sum(exp(mu*z_j - mu^2/2)) {sign} exp({at})"
