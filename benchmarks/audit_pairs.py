"""Nine pairs with their exact laws, for `benchmarks/audit.py bounds`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import integrate, stats

from dpassay.accountant import notation
from dpassay.accountant.questions.profile import epsilon as exact_epsilon
from dpassay.verifier.audit.features import Rule

SIGMA = 3.730631634816464  # analytic calibration to (1, 1e-5)
Sampler = Callable[[Any, int, np.random.Generator], Any]


@dataclass(frozen=True)
class Case:
    """A pair with its exact laws in cells, in any order."""

    name: str
    sample: Sampler
    delta: str
    truth: float
    p: Any
    q: Any
    values: Any
    """Edges between the cells, or the value of each; for vectors those along the direction."""
    direction: Any = None

    def cells_of(self, rule: Rule) -> Any:
        """Return the exact masses of the cells of a rule; None where they are not known."""
        feature, edges = rule.feature, rule.partition.edges
        if self.direction is not None:
            if feature.kind != "linear" or edges is None:
                return None
            weights, offset = (feature.arguments[name] for name in ("weights", "offset"))
            spread = SIGMA * float(np.linalg.norm(weights))
            shift = float(weights @ self.direction)
            laws = [stats.norm(d * shift - offset, spread) for d in (0, 1)]
            return np.array([np.diff(np.concatenate([[0], x.cdf(edges), [1]])) for x in laws])
        values = np.asarray(self.values, dtype=np.float64)
        if len(values) == len(self.p) - 1:
            values = np.concatenate([values[:1], (values[1:] + values[:-1]) / 2, values[-1:]])
        cells = rule.partition.cell(feature(values[:, np.newaxis]))
        size = rule.partition.size
        return np.array([np.bincount(cells, side, size) for side in (self.p, self.q)])


def cells_of(cdf_p: Any, cdf_q: Any, grid: Any) -> tuple[Any, Any]:
    """Return the masses between the points of a grid."""
    p, q = (np.diff(np.concatenate([[0.0], cdf(grid), [1.0]])) for cdf in (cdf_p, cdf_q))
    return p, q


def cases() -> list[Case]:
    """Return the nine pairs; dataset 0 is P, dataset 1 is Q."""
    fine = np.linspace(-12, 13, 6001)
    wide = np.linspace(-25, 26, 12001)
    share = math.e / (1 + math.e)
    direction = np.random.default_rng(100).standard_normal(100)
    direction /= np.linalg.norm(direction)
    ks = np.arange(-60, 62)
    found = [
        Case(
            "Laplace",
            lambda d, n, r: d + r.laplace(0, 1, n),
            "0",
            1.0,
            *cells_of(stats.laplace(0).cdf, stats.laplace(1).cdf, fine),
            fine,
        ),
        _geometric(ks),
        Case(
            "analytic Gaussian",
            lambda d, n, r: d + r.normal(0, SIGMA, n),
            "1e-5",
            1.0,
            *cells_of(stats.norm(0, SIGMA).cdf, stats.norm(1, SIGMA).cdf, wide),
            wide,
        ),
        _discrete_gaussian(ks),
        Case(
            "Gaussian, d = 100",
            lambda d, n, r: d * direction + r.normal(0, SIGMA, (n, 100)),
            "1e-5",
            1.0,
            *cells_of(stats.norm(0, SIGMA).cdf, stats.norm(1, SIGMA).cdf, wide),
            wide,
            direction,
        ),
        Case(
            "randomised response",
            lambda d, n, r: (r.random(n) < share) ^ bool(d),
            "0",
            1.0,
            np.array([share, 1 - share]),
            np.array([1 - share, share]),
            np.array([1, 0]),
        ),
        _noisy_max(),
        _sparse_vector(),
        _subsampled(wide),
    ]
    return found


def _geometric(ks: Any) -> Case:
    rate = 1 - math.exp(-1)

    def sample(d: Any, n: int, r: np.random.Generator) -> Any:
        return d + r.geometric(rate, n) - r.geometric(rate, n)

    law = stats.dlaplace(1.0)
    return Case("geometric", sample, "0", 1.0, law.pmf(ks), law.pmf(ks - 1), ks)


def _discrete_gaussian(ks: Any) -> Case:
    mechanism = notation.parse("DiscreteGaussian(parameter=14)")
    weights = np.exp(-(ks**2) / 28.0)
    shifted = np.exp(-((ks - 1) ** 2) / 28.0)

    def sample(d: Any, n: int, r: np.random.Generator) -> Any:
        return d + mechanism.sample(n, rng=r)

    truth = float(exact_epsilon(mechanism, "1e-5").lower)
    p, q = weights / weights.sum(), shifted / shifted.sum()
    return Case("discrete Gaussian", sample, "1e-5", truth, p, q, ks)


def _noisy_max() -> Case:
    """Return the index of the largest of 5 counts with Laplace noise of scale 2 (ε = 1)."""
    scores = np.array([[0.0, 1, 1, 1, 1], [1.0, 0, 0, 0, 0]])

    def sample(d: Any, n: int, r: np.random.Generator) -> Any:
        return np.argmax(scores[d] + r.laplace(0, 2, (n, 5)), axis=1)

    def law(row: Any) -> Any:
        def wins(i: int) -> float:
            def density(x: float) -> float:
                others = np.prod([stats.laplace(s, 2).cdf(x) for j, s in enumerate(row) if j != i])
                return float(stats.laplace(row[i], 2).pdf(x) * others)

            return float(integrate.quad(density, -60, 60, limit=400, points=[0, 1])[0])

        return np.array([wins(i) for i in range(5)])

    p, q = law(scores[0]), law(scores[1])
    truth = float(np.max(np.abs(np.log(p / q))))
    return Case("noisy max of 5", sample, "0", truth, p, q, np.arange(5))


def _sparse_vector() -> Case:
    """Return the index of the first of 5 answers above a noisy threshold (ε = 1)."""
    answers = np.array([[0.0] * 5, [1.0, 1, 1, 1, 1]])

    def sample(d: Any, n: int, r: np.random.Generator) -> Any:
        above = answers[d] + r.laplace(0, 4, (n, 5)) >= 1 + r.laplace(0, 2, (n, 1))
        return np.where(above.any(axis=1), above.argmax(axis=1), 5)

    def law(value: float) -> Any:
        def place(k: int) -> float:
            def density(t: float) -> float:
                below = stats.laplace(value, 4).cdf(t)
                stop = 1 - below if k < 5 else 1.0
                return float(stats.laplace(1, 2).pdf(t) * below**k * stop)

            return float(integrate.quad(density, -80, 80, limit=400, points=[0, 1])[0])

        return np.array([place(k) for k in range(6)])

    p, q = law(0.0), law(1.0)
    truth = float(np.max(np.abs(np.log(p / q))))
    return Case("sparse vector", sample, "0", truth, p, q, np.arange(6))


def _subsampled(grid: Any) -> Case:
    mechanism = notation.parse(
        'PoissonSubsampled(mechanism=Gaussian(standard_deviation=1), sampling_prob="0.1")'
    )

    def sample(d: Any, n: int, r: np.random.Generator) -> Any:
        return d * (r.random(n) < 0.1) + r.normal(0, 1, n)

    none, one = stats.norm(0, 1).cdf, stats.norm(1, 1).cdf
    p, q = cells_of(none, lambda x: 0.9 * none(x) + 0.1 * one(x), grid)
    truth = float(exact_epsilon(mechanism, "1e-5", adjacency="add-remove").lower)
    return Case("subsampled Gaussian", sample, "1e-5", truth, p, q, grid)
