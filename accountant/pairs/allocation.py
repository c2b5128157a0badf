"""Random allocation: a record takes part in one of t Gaussian steps, chosen uniformly.

The profiles of one epoch, and of several epochs with Gaussian releases, are computed by Fourier
sums of moments in ball arithmetic. The comments before each section have the proofs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import acb, acb_mat, arb, arb_series

from dpassay.accountant.core.pair import Known, Pair, Tails, rho_bound
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import COMPOSED_WIDTH, START_PRECISION, ball, within
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.solve import rough_log_peak
from dpassay.accountant.pairs.gaussian import GaussianPair

# --- Moments E_P W^{−z}, Re z = ½, of a mean of lognormal variables, in balls ---------------------
# Under Q, W = (1/t) Σ X_j with t independent X_j = e^{μZ_j − μ²/2}, Z_j standard normal, E X_j = 1.
# P is the law with μ added to one Z_j, chosen uniformly; dP/dQ = W. Let ψ(λ) = E e^{−λX/t}, and
# ψ₁(λ) the same with Z + μ for Z. Then φ(λ) := E_P e^{−λW} = ψ^{t−1} ψ₁. Let v = μ²/t and
# z = ½ + iτ with τ ≥ 0. E without a subscript is E_Q.
#
# *Integral.* Γ(z) E_P W^{−z} = ∫ λ^{z−1} φ(λ) dλ from 0 to ∞. In the right half-plane |φ| ≤ 1, and
# φ decays there faster than every power (see *End*), so the path may be rotated to λ = ie^u:
#
#     M(τ) := ∫ e^{uz} φ(ie^u) du = e^{−iπz/2} Γ(z) E_P W^{−z}     for all real τ.
#
# *Decay.* Z̄ = ΣZ_j/t is normal with variance 1/t and independent of all Z_j − Z̄. So
# ln W = μZ̄ + R with R independent of Z̄, and |E_P W^{−z}| = |E W^{1−z}| is at most
# e^{−vτ²/2} E W^½ ≤ e^{−vτ²/2} (EW)^½ = e^{−vτ²/2}.
# Since |Γ(½ + iτ)|² = π/cosh πτ,
#
#     |M(τ)| ≤ √(2π) e^{−vτ²/2} for τ ≥ 0,   and e^{−π|τ|} times that for τ < 0.
#
# *Trapezoidal rule.* By Poisson summation h Σ_k e^{kh z} φ(ie^{kh}) over all integers k is
# Σ_m M(τ + mR), R = 2π/h. For 0 ≤ τ ≤ T < R the terms with m ≠ 0 sum to at most
#
#     √(2π) (q/(1 − q) + e^{−π(R−T) − v(R−T)²/2}/(1 − e^{−πR})),   q = e^{−vR²/2}.
#
# *Start.* For u ≤ u₀ = k₀h use the Taylor expansion φ(ir) = Σ_{j<J} (−ir)^j E_P W^j/j! + ρ with
# |ρ| ≤ r^J E_P W^J/J!; the sums over k are then geometric series. With
# m_j = E(X/t)^j = e^{j(j−1)μ²/2} t^{−j} the moments are
#
#     E_P W^{j−1} = E W^j = j! [x^j] (Σ_i m_i x^i/i!)^t.
#
# *End.* Let n be the normal density, and η real with 0 < ω = μη ≤ π/2. Shifting the line of
# integration gives ψ(ir) = ∫ n(x − iη) exp(−ire^{−iω} e^{μx−μ²/2}/t) dx, and ψ₁(ir) the same with
# n(x − iη − μ). Hence |φ(ir)| ≤ e^{tη²/2} E_P e^{−ρW} = e^{tη²/2} E We^{−ρW}, ρ = r sin ω. Here
# e^{−ρW} ≤ (n/(eρW))^n for every real n > 1, and E W^{−r} ≤ e^{rμ²/2 + r²v/2} for r > 0, because
# W ≥ e^{μZ̄ − μ²/2} by the inequality of arithmetic and geometric means (`log_least`). The terms
# beyond u₁ = k₁h are at most
#
#     e^{tη²/2} (n/(e sin ω))^n e^{(n−1)μ²/2 + (n−1)²v/2} e^{−(n−½)u₁}/(n − ½).
#
# *ψ and ψ₁* at ie^{kh} are trapezoidal sums of these integrals with η = a. The step is g = lh/μ
# with an integer l, so e^{kh + μx} is a power of e^h and all k share the exponentials. In the strip
# |Im x| < a, 2aμ < π, the exponentials have modulus at most 1. So the discretisation error is at
# most (e^{2a²} + 1)/(e^{2πa/g} − 1) (Trefethen and Weideman 2014, Theorem 5.1), and the truncation
# error beyond |x| = Ng > μ is at most e^{a²/2} erfc((Ng − μ)/√2).
#
# Floats choose the steps, the ends and the orders; no proof depends on these choices.

HALF = Fraction(1, 2)
"""Re z; on this line |Γ| has a closed form."""
MOST_ORDER = 128
"""Largest order j of a moment E_P W^{j−1}. Higher moments hardly shorten the path, and their
logarithms grow as j²."""
_GUARD = 12
"""Bits of precision for the rounding of sums, beyond those for the largest terms."""
_TALLEST = 3.0
"""Largest a; the weights grow to e^{a²/2}."""
_SHARE_OF_STRIP = 0.999
"""Fraction of the widest strip that is used, so that float rounding cannot leave the strip."""
_ANGLES = 60
"""Number of angles ω tried for the end of the path; the least is about 1e-9."""
_MEAN_LOGNORMAL_POWERS = tuple(2.0 ** (i / 2) for i in range(1, 30))
"""Exponents n tried for the end of the path."""
_MEAN_LOGNORMAL_MOST_TERMS = 20_000_000
"""Largest number of terms in all sums for ψ; these take a few seconds."""


@final
@dataclass(frozen=True)
class MeanLognormal:
    """W = (1/t) Σ X_j with t = `steps` independent X_j = e^{μZ_j − μ²/2}."""

    mu: ExactReal
    steps: int

    @property
    def variance(self) -> float:
        """The variance v = μ²/t of μZ̄, as a float."""
        return float(self.mu) ** 2 / self.steps

    def log_least(self, r: arb) -> arb:
        """Return an upper bound of ln E W^{−r} for r > 0."""
        square = self.mu.ball() ** 2
        return r * square / 2 + r * r * square / (2 * self.steps)

    def moments(self, order: int = MOST_ORDER) -> tuple[arb, ...]:
        """Return E W^j for 0 ≤ j ≤ order, at flint's current precision."""
        return _moments(self, order, ctx.prec)

    def on_line(self, period: Fraction, count: int, bits: int) -> list[acb]:
        """Return E_P W^{−z} at z = ½ + 2πij/period, 0 ≤ j ≤ count, with errors of about 2^−bits.

        Raises UndecidedError if the sums are too long.
        """
        plan = _Plan(self, period, count, bits)
        with ctx.workprec(plan.precision):
            sums = plan.sums()
        with ctx.workprec(plan.precision + plan.lost):
            return plan.moments(sums)


@functools.lru_cache(maxsize=64)
def _moments(of: MeanLognormal, order: int, precision: int) -> tuple[arb, ...]:
    with ctx.workprec(precision), ctx.workcap(order + 1):
        square, t = of.mu.ball() ** 2, arb(of.steps)
        factorials = [arb(math.factorial(j)) for j in range(order + 1)]
        powers = [(j * (j - 1) * square / 2).exp() / t**j / f for j, f in enumerate(factorials)]
        whole = arb_series(powers, prec=order + 1) ** arb_series([t], prec=order + 1)
        return tuple(whole[j] * factorials[j] for j in range(order + 1))


@final
class _Plan:
    """The steps and ends of all sums for the moments of one W, and these sums."""

    def __init__(self, of: MeanLognormal, period: Fraction, count: int, bits: int) -> None:
        self.of, self.period, self.count = of, period, count
        mu, t, v = float(of.mu), of.steps, of.variance
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
            for w in (math.pi / 2 * _SHARE_OF_STRIP * 2.0 ** (-i / 2) for i in range(_ANGLES))
        )
        self.high = min(_SHARE_OF_STRIP * math.pi / (2 * mu), _TALLEST)
        sizes = max(end, 0.0) + self.high**2  # of e^{u/2} and of the weights, twice
        self.precision = bits + _GUARD + t.bit_length() + math.ceil(sizes / (2 * _LOG_2))
        fall = self.precision * _LOG_2 + 2 * self.high**2
        widest = 2 * math.pi * self.high / fall * mu  # step of ψ, in units of u
        rate = max(math.sqrt(2 * wanted / v), self.top + wanted / math.pi, 2 * math.pi / widest)
        self.points = math.ceil(float(period) * rate / (2 * math.pi))
        """Number of points P/h of the discrete Fourier transform that gives the values at 2πj/P."""
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
        """Bits lost to cancellation in the alternating Taylor terms of φ."""
        self.first = min(math.floor(start / h), self.last - 1)
        self.stride = max(1, math.floor(widest / h))
        self.reach = math.ceil((math.sqrt(2 * fall) + mu) * mu / (self.stride * h))
        """N, the number of terms of ψ on each side of 0."""
        if (self.last - self.first) * (2 * self.reach + 1) > _MEAN_LOGNORMAL_MOST_TERMS:
            raise UndecidedError(
                f"A random allocation of {t} steps takes sums of {self.last - self.first} times "
                f"{2 * self.reach + 1} terms here. Ask for a larger relative_width."
            )

    def moments(self, sums: list[acb]) -> list[acb]:
        """Return the moments on the line, from the values that `sums` returns."""
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
        """Return an upper bound of the errors of the rule, the start and the end for 0 ≤ τ ≤ T."""
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
        """Return h Σ e^{kh z} φ(ie^{kh}) over first < k ≤ last, at all frequencies 2πj/P."""
        h = ball(self.step)
        folded = [acb(0)] * self.points
        for i, (psi, own) in enumerate(self._transforms(), self.first + 1):
            value = psi ** (self.of.steps - 1) * own
            folded[i % self.points] += (h * i * ball(HALF)).exp() * h * value
        return [each * self.points for each in acb.dft(folded, inverse=True)]

    def _transforms(self) -> list[tuple[acb, acb]]:
        """Return ψ and ψ₁ at ie^{kh} for first < k ≤ last."""
        mu, h = self.of.mu.ball(), ball(self.step)
        a = arb(self.high)
        g, reach, stride = self.stride * h / mu, self.reach, self.stride
        scale = g / (2 * arb.pi()).sqrt()
        weights = []
        for x in (g * j for j in range(-reach, reach + 1)):
            weight = scale * acb((a * a - x * x) / 2, x * a).exp()
            weights.append((weight, weight * acb(mu * (x - mu / 2), -mu * a).exp()))
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
        error += (a * a / 2).exp() * ((g * reach - mu) / arb(2).sqrt()).erfc()
        doubtful = acb(arb(0, error.upper()), arb(0, error.upper()))
        found = [(doubtful, doubtful)] * (self.last - self.first)
        for start in range(min(stride, len(found))):  # convolutions of every stride-th term
            terms = each[start::stride]
            turns = acb.dft(terms + [acb(0)] * (size - len(terms)))
            psi, own = (
                acb.dft([x * y for x, y in zip(column, turns, strict=True)], inverse=True)
                for column in columns
            )
            for i, k in enumerate(range(start, len(found), stride), 2 * reach):
                found[k] = (psi[i] + doubtful, own[i] + doubtful)
        return found


# --- Several epochs of random allocation, and Gaussian releases: one sum on a vertical line -------
# The loss is S = Σ (sum of k_i independent copies of ln W_i) + G under Q. W_i is the mean of
# lognormal variables of a random allocation (above), and G ~ N(−m/2, m) is the loss of the Gaussian
# releases, m = Σ k μ²; all are independent. w = e^S is the density dP/dQ. With z = ½ + iτ,
#
#     M(z) = E_Q w^{1−z} = e^{−z(1−z)m/2} Π (E W_i^{1−z})^{k_i},  |M(z)| ≤ M(½) e^{−Vτ²/2},  M(½) ≤
#     1,
#
# where V = m + Σ k_i v_i. For K = e^x, the three functions of x
#
#     e^{−x/2} E min(w, K),   e^{−x/2} P(S ≤ x),   e^{x/2} Q(S > x)
#
# have the Fourier transforms M(z)/(z(1 − z)), M(z)/z and M(z)/(1 − z) at the frequency τ. By
# Poisson summation, for each of these functions f and every period p,
#
#     Σ_m f(x + mp) = (1/p)(F_0 + 2 Re Σ_{j≥1} F_j e^{2πijx/p}),   F_j at τ = 2πj/p.
#
# *Truncation.* The terms with j > N sum to at most M(½) e^{−VT²/2}/π times 1/T for the first
# function and 1/(VT²) for the others, where T = 2πN/p. This follows from the integrals of
# e^{−Vτ²/2}/τ² and e^{−Vτ²/2}/τ over τ ≥ T.
#
# *Aliases with m ≥ 1.* Put X = x + mp. The first two functions are e^{−X/2} minus e^{−X/2} times
# E(w − e^X)⁺ or P(S > X), and the third is e^{X/2} Q(S > X). By Markov's inequality, and
# (w − K)⁺ ≤ w^a K^{1−a}, the differences and the third function are at most Λ_a e^{−(a−½)X}, with
# Λ_a = E w^a, a ≥ 2.
#
# *Aliases with m ≤ −1.* The first and the third function are e^{X/2} minus e^{X/2} times
# E(1 − we^{−X})⁺ or Q(S ≤ X), and the second is e^{−X/2} P(S ≤ X) ≤ e^{X/2} Q(S ≤ X). The
# differences and the second function are at most E w^{−r} e^{(r+½)X} for every r > 0, where
# ln E w^{−r} ≤ rD/2 + r²V/2, D = m + Σ k_i μ_i².
#
# The sums over m are geometric series. For the loss S of (P, Q), H(ε) = 1 − E min(w, e^ε); for the
# loss −S of (Q, P), H(ε) = 1 − e^ε E min(w, e^{−ε}). The precision is raised by the bits that these
# differences lose.

_LOG_2 = math.log(2)
_USUAL_BITS = 66
"""Accuracy of δ in bits at flint's start precision. A usual width needs 42 bits; the others are for
ε, whose relative error is larger than that of δ."""
_FIRST_LOST = 44
"""First guess of the bits lost to cancellation: those of δ = 1e-12 and a few."""
_BLOCK = 32
"""Least number of bits added at a time."""
LEAST_BITS = 128
"""Least precision in bits, so that usual answers, bounds and estimates share a line."""
_SUM_STEPS = 3
"""Precisions are rounded up to about this many leading bits, so that questions share a line."""
_MOST_LOST = 500
"""Largest number of bits that a difference may lose."""
_SUM_ROUGH = 64
"""Precision of estimates in bits; close to that of usual answers, whose lines they share."""
_USUAL = -28.0
"""ln δ of usual questions; their values of ε share a line."""
_POWERS = tuple(2.0 ** (i / 4) for i in range(-4, 60))
"""Exponents r that are tried; the optimal r lowers the bounds by a few per cent only."""
_TINY = 1e-30
"""Value of H below which an estimate is only an upper bound."""
_ESTIMATE_BITS = 40
"""Accuracy of an estimate of ε in bits; a proof around it fails if its error exceeds the width."""
_ZERO = ExactReal.of_rational(0)
_FAR_BELOW, _LEAST_LOG = 6.0, -600.0
"""Distance below ln δ at which ln H is cut off in a search, and the least such value, whose
exponential is still a float."""


@final
@dataclass(frozen=True)
class AllocationSum:
    """The law of the loss S, given by its independent terms and their counts."""

    means: tuple[tuple[MeanLognormal, int], ...]
    normals: tuple[tuple[GaussianPair, int], ...] = ()

    def hockey_stick(self, epsilon: ExactReal, *, mixed_first: bool, floor: float = 0.0) -> arb:
        """Return H(ε) of (P, Q), or of (Q, P) with the mixture last, for any real ε.

        The result has the relative accuracy of `_wanted`, except below `floor` or about 1e-150,
        where it may be only a bound. Raises UndecidedError if the sums are too long.
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
        """Return the tails of S at ε, or those of −S with the mixture last.

        Errors are absolute, not relative: two of the tails are 1 minus the others.
        """
        at = epsilon if mixed_first else -epsilon
        bits = _wanted() + self._first_lost(at)
        with ctx.workprec(max(bits, LEAST_BITS)):
            low_p, high_q = (each.max(arb(0)).min(arb(1)) for each in self._tails(at, bits))
            high_p, low_q = 1 - low_p, 1 - high_q
        if mixed_first:
            return Tails(high_p, low_p, high_q, low_q)
        return Tails(low_q, high_q, low_p, high_p)

    def bound(self, epsilon: ExactReal, *, mixed_first: bool) -> arb:
        """Return an upper bound of H(ε) by one line, or by the moments of w if that fails."""
        try:
            found = self.hockey_stick(epsilon, mixed_first=mixed_first, floor=1.0)
        except UndecidedError:
            x = epsilon.ball()
            found = self._above(x) if mixed_first else self._least(-x)
        return found.upper().min(arb(1))

    def _above(self, x: arb) -> arb:
        """Return an upper bound of P(S > x) and E_Q(e^S − e^x)⁺, and of Q(S > x) for x ≥ 0."""
        logs = (log - (a - 1) * x for a, log in self.log_moments.items())
        return _smallest(logs).exp().upper()

    def _least(self, x: arb) -> arb:
        """Return an upper bound of Q(S ≤ x) and E_Q(1 − e^{S−x})⁺, and of P(S ≤ x) for x ≤ 0."""
        logs = (self.log_least(r) + r * x for r in _POWERS)
        return _smallest(logs).exp().upper()

    def _excess(self, at: ExactReal, bits: int, *, mixed_first: bool) -> arb:
        """Return E(w − e^x)⁺ with the mixture first, else E(1 − we^{−x})⁺.

        They are related by e^x E(1 − we^{−x})⁺ = e^x − 1 + E(w − e^x)⁺.
        """
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
        """Return P(S ≤ x) and Q(S > x), with errors of about 2^−bits."""
        x, tiny = at.ball(), arb(2) ** (-bits)
        if x > self.usual and (rest := self._above(x)) < tiny:
            return 1 - arb(0).union(rest), arb(0).union(rest)
        if -x > self.usual and (rest := self._least(x)) < tiny:
            return arb(0).union(rest), 1 - arb(0).union(rest)
        return self._line(at, bits).tails(at)

    def estimate_log_delta(self, epsilon: float, *, mixed_first: bool) -> float | None:
        """Return an estimate of ln H(ε), an upper bound if it is tiny; None if it takes long."""
        at = ExactReal.of_rational(Fraction(epsilon))
        with ctx.workprec(_SUM_ROUGH), within():
            try:
                found = self.hockey_stick(at, mixed_first=mixed_first, floor=_TINY)
            except UndecidedError:
                return None
            log = (found if found > 0 else found.upper()).log()
        return float(log.mid()) if log.is_finite() else None

    def estimate_epsilon(self, log_delta: float, *, mixed_first: bool) -> float | None:
        """Return an estimate of the ε with ln H(ε) = log_delta < 0, or None if none is found.

        The search interval begins at ln(1 − δ), since H(ε) ≥ 1 − e^ε, and ends at the bound that
        the moments give.
        """
        if not log_delta < 0:
            return None
        floor = math.exp(max(log_delta - _FAR_BELOW, _LEAST_LOG))
        least = Fraction(math.log(-math.expm1(log_delta)))

        def excess(at: ExactReal) -> arb:
            found = self.hockey_stick(at, mixed_first=mixed_first, floor=floor)
            return found.mid().max(arb(floor)).log() - log_delta

        with ctx.workprec(_SUM_ROUGH), within(), suppress(UndecidedError):
            bounds = (
                (float(log.mid()) - log_delta + rough_log_peak(a - 1)) / (a - 1)
                for a, log in self.log_moments.items()
            )
            most = Fraction(min(bounds))
            low, high = (Fraction(0), most) if excess(_ZERO) > 0 else (least, Fraction(0))
            return float(solve.approximate(excess, low, high, _ESTIMATE_BITS))
        return None

    @cached_property
    def log_moments(self) -> dict[int, arb]:
        """The logarithms of Λ_a for integers a from 2 to `MOST_ORDER`."""
        with ctx.workprec(START_PRECISION):
            known = [(mean.moments(), count) for mean, count in self.means]
            half = self.square() / 2
            return {
                a: sum((count * each[a].log() for each, count in known), start=half * (a * a - a))
                for a in range(2, MOST_ORDER + 1)
            }

    @cached_property
    def _drift(self) -> arb:
        """D = m + Σ k_i μ_i²."""
        with ctx.workprec(START_PRECISION):
            terms = (count * mean.mu.ball() ** 2 for mean, count in self.means)
            return sum(terms, start=self.square())

    @cached_property
    def variance(self) -> arb:
        """V = m + Σ k_i v_i."""
        with ctx.workprec(START_PRECISION):
            terms = (count * mean.mu.ball() ** 2 / mean.steps for mean, count in self.means)
            return sum(terms, start=self.square())

    def log_least(self, r: float) -> arb:
        """Return an upper bound of ln E w^{−r} for r > 0."""
        return (r * self._drift + arb(r) ** 2 * self.variance) / 2

    def square(self) -> arb:
        """Return m, at flint's current precision."""
        return sum((count * pair.mu() ** 2 for pair, count in self.normals), start=arb(0))

    @cached_property
    def usual(self) -> float:
        """About the largest |x| of usual questions."""
        return min((float(log.mid()) - _USUAL) / (a - 1) for a, log in self.log_moments.items())

    def _first_lost(self, at: ExactReal) -> int:
        """Return a first guess of the bits that the difference for H loses at x."""
        return _FIRST_LOST + math.ceil(min(abs(float(at)) / (2 * _LOG_2), _MOST_LOST))

    def _line(self, at: ExactReal, bits: int) -> _Line:
        size = abs(float(at)) / self.usual
        reach = self.usual * 2.0 ** max(math.ceil(math.log2(size)) if size > 1 else 0, 0)
        bits = max(bits, LEAST_BITS)
        block = max(_BLOCK, 1 << bits.bit_length() - _SUM_STEPS)
        return line(self, reach, -(-bits // block) * block)


def _wanted() -> int:
    """Return the accuracy in bits: flint's precision if it was raised, else at most the usual."""
    return ctx.prec if ctx.prec > START_PRECISION else min(ctx.prec, _USUAL_BITS)


def _smallest(logs: Iterable[arb]) -> arb:
    return min(logs, key=lambda log: float(log.mid()))


@functools.lru_cache(maxsize=16)
def line(of: AllocationSum, reach: float, bits: int) -> _Line:
    """Return the line that serves all |x| up to `reach`."""
    return _Line(of, reach, bits)


@final
class _Line:
    """The transforms M at τ = 2πj/p, 0 ≤ j ≤ N, for all |x| ≤ reach, to about 2^−bits."""

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
        """Return the terms as rows of a square matrix.

        Then each sum is a double sum with few successive rotations; balls grow with each of them.
        """
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
        """Return (1/p)(F_0 + 2 Re Σ F_j e^{2πijx/p}) with its error, for F that decay as τ^−power.

        The Gaussian factor e^{−Vτ²/2} multiplies that power.
        """
        period, error = ball(self.period), self._error(x, power).upper()
        width, turn = functions[0].nrows(), acb(0, 2 * arb.pi() * x / period)
        near = acb_mat(width, 1, [(turn * j).exp() for j in range(width)])
        far = acb_mat(1, width, [(turn * (j * width)).exp() for j in range(width)])
        return [
            (2 * (far * (terms * near))[0, 0].real - terms[0, 0].real) / period + arb(0, error)
            for terms in functions
        ]

    def _error(self, x: arb, power: int) -> arb:
        """Return an upper bound of the truncation error and of the unknown parts of the aliases."""
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


# --- The pair of a record in one of t Gaussian steps, chosen uniformly, and no record -------------
# W = dP/dQ = (1/t) Σ_j e^{μ Z_j − μ²/2} for P = (1/t) Σ_j N(μ e_j, I) and Q = N(0, I), with
# independent standard normal Z_j under Q. The losses ln W of several epochs add up, so the profile
# of one epoch and of several, alone or with Gaussian releases
# (`dpassay.accountant.composition.allocations`), is a sum on a line as above.

_MOST_ORDER = 400
"""Largest order of a Rényi divergence, whose moment is a coefficient of a power series."""


@final
@dataclass(frozen=True)
class RandomAllocationPair(Pair):
    """P = (1/t) Σ N(μ e_j, I) and Q = N(0, I), t = `steps` ≥ 2; reversed if not `mixed_first`."""

    law_name = "random-allocation"

    mu: ExactReal
    steps: int
    mixed_first: bool = True

    @property
    def mean(self) -> MeanLognormal:
        """The law of W under Q."""
        return MeanLognormal(self.mu, self.steps)

    @cached_property
    def _sum(self) -> AllocationSum:
        return AllocationSum(((self.mean, 1),))

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return E(W − e^ε)⁺, or E(1 − e^ε W)⁺ with the mixture last, for any real ε."""
        return self._sum.hockey_stick(epsilon, mixed_first=self.mixed_first)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails of ln W, or of −ln W with the mixture last; errors are absolute."""
        return self._sum.tails(epsilon, mixed_first=self.mixed_first)

    @property
    def known(self) -> Known:
        """Return bounds, ρ where it is known, and starting points for searches."""
        ask = functools.partial
        return Known(
            bound=ask(self._sum.bound, mixed_first=self.mixed_first),
            log_delta=ask(self._sum.estimate_log_delta, mixed_first=self.mixed_first),
            epsilon=ask(self._sum.estimate_epsilon, mixed_first=self.mixed_first),
            # D_a/a → μ²/2, since t^{1−a} e^{a(a−1)μ²/2} ≤ E W^a ≤ e^{a(a−1)μ²/2}
            rho=lambda: rho_bound(self) if self.mixed_first else None,
            # ρ of one step, since Rényi divergences are jointly quasi-convex
            rho_bound=lambda: self.mu.ball() ** 2 / 2,
            # reached within about a second
            width=lambda: COMPOSED_WIDTH,
        )

    def renyi(self, order: arb) -> arb:
        """Return D_a = ln E_Q W^a/(a − 1) at an integer order a ≥ 2, with the mixture first.

        Raises NotApplicableError at other orders, above `_MOST_ORDER`, and with the mixture last.
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
        """Return +∞: ln W is unbounded in both directions."""
        return arb.pos_inf()

    def reverse(self) -> RandomAllocationPair:
        """Return (Q, P)."""
        return RandomAllocationPair(self.mu, self.steps, not self.mixed_first)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the event {L > ε}."""
        sign = ">" if self.mixed_first else "<"
        at = epsilon if self.mixed_first else -epsilon
        return f"the outputs with (1/{self.steps})*sum(exp(mu*z_j - mu^2/2)) {sign} exp({at})"
