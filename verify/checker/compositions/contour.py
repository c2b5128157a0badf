"""Profiles of compositions by a contour integral in balls.

L is a sum of independent losses with moment generating functions M_f(z) = E_P[e^{zL}; L < ∞].
For c > 0 and M = Π M_f^{k_f}, the integral (1/2πi) ∫ M(z) e^{−zε} K(z) dz over Re z = c is

    H(ε) for K = 1/(z(z + 1)),   P(L > ε) for K = 1/z,   e^ε Q(L > ε) for K = 1/(z + 1),

each without the mass of P where L = ∞. The trapezoidal sum of step h, cut off at |Im z| ≤ T, has
two errors besides those of M, which balls carry:

- Step. By Poisson summation the whole sum is Σ_n f(ε + nB) e^{ncB} with B = 2π/h, for each of the
  three functions f ≤ 1. Its terms are ≥ 0; those with n < 0 are at most e^{−|n|cB}, and those with
  n > 0 at most M(s) e^{−s(ε + nB) + ncB} for every s > c (Chernoff).
- End. Each factor bounds |M_f(c + it)| for all t ≥ T at once, by a function that decreases, and one
  of them its integral against dt/t, which for H(ε) alone may be against dt/t²; for the others the
  atoms of a loss may be taken apart.

Losses on one lattice b + uℤ, of which ℓ is the first point above ε, have a sum without an end: with
B = Nu for an odd N it is that over |n| < N/2, and with d = ℓ − ε

    P(L > ε) for K = k(z),   e^ε Q(L > ε) for K = k(z + 1),   k(z) = u e^{−zd}/(1 − e^{−zu}),

and the difference of both for H(ε).

The search for c, h and T is in floats and proves nothing: the bounds are evaluated for what it has
found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, TypeAlias, final

from flint import acb, arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.compositions.losses import (
    BITS,
    LN10,
    STRETCHES,
    Factors,
    Listed,
    log_moment,
    period,
    saddle,
    text,
)
from dpassay.verifier.checker.reals import UnknownError, ball

_TRIALS = ((40, 3_000_000), (20, 3_000_000), (12, 20_000_000))
"""Significant digits, and the most products of complex numbers for them."""
_GUARD = 80
"""Bits beyond those of the digits and the number of nodes."""
_OVERHEAD = 60
"""Work at a node besides that of its factors."""
_FINEST = 1_000_000
"""Most steps of the lattice in one difference of losses."""
_EXACT = Fraction(1, 10**50)
"""Of a difference of losses: a remainder below it is none."""
_TIE = Fraction(1, 10**80)
"""Of a step: a point of the lattice that is above ε by less is ε."""


class Answers(NamedTuple):
    """Enclosures of H(ε), P(L > ε) and Q(L > ε)."""

    hockey_stick: arb
    above_p: arb
    above_q: arb


Kernel: TypeAlias = Callable[[acb], tuple[acb, acb]]
"""Returns K of P(L > ε) and of e^ε Q(L > ε)."""


@final
@dataclass(frozen=True)
class _Plan:
    """What the search in floats has chosen."""

    digits: float
    """Of M(c) e^{−cε}, and of every factor for its part."""
    line: float
    step: float
    nodes: int
    beyond: float
    """s of the Chernoff bound."""
    heights: tuple[float, ...]
    work: float
    number: int = 0
    """N of a lattice, and its step."""
    unit: str = ""

    @property
    def width(self) -> arb:
        """The step h of the sum."""
        return 2 * arb.pi() / (self.number * arb(self.unit)) if self.number else arb(self.step)

    @property
    def bits(self) -> int:
        """The precision of its sum."""
        return max(int(self.digits / math.log10(2)), 0) + self.nodes.bit_length() + _GUARD


@lru_cache(maxsize=256)
def invert(factors: Factors, epsilon: str) -> Answers:
    """Enclose the three functions of ε, or H(ε) alone where no bound of the others is known.

    Raises
    ------
    UnknownError
        Where that would take too long.
    """
    for digits, most in _TRIALS:
        plan = _plan(factors, float(arb(epsilon)), digits, most)
        if plan is not None:
            with ctx.workprec(plan.bits):
                eps = arb(epsilon)
                over, alone = _beyond_end(factors, eps, plan)
                first = _summed(factors, epsilon, plan, _plain, over)
                if not alone.is_finite():
                    rest = bounded(factors, epsilon)
                else:
                    rest = _summed(factors, epsilon, plan, _plain, alone)
                return rest._replace(hockey_stick=first.hockey_stick)
    raise UnknownError("the law of this composition: its integral takes too long to recompute")


def _plain(z: acb) -> tuple[acb, acb]:
    """Return 1/z and 1/(z + 1)."""
    return 1 / z, 1 / (z + 1)


# The search.


def _plan(factors: Factors, eps: float, digits: int, most: int) -> _Plan | None:
    """Choose the line, the step and the end of the sum; None where it would be too long."""
    try:
        line, log_value = saddle(factors, eps)
        farthest = min(factor.farthest for factor, _ in factors)
        lines = dict.fromkeys(min(line * stretch, farthest) for stretch in STRETCHES)
        plans = [_along(factors, eps, (at, log_value), digits, most) for at in lines]
    except (OverflowError, ValueError, ZeroDivisionError):  # beyond the range of floats
        return None
    short = [plan for plan in plans if plan is not None and plan.work <= most]
    return min(short, key=lambda plan: plan.work, default=None)


def _line(factors: Factors, eps: float, goal: tuple[float, float], digits: int) -> _Plan:
    """Choose the step for one line, with an estimate of ln H(ε)."""
    c, log_value = goal
    log_height = log_moment(factors, c) - c * eps
    wanted = log_value - digits * LN10 - 3  # ln of the absolute error
    length, beyond = period(factors, eps, c, wanted)
    releases = sum(count for _, count in factors)
    asked = (log_height - wanted) / LN10 + math.log10(releases) + 2
    return _Plan(asked, c, 2 * math.pi / length, 0, beyond, (), math.inf)


def _along(
    factors: Factors, eps: float, goal: tuple[float, float], digits: int, most: int
) -> _Plan | None:
    """Choose the step and the end for one line; None where the sum would be too long."""
    plan = _line(factors, eps, goal, digits)
    c, step = plan.line, plan.step

    def fallen(end: float) -> float:
        caps = [factor.estimate_cap(c, end)[0] for factor, _ in factors]
        pairs = zip(factors, caps, strict=True)
        return sum(count * (factor.estimate(c) - cap) for (factor, count), cap in pairs)

    fall = plan.digits * LN10 - math.log(sum(count for _, count in factors))
    low, end = 0.0, 8 * step
    while fallen(end) < fall:
        low, end = end, 1.6 * end
        if end / step * _OVERHEAD > most:
            return None
    for _ in range(5):
        middle = (low + end) / 2
        low, end = (low, middle) if fallen(middle) >= fall else (middle, end)
    nodes = math.ceil(end / step)
    heights = tuple(factor.estimate_cap(c, nodes * step)[1] for factor, _ in factors)
    return _worked(factors, replace(plan, nodes=nodes, heights=heights))


def _worked(factors: Factors, plan: _Plan) -> _Plan:
    end = plan.nodes * plan.step
    cost = sum(factor.cost(plan.line, end, plan.digits) for factor, _ in factors)
    where = plan.line, plan.step, plan.nodes, plan.digits
    tables = sum(factor.table(*where) for factor, _ in factors)
    return replace(plan, work=plan.nodes * (_OVERHEAD + cost) + tables)


# The sum and its bounds.


def _summed(factors: Factors, epsilon: str, plan: _Plan, kernel: Kernel, over: arb) -> Answers:
    """Add up the nodes; what lies beyond the last of them is at most `over`."""
    eps, first, second = arb(epsilon), arb(0), arb(0)
    for z, value in _values(factors, epsilon, plan):
        one, other = kernel(z)
        first, second = first + (value * one).real, second + (value * other).real
    scale, ahead = plan.width / arb.pi(), _aliases(factors, eps, plan)
    sums = [scale * total for total in (first - second, first, second)]
    ends = [(total - over - ahead).union(total + over).max(arb(0)) for total in sums]
    mass = infinite_mass(factors)
    return Answers(ends[0] + mass, ends[1] + mass, ends[2] * (-eps).exp())


@lru_cache(maxsize=4)
def _values(factors: Factors, epsilon: str, plan: _Plan) -> list[tuple[acb, acb]]:
    """Return z and M(z) e^{−zε} at the nodes, half of it at the first."""
    c, step, eps = arb(plan.line), plan.width, arb(epsilon)
    rows = [(f.along(c, step, plan.nodes, plan.digits), count) for f, count in factors]
    found = []
    for n in range(plan.nodes + 1):
        z = acb(c, n * step)
        value = (-z * eps).exp() / (1 if n else 2)
        for row, count in rows:
            value *= row[n] ** count
        found.append((z, value))
    return found


def _beyond_end(factors: Factors, eps: arb, plan: _Plan) -> tuple[arb, arb]:
    """Bound (1/π) ∫ |M(c + it) K| e^{−cε} dt over t ≥ T, for |K| ≤ 1/t² and for |K| ≤ 1/t."""
    c, end, total, least = arb(plan.line), arb(plan.step) * plan.nodes, arb(0), arb.pos_inf()
    for (factor, count), height in zip(factors, plan.heights, strict=True):
        cap = factor.log_cap(c, end, height, plan.digits)
        total += count * cap
        least = least.min(factor.closing(c, end, height, cap))
    scale = (total - c * eps).exp() / arb.pi()
    alone = scale * least if least.is_finite() else _beside_atoms(factors, eps, plan, total)
    return scale * least.min(arb(1)) / end, alone


def _beside_atoms(factors: Factors, eps: arb, plan: _Plan, total: arb) -> arb:
    """Bound the error for |K| ≤ 1/t where losses have atoms, of transforms a_f, beside densities.

    What is left of a = Π a_f^{k_f} is taken away before the integral: at most a(c) e^{−cε}, and
    |K| ≤ 1/c at a node. For |M_f − a_f| ≤ M_f(c) C_f/t the rest is at most
    M(c) r^{1 − 1/k} Σ k_f C_f/t, where r bounds |M/M(c)| from T on, and k is the least k_f with
    C_f > 0.
    """
    c, end = arb(plan.line), arb(plan.step) * plan.nodes
    found = [(factor.split(c), count) for factor, count in factors]
    often = [count for (_, rate), count in found if rate > 0]
    if not often or not all(rate.is_finite() for (_, rate), _ in found):
        return arb.pos_inf()
    log_top = log_moments(factors, c, plan.digits)
    share, rate = arb(1), arb(0)
    for (mass, fall), count in found:
        share, rate = share * mass**count, rate + count * fall
    rest = ((total - log_top) * (1 - arb(1) / min(often))).exp() * rate / (arb.pi() * end)
    return (log_top - c * eps).exp() * (rest + share * (1 + end / (arb.pi() * c)))


def _aliases(factors: Factors, eps: arb, plan: _Plan) -> arb:
    """Bound the terms n ≠ 0 of the Poisson sum."""
    c, s, length = arb(plan.line), arb(plan.beyond), 2 * arb.pi() / plan.width
    back, ahead = (-c * length).exp(), (-(s - c) * length).exp()
    moment = log_moments(factors, s, plan.digits)
    return back / (1 - back) + (moment - s * eps).exp() * ahead / (1 - ahead)


def log_moments(factors: Factors, line: arb, digits: float) -> arb:
    """Enclose ln M(c)."""
    return sum((count * factor.log_moment(line, digits) for factor, count in factors), arb(0))


def infinite_mass(factors: Factors) -> arb:
    """Return 1 − Π (1 − m_f)^{k_f} for the masses m_f of P where a loss is infinite."""
    kept = arb(1)
    for factor, count in factors:
        kept *= (1 - arb(factor.infinite)) ** count
    return 1 - kept


def bounded(factors: Factors, epsilon: str) -> Answers:
    """Bound the three functions by 0 and by Chernoff's M(s) e^{−sε}."""
    eps, bound = arb(epsilon), arb(1)
    try:
        highest = min(factor.highest for factor, _ in factors)
        line = arb(min(saddle(factors, float(eps))[0], highest))
        bound = (log_moments(factors, line, 40) - line * eps).exp().min(bound)
    except (OverflowError, ValueError, ZeroDivisionError):  # beyond the range of floats
        pass
    mass, around = infinite_mass(factors), arb(0).union(bound)
    return Answers(around + mass, around + mass, around * (-eps).exp())


# Lattices.


def on_lattice(factors: Factors, epsilon: str) -> tuple[Answers, arb] | None:
    """Enclose the functions of ε, and by how much the losses were moved: onto a lattice, or to ε.

    None where they are on no lattice. Raises UnknownError where the sum would be too long.
    """
    with ctx.workprec(BITS):
        found = _lattice(factors)
        if found is None:
            return None
        moved, base, unit, distance = found
        eps = arb(epsilon)
        last = ((eps - base) / unit + ball(_TIE)).floor().unique_fmpz()
        if last is None:
            raise UnknownError("the law of this composition: a tie with epsilon")
        tied = base + unit * int(last)
        above, distance = tied + unit, distance + (tied - eps).max(arb(0))
    try:
        line, log_value = saddle(moved, float(eps))
        goals = [(line * stretch, log_value) for stretch in STRETCHES]
        plans = [_around(moved, float(above), goal, unit) for goal in goals]
    except (OverflowError, ValueError, ZeroDivisionError):  # beyond the range of floats
        plans = []
    plan = min(plans, key=lambda plan: plan.work, default=None)
    if plan is None or plan.work > _TRIALS[0][1]:
        raise UnknownError("the law of this composition: its sum takes too long to recompute")
    with ctx.workprec(plan.bits):
        gap = above - eps

        def kernel(z: acb) -> tuple[acb, acb]:
            one, other = (unit * (-w * gap).exp() / -(-w * unit).expm1() for w in (z, z + 1))
            return one, other

        return _summed(moved, epsilon, plan, kernel, arb(0)), distance


def _lattice(factors: Factors) -> tuple[Factors, arb, arb, arb] | None:
    """Return the losses on a lattice, a point and the step of it, and how far they were moved."""
    rows = [factor.rows() for factor, _ in factors if isinstance(factor, Listed)]
    steps = [abs(_middle(loss - row[0][0])) for row in rows for loss, _, _ in row[1:]]
    step = _common(steps)
    if step is None or len(rows) < len(factors):
        return None
    unit, base, distance, moved = ball(step), arb(0), arb(0), []
    for (factor, count), row in zip(factors, rows, strict=True):
        first, masses, far = row[0][0].mid(), [], arb(0)
        for loss, p, _ in row:
            place = first + unit * round(_middle(loss - first) / step)
            far = far.max(abs(loss - place))
            masses.append((text(p), text(p * (-place).exp())))
        base, distance = base + count * first, distance + count * far
        moved.append((Listed(tuple(masses), factor.infinite, factor.missing), count))
    return tuple(moved), base, unit, distance


def _middle(value: arb) -> Fraction:
    mantissa, exponent = value.mid().man_exp()
    return int(mantissa) * Fraction(2) ** int(exponent)


def _common(steps: list[Fraction]) -> Fraction | None:
    """Return the greatest common divisor, None where it is none to 50 digits."""
    if not steps:
        return None
    found, least = steps[0], min(steps) / _FINEST
    for step in steps[1:]:
        one, other = step, found
        while other > step * _EXACT:
            if other < least:
                return None
            one, other = other, abs(one - round(one / other) * other)
        found = one
    return found


def _around(factors: Factors, eps: float, goal: tuple[float, float], unit: arb) -> _Plan:
    """Choose the number of nodes of a lattice for one line."""
    plan = _line(factors, eps, goal, _TRIALS[0][0])
    half = max(math.ceil(math.pi / (plan.step * float(unit))), 1)
    return _worked(factors, replace(plan, number=2 * half + 1, unit=text(unit), nodes=half))
