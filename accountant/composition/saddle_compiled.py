"""The inner loops of the float engine, compiled by numba (the extra `fast`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numba
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

_SMALL = 0.3
_FAR = 1.0
_ROOT_2PI = math.sqrt(2 * math.pi)


@numba.njit(cache=True)
def _excess_of_exp(u: float) -> float:
    if abs(u) >= _SMALL:
        return math.expm1(u) - u
    series = 0.0
    for n in range(16, 2, -1):
        series = (series + 1.0) * u / n
    return (series + 1.0) * u * u * 0.5


@numba.njit(cache=True)
def _excess_of_sine(u: float, sine: float) -> float:
    if abs(u) >= _SMALL:
        return sine - u
    square = u * u
    series = 0.0
    for n in range(14, 2, -2):
        series = (series + 1.0) * square * (-1.0 / (n * (n + 1)))
    return (series + 1.0) * u * square * (-1.0 / 6.0)


@numba.njit(cache=True)
def _moments(s: float, step: float, bell: Any, loss: Any, gap: Any) -> tuple[float, float, float]:
    top = -math.inf
    for i in range(len(loss)):
        top = max(top, s * loss[i] + bell[i])
    total = first = 0.0
    for i in range(len(loss)):
        weight = math.exp(s * loss[i] + bell[i] - top)
        total += weight
        first += weight * loss[i]
    size = top + math.log(total * step / _ROOT_2PI)
    mean = first / total
    if abs(size) < 0.5:
        excess = first = 0.0
        for i in range(len(loss)):
            base = math.exp(bell[i]) * step / _ROOT_2PI
            power = s * loss[i]
            if power > _FAR:  # there φ may be 0 where φ w^s is not
                whole = math.exp(power + bell[i]) * step / _ROOT_2PI
                excess += whole - base * (1.0 + power - s * gap[i])
                first += whole * loss[i] - base * (loss[i] - gap[i])
            else:
                excess += base * (_excess_of_exp(power) + s * gap[i])
                first += base * (math.expm1(power) * loss[i] + gap[i])
        size = math.log1p(excess)
        mean = first / (1.0 + excess)
    second = 0.0
    for i in range(len(loss)):
        weight = math.exp(s * loss[i] + bell[i] - top)
        second += weight * (loss[i] - mean) ** 2
    return size, mean, second / total


@numba.njit(cache=True)
def _line(mass: Any, loss: Any, t: Any) -> tuple[Any, Any]:
    real, imaginary = np.zeros(len(t)), np.zeros(len(t))
    for j in range(len(t)):
        a = b = 0.0
        for i in range(len(loss)):
            u = t[j] * loss[i]
            sine, cosine = math.sin(0.5 * u), math.cos(0.5 * u)
            a -= 2.0 * mass[i] * sine * sine
            b += mass[i] * _excess_of_sine(u, 2.0 * sine * cosine)
        real[j], imaginary[j] = a, b
    return real, imaginary


@numba.njit(cache=True)
def _rows(angles: Any, number: int) -> tuple[Any, Any, Any]:
    size = len(angles)
    even, odd, excess = np.zeros((number, size)), np.zeros((number, size)), np.zeros((number, size))
    for g in range(1, number):
        a, b = g // 2, g - g // 2
        for i in range(size):
            if g == 1:
                half = math.sin(0.5 * angles[i])
                even[1, i], odd[1, i] = -2.0 * half * half, math.sin(angles[i])
                excess[1, i] = _excess_of_sine(angles[i], odd[1, i])
            else:
                mixed = even[a, i] * odd[b, i] + odd[a, i] * even[b, i]
                both = even[a, i] * even[b, i] - odd[a, i] * odd[b, i]
                even[g, i] = even[a, i] + even[b, i] + both
                odd[g, i] = odd[a, i] + odd[b, i] + mixed
                excess[g, i] = excess[a, i] + excess[b, i] + mixed
    return even, odd, excess


class CompiledKernels:
    """The inner loops, compiled."""

    @staticmethod
    def moments(
        s: float, step: float, bell: Floats, loss: Floats, gap: Floats, /
    ) -> tuple[float, float, float]:
        """Return (ln Σ φ w^s, mean, variance)."""
        found: tuple[float, float, float] = _moments(s, step, bell, loss, gap)
        return found

    @staticmethod
    def line(mass: Floats, loss: Floats, t: Floats, /) -> tuple[Floats, Floats]:
        """Return the two parts."""
        found: tuple[Floats, Floats] = _line(mass, loss, t)
        return found

    @staticmethod
    def rows(angles: Floats, number: int, /) -> tuple[Floats, Floats, Floats]:
        """Return the three parts."""
        found: tuple[Floats, Floats, Floats] = _rows(angles, number)
        return found
