"""Blocks that a device draws and counts."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import InvalidInputError
from accountant.numbers.reading import few
from verify.audit.learning.rule import Rule
from verify.audit.runs.blocks import TESTING, Blocks, Prepared, side_sizes, time_limit
from verify.audit.runs.device.arrays import Device
from verify.audit.runs.device.choose import choose
from verify.audit.runs.device.laws import Law, law
from verify.audit.runs.laws import MechanismTarget
from verify.audit.runs.plan import Plan
from verify.audit.statistics.exact_test import Design

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
