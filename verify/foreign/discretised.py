"""One pair on a grid: a law of the loss that dominates it, and one that it dominates.

Only P-masses are kept: with L the loss, H(ε) = P(L = ∞) + E_P[(1 − e^{ε−L})⁺] never falls when a
loss is raised, nor when an outcome is split; so every step below errs on a known side, also in a
product of releases.

- *Above* (connect the dots; Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022): what lies
  between two grid points is split onto both so that its mass under P and under Q stays. Losses
  above the grid become ∞, those below it move to its lowest point.
- *Below*: the outcomes near a grid point are merged into one, of loss ln(p/q), a post-processing.
  Where that is not the grid point itself, part of a neighbouring outcome is merged into it so that
  it is: the part of one above where it is too low, of one below where it is too high. What is left
  is lowered onto the grid. Losses above the grid join its highest point, atoms at its two ends
  stay by themselves.

Where the loss has a density both err by O(h²) per release; an atom between grid points costs
O(h) below.
"""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from flint import arb

from accountant.core.pair import Pair, Tails
from accountant.errors import UndecidedError
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import Interval, ball
from accountant.numbers.precision import ctx

_PRECISION = 256
"""Bits of masses and of their bounds."""
_MOST_DOUBLINGS = 200
"""Doublings of a range to its mass: e^{2^200} is beyond every loss."""
_SAFETY = 1e-12  # of a step: floats that stand for balls are this much on the safe side
_SLIVER = Fraction(1, 1 << 40)  # of a step: keeps an atom at the upper end by itself
_MOST_TAKEN = 0.9
"""Share of a mass that others may take of it: some must stay."""
_DONORS = 64
"""Neighbours that a mass is balanced by."""
_BALANCED = 1e-13
"""Share that may be left unbalanced; it is accounted for."""


@final
@dataclass(frozen=True)
class Law:
    """P-masses on origin + step·(first, first + 1, …), and the mass at infinity."""

    first: int
    masses: list[arb]
    infinity: arb
    shift: arb
    """What is added to every finite loss (0 above)."""


@final
@dataclass(frozen=True)
class Discretised:
    """The two laws of one pair."""

    above: Law
    below: Law


def reach(pair: Pair, log_mass: float) -> tuple[Fraction, Fraction]:
    """Return losses beyond which, on either side, P has at most e^log_mass (or none).

    The ends are the extreme losses themselves where they are finite and exact to many digits.
    """
    return -_end(pair.reverse(), pair, log_mass, below=True), _end(pair, pair, log_mass)


def _end(pair: Pair, original: Pair, log_mass: float, *, below: bool = False) -> Fraction:
    with ctx.workprec(_PRECISION):
        known = pair.exact_max_loss() if pair.infinity_mass().is_zero() else None
        largest = pair.max_finite_loss() if known is None else known.ball()
        if largest.is_finite():
            if known is not None and known.rational is not None:
                return known.rational
            near = Interval.of_ball(largest, 60)
            return Fraction(near.lower if below else near.upper)  # an atom there is not cut off
        limit = arb(log_mass).exp()
        low, high = Fraction(0), Fraction(1, 16)
        for _ in range(_MOST_DOUBLINGS):
            if _beyond(original, high, below) <= limit:
                break
            low, high = high, 2 * high
        else:
            raise UndecidedError("The loss has no end that a grid could cover.")
        for _ in range(5):
            middle = (low + high) / 2
            low, high = (
                (low, middle) if _beyond(original, middle, below) <= limit else (middle, high)
            )
        return high


def _beyond(pair: Pair, distance: Fraction, below: bool) -> arb:
    """Return P(L > distance) − P(L = ∞), or P(L ≤ −distance)."""
    tails = pair.tails(ExactReal.of_rational(-distance if below else distance))
    return tails.p_below if below else tails.p_above - pair.infinity_mass()


def discretise(pair: Pair, origin: Fraction, step: Fraction, first: int, last: int) -> Discretised:
    """Return both laws on the grid points origin + step·n, first ≤ n ≤ last, last > first + 2.

    Raises UndecidedError where a step is too small for floats, as the offsets of cells are.
    """
    if step < sys.float_info.min:
        raise UndecidedError(
            "The losses are too small for a grid of floats. Ask about larger ones, or for the "
            "divergence of one release."
        )

    def tails(place: Fraction) -> Tails:
        return _plain(pair.tails(ExactReal.of_rational(origin + step * place)))

    fine = max(0, step.denominator.bit_length() - step.numerator.bit_length())
    with ctx.workprec(_PRECISION + fine):  # the masses of a cell differ by a share h
        on_grid = [tails(Fraction(i)) for i in range(first, last + 1)]
        between = [tails(Fraction(2 * i + 1, 2)) for i in range(first + 1, last - 1)]
        below_grid = tails(Fraction(2 * first - 1, 2))
        cuts = [below_grid, on_grid[0], *between, tails(last - _SLIVER), on_grid[-1]]
        above = _above(on_grid, origin, step, first)
        below = _below(pair, cuts, origin, step, first)
    return Discretised(above, below)


def _plain(tails: Tails) -> Tails:
    for value in (tails.p_above, tails.p_below, tails.q_above, tails.q_below):
        if not value.is_finite():
            raise UndecidedError("The tails of the loss of one release are not known here.")
    return tails


def _mass(left: Tails, right: Tails) -> tuple[arb, arb]:
    """Return P and Q of {left < L ≤ right}, from the tails that lose less to subtraction."""
    p = (left.p_above - right.p_above, right.p_below - left.p_below)
    q = (left.q_above - right.q_above, right.q_below - left.q_below)
    return min(p, key=arb.rad), min(q, key=arb.rad)


def _above(cuts: list[Tails], origin: Fraction, step: Fraction, first: int) -> Law:
    """Split each cell (l, l + h]: r = (p − q e^l)/(1 − e^{−h}) of p to the right keeps q."""
    masses = [arb(0) for _ in cuts]
    gap = -(-ball(step)).expm1()
    scale, growth = ball(origin + step * first).exp(), ball(step).exp()
    masses[0] += cuts[0].p_below  # all losses below are raised to the lowest point
    for i in range(len(cuts) - 1):
        p, q = _mass(cuts[i], cuts[i + 1])
        right = (p - q * scale) / gap
        masses[i] += p - right
        masses[i + 1] += right
        scale *= growth
    return Law(first, [_positive(mass) for mass in masses], _positive(cuts[-1].p_above), arb(0))


def _below(pair: Pair, cuts: list[Tails], origin: Fraction, step: Fraction, first: int) -> Law:
    """Merge the cells around the grid points, balance them, and lower what is above its point."""
    cells = [_mass(cuts[i], cuts[i + 1]) for i in range(len(cuts) - 1)]
    beyond = cuts[-1].p_above - pair.infinity_mass(), cuts[-1].q_above
    points = [ball(origin + step * (first + i)) for i in range(len(cells))]
    cells = _balanced(cells, points)
    merged: list[tuple[arb, float]] = []
    for (p, q), point in zip(cells, points, strict=True):
        offset = float("-inf")
        if p > 0 and q > 0:
            offset = float(((p / q).log() - point).lower()) / float(step) - _SAFETY
        elif p > 0 and q.is_zero():
            offset = 0.5
        merged.append((_positive(p), offset))
    share = _best_shift(merged)
    masses = [arb(0) for _ in range(len(merged) + 1)]
    for i, (p, offset) in enumerate(merged):
        if offset >= share:
            masses[i + 1] += p
        elif offset >= share - 1:
            masses[i] += p
    if share <= 0:
        masses[-1] += _positive(beyond[0])
    infinity = _positive(pair.infinity_mass())
    return Law(first - 1, masses, infinity, ball(step) * ball(Fraction(share)))


def _balanced(cells: list[tuple[arb, arb]], points: list[arb]) -> list[tuple[arb, arb]]:
    """Merge parts of neighbours so that the losses ln(p/q) become the grid points.

    With X = p/q and x = e^point, an outcome with X < x takes the share
    θ = q (x − X)/(q' (X' − x)) of the next one, (p', q'), and of further ones if that is not
    enough. The shares are floats, of sum ≤ 1 for every outcome: whatever they are, splitting and
    merging outcomes is a post-processing, and what is left over may be forgotten in a bound from
    below.
    """
    used = [i for i, (p, q) in enumerate(cells) if p > 0 and q > 0]
    logs = {i: float(cells[i][1].log()) for i in used}
    losses = {i: (cells[i][0] / cells[i][1]).log() for i in used}
    high = {i: bool(losses[i] > points[i]) for i in used}
    kept = dict.fromkeys(used, 1.0)
    taken: dict[int, list[tuple[int, float]]] = {}

    def take(i: int, donors: list[int]) -> None:
        wanted = kept[i] * abs(float((losses[i] - points[i]).expm1()))
        parts, enough = [], wanted * _BALANCED
        for j in donors:
            span = abs(float((losses[j] - points[i]).expm1()))
            gain = math.exp(min(logs[j] - logs[i], 700.0)) * span
            share = min(wanted / gain, _MOST_TAKEN * kept[j]) if gain > 0 else 0.0
            parts.append((j, share))
            wanted -= share * gain
            if wanted <= enough:
                break
        else:
            return
        taken[i] = parts
        for j, share in parts:
            kept[j] = math.nextafter(kept[j] - share, 0.0)  # all shares add up to 1 at most

    for n in range(len(used) - 1, 0, -1):
        below = itertools.takewhile(lambda j: high[j], reversed(used[max(0, n - _DONORS) : n]))
        if high[used[n]]:
            take(used[n], list(below))
    for n in range(len(used) - 1):
        above = itertools.takewhile(lambda j: j not in taken, used[n + 1 : n + 1 + _DONORS])
        if not high[used[n]]:
            take(used[n], list(above))
    result = []
    for i in range(len(cells)):
        parts = [(i, kept.get(i, 1.0)), *taken.get(i, ())]
        p = sum((arb(share) * cells[j][0] for j, share in parts), start=arb(0))
        q = sum((arb(share) * cells[j][1] for j, share in parts), start=arb(0))
        result.append((p, q))
    return result


def _best_shift(merged: list[tuple[arb, float]]) -> float:
    """Return the shift, in steps, that lowers the losses least on average.

    A loss with offset d goes to the shift c where d ≥ c and to c − 1 elsewhere.
    """
    weights = np.array([float(p) for p, _ in merged])
    offsets = np.array([offset for _, offset in merged])
    kept = (weights > 0) & np.isfinite(offsets)
    if not kept.any():
        return 0.0
    order = np.argsort(offsets[kept])
    offsets, weights = offsets[kept][order], weights[kept][order]
    missed = np.concatenate([[0.0], np.cumsum(weights)[:-1]]) / weights.sum()
    return float(offsets[np.argmin(missed - offsets)])


def _positive(value: arb) -> arb:
    """Return the ball without the negative numbers that its radius added."""
    return value.max(arb(0))
