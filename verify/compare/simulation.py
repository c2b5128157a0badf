"""Does a simulation agree with the exact error?"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias, final

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import NDArray, np
from dpassay.accountant.counting.counters import KaryTree, LinearCounter
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.geometry.workload import (
    BoundedSum,
    Count,
    Counts,
    GroupedCounts,
    PrefixSums,
    VectorSum,
    Workload,
)
from dpassay.accountant.numbers.interval import Interval
from dpassay.verifier.compare.candidate import Budget, Calibrated, Layout

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
    """The mean squared error of simulated releases beside the exact one."""

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


"""The user's own data: the true answers, and how far off each candidate would be on them."""

_RELEASES = 200
"""Releases of a simulation on given data, fewer of long data."""
_SHOWN = 5
"""Lines of complaints that are shown."""


@final
@dataclass(frozen=True)
class OnData:
    """Simulated releases of the true answers of a data set."""

    rmse: float
    relative: float
    """Root mean squared error over the root mean square of the true answers."""
    largest: float
    """The median, over the releases, of the largest absolute error."""
    releases: int

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def true_answers(path: Path, workload: Workload, budget: Budget) -> NDArray[np.float64]:
    """Read a CSV file with a header line, one person (or one time step) a row, and add it up.

    Raises
    ------
    InvalidInputError
        If a value is missing or not a number, or a row is outside of what the workload says one
        person may contribute: how many rows, and the first of them.
    NotApplicableError
        If the workload is not a sum over rows.
    """
    rows = _read(path)
    width = rows.shape[1]
    limit, wanted = _limit(workload, budget)
    if wanted is not None and width != wanted:
        raise InvalidInputError(f"{path}: expected {wanted} columns for {workload!r}, not {width}.")
    complaints = {index: why for index, row in enumerate(rows, start=2) if (why := limit(row))}
    if complaints:
        raise InvalidInputError(
            f"{path}: {len(complaints)} of {len(rows)} rows are outside of {workload!r}: "
            f"{_some(complaints)}. Clip or drop them before, or widen the workload."
        )
    if isinstance(workload, Count):
        return np.array([float(len(rows))])
    if isinstance(workload, PrefixSums):
        if len(rows) != workload.steps:
            raise InvalidInputError(
                f"{path}: expected {workload.steps} rows for {workload!r}, not {len(rows)}."
            )
        return np.cumsum(rows[:, 0])
    totals: NDArray[np.float64] = rows.sum(axis=0)
    return totals


def on_data(
    found: Calibrated, workload: Workload, true: NDArray[np.float64], *, seed: int
) -> OnData:
    """Release the true answers often, and say how far off they are."""
    rng = np.random.default_rng([seed, 1])
    releases = max(8, min(_RELEASES, 2_000_000 // len(true)))
    if found.layout is Layout.EACH:
        noise = draw(found, workload, releases * len(true), rng=rng).reshape(releases, -1)
    else:
        noise = draw(found, workload, releases, rng=rng).reshape(releases, -1)
    errors = np.asarray(noise, dtype=np.float64)
    rmse = float(np.sqrt(np.mean(errors**2)))
    size = float(np.sqrt(np.mean(true**2)))
    largest = float(np.median(np.abs(errors).max(axis=1)))
    return OnData(rmse, rmse / size if size else float("inf"), largest, releases)


def _read(path: Path) -> NDArray[np.float64]:
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        header = next(lines, None)
        if header is None:
            raise InvalidInputError(f"{path}: expected a header line and at least one row.")
        wrong, rows = {}, []
        for number, line in enumerate(lines, start=2):
            if len(line) != len(header):
                wrong[number] = f"{len(line)} values instead of {len(header)}"
                continue
            try:
                values = [float(entry) for entry in line]
            except ValueError:
                column = next(i for i, entry in enumerate(line) if not _is_number(entry))
                what = repr(line[column]) if line[column].strip() else "missing"
                wrong[number] = f"column {header[column]!r} is {what}"
                continue
            if not np.isfinite(values).all():
                column = int(np.flatnonzero(~np.isfinite(values))[0])
                wrong[number] = f"column {header[column]!r} is {line[column]!r}"
                continue
            rows.append(values)
    if wrong:
        raise InvalidInputError(
            f"{path}: {len(wrong)} of {len(rows) + len(wrong)} rows cannot be used: "
            f"{_some(wrong)}. Fill in or drop them; nothing was left out silently."
        )
    if not rows:
        raise InvalidInputError(f"{path}: expected at least one row below the header.")
    return np.array(rows)


def _some(complaints: dict[int, str]) -> str:
    """Return the first complaints by their lines, and how many more there are."""
    shown = "; ".join(f"line {n}: {why}" for n, why in [*complaints.items()][:_SHOWN])
    return shown + (f"; and {len(complaints) - _SHOWN} more" if len(complaints) > _SHOWN else "")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


Limit: TypeAlias = "Callable[[NDArray[np.float64]], str]"


def _limit(workload: Workload, budget: Budget) -> tuple[Limit, int | None]:
    """Return what is wrong with a row ("" for nothing), and the number of columns."""
    share = 1 if budget.adjacency is Adjacency.ADD_REMOVE else 2
    match workload:
        case Count(sensitivity=1):
            return (lambda row: ""), None
        case Counts(dimension=d, sparsity=k):
            return (lambda row: _ones(row, k)), d
        case GroupedCounts(groups=m, dimension=d):
            return (lambda row: _one_group(row.reshape(m, d))), m * d
        case BoundedSum(bounds=bounds, signed=False):
            top = np.array([float(b) for b in bounds])
            return (lambda row: "a value is negative" if row.min() < 0 else _within(row, top)), len(
                top
            )
        case BoundedSum(bounds=bounds):
            most = np.array([float(b) / share for b in bounds])
            return (lambda row: _within(row, most)), len(bounds)
        case VectorSum(dimension=d):
            return (lambda row: _norms(row, workload, share)), d
        case PrefixSums():
            return (lambda row: "" if 0 <= row[0] <= 1 else f"{row[0]} is not in [0, 1]"), 1
    raise NotApplicableError(
        f"--data is for sums over rows; {workload!r} is not one. Leave it out."
    )


def _ones(row: NDArray[np.float64], most: int) -> str:
    if not np.isin(row, (0.0, 1.0)).all():
        return "a value is neither 0 nor 1"
    ones = int(row.sum())
    return f"{ones} ones, at most {most} are allowed" if ones > most else ""


def _one_group(row: NDArray[np.float64]) -> str:
    groups = int(row.any(axis=1).sum())
    if groups > 1:
        return f"it is in {groups} groups"
    return _ones(row.ravel(), row.size)


def _within(row: NDArray[np.float64], most: NDArray[np.float64]) -> str:
    beyond = np.flatnonzero(np.abs(row) > most)
    if not len(beyond):
        return ""
    return f"column {beyond[0] + 1} is {row[beyond[0]]}, at most ±{most[beyond[0]]} is allowed"


def _norms(row: NDArray[np.float64], workload: VectorSum, share: int) -> str:
    norms = {
        "l1_sensitivity": np.abs(row).sum(),
        "l2_sensitivity": np.sqrt((row**2).sum()),
        "linf_sensitivity": np.abs(row).max(),
    }
    for name, norm in norms.items():
        bound = getattr(workload, name)
        if bound is not None and _exceeds(float(norm), bound.square, share):
            return f"its {name.removesuffix('_sensitivity')} norm is {norm:g}"
    return ""


def _exceeds(norm: float, square: Fraction, share: int) -> bool:
    """Whether a norm exceeds its bound by more than the rounding of the sum that made it."""
    return (norm * share) ** 2 > float(square) * (1 + 1e-12)
