"""Several epochs of random allocation, and Gaussian releases: one sum on a vertical line.

S = Σ k_i ln W_i + G under Q: W_i the mean of lognormal variables of a random allocation
(`dpassay.accountant.pairs.mean_lognormal`), G ~ N(−m/2, m) the loss of Gaussian releases, m = Σ k
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

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import acb, acb_mat, arb

from dpassay.accountant.core.pair import Tails
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.chernoff import rough_log_peak
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import (
    START_PRECISION,
    ball,
    within,
)
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.pairs.mean_lognormal import HALF, MOST_ORDER, MeanLognormal

_LOG_2 = math.log(2)
_USUAL_BITS = 66
"""Bits at flint's first precision: 42 of a usual width, as ε is relatively less certain than δ."""
_FIRST_LOST = 44
"""Bits that are lost at first: those of δ = 1e-12 and a few."""
_BLOCK = 32
"""Bits that are added at a time, at least."""
LEAST_BITS = 128
"""Bits at least: usual answers, bounds and estimates share a line."""
_STEPS = 3
"""Bits are rounded up to so many leading ones, so that questions share a line."""
_MOST_LOST = 500
"""Bits that a difference may lose."""
_ROUGH = 64
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
        with ctx.workprec(_ROUGH), within():
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

        with ctx.workprec(_ROUGH), within(), suppress(UndecidedError):
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
        block = max(_BLOCK, 1 << bits.bit_length() - _STEPS)
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
