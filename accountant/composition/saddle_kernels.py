"""Inner loops of the float engine: sums over the nodes of the trapezoidal rule in x.

Each is written twice, for numpy and for numba (`saddle_compiled`). Both do the same operations;
sums are rounded differently. The certified route plans with those in numpy: importing numba alone
takes longer than its whole answer.
"""

from __future__ import annotations

import importlib.util
import math
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from accountant.errors import NotApplicableError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

BY_EXCESS = 0.5
_SMALL = 0.3
_SMALL_POWER = 0.1
_FAR = 1.0
_CHUNK = 1 << 19
_ROOT_2PI = math.sqrt(2 * math.pi)
_EXP_TERMS = tuple(1 / math.factorial(n) for n in range(2, 12))
_LOG_TERMS = tuple(2.0 / (2 * n + 1) for n in range(1, 12))


class Kernels(Protocol):
    """The inner loops."""

    def moments(self, s: float, step: float, bell: Floats, loss: Floats, gap: Floats, /) -> Any:
        """Return (ln Σ φ w^s, mean of L, variance of L) under the weights φ w^s.

        `bell` is ln(√(2π) φ) at the nodes, one step apart; `gap` is L − (w − 1). Where ln Σ is near
        0 it is formed from w^s − 1 − s(w − 1), whose terms are of second order in w − 1, as
        E[w] = 1.
        """

    def line(self, mass: Floats, loss: Floats, t: Floats, /) -> tuple[Floats, Floats]:
        """Return real and imaginary part of Σ mass (e^{iu} − 1 − iu), u = t·loss, for every t."""

    def rows(self, angles: Floats, number: int, /) -> Any:
        """Return cos gu − 1, sin gu and sin gu − gu for 0 ≤ g < number, u the angles."""


def excess_of_exp(u: Floats) -> Floats:
    """Return e^u − 1 − u with relative accuracy."""
    found: Floats = np.expm1(u) - u
    near = np.abs(u) < _SMALL_POWER
    small = u[near]
    series = np.full_like(small, _EXP_TERMS[-1])
    for term in _EXP_TERMS[-2::-1]:
        series *= small
        series += term
    found[near] = series * small * small
    return found


def excess_of_log1p(v: Floats) -> Floats:
    """Return ln(1 + v) − v with relative accuracy: −vr + 2(r³/3 + r⁵/5 + …), r = v/(2 + v)."""
    near = np.abs(v) < _SMALL
    small = np.where(near, v, 0.0)
    r = small / (2.0 + small)
    square = r * r
    series = np.zeros_like(v)
    for term in _LOG_TERMS[::-1]:
        series = (series + term) * square
    direct: Floats = np.log1p(v) - v
    return np.where(near, r * series - small * r, direct)


class NumpyKernels:
    """The inner loops in numpy."""

    @staticmethod
    def moments(
        s: float, step: float, bell: Floats, loss: Floats, gap: Floats, /
    ) -> tuple[float, float, float]:
        """Return (ln Σ φ w^s, mean, variance)."""
        scale = step / _ROOT_2PI
        power = s * loss
        logs = power + bell
        top = float(logs.max())
        mass = np.exp(logs - top)
        total = float(mass.sum())
        size = top + math.log(total * scale)
        mean = float(np.dot(mass, loss)) / total
        if abs(size) < BY_EXCESS:
            base = np.exp(bell) * scale
            near = power
            if float(power.max()) > _FAR:  # there φ may be 0 where φ w^s is not
                far = power > _FAR
                near = np.where(far, 0.0, power)
                whole = np.where(far, np.exp(logs) * scale, 0.0)
                base_far = np.where(far, base, 0.0)
                base = base - base_far
                excess = float((whole - base_far * (1.0 + power - s * gap)).sum())
                first = float((whole * loss - base_far * (loss - gap)).sum())
            else:
                excess = first = 0.0
            excess += float(np.dot(base, excess_of_exp(near) + s * gap))
            first += float(np.dot(base, np.expm1(near) * loss + gap))
            size, mean = math.log1p(excess), first / (1.0 + excess)
        variance = float(np.dot(mass, (loss - mean) ** 2)) / total
        return size, mean, variance

    @staticmethod
    def line(mass: Floats, loss: Floats, t: Floats, /) -> tuple[Floats, Floats]:
        """Return the two parts, in blocks that fit the cache."""
        real, imaginary = np.empty_like(t), np.empty_like(t)
        block = max(1, _CHUNK // len(loss))
        for start in range(0, len(t), block):
            u = t[start : start + block, None] * loss[None, :]
            half = np.sin(0.5 * u)
            real[start : start + block] = (half * half) @ mass * -2.0
            imaginary[start : start + block] = _excess_of_sine(u) @ mass
        return real, imaginary

    @staticmethod
    def rows(angles: Floats, number: int, /) -> tuple[Floats, Floats, Floats]:
        """Return the three parts."""
        even, odd, excess = (np.zeros((number, len(angles))) for _ in range(3))
        if number > 1:
            half = np.sin(0.5 * angles)
            even[1], odd[1] = -2.0 * half * half, np.sin(angles)
            excess[1] = _excess_of_sine(angles)
        for g in range(2, number):
            a, b = g // 2, g - g // 2
            even[g] = even[a] + even[b] + (even[a] * even[b] - odd[a] * odd[b])
            mixed = even[a] * odd[b] + odd[a] * even[b]
            odd[g] = odd[a] + odd[b] + mixed
            excess[g] = excess[a] + excess[b] + mixed
        return even, odd, excess


def on_line(
    loops: Kernels, mass: Floats, loss: Floats, step: float, count: int
) -> tuple[Floats, Floats]:
    """Return what `Kernels.line` returns for t = 0, h, 2h, …: a product of two matrices.

    With e^{iu} − 1 − iu = x(u), that of a sum is x(u + v) = x(u) + x(v) + (e^{iu} − 1)(e^{iv} − 1);
    for small angles the terms have the same sign, and nothing cancels.
    """
    inner = max(1, math.isqrt(count))
    outer = -(-count // inner)
    even, odd, excess = loops.rows(step * loss, inner)
    far_even, far_odd, far_excess = loops.rows(inner * step * loss, outer)
    left, right = far_even * mass, far_odd * mass
    real = left @ even.T - right @ odd.T
    real += (far_even @ mass)[:, None] + (even @ mass)[None, :]
    imaginary = left @ odd.T + right @ even.T
    imaginary += (far_excess @ mass)[:, None] + (excess @ mass)[None, :]
    return real.ravel()[:count], imaginary.ravel()[:count]


def _excess_of_sine(u: Floats) -> Floats:
    """Return sin u − u with relative accuracy."""
    near = np.abs(u) < _SMALL
    direct: Floats = np.sin(u) - u
    if not near.any():
        return direct
    small = u[near]
    square = small * small
    series = np.zeros_like(small)
    for n in (14, 12, 10, 8, 6, 4):
        series = (series + 1.0) * square * (-1.0 / (n * (n + 1)))
    direct[near] = (series + 1.0) * small * square * (-1.0 / 6.0)
    return direct


def kernels(*, compiled: bool) -> Kernels:
    """Return the loops of one kind.

    Raises NotApplicableError for compiled ones where numba is missing.
    """
    if not compiled:
        return NumpyKernels
    if importlib.util.find_spec("numba") is None:
        raise NotApplicableError(
            "The compiled loops need numba. Install dpassay[fast], or ask for compiled=False."
        )
    from accountant.composition.saddle_compiled import CompiledKernels

    return CompiledKernels
