"""Upper bounds on the moments of a Gaussian mixture along shifted contours.

*Notation.* l(x) = μx − μ²/2 is the loss of N(μ, 1) against N(0, 1), w(x) = 1 − q + q e^{l(x)} is
the density of the mixture against N(0, 1), and Λ(s) = E[w(X)^s] for X ~ N(0, 1).

*On a contour* x + iy(x) with 0 ≤ y(x) ≤ π/(2μ), the two terms of w are vectors at an angle
θ = μy ≤ π/2. Hence, with p = q e^l/w at real x,

- |w| increases with x and decreases with θ; arg w increases with both, from 0 to θ;
- |d ln|w|/dx| ≤ 2μp and |d arg w/dx| ≤ 2μp(1 − p) sin θ.

*Statement.* |Λ(s − iτ)| ≤ ∫ φ(x) e^{y²/2} |w|^s e^{τ arg w} |dx + i dy| for a contour shifted
upward. *Proof.* Cauchy's theorem.

The integral is bounded by the largest value of every factor on each cell of a partition, and by
geometric tails outside. It gives

- the error of the trapezoidal rule in x with step η: at most 2 U/(e^{2πa/η} − 1) for every
  |t| ≤ T, where U is the bound at y = a and τ = T (Trefethen and Weideman 2014, Theorem 5.1);
- the decay of Λ(s + it): with τ = −T it bounds |Λ(s + it)| for all |t| ≥ T.

The arithmetic is in floats. To every logarithm a slack is added: a thousand times the rounding
errors of its few operations.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, final

from dpassay.accountant.core.arrays import NDArray, np
from dpassay.accountant.errors import UndecidedError

if TYPE_CHECKING:
    Reals: TypeAlias = NDArray[np.floating[Any]]
    Complexes: TypeAlias = NDArray[np.complex128]
    Floats: TypeAlias = NDArray[np.float64]
    Array: TypeAlias = Floats | Complexes
    Values = TypeVar("Values", bound=NDArray[Any])


# --- Float sums over the nodes of the trapezoidal rule in x, and bounds on cells ------------------
# *Phase sums.* Σ v_n (e^{itx_n} − 1) is computed at t = 0, h, 2h, …, with a bound on its error. The
# operations are those that IEEE 754 rounds correctly: +, −, ×, rounding to integers, and sums of
# products in any order. u = 2^−53 is the unit roundoff. With j = bG + g and
#
#     a = e^{ibGhx} − 1,   b = e^{ighx} − 1,   e^{ijhx} − 1 = a(1 + b) + b,
#
# the sums are a product of two matrices, of about 2√N entries per phase for N points t. Each matrix
# is split into heads of few bits, whose products are summed exactly, and rests, whose products are
# 2^21 times smaller. So the error does not grow with the number of phases.
#
# *Error of one phase.* An angle y = jhx, with x and the product rounded, has an error of 2u|y|.
# Halving it and reducing it by a multiple of π/2 adds u, unless that multiple is 0. The power
# series, and the products that give 2i sin(y/2) e^{iy/2}, add 6u|y|. The total error of e^{iy} − 1
# is below 10u|y|, as |e^{iy} − 1| ≤ |y|.
#
# *Error of the sums.* The weights have errors of 2u, and |1 + b| = 1 is rounded. So for each phase
# the product has an error below 20u|bGhx| + 36u|ghx| before summation. Summing N rests adds N·u
# times the sum of their sizes. For heads of B bits this sum is at most N 2^−B Σ v_n|bGhx_n| (below
# 4u of the sum for N ≤ 2^13), and for v itself gh(Σ min(v_n, 2^−B max v)|x_n| + 2^−B max|x_n|). In
# total the error is below 24u(bG + 2g)h Σ v_n|x_n|, plus the contribution of the rests for v.
#
# *Without heads* only the first angle of a row is computed so. The others are sums by
# e^{i(y + z)} − 1 = a + b + ab, at most 8 deep. As |1 + b| = 1, the errors of a and b add, and the
# product and the two sums add below 5u|y + z|, as |ab| ≤ |y + z|. So the error of e^{iy} − 1 is
# below 50u|y|, and that of the product below 60u|bGhx| + 156u|ghx|. Moreover a sum of m products
# of floats, in any order, has an error of mu/(1 − mu) times the sum of their sizes, and a sum of n
# such sums one of at most Mu/(1 − Mu), M = m + n. By Cauchy's
# inequality this sum is at most bGh Σ v_n|x_n| for a(1 + b), since |1 + b| = 1, and gh Σ v_n|x_n|
# for v b. In total the error is below (80 + M)u(bG + 2g)h Σ v_n|x_n|.
#
# *Cells.* There are upper bounds on logarithms on cells of the real line, for normal laws, smooth
# cuts and sums. `SLACK`, relative to the logarithms that are added, exceeds their rounding errors.

BY_EXCESS = 0.5
"""|ln M| below which M is computed from w^s − 1 − s(w − 1); the direct sum would lose digits."""
_NEAR_ONE = 0.35
"""A sum further from 1 than this needs no such care; e^±0.5 are further."""
_SMALL = 0.3
"""|v| up to which ln(1 + v) − v is a power series: 11 terms leave 1e-17."""
_SMALL_RISE = 0.5
"""w − 1 up to which ln w is computed by log1p."""
_FARTHEST = 700.0
"""Largest exponent that is used."""
_MOST_EXPONENT = 300.0
"""Largest s ln w for which w^s is computed: beyond it, the mass multiplied by it may underflow."""
_SMALL_PART = 0.2
"""Share of E|w^s − 1| below which E[w^s − 1] has lost digits, which many releases would multiply.
"""
_SMALL_POWER = 0.1
"""|u| up to which e^u − 1 − u is a power series."""
_FAR = 1.0
"""s ln w beyond which e^{s ln w} − 1 − s(w − 1) is computed directly, without cancellation."""
_CHUNK = 1 << 19
"""Entries of a block of phases: 8 MB, which caches hold."""
_IN_CACHE = 1 << 14
"""Entries of a block of angles: four times as fast as without blocks."""
_PHASES = 1 << 10
"""Phases per matrix: matrices of all phases would take megabytes."""
_FEW = 32
"""Number of points t up to which no product of matrices is used."""
_ONE_THREAD = 1 << 18
"""Products of numbers in a block of a product of matrices. For more, OpenBLAS starts threads, whose
waiting for each other takes ten times as long as the block if the processors are busy."""
_INNER = 32
"""Least length of the rows of such a block; shorter ones take longer to load than to multiply."""
ROOT_2PI = math.sqrt(2 * math.pi)
_EXP_TERMS = tuple(1 / math.factorial(n) for n in range(2, 12))
_TERMS_UP_TO = (1e-3, _EXP_TERMS[:6]), (1e-2, _EXP_TERMS[:7]), (_SMALL_POWER, _EXP_TERMS)
"""Pairs of a limit on |u| and the terms for it; the remainder is below 1e-17 of the sum."""
_LOG_TERMS = tuple(2.0 / (2 * n + 1) for n in range(1, 12))


def excess_of_exp(u: Values) -> Values:
    """Return e^u − 1 − u with relative accuracy, for real or complex u."""
    found: Values = np.expm1(u) - u
    return _with_small(found, u)


def _with_small(found: Values, u: Values) -> Values:
    """Replace e^u − 1 − u by its power series where u is small."""
    near = np.abs(u) < _SMALL_POWER
    small = u[near]
    found[near] = _series(small, _EXP_TERMS) * small * small
    return found


def excess_at(u: float) -> float:
    """Return the same for one number."""
    if abs(u) >= _SMALL_POWER:
        return math.expm1(u) - u
    return functools.reduce(lambda total, term: total * u + term, _EXP_TERMS[::-1], 0.0) * u * u


def _beyond(u: Floats, grown: Floats) -> Floats:
    """Return e^u − 1 − u with relative accuracy, given e^u − 1."""
    size = max(float(u.max()), -float(u.min()))
    if size < _SMALL_POWER:
        return _series(u, next(terms for limit, terms in _TERMS_UP_TO if size < limit)) * u * u
    return _with_small(grown - u, u)


def _series(u: Values, terms: Sequence[float]) -> Values:
    """Return the sum of terms[n] uⁿ."""
    found: Any = np.full_like(u, terms[-1])
    for term in terms[-2::-1]:
        found *= u
        found += term
    total: Values = found
    return total


def excess_of_log1p(v: Floats) -> Floats:
    """Return ln(1 + v) − v with relative accuracy: −vr + 2(r³/3 + r⁵/5 + …), r = v/(2 + v)."""
    near = np.abs(v) < _SMALL
    small = np.where(near, v, 0.0)
    r = small / (2.0 + small)
    square = r * r
    series = _series(square, _LOG_TERMS) * square
    direct: Floats = np.log1p(v) - v
    return np.where(near, r * series - small * r, direct)


def axis(mu: float, log_share: float, log_rest: float, x: Floats) -> tuple[Floats, Floats]:
    """Return L = ln w and L − (w − 1) at real x."""
    shift = mu * x - 0.5 * mu * mu
    rise = math.exp(log_share) * np.expm1(np.minimum(shift, _FARTHEST))
    loss = np.logaddexp(log_rest, log_share + shift)
    near = np.abs(rise) < _SMALL_RISE
    loss[near] = np.log1p(rise[near])
    return loss, excess_of_log1p(rise)


def raised(mu: float, log_share: float, log_rest: float, x: Floats, height: float) -> Complexes:
    """Return L = ln w at x + i·height, for a height below the zeros of w."""
    angle, shift = mu * height, mu * x - 0.5 * mu * mu
    top = np.maximum(log_share + shift, log_rest)
    still, turned = np.exp(log_rest - top), np.exp(log_share + shift - top)
    real, imaginary = still + turned * math.cos(angle), turned * math.sin(angle)
    found = np.empty(len(x), dtype=np.complex128)
    found.real = top + 0.5 * np.log(real * real + imaginary * imaginary)
    near = turned < _SMALL_RISE  # there top = ln(1 − q), and |L| may be much smaller
    share, grown = math.exp(log_share), np.expm1(shift[near])
    more = share * (grown * math.cos(angle) - 2.0 * math.sin(0.5 * angle) ** 2)  # w − 1
    aside = share * (1.0 + grown) * math.sin(angle)
    found.real[near] = 0.5 * np.log1p(more * (2.0 + more) + aside * aside)
    found.imag = np.arctan2(imaginary, real)
    return found


def moments(
    s: float, mass: Floats, log_mass: Floats, loss: Floats, gap: Floats
) -> tuple[float, float, float]:
    """Return (ln Σ m w^s, mean of L, variance of L) under the weights m w^s.

    `mass` is m, φ dx at the nodes, and `gap` is L − (w − 1). If ln Σ is near 0, it is computed from
    w^s − 1 − s(w − 1). These terms are of second order in w − 1; the sum is the same as E[w] = 1.
    """
    power = s * loss
    if float(power.max()) <= _FAR:
        grown = np.expm1(power)
        weights = mass * (1.0 + grown)
        total = float(weights.sum())
        if abs(total - 1.0) < _NEAR_ONE:
            excess = float(np.dot(mass, _beyond(power, grown) + s * gap))
            mean = float(np.dot(mass, grown * loss + gap)) / (1.0 + excess)
            variance = float(np.dot(weights, (loss - mean) ** 2)) / total
            return math.log1p(excess), mean, variance
    logs = power + log_mass
    top = float(logs.max())
    weights = np.exp(logs - top)
    total = float(weights.sum())
    size = top + math.log(total)
    mean = float(np.dot(weights, loss)) / total
    if abs(size) < BY_EXCESS:
        far = power > _FAR  # there m may underflow though m w^s does not
        near, plain = np.where(far, 0.0, power), np.where(far, 0.0, mass)
        whole, rest = np.where(far, np.exp(logs), 0.0), np.where(far, mass, 0.0)
        excess = float((whole - rest * (1.0 + power - s * gap)).sum())
        excess += float(np.dot(plain, excess_of_exp(near) + s * gap))
        first = float((whole * loss - rest * (loss - gap)).sum())
        first += float(np.dot(plain, np.expm1(near) * loss + gap))
        size, mean = math.log1p(excess), first / (1.0 + excess)
    variance = float(np.dot(weights, (loss - mean) ** 2)) / total
    return size, mean, variance


def moments_of_rows(
    s: float, mass: Floats, loss: Floats, gap: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return what `moments` does, for each row of losses, and whether it is free of overflow."""
    power = s * loss
    weights = mass * np.exp(np.minimum(power, _FARTHEST))
    total = weights.sum(axis=1)
    far = power > _FAR
    near = np.where(far, 0.0, power)
    grown, still = np.expm1(near), np.where(far, 0.0, mass)
    excess, mean = (excess_of_exp(near) + s * gap) * still, (grown * loss + gap) * still
    rest = np.broadcast_to(mass, far.shape)[far]
    excess[far] = weights[far] - rest * (1.0 + power[far] - s * gap[far])
    mean[far] = weights[far] * loss[far] - rest * (loss[far] - gap[far])
    less = excess.sum(axis=1)
    by_excess = np.abs(less) < BY_EXCESS
    size = np.where(by_excess, np.log1p(np.where(by_excess, less, 0.0)), np.log(total))
    first = np.where(
        by_excess, mean.sum(axis=1) / (1.0 + less), (weights * loss).sum(axis=1) / total
    )
    away = loss - first[:, None]
    variance = (weights * away * away).sum(axis=1) / total
    return np.array([size, first, variance]), power.max(axis=1) < _FARTHEST


def moments_directly(s: float, mass: Floats, loss: Floats) -> tuple[float, float, float] | None:
    """Return what `moments` does from E[w^s − 1] alone; None if that is a small part of E|w^s − 1|.

    Also return None if some w^s would overflow.
    """
    power = s * loss
    if not (power[0] < _MOST_EXPONENT and power[-1] < _MOST_EXPONENT):
        return None
    grown = np.expm1(power)
    total = 1.0 + (excess := float(np.dot(mass, grown)))
    if abs(excess) < _SMALL_PART * float(np.dot(mass, np.abs(grown))):
        return None
    grown += 1.0
    grown *= mass
    mean = float(np.dot(grown, loss)) / total
    return math.log1p(excess), mean, float(np.dot(grown, (loss - mean) ** 2)) / total


def line(mass: Array, loss: Array, t: Floats) -> Complexes:
    """Return Σ mass (e^{iu} − 1 − iu), u = t·loss, for every t, in blocks that fit the cache."""
    found = np.empty(len(t), dtype=np.complex128)
    block = max(1, _CHUNK // len(loss))
    for start in range(0, len(t), block):
        u: Complexes = np.asarray(1j * t[start : start + block, None] * loss, np.complex128)
        found[start : start + block] = _sums(excess_of_exp(u), mass)
    return found


def on_line(mass: Array, loss: Array, step: float, count: int) -> Complexes:
    """Return what `line` does for t = 0, h, 2h, …; for many t by a product of matrices.

    With x(u) = e^{iu} − 1 − iu it uses x(u + v) = x(u) + x(v) + (e^{iu} − 1)(e^{iv} − 1). For small
    angles these terms have the same sign, so nothing cancels.
    """
    if count <= _FEW:
        return _sums(_rows(step * loss, count)[1], mass)
    inner = math.isqrt(count)
    outer = -(-count // inner)
    near, excess = _rows(step * loss, inner)
    far, far_excess = _rows(inner * step * loss, outer)
    found = _product(far * mass, near)
    found += _sums(far_excess, mass)[:, None] + _sums(excess, mass)[None, :]
    return found.ravel()[:count]


def _rows(angles: Array, number: int) -> tuple[Complexes, Complexes]:
    """Return e^{igu} − 1 and e^{igu} − 1 − igu for 0 ≤ g < number, where u are the angles."""
    turned, excess = np.zeros((2, number, len(angles)), dtype=np.complex128)
    if number > 1:
        turned[1], excess[1] = np.expm1(1j * angles), excess_of_exp(1j * angles)
    known = 2
    while known < number:  # doubles each time
        more = slice(known, min(2 * known - 1, number))
        low = slice(1, 1 + more.stop - known)
        mixed = turned[low] * turned[known - 1]
        turned[more] = turned[low] + turned[known - 1] + mixed
        excess[more] = excess[low] + excess[known - 1] + mixed
        known = more.stop
    return turned, excess


def powered(values: Complexes, count: int) -> Complexes:
    """Return values^count by squaring; its rounding is that of `count` − 1 products."""
    result: Complexes | None = None
    while True:
        if count & 1:
            result = values if result is None else result * values
        count >>= 1
        if not count:
            assert result is not None
            return result
        values = values * values


def _product(left: Complexes, right: Array) -> Complexes:
    """Return the products of rows, by four products of real matrices."""
    a, b = np.ascontiguousarray(left.real), np.ascontiguousarray(left.imag)
    c, d = np.ascontiguousarray(right.real), np.ascontiguousarray(right.imag)
    found = np.empty((len(left), len(right)), dtype=np.complex128)
    found.real = in_blocks(a, c) - in_blocks(b, d)
    found.imag = in_blocks(a, d) + in_blocks(b, c)
    return found


def _sums(rows: Complexes, mass: Array) -> Complexes:
    """Return the sum of each row with these weights."""
    return _product(rows, mass[None, :])[:, 0]


def in_blocks(left: Reals, right: Reals) -> Reals:
    """Return the products of the rows of two real matrices, without threads."""
    (outer, inner), count = left.shape, len(right)
    if outer * inner * count <= _ONE_THREAD:
        return np.asarray(left @ right.T)
    length = max(_ONE_THREAD // (outer * count), _INNER)
    height = max(_ONE_THREAD // (length * count), 1)
    found = np.zeros((outer, count))
    for start in range(0, outer, height):
        rows, total = left[start : start + height], found[start : start + height]
        for n in range(0, inner, length):
            total += rows[:, n : n + length] @ right[:, n : n + length].T
    return found


MOST_PHASES = 1 << 13
"""Largest number of nodes of `phase_sums`; the error bound at the head of this section needs it."""
_UNIT = 2.0**-53
"""The unit roundoff u."""
_ERROR = 24 * _UNIT
"""24u; see the head of this section."""
_FAST_ERROR = 80 * _UNIT
"""The same without heads."""
LARGEST_ANGLE = 2.0**20
"""Largest t·|x_n|: multiples of the head of π/2 are then exact."""
_SLACK = 1 + 1e-6  # covers the rounding of the bound itself
_HEAD = float.fromhex("0x1.921fb544p+0")  # π/2 = _HEAD + _MIDDLE + _TAIL, 33 bits in each head
_MIDDLE = float.fromhex("0x1.0b4611a6p-34")
_TAIL = float.fromhex("0x1.3198a2e037073p-69")
_SINE = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(1, 9))
_COSINE = tuple((-1) ** n / math.factorial(2 * n) for n in range(1, 9))
"""Coefficients of sin(y)/y − 1 and cos(y) − 1 in powers of y². For |y| ≤ π/4 the remainder is below
u."""


def error_of_sums(weights: Reals, x: Reals, *, heads: bool = True) -> float:
    """Return c such that c·(bG + 2g)h bounds the error of `phase_sums` at j = bG + g."""
    size = np.abs(x)
    if not heads:
        most = min(len(x), _PHASES) + len(x) // _PHASES
        return _SLACK * (_FAST_ERROR + most * _UNIT) * float(weights @ size)
    bits = _bits(len(x))
    rests = float(np.minimum(weights, 2.0**-bits * weights.max()) @ size)
    rests += 2.0**-bits * float(size.max())
    return _SLACK * (_ERROR * float(weights @ size) + len(x) * _UNIT * rests)


def blocks(count: int) -> int:
    """Return G, the number of points in a block."""
    return max(1, math.isqrt(count))


def phase_sums(
    weights: Reals, x: Reals, step: float, count: int, *, heads: bool = True
) -> Complexes:
    """Return Σ v_n (e^{ijhx_n} − 1) for 0 ≤ j < count, where the v_n > 0 sum to 1.

    Without `heads` it is faster but less exact.
    """
    inner = blocks(count)
    outer = -(-count // inner)
    if heads:
        near = turned(np.arange(inner) * step, x)
        far = turned(np.arange(outer) * (inner * step), x)
        product = _product_by_heads(*_factors(weights, near, far))
    else:
        parts = [slice(n, n + _PHASES) for n in range(0, len(x), _PHASES)]
        factors = (
            _factors(
                weights[part],
                _multiples(step, x[part], inner),
                _multiples(inner * step, x[part], outer),
            )
            for part in parts
        )
        product = functools.reduce(np.add, (in_blocks(*each) for each in factors))
    one, two, rest = (slice(k * inner, (k + 1) * inner) for k in range(3))
    real = product[:outer, one] - product[outer:-1, two] + product[-1, rest]
    imaginary = product[:outer, two] + product[outer:-1, one] + product[-1, two]
    found: Complexes = (real + 1j * imaginary).ravel()[:count]
    return found


def _factors(weights: Reals, near: Complexes, far: Complexes) -> tuple[Reals, Reals]:
    """Return the rows (v a, v) and (1 + b, b), real and imaginary parts apart, to be multiplied."""
    far *= weights
    left = np.vstack([far.real, far.imag, weights[None, :]])
    return left, np.vstack([near.real + 1.0, near.imag, near.real])


def _multiples(step: float, x: Reals, number: int) -> Complexes:
    """Return e^{ijhx_n} − 1 for j < number, from those at j = 1 by doubling."""
    found = np.zeros((number, len(x)), dtype=np.complex128)
    if number > 1:
        found[1] = turned(np.array([step]), x)[0]
    known = 2
    while known < number:
        more = slice(known, min(2 * known - 1, number))
        low, top = found[1 : 1 + more.stop - known], found[known - 1]
        found[more] = low * top
        found[more] += low + top
        known = more.stop
    return found


def turned(t: Reals, x: Reals) -> Complexes:
    """Return e^{it_j x_n} − 1, one row for each t, in blocks that fit the cache."""
    found, rows = np.empty((len(t), len(x)), dtype=np.complex128), max(1, _IN_CACHE // len(x))
    for i in range(0, len(t), rows):
        found[i : i + rows] = _turned(t[i : i + rows], x)
    return found


def _turned(t: Reals, x: Reals) -> Complexes:
    half = (0.5 * t)[:, None] * x[None, :]
    turns = np.rint(half * (2 / math.pi))
    rest = ((half - turns * _HEAD) - turns * _MIDDLE) - turns * _TAIL
    square = rest * rest
    small = _series(square, _SINE)
    small *= square
    small *= rest
    small += rest
    large = _series(square, _COSINE)
    large *= square
    large += 1.0
    odd = (turns.astype(np.int64) & 1) == 1  # there the sine is ±large, the cosine ∓small
    sine, found = np.where(odd, large, small), np.empty(half.shape, dtype=np.complex128)
    found.real, found.imag = -2.0 * sine * sine, 2.0 * small * np.where(odd, -large, large)
    return found


def _bits(number: int) -> int:
    """Return the number of bits of heads for which sums of so many products are exact."""
    return (52 - (number - 1).bit_length()) // 2


def _product_by_heads(first: Reals, second: Reals) -> Reals:
    """Return the product of a matrix and the transpose of another; products of heads are exact."""
    heads = [_head(matrix, _bits(first.shape[1])) for matrix in (first, second)]
    rests = [matrix - head for matrix, head in zip((first, second), heads, strict=True)]
    (head, other), (rest, after) = heads, rests
    return in_blocks(head, other) + (in_blocks(head, after) + in_blocks(rest, second))


def _head(matrix: Reals, bits: int) -> Reals:
    """Return the leading bits of all entries, relative to the largest entry of each row."""
    top = np.maximum(np.abs(matrix).max(axis=1, keepdims=True), 2.0**-900)
    shift = np.ldexp(1.5, np.frexp(top)[1] + (52 - bits))
    found: Reals = (matrix + shift) - shift
    return found


SLACK = 2.0**-38
"""Slack relative to the sum of the logarithms: a thousand times their rounding."""
LOSS_ERROR = 2.0**-49
"""Absolute rounding error, sixteen units, of ln|w| or arg w near 0. In |w|^s and e^{τ arg w} it is
multiplied by s and τ, however small ln w is."""
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
"""−ln of the largest value of the normal density."""
ROOT_HALF = math.sqrt(0.5)
_FAR_OUT = 5.0
"""|u| from which the asymptotic bounds on erfc are within 2 %."""
LEAST_RATE = 1.0
"""Least rate at which integrands must fall beyond their ends; at a smaller one, too large a part
lies outside."""


def log_half_erfc(u: Floats, v: Floats) -> Floats:
    """Return an upper bound on ln|erfc(u + iv)/2|, which is nearly attained for v = 0.

    |erfc(u + iv)| ≤ e^{v²} erfc(u). For u < 0 the absolute value is
    |2 − erfc(−u − iv)| ≤ 2 + e^{v²} erfc(|u|). For large w, e^{−w²}/(w√π) is above erfc(w), and
    1 − 1/(2w²) times it is below erfc(w); the complement for u < 0 uses the latter.
    """
    kept = np.zeros_like(u)
    near = u > -6.0 - np.abs(v)
    u, square = u[near], v[near] * v[near]
    tail, whole = _log_tails(u)
    kept[near] = np.where(
        u > 0, square + tail, np.minimum(square + whole, np.logaddexp(0.0, square + tail))
    )
    return kept


def log_half_erfc_on(u: Floats, v: Floats) -> Floats:
    """Return upper bounds on ln|erfc(u + iv)/2| on the cells between ascending u, for heights ≤ v.

    The bound e^{v²} erfc(u) holds for every real u and decreases with it: it is that of the left
    end. For u < 0 the other one increases: it is that of the right end, or of 0.
    """
    found = np.zeros_like(v)
    near = np.flatnonzero(u[1:] > -6.0 - v)
    if not near.size:
        return found
    first = int(near[0])
    u, square = u[first:], v[first:] * v[first:]
    tail, whole = _log_tails(u)
    by_left = square + whole[:-1]
    by_right = np.logaddexp(0.0, square + np.where(u[1:] < 0, tail[1:], -math.log(2)))
    found[first:] = np.where(u[:-1] < 0, np.minimum(by_left, by_right), by_left)
    return found


def _log_tails(u: Floats) -> tuple[Floats, Floats]:
    """Return upper bounds on ln(erfc|u|/2) and on ln(erfc(u)/2)."""
    size = np.abs(u)
    far = size > _FAR_OUT
    outer = np.where(far, size, 1.0)
    tail = -size * size - np.log(outer * (2 * math.sqrt(math.pi)))
    close = size[~far].tolist()
    tail[~far] = np.log(0.5 * np.fromiter(map(math.erfc, close), float, len(close)))
    least = np.where(far, tail + np.log1p(-0.5 / outer**2), tail)
    return tail, np.where(u > 0, tail, np.log1p(-np.exp(least)))


def log_half_erfc_at(u: float) -> float:
    """Return ln(erfc(u)/2), approximately."""
    if u > _FAR_OUT:
        return -u * u - math.log(u * (2 * math.sqrt(math.pi)))
    return math.log(0.5 * math.erfc(u))


def distinct(points: Floats) -> Floats:
    """Return the distinct values in ascending order; loading `numpy.unique` takes 20 ms."""
    found = np.sort(points)
    return found[np.diff(found, prepend=-math.inf) > 0]


def log_sum(logs: Floats) -> float:
    """Return an upper bound on ln Σ e^{l_i}."""
    top = float(logs.max())
    if math.isinf(top):
        return top
    return top + math.log(float(np.exp(logs - top).sum())) + SLACK


def log_tilted(x: Floats, middle: Floats, slope: Floats) -> Floats:
    """Return upper bounds on ln ∫ φ e^g over cells, given g ≤ middle + slope·u, u = x − m.

    m is the middle of a cell of width h, and φ = φ(m) e^{−mu − u²/2}. In the mean over the cell
    e^{κu}, κ = slope − m, counts as cosh(κu), which increases with |u|, whereas e^{−u²/2}
    decreases. By Chebyshev's inequality the mean of their product is at most the product of their
    means, sinh(y)/y ≤ e^{min(y²/6, y)} with y = |κ|h/2, and 1 − h²/24 + h⁴/640 at most.
    """
    wide, at = np.diff(x), 0.5 * (x[:-1] + x[1:])
    y, square = np.abs(slope - at) * (0.5 * wide), wide * wide
    grown = np.minimum(y * (1 / 6), 1.0) * y + square * (square * (1 / 640) - 1 / 24)
    bound: Floats = np.log(wide) + middle - 0.5 * at * at + grown - HALF_LOG_2PI
    return bound


_FINER, _COARSER = 0.7, 1.19
"""Factors by which the step of a rule is refined until its error is small, and coarsened again."""
_FINEST = 1e-4
"""Step, as a share of the height, below which no rule is sought at that height."""
_STRETCH = 4.0
"""Length by which the range of an integrand is widened until it falls at both ends."""
_COARSE = 400
"""Cells of a bound that only chooses a rule: more are slower, fewer lead to finer rules."""
_FINE = 2000
"""Number of cells for a bound on a moment or on the decay, which is multiplied by the count."""
FALL = 30.0
"""The integrand is summed down to e^{−30} of its largest value."""
_FLOAT = 36.0
"""−ln of a number that is negligible against 1 in floats."""
_NEAR_PEAK = 0.01
"""Error of the place of a peak; the range about it has more room than that."""
_CUT = 3.0
"""Phase, in radians, beyond which losses have no influence on the contour: they would bend it to
the disadvantage of the others."""
_FAR_WIDTHS = 60.0
"""Widths beyond a cut: if mass further out still matters, the search is given up."""
_STEP, _GROWTH = 0.12, 1.3
"""Steps of an outward search: first a share of the initial distance, later a growth factor."""
_POSITIVE_OFFSETS = [*(0.25 * k for k in range(1, 17)), *(4.0 * 1.15**k for k in range(1, 50))]
_CELL_OFFSETS = [*(-each for each in reversed(_POSITIVE_OFFSETS)), 0.0, *_POSITIVE_OFFSETS]
"""Distances from a cut, in its widths, where cells end: dense where χ bends, wide far off."""
LARGEST_GRID = 1 << 20
"""Largest range of an integrand: its points would take hundreds of megabytes."""


Edge: TypeAlias = tuple[float, float, int]
"""The place where χ falls or rises, the width, and 1 where it falls or −1 where it rises."""


def _log_side(edge: Edge, x: Floats, y: Floats) -> Floats:
    """Return an upper bound on the logarithm of the absolute value of a factor of χ at x + iy."""
    place, width, side = edge
    scale = ROOT_HALF / width
    return log_half_erfc(side * (x - place) * scale, y * scale)


@final
@dataclass(frozen=True)
class Mixture:
    """A mixture (1 − q) N(0, 1) + q N(μ, 1), with parameters as floats."""

    mu: float
    log_share: float
    """ln q"""
    log_rest: float
    """ln(1 − q)"""
    cut: float = math.inf
    """Where the normal law is cut off smoothly: φ becomes φχ, χ(x) = erfc((x − cut)/(τ√2))/2."""
    width: float = 1.0
    """τ"""
    rise: float = -math.inf
    """Where the law begins, as smoothly: χ also has the factor erfc((rise − x)/(τ'√2))/2."""
    rise_width: float = 1.0
    """τ'"""

    @property
    def is_cut(self) -> bool:
        """Whether the normal law is cut off on either side."""
        return math.isfinite(self.cut) or math.isfinite(self.rise)

    @property
    def lost(self) -> tuple[float, float]:
        """The masses that the cut removes from N(0, 1) and from the mixture; not proved."""
        scale = math.sqrt(2 * (1 + self.width * self.width))
        plain, shifted = (0.5 * math.erfc((self.cut - m) / scale) for m in (0.0, self.mu))
        return plain, math.exp(self.log_rest) * plain + math.exp(self.log_share) * shifted

    def bell(self, x: Floats) -> Floats:
        """Return an upper bound on ln(√(2π) φ χ), which is nearly attained."""
        if not self.is_cut:
            return -0.5 * x * x
        return -0.5 * x * x + self.log_kept(x, np.zeros_like(x))

    def log_kept(self, x: Floats, y: Floats) -> Floats:
        """Return an upper bound on ln|χ(x + iy)|, which is nearly attained for y = 0."""
        return sum((_log_side(edge, x, y) for edge in self.edges), start=np.zeros_like(x))

    def log_density(self, x: Floats) -> Floats:
        """Return ln w(x)."""
        return np.logaddexp(self.log_rest, self.log_shifted(x))

    def share(self, x: Floats) -> Floats:
        """Return p(x) = q e^l/w."""
        difference = self.log_rest - self.log_shifted(x)
        return np.exp(-np.logaddexp(0.0, difference))

    def _share_at(self, x: float) -> float:
        odds = self.log_share + self.mu * x - 0.5 * self.mu * self.mu - self.log_rest
        return 1 / (1 + math.exp(-odds)) if odds > -_FLOAT else math.exp(odds)

    def at_angle(self, x: Floats, angle: Floats | float) -> tuple[Floats, Floats]:
        """Return ln|w| and arg w where q e^l has an argument in [0, π/2]."""
        terms = Terms.of(self, x)
        return terms.log_size(np.cos(angle)), terms.angle(np.sin(angle), np.cos(angle))

    def log_shifted(self, x: Floats) -> Floats:
        """Return ln q e^l."""
        return self.log_share + self.mu * x - 0.5 * self.mu * self.mu

    @property
    def largest_shift(self) -> float:
        """The largest allowed height y, a little below π/(2μ)."""
        return (0.5 * math.pi - 1e-9) / self.mu

    def reach(self, s: float, tau: float, height: float, fall: float) -> tuple[float, float]:
        """Return [a, b] outside which the integrand decays geometrically and is small.

        At both ends it is below e^{−fall} times its largest value, and falls at rate ≥ 1.
        """
        width = math.sqrt(2 * fall) + 1
        last = self.right(s)
        low, high = self._left(s, width), last + width
        tall = height if tau > 0 and height > 0 else math.inf
        while True:
            if high - low > LARGEST_GRID or high > self.cut + _FAR_WIDTHS * (1 + self.width):
                raise UndecidedError(
                    f"The tilt {s:.6g} of a sampled release spreads its mass over too wide a range."
                )
            x = np.linspace(low, high, max(64, int(4 * (high - low))))
            value = self._integrand(x, s, tau, height)
            floor = float(value.max()) - fall
            left, right = self.rates(low, high, s, tau, tall)
            if left >= LEAST_RATE and right >= LEAST_RATE and value[0] <= floor >= value[-1]:
                kept = np.flatnonzero(value > floor)
                if not kept.size:  # differences of the logarithms are below their resolution
                    raise UndecidedError(
                        f"The tilt {s:.6g} of a sampled release exceeds the range of floats."
                    )
                return self._trimmed(x, int(kept[0]), int(kept[-1]), s, tau, tall)
            if left < LEAST_RATE or value[0] > floor:
                low -= _STRETCH
            if right < LEAST_RATE or value[-1] > floor:
                high += _STRETCH

    def _trimmed(  # noqa: PLR0917
        self, x: Floats, first: int, last: int, s: float, tau: float, height: float
    ) -> tuple[float, float]:
        """Cut off small parts, as far as the rates of decay outside stay large enough."""
        low, high = float(x[max(first - 1, 0)]), float(x[min(last + 1, len(x) - 1)])
        left = self.rates(low, float(x[-1]), s, tau, height)[0]
        right = self.rates(low, high, s, tau, height)[1]
        return (
            low if left >= LEAST_RATE else float(x[0]),
            high if right >= LEAST_RATE else float(x[-1]),
        )

    def right(self, s: float) -> float:
        """Return a point at or to the right of all maxima of φχ w^s: an iterate of x = sμ p(x)."""
        x = min(max(s, 0.0) * self.mu, max(self.cut, 0.0) + self.width)
        for _ in range(60):
            last, x = x, min(x, max(s, 0.0) * self.mu * self._share_at(x))
            if x > 0.999 * last:
                break
        return max(x, self.rise + 2 * self.rise_width)

    def end(self, s: float, fall: float) -> float:
        """Return a point to the right of which φχ w^s is below e^−fall of its largest value."""
        peak = self.right(s)
        away = far = math.sqrt(2 * fall)
        floor = self._log_term(peak, s) - fall
        while self._log_term(peak + far, s) > floor:
            far = far + _STEP * away if far < 2 * away else _GROWTH * far
        return peak + far

    def _log_term(self, x: float, s: float) -> float:
        odds = self.log_share + self.mu * x - 0.5 * self.mu * self.mu - self.log_rest
        more = odds + math.log1p(math.exp(-odds)) if odds > 0 else math.log1p(math.exp(odds))
        whole = math.isinf(self.cut)
        kept = 0.0 if whole else log_half_erfc_at((x - self.cut) * ROOT_HALF / self.width)
        return s * (self.log_rest + more) - 0.5 * x * x + kept

    def _left(self, s: float, width: float) -> float:
        """Return an initial left end; for s < 0 the peak of φ w^s solves x = −|s| μ p(x)."""
        low = -width if s >= 0 else self.peak(s) - width
        return max(low, self.rise - width * self.rise_width)

    def peak(self, s: float) -> float:
        """Return the maximum point of φ w^s, s < 0: the root of x = sμ p(x), by Newton's method."""
        low, high = s * self.mu, 0.0
        x = high
        for _ in range(80):
            p = self._share_at(x)
            value = x - s * self.mu * p
            low, high = (low, x) if value > 0 else (x, high)
            x -= value / (1 - s * self.mu * self.mu * p * (1 - p))
            if not low < x < high:
                x = 0.5 * (low + high)
            if abs(value) < _NEAR_PEAK:
                break
        return x

    def _integrand(self, x: Floats, s: float, tau: float, height: float) -> Floats:
        if height == 0:
            return self.bell(x) + s * self.log_density(x)
        size, angle = self.at_angle(x, self.mu * height)
        value: Floats = self.bell(x) + s * size + tau * angle
        return value

    def rates(
        self, low: float, high: float, s: float, tau: float, height: float = math.inf
    ) -> tuple[float, float]:
        """Return the rates at which the integrand f falls beyond the two ends, where y ≤ height.

        f(x) ≤ f(high) e^{−r(x − high)} for all x ≥ high, and likewise on the left; r is a bound on
        the slope of ln f.
        """
        tau *= math.sin(min(self.mu * height, 0.5 * math.pi))
        p_low, p_high = self._share_at(low), self._share_at(high)
        left = -low - 2 * self.mu * p_low * (max(-s, 0.0) + max(-tau, 0.0))
        left += max(self.rise - low, 0.0) / self.rise_width**2
        turning = p_high * (1 - p_high) if p_high >= 0.5 else 0.25
        right = self._falls(high, s, p_high) - 2 * self.mu * max(tau, 0.0) * turning
        return left, right

    def _falls(self, high: float, s: float, share: float) -> float:
        """Return a lower bound on x + (x − cut)⁺/τ² − sμ|v/w| for all x ≥ high.

        |v/w| ≤ min(1, 2p e^{μ(x − high)}). Where this is below 1, the expression is concave.
        """
        pull = max(s, 0.0) * self.mu
        further = math.log(max(1.0, 0.5 / max(share, 1e-300))) / self.mu

        def at(x: float, size: float) -> float:
            return x + max(x - self.cut, 0.0) / self.width**2 - pull * size

        if high < self.cut < high + further:
            return min(at(high, min(1.0, 2 * share)), at(self.cut, 1.0))
        return min(at(high, min(1.0, 2 * share)), at(high + further, 1.0))

    def log_bound(self, s: float) -> float:
        """Return an upper bound on ln Λ(s)."""
        x = self._grid(s, 0.0, 0.0, _FINE)
        return log_sum(self._cells(x, np.zeros_like(x), s, 0.0)[0])

    def rule(self, s: float, tau: float, height: float, log_error: float) -> tuple[float, float]:
        """Return a step of the trapezoidal rule, and ln of a bound on its error for |t| ≤ τ.

        The error is ∫ f/(e^{−2πiz/η} − 1) dz over contours above and below the real line. These are
        at `height`, and lower where |χ| grows with the height, as far as f is small.
        """
        x = self._grid(s, tau, height, _COARSE)
        y = self.lowered(x, np.full(len(x), height), s)
        logs, least = self._cells(x, y, s, tau)
        logs = logs + math.log(2)

        def error(step: float) -> float:
            gap = 2 * math.pi * least / step
            with np.errstate(divide="ignore"):
                return log_sum(logs - gap - np.log(-np.expm1(-gap)))

        fine = 2 * math.pi * height / (max(log_sum(logs) - log_error, 0.0) + 1.0)
        while error(fine) > log_error:
            fine *= _FINER
            if fine < height * _FINEST:
                return fine, math.inf
        coarse = fine * _COARSER
        while error(coarse) <= log_error:
            fine, coarse = coarse, coarse * _COARSER
        return fine, error(fine)

    def _grid(self, s: float, tau: float, height: float, cells: int) -> Floats:
        return self.refined(np.linspace(*self.reach(s, tau, height, FALL), cells + 1))

    def refined(self, x: Floats) -> Floats:
        """Add points near the cuts, which are denser closer to them."""
        places = [
            place + width * np.array(_CELL_OFFSETS)
            for place, width, _ in self.edges
            if x[0] < place < x[-1]
        ]
        if not places:
            return x
        added = np.concatenate(places)
        return distinct(np.concatenate([x, added[(added > x[0]) & (added < x[-1])]]))

    @property
    def edges(self) -> list[Edge]:
        """The cuts."""
        edges = [(self.cut, self.width, 1), (self.rise, self.rise_width, -1)]
        return [edge for edge in edges if math.isfinite(edge[0])]

    def log_decay(self, s: float, t: float) -> float:
        """Return an upper bound on ln|Λ(s + iu)| for all |u| ≥ t > 0.

        The contour is y = t g(x), where g is the Stein kernel of the loss under the law with
        density ∝ φ w^s. Then the bound falls like e^{−t²V/2} for small t, as |Λ| does; V is the
        variance of the loss under that law. Large losses, with phases that differ by more than
        about π, need no such care and are left out of the kernel. Any contour is valid.
        """
        low, high = self.reach(s, -t, 0.0, FALL)
        x = np.linspace(low, high, _FINE + 1)
        loss = self.log_density(x)
        mass = self.bell(x) + s * loss
        kernel = stein_kernel(loss, mass, t) * (x[1] - x[0])
        height = np.clip(np.maximum.accumulate(t * kernel), 0.0, self.largest_shift)
        first = int(np.argmax(height > 0))
        height[:first] = np.minimum(height[first], np.sqrt(0.5 * (mass.max() - mass[:first])))
        rough, x = x, self.refined(x)
        height = self.lowered(x, np.interp(x, rough, height), s, t)
        return log_sum(self._cells(x, height, s, -t)[0])

    def lowered(self, x: Floats, height: Floats, s: float, t: float | None = None) -> Floats:
        """Lower a contour near a cut, where |χ| grows with the height.

        At the height y = tμpτ² phases e^{−t arg w} outweigh this growth, which is about e^{y²/2τ²}.
        Given t, more is allowed at the peak of the law only: a count multiplies rare losses.
        """
        if not self.is_cut:
            return height
        mass = self.bell(x) + s * self.log_density(x)
        below, found = float(mass.max()) - mass, height
        spare = 1.0 + 0.5 * below
        for place, width, side in self.edges:
            u = np.maximum(side * (place - x), 0.0) * (ROOT_HALF / width)
            grown = spare
            if t is not None:
                worth = 0.5 * (t * self.mu * width * self.share(x)) ** 2
                grown = np.minimum(spare, worth + np.exp(-0.5 * below))
            found = np.minimum(found, width / ROOT_HALF * np.sqrt(0.5 * u * u + grown))
        return found

    def _cells(self, x: Floats, y: Floats, s: float, tau: float) -> tuple[Floats, Floats]:
        """Bound the integral over the contour through the points x + iy, cell by cell.

        On each cell every factor is evaluated at the corner where it is largest. Return the
        logarithms of the bounds, and the least height on each cell. The last two entries are for
        the two parts outside.
        """
        lower, higher = np.minimum(y[:-1], y[1:]), np.maximum(y[:-1], y[1:])
        flattest, turned = self.mu * lower, self.mu * higher
        terms, wide = Terms.of(self, x), np.diff(x)
        left, right, cosine = (
            terms.part(slice(None, -1)),
            terms.part(slice(1, None)),
            np.cos(flattest),
        )
        if s > 0:  # w^s is log-convex at every angle: ln w^s is below its chords
            growth = [s * end.log_size(cosine) for end in (left, right)]
            middle, slope = 0.5 * (growth[0] + growth[1]), (growth[1] - growth[0]) / wide
        else:  # and below its tangents
            at = Terms.of(self, 0.5 * (x[:-1] + x[1:]))
            middle = s * at.log_size(np.cos(turned))
            slope = s * self.mu * at.share(np.cos(turned))
        base = log_tilted(x, middle, slope)
        if tau >= 0:
            angle = right.angle(np.sin(turned), np.cos(turned))
        else:
            angle = left.angle(np.sin(flattest), cosine)
        length = np.hypot(wide, np.diff(y)) / wide
        rise = 0.5 * higher * higher
        logs = base + self.log_kept_on(x, higher) + rise + tau * angle + np.log(length)
        rates = self.rates(float(x[0]), float(x[-1]), s, tau, float(max(y[0], y[-1])))
        outside = self.log_integrand(x[[0, -1]], s, tau, y[[0, -1]]) - np.log(rates) - HALF_LOG_2PI
        size_of_terms = 1 + float((2 * np.abs(middle) + np.abs(slope * wide)).max())
        size_of_terms += float(np.abs(tau * angle).max())
        size_of_terms += float((x * x).max() + rise.max())
        slack = SLACK * size_of_terms + LOSS_ERROR * (abs(s) + abs(tau))
        return np.concatenate([logs, outside]) + slack, np.concatenate([lower, y[[0, -1]]])

    def log_integrand(self, x: Floats, s: float, tau: float, height: Floats) -> Floats:
        """Return ln(√(2π) φ e^{y²/2} |w|^s e^{τ arg w}) at x + iy, y = height ≥ 0."""
        size, angle = self.at_angle(x, self.mu * height)
        return self.log_kept(x, height) + 0.5 * (height * height - x * x) + s * size + tau * angle

    def log_kept_on(self, x: Floats, height: Floats) -> Floats:
        """Return upper bounds on ln|χ| on cells."""
        total = np.zeros(len(x) - 1)
        for place, width, side in self.edges:
            u, order = side * (x - place) * (ROOT_HALF / width), slice(None, None, side)
            total += log_half_erfc_on(u[order], height[order] * (ROOT_HALF / width))[order]
        return total


@final
@dataclass(frozen=True, slots=True)
class Terms:
    """The two terms 1 − q and q e^l of w at real points, divided by the larger one."""

    log_top: Floats
    smaller: Floats
    is_shifted: NDArray[np.bool_]
    """Whether q e^l is the larger term."""

    @staticmethod
    def of(law: Mixture, x: Floats) -> Terms:
        """Return the terms of a mixture at x."""
        shifted = law.log_shifted(x)
        above = shifted - law.log_rest
        return Terms(np.maximum(shifted, law.log_rest), np.exp(-np.abs(above)), above > 0)

    def part(self, kept: slice) -> Terms:
        """Return the terms at some of the points."""
        return Terms(self.log_top[kept], self.smaller[kept], self.is_shifted[kept])

    def log_size(self, cosine: Floats | float) -> Floats:
        """Return ln|w| where q e^l has an argument with this cosine, which must not be negative."""
        found: Floats = self.log_top + 0.5 * np.log1p(self.smaller * (self.smaller + 2 * cosine))
        return found

    def share(self, cosine: Floats | float) -> Floats:
        """Return the derivative of ln|w| in x, divided by μ: the real part of q e^{l + iθ}/w."""
        small, product = self.smaller, self.smaller * cosine
        found: Floats = np.where(self.is_shifted, 1.0 + product, small * small + product)
        found /= 1.0 + small * small + 2 * product
        return found

    def angle(self, sine: Floats | float, cosine: Floats | float) -> Floats:
        """Return arg w where q e^l has an argument with this sine and cosine."""
        still = np.where(self.is_shifted, self.smaller, 1.0)
        turned = np.where(self.is_shifted, 1.0, self.smaller)
        found: Floats = np.arctan2(turned * sine, still + turned * cosine)
        return found


def stein_kernel(loss: Floats, log_mass: Floats, t: float) -> Floats:
    """Return the Stein kernel of the small values of a loss, divided by the spacing of its points.

    `log_mass` has the logarithms of a density ∝ φ w^s at these points.
    """
    mass = np.exp(log_mass - log_mass.max())
    median = loss[np.searchsorted(np.cumsum(mass), 0.5 * mass.sum())]
    near = np.where(t * (loss - median) <= _CUT, mass, 0.0)
    mean = float(np.dot(near, loss) / near.sum())
    moment = near * (loss - mean)
    above = np.cumsum(moment[::-1])[::-1]
    kernel = np.where(loss > mean, above, -np.cumsum(moment))
    positive = near > 1e-12 * near.max()
    return np.where(positive, kernel / np.where(positive, near, 1.0), 0.0)


# --- How fast the transforms of smooth losses decay along a vertical line -------------------------

_LOG_2 = math.log(2)
_NEAREST = 0.3
"""First t for a bound, in units of one over the standard deviation: a smaller one says no more."""
_LEAP = 2.0
"""Ratio of the first values of t for which bounds are computed."""
_MOST_ANCHORS = 60
"""Largest number of these values: 2^60 standard deviations are beyond every line."""
_NEAR = 1 / 3
"""Share of the best of these t below which no bound is computed: its fractions have better ones."""
_ENOUGH = 0.75
"""Share of the decay of a normal law that is good enough; for less, another bound is computed."""
_GRID = 1.1
"""Ratio of the t at which later bounds are computed: t within 10 % share one."""


def up(value: float) -> float:
    """Return a float above the number that was rounded to this float."""
    return math.nextafter(value, math.inf)


class Decay(ABC):
    """Upper bounds on r(t) = sup |M(c + iu)|/M(c) over u ≥ t."""

    @abstractmethod
    def log_ratio(self, t: float) -> float:
        """Return an upper bound on ln r(t)."""

    def known(self, t: float) -> float:
        """Return an upper bound on ln r(t) that takes no search."""
        return self.log_ratio(t)

    def log_scale(self) -> float | None:
        """Return ln C such that r(t) ≤ C/t for all t, or None if there is none, as with atoms."""
        return None


@final
@dataclass(frozen=True)
class GaussianDecay(Decay):
    """r(t) = e^{−t²μ²/2}, given μ²/2."""

    half: float

    def log_ratio(self, t: float) -> float:
        """Return ln r(t)."""
        return -self.half * t * t

    def log_scale(self) -> float | None:
        """Return ln(√(2/μ²)), as x e^{−x²} < 1."""
        return -0.5 * math.log(self.half)


@final
class NoDecay(Decay):
    """r(t) = 1."""

    def log_ratio(self, t: float) -> float:
        """Return 0."""
        return 0.0


@final
class MixtureDecay(Decay):
    """The decay of |Λ(s + it)|/Λ(s).

    Statement: if r bounds the ratio for all arguments ≥ T, then √(1 − (1 − r²)/n²) bounds it for
    t ≥ T/n. Proof: ψ(t) = (|Λ(s + it)|/Λ(s))² is a real characteristic function, so that
    1 − ψ(nt) ≤ n²(1 − ψ(t)) for every integer n. Hence the bound is Gaussian near 0, however rough
    r is.
    """

    def __init__(self, floats: Mixture, s: float, size: float, deviation: float) -> None:
        self._floats, self._s, self._size, self._deviation = floats, s, size, deviation
        self._known: dict[float, float] = {}
        t, best = _NEAREST / self._deviation, 0.0
        self._best = t
        for _ in range(_MOST_ANCHORS):
            found = -math.expm1(2 * self._direct(t)) / t**2
            if found < best:  # the estimate of V falls again once cells are too wide
                break
            best, self._best, t = found, t, _LEAP * t
            if best > _ENOUGH * deviation**2 or best * t**2 > 1:  # it cannot exceed V or 1/t²
                break

    def _direct(self, t: float) -> float:
        if t not in self._known:
            self._known[t] = min(self._floats.log_decay(self._s, t) - self._size, 0.0)
        return self._known[t]

    def log_ratio(self, t: float) -> float:
        """Return the best bound, from points below t and from points above it divided by n."""
        best = self.known(t)
        if t > _NEAR * self._best and best > -_ENOUGH * (t * self._deviation) ** 2 / 2:
            self._direct(_GRID ** math.floor(math.log(t) / math.log(_GRID)))
            best = self.known(t)
        return best

    def known(self, t: float) -> float:
        """Return the best of the bounds that have been computed."""
        best = 0.0
        for point, level in self._known.items():
            if point <= t:
                best = min(best, level)
            else:
                n = math.ceil(point / t)
                best = min(best, 0.5 * math.log1p(math.expm1(2 * level) / n**2))
        return best

    def log_scale(self) -> float | None:
        """Bound t|Λ(s + it)| by the variation of φ w^s/L', through Gaussian moments in closed form.

        One integration by parts gives (1/t) ∫ |(φ w^s/L')'| dx with L' = μ q e^l/w. Moreover
        w ≤ 2 max(1, e^l) for s ≥ 0 and w ≥ 1 − q for s < 0.
        """
        mu, s = self._floats.mu, self._s
        above = max(s, 0.0)
        factor = mu * (1 + abs(s + 1))
        if math.isfinite(self._floats.cut):
            factor += 1 / self._floats.width  # |χ'| ≤ 1/(τ√(2π))
        if math.isfinite(self._floats.rise):
            factor += 1 / self._floats.rise_width
        logs = []
        for a in (-1.0, 0.0, above - 1, above):
            moment = 0.5 * (2 + (a * mu) ** 2) + factor
            logs.append(0.5 * (a * a - a) * mu * mu + math.log(moment))
        top = max(logs) + math.log(4)
        outer = above * _LOG_2 + min(s, 0.0) * self._floats.log_rest
        size = top + outer - math.log(mu) - self._floats.log_share - self._size
        return size + 1e-6 * (1 + abs(size) + abs(self._size))
