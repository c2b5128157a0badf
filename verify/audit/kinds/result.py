"""What an audit says, and how it says it.

What histograms certify of δ(ε), ε(δ) and the trade-off function, at all points at once.

For the events {cell ≥ k} and {cell < k} of an ordered partition, or the ranked sets of a discrete
one (ranked by the training runs), each probability is bounded exactly (Clopper and Pearson) with
the significance divided by their number; the lower bound of E fails where the upper one of its
complement does, so that the two count once. With probability ≥ 1 − significance all bounds hold,
and with them δ(ε) ≥ P(E) − e^ε Q(E) for every event, every ε and both orders.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.core.drawing import Drawable
from dpassay.accountant.errors import NeitherTrueNorFalse, shortened
from dpassay.accountant.numbers.exact import floats_in_short
from dpassay.accountant.numbers.reading import few
from dpassay.verifier.audit.learning.hedged import Tested
from dpassay.verifier.audit.learning.rule import Histogram, Rule
from dpassay.verifier.audit.runs.plan import Plan
from dpassay.verifier.audit.runs.target import GIVEN, NOT_REPEATABLE
from dpassay.verifier.audit.statistics import binomial
from dpassay.verifier.audit.statistics.exact_test import Counts, mu_lower_bound
from dpassay.verifier.audit.statistics.guarantee import Guarantee, Point
from dpassay.verifier.seal import seal

Array: TypeAlias = NDArray[Any]
COMPARE = ".outcome: REFUTED, or NOT_REFUTED, which proves nothing (or ask .refuted)"
"""What to do with a result that has no truth value."""
HINT = 1e-4
"""An accusation at a larger significance is called a hint."""
CONFIRMED = 1e-6
"""But not with a smaller p-value."""
_LEAST_SHOWN = 1e-300
"""Shown in place of a p-value that underflows."""


@final
@dataclass(frozen=True, eq=False)
class Curve:
    """Bounds of the probabilities of events."""

    events: tuple[tuple[Array, Array], tuple[Array, Array]]
    """For each order: lower bounds of P and upper bounds of Q of the events."""

    @staticmethod
    def of(rule: Rule, histogram: Histogram, significance: float) -> Curve:
        """Bound all events, each on the one side that each order of the pair needs."""
        rank = np.argsort(rule.marks, kind="stable") if rule.feature.discrete else slice(None)
        below = np.cumsum(histogram[:, rank], axis=1)[:, :-1]
        total = histogram.sum(axis=1, keepdims=True)
        sets = np.hstack([below, total - below])
        share = significance / max(1, sets.size)
        lower = binomial.least_rate(sets, total, share)
        upper = binomial.largest_rate(sets, total, share)
        return Curve(((lower[0], upper[1]), (lower[1], upper[0])))

    def delta(self, epsilon: float) -> float:
        """Return a lower bound of δ(ε), in the worse order of the pair."""
        factor = float(np.exp(epsilon))
        return max(float(np.max(p - factor * q, initial=0.0)) for p, q in self.events)

    def epsilon(self, delta: float) -> float:
        """Return a lower bound of ε(δ): the largest ε with δ̲(ε) > δ; 0 where there is none."""
        best = 0.0
        for p, q in self.events:
            excess = p - delta
            with np.errstate(divide="ignore"):
                found = np.log(np.maximum(excess, 0) / q)
            best = max(best, float(np.max(found[excess > 0], initial=0.0)))
        return best

    def tradeoff(self) -> list[tuple[float, float]]:
        """Return points (α, β) that the trade-off function of the pair lies on or below."""
        points = {(0.0, 1.0), (1.0, 0.0)}
        for p, q in self.events:
            points |= {(float(a), float(1 - b)) for a, b in zip(q, p, strict=True)}
        return lower_hull(sorted(points))


def lower_hull(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the corners of the lower convex hull of points sorted by their abscissa."""
    hull: list[tuple[float, float]] = []
    for x, y in points:
        while len(hull) > 1:
            (x1, y1), (x2, y2) = hull[-2], hull[-1]
            if (x2 - x1) * (y - y1) <= (y2 - y1) * (x - x1):
                hull.pop()
            else:
                break
        if not hull or y < hull[-1][1]:
            hull.append((x, y))
    return hull


class Outcome(StrEnum):
    """The verdict of a statistical test."""

    REFUTED = "REFUTED"
    """The claim is false, or something of probability ≤ significance happened."""
    NOT_REFUTED = "NOT_REFUTED"
    """These runs do not refute the claim; no number of runs can prove it."""

    @staticmethod
    def of(p_value: float, significance: float) -> Outcome:
        """Return what a p-value says at a significance."""
        return Outcome.REFUTED if p_value <= significance else Outcome.NOT_REFUTED


@final
@dataclass(frozen=True, eq=False, repr=False)
class AuditResult(NeitherTrueNorFalse, Drawable):
    """One audit, decided."""

    compare: ClassVar[str] = COMPARE
    outcome: Outcome
    target: str
    guarantee: Guarantee
    pair: tuple[Any, Any]
    pairs: int
    """How many pairs of neighbours the training runs were spread over."""
    rule: Rule
    point: Point
    """The point of the claim that was tested."""
    counts: Counts
    p_value: float
    """Over the part of the significance that the event may use."""
    significance: float
    spared: float
    epsilon: float
    """Lower bound of ε at the tested δ, at confidence 1 − significance."""
    delta: float
    """Lower bound of δ at the tested ε, at confidence 1 − significance."""
    histogram: Histogram
    seed: int
    training: int
    """Training runs per dataset of every pair."""
    samples: int
    """Fresh runs a side that were tested (for guesses: half of all)."""
    seconds: float
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: Plan, found: Tested, pair: int = 0, **more: Any) -> AuditResult:
        """Return what was found of a plan's claim, on one of its pairs."""
        return cls(
            outcome=Outcome.of(found.p_value, plan.significance),
            target=plan.target.name,
            guarantee=plan.guarantee,
            pair=plan.pairs[pair],
            pairs=len(plan.pairs),
            point=found.rule.point,
            significance=plan.significance,
            seed=plan.seed,
            **found._asdict(),
            **more,
        )

    @property
    def refuted(self) -> bool:
        """Whether the claim was refuted."""
        return self.outcome is Outcome.REFUTED

    @property
    def verdict(self) -> Outcome:
        """The outcome, under the name that findings have for it."""
        return self.outcome

    @property
    def advice(self) -> str:
        """Say what the outcome is worth, and what would confirm it."""
        if not self.refuted:
            return (
                f"Not a proof: violations that show in fewer than one of some {self.samples} runs, "
                "on other neighbours, or in other events, are not excluded."
            )
        if self.significance > HINT and self.p_value > CONFIRMED:
            how = (
                "audit outputs of new runs at significance 1e-6"
                if GIVEN in self.notes
                else "audit again with another seed and significance 1e-6 (fresh runs, the event "
                "chosen anew)"
            )
            return (
                f"A hint: a private mechanism is accused with probability up to "
                f"{few(self.significance)}. To confirm it, {how}."
            )
        so = " with such a p-value" if self.significance > HINT else ""
        level = max(self.p_value, _LEAST_SHOWN) if so else self.significance
        again = "cannot" if {NOT_REPEATABLE, GIVEN} & set(self.notes) else "can"
        return (
            f"A private mechanism is accused{so} with probability at most {few(level, 3)}. The "
            f"runs {again} be drawn again from the seed."
        )

    @property
    def mu(self) -> float | None:
        """A lower bound of μ for a claim of μ: from the bound of δ at the tested ε."""
        if self.guarantee.kind != "gaussian":
            return None
        return mu_lower_bound(float(self.point.epsilon), self.delta)

    def curve(self, significance: float | None = None) -> Curve:
        """Return bounds of δ(ε), ε(δ) and the trade-off function that hold all at once."""
        level = (significance or self.significance) * self.rule.share
        return Curve.of(self.rule, self.histogram, level)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "schema_version": 1,
            "verdict": self.outcome.value,
            "target": self.target,
            "claim": self.guarantee.to_json(),
            "tested": self.point.to_json(),
            "pair": [shown(dataset) for dataset in self.pair],
            "pairs_searched": self.pairs,
            "event": self.rule.event(),
            "counts": self.counts.to_json(),
            "p_value": self.p_value,
            "significance": self.significance,
            "epsilon_lower_bound": _finite(self.epsilon),
            "delta_lower_bound": self.delta,
            **({} if self.mu is None else {"mu_lower_bound": self.mu}),
            "seed": str(self.seed),
            "training_runs": self.training,
            "samples": self.samples,
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
            "advice": self.advice,
        }

    def certificate(self, replay: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the evidence as plain data under a seal, for `dpassay check`.

        `replay` says how the runs were drawn: see `kinds.replay`.
        """
        data = {
            **self.to_json(),
            "kind": "audit",
            "spared": self.spared,
            "share": self.rule.share,
            "histogram": self.histogram.tolist(),
            **({} if replay is None or NOT_REPEATABLE in self.notes else {"replay": replay}),
        }
        data["event"] = {
            **self.rule.event(),
            "partition": self.rule.partition.to_json(),
            "marks": self.rule.marks.tolist(),
        }
        data = json.loads(json.dumps(data, default=str))
        return {**data, "seal": seal(data)}

    def __str__(self) -> str:
        """Return the result in a few lines."""
        at = f"epsilon={few(self.point.epsilon)}, delta={few(self.point.delta)}"
        lines = [
            f"{self.outcome.value}  {floats_in_short(self.guarantee.description)} of {self.target}",
            f"  tested       {at}, at significance {few(self.significance)}",
            f"  neighbours   {shown(self.pair[0])} and {shown(self.pair[1])}"
            + (f", chosen among {self.pairs} pairs" if self.pairs > 1 else ""),
            *(f"  {label:<12} {text}" for label, text in _event_lines(self.rule)),
            f"  counts       {_counted(self.counts)}",
            f"  p-value      {few(self.p_value, 3)}",
            f"  with confidence {1 - self.significance:.7g}: epsilon({few(self.point.delta)}) "
            f"≥ {self.epsilon:.6g}, delta({few(self.point.epsilon)}) ≥ {few(self.delta, 4)}"
            + ("" if self.mu is None else f", mu ≥ {self.mu:.6g}"),
            f"  {self.advice}",
            *(
                f"  note: {note}" + f"; seed {self.seed} splits them so again" * (note == GIVEN)
                for note in self.notes
            ),
        ]
        return "\n".join(lines)

    __repr__ = __str__


def _event_lines(rule: Rule) -> list[tuple[str, str]]:
    event = rule.event()
    lines = [("event", f"{event['description']} (likelier on the {event['favours']} dataset)")]
    if "opposite" in event:
        lines.append(("opposite", str(event["opposite"])))
    return lines


def _counted(counts: Counts) -> str:
    if counts.runs == counts.other_runs and counts.design.value == "guesses":
        return f"{counts.hits} right and {counts.misses} wrong guesses in {counts.runs} runs"
    return f"{counts.hits} of {counts.runs} against {counts.misses} of {counts.other_runs}"


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def shown(dataset: Any) -> str:
    """Return a dataset as one line of text, shortened."""
    text = repr(dataset.tolist()) if hasattr(dataset, "tolist") else repr(dataset)
    if "\n" in text:  # a table of pandas
        text = " ".join(text.split())
    return shortened(text)
