"""What a round of a sequential audit bets on, and how much.

The events and the stake are those under which capital grows fastest.

By the bets of `kinds.sequential` capital grows on average by

    r ln(1 + θ(1 − δ)) + w ln(1 − θ(e^ε + δ)) + (1 − r − w) ln(1 − θδ)

in a run, for rates r of right and w of wrong guesses and a stake θ. An event E alone leaves most
runs without a guess, each of which costs δ: where δ is large, only E with its opposite F grows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.numbers.halving import halved
from dpassay.verifier.audit.kinds.rounds import KeptRounds, Round
from dpassay.verifier.audit.learning.learn import BITS, choose
from dpassay.verifier.audit.learning.outputs import Alphabet, Sides, joined
from dpassay.verifier.audit.learning.rule import Histogram, Rule
from dpassay.verifier.audit.learning.threads import one_thread
from dpassay.verifier.audit.learning.wording import worded
from dpassay.verifier.audit.runs import blocks
from dpassay.verifier.audit.runs.plan import Plan, oddities, probe
from dpassay.verifier.audit.runs.training import proposers
from dpassay.verifier.audit.statistics.exact_test import Design
from dpassay.verifier.audit.statistics.guarantee import Point

Guesses: TypeAlias = tuple[int, int, int]
"""Right ones, wrong ones, runs."""
Array: TypeAlias = NDArray[Any]

_CAUTION = 1.0
"""Standard deviations by which rates are doubted in a stake: without, luck is bet on."""
_STAKES = np.arange(1, 16) / 16
"""Stakes that are tried for every event, as parts of the largest one."""
_CUTS = 48
"""Cuts between cells that are tried, in pairs."""
_ROUNDS = 3
"""Rounds for each pair in which a pair that failed to fill may be drawn without a bet."""
_FIRST = 40
"""Runs of the first rounds: fewer teach nothing, more are not bet on."""
_GROWTH = 0.15
"""A round has this part of all runs before it, and an event is learned anew after as many."""
_MOST_KEPT = 200_000
"""Runs of a pair that teach: memory, and seconds of every new event."""


@final
@dataclass
class _Past:
    """The runs of one pair so far, the earliest ones where there are too many."""

    sides: Sides | None = None
    rule: Rule | None = None
    learned_at: int = 0

    @property
    def size(self) -> int:
        """Runs of the shorter side."""
        return 0 if self.sides is None else min(map(len, self.sides))

    @property
    def full(self) -> bool:
        """Whether no more runs are kept."""
        return self.size >= _MOST_KEPT

    def learn(self, plan: Plan, index: int, size: int, alphabet: Alphabet) -> Rule:
        """Choose the rule from the first runs of both sides."""
        assert self.sides is not None
        sides = self.sides[0][:size], self.sides[1][:size]
        rule = choose(
            *sides,
            plan.guarantee,
            runs=4 * size,
            significance=plan.significance,
            values=[
                *proposers(plan.target, plan.pairs[index]),
                *(BITS if plan.bits else ()),
            ],
            mixed=alphabet.width is not None,
        ).values
        counted = np.array([rule.histogram(side) for side in sides])
        with one_thread():
            rule = sharpened(rule, counted, plan.guarantee.candidates())
        self.rule = worded(rule, sides, alphabet.width, alphabet.names)
        self.learned_at = size
        return self.rule


@final
class Learner:
    """Learns the event of a round from the rounds before.

    Parameters
    ----------
    plan
        What is audited; bets are on last bits too where they are part of the claim.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._past = [_Past() for _ in plan.pairs]
        self._width = 0
        self._alphabet = Alphabet()
        self._probed: list[str] = []

    @property
    def notes(self) -> list[str]:
        """What is odd about the outputs."""
        found = list(self._probed)
        for past in self._past:
            if past.sides is not None:
                mixed = self._alphabet.width is not None
                odd = oddities(*past.sides, mixed=mixed, with_bits=bool(self._plan.bits))
                found += [note for note in odd if note not in found]
        return found

    def resume(self, kept: KeptRounds) -> None:
        """Begin, or learn again what was known after the rounds that were kept."""
        if not kept.rounds:
            self._width = probe(self._plan, self._alphabet, self._probed)
            return
        self._width, self._alphabet.width = kept.state["width"], kept.state["mixed"]
        texts = kept.state["texts"]
        self._alphabet.names |= {int(code): text for code, text in texts.items()}
        self._probed = list(kept.state["notes"])
        for number, entry in enumerate(kept.rounds):
            past = self._past[entry.pair]
            if not past.full:
                past.sides = joined(past.sides, kept.outputs(number))
        for index, size in enumerate(kept.state["learned_at"]):
            if size:
                self._past[index].learn(self._plan, index, size, self._alphabet)

    def state(self) -> dict[str, Any]:
        """Return what `resume` needs beside rounds and outputs."""
        return {
            "width": self._width,
            "mixed": self._alphabet.width,
            "texts": dict(self._alphabet.names),
            "notes": self._probed,
            "learned_at": [past.learned_at for past in self._past],
        }

    def play(self, number: int, used: int, left: int) -> tuple[Round, Sides | None]:
        """Play a round; return it, and its outputs if later rounds learn from them."""
        rule, index = self._next(number)
        past = self._past[index]
        most = 2 * blocks.block_size(1 << 30, self._width)
        size = _size(used, left, most)
        sides = self._draw((index, number), size)
        if rule is None:
            runs = len(sides[0]) + len(sides[1])
            entry = Round("0", "0", 0.0, 0, 0, runs, "nothing yet", index)
        else:
            before = (0, 0, 1) if past.sides is None else _guesses(rule, past.sides)
            entry = _bet(rule, index, before, _guesses(rule, sides))
        if past.full:
            return entry, None
        past.sides = joined(past.sides, sides)
        return entry, sides

    def _next(self, number: int) -> tuple[Rule | None, int]:
        """Choose the pair and the rule of a round from what was seen before it."""
        for index, past in enumerate(self._past):
            if past.size < _FIRST // 4 and number < _ROUNDS * len(self._past):
                return None, index
        best: tuple[Rule, int] | None = None
        for index, past in enumerate(self._past):
            if past.size == 0:
                continue
            rule = past.rule
            if rule is None or past.size >= past.learned_at * (1 + _GROWTH):
                rule = past.learn(self._plan, index, past.size, self._alphabet)
            if best is None or rule.predicted > best[0].predicted:
                best = (rule, index)
        return best if best is not None else (None, number % len(self._past))

    def _draw(self, key: tuple[int, int], size: int) -> Sides:
        """Draw the runs of a round, each on the dataset that a fair coin chose."""
        plan, index = self._plan, key[0]
        heads = int(blocks.generator(plan.seed, blocks.SEQUENTIAL, *key, 2).binomial(size, 0.5))
        sides = []
        for side, count in enumerate((heads, size - heads)):
            rng = blocks.generator(plan.seed, blocks.SEQUENTIAL, *key, side)
            with blocks.time_limit(plan.timeout, f"A block of {count} runs of {plan.target.name}"):
                if count == 0:
                    rows = np.zeros((0, self._width))
                else:
                    rows = blocks.draw(
                        plan.target,
                        plan.pairs[index][side],
                        count,
                        rng,
                        alphabet=Alphabet(self._alphabet.width, self._alphabet.names),
                        width=self._width,
                    )
            sides.append(rows)
        return sides[0], sides[1]


def _size(used: int, left: int, most: int) -> int:
    """Return how many runs the next round has: a share of what was seen."""
    return max(1, min(left, most, max(_FIRST, int(_GROWTH * used))))


def _bet(rule: Rule, index: int, before: Guesses, found: Guesses) -> Round:
    """Return a round with the stake that its past suggests."""
    shown_point = rule.point.to_json()
    right, wrong, runs = found
    return Round(
        epsilon=shown_point["epsilon"],
        delta=shown_point["delta"],
        stake=stake(before, rule.point),
        right=right,
        wrong=wrong,
        runs=runs,
        event=str(rule.event()["description"]),
        pair=index,
    )


def _guesses(rule: Rule, sides: Sides) -> Guesses:
    """Count right guesses, wrong guesses and runs."""
    return _counted(rule, np.array([rule.histogram(side) for side in sides]))


def _counted(rule: Rule, histogram: Histogram) -> Guesses:
    p, q = histogram[rule.favoured], histogram[1 - rule.favoured]
    event, other = rule.marks == 1, rule.marks == -1
    right = int(p[event].sum() + q[other].sum())
    wrong = int(q[event].sum() + p[other].sum())
    return right, wrong, int(histogram.sum())


def doubted(right: Array, wrong: Array, runs: int) -> Array:
    """Return cautious rates of right and wrong guesses and of none, shape (events, 3)."""
    r, w = right / runs, wrong / runs
    r = np.maximum(0.0, r - _CAUTION * np.sqrt(r * (1 - r) / runs))
    w = np.minimum(1 - r, w + _CAUTION * np.sqrt(w * (1 - w) / runs) + 1 / runs)
    return np.stack([r, w, np.maximum(0.0, 1 - r - w)], axis=-1)


def sharpened(rule: Rule, histogram: Histogram, points: Sequence[Point]) -> Rule:
    """Return a rule of the same cells with the events and the point of fastest growth."""
    p, q = histogram
    order = np.arange(len(p))
    if rule.feature.discrete:
        order = np.argsort(np.log((p + 0.5) / (q + 0.5)), kind="stable")
    sums = [np.concatenate([[0], np.cumsum(side[order])]) for side in (p, q)]
    cuts = np.unique(np.linspace(0, len(p), min(_CUTS, len(p) + 1)).astype(int))
    low, high = (
        grid[np.triu_indices(len(cuts))] for grid in np.meshgrid(cuts, cuts, indexing="ij")
    )
    factors = np.exp([min(float(point.epsilon), 700.0) for point in points])[:, np.newaxis]
    deltas = np.array([float(point.delta) for point in points])[:, np.newaxis]
    stakes = _STAKES / (factors + deltas)
    gains = (stakes * (1 - deltas), -stakes * (factors + deltas), -stakes * deltas)
    payoffs = np.log1p(np.stack([gain.ravel() for gain in gains]))
    best: tuple[float, int, int, int] = (-math.inf, 0, 0, 0)
    for favoured in (0, 1):
        own, other = sums[favoured], sums[1 - favoured]
        right, wrong = own[-1] - own[high] + other[low], other[-1] - other[high] + own[low]
        growth = doubted(right, wrong, int(own[-1] + other[-1])) @ payoffs
        place = int(growth.argmax())
        event, bet = divmod(place, growth.shape[1])
        if growth.flat[place] > best[0]:
            best = float(growth.flat[place]), favoured, event, bet // len(_STAKES)
    growth, favoured, event, point = best
    marks = np.zeros(len(p), np.int8)
    marks[order[high[event] :]], marks[order[: low[event]]] = 1, -1
    return replace(
        rule,
        marks=marks,
        design=Design.GUESSES,
        favoured=favoured,
        point=points[point],
        predicted=growth,
    )


def stake(guesses: Guesses, point: Point) -> float:
    """Return the stake that grows the capital fastest, for cautious rates; 0 where none does."""
    right, wrong, runs = guesses
    factor, delta = math.exp(min(float(point.epsilon), 700.0)), float(point.delta)
    r, w, rest = doubted(np.array(right), np.array(wrong), runs).tolist()

    def slope(stake: float) -> float:
        gain = r * (1 - delta) / (1 + stake * (1 - delta))
        loss = w * (factor + delta) / max(1 - stake * (factor + delta), 1e-12)
        return float(gain - loss - rest * delta / (1 - stake * delta))

    if slope(0.0) <= 0:
        return 0.0
    return halved(lambda stake: slope(stake) > 0, 0.0, 1 / (factor + delta))[0]
