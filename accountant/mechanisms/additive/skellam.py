"""Skellam noise: the difference of two Poisson variables."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from flint import arb

from dpassay.accountant.core.description import declared
from dpassay.accountant.core.pair import ProfileOnly, ReflectedPair, Tails
from dpassay.accountant.core.validate import Integer, Positive
from dpassay.accountant.errors import UndecidedError, expected
from dpassay.accountant.mechanisms.additive.added_integers import LogConcaveIntegers
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx

_LARGEST = 10**6
"""Variances: masses of more are too many to list, 13 standard deviations of them."""
_GUARD = 64
"""Bits beyond the precision of a question: sums lose few."""
_MOST_ADDED = 4096
"""Masses beyond those listed that are added up one by one."""
_FARTHEST = 1 << 40
"""Outcomes beyond it are not looked at: no chance that anyone asks for is so small."""
_MOST_BITS = 4096
"""Precision up to which a loss is told from ε."""


@final
class Masses:
    """P(X = k) = e^{−v} I_k(v) and P(X ≥ k) for 0 ≤ k ≤ N, where what is beyond N is tiny.

    X is a sum of variables whose laws are log-concave, so its law is: P(X = k + 1)/P(X = k) falls.
    With this ratio r < 1 at N, what is beyond N is at most P(X = N) r/(1 − r). Below N the masses
    follow from I_{k−1} = I_{k+1} + (2k/v) I_k, a sum of positive terms.
    """

    def __init__(self, variance: ExactReal, bits: int) -> None:
        v = self._v = variance.ball()
        size = 8 + 4 * math.isqrt(math.ceil(variance))
        while True:
            last, beyond = self.mass(size), self.mass(size + 1)
            if beyond < last and beyond / (1 - beyond / last) < arb(2) ** (-bits):
                break
            size += size // 2
        self.masses = [beyond, last]
        for k in range(size, 0, -1):
            self.masses.append(self.masses[-2] + 2 * k / v * self.masses[-1])
        self.masses = self.masses[:0:-1]
        total = arb(0).union(beyond / (1 - beyond / last))
        self.tails = [total]
        for mass in reversed(self.masses):
            total += mass
            self.tails.append(total)
        self.tails.reverse()  # N + 2 entries, the last one of what is beyond N

    def mass(self, k: int) -> arb:
        """Return P(X = ±k)."""
        return self._v.bessel_i(arb(k), scaled=True)

    def at(self, k: int) -> arb:
        """Return P(X = k), listed or not."""
        k = abs(k)
        return self.masses[k] if k < len(self.masses) else self.mass(k)

    def at_least(self, k: int) -> arb:
        """Return P(X ≥ k)."""
        if k <= 0:
            return 1 - self.at_least(1 - k)
        if k < len(self.masses):
            return self.tails[k]
        total, mass, after = arb(0), self.mass(k), self.mass(k + 1)
        for further in range(k + 2, k + 2 + _MOST_ADDED):
            total, rest = total + mass, (after / (1 - after / mass)).upper()
            if rest < total * arb(2) ** -ctx.prec:
                break
            mass, after = after, self.mass(further)
        return total + arb(0).union(rest)


@lru_cache(maxsize=16)
def _listed(variance: ExactReal, bits: int) -> Masses:
    with ctx.workprec(bits + _GUARD):
        return Masses(variance, bits)


def _masses(variance: ExactReal) -> Masses:
    return _listed(variance, ctx.prec)


@lru_cache(maxsize=16)
def _losses(variance: ExactReal, shift: int) -> tuple[float, ...]:
    """Return about the losses of the outcomes from ⌊s/2⌋ + 1 on that are listed."""
    known = _listed(variance, _GUARD)
    start = shift // 2 + 1
    return tuple(
        float((known.at(z - shift) / known.at(z)).log().mid())
        for z in range(start, len(known.masses))
    )


@final
@dataclass(frozen=True)
class SkellamPair(ReflectedPair, ProfileOnly):
    """P = the law of X + s, Q = the law of X, for an integer s ≥ 1.

    L(z) = ln P(X = z − s)/P(X = z) does not fall in z, as the law is log-concave: {L > ε} is
    {z ≥ m}, and H(ε) = P(X ≥ m − s) − e^ε P(X ≥ m). L(s − z) = −L(z), and L is 0 at z = s/2 alone.
    Reflection z → s − z exchanges P and Q.
    """

    law_name = "skellam"
    refusal = (
        "Of Skellam noise no Rényi or Kullback–Leibler divergence is enclosed. Ask for delta, "
        "epsilon or the trade-off function."
    )

    variance: ExactReal
    shift: int

    def _cut(self, epsilon: ExactReal) -> int | None:
        """Return the least integer m with L(m) > ε ≥ 0; None where it is too far out.

        Raises UndecidedError where the precision does not tell a loss from ε.
        """
        start, last = self.shift // 2 + 1, len(_masses(self.variance).masses) - 1
        if epsilon.sign == 0:
            return start
        low, high = start - 1, max(start, last)  # L(low) ≤ 0 < ε
        while not self._above(high, epsilon):
            low, high = high, 2 * high
            if high > _FARTHEST:
                return None
        if high <= last:
            losses = _losses(self.variance, self.shift)
            guess = min(start + bisect_right(losses, float(epsilon)), last)
            if guess > start and not self._above(guess - 1, epsilon):
                low = guess - 1
            if self._above(guess, epsilon):
                high = guess
        between = range(low + 1, high)
        return low + 1 + bisect_left(between, True, key=lambda z: self._above(z, epsilon))

    def _above(self, z: int, epsilon: ExactReal) -> bool:
        """Whether L(z) > ε."""
        bits = max(ctx.prec, _GUARD)
        while bits <= _MOST_BITS:
            with ctx.workprec(bits + _GUARD):
                known = _listed(self.variance, bits)
                first, second = known.at(z - self.shift), known.at(z) * epsilon.ball().exp()
                if first > second:
                    return True
                if first < second:
                    return False
            bits *= 2
        raise UndecidedError(
            f"Whether the loss at {z} exceeds epsilon={epsilon} is not told.", reached=math.inf
        )

    def excess(self, epsilon: ExactReal) -> arb:
        """Return P(X ≥ m − s) − e^ε P(X ≥ m)."""
        with ctx.workprec(ctx.prec + _GUARD):
            above = self.tails(epsilon)
            value = above.p_above - epsilon.ball().exp() * above.q_above
            if self._cut(epsilon) is None:
                value = arb(0).union(above.p_above)
        return +value

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the masses on both sides of m; those beyond the list where m is too far.

        Reflection exchanges {L > ε} under P with {L < −ε} under Q, where no loss is −ε.
        """
        if epsilon.sign < 0:
            return self.tails(-epsilon).reflected
        m, s, known = self._cut(epsilon), self.shift, _masses(self.variance)
        if m is None:
            last = len(known.masses) - 1
            p, q = (arb(0).union(known.at_least(last + 1 - d)) for d in (s, 0))
            return Tails(p, 1 - p, q, 1 - q)
        return Tails(
            p_above=known.at_least(m - s),
            p_below=known.at_least(s + 1 - m),
            q_above=known.at_least(m),
            q_below=known.at_least(1 - m),
        )

    def bound(self, epsilon: ExactReal) -> arb:
        """Return the end of H(ε): of outcomes far beyond the list a bound is all that is known."""
        return self.hockey_stick(epsilon).upper().max(arb(0))

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the half-line {L > ε}."""
        sign, size = ("at most", -epsilon) if epsilon.sign < 0 else ("at least", epsilon)
        m = self._cut(size)
        place = "far out" if m is None else m if epsilon.sign >= 0 else self.shift - m
        outside = "all but outcomes" if epsilon.sign < 0 else "outcomes"
        return (
            f"{outside} {sign} {place} above the true answer under Q "
            f"(the true answer under P is {self.shift} higher)"
        )


@declared
class Skellam(LogConcaveIntegers):
    """Release a true integer plus X = A − B, independent Poisson variables of mean v/2 each.

    P(X = k) = e^{−v} I_k(v) (Skellam 1946). Sums of such noise are such noise, of the sum of the
    variances: several parties may each add a share (Agarwal, Kairouz and Liu 2021).

    Parameters
    ----------
    variance
        v > 0, at most 10⁶.
    sensitivity
        The largest distance, an integer ≥ 1, between the true answers on two neighbours.

    Notes
    -----
    The full shift is worst, as for `DiscreteGaussian`: the law is log-concave, since Poisson laws
    are and sums keep it. More variance is more noise: X and independent noise of the rest.
    """

    example = "Skellam(variance=9)"

    noise_argument = "variance"

    variance: Positive = Positive()
    sensitivity: Integer = Integer(1, least=1)

    def __post_init__(self) -> None:
        if self.variance > ExactReal.of_rational(_LARGEST):
            raise expected("variance", self.variance, f"≤ {_LARGEST}", "Its masses are listed.")

    def pair(self) -> SkellamPair:
        """Return the laws of X + sensitivity and X."""
        return SkellamPair(self.variance, self.sensitivity)

    def mean_absolute_error(self) -> arb:
        """Return E|X| = v e^{−v}(I_0(v) + I_1(v)): k I_k(v) = v(I_{k−1}(v) − I_{k+1}(v))/2."""
        known = _masses(self.variance)
        return self.variance.ball() * (known.at(0) + known.at(1))

    def probability_exact(self) -> arb:
        """Return P(X = 0)."""
        return _masses(self.variance).at(0)

    def variances(self) -> list[arb]:
        """Return [v]."""
        return [self.variance.ball()]

    def at_most(self, x: int) -> arb:
        """Return P(X ≤ x) = P(X ≥ −x)."""
        return _masses(self.variance).at_least(-x)
