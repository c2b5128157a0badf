"""Features of the bits of outputs: lowest set bit, residues, coincidences, repeated values.

Each is plain data and a function of the single output; `verify.audit.bits` chooses among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from verify.audit.features import Values
from verify.audit.outputs import Matrix

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
_SIGNIFICAND = 53
"""Bits of the significand of a double, the leading one included."""
_STORED, _EXPONENT = 52, 0x7FF
_FEW_EDGES = 16
"""Edges up to which counting those below each number is faster than a search among them."""
_CHUNK = 1 << 14
"""Outputs that a score looks at in one go: what it works on then stays in the processor's cache."""


class Undo(NamedTuple):
    """Multiply by a number (or divide), then subtract another one."""

    factor: float = 1.0
    divides: bool = False
    constant: float = 0.0

    def __call__(self, entries: Any) -> Values:
        """Return numbers, rounded after each step in their own precision."""
        kind = entries.dtype.type
        with np.errstate(over="ignore", invalid="ignore"):
            if self.factor != 1:
                factor = kind(self.factor)
                entries = entries / factor if self.divides else entries * factor
            if self.constant != 0:
                entries = entries - kind(self.constant)
        return np.asarray(entries, dtype=np.float64)

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


def residue(values: Any, modulus: int) -> Codes:
    """Return the significand, an integer of 53 bits (0 for 0, ±∞ and NaN), modulo an odd number.

    A number of a coarser format gives the residue of its own significand times a power of two.
    """
    array = np.asarray(values, dtype=np.float64)
    mantissa = np.frexp(np.where(np.isfinite(array), array, 0.0))[0]
    return np.mod(np.ldexp(mantissa, _SIGNIFICAND).astype(np.int64), modulus)


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


def cells(values: Values, edges: Values, modulus: int = 1) -> Codes:
    """Return (cell·2500 + lowest bit + 1100)·modulus + residue."""
    codes = lowest_bit(values) - LEAST
    if 0 < len(edges) <= _FEW_EDGES:
        below = np.zeros(len(values), np.int8)
        for edge in edges:
            below += values < edge
        codes += (len(edges) - below) * np.int64(CODES)  # NaN is above all of them
    elif len(edges):
        codes += np.searchsorted(edges, values, side="right") * CODES
    return codes if modulus == 1 else codes * modulus + residue(values, modulus)


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
        what = "cell and lowest set bit" if len(self.edges) else "exponent of the lowest set bit"
        return f"{what} of {_named(self.view)}"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the pair as one number; the exponent alone where all is one cell."""
        values = look(outputs, self.view)
        codes = cells(values, self.edges) if len(self.edges) else lowest_bit(values)
        return codes.astype(np.float64)

    def to_json(self) -> Mapping[str, Any]:
        """Return plain data."""
        return {"feature": "bit-cell", "view": self.view.to_json(), "edges": self.edges.tolist()}


@final
@dataclass(frozen=True, eq=False)
class BitScore:
    """The sum over views of a learned log-likelihood ratio of cell and lowest set bit."""

    views: tuple[View, ...]
    edges: tuple[Values, ...]
    tables: tuple[tuple[Codes, Values], ...]
    """For each view the codes that were seen, sorted, and their log ratios (0 for any other)."""
    how: str
    modulus: int = 1
    """The residue of the significand is part of the code."""
    judged: tuple[Values, Values] | None = None
    """Scores of training runs, each by a score that those runs did not teach."""
    discrete: bool = False

    @property
    def name(self) -> str:
        """Say over what."""
        shown = ", ".join(map(_named, self.views[:3])) + ", …" * (len(self.views) > 3)
        what = "value and lowest set bit"
        if self.modulus > 1:
            what = f"value, lowest set bit and residue modulo {self.modulus}"
        return f"log-likelihood ratio of {what} of {shown} ({self.how})"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the score."""
        score = np.zeros(len(outputs))
        size = (max(map(len, self.edges)) + 1) * CODES * self.modulus
        tables = {}  # one for each view, or one for all
        for codes, ratios in self.tables:
            tables[id(ratios)] = np.zeros(size)
            tables[id(ratios)][codes] = ratios
        for start in range(0, len(outputs), _CHUNK):
            some = np.asfortranarray(outputs[start : start + _CHUNK])  # entries one by one
            for view, edges, (_, ratios) in zip(self.views, self.edges, self.tables, strict=True):
                score[start : start + _CHUNK] += tables[id(ratios)][
                    cells(look(some, view), edges, self.modulus)
                ]
        return score

    def to_json(self) -> Mapping[str, Any]:
        """Return plain data."""
        return {
            "feature": "bit-score",
            "modulus": self.modulus,
            "views": [view.to_json() for view in self.views],
            "edges": [edges.tolist() for edges in self.edges],
            "tables": [
                {"codes": codes.tolist(), "ratios": ratios.tolist()}
                for codes, ratios in self.tables
            ],
        }


@final
@dataclass(frozen=True)
class Collisions:
    """How many entries of an output equal an earlier one (NaN equals nothing)."""

    discrete: bool = True

    @property
    def name(self) -> str:
        """Say so."""
        return "number of entries that equal an earlier one"

    def __call__(self, outputs: Matrix) -> Values:
        """Count in each row."""
        ordered = np.sort(outputs, axis=1)
        counts: Values = np.sum(ordered[:, 1:] == ordered[:, :-1], axis=1).astype(np.float64)
        return counts

    def to_json(self) -> Mapping[str, Any]:
        """Return plain data."""
        return {"feature": "collisions"}


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
        return f"which repeated value {_named(self.view)} has"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the place of the value in the list, −1 for any other one."""
        found = look(outputs, self.view)
        place = np.minimum(np.searchsorted(self.values, found), len(self.values) - 1)
        return np.where(self.values[place] == found, place, -1).astype(np.float64)

    def to_json(self) -> Mapping[str, Any]:
        """Return plain data."""
        return {"feature": "atoms", "view": self.view.to_json(), "values": self.values.tolist()}


@final
@dataclass(frozen=True)
class OnLattice:
    """Whether an entry lies within a tolerance of offset + step·ℤ, a lattice that was learned."""

    index: int
    step: float
    offset: float
    discrete: bool = True

    @property
    def name(self) -> str:
        """Say which lattice."""
        return f"output[{self.index}] lies on {float(self.offset)!r} + {float(self.step)!r}·ℤ"

    def __call__(self, outputs: Matrix) -> Values:
        """Return 1 on the lattice, 0 elsewhere."""
        shifted = (np.asarray(outputs[:, self.index], dtype=np.float64) - self.offset) / self.step
        with np.errstate(invalid="ignore"):
            distance = np.abs(shifted - np.round(shifted))
        return (distance <= 1e-9 * (1 + np.abs(np.nan_to_num(shifted)))).astype(np.float64)

    def to_json(self) -> Mapping[str, Any]:
        """Return plain data."""
        return {
            "feature": "on-lattice",
            "index": self.index,
            "step": self.step,
            "offset": self.offset,
        }
