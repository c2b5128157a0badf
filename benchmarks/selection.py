"""Selection among k candidates: exact numbers against a search over scores, and their times.

    python -P benchmarks/selection.py

All mechanisms have ε = 1, or noise of the scale 2; δ is at ½. The search is in floats: P(i wins) by
the trapezoidal rule, or a sum over integers, s of k candidates rise by Δ and the others fall, from
a gap that is swept. It is a lower bound, and says nothing of scores that it does not try. Of the
best k of very many candidates it tries independent choices between two scores.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom, dlaplace

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import DpassayError
from dpassay.accountant.mechanisms import (
    AboveThreshold,
    Composed,
    ExponentialMechanism,
    PermuteAndFlip,
    ProposeTestRelease,
    ReportNoisyMax,
    TopSelections,
)
from dpassay.accountant.questions import guarantees, profile

Array = NDArray[np.float64]
PLACES = np.linspace(-30, 60, 18_001)
GAPS = np.linspace(-12, 12, 97)
LAWS: dict[str, Callable[[Array], Array]] = {
    "Gumbel": lambda x: np.exp(-np.exp(-x)),
    "Exponential": lambda x: np.where(x > 0, -np.expm1(-x), 0.0),
    "Laplace": lambda x: np.where(x < 0, np.exp(x) / 2, 1 - np.exp(-x) / 2),
    "Gaussian": ndtr,
}


def reached(noise: str, k: int, moved: float, epsilon: float) -> float:
    """Return the largest P(S wins) − e^ε P'(S wins) over sizes of S and gaps to the others."""
    law = LAWS[noise]
    found = 0.0
    for s in sorted({1, 2, k // 2, k - 1} & set(range(1, k))):
        steps = np.diff(law(PLACES) ** s)
        middles = (PLACES[1:] + PLACES[:-1]) / 2

        def wins(gap: float, s: int = s, steps: Array = steps, middles: Array = middles) -> float:
            return float((steps * law(middles + gap) ** (k - s)).sum())

        for gap in GAPS:
            found = max(found, wins(gap + moved) - np.exp(epsilon) * wins(gap))
    return found


def reached_on_integers(k: int, moved: int, epsilon: float) -> float:
    """Return the same for discrete Laplace noise of the scale 2; the first of equal ones wins."""
    places, found = np.arange(-200, 200), 0.0
    cdf = dlaplace.cdf(places, 0.5)
    for s in sorted({1, 2, k // 2, k - 1} & set(range(1, k))):
        steps = np.diff(cdf**s, prepend=0.0)

        def wins(gap: int, s: int = s, steps: Array = steps) -> float:
            return float((steps * dlaplace.cdf(places + gap, 0.5) ** (k - s)).sum())

        for gap in range(-24, 25):
            found = max(found, wins(gap + moved) - np.exp(epsilon) * wins(gap))
    return found


def reached_by_many(k: int, length: float, epsilon: float) -> float:
    """Return the largest H of k choices between two scores, over the losses s and s − t of each."""
    found, ups = 0.0, np.arange(k + 1)
    for s in np.linspace(0, length, 201)[1:-1]:
        rises = np.expm1(s - length) / np.expm1(-length)
        p, q = binom.pmf(ups, k, rises), binom.pmf(ups, k, rises * np.exp(-s))
        found = max(found, float(np.maximum(p - np.exp(epsilon) * q, 0).sum()))
    return found


def row(name: str, mechanism: Mechanism, k: int, best: float) -> str:
    """Return a line of the table."""
    start, cells = time.process_time(), []
    for ask in (
        lambda: profile.epsilon(mechanism, 0),
        lambda: profile.delta(mechanism, "1/2"),
        lambda: guarantees.rho(mechanism),
    ):
        try:
            found = ask()
            low, high = (f"{float(end):.6g}" for end in (found.lower, found.upper))
            cells.append(low if low == high else f"{low} … {high}")
        except DpassayError as refusal:
            cells.append(type(refusal).__name__)
    used = time.process_time() - start
    return f"| {name} | {k} | {' | '.join(cells)} | {best:.6g} | {used:.2f} |"


def peer(epsilon: float, count: int) -> tuple[float, float]:
    """Return ε(1e-6) of `count` releases that are ε-DP by dp-accounting, and its CPU seconds."""
    start = time.process_time()
    one = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, 0.0))
    found = float(one.self_compose(count).get_epsilon_for_delta(1e-6))
    return found, time.process_time() - start


def composed(name: str, mechanism: Mechanism, count: int, pure: float) -> str:
    """Return a line of the table of compositions: ε(1e-6), ρ, and what is known of ε-DP alone."""
    several = Composed(mechanism, count)
    start = time.process_time()
    found = profile.epsilon(several, "1e-6"), guarantees.rho(several)
    used = time.process_time() - start
    cells = [f"{float(each.lower):.5g} … {float(each.upper):.5g}" for each in found]
    theirs, seconds = peer(pure, count)
    return f"| {name} | {count} | {' | '.join(cells)} | {used:.2f} | {theirs:.5g} | {seconds:.2f} |"


def compositions() -> None:
    """Print ε(1e-6) of 10 and 100 releases, each with a largest loss of 1 or 1/10 in all 10."""
    print("| mechanism | releases | ε(1e-6) | ρ | CPU s | ε-DP, dp-accounting | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for count, loss in ((10, Fraction(1)), (100, Fraction(1, 10))):
        for name, one in (
            ("exponential mechanism", ExponentialMechanism(loss)),
            ("permute-and-flip", PermuteAndFlip(loss)),
            ("noisy max, Laplace, k = 5", ReportNoisyMax("Laplace", 2 / loss, 5)),
            ("noisy max, discrete Laplace, k = 5", ReportNoisyMax("DiscreteLaplace", 2 / loss, 5)),
            ("noisy max, Gaussian, k = 5", ReportNoisyMax("Gaussian", 4 / loss, 5)),
            ("best 5, Gumbel", TopSelections(loss / 5, 5)),
            ("best 5, Laplace", TopSelections(loss / 5, 5, noise="Laplace")),
            ("above a threshold", AboveThreshold(2 / loss, 4 / loss)),
            ("propose-test-release", ProposeTestRelease(2 / loss, 40 / loss, 2 / loss)),
        ):  # fmt: skip
            print(composed(name, one, count, float(loss)))


if __name__ == "__main__":
    print("| mechanism | k | largest loss | δ(½) | ρ | found by search | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for k in (2, 3, 5, 10, 100):
        print(
            row("exponential mechanism", ExponentialMechanism(1), k, reached("Gumbel", k, 1, 0.5))
        )
        print(row("permute-and-flip", PermuteAndFlip(1), k, reached("Exponential", k, 1, 0.5)))
        for noise in ("Laplace", "Gaussian"):
            about = ReportNoisyMax(noise, 2, k)
            print(row(f"noisy max, {noise}", about, k, reached(noise, k, 1, 0.5)))
        about = ReportNoisyMax("DiscreteLaplace", 2, k)
        print(row("noisy max, discrete Laplace", about, k, reached_on_integers(k, 2, 0.5)))
        for noise in ("Gumbel", "Laplace", "Exponential"):
            top = TopSelections(Fraction(1, k), k, noise=noise)
            print(row(f"best k, {noise}", top, k, reached_by_many(k, 1 / k, 0.5)))
    compositions()
