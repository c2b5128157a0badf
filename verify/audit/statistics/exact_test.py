"""Counts of an event, the exact p-value of a guarantee, and the exact bounds that it gives.

The two designs, and why no limit theorem enters, are described in `statistics.sides` and
`statistics.guesses`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import Enum
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpassay.accountant.errors import expected
from dpassay.accountant.numbers.halving import halved
from dpassay.verifier.audit.statistics import binomial, guesses, sides

_STEPS = 60
"""Most corrections of a level: they need 3 to 6."""
LARGEST_MU = 60.0
"""Where bounds of μ end: no run tells such a mechanism from one without privacy."""
_SLACK = 1e-10
"""Relative: more than the rounding of a normal distribution function."""
SPARED = 0.01
"""The part of the significance that the nuisance parameter's interval may cost."""


class Design(Enum):
    """How two counts arise."""

    SIDES = "sides"
    """Independent binomials: runs on one dataset and runs on the other, in one event."""
    GUESSES = "guesses"
    """Right and wrong guesses among runs on datasets that fair coins chose."""


LEAST_P_VALUE = {Design.SIDES: 1e-12, Design.GUESSES: 1e-280}
"""The least p-value that is told. Sums for two sides end some seven standard deviations out, and
what is beyond is bounded by 1e-13; tails of guesses end where doubles underflow."""


@final
@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted: `hits` of `runs` for a violation, `misses` of `other_runs` against."""

    hits: int
    runs: int
    misses: int
    other_runs: int
    design: Design = Design.SIDES

    def __post_init__(self) -> None:
        if min(self.runs, self.other_runs) < 1:
            raise expected("runs", min(self.runs, self.other_runs), "≥ 1")
        if max(self.runs, self.other_runs) > binomial.MOST_RUNS:
            raise expected(
                "runs",
                max(self.runs, self.other_runs),
                f"≤ {binomial.MOST_RUNS:.0e}",
                "Beyond, counts are not exact in floating point.",
            )
        if not 0 <= self.hits <= self.runs:
            raise expected("hits", self.hits, f"in [0, {self.runs}]")
        if not 0 <= self.misses <= self.other_runs:
            raise expected("misses", self.misses, f"in [0, {self.other_runs}]")
        if self.design is Design.GUESSES and self.hits + self.misses > self.runs:
            raise expected("hits + misses", self.hits + self.misses, f"≤ {self.runs} runs")

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "design": self.design.value}


def p_value(counts: Counts, epsilon: float, delta: float, *, spared: float = 1e-4) -> float:
    """Return an upper bound of the exact p-value of P(E) ≤ e^ε Q(E) + δ.

    Parameters
    ----------
    counts
        What was counted on runs that had no part in choosing the event.
    epsilon, delta
        The guarantee: ε ≥ 0, 0 ≤ δ < 1.
    spared
        What the interval of the nuisance parameter may cost: fixed before the counts are seen,
        small against the level of the test.
    """
    if not 0 <= delta < 1:
        raise expected("delta", delta, "in [0, 1)")
    if epsilon < 0:
        raise expected("epsilon", epsilon, "≥ 0")
    if epsilon > math.log(counts.other_runs) + 40:  # no number of runs tells it from infinity
        return 1.0
    if counts.design is Design.GUESSES:
        guessed = (counts.hits, counts.misses, counts.runs)
        return guesses.p_value(guessed, epsilon, delta, spared)
    return sides.p_value(_sides(counts), epsilon, delta, spared)


def nested_p_value(counts: Counts, epsilon: float, delta: float, level: float) -> float:
    """Return a p-value for a test at a level, which is not kept up by what that test spares.

    Let F_s be the supremum over the nuisance parameter's interval of confidence 1 − s. The test at
    t < `level` rejects where F_{ct} + ct ≤ t, c = `SPARED`; at t ≥ `level` where F_s + s ≤ t for
    s = c `level`. F_s falls as s grows, so that what is rejected at t is rejected at every larger
    t: any t that rejects is a p-value. If t does not, v = F_{ct} + ct > t, then (1 + 2c)v does:
    F at most v − ct there, and ct + c(1 + 2c)v is less than 2cv more.
    """
    found = p_value(counts, epsilon, delta, spared=SPARED * level)
    if found > level or (counts.design is Design.GUESSES and delta == 0):
        return found
    least, t = LEAST_P_VALUE[counts.design], level
    while t > least:
        smaller = max(least, (found - SPARED * t) / (1 - SPARED))
        found = p_value(counts, epsilon, delta, spared=SPARED * smaller)
        if found > smaller:
            return min(t, found * (1 + 2 * SPARED))
        if smaller > t / 2:
            return smaller
        t = smaller
    return t


def _sides(counts: Counts) -> sides.Quadruple:
    return counts.hits, counts.runs, counts.misses, counts.other_runs


def epsilon_lower_bound(counts: Counts, delta: float, significance: float) -> float:
    """Return ε̲ ≥ 0 at which H₀ is refuted at `significance`, next to where that ends; else 0.

    With confidence 1 − significance, ε(δ) ≥ ε̲: refuting at ε̲ refutes at every smaller ε.
    """
    top = math.log(2 * counts.other_runs) + 1
    return _crossing(
        lambda eps: p_value(counts, eps, delta, spared=SPARED * significance),
        lambda eps: _score(counts, eps, delta),
        top,
        significance,
    )


def delta_lower_bound(counts: Counts, epsilon: float, significance: float) -> float:
    """Return δ̲ ≥ 0 at which H₀ is refuted at `significance`, next to where that ends; else 0.

    With confidence 1 − significance, δ(ε) ≥ δ̲.
    """
    top = min(counts.hits / counts.runs, 1 - 1e-12)
    return _crossing(
        lambda delta: p_value(counts, epsilon, delta, spared=SPARED * significance),
        lambda delta: _score(counts, epsilon, delta),
        top,
        significance,
    )


def gaussian_delta(mu: float, epsilons: ArrayLike) -> NDArray[np.float64]:
    """Return δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), rounded up."""
    eps = np.asarray(epsilons, dtype=np.float64)
    first = special.ndtr(mu / 2 - eps / mu)
    second = np.exp(eps + special.log_ndtr(-mu / 2 - eps / mu))
    found: NDArray[np.float64] = np.clip(first - second + _SLACK * first, 0.0, 1.0)
    return found


def mu_lower_bound(epsilon: float, delta: float) -> float:
    """Return μ̲ next to the μ with δ_μ(ε) = δ, and not above it: δ(ε) ≥ δ implies μ ≥ μ̲."""
    if delta <= 0:  # δ_μ(ε) > 0 for every μ > 0, though floats underflow
        return 0.0
    return halved(lambda mu: bool(gaussian_delta(mu, epsilon) <= delta), 0.0, LARGEST_MU)[0]


def least(enough: Callable[[int], bool], most: int) -> int | None:
    """Return the least number that is enough; None where none up to `most` is.

    The search goes up by eighths, since a number may be enough where twice as many are not, and
    then halves its last step.
    """
    low, high = 0, 1
    while not enough(high):
        if high >= most:
            return None
        low, high = high, min(high + 1 + high // 8, most)
    return low + 1 + bisect_left(range(low + 1, high), True, key=enough)


def _score(counts: Counts, epsilon: float, delta: float) -> float:
    """Return the standardised excess of the counts, which guides the search for a bound."""
    n, m, factor = counts.runs, counts.other_runs, math.exp(epsilon)
    if counts.design is Design.SIDES:
        u, v = counts.hits - n * delta, factor * n / m * counts.misses
        if u <= v:
            return -1.0
        return sides.statistic(_sides(counts), factor, delta)
    excess = counts.hits - factor * counts.misses - n * delta
    spread = max((counts.hits + factor * counts.misses + n * delta) / 2 * (1 + factor), 1e-9)
    return excess / math.sqrt(spread)


def _crossing(
    tail: Callable[[float], float],
    score: Callable[[float], float],
    top: float,
    significance: float,
) -> float:
    """Return x in [0, top] with tail(x) ≤ significance, next to where that ends.

    The score is close to the normal quantile of the tail: where it crosses is nearly the answer,
    and each exact tail corrects the level that it is asked to cross.
    """
    goal = -float(special.ndtri(significance))
    level, best, worst = goal, 0.0, top
    for _ in range(_STEPS):
        guess, _ = halved(partial(_above, score, level), best, worst, width=1e-7)
        value = tail(guess)
        if value <= significance:
            best = max(best, guess)
        else:
            worst = min(worst, guess)
        reached = -float(special.ndtri(min(max(value, 1e-300), 1 - 1e-12)))
        error = goal - reached  # positive where the tail is still too large
        if (0 >= error > -0.02 and best > 0) or worst - best <= 1e-9 * top or guess <= 0:
            break
        level += error + (0.005 if error > 0 else 0.0)
    return best


def _above(score: Callable[[float], float], level: float, x: float) -> bool:
    return score(x) > level
