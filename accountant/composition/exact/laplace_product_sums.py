"""Tails and hockey-stick divergences of products of Laplace laws, by exact sums.

Tilting by e^{l/2} makes every coordinate symmetric: dP = e^{l/2} dm and dQ = e^{−l/2} dm, and the
two-sided Laplace transform of m is e^{−T/2} Φ(s), T = Σ t_i, with

    Φ(s) = Π (C_i + S_i/(2s)),   C_i = cosh(t_i s), S_i = sinh(t_i s).

The powers of 1/(2s) count the coordinates that are between their two atoms: Φ = Σ_m Φ_m, Φ_m ≥ 0
the transform of a measure. What is asked for is ∫_{l > ε} of e^{l/2}, e^{−l/2}, or e^{(l−ε)/2} −
e^{(ε−l)/2} times e^{ε/2}; each is (1/2πi) ∫ e^{−sε} Φ(s)/κ(s) ds with κ = s − ½, s + ½, s² − ¼.

*The terms m < M exactly.* Φ_m is 2^{−d} (2s)^{−m} Σ_J w_m(J) e^{Js}, w_m(J) the coefficient of y^m
in the sum, over the sign choices with Σ ±t_i = J, of (1 + y)^{plus signs} (1 − y)^{minus signs}.
With z = (J − ε)/2 the function of e^{Js} (2s)^{−m}/κ is, for J > ε and 0 elsewhere,

    s − ½:  Σ_{i ≥ m} z^i/i!,     s + ½:  (−1)^m Σ_{i ≥ m} (−z)^i/i!,     s² − ¼:  their difference,

so that a jump J contributes an exponential and a polynomial of degree < M in z. Up to two dozen
coordinates that all differ the signs are taken apart
(`accountant.composition.exact.laplace_product_sums`).

*The terms m ≥ M* add at least 0, and at most Φ_{≥M}(c) e^{−cε} sup_y e^{−cy} k(y), k the function
that is integrated. As m is a sum of independent indicators under the tilt c, Φ_{≥M}(c)/Φ(c) is a
tail of it, which Chernoff's inequality bounds: M is the least for which that does not matter.

The exact terms of a product of Laplace laws with many different shifts: sums over two halves.

Every sum J of signed shifts is J₁ + J₂, of the signs of two halves of the coordinates, and its
weights are Σ_m w_m(J) y^m = w(J₁; y) w(J₂; y). With z = a + b, a = (J₁ − ε)/2 and b = J₂/2, the
function that a jump J > ε contributes for y^m
(`accountant.composition.exact.laplace_product_sums`) is

    α e^z + β_m e^{−z} − Σ_{r<m} γ_{m,r} z^r/r!,

so that a sum over all J₂ > ε − J₁ takes the sums of w_j(J₂) e^{±b} and of w_j(J₂) b^q alone. While
J₁ grows more J₂ count, and these few sums are kept.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TypeAlias, final

from flint import arb, arb_poly, fmpz, fmpz_poly

from accountant.composition.exact.laplace_product_plan import (
    MAX_TERMS,
    Groups,
    Kernel,
    Plan,
    choose,
    split,
    too_long,
)
from accountant.errors import UndecidedError
from accountant.numbers.chernoff import log_peak
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import START_PRECISION, asked_width
from accountant.numbers.precision import ctx

Weights: TypeAlias = Mapping[int, fmpz_poly]
"""Jumps, and Σ_m w_m y^m of each."""


def sum_of_halves(
    halves: tuple[Weights, Weights],
    parts: int,
    where: tuple[ExactReal, ExactReal, int],
    kernel: Kernel,
) -> arb:
    """Return the sum over all J₁ + J₂ > bar of the terms m < parts.

    Parameters
    ----------
    halves
        The jumps of both halves with their weights.
    parts
        M, the number of terms.
    where
        The unit of the jumps, ε, and the bar in units.
    kernel
        Which of the three functions.
    """
    (first, second), (unit, epsilon, bar) = halves, where
    half, eps = unit.ball() / 2, epsilon.ball() / 2
    waiting = sorted(second.items(), reverse=True)
    rising, falling = [arb(0)] * parts, [arb(0)] * parts
    powers = [arb_poly()] * parts
    total, taken = arb(0), 0
    for jump, weights in sorted(first.items()):
        while taken < len(waiting) and waiting[taken][0] + jump > bar:
            place, others = waiting[taken]
            taken += 1
            b = place * half
            up = b.exp()
            down, series = 1 / up, arb_poly(_series(b, parts - 1))
            for j, weight in enumerate(_balls(tuple(others.coeffs()))):
                rising[j] += weight * up
                falling[j] += weight * down
                powers[j] += weight * series
        if taken:
            plan = _factors(tuple(weights.coeffs()), parts, kernel)
            total += _term(plan, jump * half - eps, (rising, falling, powers))
    return total


@lru_cache(maxsize=256)
def _balls(weights: tuple[fmpz, ...]) -> tuple[arb, ...]:
    return tuple(map(arb, weights))


def _series(x: arb, length: int) -> list[arb]:
    """Return x^n/n!, n < length."""
    found = [arb(1)]
    for n in range(1, length):
        found.append(found[-1] * x / n)
    return found


Table: TypeAlias = tuple[list[arb], list[arb], list[arb_poly]]
"""What is multiplied by the sums of w_j e^b and of w_j e^{−b}; and Σ_r g_{j,r} y^{M − 2 − r}."""


@lru_cache(maxsize=256)
def _factors(weights: tuple[fmpz, ...], parts: int, kernel: Kernel) -> Table:
    """Return the factors that the weights w_i(J₁) give for j + i = m < M.

    Those of z^r/r! are g_{j,r} = Σ γ_{m,r} w_i over r < m < M.
    """
    rise, fall, rests = [], [], []
    for j in range(parts):
        kept = list(enumerate(weights[: parts - j], j))  # m, and w_i with i = m − j
        rise.append(arb(sum((w for _, w in kept), start=fmpz(0))))
        fall.append(arb(sum((-w if m % 2 else w for m, w in kept), start=fmpz(0))))
        rows = [
            sum((_gamma(kernel, m, r) * w for m, w in kept if m > r), start=fmpz(0))
            for r in range(parts - 1)
        ]
        rests.append(arb_poly([arb(g) for g in rows[::-1]]))
    zero = [arb(0)] * parts
    if kernel is Kernel.P:
        return rise, zero, rests
    return (zero, fall, rests) if kernel is Kernel.Q else (rise, [-f for f in fall], rests)


def _gamma(kernel: Kernel, m: int, r: int) -> int:
    mirrored = -1 if (m + r) % 2 else 1
    return {Kernel.P: 1, Kernel.Q: mirrored, Kernel.EXCESS: 1 - mirrored}[kernel]


def _term(factors: Table, a: arb, sums: tuple[list[arb], list[arb], list[arb_poly]]) -> arb:
    """Return what one J₁ contributes, beside the J₂ that are summed.

    z^r/r! is the coefficient of y^r in Σ a^n y^n/n! times Σ b^q y^q/q!.
    """
    (rise, fall, rests), (rising, falling, powers) = factors, sums
    up, last = a.exp(), len(rests) - 2
    grown = sum((f * s for f, s in zip(rise, rising, strict=True)), start=arb(0))
    fallen = sum((f * s for f, s in zip(fall, falling, strict=True)), start=arb(0))
    whole = sum((g * s for g, s in zip(rests, powers, strict=True)), start=arb_poly())
    total = sum((whole[last - n] * x for n, x in enumerate(_series(a, last + 1))), start=arb(0))
    return grown * up + fallen / up - total


Distances: TypeAlias = Sequence[tuple[arb, int]]
"""The t_i, and how many coordinates have each."""
_PRECISION_STEP = 128
"""The precision is rounded up to a multiple, so that questions share their tables."""
_SPARE_BITS = 12
"""Bits by which what is left out lies below the goal."""
_ROUNDS = 8
"""Times that the sum is formed anew for digits that cancelled: each adds what was missing."""
_MOST_WANTED = 1 << 15
"""Most bits that are asked for on the way, where nearly all digits cancel."""
_BARS = 32
"""Parts of the range of jumps to which a bar is rounded down, so that neighbouring ε share
tables."""
_PATIENCE, _LONG_PATIENCE = 2e6, 1e7  # microseconds
"""Microseconds up to which exact sums are preferred to a grid; and, for widths below `_FINE`, sums
over halves, which a grid does not replace."""
_FINE = Fraction(1, 10**8)
"""Relative width below which a grid hardly answers."""
_WIDE = Fraction(1, 10**10)
"""Relative width below which no other engine answers."""


def above(
    groups: Groups, unit: ExactReal, epsilon: ExactReal, kernel: Kernel, *, at_least: bool = False
) -> arb:
    """Return ∫ over l > ε (l ≥ ε if `at_least`) of P, of Q, or the hockey-stick divergence.

    Raises
    ------
    UndecidedError
        If the sums would be too long.
    """
    integral = _Integral(groups, unit, epsilon, kernel, at_least)
    goal = wanted = _goal()
    value = arb(0)
    for _ in range(_ROUNDS):
        plan = choose(groups, float(unit), float(epsilon), kernel, wanted + _SPARE_BITS)
        lost = plan.lost + 2 * integral.coordinates.bit_length()
        with ctx.workprec(-(-(wanted + lost + 24) // _PRECISION_STEP) * _PRECISION_STEP):
            value = integral.by(plan)
        if value.rel_accuracy_bits() > goal or value.is_zero():
            break
        short = goal - value.rel_accuracy_bits()
        wanted = min(wanted + max(short, 32) + 8, _MOST_WANTED)
    return +value


def is_short(groups: Groups, unit: ExactReal, epsilon: ExactReal, kernel: Kernel) -> bool:
    """Whether the sums are short enough; shorter ones if another engine meets the goal too."""
    asked = asked_width.get()
    if asked is not None and asked < _WIDE:
        return True  # they are the only way
    plan = _plan(groups, unit, epsilon, kernel)
    if plan is None or asked is None:
        return plan is not None
    return plan.cost < (_LONG_PATIENCE if plan.halved and asked < _FINE else _PATIENCE)


def is_possible(groups: Groups, unit: ExactReal, epsilon: ExactReal, kernel: Kernel) -> bool:
    """Whether the sums can be formed for the current goal."""
    return _plan(groups, unit, epsilon, kernel) is not None


def _plan(groups: Groups, unit: ExactReal, epsilon: ExactReal, kernel: Kernel) -> Plan | None:
    try:
        return choose(groups, float(unit), float(epsilon), kernel, _goal() + _SPARE_BITS)
    except UndecidedError:
        return None


def _goal() -> int:
    """Return the relative accuracy to reach in bits: the current precision, or what is asked for.

    Where more than the first precision of `enclose` was needed, so much more is reached.
    """
    asked = asked_width.get()
    if asked is None:
        return ctx.prec
    bits = (asked.denominator // asked.numerator).bit_length() + 2
    return min(ctx.prec, bits + 8 + max(0, ctx.prec - max(START_PRECISION, bits + 32)))


@final
@dataclass(frozen=True)
class _Integral:
    """∫ over l > ε (or ≥)."""

    groups: Groups
    unit: ExactReal
    epsilon: ExactReal
    kernel: Kernel
    at_least: bool

    @property
    def coordinates(self) -> int:
        """The number of coordinates."""
        return sum(count for _, count in self.groups)

    def by(self, plan: Plan) -> arb:
        """Return the sum of the plan, and what it leaves out."""
        distances = [(multiple * self.unit.ball(), count) for multiple, count in self.groups]
        top = sum((count * t for t, count in distances), start=arb(0))
        eps = self.epsilon.ball()
        total = self._of_halves(plan.parts) if plan.halved else self._exact(plan.parts)
        if plan.parts <= self.coordinates:
            total += _rest(distances, eps, self.kernel, plan)
        shift = -eps if self.kernel is Kernel.Q else eps
        return ((shift - top) / 2).exp() * total

    def _bar(self) -> tuple[int, int]:
        """Return the last jump in units that does not count, and a rounded one below it."""
        bar, on_grid = in_units(self.epsilon, self.unit)
        bar -= self.at_least and on_grid
        step = max(1, _reach(self.groups) // _BARS)
        return bar, bar // step * step

    def _of_halves(self, parts: int) -> arb:
        """Return the terms m < M, where all signs are too many."""
        bar, below = self._bar()
        first, second = split(self.groups)
        halves = (
            _half(first, parts, below - _reach(second)),
            _half(second, parts, below - _reach(first)),
        )
        where = self.unit, self.epsilon, bar
        return sum_of_halves(halves, parts, where, self.kernel) / fmpz(2) ** self.coordinates

    def _exact(self, parts: int) -> arb:
        """Return the terms m < M."""
        bar, below = self._bar()
        jumps, terms = _terms(self.groups, self.kernel, parts, below, ctx.prec)
        start = bisect_right(jumps, bar)
        half, eps, total = self.unit.ball() / 2, self.epsilon.ball() / 2, arb(0)
        growth, last, exponential = half.exp(), 0, (-eps).exp()
        for jump, (first, second, polynomial) in zip(jumps[start:], terms[start:], strict=True):
            exponential *= growth ** (jump - last)
            last = jump
            if self.kernel is not Kernel.Q:
                total += first * exponential
            if self.kernel is not Kernel.P:
                total += second / exponential
            total -= polynomial(jump * half - eps)
        return total / fmpz(2) ** self.coordinates


def _reach(groups: Groups) -> int:
    """Return the largest jump."""
    return sum(multiple * count for multiple, count in groups)


def in_units(epsilon: ExactReal, unit: ExactReal) -> tuple[int, bool]:
    """Return ⌊ε/unit⌋, and whether nothing was rounded."""
    ratio = epsilon / unit
    if ratio.rational is not None:
        floor = math.floor(ratio.rational)
        return floor, ratio.rational == floor
    root = math.isqrt(ratio.square.numerator // ratio.square.denominator)
    return (root if ratio.sign > 0 else -root - 1), False


@lru_cache(maxsize=8)
def _terms(
    groups: Groups, kernel: Kernel, parts: int, bar: int, precision: int
) -> tuple[list[int], list[tuple[fmpz, fmpz, arb_poly]]]:
    """Return the jumps above the bar, and for each the factors of e^z and e^{−z}, and a polynomial.

    They depend on the number of coordinates only, not on the unit: a calibration asks for the
    same ones at every step.
    """
    table = _weights(groups, parts, bar)
    falling = [math.factorial(parts - 1)]  # (M − 1)!/i!
    for i in range(1, parts):
        falling.append(falling[-1] // i)
    jumps, found = sorted(table), []
    with ctx.workprec(precision):
        scale = 1 / arb(falling[0])
        for jump in jumps:
            weights = table[jump].coeffs()
            signed = [-w if m % 2 else w for m, w in enumerate(weights)]
            upto, signed_upto = list(accumulate(weights)), list(accumulate(signed))
            first, second = upto[-1], signed_upto[-1]
            rest = [first - w for w in upto]  # Σ_{m > i} w_m
            mirrored = [w - second if i % 2 else second - w for i, w in enumerate(signed_upto)]
            if kernel is Kernel.EXCESS:
                rest = [a - b for a, b in zip(rest, mirrored, strict=True)]
                second = -second
            elif kernel is Kernel.Q:
                rest = mirrored
            scaled = [a * b for a, b in zip(rest, falling, strict=False)]
            found.append((first, second, arb_poly(scaled) * scale))
    return jumps, found


@lru_cache(maxsize=8)
def _weights(groups: Groups, parts: int, bar: int) -> dict[int, fmpz_poly]:
    """Return Σ_m w_m(J) y^m, m < M, of the jumps J above the bar."""
    table = {0: fmpz_poly([1])}
    left = _reach(groups)
    for multiple, count in groups:
        left -= multiple * count
        rows = _rows(count, parts, (max(table) + multiple * count + left - bar) // (2 * multiple))
        grown: dict[int, fmpz_poly] = {}
        for jump, weights in table.items():
            for minus, row in enumerate(rows):
                place = jump + (count - 2 * minus) * multiple
                if place + left <= bar:
                    break
                term = weights.mul_low(row, parts)
                grown[place] = grown[place] + term if place in grown else term
            if len(grown) * parts > MAX_TERMS:
                raise too_long(len(grown) * parts)
        table = grown
    return table


@lru_cache(maxsize=2)
def _half(groups: Groups, parts: int, bar: int) -> dict[int, fmpz_poly]:
    """Return the same for half of the coordinates; these tables are large."""
    return _weights.__wrapped__(groups, parts, bar)


def _rows(count: int, parts: int, last: int) -> list[fmpz_poly]:
    """Return C(n, k) (1 + y)^{n−k} (1 − y)^k, k = 0, …, min(n, last), up to y^{M−1}."""
    row = fmpz_poly([math.comb(count, m) for m in range(min(parts, count + 1))])
    step = fmpz_poly([1] + [-2 if i % 2 else 2 for i in range(1, parts)])  # (1 − y)/(1 + y)
    rows, ways = [], 1
    for k in range(min(count, last) + 1):
        rows.append(row * ways)
        ways = ways * (count - k) // (k + 1)
        row = row.mul_low(step, parts)
    return rows


def _rest(distances: Distances, eps: arb, kernel: Kernel, plan: Plan) -> arb:
    """Return a ball from 0 to Φ_{≥M}(c) e^{−cε} times the largest e^{−cy} k(y), y > 0."""
    c = arb(plan.line)
    peak = log_peak(c - arb("0.5")).exp() if kernel is Kernel.EXCESS else arb(1)
    return arb(0).union((_many(distances, c, plan.parts) * (-c * eps).exp() * peak).upper())


def _many(distances: Distances, c: arb, parts: int) -> arb:
    """Return Φ(c) P(m ≥ M), m a sum of independent indicators, by Chernoff."""
    log_phi, shares = arb(0), []
    for t, count in distances:
        cosh, sinh = (t * c).cosh(), (t * c).sinh() / (2 * c)
        log_phi += count * (cosh + sinh).log()
        shares.append((sinh / (cosh + sinh), count))
    mean = float(sum((count * share for share, count in shares), start=arb(0)))
    v = arb(max(parts / mean, 1.0))
    log_tail = -parts * v.log()
    for share, count in shares:
        log_tail += count * (share * (v - 1)).log1p()
    return (log_phi + log_tail.min(arb(0))).exp()
