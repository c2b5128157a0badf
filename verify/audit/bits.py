"""The floating-point channel: features of the bit structure of outputs.

A value plus noise in floating point is rounded to the grid of its own magnitude, and the noise
came from a grid of its own; which bits of the sum can be set tells what the value was (Mironov,
"On significance of the least significant bits for differential privacy", 2012; Jin et al., "Are we
there yet? Timing and floating-point attacks on differential privacy systems", 2022). The features
here look at the lowest set bit of an entry or of a difference of entries, at residues modulo a
learned lattice and at entries that coincide, each together with the cell of the value, so that an
event weighs bits and value by one likelihood ratio: leaks of bounded size are found too. Steps that
came after the sum (a factor, a divisor, an added constant) are undone first, where undoing them
shows more (`verify.audit.undo`).

Noise of scale c·2^k is a product. Of the 2^k multiples of c that fall on c neighbouring numbers
some fall on the same one, always at the same residues modulo c, and some residues are never
reached (c < 2^k, c > 2^k). Adding the value moves the residues, by another amount for another
value. So the residue of the significand modulo c tells values apart where no low bit is ever zero,
as for positive noise, which sums to a grid that is coarser than both of its parts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib.util import find_spec
from typing import TypeAlias

import numpy as np

from verify.audit.bit_features import (
    CODES,
    LEAST,
    NOTHING,
    Atoms,
    BitCell,
    BitScore,
    Codes,
    Collisions,
    OnLattice,
    View,
    cells,
    look,
    lowest_bit,
    residue,
)
from verify.audit.features import Feature, Values
from verify.audit.joint_bits import joint
from verify.audit.outputs import Matrix
from verify.audit.undo import undone

Sides: TypeAlias = tuple[Values, Values]

_MOST_VIEWS = 128
"""Entries of wide outputs whose bits are looked at one by one: each costs a histogram."""
_MOST_DIFFERENCES = 64
"""Differences from the first and from the last entry: they double the cost of each entry."""
_MOST_ENTRIES, _LEAST_ROWS = 2_000_000, 2000
"""What teaches features of bits: more costs time and adds little to tables of few codes."""
_LISTED = 12
"""Views, those with the clearest contrast, that get features of their own; each costs six."""
_BINADES = 12
"""Powers of two between which cells lie, from the largest down: below are few outputs."""
_LEAST_ATOM = 4
"""Times that a value occurs before it is one that repeats, by chance hardly ever among doubles."""
_VALUES_LOOKED_AT = 4000
"""Entries that show a factor or a lattice: an average of zeros is then right within 0.03."""
_IN_TREES = 2
"""Views that get boosted trees, which take a second each."""
_ROOM_BELOW = 10
"""Bits below the lowest one that outputs on a lattice leave: by chance once in 2¹⁰."""
_CELLS_FOR_TREES = 32
"""Quantiles at which the score of trees may change, next to the powers of two."""
_PARTS = 3
"""Parts of the runs: each is scored by trees that the others taught."""
_LEAST_FOR_TREES = 60
"""Training runs a side: fewer teach trees nothing."""
_MOST_FOR_TREES = 20_000
"""Training runs a side that teach: more cost seconds, and the others then judge honestly."""
_MODULI = tuple(range(3, 32, 2))
_LEAST_IN_CELL = 50
"""Outputs of a binade below which Pearson's statistic is far from its law."""
_NOT_UNIFORM = 2.5
"""Standard deviations at which residues seem not uniform: a wrong guess costs one more fit."""
_MOST_CATEGORIES = 254
"""Categories that the classifier takes, less one for what it did not see."""
_GROWN = {"max_iter": 20, "max_leaf_nodes": 6, "learning_rate": 0.2}
_GROWN_WITH_RESIDUES = {
    "max_iter": 30,
    "max_leaf_nodes": 31,
    "learning_rate": 0.1,
    "l2_regularization": 10.0,
}


def propose(first: Matrix, second: Matrix) -> Iterable[Feature]:
    """Propose features of bits, learned from the training runs of both datasets."""
    width = first.shape[1]
    if not width or first.dtype.kind != "f":
        return
    rows = _rows(width)
    first, second = first[:rows], second[:rows]
    if width > 1:
        yield Collisions()
    views = _views(width)
    undos = [*undone(first, second), NOTHING]
    seen = [[view._replace(undo=undo) for view in views] for undo in undos]
    ranked = sorted(itertools.chain(*seen), key=lambda view: -_contrast(first, second, view))
    for view in ranked[:_LISTED]:
        yield BitCell(view, np.empty(0))
        yield BitCell(view, np.empty(0), discrete=False)
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
            yield from joint(first, second, undos[0])
    if width > 1:
        entries = [view for view in seen[0] if view.other is None]
        differences = [view for view in seen[0] if view.other is not None]
        for chosen, how in ((entries, "entries"), (differences, "differences")):
            for count in (1, 8):
                yield from _scores(first, second, chosen, count, how)


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


def _edges(first: Matrix, second: Matrix, view: View, count: int) -> Values:
    """Return quantiles that cut a view into so many cells (1 is none)."""
    both = np.concatenate([look(first, view), look(second, view)])
    finite = both[np.isfinite(both)]
    if not len(finite) or count == 1:
        return np.empty(0)
    return np.unique(np.quantile(finite, np.arange(1, count) / count, method="lower"))


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
    powers = np.ldexp(1.0, np.arange(max(int(low), int(high) - _BINADES), int(high) + 1))
    return np.concatenate([-powers[::-1], powers])


def _scores(
    first: Matrix, second: Matrix, views: list[View], count: int, how: str
) -> Iterable[BitScore]:
    """Learn the log ratios of views that are cut into so many cells: of each, and of all alike."""
    edges = tuple(_edges(first, second, view, count) for view in views)
    coded = [
        tuple(cells(look(side, view), cut) for side in (first, second))
        for view, cut in zip(views, edges, strict=True)
    ]
    yield BitScore(tuple(views), edges, tuple(_table(*pair) for pair in coded), how)
    table = _table(*(np.concatenate([pair[side] for pair in coded]) for side in (0, 1)))
    yield BitScore(tuple(views), edges, (table,) * len(views), f"{how}, one table")


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
    """Learn a score of value and lowest set bit, and one of residues too if they seem to tell.

    Scalars are judged by scores that other parts of the runs taught.
    """
    count = min(len(first), len(second))
    if count < _LEAST_FOR_TREES:
        return
    most = min(count, _MOST_FOR_TREES)
    sides = look(first[:most], view), look(second[:most], view)
    powers = _binades(first, second, view)
    plain = np.concatenate([powers, _edges(first, second, view, _CELLS_FOR_TREES)])
    if len(plain) == 0 or not np.isfinite(np.concatenate(sides)).any():
        return
    for modulus in sorted({1, _modulus(*sides)}):
        cuts = [plain] if modulus == 1 else [plain, powers * _cut(modulus)]
        edges = np.unique(np.concatenate(cuts))

        def score(taught: Sides, edges: Values = edges, modulus: int = modulus) -> BitScore:
            table = _grown(taught, edges, modulus)
            return BitScore((view,), (edges,), (table,), "boosted trees", modulus)

        whole = score(sides)
        if first.shape[1] > 1:
            yield whole
        elif count > 2 * _MOST_FOR_TREES:
            fresh = whole(first[_MOST_FOR_TREES:]), whole(second[_MOST_FOR_TREES:])
            yield replace(whole, judged=fresh)
        else:
            yield replace(whole, judged=_crossed(score, first, second, sides))


def _crossed(
    score: Callable[[Sides], BitScore], first: Matrix, second: Matrix, sides: Sides
) -> Sides:
    """Return the scores of all runs, each by what the parts that it is not in teach."""
    found = np.empty(len(first)), np.empty(len(second))
    for part in range(_PARTS):
        a, b = (side[np.arange(len(side)) % _PARTS != part] for side in sides)
        taught = score((a, b))
        for scores, side in zip(found, (first, second), strict=True):
            scores[part::_PARTS] = taught(side[part::_PARTS])
    return found


def _grown(sides: Sides, edges: Values, modulus: int) -> tuple[Codes, Values]:
    """Grow gradient-boosted trees and tabulate their score.

    They see value, lowest set bit and how far that is below the highest one; with a modulus also
    the residue of the significand, that of the number itself in units of a power of two, and the
    residue together with the binade and the side of the cut in it, as one category: the residues
    that products reach depend on both.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    values = np.concatenate(sides)
    finite = np.append(values[np.isfinite(values)], edges)
    around = np.concatenate([[finite.min()], edges, [finite.max()]])
    inside = (around[:-1] + around[1:]) / 2
    highest = int(np.frexp(np.abs(edges).max())[1])
    places = (np.arange(len(inside)), np.unique(lowest_bit(values)), np.arange(modulus))
    cell, bit, left = (grid.ravel() for grid in np.meshgrid(*places, indexing="ij"))
    with threadpool_limits(1):  # small data: more threads only wait for each other
        seen = _columns(values, lowest_bit(values), residue(values, modulus), modulus, highest)
        model = HistGradientBoostingClassifier(
            early_stopping=False,
            random_state=0,
            categorical_features=list(range(3, seen.shape[1])),
            **(_GROWN if modulus == 1 else _GROWN_WITH_RESIDUES),
        )
        model.fit(seen, np.repeat([1, 0], [len(side) for side in sides]))
        scores = model.decision_function(_columns(inside[cell], bit, left, modulus, highest))
    return (cell * CODES + bit - LEAST) * modulus + left, scores


def _columns(values: Values, bits: Codes, residues: Codes, modulus: int, highest: int) -> Values:
    """Return what the trees see of some numbers, of which few exceed 2^highest."""
    finite = np.where(np.isfinite(values), values, 0.0)
    mantissas, exponents = np.frexp(finite)
    columns = [finite, bits, exponents - bits]
    if modulus > 1:
        powers = np.array([pow(2, k, modulus) for k in range(_period(modulus))])
        columns += [residues, residues * powers[exponents % len(powers)] % modulus]
        binade = np.clip(highest - exponents, 0, _MOST_CATEGORIES // (2 * modulus) - 1)
        columns.append((2 * binade + (np.abs(mantissas) >= _cut(modulus))) * modulus + residues)
    return np.column_stack(columns)


def _period(modulus: int) -> int:
    """Return the least k > 0 with 2^k = 1 modulo an odd number."""
    return next(k for k in range(1, modulus) if pow(2, k, modulus) == 1)


def _cut(modulus: int) -> float:
    """Return where in [1/2, 1) the significand of a product with a number changes its exponent."""
    return modulus / float(2 ** modulus.bit_length())


def _modulus(*sides: Values) -> int:
    """Return the odd number modulo which significands are least uniform, 1 if they seem to be.

    Of all odd numbers up to 31 the one with the largest standardised sum of Pearson's statistics
    over binades is taken, or over binades cut where a product with it passes one. (A multiple of it
    has the same excess at more degrees of freedom.)
    """
    best, found = _NOT_UNIFORM, 1
    halves = [np.frexp(np.where(np.isfinite(side), side, 0.0)) for side in sides]
    for modulus in _MODULI:
        left = [residue(side, modulus) for side in sides]
        for cut in (1.0, _cut(modulus)):
            excess = freedom = 0.0
            for residues, (mantissas, exponents) in zip(left, halves, strict=True):
                parts, place = np.unique(
                    2 * exponents + (np.abs(mantissas) >= cut), return_inverse=True
                )
                size = len(parts) * modulus
                counts = np.bincount(place * modulus + residues, minlength=size)
                table = counts.reshape(-1, modulus)
                means = table.mean(axis=1, keepdims=True)
                enough = means[:, 0] * modulus >= _LEAST_IN_CELL
                excess += float((((table - means) ** 2 / means).sum(axis=1))[enough].sum())
                freedom += int(enough.sum()) * (modulus - 1)
            if freedom and (excess - freedom) / math.sqrt(2 * freedom) > best:
                best, found = (excess - freedom) / math.sqrt(2 * freedom), modulus
    return found


def _table(first: Codes, second: Codes) -> tuple[Codes, Values]:
    """Return the codes that were seen and the logarithms of the ratios of their frequencies."""
    size = int(max(first.max(initial=0), second.max(initial=0))) + 1
    counts = [np.bincount(side, minlength=size) for side in (first, second)]
    codes = np.flatnonzero(counts[0] + counts[1])
    a, b = (side[codes] + 0.5 for side in counts)
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
