"""What an audit says, and how it says it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, final

from accountant.core.drawing import Drawable
from accountant.errors import shortened
from accountant.numbers.exact import floats_in_short
from accountant.numbers.reading import few
from verify.audit.kinds.curve import Curve
from verify.audit.learning.hedged import Tested
from verify.audit.learning.rule import Histogram, Rule
from verify.audit.runs.plan import Plan
from verify.audit.runs.target import GIVEN, NOT_REPEATABLE
from verify.audit.statistics.exact_test import Counts, mu_lower_bound
from verify.audit.statistics.guarantee import Guarantee, Point
from verify.seal import seal

HINT = 1e-4
"""An accusation at a larger significance is called a hint."""
CONFIRMED = 1e-6
"""But not with a smaller p-value."""
_LEAST_SHOWN = 1e-300
"""Shown in place of a p-value that underflows."""


class Outcome(Enum):
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
class AuditResult(Drawable):
    """One audit, decided."""

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
            *(f"  note: {note}" for note in self.notes),
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
