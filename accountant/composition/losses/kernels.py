"""Inner loops of floats: sums over the nodes of the trapezoidal rule in x, and bounds on cells.

*Phases.* Sums Σ v_n (e^{itx_n} − 1) at t = 0, h, 2h, …, in floats with a bound of their error.

Only operations that IEEE 754 rounds correctly are used (+, −, ×, rounding to integers, and sums of
products in any order); u = 2^−53 is the unit roundoff. With j = bG + g and

    a = e^{ibGhx} − 1,   b = e^{ighx} − 1,   e^{ijhx} − 1 = a(1 + b) + b,

the sums are a product of two matrices, of some 2√N entries per phase for N points t. The matrices
are split into heads of few bits, whose products are summed exactly, and rests whose products are
2^21 times smaller, so that the error does not grow with the number of phases.

*Error.* An angle y = jhx with x and its product rounded is wrong by 2u|y|. Halved and reduced by a
multiple of π/2 it is wrong by u more, unless that multiple is 0; the power series and the products
that make 2i sin(y/2) e^{iy/2} of it lose 6u|y|. In all e^{iy} − 1 is wrong by less than 10u|y|, as
|e^{iy} − 1| ≤ |y|. So, with weights that are wrong by 2u and |1 + b| = 1 rounded, the product is
wrong by less than 20u|bGhx| + 36u|ghx| for every phase before summation. What the sums of N rests
add is N·u times the sum of their sizes, at most N 2^−B Σ v_n|bGhx_n| for heads of B bits (below 4u
of the sum for N ≤ 2^13), and for v itself gh(Σ min(v_n, 2^−B max v)|x_n| + 2^−B max|x_n|). So far
the sum is wrong by less than 24u(bG + 2g)h Σ v_n|x_n|, and what the rests beside v add.

*Without heads* a sum of M products of floats is wrong by Mu/(1 − Mu) times the sum of their sizes,
in any order. By Cauchy's inequality these are at most bGh Σ v_n|x_n| for a(1 + b), |1 + b| = 1, and
gh Σ v_n|x_n| for v b: it adds Mu(bG + g)h Σ v_n|x_n|, rounded factors included in the slack.

*Cells.* Upper bounds of logarithms on cells of the real line: of normal laws, smooth cuts and sums.
`SLACK`, relative to the logarithms that are added, exceeds their rounding errors.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals: TypeAlias = NDArray[np.floating[Any]]
    Complexes: TypeAlias = NDArray[np.complex128]
    Floats: TypeAlias = NDArray[np.float64]
    Array: TypeAlias = Floats | Complexes
    Values = TypeVar("Values", bound=NDArray[Any])

BY_EXCESS = 0.5
"""|ln M| below which it is summed from w^s − 1 − s(w − 1), where the direct sum loses digits."""
_NEAR_ONE = 0.35
"""e^±0.5 are further from 1."""
_SMALL = 0.3
"""|v| up to which ln(1 + v) − v is a power series: 11 terms leave 1e-17."""
_SMALL_RISE = 0.5
"""The rise w − 1 up to which ln w is log1p of it."""
_FARTHEST = 700.0
"""Largest exponent that is formed."""
_SMALL_POWER = 0.1
"""|u| up to which e^u − 1 − u is a power series."""
_FAR = 1.0
"""s ln w beyond which e^{s ln w} − 1 − s(w − 1) is summed directly: nothing cancels there."""
_CHUNK = 1 << 19
"""Entries of a block of phases: 8 MB, which caches hold."""
_IN_CACHE = 1 << 14
"""Entries of a block of angles: four times as fast as all at once."""
_PHASES = 1 << 10
"""Phases whose matrices are formed at once: of all of them they fill megabytes."""
_FEW = 32
"""Points t up to which no product of matrices is formed."""
ROOT_2PI = math.sqrt(2 * math.pi)
_EXP_TERMS = tuple(1 / math.factorial(n) for n in range(2, 12))
_TERMS_UP_TO = (1e-3, _EXP_TERMS[:6]), (1e-2, _EXP_TERMS[:7]), (_SMALL_POWER, _EXP_TERMS)
"""What is left out is below 1e-17 of the sum."""
_LOG_TERMS = tuple(2.0 / (2 * n + 1) for n in range(1, 12))


def excess_of_exp(u: Values) -> Values:
    """Return e^u − 1 − u with relative accuracy, for real or complex u."""
    found: Values = np.expm1(u) - u
    near = np.abs(u) < _SMALL_POWER
    small = u[near]
    found[near] = _series(small, _EXP_TERMS) * small * small
    return found


def _beyond(u: Floats, grown: Floats) -> Floats:
    """Return e^u − 1 − u with relative accuracy, given e^u − 1."""
    size = max(float(u.max()), -float(u.min()))
    if size < _SMALL_POWER:
        return _series(u, next(terms for limit, terms in _TERMS_UP_TO if size < limit)) * u * u
    found: Floats = grown - u
    near = np.abs(u) < _SMALL_POWER
    small = u[near]
    found[near] = _series(small, _EXP_TERMS) * small * small
    return found


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
    series = np.full_like(v, _LOG_TERMS[-1])
    for term in _LOG_TERMS[-2::-1]:
        series *= square
        series += term
    series *= square
    direct: Floats = np.log1p(v) - v
    return np.where(near, r * series - small * r, direct)


def axis(mu: float, log_share: float, log_rest: float, x: Floats) -> tuple[Floats, Floats]:
    """Return L and L − (w − 1) at real x."""
    shift = mu * x - 0.5 * mu * mu
    rise = math.exp(log_share) * np.expm1(np.minimum(shift, _FARTHEST))
    loss = np.logaddexp(log_rest, log_share + shift)
    near = np.abs(rise) < _SMALL_RISE
    loss[near] = np.log1p(rise[near])
    return loss, excess_of_log1p(rise)


def raised(mu: float, log_share: float, log_rest: float, x: Floats, height: float) -> Complexes:
    """Return L at x + i·height, below the zeros of w."""
    angle, shift = mu * height, mu * x - 0.5 * mu * mu
    top = np.maximum(log_share + shift, log_rest)
    still, turned = np.exp(log_rest - top), np.exp(log_share + shift - top)
    real, imaginary = still + turned * math.cos(angle), turned * math.sin(angle)
    found = np.empty(len(x), dtype=np.complex128)
    found.real = top + 0.5 * np.log(real * real + imaginary * imaginary)
    near = turned < _SMALL_RISE  # there top = ln(1 − q), and L may be much smaller
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

    `mass` is m, φ dx at the nodes, and `gap` is L − (w − 1). Where ln Σ is near 0 it is formed
    from w^s − 1 − s(w − 1), whose terms are of second order in w − 1, as E[w] = 1.
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
        far = power > _FAR  # there m may be 0 where m w^s is not
        near, plain = np.where(far, 0.0, power), np.where(far, 0.0, mass)
        whole, rest = np.where(far, np.exp(logs), 0.0), np.where(far, mass, 0.0)
        excess = float((whole - rest * (1.0 + power - s * gap)).sum())
        excess += float(np.dot(plain, excess_of_exp(near) + s * gap))
        first = float((whole * loss - rest * (loss - gap)).sum())
        first += float(np.dot(plain, np.expm1(near) * loss + gap))
        size, mean = math.log1p(excess), first / (1.0 + excess)
    variance = float(np.dot(weights, (loss - mean) ** 2)) / total
    return size, mean, variance


def line(mass: Array, loss: Array, t: Floats) -> Complexes:
    """Return Σ mass (e^{iu} − 1 − iu), u = t·loss, for every t, in blocks that fit the cache."""
    found = np.empty(len(t), dtype=np.complex128)
    block = max(1, _CHUNK // len(loss))
    for start in range(0, len(t), block):
        u = t[start : start + block, None] * loss[None, :]
        found[start : start + block] = excess_of_exp(1j * u) @ mass
    return found


def on_line(mass: Array, loss: Array, step: float, count: int) -> Complexes:
    """Return what `line` returns for t = 0, h, 2h, …; many by a product of matrices.

    With e^{iu} − 1 − iu = x(u), that of a sum is x(u + v) = x(u) + x(v) + (e^{iu} − 1)(e^{iv} − 1);
    for small angles the terms have the same sign, and nothing cancels.
    """
    if count <= _FEW:
        return _rows(step * loss, count)[1] @ mass
    inner = math.isqrt(count)
    outer = -(-count // inner)
    near, excess = _rows(step * loss, inner)
    far, far_excess = _rows(inner * step * loss, outer)
    found = _product(far * mass, near)
    found += (far_excess @ mass)[:, None] + (excess @ mass)[None, :]
    return found.ravel()[:count]


def _rows(angles: Array, number: int) -> tuple[Complexes, Complexes]:
    """Return e^{igu} − 1 and e^{igu} − 1 − igu for 0 ≤ g < number, u the angles."""
    turned, excess = np.zeros((2, number, len(angles)), dtype=np.complex128)
    if number > 1:
        turned[1], excess[1] = np.expm1(1j * angles), excess_of_exp(1j * angles)
    known = 2
    while known < number:  # twice as many each time
        more = slice(known, min(2 * known - 1, number))
        low = slice(1, 1 + more.stop - known)
        mixed = turned[low] * turned[known - 1]
        turned[more] = turned[low] + turned[known - 1] + mixed
        excess[more] = excess[low] + excess[known - 1] + mixed
        known = more.stop
    return turned, excess


def _product(left: Complexes, right: Complexes) -> Complexes:
    """Return the products of the rows, by four products of real matrices.

    Libraries share that of small complex ones among threads, which takes much longer.
    """
    a, b = np.ascontiguousarray(left.real), np.ascontiguousarray(left.imag)
    c, d = np.ascontiguousarray(right.real.T), np.ascontiguousarray(right.imag.T)
    found = np.empty((len(left), len(right)), dtype=np.complex128)
    found.real = a @ c - b @ d
    found.imag = a @ d + b @ c
    return found


MOST_PHASES = 1 << 13
"""Most nodes of `phase_sums`: the error bound at the head of this file counts on it."""
_UNIT = 2.0**-53
"""The unit roundoff u."""
_ERROR = 24 * _UNIT
"""24u: see the head of this file."""
LARGEST_ANGLE = 2.0**20
"""Largest t·|x_n|: multiples of π/2 are then products without rounding."""
_SLACK = 1 + 1e-6  # covers the rounding of the bound itself
_HEAD = float.fromhex("0x1.921fb544p+0")  # π/2 = _HEAD + _MIDDLE + _TAIL, 33 bits in each head
_MIDDLE = float.fromhex("0x1.0b4611a6p-34")
_TAIL = float.fromhex("0x1.3198a2e037073p-69")
_SINE = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(1, 9))
_COSINE = tuple((-1) ** n / math.factorial(2 * n) for n in range(1, 9))
"""Coefficients of sin(y)/y − 1 and cos(y) − 1 by powers of y², |y| ≤ π/4: the rest is below u."""


def error_of_sums(weights: Reals, x: Reals, *, heads: bool = True) -> float:
    """Return c such that c·(bG + 2g)h bounds the error of `phase_sums` at j = bG + g."""
    size = np.abs(x)
    if not heads:
        return _SLACK * (_ERROR + len(x) * _UNIT) * float(weights @ size)
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
    """Return Σ v_n (e^{ijhx_n} − 1) for 0 ≤ j < count, with v_n > 0 of sum 1.

    Without `heads` it is faster, and less exact.
    """
    inner = blocks(count)
    outer = -(-count // inner)
    if heads:
        product = _product_by_heads(*_factors(weights, x, step, inner, outer))
    else:
        parts = [slice(n, n + _PHASES) for n in range(0, len(x), _PHASES)]
        factors = (_factors(weights[part], x[part], step, inner, outer) for part in parts)
        product = functools.reduce(np.add, (left @ whole.T for left, whole in factors))
    one, two, rest = (slice(k * inner, (k + 1) * inner) for k in range(3))
    real = product[:outer, one] - product[outer:-1, two] + product[-1, rest]
    imaginary = product[:outer, two] + product[outer:-1, one] + product[-1, two]
    found: Complexes = (real + 1j * imaginary).ravel()[:count]
    return found


def _factors(weights: Reals, x: Reals, step: float, inner: int, outer: int) -> tuple[Reals, Reals]:
    """Return v a and v, and 1 + b and b, in rows: the sums are sums of products of these."""
    near = turned(np.arange(inner) * step, x)
    far = turned(np.arange(outer) * (inner * step), x) * weights
    left = np.vstack([far.real, far.imag, weights[None, :]])
    return left, np.vstack([near.real + 1.0, near.imag, near.real])


def turned(t: Reals, x: Reals) -> Complexes:
    """Return e^{it_j x_n} − 1, one row for every t, in blocks that fit the cache."""
    found, rows = np.empty((len(t), len(x)), dtype=np.complex128), max(1, _IN_CACHE // len(x))
    for i in range(0, len(t), rows):
        found[i : i + rows] = _turned(t[i : i + rows], x)
    return found


def _turned(t: Reals, x: Reals) -> Complexes:
    half = (0.5 * t)[:, None] * x[None, :]
    turns = np.rint(half * (2 / math.pi))
    rest = ((half - turns * _HEAD) - turns * _MIDDLE) - turns * _TAIL
    square = rest * rest
    small = _without_constant(_SINE, square)
    small *= rest
    small += rest
    large = _without_constant(_COSINE, square)
    large += 1.0
    odd = (turns.astype(np.int64) & 1) == 1  # there the sine is ±large, the cosine ∓small
    sine, found = np.where(odd, large, small), np.empty(half.shape, dtype=np.complex128)
    found.real, found.imag = -2.0 * sine * sine, 2.0 * small * np.where(odd, -large, large)
    return found


def _without_constant(terms: tuple[float, ...], square: Reals) -> Reals:
    """Return the power series Σ c_n z^n, n ≥ 1."""
    found = terms[-1] * square
    for term in terms[-2::-1]:
        found += term
        found *= square
    return found


def _bits(number: int) -> int:
    """Return how many bits heads may have, so that sums of so many products are exact."""
    return (52 - (number - 1).bit_length()) // 2


def _product_by_heads(first: Reals, second: Reals) -> Reals:
    """Return the product of a matrix and the transpose of another one, heads without rounding."""
    heads = [_head(matrix, _bits(first.shape[1])) for matrix in (first, second)]
    rests = [matrix - head for matrix, head in zip((first, second), heads, strict=True)]
    found: Reals = heads[0] @ heads[1].T + (heads[0] @ rests[1].T + rests[0] @ second.T)
    return found


def _head(matrix: Reals, bits: int) -> Reals:
    """Return the leading bits of the entries of every row, relative to its largest."""
    top = np.maximum(np.abs(matrix).max(axis=1, keepdims=True), 2.0**-900)
    shift = np.ldexp(1.5, np.frexp(top)[1] + (52 - bits))
    found: Reals = (matrix + shift) - shift
    return found


SLACK = 2.0**-38
"""Relative to the sum of the logarithms: a thousand times their rounding."""
LOSS_ERROR = 2.0**-49
"""Absolute rounding error of a logarithm |ln w| or an angle arg w near 0, sixteen units: what a
factor |w|^s or e^{τ arg w} multiplies by s and τ, however small ln w is."""
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
"""−ln of the largest normal density."""
ROOT_HALF = math.sqrt(0.5)
_FAR_OUT = 5.0
"""|u| from which on the asymptotic bounds of erfc are within 2 % of it."""
LEAST_RATE = 1.0
"""Rate at which integrands have to fall beyond their ends: below it what lies outside is no small
part."""


def log_half_erfc(u: Floats, v: Floats) -> Floats:
    """Return an upper bound of ln|erfc(u + iv)/2|, nearly met for v = 0.

    |erfc(u + iv)| ≤ e^{v²} erfc(u), and for u < 0 it is |2 − erfc(−u − iv)| ≤ 2 + e^{v²} erfc(|u|).
    Far out e^{−w²}/(w√π) is above erfc(w), and 1 − 1/(2w²) times it is below: the complement for
    u < 0 takes the latter.
    """
    kept = np.zeros_like(u)
    near = u > -6.0 - np.abs(v)
    u, square = u[near], v[near] * v[near]
    size = np.abs(u)
    far = size > _FAR_OUT
    tail = -size * size - np.log(np.where(far, size, 1.0) * (2 * math.sqrt(math.pi)))
    close = size[~far].tolist()
    tail[~far] = np.log(0.5 * np.fromiter(map(math.erfc, close), float, len(close)))
    least = np.where(far, tail + np.log1p(-0.5 / np.where(far, size, 1.0) ** 2), tail)
    kept[near] = np.where(
        u > 0,
        square + tail,
        np.minimum(square + np.log1p(-np.exp(least)), np.logaddexp(0.0, square + tail)),
    )
    return kept


def log_half_erfc_at(u: float) -> float:
    """Return ln(erfc(u)/2), nearly."""
    if u > _FAR_OUT:
        return -u * u - math.log(u * (2 * math.sqrt(math.pi)))
    return math.log(0.5 * math.erfc(u))


def distinct(points: Floats) -> Floats:
    """Return the values in ascending order, each once; `numpy.unique` takes 20 ms to be loaded."""
    found = np.sort(points)
    return found[np.diff(found, prepend=-math.inf) > 0]


def log_sum(logs: Floats) -> float:
    """Return an upper bound of ln Σ e^{l_i}."""
    top = float(logs.max())
    if math.isinf(top):
        return top
    return top + math.log(float(np.exp(logs - top).sum())) + SLACK


def log_near(x: Floats) -> Floats:
    """Return upper bounds of ln P(x_j < X < x_{j+1}): the largest density times the length."""
    nearest = np.where(x[:-1] * x[1:] <= 0, 0.0, np.minimum(np.abs(x[:-1]), np.abs(x[1:])))
    bound: Floats = np.log(np.diff(x)) - 0.5 * nearest * nearest - HALF_LOG_2PI
    return bound


def log_tilted(x: Floats, tilt: Floats, growth: Sequence[Floats]) -> Floats:
    """Return upper bounds of ln ∫ φ e^g over cells, for convex g, given at their two ends.

    On a cell φ e^{cx} is largest where x is nearest to c, and g − cx at an end, for every tilt c.
    """
    nearest = np.clip(tilt, x[:-1], x[1:])
    ends = np.maximum(growth[0] - tilt * x[:-1], growth[1] - tilt * x[1:])
    bound: Floats = np.log(np.diff(x)) + (tilt - 0.5 * nearest) * nearest + ends - HALF_LOG_2PI
    return bound
