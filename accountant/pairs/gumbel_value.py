"""The largest score with Gumbel noise, and which it is: index and value, exactly.

In units of the noise, let S = Σ e^{u_i}. The index i and w = e^{−value} are independent, and their
density is e^{u_i} e^{−Sw}: the first event of independent clocks, of rates e^{u_i}. Between
neighbours r_i = e^{u_i − u′_i} lies in [e^l, e^h], where h − l is how far two scores move against
each other. With S = 1 (a shift of all scores) and S′ = Σ e^{u′_i} given, q_i = e^{u′_i}/S′ are
weights with Σ q_i r_i = 1/S′, and

    H(ε) = Σ q_i ∫ S′ (r_i e^{−w} − e^ε e^{−S′w})⁺ dw

is a mean of a convex function of r_i. So it is largest where each r_i is e^l or e^h: a share p of
the first law rises against the second, S′ = pe^{−h} + (1 − p)e^{−l}, and two candidates attain it.
With A = e^{ε − r} and w₀ = ln A/(S′ − 1) the integral of (e^{−w} − A e^{−S′w})⁺ is

    e^{−w₀}(1 − 1/S′) for S′ > 1, A > 1;  1 − A/S′ for S′ > 1, A ≤ 1;
    0 for S′ < 1, A ≥ 1;  1 − A/S′ − e^{−w₀}(1 − 1/S′) for S′ < 1, A < 1.

It grows with S′, which falls as p grows: over p in [p₀, p₁] H is at most the larger one of those of
p₀ and p₁ with the S′ of p₀. Floats say which cells are worth halving, and where H is largest; balls
bound it. The loss ln r + (S′ − 1)w has no end, and neither has D_a for large a.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, final

from flint import arb

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.pair import MirroredPair, Tails
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.two_ends import inverse_between, narrow_enough

_ODDS = tuple(Fraction(2) ** i * (1 + Fraction(j, 8)) for i in range(-40, 41) for j in range(8))
"""Odds of p that are tried: a certificate names the best of them."""
_SHARES = tuple(odds / (1 + odds) for odds in _ODDS)
_SHARES_ABOUT = np.array([float(p) for p in _SHARES])
_FLOATS = 1e-9
"""By how much, relative to it, a bound in floats may be too small for balls."""
_NEAR, _MOST_CELLS = 1e-4, 1500
"""Relative distance of both ends, and cells after which they stay farther apart."""
_TRIED = 3
"""Places of about the largest H, of which balls choose one."""
_BITS = 96
"""Of every number."""
_ASIDE = arb(2) ** -60
"""How far S′ is moved where it may be 1."""
_FARTHEST = 600
"""Distance from which on no ε is looked for: it is of the size of e^t, beyond floats."""

Range = tuple[arb, arb]
"""l and h."""
Cell = tuple[Fraction, Fraction]
"""Shares p₀ and p₁."""


def _integral(log_a: arb, s: arb) -> arb:
    """Return the integral of (e^{−w} − A e^{−S′w})⁺, S′ different from 1."""
    moved = (-(log_a / (s - 1)).max(arb(0))).exp() * (1 - 1 / s)
    plain = 1 - log_a.exp() / s
    if s > 1:
        return moved if log_a > 0 else plain if log_a <= 0 else moved.union(plain)
    return arb(0) if log_a >= 0 else (plain - moved).max(arb(0))


def _unit(ends: Range, epsilon: arb) -> float:
    """Return about ln H where that is beyond floats: of one candidate far above the others."""
    falls, rises = ends
    return float(-(epsilon - rises).max(arb(0)) / (-falls).expm1()) if falls < 0 else 0.0


@final
@dataclass(frozen=True)
class GumbelValuePair(MirroredPair):
    """The largest of the profiles of all pairs of scores that move by at most t, in that unit."""

    law_name = "gumbel-value"

    distance: ExactReal
    monotone: bool

    only_bounded: ClassVar = True

    def _ranges(self) -> Iterator[Range]:
        t = self.distance.ball()
        if self.monotone:
            yield arb(0), t
            yield -t, arb(0)
        else:
            yield -t, t

    def _sum(self, ends: Range, p: Fraction) -> arb:
        """Return S′."""
        low, high = ends
        s = ball(p) * (-high).exp() + ball(1 - p) * (-low).exp()
        return s if s > 1 or s < 1 else (s + _ASIDE).upper()

    def _at(self, ends: Range, epsilon: arb, cell: Cell) -> arb:
        """Return an upper bound over a cell, or H at a point."""
        s = self._sum(ends, cell[0])
        if cell[0] == cell[1] and s.is_exact():  # moved aside: no bound from below
            return arb(0)
        falls, rises = (_integral(epsilon - moved, s) for moved in ends)
        first, last = (ball(1 - p) * falls + ball(p) * rises for p in cell)
        return first.max(last)

    def _about(self, ends: Range, epsilon: arb, low: Array, high: Array) -> Array:
        """Return the same of many cells, in floats, over e^`_unit`."""
        (falls, rises), e, unit = map(float, ends), float(epsilon), _unit(ends, epsilon)
        with np.errstate(all="ignore"):  # what is not finite is 0 here: balls have the last word
            more = low * np.expm1(-rises) + (1 - low) * np.expm1(-falls)  # S′ − 1
            more = np.where(more == 0, float(_ASIDE), more)
            parts = []
            for a in (e - falls, e - rises):
                moved = np.exp(-np.abs(a / more) - unit) * more / (1 + more)
                plain = np.exp(-unit) * (more - np.expm1(a)) / (1 + more)
                below = np.maximum(plain - moved, 0) if a < 0 else 0 * more
                parts.append(np.where(more > 0, moved if a > 0 else plain, below))
            values = [(1 - p) * parts[0] + p * parts[1] for p in (low, high)]
            return np.asarray(np.nan_to_num(np.maximum(*values), neginf=0.0))

    @lru_cache(maxsize=256)  # noqa: B019  # pairs are small
    def _best(self, epsilon: ExactReal) -> tuple[arb, int, Fraction]:
        """Return the largest H at a place that is tried, the range, and p."""
        found, e = (arb(-1), 0, Fraction(1, 2)), epsilon.ball()
        with ctx.workprec(_BITS):
            for which, ends in enumerate(self._ranges()):
                about = self._about(ends, e, _SHARES_ABOUT, _SHARES_ABOUT)
                for place in np.sort(np.argsort(-about, kind="stable")[:_TRIED]):
                    p = _SHARES[place]
                    here = self._at(ends, e, (p, p))
                    if here > found[0]:
                        found = here, which, p
        return found

    def _lower(self, epsilon: ExactReal) -> arb:
        with ctx.workprec(_BITS):
            least = -epsilon.ball().expm1() if epsilon.sign < 0 else arb(0)
            return self._best(epsilon)[0].lower().max(least)

    def _upper(self, epsilon: ExactReal) -> arb:
        """Return the largest bound of all cells, halved until it is near the lower end."""
        with ctx.workprec(_BITS):
            e = epsilon.ball()
            most = enough = self._lower(epsilon) * (1 + _NEAR)
            for ends in self._ranges():
                wanted = float(enough * (-arb(_unit(ends, e))).exp())
                for cell in self._cells(ends, e, wanted):
                    most = most.max(self._at(ends, e, cell).upper())
            return most

    def _cells(self, ends: Range, epsilon: arb, enough: float) -> Iterator[Cell]:
        """Return cells that cover all shares, of which floats say that they are small enough."""
        low, high, made = np.zeros(1), np.ones(1), 0
        while len(low):
            wide = self._about(ends, epsilon, low, high) > enough * (1 - _FLOATS)
            middle = (low + high) / 2
            wide &= (low < middle) & (middle < high) & (made + 2 * wide.sum() < _MOST_CELLS)
            made += len(low) - int(wide.sum())
            for left, right in zip(low[~wide].tolist(), high[~wide].tolist(), strict=True):
                yield Fraction(left), Fraction(right)
            low, high = (
                np.concatenate(each)
                for each in ((low[wide], middle[wide]), (middle[wide], high[wide]))
            )

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball around both ends."""
        return self._lower(epsilon).union(self._upper(epsilon))

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ) by where both bounds pass δ; UndecidedError where that is too wide."""
        why, t = "the worst scores are found to few digits", self.distance.ball()
        if not t < _FARTHEST:
            least = enclose(lambda: arb.log1p(-delta.ball())).lower
            return narrow_enough(Interval(least, Decimal("Infinity")), relative_width, why)
        # one candidate far above the others shows δ there
        alone = float(t.expm1() * (-(-t).expm1() / delta.ball()).log() - t)
        step = Fraction(max(alone, float(t) / 4))
        return inverse_between((self._lower, self._upper), delta, step, relative_width, why)

    def at_most(self, epsilon: ExactReal) -> arb:
        """Return the upper end."""
        return self._upper(epsilon)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of the event of the place that shows most."""
        _, which, p = self._best(epsilon)
        return self.tails_of_share(which, p, epsilon.ball())

    def of_share(self, which: int, p: Fraction) -> tuple[arb, arb, arb]:
        """Return l, h and S′ where a share p of the first law rises."""
        ends = [*self._ranges()][which]
        return (*ends, self._sum(ends, p))

    def tails_of_share(self, which: int, p: Fraction, epsilon: arb) -> Tails:
        """Return those of its loss."""
        *ends, s = self.of_share(which, p)
        if s.is_exact():  # moved aside
            some = arb(0).union(arb(1))
            return Tails(some, some, some, some)
        above, below = [arb(0)] * 2, [arb(0)] * 2
        for share, moved in zip((ball(1 - p), ball(p)), ends, strict=True):
            start = ((epsilon - moved) / (s - 1)).max(arb(0))
            sides = (-start).exp(), (-s * start).exp()
            rest = -(-start).expm1(), -(-s * start).expm1()
            if s < 1:
                sides, rest = rest, sides
            scale = share, share * (-moved).exp() / s
            above = [x + c * y for x, c, y in zip(above, scale, sides, strict=True)]
            below = [x + c * y for x, c, y in zip(below, scale, rest, strict=True)]
        return Tails(above[0], below[0], above[1], below[1])

    def renyi(self, order: arb) -> arb:
        """Raise NotApplicableError: orders from some one on have none."""
        raise NotApplicableError("The divergence of some orders is infinite. Ask for delta.")

    def kullback_leibler(self) -> arb:
        """Raise NotApplicableError."""
        return self.renyi(arb(1))

    def closed_rho(self) -> arb:
        """Return ∞."""
        return arb.pos_inf()

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the candidates that rise."""
        return (
            f"a candidate that has a share of {float(self._best(epsilon)[2]):.6g} under P rises "
            "against the others, and the value is on the side where P is the larger one"
        )
