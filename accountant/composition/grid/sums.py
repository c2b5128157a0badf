"""Tails of the loss of Gaussian noise with bounded losses beside it, in floats, from one table.

The loss L_i of each factor lies in a cell (nw, (n + 1)w] of a lattice of step w, within s_i, or is
infinite, or is left out. Events are told by the cells alone: A_k consists of the outcomes with an
infinite loss, and of those with all losses in cells whose numbers add up to k at least. Its
probabilities are sums of those of cells, which are convolved. With m factors, L = Σ L_i lies within

    R = mw/2 + Σ s_i  of  w(N + m/2),  N the sum of the numbers.

Let k be the least one with w(k + m/2) > l. Outcomes with p/q above e^l outside A_k, or not above it
inside, are left out, or N is k + j or k − 1 − j with a j ≥ 0, and |L − l| ≤ R − jw. There
|p − e^l q| ≤ p(e^{R − jw} − 1), so that

    H(l) ≤ P(A_k) − e^l Q(A_k) + G(l),
    G(l) = Σ (e^{R − jw} − 1) P(N = k + j or N = k − 1 − j) + P(left out) over 0 ≤ j < R/w,

and G is about w² times the density of the loss. Of a sample of share s the events are the same.
Its H(l) is v H(c) of the product, v = s, or s − (1 − s)(e^l − 1) where Q is mixed, and exceeds what
A_k shows by v G(c) at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import final

import numpy as np
from flint import arb

from dpassay.accountant.composition.grid.survival import (
    UNIT,
    Array,
    Survival,
    Tail,
    normal_above,
    normal_below,
    sampled,
)
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.gaussian import GaussianPair

_PRECISION = 128
"""Bits of the balls that become floats."""
_REACH = 12
"""Standard deviations of Gaussian noise that are put into cells: 4e-33 is left out."""
_CELLS, _OTHERS = 1 << 16, 1 << 13
"""Cells of the Gaussian loss, and of all others together: each of these takes tails in balls."""
_COARSEST = 1 / 64
"""Most that the factors' cells may take together, in standard deviations of the Gaussian loss."""
_FARTHEST = 600.0
"""Largest loss: e^l is a float."""
_SLACK = 1e-6
"""What roundings may move a loss by, in cells."""


@final
@dataclass(frozen=True, eq=False)
class _Cells:
    """Masses of consecutive cells from a number on under P and Q, and bounds of their errors."""

    first: int
    masses: tuple[Array, Array]
    errors: tuple[Array, Array]
    left_out: float
    """At least P(L finite, in none of the cells)."""

    def plus(self, other: _Cells) -> _Cells:
        """Return the masses of the sums of the numbers."""
        masses, errors = [], []
        for i in (0, 1):
            a, b = self.masses[i], other.masses[i]
            whole = np.convolve(a, b)
            error = np.convolve(self.errors[i], b + other.errors[i])
            error += np.convolve(a, other.errors[i])
            roundings = (min(len(a), len(b)) + 4) * UNIT
            masses.append(whole)
            errors.append((error + roundings * whole) * (1 + 2 * roundings))
        lost = (self.left_out + other.left_out) * (1 + 2 * UNIT)
        return _Cells(
            self.first + other.first, (masses[0], masses[1]), (errors[0], errors[1]), lost
        )


def sums(product: Product, sample: tuple[float, float, bool] | None = None) -> Survival | None:
    """Return the tails of a product, or of a sample: its share, the rest, whether P is mixed.

    None without Gaussian noise, or where cells would be too wide.
    """
    square, others = arb(0), list[tuple[Pair, int]]()
    with ctx.workprec(_PRECISION):
        for pair, count in product.factors:
            if isinstance(pair, GaussianPair):
                square += count * pair.mu() ** 2
            else:
                others.append((pair, count))
        mu = float(square.sqrt().mid())
        ends = [_ends(pair) for pair, _ in others]
        if not product.is_product or not mu or any(end is None for end in ends):
            return None
        known = [end for end in ends if end is not None]
        wide = sum(n * (high - low) for (low, high), (_, n) in zip(known, others, strict=True))
        step = 2.0 ** math.ceil(math.log2(max(2 * _REACH * mu / _CELLS, wide / _OTHERS)))
        m = 1 + sum(n for _, n in others)
        far = mu * (mu / 2 + _REACH) + sum(
            n * max(-low, high) for (low, high), (_, n) in zip(known, others, strict=True)
        )
        if far > _FARTHEST or m * step > _COARSEST * mu or 64 * UNIT * far > _SLACK * step:
            return None
        whole: _Cells | None = None
        for (pair, count), (low, high) in zip(others, known, strict=True):
            own = _listed(pair, low, high, step)
            for _ in range(count):
                whole = own if whole is None else whole.plus(own)
        normal = _gaussian(mu, step)
        whole = normal if whole is None else normal.plus(whole)
        infinity = float(product.infinity_mass().mid())
    return _tails(whole, step, m, infinity, sample)


def _ends(pair: Pair) -> tuple[float, float] | None:
    """Return bounds of the finite losses; None where they are unbounded or not known."""
    try:
        low, high = -pair.reverse().max_finite_loss(), pair.max_finite_loss()
    except NotApplicableError:
        return None
    if not (low.is_finite() and high.is_finite()):
        return None
    return (
        math.nextafter(float(low.lower()), -math.inf),
        math.nextafter(float(high.upper()), math.inf),
    )


def _listed(pair: Pair, low: float, high: float, step: float) -> _Cells:
    """Return the cells of a bounded loss, from its tails at their ends in balls."""
    first, last = math.ceil(low / step) - 1, math.floor(high / step) + 1
    at = [ExactReal.of_rational(n * Fraction(step)) for n in range(first, last + 1)]
    tails = [pair.tails(edge) for edge in at]
    columns = []
    for above in ([t.p_above for t in tails], [t.q_above for t in tails]):
        differences = [a - b for a, b in pairwise(above)]
        masses = np.array([max(float(x.mid()), 0.0) for x in differences])
        errors = np.array([float(abs(x.mid()) * arb(2) ** -50 + 2 * x.rad()) for x in differences])
        columns.append((masses, errors))
    rest = (tails[0].p_below + tails[-1].p_above - pair.infinity_mass()).upper().max(arb(0))
    (p, error_p), (q, error_q) = columns
    return _Cells(first, (p, q), (error_p, error_q), float(rest) * (1 + 4 * UNIT))


def _gaussian(mu: float, step: float) -> _Cells:
    """Return the cells of N(μ, 1) and N(0, 1), whose ends are x = l/μ + μ/2 in floats."""
    middle = mu * mu / 2
    first = math.floor((middle - _REACH * mu) / step)
    last = math.ceil((middle + _REACH * mu) / step)
    x = np.arange(first, last + 1) * step / mu + mu / 2
    columns = []
    for mean in (mu, 0.0):
        above, relative = normal_above(mean, x)
        errors = above * relative
        columns.append((np.maximum(above[:-1] - above[1:], 0.0), 1.01 * (errors[:-1] + errors[1:])))
    outside = 1.01 * float(np.sum(normal_below(np.array([x[0] - mu, mu - x[-1]]))))
    (p, error_p), (q, error_q) = columns
    return _Cells(first, (p, q), (error_p, error_q), outside)


def _tails(
    cells: _Cells, step: float, m: int, infinity: float, sample: tuple[float, float, bool] | None
) -> Survival:
    """Return the tails, from the sums of the masses from each cell on."""
    room = len(cells.masses[0]) * float(np.finfo(np.longdouble).eps) + 4 * UNIT
    above_p, above_q = (_from(each) for each in cells.masses)
    error_p, error_q = (
        _from(error) * (1 + room) + room * above
        for error, above in zip(cells.errors, (above_p, above_q), strict=True)
    )
    start, reach = (cells.first + m / 2) * step, (m / 2 + 2 * _SLACK) * step
    last, beside = len(above_p) - 1, math.ceil(reach / step)
    side = np.expm1(reach - step * np.arange(beside))
    most = cells.masses[0] + cells.errors[0]
    near = np.convolve(most, np.concatenate([side[::-1], side]))[beside - 1 : beside + last]
    gap = cells.left_out + 1.01 * near

    def number(l: Array) -> Array:  # noqa: E741
        found: Array = np.clip(np.floor((l - start) / step) + 1, 0, last).astype(np.int64)
        return found

    def of_events(l: Array) -> Tail:  # noqa: E741
        k, growth = number(l), np.exp(l)
        p, q = above_p[k] + infinity, growth * above_q[k]
        error = growth * error_q[k] + 8 * UNIT * (1 + np.abs(l)) * q
        return Tail(p, q, error_p[k] + 4 * UNIT * infinity, error)

    share, rest, mixed_first = sample or (1.0, 0.0, True)
    shown = (
        of_events if sample is None else sampled(of_events, share, rest, mixed_first=mixed_first)
    )
    sign = 1.0 if mixed_first else -1.0

    def survival(l: Array) -> Tail:  # noqa: E741
        tail, rise = shown(l), np.expm1(sign * l)
        inside = share + rise > 0
        weight = share if mixed_first else (share + rise) * np.exp(l)
        c = sign * np.log1p(np.maximum(rise / share, -1 + UNIT))
        missing = np.where(inside, 1.01 * weight * gap[number(c)], 0.0)
        return Tail(tail.above_p, tail.above_q, tail.error_p + missing, tail.error_q)

    return survival


def _from(values: Array) -> Array:
    """Return the sums from each place on."""
    return np.append(np.cumsum(values[::-1], dtype=np.longdouble)[::-1], 0).astype(float)
