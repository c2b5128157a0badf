"""One pair on a grid: a law of the loss that dominates it, and one that it dominates.

Only P-masses are kept: with L the loss, H(ε) = P(L = ∞) + E_P[(1 − e^{ε−L})⁺] never falls when a
loss is raised, nor when an outcome is split; so every step below errs on a known side, also in a
product of releases.

- *Above* (connect the dots; Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022): what lies
  between two grid points is split onto both so that its mass under P and under Q stays. Losses
  above the grid become ∞, those below it move to its lowest point.
- *Below*: losses between two grid points are lowered to the lower one, those above the grid to its
  highest point; those below it are left out.

Above errs by O(h²) per release where the loss has a density, below by O(h).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import final

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


@final
@dataclass(frozen=True)
class Law:
    """P-masses on origin + step·(first, first + 1, …), and the mass at infinity."""

    first: int
    masses: list[arb]
    infinity: arb


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
    """Return both laws on the grid points origin + step·n, first ≤ n ≤ last.

    Raises UndecidedError where a step is too small for floats, as the offsets of cells are.
    """
    if step < sys.float_info.min:
        raise UndecidedError(
            "The losses are too small for a grid of floats. Ask about larger ones, or for the "
            "divergence of one release."
        )
    fine = max(0, step.denominator.bit_length() - step.numerator.bit_length())
    with ctx.workprec(_PRECISION + fine):  # the masses of a cell differ by a share h
        points = (ExactReal.of_rational(origin + step * n) for n in range(first, last + 1))
        cuts = [_plain(pair.tails(point)) for point in points]
        infinity = _positive(pair.infinity_mass())
        lowered = [_mass(*cells)[0] for cells in pairwise(cuts)]
        beyond = cuts[-1].p_above - infinity
        below = Law(first, [_positive(mass) for mass in (*lowered, beyond)], infinity)
        return Discretised(_above(cuts, origin, step, first), below)


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
    return Law(first, [_positive(mass) for mass in masses], _positive(cuts[-1].p_above))


def _positive(value: arb) -> arb:
    """Return the ball without the negative numbers that its radius added."""
    return value.max(arb(0))
