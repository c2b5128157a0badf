"""Every continuous sampler at hand, added naively: at how many runs its floating point is found.

Noise of numpy's `Generator` (doubles, and single precision where it has that), of the legacy
`RandomState`, of `random`, of scipy and of textbook formulas is added to a number. Each sum is
audited, black box, by default settings with the pairs (0, 1), (0.1, 1.1) and (1/3, 4/3), at
significance 1e-6, against the profile of its real law. So nothing is found but what floating
point adds.

- `found`: in how many audits of 1000, 3000 and 10 000 runs a side.
- `divided`: the same at 10 000 runs for (value + noise)/7, an average of seven.
- `excess`: by how much δ is exceeded at most by value (cells of a fine grid) and lowest set bit
  together, the event chosen by 500 000 runs a side and estimated by as many fresh ones. It is what
  there is to find: 10 000 runs at 1e-6 show an excess of about 0.04.

Sums in two steps are audited with the pairs (1, 2) and (1/3, 4/3) and more runs.

    python -P benchmarks/float_samplers.py [--seeds 20] [--only NAME] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from dpassay.accountant.mechanisms import Gaussian, Laplace, Staircase
from dpassay.verifier.audit import audit
from dpassay.verifier.audit.learning.bit_features import lowest_bit
from tests.verify.audit import zoo

LEVEL = 1e-6
Pair = tuple[float, float]
PAIRS: list[Pair] = [(0.0, 1.0), (0.1, 1.1), (1 / 3, 4 / 3)]
MORE: list[Pair] = [(1.0, 2.0), (1 / 3, 4 / 3)]
LONG = (10_000, 30_000, 100_000)
LADDER = (1000, 3000)
RUNS = 10_000
FEW = 5
ESTIMATED = 500_000
EPSILONS = (0.0, 0.1, 0.3, 1.0, 2.0, 4.0)
Draw = Callable[[np.random.Generator, int], Any]
Release = Callable[[Any, int, np.random.Generator], Any]
Curve = Callable[[float], float]
F4 = np.float32


@dataclass(frozen=True)
class Sampler:
    """Noise, and its real law."""

    name: str
    draw: Draw
    law: Any

    def plus(self, value: Any, size: int, rng: np.random.Generator) -> Any:
        """Add in the precision of the noise."""
        noise = self.draw(rng, size)
        return noise.dtype.type(value) + noise

    def divided(self, value: Any, size: int, rng: np.random.Generator) -> Any:
        """Add, and divide by seven."""
        total = self.plus(value, size, rng)
        return total / total.dtype.type(7)


def samplers() -> list[Sampler]:
    """Return the samplers, with scales at which their real laws differ little for neighbours."""
    s = stats
    return [
        Sampler("normal", lambda r, n: r.normal(0, 1, n), s.norm()),
        Sampler("normal, scale 3", lambda r, n: r.normal(0, 3, n), s.norm(scale=3)),
        Sampler("standard_normal, single", lambda r, n: r.standard_normal(n, dtype=F4), s.norm()),
        Sampler("laplace", lambda r, n: r.laplace(0, 1, n), s.laplace()),
        Sampler("laplace, scale 3", lambda r, n: r.laplace(0, 3, n), s.laplace(scale=3)),
        Sampler("laplace, single", lambda r, n: r.laplace(0, 1, n).astype(F4), s.laplace()),
        Sampler("logistic", lambda r, n: r.logistic(0, 1, n), s.logistic()),
        Sampler("gumbel", lambda r, n: r.gumbel(0, 1, n), s.gumbel_r()),
        Sampler("gumbel, scale 5", lambda r, n: r.gumbel(0, 5, n), s.gumbel_r(scale=5)),
        Sampler("standard_t(3)", lambda r, n: r.standard_t(3, n), s.t(3)),
        Sampler("standard_cauchy", lambda r, n: r.standard_cauchy(n), s.cauchy()),
        Sampler("exponential(10)", lambda r, n: r.exponential(10, n), s.expon(scale=10)),
        Sampler("standard_exponential, inversion",
                lambda r, n: 10 * r.standard_exponential(n, method="inv"), s.expon(scale=10)),
        Sampler("standard_exponential, single",
                lambda r, n: F4(10) * r.standard_exponential(n, dtype=F4), s.expon(scale=10)),
        Sampler("uniform(-10, 10)", lambda r, n: r.uniform(-10, 10, n), s.uniform(-10, 20)),
        Sampler("uniform(0, 16)", lambda r, n: r.uniform(0, 16, n), s.uniform(0, 16)),
        Sampler("random, single", lambda r, n: F4(20) * r.random(n, dtype=F4) - F4(10),
                s.uniform(-10, 20)),
        Sampler("triangular", lambda r, n: r.triangular(-10, 0, 10, n), s.triang(0.5, -10, 20)),
        Sampler("gamma(4, 3)", lambda r, n: r.gamma(4, 3, n), s.gamma(4, scale=3)),
        Sampler("gamma(1/2, 10)", lambda r, n: r.gamma(0.5, 10, n), s.gamma(0.5, scale=10)),
        Sampler("standard_gamma(4), single",
                lambda r, n: F4(3) * r.standard_gamma(4, n, dtype=F4), s.gamma(4, scale=3)),
        Sampler("chisquare(10)", lambda r, n: r.chisquare(10, n), s.chi2(10)),
        Sampler("noncentral_chisquare", lambda r, n: r.noncentral_chisquare(10, 3, n),
                s.ncx2(10, 3)),
        Sampler("f(5, 10)", lambda r, n: 10 * r.f(5, 10, n), s.f(5, 10, scale=10)),
        Sampler("weibull(2)", lambda r, n: 10 * r.weibull(2, n), s.weibull_min(2, scale=10)),
        Sampler("rayleigh(5)", lambda r, n: r.rayleigh(5, n), s.rayleigh(scale=5)),
        Sampler("pareto(3)", lambda r, n: 30 * r.pareto(3, n), s.lomax(3, scale=30)),
        Sampler("power(3)", lambda r, n: 20 * r.power(3, n), s.powerlaw(3, scale=20)),
        Sampler("beta(3, 3)", lambda r, n: 20 * r.beta(3, 3, n), s.beta(3, 3, scale=20)),
        Sampler("lognormal", lambda r, n: r.lognormal(2, 0.7, n), s.lognorm(0.7, scale=math.e**2)),
        Sampler("vonmises(0, 1)", lambda r, n: 5 * r.vonmises(0, 1, n),
                s.vonmises_line(1, scale=5)),
        Sampler("wald(10, 20)", lambda r, n: r.wald(10, 20, n), s.invgauss(0.5, scale=20)),
        Sampler("Box–Muller", _box_muller, s.norm()),
        Sampler("inversion, normal", lambda r, n: s.norm.ppf(r.random(n)), s.norm()),
        Sampler("inversion, Laplace", _inverted, s.laplace()),
        Sampler("two exponentials", lambda r, n: r.exponential(1, n) - r.exponential(1, n),
                s.laplace()),
        Sampler("two Gumbel variates", lambda r, n: r.gumbel(0, 1, n) - r.gumbel(0, 1, n),
                s.logistic()),
        Sampler("RandomState.normal", _legacy("normal"), s.norm()),
        Sampler("RandomState.laplace", _legacy("laplace"), s.laplace()),
        Sampler("random.gauss", _python(lambda g: g.gauss(0, 1)), s.norm()),
        Sampler("random.normalvariate", _python(lambda g: g.normalvariate(0, 1)), s.norm()),
        Sampler("two of random.expovariate",
                _python(lambda g: g.expovariate(1) - g.expovariate(1)), s.laplace()),
        Sampler("secrets, 53 bits, inversion", _secret_like, s.laplace()),
        Sampler("scipy.stats.laplace.rvs", lambda r, n: s.laplace.rvs(size=n, random_state=r),
                s.laplace()),
        Sampler("scipy.stats.t.rvs", lambda r, n: s.t.rvs(3, size=n, random_state=r), s.t(3)),
    ]  # fmt: skip


def _box_muller(r: np.random.Generator, n: int) -> Any:
    return np.sqrt(-2 * np.log1p(-r.random(n))) * np.cos(2 * np.pi * r.random(n))


def _inverted(r: np.random.Generator, n: int) -> Any:
    u = r.random(n) - 0.5
    return -np.sign(u) * np.log1p(-2 * np.abs(u))


def _secret_like(r: np.random.Generator, n: int) -> Any:
    """Invert whole numbers below 2^53, as from `secrets.randbelow` (here from the given rng)."""
    u = (r.integers(0, 1 << 53, n) + 0.5) * 2.0**-53
    return np.where(r.random(n) < 0.5, np.log(u), -np.log(u))


def _legacy(name: str) -> Draw:
    def draw(r: np.random.Generator, n: int) -> Any:
        return getattr(np.random.RandomState(int(r.integers(1 << 31))), name)(0, 1, n)

    return draw


def _python(one: Callable[[random.Random], float]) -> Draw:
    def draw(r: np.random.Generator, n: int) -> Any:
        own = random.Random(int(r.integers(1 << 62)))
        return np.array([one(own) for _ in range(n)])

    return draw


def curve(law: Any) -> Curve:
    """Return δ(ε) of the real law moved by 1, from masses of a grid, and a little more."""
    places = law.ppf(np.linspace(1e-6, 1 - 1e-6, 4001))
    low, high = max(float(law.ppf(1e-12)), -1e4), min(float(law.ppf(1 - 1e-12)) + 1, 1e4)
    grid = np.unique(np.concatenate([places, places + 1, np.linspace(low, high, 8001)]))
    grid = grid[np.isfinite(grid)]
    p, q = (np.diff(np.concatenate([[0], law.cdf(grid - shift), [1]])) for shift in (0, 1))

    def profile(epsilon: float) -> float:
        factor = math.exp(epsilon)
        delta = max(np.maximum(p - factor * q, 0).sum(), np.maximum(q - factor * p, 0).sum())
        return min(1.0, float(delta) * (1 + 1e-3) + 3e-5)

    return profile


def found(
    release: Release, claim: Any, runs: int, seeds: int, pairs: Sequence[Pair] = PAIRS
) -> int:
    """Count the audits that refute the claim."""
    return sum(
        audit(
            release, claim, pairs=pairs, samples=runs, significance=LEVEL, seed=seed, bits=True
        ).refuted
        for seed in range(seeds)
    )  # fmt: skip


def excess(release: Release, claim: Curve) -> float:
    """Return the largest P(E) − e^ε Q(E) − δ(ε) of events of cell and lowest set bit."""
    rng = np.random.default_rng(1)
    best = -math.inf
    for pair in PAIRS:
        sides = [release(value, 2 * ESTIMATED, rng) for value in pair]
        both = np.concatenate([side[: ESTIMATED // 4] for side in sides])
        binades = [sign * 2.0**k for k in range(-4, 8) for sign in (-1, 1)]
        cuts = np.concatenate(
            [np.quantile(both, np.arange(1, 64) / 64), binades, np.arange(-12.0, 30.0)]
        )
        edges = np.unique(cuts)
        coded = [np.searchsorted(edges, side) * 2500 + lowest_bit(side) + 1100 for side in sides]
        size = (len(edges) + 2) * 2500
        choose = [np.bincount(code[:ESTIMATED], minlength=size) for code in coded]
        judge = [np.bincount(code[ESTIMATED:], minlength=size) for code in coded]
        for epsilon in EPSILONS:
            factor = math.exp(epsilon)
            for p, q in ((0, 1), (1, 0)):
                event = choose[p] > factor * (choose[q] + 1)
                delta = (judge[p][event].sum() - factor * judge[q][event].sum()) / ESTIMATED
                best = max(best, float(delta) - claim(epsilon))
    return best


def two_steps() -> list[tuple[str, Release, Any]]:
    """Return sums in which the first step hides some of what the second one leaves."""

    def steps(name: str, second: float, scale: float = 1.0) -> Release:
        def release(value: Any, size: int, rng: np.random.Generator) -> Any:
            draw = getattr(rng, name)
            first = (0.0, scale) if name in ("gumbel", "normal") else (scale,)
            return (value + draw(*first, size)) + second * draw(*first, size)

        return release

    return [
        ("(value + Gumbel) − Gumbel", steps("gumbel", -1.0), stats.logistic()),
        ("(value + exponential) − exponential", steps("exponential", -1.0), stats.laplace()),
        ("(value + normal) + normal", steps("normal", 1.0, math.sqrt(0.5)), stats.norm()),
    ]


def controls() -> list[tuple[str, Release, Any]]:
    """Return releases without a channel."""

    def released(mechanism: Any) -> Release:
        return lambda value, size, rng: mechanism.release(value, size, rng=rng)

    listed: list[tuple[str, Release, Any]] = [
        ("Laplace(1).release", released(Laplace(1)), 1),
        ("Gaussian(1).release", released(Gaussian(1)), {"mu": 1}),
        ("Staircase(1, 0.3).release", released(Staircase(1, "0.3")), 1),
    ]
    cases = [zoo.case(name) for name in ("rounded-laplace", "snapping")]
    return listed + [(case.name, case.draw, case.claim) for case in cases]


def main(seeds: int, only: Sequence[str], path: Path | None) -> None:
    """Print the tables."""
    print(f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}\n")
    print("| noise | found at 1000 | 3000 | 10 000 | divided, 10 000 | excess |")
    print("|---|---|---|---|---|---|")
    rows = []
    for sampler in samplers():
        if only and not any(part in sampler.name for part in only):
            continue
        started = time.process_time()
        claim = curve(sampler.law)
        row: dict[str, Any] = {"noise": sampler.name}
        for runs in LADDER:
            row[str(runs)] = f"{found(sampler.plus, claim, runs, FEW)} of {FEW}"
        row[str(RUNS)] = f"{found(sampler.plus, claim, RUNS, seeds)} of {seeds}"
        row["divided"] = f"{found(sampler.divided, claim, RUNS, FEW)} of {FEW}"
        slow = "random." in sampler.name
        row["excess"] = None if slow else round(excess(sampler.plus, claim), 3)
        row["seconds"] = round(time.process_time() - started, 1)
        rows.append(row)
        shown = ["" if v is None else str(v) for k, v in row.items() if k != "seconds"]
        print("| " + " | ".join(shown) + " |", flush=True)
    print("\n| in two steps | 10 000 | 30 000 | 100 000 |\n|---|---|---|---|")
    for name, release, law in two_steps():
        if not only or any(part in name for part in only):
            claim, few = curve(law), max(1, seeds // 2)
            counts = [found(release, claim, runs, few, MORE) for runs in LONG]
            shown = [name, *(f"{count} of {few}" for count in counts)]
            rows.append(dict(zip(("noise", *map(str, LONG)), shown, strict=True)))
            print("| " + " | ".join(shown) + " |", flush=True)
    print("\n| control | refuted at 10 000 |\n|---|---|")
    for name, release, claimed in controls():
        if not only:
            count = found(release, claimed, RUNS, seeds)
            rows.append({"noise": name, str(RUNS): f"{count} of {seeds}"})
            print(f"| {name} | {count} of {seeds} |", flush=True)
    if path is not None:
        path.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    main(options.seeds, options.only, options.json)
