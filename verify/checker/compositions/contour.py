"""Profiles of compositions by a contour integral, with an error ledger: a proof in mpmath alone.

L is a sum of independent losses with moment generating functions M_f(z) = E_P[e^{zL}; L < ∞].
For c > 0 and M = Π M_f^{k_f}, the integral (1/2πi) ∫ M(z) e^{−zε} K(z) dz over Re z = c is

    H(ε) for K = 1/(z(z + 1)),   P(L > ε) for K = 1/z,   e^ε Q(L > ε) for K = 1/(z + 1),

each without the mass of P where L = ∞. The trapezoidal sum of step h, cut off at |Im z| ≤ T, has
four errors, all bounded:

- Step. By Poisson summation the whole sum is Σ_n f(ε + nB) e^{ncB} with B = 2π/h, for each of the
  three functions f ≤ 1. Its terms are ≥ 0; those with n < 0 are at most e^{−|n|cB}, and those with
  n > 0 at most M(s) e^{−s(ε + nB) + ncB} for every s > c (Chernoff).
- End. Each factor bounds |M_f(c + it)| for all t ≥ T at once, by a function that decreases, and one
  of them its integral against dt/t, which for H(ε) alone may be against dt/t²; for the others the
  atoms of a loss may be taken apart.
- M of a mixture of normal laws is a trapezoidal sum in x, with a strip bound and normal tails
  (`compositions.mixtures`); the others are closed forms (`compositions.moments`). Errors e_f
  relative to M_f(c) change the product by at most M(c) (e^{Σ k_f e_f} − 1).
- Rounding. Powers are made by repeated products of integers with P bits, whose rounding is part of
  e_f. Everything else rounds in the last of P bits, of which 24 and those of the numbers of nodes
  and releases are allowed for; P has 80 bits more than what is asked for takes.

What is not rational in a law is known to more than 90 digits, and taken for exact to 50. The search
for c, h and T is in floats and proves nothing: the bounds are evaluated for what it has found.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, final

from mpmath import iv, mp

from verify.checker.arithmetic import UnknownError, interval_digits
from verify.checker.compositions.moments import (
    LN10,
    STRETCHES,
    Factor,
    Factors,
    Row,
    log_moment,
    period,
    saddle,
)

_TRIALS = ((40, 3_000_000), (20, 3_000_000), (12, 20_000_000))
"""Significant digits, and the most products of complex integers for them (1.5 to 15 seconds)."""
_GUARD = 80
"""Bits beyond those of the digits and the number of nodes."""
_ROUNDING = 24
"""Bits of all but `spin` that rounding may take, for every release and node."""
_OVERHEAD = 60
"""Work at a node besides that of its factors."""


@final
@dataclass(frozen=True)
class Answers:
    """Enclosures of H(ε), P(L > ε) and Q(L > ε)."""

    hockey_stick: Any
    above_p: Any
    above_q: Any


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


@lru_cache(maxsize=256)
def invert(factors: tuple[tuple[Factor, int], ...], epsilon: Any) -> Answers:
    """Enclose the three functions of ε, or H(ε) alone where no bound of the others is known.

    Raises
    ------
    UnknownError
        Where that would take too long.
    """
    for digits, most in _TRIALS:
        plan = _plan(factors, float(epsilon), digits, most)
        if plan is not None:
            with working(plan.digits, plan.nodes):
                return _summed(factors, mp.mpf(epsilon), plan)
    raise UnknownError("the law of this composition: its integral takes too long to recompute")


def working(digits: float, nodes: int) -> Any:
    """Set the precision for a sum of so many nodes."""
    return mp.workprec(int(digits / math.log10(2)) + nodes.bit_length() + _GUARD)


# The search.


def _plan(factors: Factors, eps: float, digits: int, most: int) -> _Plan | None:
    """Choose the line, the step and the end of the sum; None where it would be too long."""
    try:
        line, log_value = saddle(factors, eps)
        goals = [(line * stretch, log_value) for stretch in STRETCHES]
        plans = [_along(factors, eps, goal, digits, most) for goal in goals]
    except (OverflowError, ValueError, ZeroDivisionError):  # beyond the range of floats
        return None
    short = [plan for plan in plans if plan is not None and plan.work <= most]
    return min(short, key=lambda plan: plan.work, default=None)


def _along(
    factors: Factors, eps: float, goal: tuple[float, float], digits: int, most: int
) -> _Plan | None:
    """Choose the step and the end for one line, with an estimate of ln H(ε)."""
    c, log_value = goal
    log_height = log_moment(factors, c) - c * eps
    wanted = log_value - digits * LN10 - 3  # ln of the absolute error
    length, beyond = period(factors, eps, c, wanted)
    step = 2 * math.pi / length

    def fallen(end: float) -> float:
        caps = [factor.estimate_cap(c, end)[0] for factor, _ in factors]
        pairs = zip(factors, caps, strict=True)
        return sum(count * (factor.estimate(c) - cap) for (factor, count), cap in pairs)

    fall = log_height - wanted + 5
    low, end = 0.0, 8 * step
    while fallen(end) < fall:
        low, end = end, 1.6 * end
        if end / step * _OVERHEAD > most:
            return None
    for _ in range(5):
        middle = (low + end) / 2
        low, end = (low, middle) if fallen(middle) >= fall else (middle, end)
    releases = sum(count for _, count in factors)
    asked = (log_height - wanted) / LN10 + math.log10(releases) + 2
    nodes = math.ceil(end / step)
    heights = tuple(factor.estimate_cap(c, nodes * step)[1] for factor, _ in factors)
    cost = sum(factor.cost(c, nodes * step, asked) for factor, _ in factors)
    return _Plan(asked, c, step, nodes, beyond, heights, nodes * (_OVERHEAD + cost))


# The sum and its bounds.


def _summed(factors: Factors, eps: Any, plan: _Plan) -> Answers:
    c, step = mp.mpf(plan.line), mp.mpf(plan.step)
    rows = [(f.along(c, step, plan.nodes, plan.digits), count) for f, count in factors]
    height, relative = ledger(rows, c, eps)
    weight, sums, sizes = height * step / mp.pi, [mp.zero] * 3, mp.zero
    for n, value in enumerate(values(rows, -step * eps)):
        z = mp.mpc(c, n * step)
        term = value / z / (1 if n else 2)
        over = term / (z + 1)
        parts = (over, term, term - over)
        sums = [total + part.real for total, part in zip(sums, parts, strict=True)]
        sizes += 1 / abs(z)
    slack, (over, alone) = weight * sizes * relative, _beyond_end(factors, eps, plan)
    ahead = aliases(factors, eps, (c, mp.mpf(plan.beyond), 2 * mp.pi / step), plan.digits)
    found = [weight * total for total in sums]
    first = enclosed(found, slack + over, ahead, (factors, eps))
    if mp.isinf(alone):
        return replace(bounded(factors, eps), hockey_stick=first.hockey_stick)
    tails = enclosed(found, slack + alone, ahead, (factors, eps))
    return replace(tails, hockey_stick=first.hockey_stick)


def values(rows: Sequence[tuple[Row, int]], turn: Any) -> Iterator[Any]:
    """Yield M(c + inh) e^{−inhε}/M(c), with turn = −hε."""
    for n, ratios in enumerate(zip(*(row.ratios for row, _ in rows), strict=True)):
        value = mp.expj(n * turn)
        for ratio, (_, count) in zip(ratios, rows, strict=True):
            value *= ratio**count
        yield value


def ledger(rows: Sequence[tuple[Row, int]], c: Any, eps: Any) -> tuple[Any, Any]:
    """Return M(c) e^{−cε}, and a bound of the errors of all values relative to it."""
    log_top = mp.fsum(count * mp.log(row.top) for row, count in rows)
    error = mp.expm1(mp.fsum(count * row.error for row, count in rows))
    releases = sum(count for _, count in rows)
    rounding = mp.ldexp(releases * len(rows[0][0].ratios), _ROUNDING - mp.prec)
    known = (1 + c * abs(eps)) / mp.mpf(10) ** 50
    return mp.exp(log_top - c * eps), error + rounding + known


def _beyond_end(factors: Factors, eps: Any, plan: _Plan) -> tuple[Any, Any]:
    """Bound (1/π) ∫ |M(c + it) K| e^{−cε} dt over t ≥ T, for |K| ≤ 1/t² and for |K| ≤ 1/t."""
    c, end, total, least = mp.mpf(plan.line), mp.mpf(plan.step) * plan.nodes, mp.zero, mp.inf
    for (factor, count), height in zip(factors, plan.heights, strict=True):
        cap = factor.log_cap(c, end, height, plan.digits)
        total += count * cap
        least = min(least, factor.closing(c, end, height, cap))
    scale = mp.exp(total - c * eps) / mp.pi
    alone = scale * least if mp.isfinite(least) else _beside_atoms(factors, eps, plan, total)
    return scale * min(least, 1) / end, alone


def _beside_atoms(factors: Factors, eps: Any, plan: _Plan, total: Any) -> Any:
    """Bound the error for |K| ≤ 1/t where losses have atoms, of transforms a_f, beside densities.

    What is left of a = Π a_f^{k_f} is taken away before the integral: at most a(c) e^{−cε}, and
    |K| ≤ 1/c at a node. For |M_f − a_f| ≤ M_f(c) C_f/t the rest is at most
    M(c) r^{1 − 1/k} Σ k_f C_f/t, where r bounds |M/M(c)| from T on, and k is the least k_f with
    C_f > 0.
    """
    c, step = mp.mpf(plan.line), mp.mpf(plan.step)
    found = [(factor.split(c), count) for factor, count in factors]
    often = [count for (_, rate), count in found if rate > 0]
    if not often or any(mp.isinf(rate) for (_, rate), _ in found):
        return mp.inf
    log_top = log_upper(factors, c, plan.digits)
    share = mp.fprod(mass**count for (mass, _), count in found)
    rate = mp.fsum(count * fall for (_, fall), count in found)
    rest = (
        mp.exp((total - log_top) * (1 - mp.mpf(1) / min(often)))
        * rate
        / (mp.pi * step * plan.nodes)
    )
    return mp.exp(log_top - c * eps) * (rest + share * (1 + step * plan.nodes / (mp.pi * c)))


def aliases(factors: Factors, eps: Any, chosen: tuple[Any, Any, Any], digits: float) -> Any:
    """Bound the terms n ≠ 0 of the Poisson sum, for chosen c, s and B."""
    c, s, length = chosen
    back, ahead = mp.exp(-c * length), mp.exp(-(s - c) * length)
    if back == 1 or ahead == 1:  # at this precision: no bound
        return mp.inf
    moment = log_upper(factors, s, digits)
    return back / (1 - back) + mp.exp(moment - s * eps) * ahead / (1 - ahead)


def log_upper(factors: Factors, line: Any, digits: float) -> Any:
    """Bound ln M(c) from above."""
    return mp.fsum(count * factor.log_moment(line, digits) for factor, count in factors)


def enclosed(sums: Iterable[Any], slack: Any, ahead: Any, question: tuple[Factors, Any]) -> Answers:
    """Return sums of which `ahead` at most is an alias, known to ± slack, and the mass at L = ∞."""
    (factors, eps), wider = question, 1 + mp.mpf(2) ** -30
    with interval_digits(mp.dps):
        ends = [iv.mpf([total - (slack + ahead) * wider, total + slack * wider]) for total in sums]
        mass = infinite_mass(factors)
        ends = [ends[0] + mass, ends[1] + mass, ends[2] * iv.exp(-iv.mpf(eps))]
        return Answers(*ends)


def infinite_mass(factors: Factors) -> Any:
    """Return 1 − Π (1 − m_f)^{k_f} for the masses m_f of P where a loss is infinite."""
    kept = mp.mpf(1)
    for factor, count in factors:
        kept *= (1 - mp.mpf(getattr(factor, "infinite", 0))) ** count
    return 1 - kept


def bounded(factors: Factors, epsilon: Any) -> Answers:
    """Bound the three functions by 0 and by Chernoff's M(s) e^{−sε}."""
    eps = mp.mpf(epsilon)
    try:
        line, _ = saddle(factors, float(epsilon))
        log_bound = min(mp.zero, log_upper(factors, mp.mpf(line), 40) - line * eps)
    except (OverflowError, ValueError, ZeroDivisionError):  # beyond the range of floats
        log_bound = mp.zero
    mass, bound = infinite_mass(factors), iv.mpf([0, mp.exp(log_bound)])
    return Answers(bound + mass, bound + mass, bound * iv.exp(-iv.mpf(eps)))


def nothing(factors: Factors) -> Answers:
    """Return the answers beyond the largest finite loss."""
    mass = iv.mpf(infinite_mass(factors))
    return Answers(mass, mass, iv.mpf(0))
