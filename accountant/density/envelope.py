"""A table that dominates a density against every one of its shifts up to a distance.

U bounds H of all shifts at c = e^ε for every point of a lattice ε = kΔ, k ≥ 0 (`profiles`). Between
these, as H is convex in c, its chords do, and the largest convex function below the points (their
hull) is enough. It is the profile of masses p_k at the losses kΔ, and q_k = p_k e^{−kΔ}.

*The other half.* All shifts to both sides are a family that holds the reverse of each pair, so that
what dominates it for ε ≥ 0 dominates it, if it is its own reverse: −kΔ has p and q exchanged, and
what is left has the loss 0. Where nothing is left the lowest atoms move up the lattice with the
same p − q, by which (p − cq)⁺, c ≥ 1, only grows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from flint import arb

from accountant.density.law import Law
from accountant.density.line import BITS
from accountant.density.profiles import SUMS, Profiles
from accountant.density.ranges import Array
from accountant.errors import UndecidedError
from accountant.numbers.interval import ball
from accountant.numbers.precision import ctx

_MEDIAN = 16
"""Lattice points up to the median loss."""
_MOST = 1 << 12
"""Lattice points in all."""
_DENSE, _GRADE = 48, 1.035
"""Points from which on only those a factor apart are atoms: a chord errs by its square."""
_STRETCH = 1 + 2.0**-30
"""Factor that covers the rounding of the masses."""
_TAIL = 1e-6
"""δ at which shifts are compared for a lower bound, besides their mean."""


@final
@dataclass(frozen=True)
class Envelope:
    """Masses p > 0 under P at the losses kΔ, k > 0, one at ∞, and shifts that come near it.

    Negative shifts move the density to the other side.
    """

    unit: Fraction
    places: tuple[int, ...]
    masses: tuple[float, ...]
    infinite: float
    shifts: tuple[Fraction, ...]


def envelope(law: Law, distance: Fraction, largest: Fraction | None) -> Envelope:
    """Return a table that dominates all shifts up to a distance, of the largest loss if known."""
    laws = [law, law.mirrored] if law.axis is None else [law]
    sides = [Profiles(each, distance) for each in laws]
    unit, points = _lattice(sides, distance, largest)
    c = np.exp(np.array(points) * float(unit)) * (1 - SUMS)
    c[0] = 1.0
    rows = [side.profiles(c) for side in sides]
    most = np.maximum.reduce([row[0] for row in rows])
    if largest is not None:
        most[-1] = 0.0
    known = [(sign * t, row) for sign, (_, found) in zip((1, -1), rows, strict=False)
             for t, row in found.items()]  # fmt: skip
    best = np.maximum.reduce([row for _, row in known])
    marks = {int(np.searchsorted(points, _MEDIAN)), int(np.argmin(best > _TAIL)) - 1, 0}
    shifts = {max(known, key=lambda each: each[1][mark])[0] for mark in marks}
    return _table(unit, points, np.minimum(most, 1.0), tuple(sorted(shifts)))


def _lattice(
    sides: list[Profiles], distance: Fraction, largest: Fraction | None
) -> tuple[Fraction, list[int]]:
    """Return Δ, and the places of atoms: dense up to a few medians of the loss, then graded."""
    medians, tops = [], []
    for side in sides:
        for share in (1, Fraction(1, 2)):
            medians.append(side.median(distance * share))
            tops.append(side.top(distance * share))
    top = max(tops) if largest is None else float(largest)
    wanted = max(*medians, top / _MOST * _MEDIAN) / _MEDIAN
    count = max(2, min(_MOST, math.ceil(top / wanted))) if wanted > 0 else 2
    unit = Fraction(top / count) if largest is None else largest / count
    points, step = list(range(min(count, _DENSE) + 1)), float(_DENSE)
    while points[-1] < count:
        step = max(step + 1, step * _GRADE)
        points.append(min(count, math.floor(step)))
    return unit, points


def _table(
    unit: Fraction, points: list[int], most: Array, shifts: tuple[Fraction, ...]
) -> Envelope:
    """Return the masses whose profile is the hull of the bounds, on the lattice."""
    z = np.exp(np.array(points) * float(unit))
    hull: list[int] = []
    for i in range(len(points)):
        while len(hull) > 1 and (most[hull[-1]] - most[hull[-2]]) * (z[i] - z[hull[-2]]) >= (
            most[i] - most[hull[-2]]
        ) * (z[hull[-1]] - z[hull[-2]]):
            hull.pop()
        hull.append(i)
    slopes = np.append(np.diff(most[hull]) / np.diff(z[hull]), 0.0)
    q = np.maximum(np.diff(slopes), 0.0)
    places = [points[i] for i in hull[1:]]
    p = q * z[hull[1:]] * _STRETCH
    infinite = float(most[-1]) * _STRETCH
    places, p = _lifted(unit, places, p, infinite)
    found = Envelope(
        unit,
        tuple(k for k, mass in zip(places, p, strict=True) if mass > 0),
        tuple(float(mass) for mass in p if mass > 0),
        infinite,
        shifts,
    )
    with ctx.workprec(BITS):
        for i in range(len(points)):
            if not profile(found, points[i]) >= arb(float(most[i])):
                raise UndecidedError("The table of all shifts was not proved to dominate them.")
    return found


def _lifted(
    unit: Fraction, places: list[int], p: Array, infinite: float
) -> tuple[list[int], Array]:
    """Move the lowest atoms up, with the same p − q, until a mass ≥ 0 is left for the loss 0."""
    places, p = [*places, places[-1] + 1], np.append(p, 0.0)
    losses = np.array(places) * float(unit)
    for i in range(len(p) - 1):
        excess = float(np.sum(p * (1 + np.exp(-losses)))) + infinite - (1 - SUMS)
        if excess <= 0:
            break
        gap = p[i] * -np.expm1(-losses[i])  # p − q; p + q = (p − q)/tanh(loss/2)
        saved = gap * (1 / np.tanh(losses[i] / 2) - 1 / np.tanh(losses[i + 1] / 2))
        share = min(1.0, excess / saved * _STRETCH) if saved > 0 else 1.0
        p[i] *= 1 - share
        p[i + 1] += share * gap / -np.expm1(-losses[i + 1]) * _STRETCH
    return places, p


def profile(found: Envelope, place: int) -> arb:
    """Return the profile of the table at ε = kΔ ≥ 0."""
    value, unit = arb(found.infinite), ball(found.unit)
    for k, mass in zip(found.places, found.masses, strict=True):
        if k > place:
            value += mass * -(-(k - place) * unit).expm1()
    return value


def masses(found: Envelope) -> tuple[list[arb], list[arb]]:
    """Return P and Q at the losses kΔ, −kΔ and 0, and where Q and P have none."""
    unit = ball(found.unit)
    p = [arb(mass) for mass in found.masses]
    q = [mass * (-k * unit).exp() for k, mass in zip(found.places, p, strict=True)]
    rest = 1 - sum(p + q, start=arb(0)) - found.infinite
    if not rest > 0:
        raise UndecidedError("The table of all shifts has more mass than 1.")
    return (
        [*p, *q, rest, arb(found.infinite), arb(0)],
        [*q, *p, rest, arb(0), arb(found.infinite)],
    )
