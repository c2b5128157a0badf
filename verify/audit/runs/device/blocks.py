"""Blocks that a device draws and counts.

The event that shows most, from the exact laws of both datasets.

Cells between the cuts of two real laws, or cells of outcomes ranked by their likelihood ratio under
two laws on integers. What so many training runs would count in each that nothing is luck is handed
to the chooser of `learning.learn`. Nothing here needs to be exact: the event is fixed before a
run is drawn.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.numbers.reading import few
from dpassay.verifier.audit.learning.cells import Cells
from dpassay.verifier.audit.learning.features import Coordinate
from dpassay.verifier.audit.learning.learn import Scale, candidates
from dpassay.verifier.audit.learning.rule import Partition, Rule
from dpassay.verifier.audit.learning.vectors import Linear
from dpassay.verifier.audit.runs.blocks import TESTING, Blocks, Prepared, side_sizes, time_limit
from dpassay.verifier.audit.runs.device.arrays import Device
from dpassay.verifier.audit.runs.device.laws import Law, TableNoise, law
from dpassay.verifier.audit.runs.laws import MechanismTarget
from dpassay.verifier.audit.runs.plan import Plan
from dpassay.verifier.audit.statistics.exact_test import Design
from dpassay.verifier.audit.statistics.guarantee import Guarantee
from dpassay.verifier.audit.statistics.promise import Claimed

Values: TypeAlias = NDArray[np.float64]

_TRAINED = 10**15
"""Training runs that the probabilities stand for: doubles hold all their digits."""
_MOST_CELLS = 700
"""Cells of equal probability: an event is off its best by 0.2 % of the runs at most."""
_RAREST = 200
"""Outcomes at either end of the ranking with cells of their own, however rare they are."""
_DIGITS = 6
"""Decimals of a log ratio: outcomes that differ by rounding keep their own order."""
_LIGHT = 1e-12
"""Mass below which weights of 2⁻⁶⁴ are rounded too coarsely to give a ratio."""
_CERTAIN = 1e3
"""A log ratio in place of ±∞, larger than any other."""
_WORDS_AT_ONCE = {False: 1 << 14, True: 1 << 26}
"""What the first caches of a core hold (and no allocation leaves to the system); what fills a
graphics card."""
_PIECES = {False: 128, True: 1}
"""How many such pieces make a block."""
_MOST_EDGES = 1000
"""Edges of an event: each is one more comparison of every run."""


@final
@dataclass(frozen=True, eq=False)
class DeviceBlock:
    """Some runs of both sides, drawn and counted on a device."""

    device: Device
    laws: tuple[Law, Law]
    edges: tuple[float, ...]
    design: Design
    size: int
    seed: int
    key: tuple[int, ...]
    timeout: float | None

    def count(self) -> NDArray[np.int64]:
        """Return the histograms of both sides, with an empty column of misfits."""
        sizes = side_sizes(self.design, self.size, self.seed, self.key)
        limit = time_limit(self.timeout, f"A block of {self.size} runs on {self.device}")
        with limit, self.device.one_thread():
            pending = [
                self._at_least(own, size, side)
                for side, (own, size) in enumerate(zip(self.laws, sizes, strict=True))
            ]
            rows = []
            for size, pieces in zip(sizes, pending, strict=True):
                above = [size, *(sum(int(one) for one in counts) for counts in pieces), 0]
                rows.append([*(a - b for a, b in pairwise(above)), 0])
        return np.array(rows, dtype=np.int64)

    def _at_least(self, own: Law, size: int, side: int) -> list[list[Any]]:
        """Return how many scores reach each edge, piece by piece, maybe still being computed."""
        found: list[list[Any]] = [[] for _ in self.edges]
        words = self.device.words(self.seed, (*self.key, side))
        most = max(1, _WORDS_AT_ONCE[self.device.is_accelerator] // own.width)
        for start in range(0, size, most):
            scores = own.draw(words, min(most, size - start), self.device)
            for counts, edge in zip(found, self.edges, strict=True):
                counts.append(self.device.xp.count_nonzero(scores >= edge))
        return found


def prepare(plan: Plan, name: str, executor: Executor | None) -> Prepared:
    """Choose the pair and the event from the exact laws, and cut the runs into blocks.

    Raises InvalidInputError for what no device draws, and where a device is missing.
    """
    device = Device.read(name)
    if device.is_accelerator and executor is not None:
        raise InvalidInputError(
            f"Expected executor=None with device={name!r}: a graphics card draws its blocks one "
            "after the other."
        )
    if not isinstance(plan.target, MechanismTarget):
        raise InvalidInputError(
            f"Expected device=None for {plan.target.name}: a device draws mechanisms of this "
            "package only."
        )
    best: tuple[Rule, int, tuple[Law, Law]] | None = None
    for index, pair in enumerate(plan.pairs):
        laws = law(plan.target.mechanism, pair[0]), law(plan.target.mechanism, pair[1])
        rule = choose(laws, plan.guarantee, runs=plan.samples, significance=plan.significance)
        if best is None or rule.predicted > best[0].predicted:
            best = rule, index, laws
    assert best is not None
    rule, index, laws = best
    cuts = rule.partition.edges
    edges = tuple(float(edge) for edge in ([] if cuts is None else cuts))
    if len(edges) > _MOST_EDGES:
        raise InvalidInputError(
            f"Expected an event of at most {_MOST_EDGES} intervals, not {len(edges)}. Audit "
            "without a device."
        )
    words = _WORDS_AT_ONCE[device.is_accelerator] * _PIECES[device.is_accelerator]
    size = max(1, words // max(own.width for own in laws))
    key = (TESTING, index)
    whole = DeviceBlock(device, laws, edges, rule.design, size, plan.seed, key, plan.timeout)
    off = sum(own.resolution for own in laws) * len(edges)
    notes = (
        f"drawn by {device.description} from the words of the device {device}",
        f"the probabilities of the event are those of the mechanism within {few(off, 1)}",
    )
    return Prepared(rule, index, Blocks(whole, plan.samples), 0, notes)


def choose(laws: tuple[Law, Law], guarantee: Guarantee, *, runs: int, significance: float) -> Rule:
    """Return the rule that promises most for a test on `runs` runs a side."""
    lows, masses = _masses(laws)
    order = np.arange(len(lows))
    if all(isinstance(own.noise, TableNoise) for own in laws):
        order = _ranked(masses)
    starts = _starts(masses[:, order])
    first, second = np.add.reduceat(masses[:, order], starts, axis=1) * _TRAINED
    weights = laws[0].weights
    feature = Linear(np.array(weights), "the exact likelihood ratio") if weights else Coordinate(0)
    cells = Cells(feature, lows, first, second, luck=0.0)
    claim = Claimed.of(guarantee.candidates())
    best = max(
        candidates(cells, claim, Scale.of(_TRAINED, runs, significance)),
        key=lambda candidate: candidate.objective,
    )
    marks = np.empty(len(lows), np.int8)
    marks[order] = np.repeat(best.marks, np.diff(starts, append=len(lows)))
    edges = np.flatnonzero(np.diff(marks)) + 1
    kept = marks[np.append(0, edges)]
    partition = Partition(lows[edges])
    return Rule(feature, partition, kept, best.design, best.favoured, best.point, best.objective)


def _masses(laws: tuple[Law, Law]) -> tuple[Values, Values]:
    """Return where cells begin, and their probabilities under both laws.

    A difference is taken from the smaller tail, so that it keeps its relative accuracy.
    """
    cuts = np.unique(np.concatenate([own.cuts() for own in laws]))
    upper = np.array([own.upper(cuts) for own in laws])
    lower = np.array([own.lower(cuts) for own in laws])
    inner = np.where(lower[:, 1:] < 0.5, np.diff(lower), -np.diff(upper))
    masses = np.concatenate([lower[:, :1], inner, upper[:, -1:]], axis=1)
    return np.append(-np.inf, cuts), masses


def _ranked(masses: Values) -> NDArray[np.intp]:
    """Return the cells in the order of their log ratio.

    Weights of a few units are rounded, and what never occurs has no ratio: there it is that of what
    is next to them.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.clip(np.log(masses[0]) - np.log(masses[1]), -_CERTAIN, _CERTAIN)
    places = np.arange(len(ratio))
    heavy = masses.sum(axis=0) > _LIGHT
    ratio = np.interp(places, places[heavy], ratio[heavy])
    return np.argsort(-np.round(ratio, _DIGITS), kind="stable")


def _starts(masses: Values) -> NDArray[np.intp]:
    """Return where cells begin that hold some neighbours each, few at the ends."""
    count = masses.shape[1]
    reached = np.cumsum(masses.sum(axis=0))
    wanted = np.linspace(0, reached[-1], _MOST_CELLS)
    ends = np.arange(min(_RAREST, count))
    starts = np.concatenate([ends, count - 1 - ends, np.searchsorted(reached, wanted)])
    return np.unique(np.clip(starts, 0, count - 1))
