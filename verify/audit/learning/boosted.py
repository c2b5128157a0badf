"""Boosted trees: a learned score of which dataset an output speaks for.

They see the numbers of an output (`trees`), or what its last bits show (`fineness`). In
(x + η) + z with one η for all entries, the grid of x + η tells x, but z hides it in each entry
alone: a single entry of 100 says next to nothing. All entries together say it, as the numbers of
them that have this lowest set bit, in that binade and of that sign; and they say it best beside the
value, since the grid that x + η has depends on how large it is.

So a row is summed up by counts: how many of its entries are in each cell of binade, sign and lowest
set bit; with the finest of its bits, a linear score of its values, and a few entries of their own
with their lowest set bits. Nothing in this knows a mechanism: the same counts show the grid of one
sum, shared randomness, entries rounded to different grids, and a step that was skipped in some.

One thread for small matrices and trees: several only wait for each other there.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from typing import Any, final

import numpy as np

from dpassay.verifier.audit.learning import features
from dpassay.verifier.audit.learning.bit_features import (
    LEAST,
    NOTHING,
    Undo,
    View,
    look,
    lowest_bit,
)
from dpassay.verifier.audit.learning.features import DISCRIMINANT, MEANS, Values, direction
from dpassay.verifier.audit.learning.outputs import Matrix


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which numpy and scikit-learn use one thread, where that can be told.

    It can where threadpoolctl is installed, which comes with the `audit` extra. A controller knows
    the libraries that were there when it was made, and scikit-learn brings threads of its own.
    """
    found = _controller("sklearn.ensemble" in sys.modules)
    if found is None:
        return nullcontext()
    limited: AbstractContextManager[Any] = found.limit(limits=1)
    return limited


@cache
def _controller(trees: bool) -> Any:
    """Return a controller, made anew once the trees are there."""
    if find_spec("threadpoolctl") is None:
        return None
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_BINADES = 7
"""Cells of magnitude, from the largest binade down: each doubles the counts that trees see; with
too few, entries whose sums are exact share a cell with those that are rounded."""
_FINENESS = 8
"""Cells of the lowest set bit, from the finest up: beyond, bits are zero by chance once in 256."""
_CELLS = 2 * _BINADES * _FINENESS
_ENTRIES = 3
"""Entries that are seen on their own: those that differ most between the datasets."""
_SIGNIFICAND, _MODULI = 53, (3, 5, 7, 11, 13)
"""Bits of a significand, and primes modulo which it is seen. Noise of scale c·2^k, c odd, is a
product: of 2^k multiples of c that fall on c neighbouring numbers some fall on the same one, always
at the same residues modulo c, and adding the value moves the residues. Where noise is positive no
low bit tells, and these do."""
_OF_AN_ENTRY = 2 + len(_MODULI)
"""Numbers by which an entry is seen on its own."""
_CHUNK = 1 << 15
"""Numbers that are looked at in one go: they stay in the processor's cache."""
_ROWS = 2000
"""Outputs that trees see in one go, for the same reason: twice as fast as all at once."""
_LOOKED_AT = 1 << 18
"""Entries of a side that say where the cells are: their ends move by a bit at most with more."""
_FEWEST = 60
"""Training runs a side: fewer teach trees nothing."""
_MOST_RUNS, _LEAST_RUNS, _MOST_NUMBERS = 20_000, 5000, 1_000_000
"""Training runs a side that teach, fewer where these are more numbers: more cost seconds and move
the score little."""
_LISTED, _FEW = 500, 8
"""Training runs a side that show how many outputs there are, and how many are few."""
_MOST_ENTRIES = 200
"""Entries up to which trees see all values: each costs them as much again."""
_RARE = 0.01
"""The part of the entries with finer bits, or of a larger binade, than have cells of their own."""
_OF_BITS = {"max_iter": 15, "max_leaf_nodes": 31, "learning_rate": 0.3}
"""Trees: 25 with a rate of 0.2 show 1 to 2 % more and take two thirds longer on each fresh run."""
_OF_VALUES = {"max_iter": 60, "max_leaf_nodes": 15, "learning_rate": 0.1}
"""Values have smoother ratios than bits: smaller steps show more."""
_LARGEST = 1e300
"""In place of infinity, which trees do not take."""


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
        found = np.empty((len(outputs), _CELLS + 2 + _OF_AN_ENTRY * len(self.views)))
        rows = max(1, _CHUNK // outputs.shape[1])
        for start in range(0, len(outputs), rows):
            self._count(outputs[start : start + rows], found[start : start + rows])
        with np.errstate(invalid="ignore", over="ignore"):
            found[:, _CELLS + 1] = np.nan_to_num(outputs @ self.weights)
        for place, view in enumerate(self.views):
            own = found[:, _CELLS + 2 + _OF_AN_ENTRY * place :]
            values = look(outputs, view)
            own[:, 0], own[:, 1] = values, lowest_bit(values)
            significands = np.frexp(np.where(np.isfinite(values), values, 0.0))[0]
            whole = np.ldexp(significands, _SIGNIFICAND).astype(np.int64)
            for column, modulus in enumerate(_MODULI, 2):
                own[:, column] = whole % modulus
        return found

    def _count(self, outputs: Matrix, found: Values) -> None:
        """Count the entries of some rows in cells, and note the finest bit."""
        entries = self.undo(outputs)
        fine = lowest_bit(entries)
        found[:, _CELLS] = fine.min(axis=1)
        exponents = np.frexp(np.nan_to_num(entries, nan=_LARGEST))[1]
        exponents = np.where(entries == 0, LEAST, exponents)
        binade = (self.largest - exponents).clip(0, _BINADES - 1)
        cell = (2 * binade + np.signbit(entries)) * _FINENESS
        cell += (fine - self.finest).clip(0, _FINENESS - 1)
        cell += np.arange(len(cell))[:, np.newaxis] * _CELLS
        counts = np.bincount(cell.ravel(), minlength=len(cell) * _CELLS)
        found[:, :_CELLS] = counts.reshape(-1, _CELLS)


@final
@dataclass(frozen=True, eq=False)
class Boosted:
    """The log odds of gradient-boosted trees."""

    model: Any
    digest: str
    summary: Summary | None = None
    """What they see of an output; None for its numbers."""
    judged: tuple[Values, Values] | None = None
    """Scores of training runs that did not teach them."""
    discrete: bool = False

    @property
    def name(self) -> str:
        """Say what it is."""
        if self.summary is None:
            return "gradient-boosted score"
        what = "output[0]" if len(self.summary.weights) == 1 else "entries"
        together = "" if what == "output[0]" else " of all entries together"
        return f"gradient-boosted score of the fineness (last bits){together}" + (
            f", after {self.summary.undo.described(what)}" if self.summary.undo != NOTHING else ""
        )

    def __call__(self, outputs: Matrix) -> Values:
        """Return the score."""
        score = np.empty(len(outputs))
        with one_thread():
            for start in range(0, len(outputs), _ROWS):
                some = outputs[start : start + _ROWS]
                seen = some if self.summary is None else self.summary(some)
                score[start : start + _ROWS] = self.model.decision_function(seen)
        return score

    def to_json(self) -> Mapping[str, Any]:
        """Return a digest: the classifier is learned anew from the training runs."""
        return {"feature": "boosted", "training_digest": self.digest}


def trees(first: Matrix, second: Matrix) -> Iterator[Boosted]:
    """Propose a score of the numbers of vectors, and of rows of codes and values.

    Of few different outputs it would show no more than each of them does.
    """
    width = first.shape[1]
    some = np.concatenate([first[:_LISTED], second[:_LISTED]])
    if not 1 < width <= _MOST_ENTRIES or len(np.unique(some, axis=0)) <= _FEW:
        return
    if find_spec("sklearn") is not None:
        rows = min(_MOST_RUNS, max(_LEAST_RUNS, _MOST_NUMBERS // width))
        yield _grown(first[:rows], second[:rows], None, _OF_VALUES)


def fineness(
    first: Matrix, second: Matrix, undo: Undo, *, judged_once: bool = False
) -> Iterator[Boosted]:
    """Propose a score of last bits, if there are enough training runs.

    Where outputs are single numbers both halves of the runs are judged by the trees that the other
    half taught, or with `judged_once` one half by the other; vectors by runs of their own.
    """
    runs = min(len(first), len(second))
    if runs < 2 * _FEWEST or find_spec("sklearn") is None:
        return
    taught = first[:_MOST_RUNS], second[:_MOST_RUNS]
    summary = _summary(*taught, undo)
    if judged_once and first.shape[1] == 1:
        half = runs // 2
        found = _grown(first[:half], second[:half], summary, _OF_BITS)
        yield replace(found, judged=(found(first[half:runs]), found(second[half:runs])))
        return
    found = _grown(*taught, summary, _OF_BITS)
    if first.shape[1] == 1:
        judged = np.empty(len(first)), np.empty(len(second))
        for half in (0, 1):
            others = [side[1 - half :: 2][:_MOST_RUNS] for side in (first, second)]
            score = _grown(others[0], others[1], summary, _OF_BITS)
            for scores, side in zip(judged, (first, second), strict=True):
                scores[half::2] = score(side[half::2])
        found = replace(found, judged=judged)
    yield found


def _grown(first: Matrix, second: Matrix, summary: Summary | None, how: dict[str, Any]) -> Boosted:
    """Grow the trees on runs of both datasets."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    seen = [side if summary is None else summary(side) for side in (first, second)]
    rows = np.concatenate(seen).astype(np.float64)
    model = HistGradientBoostingClassifier(early_stopping=False, random_state=0, **how)
    with one_thread():
        model.fit(
            np.where(np.isinf(rows), np.copysign(_LARGEST, rows), rows),
            np.repeat([1, 0], [len(first), len(second)]),
        )
    return Boosted(model, hashlib.sha256(rows.tobytes()).hexdigest()[:16], summary)


def _summary(first: Matrix, second: Matrix, undo: Undo) -> Summary:
    """Choose the cells by the entries of both datasets, and what is seen on its own."""
    some = max(1, _LOOKED_AT // first.shape[1])
    entries = undo(np.concatenate([first[:some], second[:some]])).ravel()
    entries = entries[np.isfinite(entries) & (entries != 0)]
    entries = entries if len(entries) else np.ones(1)
    finite = [np.nan_to_num(np.asarray(side, np.float64)) for side in (first, second)]
    weights = np.ones(1)
    if first.shape[1] > 1:
        score = direction(DISCRIMINANT, *finite) or direction(MEANS, *finite)
        weights = weights if score is None else score.weights
    shifted = features.most_shifted(first, second)[:_ENTRIES]
    return Summary(
        int(np.quantile(lowest_bit(entries), _RARE)),
        int(np.quantile(np.frexp(entries)[1], 1 - _RARE)),
        weights,
        tuple(View(index, None, undo) for index in shifted),
        undo,
    )
