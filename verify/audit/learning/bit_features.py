"""Features of the bits of outputs: lowest set bit, repeated values.

Each is plain data and a function of the single output; `learning.bits` chooses among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpassay.verifier.audit.learning.features import Values
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


class Undo(NamedTuple):
    """Multiply by a number (or divide), then subtract another one."""

    factor: float = 1.0
    divides: bool = False
    constant: float = 0.0

    def __call__(self, entries: Any) -> Values:
        """Return what was there before, each step rounded in the precision of the entries.

        A factor and rounding took up to two neighbouring numbers to one. Of those it is the one
        with more zeros at its end: what a sum on a coarser grid was.
        """
        found = self._scaled(entries)
        if self.factor != 1:
            best = self._zeros(found, entries)
            for end in (-np.inf, np.inf):
                neighbour = np.nextafter(found, entries.dtype.type(end))
                zeros = self._zeros(neighbour, entries)
                found, best = np.where(zeros > best, neighbour, found), np.maximum(zeros, best)
        return np.asarray(self._shifted(found), dtype=np.float64)

    def roughly(self, entries: Any) -> Any:
        """Return nearly the same in a third of the time: a last place off for some."""
        return self._shifted(self._scaled(entries))

    def _scaled(self, entries: Any) -> Any:
        if self.factor == 1:
            return entries
        factor = entries.dtype.type(self.factor)
        with np.errstate(over="ignore", invalid="ignore"):
            return entries / factor if self.divides else entries * factor

    def _shifted(self, entries: Any) -> Any:
        return entries - entries.dtype.type(self.constant) if self.constant != 0 else entries

    def _zeros(self, numbers: Any, entries: Any) -> Codes:
        """Return the lowest set bits of numbers that become these entries, of others the least."""
        again = self._replace(divides=not self.divides)._scaled(numbers)
        return np.where(again == entries, lowest_bit(numbers), LEAST)

    def described(self, entry: str) -> str:
        """Return the undone entry in words."""
        if self.factor != 1:
            entry = f"{entry}/{self.factor:g}" if self.divides else f"{self.factor:g}·{entry}"
        if self.constant == 0:
            return entry
        return f"({entry} {'-' if self.constant > 0 else '+'} {abs(self.constant):g})"


NOTHING = Undo()
"""Leave outputs as they are."""


class View(NamedTuple):
    """An entry, or an entry minus another one, after something was undone in both."""

    entry: int
    other: int | None = None
    undo: Undo = NOTHING

    def to_json(self) -> list[Any]:
        """Return plain data."""
        return [self.entry, self.other, list(self.undo)]


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


def look(outputs: Matrix, view: View) -> Values:
    """Return what a view shows of each output."""
    entry = view.undo(outputs[:, view.entry])
    if view.other is None:
        return entry
    with np.errstate(
        invalid="ignore"
    ):  # the difference of two infinities is NaN, a code of its own
        return entry - view.undo(outputs[:, view.other])


def _named(view: View) -> str:
    entry = view.undo.described(f"output[{view.entry}]")
    if view.other is None:
        return entry
    return f"({entry} - {view.undo.described(f'output[{view.other}]')})"


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
        return f"{what} of {_named(self.view)}"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the pair as one number; the exponent alone where all is one cell."""
        values = look(outputs, self.view)
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
        return {"feature": "bit-cell", "view": self.view.to_json(), "edges": self.edges.tolist()}


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
        return f"{_named(self.view)}, of the values that repeat,"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the place of the value in the list, −1 for any other one."""
        found = look(outputs, self.view)
        place = np.minimum(np.searchsorted(self.values, found), len(self.values) - 1)
        return np.where(self.values[place] == found, place, -1).astype(np.float64)

    def words(self, code: float) -> str:
        """Say what a value of the feature stands for."""
        return "none of them" if code < 0 else repr(float(self.values[int(code)]))

    def to_json(self) -> Mapping[str, Any]:
        """Return plain data."""
        return {"feature": "atoms", "view": self.view.to_json(), "values": self.values.tolist()}
