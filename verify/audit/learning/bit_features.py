"""Features of the bits of outputs: lowest set bit, repeated values.

Each is plain data and a function of the single output; `learning.bits` chooses among them.

What was done to sums afterwards, and how to undo it: a factor, a divisor, an added constant.

Multiplying, dividing or shifting a sum scrambles its last bits, but only until somebody undoes it.
Whoever knows the program knows the number; here it is looked for among short decimals and odd
integers. A number is told by what it brings to light: after a wrong one the last bits of either
dataset are random, whatever the value is; after the right one their zeros differ between the
datasets, or from what chance gives, in cells of the value. The contrast of two tables of cells and
zeros is Pearson's statistic, standardised. Many numbers are looked at on few runs, the best of them
on more. All of it happens on training runs, so that the test is charged for none of it.
"""

from __future__ import annotations

import functools
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


Array: TypeAlias = NDArray[Any]

_SHORT, _LONG = 100, 1000
"""Decimals of two digits are looked at closely, those of three on fewer runs."""
_ODD = 256
"""Odd integers up to here are looked at closely: counts of records, and their multiples."""
_POWERS = (0, -1, 1, -2, 2)
"""Powers of ten of a decimal; as factors further ones have nearly all been seen."""
_CLOSELY, _ROUGHLY, _FINALLY = 4000, 1000, 20_000
"""Entries a side: of the short numbers, of the long ones, and of the best of both."""
_BEST = 32
"""Numbers of each kind that are looked at a last time."""
_FEWEST = 50
"""Entries a side: fewer have no table."""
_CLEAR = 6.0
"""Standard deviations of the contrast: of 7000 wrong numbers the best seldom has as many."""
_APART, _ORDER = 0, 1
"""Kinds of contrasts: between the datasets, and between both and their scrambled copy."""
_ORDERLY = 3
"""Steps that show most order: each costs a score of its own."""
_SCRAMBLED = 12
"""Last bits that are made random: twice as many as tables look at, and half of a short float."""
_CELLS, _ZEROS = 24, 6
"""Cells of the value, and of zeros at the end: with fewer of the value, zeros that depend on it
alone seem to tell the datasets apart; more are seldom filled."""
_AT_THE_END = np.array(
    [_ZEROS - 1, *((n & -n).bit_length() - 1 for n in range(1, 1 << _ZEROS - 1))]
)
"""How many zeros the last bits of a number end with, at most one less than there are cells."""
_MORE = 1.2
"""Times as much as without: undoing more must show more, not only as much."""
_LEAST_EXPECTED = 3.0
"""Entries that a cell of the table needs for its statistic."""
_AT_ONCE = 1 << 17
"""Numbers of a table in one go, which stay in the processor's cache."""


def undone(first: Matrix, second: Matrix) -> list[Undo]:
    """Return what clearly shows more in the last bits of all entries than they show as they are.

    That is one step that shows more difference between the datasets, and up to three that show
    more order than the same numbers have with random last bits: a division leaves a trace of its
    own, which wrong factors show. None where none is clear.
    """
    if first.dtype.kind != "f":
        return []
    sides = [_entries(side) for side in (first, second)]
    if min(map(len, sides)) < _FEWEST:
        return []
    shown = _contrasts(sides, [NOTHING], _FINALLY)[:, 0]
    seen = [
        (undos, _contrasts(sides, undos, entries))
        for undos, entries in zip(_factors(), (_CLOSELY, _ROUGHLY), strict=True)
    ]
    apart, order = (
        _better(sides, kind, shown[kind], [undo for each in seen for undo in _first(*each, kind)])
        for kind in (_APART, _ORDER)
    )
    factor, most = apart[0] if apart else (NOTHING, shown[_APART])
    shifted = [factor._replace(constant=each) for each in _constants()]
    listed = _first(shifted, _contrasts(sides, shifted, _CLOSELY), _APART)
    apart = _better(sides, _APART, most, listed) or apart
    return list(dict.fromkeys(undo for undo, _ in apart[:1] + order[:_ORDERLY]))


def _first(undos: list[Undo], contrasts: Array, kind: int) -> list[Undo]:
    """Return the clearest ones, the clearest first."""
    return [undos[i] for i in np.argsort(-contrasts[kind], kind="stable")[:_BEST]]


def _better(
    sides: list[Array], kind: int, shown: float, listed: list[Undo]
) -> list[tuple[Undo, float]]:
    """Return those that are clearly better, the clearest first, and what they show."""
    contrasts = _contrasts(sides, listed, _FINALLY)[kind]
    best = np.argsort(-contrasts, kind="stable")
    least = max(_CLEAR, _MORE * shown)
    return [(listed[i], float(contrasts[i])) for i in best if contrasts[i] > least]


def _scrambled(entries: Array) -> Array:
    """Return the same numbers with random bits in the last places."""
    whole = entries.view(_whole(entries))
    low = np.random.default_rng(0).integers(0, 1 << _SCRAMBLED, len(whole), whole.dtype)
    scrambled: Array = (whole ^ low).view(entries.dtype)
    return scrambled


def _entries(side: Matrix) -> Array:
    """Return as many finite entries of whole rows as are looked at, other than 0."""
    entries = side[: max(1, _FINALLY // max(1, side.shape[1]))].ravel()
    if entries.dtype not in (np.float32, np.float64):
        entries = entries.astype(np.float64)
    found: Array = entries[np.isfinite(entries) & (entries != 0)]
    return found


@functools.cache
def _factors() -> tuple[list[Undo], list[Undo]]:
    """Return the short and the long numbers, as factors and divisors, by their significands."""
    odd = [float(number) for number in range(3, _ODD, 2)]
    seen: set[float] = {0.5}
    short, long = (
        [float(f"{number}e{power}") for power in _POWERS for number in digits]
        for digits in (range(1, _SHORT), range(_SHORT, _LONG))
    )
    found = []
    for numbers in (odd + short, long):
        new = {float(np.frexp(number)[0]): number for number in reversed(numbers)}
        found.append([new[part] for part in sorted(new.keys() - seen)])
        seen |= new.keys()
    first, second = (
        [Undo(n, divides) for divides in (False, True) for n in each] for each in found
    )
    return first, second


@functools.cache
def _constants() -> list[float]:
    """Return the decimals of two digits up to 99, of both signs."""
    found = sorted({float(f"{number}e{power}") for power in (0, -1) for number in range(1, _SHORT)})
    return [-number for number in found] + found


def _contrasts(sides: list[Array], undos: list[Undo], entries: int) -> Array:
    """Return, in standard deviations of chance, how far tables are apart: a row for each kind."""
    size = min(entries, *map(len, sides))
    some = [side[:size] for side in sides]
    both = np.concatenate(some)
    some.append(_scrambled(both))
    edges = np.quantile(both, np.arange(1, _CELLS) / _CELLS)
    cells = [np.searchsorted(edges, side) for side in some]
    step = max(1, _AT_ONCE // size)
    found = []
    for start in range(0, len(undos), step):
        few = undos[start : start + step]
        p, q, scrambled = (_table(*each, few) for each in zip(some, cells, strict=True))
        found.append([_contrast(p, q), _contrast(p + q, scrambled)])
    return np.concatenate(found, axis=1)


def _contrast(p: Array, q: Array) -> Array:
    """Return Pearson's statistic of pairs of tables, less its degrees of freedom, standardised."""
    m, n = p.sum(axis=2, keepdims=True), q.sum(axis=2, keepdims=True)
    share = (p + q) / np.maximum(m + n, 1)
    filled = np.minimum(m, n) * share > _LEAST_EXPECTED
    own = (p - share * m) ** 2 / np.maximum(share * m, 1e-300)
    own += (q - share * n) ** 2 / np.maximum(share * n, 1e-300)
    freedom = np.maximum((filled.sum(axis=2) - 1).clip(0).sum(axis=1), 1)
    contrast: Array = ((own * filled).sum(axis=(1, 2)) - freedom) / np.sqrt(2 * freedom)
    return contrast


def _table(side: Array, cells: Array, undos: list[Undo]) -> Array:
    """Count entries in cells of their value, by the zeros at the end of what is undone."""
    place, last = cells * len(_AT_THE_END), len(_AT_THE_END) - 1
    counts = np.array(
        [
            np.bincount(
                place + (undo.roughly(side).view(_whole(side)) & last),
                minlength=_CELLS * len(_AT_THE_END),
            )
            for undo in undos
        ],
        dtype=np.float64,
    )
    table: Array = counts.reshape(len(undos), _CELLS, -1) @ (_AT_THE_END[:, None] == range(_ZEROS))
    return table


def _whole(entries: Array) -> type[np.signedinteger[Any]]:
    """Return the type of the integers that have the bits of these numbers."""
    return np.int64 if entries.dtype == np.float64 else np.int32
