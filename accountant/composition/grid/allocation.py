"""Tails of random allocations at many losses at once, from the curves of their inversion.

The nodes of a curve (`accountant.pairs.laplace_inversion`) and of the rule for ψ are balls; here
they are rounded to NumPy's long doubles, with a relative error u each. Both sums are of w e^{a}: a
term errs by at most (`_EXP` + 8|a|)u of its size, with a a product of rounded numbers, and the sum
of n terms by nu of all sizes. An error of `off` in ψ changes ln ψ by at most off/(|ψ| − off); where
|ψ| is less than 4 off, 4 off stands for it, and ψ is at most 5/4 of that. Logarithms of terms add
such errors up, e: a term errs by e^e − 1 of its size. The errors of the rule in y and its end are
e^{aK + b} K^{−c} with c > 0: convex in K after logarithms, so that they are bounded by those at the
least and at the largest K.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from flint import acb, arb

from accountant.composition.grid.survival import UNIT, Array, Survival, Tail
from accountant.numbers.interval import ball
from accountant.numbers.precision import ctx
from accountant.pairs.laplace_inversion import Curve, Rule, Sum, curve_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Long: TypeAlias = NDArray[Any]

_BITS, _LINE_BITS = 60, 72
"""Accuracy of the curves, and of the rule for ψ, which its power multiplies."""
_U = float(np.finfo(np.longdouble).eps)
_EXP = 32.0
"""Relative error of a complex exponential in units: tests with balls meet at most 3."""
_TINY = 1e-20
"""What is surely less is its own error."""
_LOST = 2.0
"""e^{2p} > (5/4)^p + 1: what a ψ that is lost in its error may be away, as a logarithm."""
_BINS = 16
"""Parts of a unit of ln K that share a choice of curve: more are slower, fewer less accurate."""
_BLOCK = 1 << 20
"""Terms at a time."""


def allocated(of: Sum, *, mixed_first: bool) -> Survival:
    """Return the tails of the loss ln W, or of −ln W with the mixture last."""

    def survival(l: Array) -> Tail:  # noqa: E741 (the loss)
        at = l if mixed_first else -l
        (q, error_q), (p, error_p) = (_distribution(of, at, biased) for biased in (False, True))
        with np.errstate(over="ignore"):
            growth = np.exp(l)
        if mixed_first:
            q, p = 1 - q, 1 - p
        else:
            q, error_q, p, error_p = p, error_p, q, error_q
        error_p = error_p + 4 * UNIT * np.abs(p)
        with np.errstate(over="ignore", invalid="ignore"):  # e^l Q(L > l) is at most P(L > l)
            error_q = np.fmin(growth * (error_q + 8 * UNIT * (1 + np.abs(l)) * np.abs(q)), 1.0)
            q = np.fmin(growth * np.maximum(q, 0.0), 1.0)
        return Tail(np.maximum(p, 0.0), q, error_p, error_q)

    return survival


def _distribution(of: Sum, at: Array, biased: bool) -> tuple[Array, Array]:
    """Return Q(W ≤ e^at), or P(W ≤ e^at), with errors."""
    value, error = np.ones_like(at), np.zeros_like(at)
    mu = float(of.mu)
    far = np.minimum(np.exp(-0.5 * np.maximum(at / mu - mu / 2, 0.0) ** 2) * (1 + 1e-9), 1.0)
    error[:] = far
    groups: dict[Curve, list[int]] = {}
    with ctx.workprec(_BITS):
        near = np.flatnonzero(far >= _TINY)
        bins = np.floor(at[near] * _BINS)
        for place in np.unique(bins):
            members = near[bins == place].tolist()
            # the curve is right for all: its error is asked at their ends; and Markov's bound grows
            found = curve_for(of, 1, Fraction(float(at[members].max())), _TINY)
            if isinstance(found, Curve):
                groups.setdefault(found, []).extend(members)
            else:
                value[members], error[members] = 0.0, found
        for curve, members in groups.items():
            index = np.array(members)
            value[index], error[index] = _on_curve(curve, at[index], biased)
    return value, error


def _on_curve(curve: Curve, at: Array, biased: bool) -> tuple[Array, Array]:
    """Return I₁ and its error at losses that share a curve."""
    points, weights, errors = _terms(curve, biased)
    k = np.exp(at.astype(np.longdouble))
    with ctx.workprec(curve.precision):
        ends = [ball(Fraction(float(end))).exp() for end in (at.min(), at.max())]
        rest = max(float(curve.error(end).upper()) for end in ends)
    value, error = np.empty(len(k)), np.empty(len(k))
    rows = max(1, _BLOCK // len(points))
    sizes, large = np.abs(points).astype(float), errors > 1
    heights = weights.real + np.where(large, errors, 0.0)
    errors = np.where(large, 1.0, np.expm1(np.minimum(errors, 1.0)))
    for first in range(0, len(k), rows):
        part = k[first : first + rows, None]
        each = np.exp(points * part + weights)
        size = np.exp(points.real * part + heights).astype(float)
        reach = part[:, 0].astype(float)
        value[first : first + rows] = each.real.sum(axis=1).astype(float)
        error[first : first + rows] = size @ (errors + 3 * _U * (len(points) + _EXP))
        error[first : first + rows] += 24 * _U * reach * (size @ sizes)
    return value, error * 1.01 + rest + UNIT * np.abs(value)


@functools.lru_cache(maxsize=512)
def _terms(curve: Curve, biased: bool) -> tuple[Long, Long, Array]:
    """Return λ, the logarithm of what multiplies e^{λK}, and a bound of its error."""
    t, of = curve.of.steps, curve.of
    with ctx.workprec(curve.precision):
        nodes = curve.points()
        points = _long([point for point, _ in nodes])
        scale = ball(curve.step) / arb.pi()
        log = _long([(scale * weight).log() for _, weight in nodes])
        error = 8 * _U * (1 + np.abs(log).astype(float))
        psi, psi_error = _transforms(of, [point for point, _ in nodes], biased=False)
        power = t - 1 if biased else t
        log, error = _times(log, error, psi, psi_error, power)
        if biased:
            psi, psi_error = _transforms(of, [point for point, _ in nodes], biased=True)
            log, error = _times(log, error, psi, psi_error, 1)
    return points, log, error


def _times(log: Long, error: Array, psi: Long, off: Array, power: int) -> tuple[Long, Array]:
    """Add power·ln ψ to a logarithm, and to its error."""
    size = np.abs(psi).astype(float)
    lost = size < 4 * off
    own = np.log(np.where(lost, 4 * off, np.abs(psi))) + 1j * np.angle(psi)
    share = np.where(lost, _LOST, off / np.where(lost, 1.0, size - off))
    added = power * (1.01 * share + 8 * _U * (1 + np.abs(own).astype(float)))
    return log + power * own, error + added


def _transforms(of: Sum, points: list[acb], *, biased: bool) -> tuple[Long, Array]:
    """Return ψ(λ), or ψ(λe^{μ²}), at points above the axis, with errors."""
    found, off = np.empty(len(points), dtype=np.clongdouble), np.empty(len(points))
    square = of.mu.ball() ** 2
    lines: dict[tuple[Fraction, Rule], list[int]] = {}
    for i, point in enumerate(points):
        lines.setdefault(of.line(point, _LINE_BITS), []).append(i)
    for (eta, rule), members in lines.items():
        weights, sizes = _nodes(rule)
        turn = acb(0, -of.mu.ball() * ball(eta)).exp() / of.steps
        turn *= square.exp() if biased else 1
        turned = _long([-points[i] * turn for i in members])[:, None] * sizes
        each = weights * np.exp(turned)
        size = np.abs(each).astype(float)
        found[members] = each.sum(axis=1)
        off[members] = _U * ((len(sizes) + _EXP) * size.sum(axis=1))
        off[members] += 8 * _U * (size * np.abs(turned).astype(float)).sum(axis=1)
        off[members] += 2 * float(rule.error.upper())
    return found, 1.01 * off


@functools.lru_cache(maxsize=256)
def _nodes(rule: Rule) -> tuple[Long, Long]:
    """Return the weights and the sizes of a rule."""
    return _long(rule.weights), _long([acb(x) for x in rule.sizes]).real


def _long(values: Sequence[acb]) -> Long:
    """Round to long doubles."""

    def real(x: arb) -> Any:
        high = float(x.mid())
        return np.longdouble(high) + np.longdouble(float((x - high).mid()))

    found = np.empty(len(values), dtype=np.clongdouble)
    found.real = [real(value.real) for value in values]
    found.imag = [real(value.imag) for value in values]
    return found
