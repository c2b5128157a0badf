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

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import acb, arb, arb_series

from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import START_PRECISION, ball
from dpassay.accountant.numbers.precision import ctx

HALF = Fraction(1, 2)
"""Re z: |Γ| has a closed form on this line."""
MOST_ORDER = 128
"""Largest j of E_P W^{j−1}: more shorten the path hardly, and their logarithms grow as j²."""
_LOG_2 = math.log(2)
_GUARD = 12
"""Bits for the rounding of sums, besides those of the largest terms."""
_TALLEST = 3.0
"""The largest a: weights grow to e^{a²/2}."""
_INSIDE = 0.999
"""Share of the widest strip that is used: floats round far less than the rest."""
_TURNS = 60
"""Angles ω that are tried for the end, down to a billionth."""
_POWERS = tuple(2.0 ** (i / 2) for i in range(1, 30))
"""The n that are tried for the end."""
_MOST_TERMS = 20_000_000
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
            for n in _POWERS
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
        if (self.last - self.first) * (2 * self.reach + 1) > _MOST_TERMS:
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
