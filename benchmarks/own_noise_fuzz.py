"""Random densities against brute force in floats, over a grid of shifts.

    python -P benchmarks/own_noise_fuzz.py [CASES] [SEED]

δ(ε) must be the largest sum over the grid, up to its error. Densities that are refused are counted.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import AdditiveNoise
from dpassay.accountant.questions import profile

_POINTS = 1 << 17
_SHIFTS = 12


def text(rng: np.random.Generator) -> str:
    """Return a formula."""
    a, b, c = (f"{x:.3g}" for x in rng.uniform(0.3, 2.5, 3))
    p = f"{rng.uniform(0.6, 4):.3g}"
    m, w = f"{rng.uniform(-1.5, 1.5):.3g}", f"{rng.uniform(0.05, 0.95):.3g}"
    forms = [
        f"exp(-{a}*abs(x)**{p})",
        f"exp(-{a}*x) if x > 0 else exp({b}*x)",
        f"(1+{a}*x**2)**-{1 + float(b):.3g}",
        f"{w}*exp(-{a}*x**2)+{c}*exp(-{b}*abs(x))",
        f"{w}*exp(-x**2/2)+exp(-(x-{m})**2/(2*{a}**2))",
        f"max(1-{a}*x**2, 0)",
        f"exp(-max(abs(x)-{a}, 0)*{b})",
        f"exp(-x**2*{a}) if abs(x) < {b} else 0",
        f"min({w}, exp(-{a}*abs(x)))",
        f"exp(-{a}*abs(x)) + {w}*(abs(x) < {b})",
        f"1/(cosh({a}*x)+{b})",
        f"exp(-{a}*x-{b}*exp(-x))",
        f"exp(-{a}*sqrt({b}+x**2))",
        f"(x*exp(-{a}*x)) if x > 0 else 0",
        f"exp(-{a}*x**2)+{w}*exp(-{b}*(x-3)**2)",
        f"(abs(x)<{a})+{w}*(abs(x-{b}-1)<{c})",
        f"exp(-{a}*abs(x))*({b}+(x-{m})**2)",
        f"exp(-{a}*abs(x))+{w}*(abs(x-2)<{c}/2)",
        f"exp(-{a}*abs(x-{m})) if x < {m} else {c}*exp(-{b}*abs(x-{m}))",
    ]
    return forms[rng.integers(len(forms))]


def brute(density: str, t: float, epsilon: float) -> tuple[float, float]:
    """Return the largest sum over shifts, and the weight left outside."""
    u = np.linspace(-1, 1, _POINTS)
    x = np.sinh(9 * u) * 0.05
    width = 9 * np.cosh(9 * u) * 0.05 * (u[1] - u[0])
    tree = compile(
        density.replace("max(", "np.maximum(").replace("min(", "np.minimum("), "", "eval"
    )
    names = {"exp": np.exp, "abs": np.abs, "sqrt": np.sqrt, "cosh": np.cosh, "np": np}

    def f(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            if " if " in density:
                yes, rest = density.split(" if ")
                test, no = rest.split(" else ")
                parts = [eval(s, {"__builtins__": {}}, {**names, "x": x}) for s in (test, yes, no)]
                return np.where(*parts)
            return np.asarray(eval(tree, {"__builtins__": {}}, {**names, "x": x}))

    q = f(x)
    total = (q * width).sum()
    found = []
    for share in np.linspace(0, 1, _SHIFTS + 1)[1:]:
        sides = [f(x - side * share * t) for side in (1, -1)]
        found.append(max((np.maximum(p - np.exp(epsilon) * q, 0) * width).sum() for p in sides))
    outside = abs((f(x - t) * width).sum() / total - 1)
    return max(found) / total, outside


def main(cases: int, seed: int) -> None:
    """Run and report."""
    rng = np.random.default_rng(seed)
    done = refused = wrong = wide = 0
    slowest = 0.0
    while done < cases:
        density, t = text(rng), round(float(rng.uniform(0.05, 3)), 2)
        epsilon = round(float(rng.choice([0, rng.uniform(-1, 3), rng.uniform(0, 0.5)])), 3)
        try:
            started = time.process_time()
            noise = AdditiveNoise(density, sensitivity=str(t))
            answer = profile.delta(noise, str(epsilon))
            slowest = max(slowest, time.process_time() - started)
        except InvalidInputError as refusal:
            refused += 1
            print("refused", density, str(refusal)[:90])
            continue
        done += 1
        most, outside = brute(density, t, epsilon)
        error = 2e-4 + 3 * outside
        if not float(answer.lower) - error <= most <= float(answer.upper) + error:
            wrong += 1
            print("WRONG", density, t, epsilon, answer, most)
        wide += answer.upper > 0 and (answer.relative_width or 0) > 1e-12
        wide += answer.relative_width is None and answer.upper > 0
    print(f"{done} cases, {refused} refused, {wrong} wrong, "
          f"{wide} wider than 1e-12, slowest {slowest:.2f} s")  # fmt: skip


if __name__ == "__main__":
    main(*(int(x) for x in [*sys.argv[1:], "300", "1"][:2]))
