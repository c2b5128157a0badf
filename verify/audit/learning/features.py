"""Features: maps from outputs to one number each, out of which events are made.

A feature is plain data and a function of the single output, so that {feature ≥ t} and
{feature in a set} are events. Every proposer is asked for features once, on the training runs
alone, and may learn whatever it likes from them; the events that come out are then tested on
fresh runs, so that nothing a proposer does can make a test invalid.

Features of vectors, learned from the training runs: directions, and distances.

A linear score is best for noise of Gaussian shape around shifted answers; distances to the points
where runs are densest show noise that is thin in some direction or has a spike at the true answer.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpassay.verifier.audit.learning.outputs import Matrix

Values: TypeAlias = NDArray[np.float64]

_MOST_COORDINATES = 24
"""Entries that are all looked at; of more, the six that differ most."""
_ROWS_LOOKED_AT = 4000
"""Training runs a side that tell whether outputs repeat, and all that wide outputs show."""
_ROWS_RANKED = 20_000
"""Training runs a side that rank the entries of wide outputs: it shows 0.03 deviations."""
_WIDE = 256
"""Entries from which on rows are sorted and compared in part only."""


@runtime_checkable
class Feature(Protocol):
    """A number for every output."""

    @property
    def name(self) -> str:
        """What the report calls it, such as `output[0]`."""

    @property
    def discrete(self) -> bool:
        """Whether its values are taken one by one (categories, bits) rather than in order."""

    def __call__(self, outputs: Matrix) -> Values:
        """Return one number per row; no NaN."""

    def to_json(self) -> Mapping[str, Any]:
        """Return plain data that says how it is computed."""


Proposer: TypeAlias = Callable[[Matrix, Matrix], Iterable[Feature]]
"""Given the training outputs of both datasets, return features."""


@final
@dataclass(frozen=True)
class Coordinate:
    """One entry of the output; NaN counts as +∞."""

    index: int
    discrete: bool = False

    @property
    def name(self) -> str:
        """Which entry."""
        return f"output[{self.index}]"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the entry."""
        return _no_nan(outputs[:, self.index])

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"feature": "coordinate", "index": self.index}


@final
@dataclass(frozen=True)
class Row:
    """The whole output as one category: a number that stands for its entries."""

    discrete: bool = True

    @property
    def name(self) -> str:
        """Say so."""
        return "the whole output"

    def __call__(self, outputs: Matrix) -> Values:
        """Return a checksum of each row (a single integer stands for itself)."""
        if outputs.shape[1] == 1:
            return _no_nan(outputs[:, 0])
        rows = np.ascontiguousarray(_no_nan(outputs) + 0.0)
        codes, place = np.unique(rows, axis=0, return_inverse=True)
        sums = np.array([zlib.crc32(row.tobytes()) for row in codes], dtype=np.float64)
        values: Values = sums[place.reshape(-1)]
        return values

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"feature": "row"}


@final
@dataclass(frozen=True)
class Count:
    """How many entries of the output are NaN, infinite, or negative zeros."""

    of: str
    discrete: bool = True

    @property
    def name(self) -> str:
        """Say what is counted."""
        return f"number of entries that are {self.of}"

    def __call__(self, outputs: Matrix) -> Values:
        """Count in each row."""
        return np.asarray(_ODD[self.of](outputs).sum(axis=1), dtype=np.float64)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"feature": "count", "of": self.of}


_ODD: dict[str, Callable[[Matrix], NDArray[np.bool_]]] = {
    "nan": np.isnan,
    "infinite": np.isinf,
    "-0.0": lambda outputs: (outputs == 0) & np.signbit(outputs),
}
"""Numbers that an order of values does not tell from others."""


@final
@dataclass(frozen=True)
class Binned:
    """The cell of another feature, so that an event may take any cells (for laws with gaps)."""

    inner: Feature
    edges: tuple[float, ...]
    discrete: bool = True

    @property
    def name(self) -> str:
        """Say of what."""
        return f"cell of {self.inner.name}"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the index of the cell."""
        return np.searchsorted(self.edges, self.inner(outputs), side="right").astype(np.float64)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"feature": "binned", "of": dict(self.inner.to_json()), "edges": list(self.edges)}


def plain(first: Matrix, second: Matrix, *, codes: range = range(0)) -> Iterable[Feature]:
    """Propose entries, cells, whole rows and special values; entries that are codes one by one."""
    width = first.shape[1]
    if width > _WIDE:
        first, second = (side[:_ROWS_LOOKED_AT] for side in (first, second))
    sides = (first, second)
    if any(np.issubdtype(side.dtype, np.floating) for side in sides):
        for of, is_odd in _ODD.items():
            if any(is_odd(side).any() for side in sides):
                yield Count(of)
    looked_at = np.concatenate([first[:_ROWS_LOOKED_AT], second[:_ROWS_LOOKED_AT]])
    if width <= _WIDE and len(np.unique(looked_at, axis=0)) <= len(looked_at) // 8:
        yield Row()
    for index in coordinates(first, second):
        entry = _no_nan(np.concatenate([side[:, index] for side in sides]))
        values = np.unique(entry)
        if len(values) < 2:
            continue
        if index not in codes:
            yield Coordinate(index)
        if index in codes or len(values) <= len(entry) // 20:
            yield Coordinate(index, discrete=True)
        if index in codes:
            continue
        cuts = np.unique(np.quantile(entry, np.arange(1, 24) / 24, method="lower"))
        if len(values) > len(cuts):
            yield Binned(Coordinate(index), tuple(float(cut) for cut in cuts))


def coordinates(first: Matrix, second: Matrix) -> Iterable[int]:
    """Return the entries that differ most between the datasets, all of a short output."""
    width = first.shape[1]
    return range(width) if width <= _MOST_COORDINATES else most_shifted(first, second)[:6]


def most_shifted(first: Matrix, second: Matrix) -> list[int]:
    """Return all entries, those first whose means differ most in standard deviations."""
    a, b = (np.nan_to_num(side[:_ROWS_RANKED].astype(np.float64)) for side in (first, second))
    with np.errstate(over="ignore", invalid="ignore"):  # infinities became the largest doubles
        spread = np.sqrt(a.var(axis=0) + b.var(axis=0)) + 1e-300
        shift = np.abs(a.mean(axis=0) - b.mean(axis=0)) / spread
    return [int(i) for i in np.argsort(-shift, kind="stable")]


def _no_nan(values: Any) -> Values:
    array = np.asarray(values, dtype=np.float64)
    return np.where(np.isnan(array), np.inf, array) if np.isnan(array).any() else array


_MOST_FOR_COVARIANCE = 400
"""Entries up to which a covariance is learned: it costs their square in runs."""
_SPIKE_RUNS = 5_000
"""Training runs that show a densest point: each step looks at all of them."""
_SPIKE_STEPS = 25
"""Steps to a densest point, each of which brings it closer by a factor."""
_PLACES = 30
"""Bits of a distance that differences keep: rounding spoils a dozen of the 53."""
_FEWEST = 20
"""Finite training runs a side: fewer have no direction."""


@final
@dataclass(frozen=True, eq=False)
class Linear:
    """The score w·output − offset."""

    weights: Values
    how: str
    offset: float = 0.0
    discrete: bool = False

    @property
    def name(self) -> str:
        """Say how it was found."""
        return f"linear score ({self.how})"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the score."""
        return np.nan_to_num(outputs @ self.weights - self.offset, nan=np.inf)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        weights = [float(w) for w in self.weights]
        return {"feature": "linear", "weights": weights, "offset": self.offset}


@final
@dataclass(frozen=True, eq=False)
class Nearer:
    """How much nearer the output is to one centre than to another, in a norm."""

    centres: tuple[Values, Values]
    order: float
    """Of the norm: 1, 2 or ∞."""
    ratio: bool
    """Whether the ratio of the distances is taken, in place of their difference."""
    label: str
    discrete: bool = False

    @property
    def name(self) -> str:
        """Say of what."""
        what = "log ratio" if self.ratio else "difference"
        return f"{what} of the l{self.order:g} distances to {self.label}"

    def __call__(self, outputs: Matrix) -> Values:
        """Return it: large where the output is nearer to the first centre."""
        far, near = (_norm(outputs - centre, self.order) for centre in self.centres[::-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(far) - np.log(near) if self.ratio else _rounded(far - near, far)
        return np.nan_to_num(found, nan=np.inf)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        centres = [[float(c) for c in centre] for centre in self.centres]
        return {"feature": "nearer", "centres": centres, "order": self.order, "ratio": self.ratio}


@final
@dataclass(frozen=True, eq=False)
class Size:
    """A norm of the output, or its largest entry."""

    order: float
    """Of the norm; 0 for the largest entry."""
    discrete: bool = False

    @property
    def name(self) -> str:
        """Which."""
        return (
            f"l{self.order:g} norm of the output" if self.order else "largest entry of the output"
        )

    def __call__(self, outputs: Matrix) -> Values:
        """Return it."""
        found = _norm(outputs, self.order) if self.order else outputs.max(axis=1)
        return np.nan_to_num(np.asarray(found, dtype=np.float64), nan=np.inf)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"feature": "size", "order": self.order}


def _rounded(differences: Values, of: Values) -> Values:
    """Return differences without the digits in which only rounding shows.

    Where one distance is the other plus a constant for many outputs, its last digits would tell
    the last bits of the outputs, which are no part of their values.
    """
    places = np.frexp(np.where(np.isfinite(of), of, 1.0))[1] - _PLACES
    found: Values = np.ldexp(np.rint(np.ldexp(differences, -places)), places)
    return found


def _norm(rows: Matrix, order: float) -> Values:
    if order == 2:
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))
    size = np.abs(rows)
    return np.asarray(size.sum(axis=1) if order == 1 else size.max(axis=1))


def nearer(centres: tuple[Values, Values], label: str) -> Iterable[Feature]:
    """Propose comparisons of the distances to two places."""
    yield Nearer(centres, 2, True, label)
    for order in (1.0, 2.0, np.inf):
        yield Nearer(centres, order, False, label)


def distances_to(pair: tuple[Any, Any]) -> Proposer:
    """Return what compares distances to both datasets, where they look like answers themselves."""

    def propose(first: Matrix, _: Matrix) -> Iterable[Feature]:
        try:
            centres = [np.asarray(answer, dtype=np.float64).ravel() for answer in pair]
        except Exception:  # noqa: BLE001 (no numbers, or tensors on a device)
            return
        width = first.shape[1]
        if width < 2 or any(len(c) != width or not np.isfinite(c).all() for c in centres):
            return
        if (centres[0] != centres[1]).any():
            yield Linear(centres[0] - centres[1], "difference of the datasets")
            yield from nearer((centres[0], centres[1]), "both datasets")

    return propose


def geometry(first: Matrix, second: Matrix) -> Iterable[Feature]:
    """Propose directions in which vectors differ, and distances from places."""
    if first.shape[1] < 2:
        return
    sides = (np.asarray(side, dtype=np.float64) for side in (first, second))
    a, b = (side[np.isfinite(side).all(axis=1)] for side in sides)
    if min(len(a), len(b)) < _FEWEST:
        return
    for how in (MEANS, DISCRIMINANT):
        found = direction(how, a, b)
        if found is not None:
            yield found
    spike_a, spike_b = spike(a), spike(b)
    yield Linear(spike_a - spike_b, "difference of the densest points")
    yield Nearer((spike_a, spike_b), 2, True, "the densest points")
    yield from (Size(order) for order in (0, 1, 2, np.inf))


MEANS, DISCRIMINANT = "difference of means", "discriminant"


def direction(how: str, a: Matrix, b: Matrix) -> Linear | None:
    """Return a linear score of mean 0 and variance 1, learned from the runs of both datasets."""
    centre_a, centre_b = a.mean(axis=0), b.mean(axis=0)
    weights, width = centre_a - centre_b, a.shape[1]
    if how == DISCRIMINANT:
        if width > _MOST_FOR_COVARIANCE:
            return None
        covariance = (np.cov(a, rowvar=False) + np.cov(b, rowvar=False)) / 2
        ridge = 1e-9 * np.trace(covariance) / width + 1e-300
        weights = np.linalg.solve(covariance + ridge * np.eye(width), weights)
    scores = [side @ weights for side in (a, b)]
    spread = math.sqrt((scores[0].var() + scores[1].var()) / 2)
    if not 0 < spread < math.inf:
        return Linear(weights, how)
    weights = weights / spread
    return Linear(weights, how, float(weights @ (centre_a + centre_b)) / 2)


def spike(runs: Matrix) -> Values:
    """Return a point where many runs are close to each other.

    Steps to the mean weighted by 1/distance² (whose fixed points maximise Π 1/distance): in many
    dimensions noise with a density that is infinite at the true answer is found where it is, long
    before a mean is good enough.
    """
    runs = runs[:_SPIKE_RUNS]
    centre = runs.mean(axis=0)
    norms = np.einsum("ij,ij->i", runs, runs)
    for _ in range(_SPIKE_STEPS):
        square = norms - 2 * (runs @ centre) + centre @ centre
        weights = 1 / np.maximum(square, 1e-9 * max(1e-200, float(np.median(square))))
        centre = weights @ runs / weights.sum()
    found: Values = centre
    return found
