"""Features: maps from outputs to one number each, out of which events are made.

A feature is plain data and a function of the single output, so that {feature ≥ t} and
{feature in a set} are events. Every proposer is asked for features once, on the training runs
alone, and may learn whatever it likes from them; the events that come out are then tested on
fresh runs, so that nothing a proposer does can make a test invalid.
"""

from __future__ import annotations

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


def plain(first: Matrix, second: Matrix) -> Iterable[Feature]:
    """Propose entries, cells, whole rows and special values."""
    width = first.shape[1]
    if width > _WIDE:
        first, second = (side[:_ROWS_LOOKED_AT] for side in (first, second))
    both = np.concatenate([first, second])
    if np.issubdtype(both.dtype, np.floating):
        for of, is_odd in _ODD.items():
            if is_odd(both).any():
                yield Count(of)
    looked_at = np.concatenate([first[:_ROWS_LOOKED_AT], second[:_ROWS_LOOKED_AT]])
    if width <= _WIDE and len(np.unique(looked_at, axis=0)) <= len(looked_at) // 8:
        yield Row()
    for index in coordinates(first, second):
        entry = _no_nan(both[:, index])
        values = np.unique(entry)
        if len(values) < 2:
            continue
        yield Coordinate(index)
        if len(values) <= len(entry) // 20:
            yield Coordinate(index, discrete=True)
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
