"""Joint fineness: what the last bits of all entries of an output tell together.

In (x + η) + z with one η for all entries, the grid of x + η tells x, but z hides it in each entry
alone: a single entry of 100 says next to nothing. All entries together say it, as the numbers of
them that have this lowest set bit, in that binade and of that sign; and they say it best beside the
value, since the grid that x + η has depends on how large it is.

So a row is summed up by counts: how many of its entries are in each cell of binade, sign and lowest
set bit; with the finest of its bits, a linear score of its values, and a few entries of their own
with their lowest set bits. Boosted trees learn from these which dataset a row speaks for. Nothing
in this knows a mechanism: the same counts show shared randomness, entries rounded to different
grids, and a step that was skipped in some of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from verify.audit import features
from verify.audit.bit_features import Undo, View, look, lowest_bit
from verify.audit.features import Values
from verify.audit.outputs import Matrix
from verify.audit.vectors import direction

_BINADES = 7
"""Cells of magnitude, from the largest binade down: each doubles the counts that trees see; with
too few, entries whose sums are exact share a cell with those that are rounded."""
_FINENESS = 8
"""Cells of the lowest set bit, from the finest up: beyond, bits are zero by chance once in 256."""
_CELLS = 2 * _BINADES * _FINENESS
_ENTRIES = 3
"""Entries that are seen on their own: those that differ most between the datasets."""
_CHUNK = 1 << 15
"""Numbers that are looked at in one go: they stay in the processor's cache."""
_ROWS = 2000
"""Outputs that trees see in one go, for the same reason: twice as fast as all at once."""
_LOOKED_AT = 1 << 18
"""Entries of a side that say where the cells are: their ends move by a bit at most with more."""
_FEWEST = 60
"""Training runs a side: fewer teach trees nothing."""
_MOST_RUNS = 20_000
"""Training runs a side that teach: more cost seconds and move the score little."""
_RARE = 0.01
"""The part of the entries with finer bits, or of a larger binade, than have cells of their own."""
_GROWN = {"max_iter": 15, "max_leaf_nodes": 31, "learning_rate": 0.3}
"""Trees: 25 with a rate of 0.2 show 1 to 2 % more and take two thirds longer on each fresh run."""


_STORED, _EXPONENT, _HEADS = 52, 0x7FF, 0xFFF
"""Bits of a double: 52 of the fraction, then 11 of the exponent, then the sign."""
_SIGNS, _EXPONENTS = np.divmod(np.arange(_HEADS + 1), _EXPONENT + 1)
_OFFSETS = np.where(_EXPONENTS % _EXPONENT > 0, _EXPONENTS - 2098, 3000).astype(np.int16)
"""What turns 1023 + the place of the lowest set bit into its exponent, by sign and exponent."""


@final
@dataclass(frozen=True)
class Summary:
    """What is seen of an output: counts of its entries in cells, and a few numbers."""

    finest: int
    """The lowest set bit of the first cell; finer ones are in it too."""
    largest: int
    """The exponent of the first binade; larger ones are in it too."""
    weights: Values
    """Of the linear score of the values."""
    views: tuple[View, ...]
    """What is seen on its own."""
    undo: Undo

    def __call__(self, outputs: Matrix) -> Values:
        """Return a row of numbers for each output."""
        found = np.empty((len(outputs), _CELLS + 2 + 2 * len(self.views)))
        rows = max(1, _CHUNK // outputs.shape[1])
        for start in range(0, len(outputs), rows):
            self._count(outputs[start : start + rows], found[start : start + rows])
        with np.errstate(invalid="ignore", over="ignore"):
            found[:, _CELLS + 1] = np.nan_to_num(outputs @ self.weights)
        for place, view in enumerate(self.views, _CELLS + 2):
            found[:, place] = look(outputs, view)
            found[:, place + len(self.views)] = lowest_bit(found[:, place])
        return found

    def _count(self, outputs: Matrix, found: Values) -> None:
        """Count the entries of some rows in cells, and note the finest bit.

        As `lowest_bit` and frexp would say, but by a table over sign and exponent, and in short
        integers: a quarter of the time. The low bit of a number is that of its double read as an
        integer; 0, ±∞, NaN and numbers below 2^−1022 count as if they had no low bit.
        """
        integers = np.ascontiguousarray(self.undo(outputs)).view(np.int64)
        head = (integers >> _STORED).astype(np.int16) & _HEADS
        bits = (integers & -integers).astype(np.float64).view(np.int64) >> _STORED
        fine = (bits.astype(np.int16) & _EXPONENT) + _OFFSETS[head]
        found[:, _CELLS] = fine.min(axis=1)
        fine -= np.int16(self.finest)
        binade = (self.largest + 1022 - _EXPONENTS).clip(0, _BINADES - 1)
        cells = ((2 * binade + _SIGNS) * _FINENESS).astype(np.int16)
        cell = (cells[head] + fine.clip(0, _FINENESS - 1)).astype(np.int64)
        cell += np.arange(len(cell))[:, np.newaxis] * _CELLS
        counts = np.bincount(cell.ravel(), minlength=len(cell) * _CELLS)
        found[:, :_CELLS] = counts.reshape(-1, _CELLS)


@final
@dataclass(frozen=True, eq=False)
class JointBits:
    """The score of boosted trees that see the joint fineness of all entries."""

    summary: Summary
    model: Any
    digest: str
    discrete: bool = False

    @property
    def name(self) -> str:
        """Say what it is."""
        entries = self.summary.undo.described("the entries")
        return (
            f"gradient-boosted score of the fineness of all {entries.removeprefix('the ')} together"
        )

    def __call__(self, outputs: Matrix) -> Values:
        """Return the log odds."""
        from threadpoolctl import threadpool_limits

        score = np.empty(len(outputs))
        with threadpool_limits(1):
            for start in range(0, len(outputs), _ROWS):
                some = slice(start, start + _ROWS)
                score[some] = self.model.decision_function(self.summary(outputs[some]))
        return score

    def to_json(self) -> Mapping[str, Any]:
        """Return a digest: the classifier is learned anew from the training runs."""
        return {"feature": "joint-bits", "training_digest": self.digest}


def joint(first: Matrix, second: Matrix, undo: Undo) -> Iterator[JointBits]:
    """Learn the score from training runs of both datasets, if there are enough."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    a, b = (side[:_MOST_RUNS] for side in (first, second))
    if min(map(len, (a, b))) < _FEWEST:
        return
    summary = _summary(a, b, undo)
    rows = np.concatenate([summary(a), summary(b)])
    model = HistGradientBoostingClassifier(early_stopping=False, random_state=0, **_GROWN)
    with threadpool_limits(1):  # small data: more threads only wait for each other
        model.fit(rows, np.repeat([1, 0], [len(a), len(b)]))
    yield JointBits(summary, model, hashlib.sha256(rows.tobytes()).hexdigest()[:16])


def _summary(first: Matrix, second: Matrix, undo: Undo) -> Summary:
    """Choose the cells by the entries of both datasets, and what is seen on its own."""
    some = max(1, _LOOKED_AT // first.shape[1])
    entries = undo(np.concatenate([first[:some], second[:some]])).ravel()
    entries = entries[np.isfinite(entries) & (entries != 0)]
    entries = entries if len(entries) else np.ones(1)
    finite = [np.nan_to_num(np.asarray(side, np.float64)) for side in (first, second)]
    score = direction("discriminant", *finite) or direction("scaled difference of means", *finite)
    weights = np.zeros(first.shape[1]) if score is None else score.weights
    shifted = features.most_shifted(first, second)[:_ENTRIES]
    return Summary(
        int(np.quantile(lowest_bit(entries), _RARE)),
        int(np.quantile(np.frexp(entries)[1], 1 - _RARE)),
        weights,
        tuple(View(index, None, undo) for index in shifted),
        undo,
    )
