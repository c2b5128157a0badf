r"""Audits that may stop at any time: evidence that is valid after every round.

Rounds of runs on datasets that fair coins choose. Before a round an event E, an opposite event F, a
point (ε, δ) of the claim and a stake θ in [0, 1/(e^ε + δ)] are chosen from the rounds before. Each
run then multiplies a capital by

    1 + θ(1 − δ) for a right guess, 1 − θ(e^ε + δ) for a wrong one, 1 − θδ for none,

of mean 1 + θ(P(right) − e^ε P(wrong) − δ) ≤ 1 under the claim (`verify.audit.guesses`): a bet
against the claim that cannot win on average. The evidence is a mixture over the round k in which
the betting begins, of weight 1/(k(k + 1)), so that early bets in ignorance cost little:

    M_t = (M_{t−1} + w_t) F_t,    evidence E_t = M_t + 1/(t + 1).

It is a non-negative supermartingale from 1 under the claim, whoever chooses what and when to stop,
so P(sup_t E_t ≥ 1/significance) ≤ significance (Ville 1939; Waudby-Smith and Ramdas, "Estimating
means of bounded random variables by betting", 2024).
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.adjacency import Adjacency
from verify.audit import blocks
from verify.audit.auditor import Plan, probe
from verify.audit.blocks import Datasets
from verify.audit.features import Proposer
from verify.audit.guarantee import Claim, Guarantee, Point, guarantee
from verify.audit.learn import DEFAULT_PROPOSERS, choose
from verify.audit.outputs import Alphabet, Matrix, stacked
from verify.audit.result import HINT, Outcome, shown
from verify.audit.rule import Rule
from verify.seal import seal

_ROUNDS = 3
_FIRST = 40
_GROWTH = 0.15
_MOST_KEPT = 200_000
_CAUTION = 1.0
_STEPS = 60


@final
@dataclass(frozen=True)
class Round:
    """One round: what was bet, and how it came out."""

    epsilon: str
    delta: str
    stake: float
    right: int
    wrong: int
    runs: int
    event: str
    pair: int

    @property
    def log_factor(self) -> float:
        """The logarithm of what the round multiplied the capital by."""
        point = Point.read(self.epsilon, self.delta)
        return log_factor((self.right, self.wrong, self.runs), point, self.stake)


@final
@dataclass(frozen=True, eq=False)
class SequentialResult:
    """A sequential audit."""

    outcome: Outcome
    target: str
    guarantee: Guarantee
    pairs: tuple[Datasets, ...]
    rounds: tuple[Round, ...]
    evidence: float
    """The largest evidence, a number of mean ≤ 1 under the claim at every time."""
    significance: float
    seed: int
    samples: int
    """Runs a side on average: half of all runs."""
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def refuted(self) -> bool:
        """Whether the claim was refuted."""
        return self.outcome is Outcome.REFUTED

    @property
    def p_value(self) -> float:
        """A p-value that is valid at every time: 1/evidence."""
        return min(1.0, 1 / self.evidence)

    @property
    def advice(self) -> str:
        """Say what the outcome is worth, and what would confirm it."""
        if not self.refuted:
            return "Not a proof: what did not show in these runs is not excluded."
        if self.significance > HINT:
            return (
                "A hint: to confirm it, audit again with another seed and significance 1e-6 "
                "(--confidence 0.999999)."
            )
        return f"A private mechanism is accused with probability at most {self.significance:g}."

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "schema_version": 1,
            "verdict": self.outcome.value,
            "target": self.target,
            "claim": self.guarantee.to_json(),
            "pairs": [[shown(dataset) for dataset in pair] for pair in self.pairs],
            "evidence": self.evidence,
            "p_value": self.p_value,
            "significance": self.significance,
            "seed": str(self.seed),
            "samples": self.samples,
            "rounds": [
                {
                    "tested": {"epsilon": entry.epsilon, "delta": entry.delta},
                    "stake": entry.stake,
                    "right": entry.right,
                    "wrong": entry.wrong,
                    "runs": entry.runs,
                    "event": entry.event,
                    "pair": entry.pair,
                }
                for entry in self.rounds
            ],
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
            "advice": self.advice,
        }

    def certificate(self) -> dict[str, Any]:
        """Return the evidence as plain data under a seal, for `dpassay check`."""
        data = json.loads(json.dumps({**self.to_json(), "kind": "sequential-audit"}))
        return {**data, "seal": seal(data)}

    def __str__(self) -> str:
        """Return the result in a few lines."""
        bets = [entry for entry in self.rounds if entry.stake > 0]
        lines = [
            f"{self.outcome.value}  {self.guarantee.description} of {self.target}",
            f"  evidence     {self.evidence:.4g} (p-value {self.p_value:.3g} at any time), "
            f"{1 / self.significance:.4g} refutes",
            f"  runs         {self.samples} pairs in {len(self.rounds)} rounds",
        ]
        if bets:
            last = bets[-1]
            pair = self.pairs[last.pair]
            lines += [
                f"  neighbours   {shown(pair[0])} and {shown(pair[1])}",
                f"  last bet     {last.event}: {last.right} right and {last.wrong} wrong in "
                f"{last.runs} runs",
            ]
        return "\n".join([*lines, f"  {self.advice}", *(f"  note: {n}" for n in self.notes)])


def audit_until_refuted(
    mechanism: Any,
    claim: Claim,
    *,
    pairs: Iterable[Datasets] | None = None,
    samples: int = 1_000_000,
    significance: float = 0.05,
    seed: int | None = None,
    adjacency: Adjacency | str | None = None,
    timeout: float | None = None,
    proposers: Sequence[Proposer] = DEFAULT_PROPOSERS,
    progress: Callable[[int, float], None] | None = None,
) -> SequentialResult:
    """Draw runs until the claim is refuted, at most `samples` a side.

    Arguments and errors as for `verify.audit.audit`; `progress` is told the pairs of runs so far
    and the evidence.
    """
    started = time.perf_counter()
    plan = Plan.of(
        mechanism,
        guarantee(claim, adjacency=adjacency),
        pairs=pairs,
        samples=samples,
        significance=significance,
        seed=seed,
        timeout=timeout,
        check_size=False,
    )
    alphabet, notes = Alphabet(), list[str]()
    width = probe(plan, alphabet, notes)
    past = [_Past() for _ in plan.pairs]
    rounds: list[Round] = []
    capital, best, used = 0.0, 1.0, 0
    goal = 1 / significance
    while used < 2 * samples and best < goal:
        rule, index = _next(plan, past, proposers, len(rounds))
        size = _size(used, 2 * samples - used, width)
        sides = _draw(plan, (index, len(rounds)), size, width, alphabet)
        used += size
        number = len(rounds) + 1
        if rule is None:
            rounds.append(Round("0", "0", 0.0, 0, 0, size, "nothing yet", index))
        else:
            rounds.append(_bet(rule, index, past[index], sides))
        weight = 1 / (number * (number + 1))
        capital = (capital + weight) * math.exp(min(700.0, rounds[-1].log_factor))
        evidence = capital + 1 / (number + 1)
        best = max(best, evidence)
        past[index].add(*sides)
        if progress is not None:
            progress(used // 2, evidence)
    return SequentialResult(
        outcome=Outcome.REFUTED if best >= goal else Outcome.NOT_REFUTED,
        target=plan.target.name,
        guarantee=plan.guarantee,
        pairs=plan.pairs,
        rounds=tuple(rounds),
        evidence=best,
        significance=significance,
        seed=plan.seed,
        samples=used // 2,
        seconds=time.perf_counter() - started,
        notes=tuple(notes),
    )


def log_factor(counts: tuple[int, int, int], point: Point, stake: float) -> float:
    """Return the logarithm of the factor of a round."""
    right, wrong, runs = counts
    factor, delta = math.exp(float(point.epsilon)), float(point.delta)
    total = right * math.log1p(stake * (1 - delta))
    if wrong:
        lost = stake * (factor + delta)
        total += wrong * (math.log1p(-lost) if lost < 1 else -math.inf)
    return total + (runs - right - wrong) * math.log1p(-stake * delta)


@final
@dataclass
class _Past:
    """The runs of one pair so far, the latest ones where there are too many."""

    first: Matrix | None = None
    second: Matrix | None = None
    rule: Rule | None = None
    learned_at: int = 0

    @property
    def size(self) -> int:
        """Runs of the shorter side."""
        if self.first is None or self.second is None:
            return 0
        return min(len(self.first), len(self.second))

    def add(self, first: Matrix, second: Matrix) -> None:
        """Keep the runs of a round."""
        if self.size >= _MOST_KEPT:
            return
        self.first = first if self.first is None else stacked([self.first, first])
        self.second = second if self.second is None else stacked([self.second, second])


def _next(
    plan: Plan, past: list[_Past], proposers: Sequence[Proposer], number: int
) -> tuple[Rule | None, int]:
    """Choose the pair and the rule of a round from what was seen before it."""
    for index, entry in enumerate(past):
        if entry.size < _FIRST // 4 and number < _ROUNDS * len(past):
            return None, index
    best: tuple[Rule, int] | None = None
    for index, entry in enumerate(past):
        if entry.first is None or entry.second is None or entry.size == 0:
            continue
        if entry.rule is None or entry.size >= entry.learned_at * (1 + _GROWTH):
            size = entry.size
            entry.rule = choose(
                entry.first[:size],
                entry.second[:size],
                plan.guarantee,
                runs=4 * size,
                significance=plan.significance,
                proposers=proposers,
            )
            entry.learned_at = size
        if best is None or entry.rule.predicted > best[0].predicted:
            best = (entry.rule, index)
    return best if best is not None else (None, number % len(past))


def _size(used: int, left: int, width: int) -> int:
    """Return how many runs the next round has: a share of what was seen."""
    most = 2 * blocks.block_size(1 << 30, width)
    return max(1, min(left, most, max(_FIRST, int(_GROWTH * used))))


def _draw(
    plan: Plan, key: tuple[int, int], size: int, width: int, alphabet: Alphabet
) -> tuple[Matrix, Matrix]:
    """Draw the runs of a round, each on the dataset that a fair coin chose."""
    index = key[0]
    heads = int(blocks.generator(plan.seed, blocks.SEQUENTIAL, *key, 2).binomial(size, 0.5))
    sides = []
    for side, count in enumerate((heads, size - heads)):
        rng = blocks.generator(plan.seed, blocks.SEQUENTIAL, *key, side)
        with blocks.time_limit(plan.timeout, f"A block of {count} runs of {plan.target.name}"):
            if count == 0:
                rows = np.zeros((0, width))
            else:
                form = Alphabet(width=alphabet.width)
                rows = blocks.draw(
                    plan.target,
                    plan.pairs[index][side],
                    count,
                    rng,
                    alphabet=form,
                    width=width,
                )
        sides.append(rows)
    return sides[0], sides[1]


def _bet(rule: Rule, index: int, past: _Past, sides: tuple[Matrix, Matrix]) -> Round:
    """Choose the stake from the past, then count the round."""
    size = past.size
    before = _guesses(rule, past.first, past.second) if size else (0, 0, 1)
    stake = _stake(before, rule.point)
    right, wrong, runs = _guesses(rule, *sides)
    shown_point = rule.point.to_json()
    return Round(
        epsilon=shown_point["epsilon"],
        delta=shown_point["delta"],
        stake=stake,
        right=right,
        wrong=wrong,
        runs=runs,
        event=str(rule.event()["description"]),
        pair=index,
    )


def _guesses(rule: Rule, first: Matrix | None, second: Matrix | None) -> tuple[int, int, int]:
    """Count right guesses, wrong guesses and runs."""
    if first is None or second is None:
        return 0, 0, 1
    rows = [rule.histogram(first), rule.histogram(second)]
    p, q = rows[rule.favoured], rows[1 - rule.favoured]
    event, other = rule.marks == 1, rule.marks == -1
    right = int(p[event].sum() + q[other].sum())
    wrong = int(q[event].sum() + p[other].sum())
    return right, wrong, len(first) + len(second)


def _stake(counts: tuple[int, int, int], point: Point) -> float:
    """Return the stake that grows the capital fastest, for cautious rates; 0 where none does."""
    right, wrong, runs = counts
    factor, delta = math.exp(min(float(point.epsilon), 700.0)), float(point.delta)
    r, w = right / runs, wrong / runs
    r = max(0.0, r - _CAUTION * math.sqrt(r * (1 - r) / runs))
    w = min(1 - r, w + _CAUTION * math.sqrt(w * (1 - w) / runs) + 1 / runs)
    rest = max(0.0, 1 - r - w)
    low, high = 0.0, 1 / (factor + delta)

    def slope(stake: float) -> float:
        gain = r * (1 - delta) / (1 + stake * (1 - delta))
        loss = w * (factor + delta) / max(1 - stake * (factor + delta), 1e-12)
        return gain - loss - rest * delta / (1 - stake * delta)

    if slope(0.0) <= 0:
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return low
