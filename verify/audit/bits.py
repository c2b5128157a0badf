"""The floating-point channel: features of the bit structure of outputs.

A value plus noise in floating point is rounded to the grid of its own magnitude, and the noise
came from a grid of its own; which bits of the sum can be set tells what the value was (Mironov,
"On significance of the least significant bits for differential privacy", 2012; Jin et al., "Are we
there yet? Timing and floating-point attacks on differential privacy systems", 2022). The features
here look at the lowest set bit of an entry or of a difference of entries, at residues modulo a
learned lattice and at entries that coincide, each together with the cell of the value, so that an
event weighs bits and value by one likelihood ratio: leaks of bounded size are found too. A sum that
was divided (or multiplied) by a small integer afterwards is multiplied back first: dividing
scrambles the bits, but only until somebody undoes it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from verify.audit.features import Feature, Values
from verify.audit.outputs import Matrix

Codes: TypeAlias = NDArray[np.int64]


class View(NamedTuple):
    """An entry, or an entry minus another one, times an integer or divided by one."""

    entry: int
    other: int | None = None
    factor: Fraction = Fraction(1)

    def to_json(self) -> list[Any]:
        """Return plain data."""
        return [self.entry, self.other, str(self.factor)]


OF_ZERO = 1200
OF_INFINITY = 1300
OF_NAN = 1301
_LEAST = -1100
_CODES = 2500
_MOST_VIEWS = 128
_LISTED = 12
_BINADES = 12
_LEAST_ATOM = 4
_VALUES_LOOKED_AT = 4000
_LEAST_VALUES = 50
_CLEARLY = 5.0
_MOST_ZEROS = 16
_DIVISORS = (*range(3, 256, 2), 375, 625, 1875, 3125, 15625)
_FACTORS = tuple(Fraction(c) for c in _DIVISORS) + tuple(Fraction(1, c) for c in _DIVISORS)
"""Odd numbers, and the odd parts of powers of ten: powers of two move no bits."""
_IN_TREES = 2
_ROOM_BELOW = 10
_CELLS_FOR_TREES = 32
_PART_FOR_TREES = 0.6
_LEAST_FOR_TREES = 60
_MOST_FOR_TREES = 20_000


def lowest_bit(values: Any) -> Codes:
    """Return e where the number is an odd multiple of 2^e; codes of their own for 0, ±∞ and NaN."""
    array = np.asarray(values, dtype=np.float64)
    mantissa, exponent = np.frexp(np.where(np.isfinite(array), array, 0.0))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    odd = np.frexp((whole & -whole).astype(np.float64))[1]
    codes: Codes = np.where(array == 0, OF_ZERO, exponent.astype(np.int64) - 54 + odd)
    codes = np.where(np.isinf(array), OF_INFINITY, codes)
    return np.where(np.isnan(array), OF_NAN, codes)


def _look(outputs: Matrix, view: View) -> Values:
    entry = times(outputs[:, view.entry], view.factor)
    if view.other is None:
        return entry
    with np.errstate(
        invalid="ignore"
    ):  # the difference of two infinities is NaN, a code of its own
        return entry - times(outputs[:, view.other], view.factor)


def times(entries: Any, factor: Fraction) -> Values:
    """Return numbers times a factor, rounded once in their own precision."""
    kind = entries.dtype.type
    with np.errstate(over="ignore"):
        if factor.numerator != 1:
            entries = entries * kind(factor.numerator)
        if factor.denominator != 1:
            entries = entries / kind(factor.denominator)
    return np.asarray(entries, dtype=np.float64)


def _named(view: View) -> str:
    entry = f"output[{view.entry}]"
    if view.other is not None:
        entry = f"({entry} - output[{view.other}])"
    return entry if view.factor == 1 else f"{view.factor}·{entry}"


def _cells(values: Values, edges: Values) -> Codes:
    """Return cell·2500 + lowest bit + 1100."""
    place = np.searchsorted(edges, np.nan_to_num(values, nan=np.inf), side="right")
    return place.astype(np.int64) * _CODES + lowest_bit(values) - _LEAST


@final
@dataclass(frozen=True)
class LowestBit:
    """The exponent of the lowest set bit of a view."""

    view: View
    discrete: bool = True

    @property
    def name(self) -> str:
        """Of what."""
        return f"exponent of the lowest set bit of {_named(self.view)}"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the exponent, or the code of 0, ±∞ or NaN."""
        return lowest_bit(_look(outputs, self.view)).astype(np.float64)

    def to_json(self) -> Mapping[str, Any]:
        """Return plain data."""
        return {"feature": "lowest-bit", "view": self.view.to_json()}


@final
@dataclass(frozen=True, eq=False)
class BitCell:
    """The cell of the value of a view together with its lowest set bit."""

    view: View
    edges: Values
    discrete: bool = True

    @property
    def name(self) -> str:
        """Of what."""
        return f"cell and lowest set bit of {_named(self.view)}"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the pair as one number."""
        return _cells(_look(outputs, self.view), self.edges).astype(np.float64)

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
    trained_on: int = 0
    """The first so many runs of each dataset made it: only others may judge it."""
    discrete: bool = False

    @property
    def name(self) -> str:
        """Say over what."""
        shown = ", ".join(map(_named, self.views[:3])) + ", …" * (len(self.views) > 3)
        return f"log-likelihood ratio of value and lowest set bit of {shown} ({self.how})"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the score."""
        score = np.zeros(len(outputs))
        for view, edges, (codes, ratios) in zip(self.views, self.edges, self.tables, strict=True):
            found = _cells(_look(outputs, view), edges)
            place = np.minimum(np.searchsorted(codes, found), len(codes) - 1)
            score += np.where(codes[place] == found, ratios[place], 0.0)
        return score

    def to_json(self) -> Mapping[str, Any]:
        """Return plain data."""
        return {
            "feature": "bit-score",
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
        found = _look(outputs, self.view)
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
        return f"output[{self.index}] lies on {self.offset!r} + {self.step!r}·ℤ"

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


def propose(first: Matrix, second: Matrix) -> Iterable[Feature]:
    """Propose features of bits, learned from the training runs of both datasets."""
    width = first.shape[1]
    if not width or first.dtype.kind != "f":
        return
    if width > 1:
        yield Collisions()
    views = _views(width)
    factor = undone(first, second)
    scaled = [] if factor is None else [view._replace(factor=factor) for view in views]
    ranked = sorted(scaled + views, key=lambda view: -_contrast(first, second, view))
    for view in ranked[:_LISTED]:
        yield LowestBit(view)
        yield LowestBit(view, discrete=False)
        for count in (2, 8, 32):
            yield BitCell(view, _edges(first, second, view, count))
        yield BitCell(view, _binades(first, second, view))
        atoms = _atoms(first, second, view)
        if len(atoms):
            yield Atoms(view, atoms)
    for index in sorted({view.entry for view in ranked[:_LISTED]}):
        yield from _lattices(first, second, index)
    if find_spec("sklearn") is not None and not _on_a_lattice(first, second):
        for view in ranked[:_IN_TREES]:
            yield from _trees(first, second, view)
    if width > 1:
        views = scaled or views
        entries = [view for view in views if view.other is None]
        differences = [view for view in views if view.other is not None]
        for chosen, how in ((entries, "entries"), (differences, "differences")):
            for count in (1, 8):
                yield _score(first, second, chosen, count, how, pooled=False)
                yield _score(first, second, chosen, count, f"{how}, one table", pooled=True)


def undone(first: Matrix, second: Matrix) -> Fraction | None:
    """Return by what all outputs seem to have been divided or multiplied, or None.

    A sum of numbers of different size has zeros at its end. A quotient has none, and has them again
    when it is multiplied by the divisor: the factor that brings most zeros beyond what it brings to
    any number is taken, if they are clearly more than the outputs have as they are.
    """
    rows = max(1, _VALUES_LOOKED_AT // (2 * first.shape[1]))
    entries = np.concatenate([first[:rows].ravel(), second[:rows].ravel()])[:_VALUES_LOOKED_AT]
    entries = entries[np.isfinite(entries) & (entries != 0)]
    if len(entries) < _LEAST_VALUES:
        return None
    usual = _usual_zeros(entries.dtype)
    own = max(1.0, _trailing_zeros(entries, entries.dtype))
    more = [
        _trailing_zeros(times(entries, factor), entries.dtype) - zeros
        for factor, zeros in zip(_FACTORS, usual, strict=True)
    ]
    best = int(np.argmax(more))
    clear = more[best] > own - 1 + _CLEARLY * math.sqrt(2 / len(entries))
    return _FACTORS[best] if clear else None


@functools.cache
def _usual_zeros(kind: Any) -> tuple[float, ...]:
    """Return the trailing zeros that each factor brings to random numbers (ties round to even)."""
    values = np.exp2(np.random.default_rng(0).uniform(0, 4, _VALUES_LOOKED_AT)).astype(kind)
    return tuple(_trailing_zeros(times(values, factor), kind) for factor in _FACTORS)


def _trailing_zeros(values: Values, kind: Any) -> float:
    """Return the average number of zeros after the lowest set bit (1 for random bits), cut off."""
    digits = np.finfo(kind).nmant + 1
    with np.errstate(over="ignore"):
        highest = np.frexp(np.where(np.isfinite(values), values, 1.0))[1]
    return float(np.mean(np.clip(lowest_bit(values) - (highest - digits), 0, _MOST_ZEROS)))


def _views(width: int) -> list[View]:
    """Return the entries, and their differences from the first and from the last one."""
    count = min(width, _MOST_VIEWS)
    views = [View(index) for index in range(count)]
    views += [View(index, 0) for index in range(1, count)]
    views += [View(index, width - 1) for index in range(1, count) if index != width - 1]
    return views


def _contrast(first: Matrix, second: Matrix, view: View) -> float:
    """Return how much the histograms of the lowest set bit differ, in standard deviations."""
    a, b = (
        np.bincount(lowest_bit(_look(side, view)) - _LEAST, minlength=_CODES)
        for side in (first, second)
    )
    seen = a + b > 0
    scaled = (a / len(first) - b / len(second))[seen] ** 2 / (a + b)[seen]
    return float(scaled.sum())


def _edges(first: Matrix, second: Matrix, view: View, count: int) -> Values:
    """Return quantiles that cut a view into so many cells (1 is none)."""
    both = np.concatenate([_look(first, view), _look(second, view)])
    finite = both[np.isfinite(both)]
    if not len(finite) or count == 1:
        return np.empty(0)
    return np.unique(np.quantile(finite, np.arange(1, count) / count, method="lower"))


def _atoms(first: Matrix, second: Matrix, view: View) -> Values:
    """Return the finite values that one dataset shows more often than chance allows, sorted."""
    found = []
    for side in (first, second):
        values, counts = np.unique(_look(side, view), return_counts=True)
        often = np.isfinite(values) & (counts >= max(_LEAST_ATOM, len(side) // 1000))
        found.append(values[often])
    return np.unique(np.concatenate(found))


def _binades(first: Matrix, second: Matrix, view: View) -> Values:
    """Return the powers of two, of both signs, between which nearly all of a view lies."""
    size = np.abs(np.concatenate([_look(first, view), _look(second, view)]))
    size = size[np.isfinite(size) & (size > 0)]
    if not len(size):
        return np.empty(0)
    low, high = np.frexp(np.quantile(size, [0.01, 0.999], method="lower"))[1]
    powers = np.ldexp(1.0, np.arange(max(int(low), int(high) - _BINADES), int(high) + 1))
    return np.concatenate([-powers[::-1], powers])


def _score(
    first: Matrix, second: Matrix, views: list[View], count: int, how: str, *, pooled: bool
) -> BitScore:
    """Learn the tables of log ratios, one for each view or one for all."""
    edges = tuple(_edges(first, second, view, count) for view in views)
    coded = [
        tuple(_cells(_look(side, view), cut) for side in (first, second))
        for view, cut in zip(views, edges, strict=True)
    ]
    if pooled:
        table = _table(*(np.concatenate([pair[side] for pair in coded]) for side in (0, 1)))
        tables = (table,) * len(views)
    else:
        tables = tuple(_table(*pair) for pair in coded)
    return BitScore(tuple(views), edges, tables, how)


def _on_a_lattice(first: Matrix, second: Matrix) -> bool:
    """Whether all outputs are multiples of a power of two that most doubles would have room below.

    Then there is no channel in the bits, and nothing to learn but the value.
    """
    both = np.concatenate([first[:_VALUES_LOOKED_AT], second[:_VALUES_LOOKED_AT]])
    both = both[np.isfinite(both) & (both != 0)]
    if not len(both):
        return True
    least = float(lowest_bit(both).min())
    return float(np.median(np.log2(np.spacing(np.abs(both))))) < least - _ROOM_BELOW


def _trees(first: Matrix, second: Matrix, view: View) -> Iterable[BitScore]:
    """Learn a score of value and lowest set bit that is the same for many cells.

    Gradient-boosted trees see value, lowest set bit and how far that is below the highest one;
    their score is then tabulated. Scalars are judged by runs that the trees did not see.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    count = min(len(first), len(second))
    if first.shape[1] == 1:
        count = int(_PART_FOR_TREES * count)
    count = min(count, _MOST_FOR_TREES)
    if count < _LEAST_FOR_TREES:
        return
    sides = [_look(side[:count], view) for side in (first, second)]
    values = np.concatenate(sides)
    bits = lowest_bit(values)
    cuts = (_binades(first, second, view), _edges(first, second, view, _CELLS_FOR_TREES))
    edges = np.unique(np.concatenate(cuts))
    finite = values[np.isfinite(values)]
    if len(edges) == 0 or not len(finite):
        return
    model = HistGradientBoostingClassifier(
        max_iter=20, learning_rate=0.2, max_leaf_nodes=6, early_stopping=False, random_state=0
    )
    around = np.concatenate([[finite.min()], edges, [finite.max()]])
    inside = (around[:-1] + around[1:]) / 2
    seen = np.unique(bits)
    cell, bit = (grid.ravel() for grid in np.meshgrid(np.arange(len(inside)), seen, indexing="ij"))
    with threadpool_limits(1):  # small data: more threads only wait for each other
        model.fit(_columns(values, bits), np.repeat([1, 0], count))
        scores = model.decision_function(_columns(inside[cell], bit))
    table = (cell * _CODES + bit - _LEAST, scores)
    trained = count if first.shape[1] == 1 else 0
    yield BitScore((view,), (edges,), (table,), "boosted trees", trained)


def _columns(values: Values, bits: Codes) -> Values:
    """Return value, lowest set bit, and how far that is below the highest one."""
    finite = np.where(np.isfinite(values), values, 0.0)
    return np.column_stack([finite, bits, np.frexp(finite)[1] - bits])


def _table(first: Codes, second: Codes) -> tuple[Codes, Values]:
    """Return the codes that were seen and the logarithms of the ratios of their frequencies."""
    codes, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    a = np.bincount(place[: len(first)], minlength=len(codes)) + 0.5
    b = np.bincount(place[len(first) :], minlength=len(codes)) + 0.5
    return codes, np.log(a / len(first)) - np.log(b / len(second))


def _lattices(first: Matrix, second: Matrix, index: int) -> Iterable[OnLattice]:
    """Propose the lattice that nearly all outputs of one dataset share, if there is one."""
    for side in (first, second):
        values = np.asarray(side[:, index], dtype=np.float64)
        values = values[np.isfinite(values)][:2000]
        if len(values) < 20:
            continue
        offset = float(values[0])
        step = _common_step(np.abs(values - offset))
        if step is None:
            continue
        feature = OnLattice(index, step, offset)
        if float(np.mean(feature(side))) > 0.9:
            yield feature


def _common_step(differences: Values) -> float | None:
    """Return the greatest common divisor of most differences, up to rounding, or None."""
    positive = differences[differences > 0][:200]
    if not len(positive):
        return None
    step = 0.0
    for value in positive:
        low, high = min(step, float(value)), max(step, float(value))
        while low > 1e-9 * high:  # Euclid's algorithm; what rounding leaves over is no remainder
            low, high = high - low * np.round(high / low), low
            low = abs(low)
            if low <= 1e-7 * high:
                low = 0.0
        step = high
    return step if step > 1e-6 * float(np.median(positive)) else None
