"""Rules: a feature cut into cells, each of which speaks for one dataset, the other, or neither.

Everything that is tested or estimated is a function of the two histograms of the cells, so that
runs are counted and forgotten: 10¹⁰ of them need no more memory than 10⁶.

Events in words: what the numbers of an event stand for, where outputs are no plain numbers.

A rule counts numbers: codes of texts, checksums of rows. Which outputs they are is looked up in the
training runs, once, for the report; what is counted does not change.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.errors import shortened
from dpassay.verifier.audit import features
from dpassay.verifier.audit.exact_test import Counts, Design
from dpassay.verifier.audit.features import Feature, Matrix, Values
from dpassay.verifier.audit.guarantees import Point

Histogram: TypeAlias = NDArray[np.int64]
"""Shape (2, cells): runs on the first and on the second dataset."""
_INFINITE = "inf, NaN or no number"
"""What features take for infinite."""


@final
@dataclass(frozen=True, eq=False)
class Partition:
    """Cells of the values of a feature.

    `edges`: cell i holds edges[i − 1] ≤ value < edges[i]. `values`: cell i holds values[i], and the
    last cell everything else.
    """

    edges: Values | None
    values: Values | None = None
    ends: tuple[float, float] = (-np.inf, np.inf)
    """The least and the largest value in training, for pictures."""

    @property
    def size(self) -> int:
        """How many cells."""
        entries = self.edges if self.edges is not None else self.values
        return 1 + (0 if entries is None else len(entries))

    def cell(self, values: Values) -> NDArray[np.intp]:
        """Return the cell of each value."""
        if self.edges is not None:
            return np.searchsorted(self.edges, values, side="right")
        listed = self.values if self.values is not None else np.empty(0)
        place = np.searchsorted(listed, values)
        found = listed[np.minimum(place, len(listed) - 1)] == values
        cells: NDArray[np.intp] = np.where(found, place, len(listed))
        return cells

    def describe(self, cells: Sequence[int], texts: Mapping[float, str]) -> str:
        """Say which values a set of cells holds, in the words that some of them have."""
        if self.edges is not None and not texts:
            return " or ".join(_ranges(list(self.edges), sorted(cells)))
        if self.edges is not None:
            known = self.cell(np.array(list(texts)))
            shown = [
                text for text, cell in zip(texts.values(), known, strict=True) if cell in cells
            ]
        else:
            listed = [] if self.values is None else list(self.values)
            shown = [
                texts.get(float(listed[i]), _category(listed[i]))
                if i < len(listed)
                else "any other"
                for i in sorted(cells)
            ]
        rest = f" and {len(shown) - 12} more" if len(shown) > 12 else ""
        return "{" + ", ".join(shown[:12]) + "}" + rest

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        if self.edges is not None:
            return {"edges": [float(edge) for edge in self.edges]}
        return {"values": [float(v) for v in ([] if self.values is None else self.values)]}


def _ranges(edges: list[float], cells: list[int]) -> list[str]:
    """Return runs of neighbouring cells as inequalities."""
    found = []
    start = previous = cells[0] if cells else 0
    for cell in [*cells[1:], None]:
        if cell is not None and cell == previous + 1:
            previous = cell
            continue
        low = _number(edges[start - 1]) if start > 0 else ""
        high = _number(edges[previous]) if previous < len(edges) else ""
        if low and high:
            found.append(f"in [{low}, {high})")
        elif low == "inf":
            found.append(f"is {_INFINITE}")
        else:
            found.append(f"≥ {low}" if low else f"< {high}" if high else "anything")
        if cell is not None:
            start = previous = cell
    return found


def _category(value: float) -> str:
    return _INFINITE if value == np.inf else _number(value)


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


@final
@dataclass(frozen=True, eq=False)
class Rule:
    """An event (or two) with what it is tested for.

    `marks` is +1 in the cells of the event E that speaks for the dataset `favoured`, −1 in the
    cells of F that speaks for the other one (guesses only), 0 elsewhere.
    """

    feature: Feature
    partition: Partition
    marks: NDArray[np.int8]
    design: Design
    favoured: int
    """0: E is likelier on the first dataset; 1: on the second."""
    point: Point
    predicted: float
    """What the training runs promised: a lower bound of ε at δ, or standard deviations."""
    share: float = 1.0
    """The part of the significance that its test may use."""
    hedges: tuple[Rule, ...] = ()
    """Other events, tested with other parts of it (`learn`)."""
    texts: Mapping[float, str] = field(default_factory=dict)
    """What values of the feature stand for, where they are codes (`worded`)."""
    label: str = ""
    """What the report calls the feature, where that is not its name."""

    @property
    def name(self) -> str:
        """What the report calls the feature."""
        return self.label or self.feature.name

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Return this event and its hedges."""
        return (self, *self.hedges)

    @property
    def size(self) -> int:
        """Return how many cells there are, those of the hedges too."""
        return sum(each.partition.size for each in self.rules)

    def histogram(self, outputs: Matrix) -> NDArray[np.int64]:
        """Count the cells of some outputs."""
        return counted([(self.feature, self.partition)], outputs)

    def counts(self, histogram: Histogram) -> Counts:
        """Return what the test is made on."""
        p, q = histogram[self.favoured], histogram[1 - self.favoured]
        event, other = self.marks == 1, self.marks == -1
        hits, misses = int(p[event].sum()), int(q[event].sum())
        n, m = int(p.sum()), int(q.sum())
        if self.design is Design.SIDES:
            return Counts(hits, n, misses, m)
        right, wrong = hits + int(q[other].sum()), misses + int(p[other].sum())
        return Counts(right, n + m, wrong, n + m, Design.GUESSES)

    def event(self) -> dict[str, Any]:
        """Say which outputs make up the events."""
        found: dict[str, Any] = {
            "feature": dict(self.feature.to_json()),
            "name": self.name,
            "favours": "first" if self.favoured == 0 else "second",
            "description": self._say(1),
        }
        if self.design is Design.GUESSES:
            found["opposite"] = self._say(-1)
        return found

    def digest(self) -> str:
        """Return a short digest of what is counted, and for which test."""
        return _digest(
            self.event()["feature"],
            self.partition.to_json(),
            self.marks.tolist(),
            self.design.value,
            self.favoured,
            self.point.to_json(),
            *((self.share, each.digest()) for each in self.hedges),
        )

    def _say(self, mark: int) -> str:
        cells = [int(i) for i in np.flatnonzero(self.marks == mark)]
        if not cells:
            return "never"
        said = self.partition.describe(cells, self.texts)
        return f"{self.name} {'in ' * said.startswith('{')}{said}"


@final
@dataclass(frozen=True, eq=False)
class Ranked:
    """A feature whose cells are put in groups: the later ones speak for the first dataset."""

    feature: Feature
    partition: Partition
    group: NDArray[np.intp]
    """That of each cell."""

    def grouped(self, histogram: Histogram) -> Histogram:
        """Return the counts of the groups."""
        size = int(self.group.max()) + 1
        sums = [np.bincount(self.group, side, size) for side in histogram]
        return np.rint(sums).astype(np.int64)


@final
@dataclass(frozen=True, eq=False)
class Chosen:
    """All that is counted on the fresh runs of one pair of neighbours."""

    values: Rule
    """The event of the values of outputs."""
    bits: Rule | None
    """That of the last bits of floats; None where outputs have none, or they are left out."""
    ranked: Ranked
    """What bounds the whole curve."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Return all events that are tested."""
        return (*self.values.rules, *(() if self.bits is None else self.bits.rules))

    @property
    def design(self) -> Design:
        """Whether fair coins choose the dataset of every run: where one test needs them."""
        fair = any(rule.design is Design.GUESSES for rule in self.rules)
        return Design.GUESSES if fair else Design.SIDES

    @property
    def size(self) -> int:
        """Return how many counts there are."""
        return sum(rule.partition.size for rule in self.rules) + self.ranked.partition.size

    def histograms(self, outputs: Matrix) -> NDArray[np.int64]:
        """Count the cells of all events and of the ranked feature, one after the other."""
        every: list[Rule | Ranked] = [*self.rules, self.ranked]
        return counted([(each.feature, each.partition) for each in every], outputs)

    def parted(self, histogram: Histogram) -> tuple[Histogram, Histogram | None, Histogram]:
        """Cut counts into those of the values, of the bits, and of the ranked feature in order."""
        first = self.values.size
        rest = 0 if self.bits is None else self.bits.size
        values, bits, ranked = np.split(histogram, [first, first + rest], axis=1)
        return values, bits if rest else None, self.ranked.grouped(ranked)


def counted(features: Sequence[tuple[Feature, Partition]], outputs: Matrix) -> NDArray[np.int64]:
    """Count the cells of some features, each of which is computed once."""
    found, known = [], dict[int, Values]()
    for feature, partition in features:
        if len(outputs) == 0:
            found.append(np.zeros(partition.size, dtype=np.int64))
            continue
        if id(feature) not in known:
            known[id(feature)] = feature(outputs)
        cells = partition.cell(known[id(feature)])
        found.append(np.bincount(cells, minlength=partition.size).astype(np.int64))
    return np.concatenate(found)


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


_ENTRY = re.compile(r"output\[(\d+)\]")


def all_worded(
    chosen: Chosen, runs: tuple[Matrix, Matrix], width: int | None, texts: Mapping[int, str]
) -> Chosen:
    """Return what was chosen with its events in words: see `worded`."""
    values, bits = (
        None if rule is None else worded(rule, runs, width, texts)
        for rule in (chosen.values, chosen.bits)
    )
    return replace(chosen, values=values or chosen.values, bits=bits)


def worded(
    rule: Rule, runs: tuple[Matrix, Matrix], width: int | None, texts: Mapping[int, str]
) -> Rule:
    """Return a rule that says its events in words, its hedges too.

    Parameters
    ----------
    rule
        What was learned.
    runs
        Training runs of both datasets, in which listed rows are looked up.
    width
        Entries of a row that is no plain vector (`outputs.Alphabet`), None for plain vectors.
    texts
        The text that a code stands for.
    """
    known = (
        _rows(rule.feature, runs, width, texts) or _codes(rule.feature, width, texts) or _bits(rule)
    )
    hedges = tuple(worded(each, runs, width, texts) for each in rule.hedges)
    label = "" if width is None else _label(rule.feature.name, width)
    return replace(rule, hedges=hedges, texts=known, label=label)


def _label(name: str, width: int) -> str:
    """Return the name of a feature of mixed rows, by the entries that they stand for."""

    def said(found: re.Match[str]) -> str:
        place = int(found[1])
        if place == 0:
            return "number of entries"
        return f"text of entry {place - 1}" if place <= width else f"entry {place - 1 - width}"

    return _ENTRY.sub(said, name)


def _codes(feature: Feature, width: int | None, texts: Mapping[int, str]) -> dict[float, str]:
    """Return what the codes of an entry stand for."""
    is_code = feature.kind == "coordinate" and 0 < feature.arguments["index"] <= (width or 0)
    if not is_code:
        return {}
    shown = {float(code): shortened(repr(text)) for code, text in texts.items()}
    return {0.0: "a number", -1.0: "none", **shown}


def _bits(rule: Rule) -> dict[float, str]:
    """Return what the codes of bits stand for, and the places of values that repeat."""
    codes = rule.partition.values
    if codes is None or rule.feature.kind not in features.OF_BITS:
        return {}
    return {float(code): features.in_words(rule.feature, code) for code in codes}


def _rows(
    feature: Feature, runs: tuple[Matrix, Matrix], width: int | None, texts: Mapping[int, str]
) -> dict[float, str]:
    """Return which outputs the checksums of whole rows stand for."""
    if feature.kind != "row" or runs[0].shape[1] == 1:
        return {}
    rows = np.unique(np.concatenate(runs), axis=0)
    return {
        float(value): shortened(repr(_output(row, width, texts)))
        for value, row in zip(feature(rows), rows, strict=True)
    }


def _output(row: Matrix, width: int | None, texts: Mapping[int, str]) -> object:
    """Return the output that a row stands for."""
    if width is None:
        return tuple(_whole(value) for value in row.tolist())
    codes, values = row[1 : 1 + width], row[1 + width :]
    entries = [
        _whole(value) if code == 0 else texts.get(int(code), f"text {int(code)}")
        for code, value in zip(codes.tolist(), values.tolist(), strict=True)
        if code >= 0
    ]
    return entries[0] if len(entries) == 1 else tuple(entries)


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else value
