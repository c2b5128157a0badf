"""Does a simulation agree with the exact error?"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, final

from dpassay.accountant.core.arrays import NDArray, np
from dpassay.accountant.counting.counters import KaryTree, LinearCounter
from dpassay.accountant.geometry.workload import Workload
from dpassay.accountant.numbers.interval import Interval
from dpassay.verifier.compare.candidate import Calibrated, Layout

DRAWS = 40_000
"""Numbers drawn for a candidate, where its law allows."""
_FEWEST_ROWS = 24
"""Releases of a simulation at least: fewer say nothing of a mean."""
_LARGEST_ROW = 2_000_000
"""Numbers of one release: 16 MB."""
_STREAMED_NUMBERS = 1 << 18
"""Most numbers that streams are simulated with: a counter takes a second for so many."""
_STREAMED_ROWS = 64
"""Most streams: each has a cost of its own, and so many tell a wrong variance from a right one."""
AGREES_WITHIN = 6.0
"""Standard errors. A normal mean is farther from its expectation with probability 2e-9."""


@final
@dataclass(frozen=True, slots=True)
class Simulation:
    """The mean squared error of simulated releases, compared with the exact one."""

    mean_squared_error: float
    standard_error: float
    releases: int
    seed: int
    deviation: float
    """(simulated − exact)/standard error; 0 where both are exactly equal."""

    @property
    def agrees(self) -> bool:
        """Whether the two differ by at most 6 standard errors."""
        return abs(self.deviation) <= AGREES_WITHIN

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "agrees": self.agrees}


def simulate(
    found: Calibrated, workload: Workload, exact: Interval, *, seed: int, draws: int = DRAWS
) -> Simulation | None:
    """Simulate releases; None where one release has too many numbers to be drawn often.

    Streams are simulated step by step, so fewer of them, and none of more than 10,922 steps.

    The standard error is estimated from the releases themselves, so the comparison rests on the
    central limit theorem: it is a check of the implementation, never a proof.
    """
    width = 1 if found.layout is Layout.EACH else workload.answers
    streamed = found.layout is Layout.STREAM
    if width > (_STREAMED_NUMBERS // _FEWEST_ROWS if streamed else _LARGEST_ROW):
        return None
    rows = max(_FEWEST_ROWS, draws // width)
    if streamed:
        rows = min(rows, _STREAMED_ROWS)
    rng = np.random.default_rng(seed)
    errors = np.concatenate(
        [errors_of(found, workload, size, rng=rng) for size in _blocks(rows, width)]
    )
    mean = float(errors.mean())
    standard_error = float(errors.std(ddof=1)) / math.sqrt(rows)
    middle = (float(exact.lower) + float(exact.upper)) / 2
    difference = mean - middle
    deviation = 0.0 if difference == 0 else difference / max(standard_error, 1e-300)
    return Simulation(mean, standard_error, rows, seed, deviation)


def errors_of(
    found: Calibrated, workload: Workload, size: int, *, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the mean squared error of each of `size` simulated releases."""
    noise = draw(found, workload, size, rng=rng)
    squares = np.asarray(noise, dtype=np.float64) ** 2
    averages: NDArray[np.float64] = squares if squares.ndim == 1 else squares.mean(axis=1)
    return averages


def draw(
    found: Calibrated, workload: Workload, size: int, *, rng: np.random.Generator
) -> NDArray[Any]:
    """Draw the noise of the answers of `size` releases; one number each for the layout EACH."""
    mechanism = found.mechanism
    if isinstance(mechanism, (KaryTree, LinearCounter)):
        from dpassay.accountant.counting.streams import counter_of

        nothing = np.zeros(workload.answers)
        counters = (counter_of(mechanism, rng=rng, insecure_floats=True) for _ in range(size))
        return np.stack([counter.extend(nothing) for counter in counters])
    noise = mechanism.sample(size, rng=rng)
    return noise if noise.ndim == 1 else noise[:, found.answer_columns(workload)]


def _blocks(rows: int, width: int) -> list[int]:
    """Split so many rows into blocks of moderate size."""
    most = max(1, _LARGEST_ROW // width)
    return [min(most, rows - start) for start in range(0, rows, most)]
