"""The floating-point channel: features of the bit structure of outputs.

A value plus noise in floating point is rounded to the grid of its own magnitude, and the noise
came from a grid of its own; which bits of the sum can be set tells what the value was (Mironov,
"On significance of the least significant bits for differential privacy", 2012; Jin et al., "Are we
there yet? Timing and floating-point attacks on differential privacy systems", 2022). The features
here look at the lowest set bit of an entry or of a difference of entries, at its binade with it,
and at values that occur repeatedly; boosted trees weigh bits and value by one likelihood ratio
(`learning.boosted`), so that leaks of bounded size are found too. Steps that came after the sum
(a factor, a divisor, an added constant) are undone first, where undoing them shows more
(`learning.bit_features`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from dpassay.verifier.audit.learning.bit_features import (
    CODES,
    LEAST,
    NOTHING,
    Atoms,
    BitCell,
    Undo,
    View,
    look,
    lowest_bit,
    undone,
)
from dpassay.verifier.audit.learning.boosted import fineness
from dpassay.verifier.audit.learning.features import Feature, Values
from dpassay.verifier.audit.learning.outputs import Matrix, Sides

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
"""Entries that show a lattice: an average of zeros is then right within 0.03."""
_SMALL = 2.0**40
"""Doubles below this have twelve bits for what is no integer."""
_ROOM_BELOW = 10
"""Bits below the lowest one that outputs on a lattice leave: by chance once in 2¹⁰."""


def glance(first: Matrix, second: Matrix) -> Iterable[Feature]:
    """Propose histograms of bits as they are, from fewer runs where there are many."""
    if _have_bits(first, second):
        yield from _tables(*_some(first, second, _glanced(first)), [NOTHING])


def look_twice(first: Matrix, second: Matrix) -> Iterable[Feature]:
    """Propose what costs more, from as few runs: steps undone, and trees."""
    rows = _glanced(first)
    many = len(first) > rows  # then half of the runs teach the trees, and the other half judges
    yield from propose(*_some(first, second, rows), judged_once=many)


def propose(first: Matrix, second: Matrix, *, judged_once: bool = False) -> Iterable[Feature]:
    """Propose features of bits, learned from the training runs of both datasets.

    With `judged_once` half of the runs teach the trees, and the other half judges them.
    """
    if not _have_bits(first, second):
        return
    width = first.shape[1]
    first, second = _some(first, second, _rows(width))
    undos = [*undone(first, second), NOTHING]
    yield from _tables(first, second, undos)
    if not _on_a_lattice(first, second):
        for undo in undos[: 1 if width > 1 else None]:
            yield from fineness(first, second, undo, judged_once=judged_once)


def _have_bits(first: Matrix, second: Matrix) -> bool:
    return first.shape[1] > 0 and first.dtype.kind == "f" and not _are_whole(first, second)


def _some(first: Matrix, second: Matrix, rows: int) -> Sides:
    return first[:rows], second[:rows]


def _glanced(first: Matrix) -> int:
    rows: int = max(_LEAST_ROWS, _GLANCED // max(1, first.shape[1]))
    return rows


def _tables(first: Matrix, second: Matrix, undos: list[Undo]) -> Iterable[Feature]:
    """Propose the lowest set bits and the repeated values of the views that differ most."""
    views = [
        view
        for view in _views(first.shape[1])
        if not _are_whole(*(side[:, [view.entry]] for side in (first, second)))
    ]
    seen = [[view._replace(undo=undo) for view in views] for undo in undos]
    ranked = sorted(itertools.chain(*seen), key=lambda view: -_contrast(first, second, view))
    for view in ranked[:_LISTED]:
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
        np.bincount(lowest_bit(look(side, view)) - LEAST, minlength=CODES)
        for side in (first, second)
    )
    seen = a + b > 0
    scaled = (a / len(first) - b / len(second))[seen] ** 2 / (a + b)[seen]
    return float(scaled.sum())


def _atoms(first: Matrix, second: Matrix, view: View) -> Values:
    """Return the finite values that one dataset shows more often than chance allows, sorted."""
    found = []
    for side in (first, second):
        values, counts = np.unique(look(side, view), return_counts=True)
        often = np.isfinite(values) & (counts >= max(_LEAST_ATOM, len(side) // 1000))
        found.append(values[often])
    return np.unique(np.concatenate(found))


def _binades(first: Matrix, second: Matrix, view: View) -> Values:
    """Return the powers of two, of both signs, between which nearly all of a view lies."""
    size = np.abs(np.concatenate([look(first, view), look(second, view)]))
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
