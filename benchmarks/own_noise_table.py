"""Twelve densities that are written as formulas, against an independent integration in floats.

    python -P benchmarks/own_noise_table.py

prints the table of docs/own_noise.md: δ at six ε, ε at δ = 1e-6, the widest answer, the largest
difference from scipy's quadrature (cut where p = e^ε q), and CPU seconds of the slowest δ and of ε.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq

from dpassay.accountant.density.law import law
from dpassay.accountant.mechanisms import AdditiveNoise
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.reading import few
from dpassay.accountant.questions import profile

EPSILONS = ("0", "1/4", "1/2", "1", "2", "4")
_GRID = np.sort(np.concatenate([np.sinh(np.linspace(-14, 14, 1201)), np.linspace(-12, 12, 481)]))

_Density = Callable[[float], float]
CASES: list[tuple[str, str, float, _Density, list[float]]] = [
    ("logistic", "exp(-x)/(1+exp(-x))**2", 1,
     lambda x: 1 / (4 * np.cosh(min(abs(x), 1400) / 2) ** 2), []),
    ("Subbotin 1/2", "exp(-sqrt(abs(x)))", 1, lambda x: np.exp(-np.sqrt(abs(x))), [0]),
    ("Subbotin 3/2", "exp(-abs(x)**1.5)", 1, lambda x: np.exp(-abs(x) ** 1.5), [0]),
    ("Subbotin 3", "exp(-abs(x)**3)", 1, lambda x: np.exp(-abs(x) ** 3), [0]),
    ("Subbotin 4", "exp(-x**4)", 1, lambda x: np.exp(-(x**4)), []),
    ("Student 3", "(1+x**2/3)**-2", 1, lambda x: (1 + x * x / 3) ** -2, []),
    ("Student 5", "(1+x**2/5)**-3", 1, lambda x: (1 + x * x / 5) ** -3, []),
    ("Cauchy", "1/(1+x**2)", 1, lambda x: 1 / (1 + x * x), []),
    ("hyperbolic secant", "1/cosh(x)", 1, lambda x: 1 / np.cosh(min(abs(x), 700)), []),
    ("mixture", "0.7*exp(-x**2/2)+0.3*exp(-abs(x)/3)", 1,
     lambda x: 0.7 * np.exp(-x * x / 2) + 0.3 * np.exp(-abs(x) / 3), [0]),
    ("lopsided Laplace", "exp(-x) if x > 0 else exp(2*x)", 1,
     lambda x: np.exp(-x if x > 0 else 2 * x), [0]),
    ("truncated Gaussian", "exp(-x**2/2) if abs(x) < 3 else 0", 1,
     lambda x: np.exp(-x * x / 2) if abs(x) < 3 else 0.0, [-3, 3]),
]  # fmt: skip


def at_shift(f: _Density, t: float, c: float, knots: list[float]) -> float:
    """Return ∫ (f(x − t) − c f(x))⁺."""

    def excess(x: float) -> float:
        return f(x - t) - c * f(x)

    points = sorted({*_GRID, *knots, *(knot + t for knot in knots)})
    total = 0.0
    for a, b in pairwise(points):
        if abs(a) > 1e5 and abs(b) > 1e5 and f(a) == 0 == f(b):
            continue
        inner = np.nextafter(a, b), np.nextafter(b, a)
        low, high = excess(inner[0]), excess(inner[1])
        ends = [a, b]
        if low * high < 0:
            ends = [a, brentq(excess, *inner, xtol=1e-15), b]
        for start, stop in pairwise(ends):
            if excess((start + stop) / 2) > 0:
                total += quad(excess, start, stop, epsabs=0, epsrel=1e-11, limit=60)[0]
    return total


def whole(f: _Density, knots: list[float]) -> float:
    """Return ∫ f."""
    points = sorted({*_GRID, *knots})
    parts = (
        quad(f, a, b, epsabs=0, epsrel=1e-12)[0] for a, b in pairwise(points) if f((a + b) / 2)
    )
    outside = (quad(lambda u, end=end: f(1 / u) / u**2, *sorted((0.0, 1 / end)))[0]
               for end in (points[0], points[-1]))  # fmt: skip
    return float(sum(parts) + sum(outside))


def independent(f: _Density, distance: float, epsilon: float, knots: list[float]) -> float:
    """Return δ(ε) over both sides."""
    c, total = float(np.exp(epsilon)), whole(f, knots)
    return max(at_shift(f, side * distance, c, knots) for side in (1, -1)) / total


def main() -> None:
    """Run and print."""
    print("| density | δ at 0, 1/4, 1/2, 1, 2, 4 | ε(1e-6) | width | difference | s |")
    print("|---|---|---|---|---|---|")
    for name, text, distance, f, knots in CASES:
        law(text, "density")
        noise = AdditiveNoise(text, sensitivity=str(distance))
        shown, widths, gaps, times = [], [], [], []
        for epsilon in EPSILONS:
            started = time.process_time()
            found = profile.delta(noise, epsilon)
            times.append(time.process_time() - started)
            shown.append(f"{float(found.upper):.7g}")
            widths.append(float(found.relative_width or 0))
            other = independent(f, distance, float(exact(epsilon, "e")), knots)
            gaps.append(abs(other - float(found.upper)))
        started = time.process_time()
        answer = profile.epsilon(noise, "1e-6")
        last = time.process_time() - started
        widths.append(float(answer.relative_width or 0))
        end = f"{float(answer.upper):.9g}" if answer.upper.is_finite() else "∞"
        print(f"| {name} | {', '.join(shown)} | {end} | {few(max(widths), 1)} "
              f"| {few(max(gaps), 1)} "
              f"| {max(times):.2f}, {last:.2f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
