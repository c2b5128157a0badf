"""What was done to sums afterwards, and how to undo it: a factor, a divisor, an added constant.

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
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.verifier.audit.learning.bit_features import NOTHING, Undo
from dpassay.verifier.audit.learning.outputs import Matrix

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
