"""The inner loops of the float engine, compiled by numba (the extra `fast`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numba
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Complexes: TypeAlias = NDArray[np.complex128]
    Array: TypeAlias = Floats | Complexes

_SMALL = 0.3
_SMALL_RISE = 0.5
"""The rise w − 1 up to which ln w is log1p of it."""
_FAR = 1.0
_FARTHEST = 700.0
_TERMS = tuple(1 / math.factorial(n) for n in range(2, 15))


@numba.njit(cache=True)
def _growth(u: float) -> tuple[float, float]:
    """Return e^u − 1 and e^u − 1 − u."""
    if abs(u) >= _SMALL:
        grown = math.expm1(u)
        return grown, grown - u
    series = 0.0
    for n in range(16, 2, -1):
        series = (series + 1.0) * u / n
    excess = (series + 1.0) * u * u * 0.5
    return excess + u, excess


@numba.njit(cache=True)
def _turned(u: complex) -> tuple[complex, complex]:
    """Return e^{iu} − 1 and e^{iu} − 1 − iu."""
    v = complex(-u.imag, u.real)
    if abs(v.real) + abs(v.imag) < _SMALL:
        excess = complex(_TERMS[-1], 0.0)
        for n in range(len(_TERMS) - 2, -1, -1):
            excess = excess * v + _TERMS[n]
        excess = excess * v * v
        return excess + v, excess
    grown, sine, cosine = math.expm1(v.real), math.sin(0.5 * v.imag), math.cos(0.5 * v.imag)
    less = 2.0 * sine * sine
    turned = complex(grown * (1.0 - less) - less, (1.0 + grown) * 2.0 * sine * cosine)
    return turned, turned - v


@numba.njit(cache=True)
def _moments(s: float, mass: Any, log_mass: Any, loss: Any, gap: Any) -> tuple[float, float, float]:
    top = -math.inf
    for i in range(len(loss)):
        top = max(top, s * loss[i] + log_mass[i])
    weights = np.empty(len(loss))
    total = first = 0.0
    for i in range(len(loss)):
        weights[i] = math.exp(s * loss[i] + log_mass[i] - top)
        total += weights[i]
        first += weights[i] * loss[i]
    size = top + math.log(total)
    mean = first / total
    if abs(size) < 0.5:
        excess = first = 0.0
        for i in range(len(loss)):
            power = s * loss[i]
            if power > _FAR:  # there m may be 0 where m w^s is not
                whole = math.exp(power + log_mass[i])
                excess += whole - mass[i] * (1.0 + power - s * gap[i])
                first += whole * loss[i] - mass[i] * (loss[i] - gap[i])
            else:
                grown, beyond = _growth(power)
                excess += mass[i] * (beyond + s * gap[i])
                first += mass[i] * (grown * loss[i] + gap[i])
        size = math.log1p(excess)
        mean = first / (1.0 + excess)
    second = 0.0
    for i in range(len(loss)):
        second += weights[i] * (loss[i] - mean) ** 2
    return size, mean, second / total


@numba.njit(cache=True)
def _line(mass: Any, loss: Any, t: Any) -> Any:
    found = np.zeros(len(t), dtype=np.complex128)
    for j in range(len(t)):
        total = complex(0.0, 0.0)
        for i in range(len(loss)):
            total += mass[i] * _turned(complex(t[j] * loss[i]))[1]
        found[j] = total
    return found


@numba.njit(cache=True)
def _rows(angles: Any, number: int) -> tuple[Any, Any, Any, Any]:
    """Return the parts of e^{igu} − 1, and of e^{igu} − 1 − igu, for 0 ≤ g < number."""
    size = len(angles)
    even, odd = np.zeros((number, size)), np.zeros((number, size))
    real, imaginary = np.zeros((number, size)), np.zeros((number, size))
    if number > 1:
        for i in range(size):
            turned, excess = _turned(complex(angles[i]))
            even[1, i], odd[1, i] = turned.real, turned.imag
            real[1, i], imaginary[1, i] = excess.real, excess.imag
    for g in range(2, number):
        a, b = g // 2, g - g // 2
        for i in range(size):
            both = even[a, i] * even[b, i] - odd[a, i] * odd[b, i]
            mixed = even[a, i] * odd[b, i] + odd[a, i] * even[b, i]
            even[g, i] = even[a, i] + even[b, i] + both
            odd[g, i] = odd[a, i] + odd[b, i] + mixed
            real[g, i] = real[a, i] + real[b, i] + both
            imaginary[g, i] = imaginary[a, i] + imaginary[b, i] + mixed
    return even, odd, real, imaginary


@numba.njit(cache=True, fastmath={"reassoc", "contract"})
def _dot(a: Any, b: Any, c: Any, d: Any) -> complex:
    """Return Σ (a + ib)(c + id)."""
    real = imaginary = 0.0
    for i in range(len(a)):
        real += a[i] * c[i] - b[i] * d[i]
        imaginary += a[i] * d[i] + b[i] * c[i]
    return complex(real, imaginary)


@numba.njit(cache=True)
def _on_line(mass: Any, loss: Any, step: float, count: int) -> Any:
    real, imaginary = mass.real.copy(), mass.imag.copy()
    inner = int(math.sqrt(count))
    outer = (count + inner - 1) // inner
    near = _rows(step * loss, inner)
    far = _rows(inner * step * loss, outer)
    shift = np.empty(inner, dtype=np.complex128)
    for g in range(inner):
        shift[g] = _dot(real, imaginary, near[2][g], near[3][g])
    found = np.empty(outer * inner, dtype=np.complex128)
    for b in range(outer):
        even = far[0][b] * real - far[1][b] * imaginary
        odd = far[0][b] * imaginary + far[1][b] * real
        start = _dot(real, imaginary, far[2][b], far[3][b])
        for g in range(inner):
            found[b * inner + g] = start + shift[g] + _dot(even, odd, near[0][g], near[1][g])
    return found[:count]


@numba.njit(cache=True)
def _log_of_sum(a: float, b: float) -> float:
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@numba.njit(cache=True)
def _axis(mu: float, log_share: float, log_rest: float, x: Any) -> tuple[Any, Any]:
    share = math.exp(log_share)
    loss, gap = np.empty(len(x)), np.empty(len(x))
    for i in range(len(x)):
        shift = mu * x[i] - 0.5 * mu * mu
        rise = share * math.expm1(min(shift, _FARTHEST))
        near = abs(rise) < _SMALL_RISE
        loss[i] = math.log1p(rise) if near else _log_of_sum(log_rest, log_share + shift)
        if abs(rise) >= _SMALL:
            gap[i] = math.log1p(rise) - rise
            continue
        r = rise / (2.0 + rise)
        square, series = r * r, 0.0
        for n in range(11, 0, -1):
            series = (series + 2.0 / (2 * n + 1)) * square
        gap[i] = r * series - rise * r
    return loss, gap


@numba.njit(cache=True)
def _raised(mu: float, log_share: float, log_rest: float, x: Any, height: float) -> Any:
    share, angle = math.exp(log_share), mu * height
    sine, cosine, half = math.sin(angle), math.cos(angle), math.sin(0.5 * angle)
    found = np.empty(len(x), dtype=np.complex128)
    for i in range(len(x)):
        shift = mu * x[i] - 0.5 * mu * mu
        top = max(log_share + shift, log_rest)
        still, turned = math.exp(log_rest - top), math.exp(log_share + shift - top)
        real, imaginary = still + turned * cosine, turned * sine
        if turned < _SMALL_RISE:
            grown = math.expm1(shift)
            more = share * (grown * cosine - 2.0 * half * half)
            aside = share * (1.0 + grown) * sine
            size = 0.5 * math.log1p(more * (2.0 + more) + aside * aside)
        else:
            size = top + 0.5 * math.log(real * real + imaginary * imaginary)
        found[i] = complex(size, math.atan2(imaginary, real))
    return found


class CompiledKernels:
    """The inner loops, compiled."""

    @staticmethod
    def axis(mu: float, log_share: float, log_rest: float, x: Floats, /) -> tuple[Floats, Floats]:
        """Return L and L − (w − 1) at real x."""
        found: tuple[Floats, Floats] = _axis(mu, log_share, log_rest, x)
        return found

    @staticmethod
    def raised(
        mu: float, log_share: float, log_rest: float, x: Floats, height: float, /
    ) -> Complexes:
        """Return L at x + i·height."""
        found: Complexes = _raised(mu, log_share, log_rest, x, height)
        return found

    @staticmethod
    def moments(
        s: float, mass: Floats, log_mass: Floats, loss: Floats, gap: Floats, /
    ) -> tuple[float, float, float]:
        """Return (ln Σ m w^s, mean, variance)."""
        found: tuple[float, float, float] = _moments(s, mass, log_mass, loss, gap)
        return found

    @staticmethod
    def line(mass: Array, loss: Array, t: Floats, /) -> Complexes:
        """Return the sums."""
        found: Complexes = _line(mass, loss, t)
        return found

    @staticmethod
    def on_line(mass: Array, loss: Array, step: float, count: int, /) -> Complexes:
        """Return the sums, by a product of two matrices."""
        found: Complexes = _on_line(mass, loss, step, count)
        return found
