"""The floating-point channel: features of the bit structure of outputs.

A value plus noise in floating point is rounded to the grid of its own magnitude, and the noise
came from a grid of its own; which bits of the sum can be set tells what the value was (Mironov,
"On significance of the least significant bits for differential privacy", 2012; Jin et al., "Are we
there yet? Timing and floating-point attacks on differential privacy systems", 2022). The features
here are the lowest set bit of an entry or of a difference of entries, the same with the binade of
the value, and the values that occur repeatedly. Each is plain data and a function of the single
output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpassay.verifier.audit.learning.features import Feature, Values
from dpassay.verifier.audit.learning.outputs import Matrix

Codes: TypeAlias = NDArray[np.int64]

OF_ZERO = 1200
"""Code of 0, which has no lowest set bit; any number beyond those of doubles would do."""
OF_INFINITY = 1300
"""Code of ±∞."""
OF_NAN = 1301
"""Code of NaN."""
LEAST = -1100
"""Below the exponent −1074 of the least double, so that codes count from 0."""
CODES = 2500
"""The lowest set bit plus 1100 is below this."""
_STORED, _EXPONENT = 52, 0x7FF


class View(NamedTuple):
    """An entry, or an entry minus another one."""

    entry: int
    other: int | None = None

    @property
    def name(self) -> str:
        """What the report calls it."""
        entry = f"output[{self.entry}]"
        return entry if self.other is None else f"({entry} - output[{self.other}])"

    def __call__(self, outputs: Matrix) -> Values:
        """Return it of each output; NaN, a code of its own, for two infinities."""
        entry = np.asarray(outputs[:, self.entry], dtype=np.float64)
        if self.other is None:
            return entry
        with np.errstate(invalid="ignore"):
            return np.asarray(entry - outputs[:, self.other], dtype=np.float64)


def lowest_bit(values: Any) -> Codes:
    """Return e where the number is an odd multiple of 2^e; codes of their own for 0, ±∞ and NaN."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    bits = array.view(np.int64)
    biased = (bits >> _STORED) & _EXPONENT
    lowest = (bits & -bits).astype(np.float64).view(np.int64) >> _STORED  # 1023 + its place
    # where no bit of the fraction is set it is the implicit one, before them
    codes: Codes = np.maximum(biased, 1) + np.minimum(lowest, 1023 + _STORED) - 2098
    odd = (biased == _EXPONENT) | (array == 0)
    if odd.any():
        named = np.where(np.isnan(array), OF_NAN, np.where(array == 0, OF_ZERO, OF_INFINITY))
        codes = np.where(odd, named, codes)
    return codes


@final
@dataclass(frozen=True, eq=False)
class BitCell:
    """The lowest set bit of a view, together with the cell of its value where there are several."""

    view: View
    edges: Values
    discrete: bool = True

    @property
    def name(self) -> str:
        """Of what."""
        what = "value and lowest set bit" if len(self.edges) else "lowest set bit"
        return f"{what} of {self.view.name}"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the pair as one number; the exponent alone where all is one cell."""
        values = self.view(outputs)
        codes = lowest_bit(values)
        if len(self.edges):
            codes += np.searchsorted(self.edges, values, side="right") * CODES - LEAST
        return codes.astype(np.float64)

    def words(self, code: float) -> str:
        """Say what a value of the feature stands for."""
        cell, above = divmod(int(code), CODES) if len(self.edges) else (0, int(code) - LEAST)
        lowest = above + LEAST
        odd = {OF_ZERO: "zero", OF_INFINITY: "infinite", OF_NAN: "NaN"}
        said = odd.get(lowest, f"2^{lowest}")
        if not len(self.edges):
            return said
        ends = (-np.inf, *self.edges.tolist(), np.inf)
        return f"{said} in [{ends[cell]:g}, {ends[cell + 1]:g})"

    def to_json(self) -> Mapping[str, Any]:
        """Return plain data."""
        return {"feature": "bit-cell", "view": list(self.view), "edges": self.edges.tolist()}


@final
@dataclass(frozen=True, eq=False)
class Atoms:
    """Which of the values that occurred repeatedly a view has, if any."""

    view: View
    values: Values
    discrete: bool = True

    @property
    def name(self) -> str:
        """Of what."""
        return f"{self.view.name}, of the values that repeat,"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the place of the value in the list, −1 for any other one."""
        found = self.view(outputs)
        place = np.minimum(np.searchsorted(self.values, found), len(self.values) - 1)
        return np.where(self.values[place] == found, place, -1).astype(np.float64)

    def words(self, code: float) -> str:
        """Say what a value of the feature stands for."""
        return "none of them" if code < 0 else repr(float(self.values[int(code)]))

    def to_json(self) -> Mapping[str, Any]:
        """Return plain data."""
        return {"feature": "atoms", "view": list(self.view), "values": self.values.tolist()}


_MOST_VIEWS = 128
"""Entries of wide outputs whose bits are looked at one by one: each costs a histogram."""
_MOST_DIFFERENCES = 64
"""Differences from the first and from the last entry: they double the cost of each entry."""
_MOST_ENTRIES, _LEAST_ROWS = 2_000_000, 2000
"""What teaches features of bits: more costs time and adds little to tables of few codes."""
_GLANCED = 20_000
"""Entries of a side, or a few thousand runs, that are enough for bits that nobody claims."""
_LISTED = 12
"""Views, those with the clearest contrast, that get features of their own; each costs three."""
_BINADES = 12
"""Powers of two between which cells lie, from the largest down: below are few outputs."""
_LEAST_ATOM = 4
"""Times that a value occurs before it is one that repeats, by chance hardly ever among doubles."""
_VALUES_LOOKED_AT = 4000
"""Entries that show whether all are integers."""
_SMALL = 2.0**40
"""Doubles below this have twelve bits for what is no integer."""


def glance(first: Matrix, second: Matrix) -> Iterable[Feature]:
    """Propose features of bits that nobody claims: learned from fewer runs where there are many."""
    rows = max(_LEAST_ROWS, _GLANCED // max(1, first.shape[1]))
    return propose(first[:rows], second[:rows])


def propose(first: Matrix, second: Matrix) -> Iterable[Feature]:
    """Propose the lowest set bits and the repeated values of the views that differ most."""
    if not first.shape[1] or first.dtype.kind != "f":
        return
    first, second = (side[: _rows(first.shape[1])] for side in (first, second))
    views = [
        view
        for view in _views(first.shape[1])
        if not _are_whole(*(side[:, [view.entry]] for side in (first, second)))
    ]
    for view in sorted(views, key=lambda view: -_contrast(first, second, view))[:_LISTED]:
        yield BitCell(view, np.empty(0))
        yield BitCell(view, _binades(first, second, view))
        atoms = _atoms(first, second, view)
        if len(atoms):
            yield Atoms(view, atoms)


def _rows(width: int) -> int:
    """Return how many runs a side teach features of bits at most."""
    return max(_LEAST_ROWS, _MOST_ENTRIES // width)


def bounded(outputs: Matrix) -> str:
    """Say on how much of the training outputs the bits were looked at; nothing where on all."""
    runs, width = outputs.shape
    if not width or outputs.dtype.kind != "f" or (runs <= _rows(width) and width <= _MOST_VIEWS):
        return ""
    return (
        f"features of bits were learned from {min(runs, _rows(width))} of {runs} training runs a "
        f"side and {min(width, _MOST_VIEWS)} of {width} entries"
    )


def _views(width: int) -> list[View]:
    """Return the entries, and their differences from the first and from the last one."""
    count = min(width, _MOST_VIEWS)
    views = [View(index) for index in range(count)]
    fewer = min(count, _MOST_DIFFERENCES)
    views += [View(index, 0) for index in range(1, fewer)]
    views += [View(index, width - 1) for index in range(1, fewer) if index != width - 1]
    return views


def _contrast(first: Matrix, second: Matrix, view: View) -> float:
    """Return how much the histograms of the lowest set bit differ, in standard deviations."""
    a, b = (
        np.bincount(lowest_bit(view(side)) - LEAST, minlength=CODES) for side in (first, second)
    )
    seen = a + b > 0
    scaled = (a / len(first) - b / len(second))[seen] ** 2 / (a + b)[seen]
    return float(scaled.sum())


def _atoms(first: Matrix, second: Matrix, view: View) -> Values:
    """Return the finite values that one dataset shows more often than chance allows, sorted."""
    found = []
    for side in (first, second):
        values, counts = np.unique(view(side), return_counts=True)
        often = np.isfinite(values) & (counts >= max(_LEAST_ATOM, len(side) // 1000))
        found.append(values[often])
    return np.unique(np.concatenate(found))


def _binades(first: Matrix, second: Matrix, view: View) -> Values:
    """Return the powers of two, of both signs, between which nearly all of a view lies."""
    size = np.abs(np.concatenate([view(first), view(second)]))
    size = size[np.isfinite(size) & (size > 0)]
    if not len(size):
        return np.empty(0)
    low, high = np.frexp(np.quantile(size, [0.01, 0.999], method="lower"))[1]
    top = min(int(high), np.finfo(np.float64).maxexp - 1)
    powers = np.ldexp(1.0, np.arange(max(int(low), top - _BINADES), top + 1))
    return np.concatenate([-powers[::-1], powers])


def _are_whole(first: Matrix, second: Matrix) -> bool:
    """Whether all outputs are integers so small that doubles have room for fractions."""
    both = np.concatenate([first[:_VALUES_LOOKED_AT], second[:_VALUES_LOOKED_AT]])
    both = both[np.isfinite(both)]
    return bool((both == np.rint(both)).all() and (np.abs(both) < _SMALL).all())
