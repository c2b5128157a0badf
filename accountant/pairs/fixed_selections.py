"""Several selections by the exponential mechanism whose scores are all fixed before the first one.

k releases have losses in intervals of length t, and no pair (P_i, Q_i) depends on what was selected
(Dong, Durfee and Rogers 2020). Which ones have the largest H(ε) is known. With z = e^ε:

*Two outcomes.* H = E_Q[(Π r_i − z)⁺], r_i = P_i/Q_i, is convex in each r_i: moved to the ends of
its interval, with the same mean 1, it makes H no smaller. So a release has the losses s_i and
s_i − t, 0 ≤ s_i ≤ t, the former with the Q-probability q_i = (y_i − c)/(1 − c), y_i = e^{−s_i},
c = e^{−t}.

*Equal ones.* Let Σ s_i be fixed. Where n releases have their lower losses, Π r_i = u c^n with one
u, whichever they are, so that H = E_Q[h(n)], h(n) = (u c^n − z)⁺. Here

    c h(n) + h(n + 2) ≥ (1 + c) h(n + 1):

where h(n + 1) > 0, with equality but for the ⁺ of h(n + 2). Let g_j be the mean of h if j of the
releases 1 and 2 have their lower losses, over what the others have. These satisfy it too, and

    H = g_2 + (q_1 + q_2)(g_1 − g_2) + q_1 q_2 (g_0 − 2g_1 + g_2).

As y_1 y_2 is fixed, that is affine in y_1 + y_2, its slope g_1 − g_2 − c(g_0 − g_1) ≤ 0 times
(1 − c)⁻². The sum is least at s_1 = s_2. So of all s with the largest H those with the least Σ s_i²
are equal.

*Which ones.* Let all losses be t − a and −a, R the number of the former, with the probabilities
p = (1 − e^{−a})/(1 − c) under P and q = p e^{a−t} under Q; 1 − q = (1 − p)e^a. H is the largest
P(R ≥ i) − z Q(R ≥ i), whose derivative in a is e^{−a} − z e^{ka−it} times a positive factor: it
rises up to a_i = (it − ε)/(k + 1), and falls from there. Let ε ≥ 0. At a = 0 and a = t it is not
positive, for i ≥ 1; so

    δ(ε) = max over ε/t < i ≤ k of Σ_{r ≥ i} P(R = r)(1 − e^{−a_i − (r−i)t}) at a = a_i,

as the loss rt − ka_i is ε + a_i + (r − i)t: finitely many sums of positive numbers. For ε < 0, P
and Q change places with a and t − a, so that H(ε) = 1 − z + z H(−ε).

The ratios of P(R = r) fall. So sums are cut where a geometric series bounds the rest; and one with
the ratio ρ < 1 of its first two is at most P(R = i) Σ_j ρ^j (1 − e^{−a_i − jt}), which leaves out
most i.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, final

from flint import arb

from dpassay.accountant.composition.invert import chernoff_epsilon, rough_root
from dpassay.accountant.core.pair import Tails
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.bounded_range import Selections

MOST_FIXED = 2000
"""Releases of which all sums are bounded, about a second for an ε(δ): more take longer."""
_QUICK, _ENOUGH = 64, 30
"""Bits of balls, and of sums, that leave out i: those that are nearer ties are summed again."""
_CLOSE = 1e-7
"""Relative size of the last step of an estimate: the next one would be its square."""
_EVERY = 8
"""Terms of a sum after which its rest is bounded: that takes longer than a term."""


@final
@dataclass(frozen=True)
class _Equal:
    """k releases with the losses t − a and −a at a = a_i, as balls: the event R ≥ i."""

    count: int
    i: int
    t: arb
    a: arb
    p: arb
    rest: arb
    """1 − p."""

    @staticmethod
    def of(length: ExactReal, count: int, i: int, epsilon: ExactReal) -> _Equal:
        """Return those that are worst at ε."""
        t, z = length.ball(), epsilon.ball()
        a, s = (i * t - z) / (count + 1), ((count + 1 - i) * t + z) / (count + 1)
        whole = -(-t).expm1()
        return _Equal(count, i, t, a, -(-a).expm1() / whole, (-t).exp() * s.expm1() / whole)

    def ratio(self, r: int) -> arb:
        """Return P(R = r + 1)/P(R = r)."""
        return self.p / self.rest * (self.count - r) / (r + 1)

    def first(self) -> arb:
        """Return P(R = i)."""
        ways = arb(math.comb(self.count, self.i))
        return ways * self.p**self.i * self.rest ** (self.count - self.i)

    def bound(self) -> arb:
        """Return what P(R ≥ i) − z Q(R ≥ i) does not exceed."""
        ratio, c = self.ratio(self.i), (-self.t).exp()
        if not ratio < 1:
            return arb(1)
        found = ratio * ((-self.a).exp() - c) - (-self.a).expm1()
        return (self.first() * found / ((1 - ratio) * (1 - ratio * c))).upper()

    def excess(self, bits: int) -> arb:
        """Return P(R ≥ i) − z Q(R ≥ i), of a sum to so many bits."""
        odds, term, weight = self.p / self.rest, self.first(), -(-self.a).expm1()
        c, more = (-self.t).exp(), (-self.a).exp() * -(-self.t).expm1()
        total, enough = term * weight, arb(2) ** -bits
        for r in range(self.i, self.count):
            ratio = odds * (self.count - r) / (r + 1)
            term *= ratio
            if (r - self.i) % _EVERY == 0 and ratio < 1:
                left = (term / (1 - ratio)).upper()
                if left < total * enough:
                    return total + arb(0).union(left)
            weight += more  # to 1 − e^{−a − (r + 1 − i)t}, without cancellation
            more *= c
            total += term * weight
        return total

    def tails(self) -> Tails:
        """Return those of R ≥ i and R < i."""
        q = self.p * (self.a - self.t).exp(), self.rest * self.a.exp()
        return Tails(*self._sides(self.p, self.rest), *self._sides(*q))

    def _sides(self, p: arb, rest: arb) -> tuple[arb, arb]:
        sums, term = [arb(0), arb(0)], rest**self.count
        for r in range(self.count + 1):
            sums[r < self.i] += term
            term *= p / rest * (self.count - r) / (r + 1)
        return sums[0], sums[1]


@lru_cache(maxsize=256)
def _largest(length: ExactReal, count: int, epsilon: ExactReal) -> tuple[int, ...]:
    """Return all i whose sum may be the largest for 0 ≤ ε < kt, first the one that seems to be."""
    with ctx.workprec(_QUICK):
        least = math.floor(epsilon / length) + 1
        equal = [_Equal.of(length, count, i, epsilon) for i in range(least, count + 1)]
        asked = sorted(((one.bound(), one) for one in equal), key=lambda entry: -entry[0])
        best, found = arb(0), []
        for bound, one in asked:
            if bound < best:
                break
            value = one.excess(_ENOUGH)
            best = best.max(value.lower())
            found.append((value, one.i))
        found.sort(key=lambda entry: -entry[0].mid())
        return tuple(i for value, i in found if not value < best)


@final
@dataclass(frozen=True)
class FixedSelections(Selections):
    """All pairs of `count` selections whose losses lie in intervals of length t, fixed in advance.

    H is exact. But no one pair is worst at every ε, and events of different pairs cannot be mixed:
    a trade-off function has two ends. Divergences are those of adaptive selections: they add up,
    and each is the largest for one s.
    """

    law_name = "fixed-selections"
    only_bounded: ClassVar = True

    def excess(self, epsilon: ExactReal) -> arb:
        """Return the largest of the sums."""
        found = arb(0)
        for i in self._largest(epsilon):
            found = found.max(_Equal.of(self.length, self.count, i, epsilon).excess(ctx.prec))
        return found

    def _largest(self, epsilon: ExactReal) -> tuple[int, ...]:
        beyond = epsilon >= self.exact_max_loss()
        return () if beyond else _largest(self.length, self.count, epsilon)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of the pair that is worst at ε."""
        if epsilon.sign < 0:
            return self.tails(-epsilon).reflected
        for i in self._largest(epsilon):
            return _Equal.of(self.length, self.count, i, epsilon).tails()
        return Tails(arb(0), arb(1), arb(0), arb(1))

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return it by secants of H, from where divergences bound it; None where these fail."""
        start = chernoff_epsilon(self, log_delta)
        with contextlib.suppress(ArithmeticError, UndecidedError):
            if start is not None:
                return rough_root(self.hockey_stick, log_delta, start, _CLOSE)
        return None

    def describe_event(self, epsilon: ExactReal) -> str:
        """Say how often the candidate that rises is selected, and its loss."""
        return (
            f"of {self.count} selections between the same two candidates, those with a loss above "
            f"{epsilon} in all"
        )
