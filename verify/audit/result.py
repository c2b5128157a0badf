"""The result of an audit, and how it is printed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant import ask
from dpassay.accountant.core import asking
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.asking import Drawable
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import DpassayError, NeitherTrueNorFalse, expected
from dpassay.accountant.numbers.exact import Number, exact, floats_in_short
from dpassay.accountant.numbers.interval import few
from dpassay.verifier.audit.curve import DELTAS, EPSILONS, Curve
from dpassay.verifier.audit.exact_test import LEAST_P_VALUE, Counts, Design, mu_lower_bound
from dpassay.verifier.audit.features import Chosen, Histogram, Rule
from dpassay.verifier.audit.guarantees import Guarantee, Outcome, Point, decided, in_one_line
from dpassay.verifier.audit.learn import Tested, decide, shares_of
from dpassay.verifier.audit.runs import GIVEN, NOT_REPEATABLE, MechanismTarget, Plan

if TYPE_CHECKING:
    from dpassay.verifier.audit.one_run import Guesses
    from dpassay.verifier.verdict import Finding

Array: TypeAlias = NDArray[Any]
COMPARE = ".outcome: REFUTED, or NOT_REFUTED, which proves nothing (or ask .refuted)"
"""What to use in place of a truth value."""
HINT = 1e-4
"""An accusation at a larger significance is called a hint."""
CONFIRMED = 1e-6
"""Unless its p-value is at most this."""
_LEAST_SHOWN = 1e-300
"""Shown in place of a p-value that underflows."""
LEAK = (
    "floating-point noise shows what it was added to: round the sum to a fixed grid, or use "
    "release(…) of a mechanism (docs/audits.md)"
)
"""What to do about last bits that show the dataset."""
_NO_MORE = ", which reveal no more than its values do"
"""Of last bits together with the binade of the value: on a lattice they show nothing more."""
_ROWS, _BAR, _LABEL = 12, 24, 40
"""Rows of the histogram in text, the length of its longest bar, and letters of a label."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class AuditResult(NeitherTrueNorFalse, Drawable):
    """The result of one audit: the test of a claim, or an estimate of ε, δ and the whole curve."""

    compare: ClassVar[str] = COMPARE
    target: str
    claimed: bool
    """Whether something was claimed; else `guarantee` is (0, δ)-DP, at whose δ ε is bounded."""
    guarantee: Guarantee
    pair: tuple[Any, Any]
    pairs: int
    """The pairs of neighbours that shared the training runs."""
    values: Tested
    """What the values of outputs show."""
    bits: Tested | None
    """What the last bits of floats show; None if outputs have none, or they were left out."""
    bits_claimed: bool
    """Whether a refutation by the bits alone refutes the claim."""
    cells: Histogram
    """Fresh runs of both sides in the groups of cells that bound the whole curve."""
    significance: float
    seed: int
    training: int
    """Training runs per dataset of every pair."""
    samples: int
    """Fresh runs on each side that were tested (for guesses: half of all), or canaries."""
    seconds: float
    mechanism: Mechanism | None = None
    """The target, if it is a mechanism of this package, whose exact curve is reported too."""
    adjacency: Adjacency | str | None = None
    notes: tuple[str, ...] = ()
    finding: Finding | None = None
    """The exact verdict on the claim, of a mechanism of this package."""
    guesses: Guesses | None = None
    """The canaries of one run and what was guessed of them; None where there were many runs."""

    @classmethod
    def of(
        cls, plan: Plan, chosen: Chosen, histogram: Histogram, pair: int = 0, **more: Any
    ) -> AuditResult:
        """Return the result of the counts on one of a plan's pairs."""
        values, bits, cells = chosen.parted(histogram)
        mechanism = plan.target.mechanism if isinstance(plan.target, MechanismTarget) else None
        return cls(
            target=plan.target.name,
            claimed=plan.claimed,
            guarantee=plan.guarantee,
            pair=plan.pairs[pair],
            pairs=len(plan.pairs),
            values=decide(chosen.values, values, plan.significance),
            bits=None
            if chosen.bits is None or bits is None
            else decide(chosen.bits, bits, plan.significance),
            bits_claimed=plan.bits is True,
            cells=cells,
            significance=plan.significance,
            seed=plan.seed,
            mechanism=mechanism,
            **more,
        )

    @property
    def outcome(self) -> Outcome | None:
        """What the runs say of the claim; None where nothing is claimed."""
        return Outcome.of(self.p_value, self.significance) if self.claimed else None

    @property
    def verdict(self) -> Outcome | None:
        """The same, but REFUTED where the claim is known exactly to be false."""
        return decided(self.outcome, self.finding)

    @property
    def refuted(self) -> bool:
        """Whether the claim was refuted."""
        return self.verdict is Outcome.REFUTED

    @property
    def tested(self) -> Tested:
        """The event that decides: that of the values, unless only the claimed bits refute."""
        if not self.bits_claimed or self.bits is None:
            return self.values
        return min(self.values, self.bits, key=lambda each: each.p_value > self.significance)

    @property
    def rule(self) -> Rule:
        """The event that decides."""
        return self.tested.rule

    @property
    def point(self) -> Point:
        """The point of the claim that was tested."""
        return self.rule.point

    @property
    def counts(self) -> Counts:
        """What was counted in the event that decides."""
        return self.tested.counts

    @property
    def histogram(self) -> Histogram:
        """Fresh runs of both sides in the cells of the feature that decides."""
        return self.tested.histogram

    @property
    def p_value(self) -> float:
        """The p-value of the event that decides, over its share of the significance."""
        return self.tested.p_value

    @property
    def epsilon(self) -> float:
        """A lower bound of ε at `bounded_at`, at confidence 1 − significance."""
        if self.claimed:
            return self.tested.epsilon
        return max(self.values.epsilon, self._curve.epsilon(self.bounded_at))

    @property
    def bounded_at(self) -> float:
        """δ at which ε is bounded: the tested one, or of canaries the one that was named."""
        return float(self.point.delta) if self.guesses is None else self.guesses.bounded_at

    def delta(self, epsilon: Number) -> float:
        """Return a lower bound of δ(ε), at confidence 1 − significance.

        Raises InvalidInputError unless ε ≥ 0.
        """
        number = exact(epsilon, "epsilon")
        if number.sign < 0:
            raise expected("epsilon", epsilon, "≥ 0")
        at = float(number.ball())
        if at != float(self.point.epsilon):
            return self._curve.delta(at)
        return self.tested.delta if self.claimed else max(self.tested.delta, self._curve.delta(at))

    @property
    def mu(self) -> float | None:
        """A lower bound of μ, where μ or nothing is claimed; of a claim by the tested event."""
        if not self.claimed or self.guesses is not None:
            return self._curve.mu()
        if self.guarantee.kind != "gaussian":
            return None
        return mu_lower_bound(float(self.point.epsilon), self.tested.delta)

    def curve(self, significance: float | None = None) -> Curve | Guesses:
        """Return bounds of δ(ε), ε(δ) and the trade-off function that hold all at once.

        Without a claim they hold together with the bound of ε, each at its share of the
        significance; else they are a statement of their own.
        """
        level = significance or self.significance
        if self.guesses is not None:
            return replace(self.guesses, significance=level)
        shares = shares_of(None, claimed=self.claimed)
        return Curve(self.cells, level * shares.below, level * shares.above)

    @cached_property
    def _curve(self) -> Curve | Guesses:
        return self.curve()

    @property
    def size(self) -> str:
        """The number of runs or canaries, in words."""
        return f"{self.samples} " + ("runs a side" if self.guesses is None else "canaries")

    def exact(self, question: str, value: float) -> Any:
        """Return the exact δ(ε) or ε(δ) of a mechanism of this package; None if unknown."""
        if self.mechanism is None:
            return None
        asked: Any = getattr(ask, question)
        other = "delta" if question == "epsilon" else "epsilon"
        try:
            return asked(self.mechanism, **{other: str(value)}, adjacency=self.adjacency)
        except DpassayError:  # no relation is named, or what is asked has no answer
            return None

    @cached_property
    def deltas(self) -> list[dict[str, Any]]:
        """δ(ε) on a grid: lower bound, estimate, upper bound when binned, exact value."""
        curve = self._curve
        return [
            {
                "epsilon": epsilon,
                "lower": self.delta(epsilon),
                "estimate": curve.delta_estimate(epsilon),
                "upper": curve.delta_upper(epsilon),
                "exact": self.exact("delta", epsilon),
            }
            for epsilon in EPSILONS
        ]

    @cached_property
    def epsilons(self) -> list[dict[str, Any]]:
        """ε(δ) on a grid and at the tested δ, as in `deltas`."""
        curve, tested = self._curve, self.bounded_at
        return [
            {
                "delta": delta,
                "lower": self.epsilon if delta == tested else curve.epsilon(delta),
                "estimate": self._ratio() if delta == tested else curve.epsilon_estimate(delta),
                "upper": curve.epsilon_upper(delta),
                "exact": self.exact("epsilon", delta),
            }
            for delta in sorted({*DELTAS, tested})
        ]

    def _ratio(self) -> float | None:
        """Return the ε of the frequencies of the tested event; None where they tell none."""
        counts, delta = self.values.counts, self.bounded_at
        hit, miss = counts.hits / counts.runs - delta, counts.misses / counts.other_runs
        return math.log(hit / miss) if hit > miss > 0 else self._curve.epsilon_estimate(delta)

    @property
    def advice(self) -> str:
        """What the outcome proves, and what would confirm it."""
        if not self.claimed:
            upper = " Upper ends are of the binned output; binning only lowers delta."
            return (
                f"All bounds hold together with confidence {1 - self.significance:.7g}."
                + upper * (self.guesses is None)
            )
        if self.outcome is not Outcome.REFUTED:
            return (
                f"Not a proof: violations that show in fewer than one of some {self.samples} "
                f"{'runs' if self.guesses is None else 'canaries'}, on other neighbours, or in "
                "other events, are not excluded."
            )
        if self.significance > HINT and self.p_value > CONFIRMED:
            how = (
                "audit outputs of new runs at significance 1e-6"
                if GIVEN in self.notes
                else "audit another run at significance 1e-6"
                if self.guesses is not None
                else "audit again with another seed and significance 1e-6 (fresh runs, the event "
                "chosen anew)"
            )
            return (
                f"Only a hint: the probability of refuting a mechanism that is private is up to "
                f"{few(self.significance)}. To confirm it, {how}."
            )
        small = self.significance > HINT
        level = max(self.p_value, _LEAST_SHOWN) if small else self.significance
        what = "so small a p-value has" if small else "this verdict has"
        said = f"If the mechanism were private, {what} probability at most {few(level, 3)}."
        if self.guesses is not None:
            return said
        again = "cannot" if {NOT_REPEATABLE, GIVEN} & set(self.notes) else "can"
        return f"{said} The runs {again} be repeated from the seed."

    def to_json(self) -> dict[str, Any]:
        """Return plain data; a certificate has the verdict of the runs alone."""
        channels = {
            "values": self._channel_json(self.values),
            "bits": self._channel_json(self.bits),
        }
        if self.claimed:
            return {**self._plain(), **channels, "verdict": str(self.verdict)}
        plain = self._plain()
        for name in ("claim", "p_value", "delta_lower_bound"):
            del plain[name]
        return {
            **plain,
            "verdict": None,
            "epsilon_lower_bound": _finite(self.epsilon),
            "epsilon": [_written(row) for row in self.epsilons],
            "delta": [_written(row) for row in self.deltas],
            **channels,
        }

    def _channel_json(self, found: Tested | None) -> dict[str, Any] | None:
        """Return what one channel shows, as plain data."""
        if found is None:
            return None
        return {
            "verdict": Outcome.of(found.p_value, self.significance) if self.claimed else None,
            "event": found.rule.event(),
            "p_value": found.p_value,
            "epsilon_lower_bound": _finite(found.epsilon),
            "delta_lower_bound": found.delta,
        }

    def _plain(self) -> dict[str, Any]:
        tested = self.tested
        return {
            "schema_version": 1,
            "verdict": Outcome.of(tested.p_value, self.significance).value,
            "target": self.target,
            "claim": self.guarantee.to_json(),
            "tested": self.point.to_json(),
            "pair": [in_one_line(dataset) for dataset in self.pair],
            "pairs_searched": self.pairs,
            "event": tested.rule.event(),
            "counts": tested.counts.to_json(),
            "p_value": tested.p_value,
            "significance": self.significance,
            "epsilon_lower_bound": _finite(tested.epsilon),
            "delta_lower_bound": tested.delta,
            **({} if self.mu is None else {"mu_lower_bound": self.mu}),
            "seed": str(self.seed),
            **(
                {"training_runs": self.training, "samples": self.samples}
                if self.guesses is None
                else self.guesses.to_json()
            ),
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
            "advice": self.advice,
        }

    def certificate(self, replay: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the evidence as a certificate, for `dpassay check`.

        `replay` says how the runs were drawn: see `auditor.replay`. Raises InvalidInputError for
        one run of which nothing was claimed.
        """
        from dpassay.verifier.prover import audits

        return audits.audit(self, replay) if self.guesses is None else audits.one_run(self)

    def plot(self, path: Path | str | None = None, *, ax: Any = None, **options: Any) -> Any:
        """Return a matplotlib Figure: the histogram of both sides, and the trade-off function.

        It is saved where `path` names a file. With `ax` the trade-off function alone is drawn, into
        these axes of matplotlib.
        """
        return super().plot(path, **({} if ax is None else {"ax": ax}), **options)

    def __str__(self) -> str:
        """Return the result in a few lines."""
        return "\n".join([*(self._verdict() if self.claimed else self._estimate()), *self._last()])

    __repr__ = __str__

    def _verdict(self) -> list[str]:
        at = f"epsilon={few(self.point.epsilon)}, delta={few(self.point.delta)}"
        less = " or less, the smallest that is computed" * _is_least(self.tested)
        return [
            f"{self.verdict}  {floats_in_short(self.guarantee.description)} of {self.target}",
            *self._channel_lines(),
            f"  tested       {at}, at significance {few(self.significance)}",
            *self._where(),
            f"  counts       {self._counted()}",
            f"  p-value      {few(self.p_value, 3)}{less}",
            f"  with confidence {1 - self.significance:.7g}: epsilon({few(self.bounded_at)}) "
            f"≥ {self.epsilon:.6g}, delta({few(self.point.epsilon)}) ≥ {few(self.tested.delta, 4)}"
            + ("" if self.mu is None else f", mu ≥ {self.mu:.6g}"),
        ]

    def _channel_lines(self) -> list[str]:
        """Return what values and last bits show, each with its own verdict."""
        lines = []
        for name, found in (("its values", self.values), ("its bits", self.bits)):
            if found is None or self.bits is None:
                continue
            refuted = found.p_value <= self.significance
            said = f"{Outcome.of(found.p_value, self.significance)}: " * self.claimed
            said += f"epsilon({few(found.rule.point.delta)}) ≥ {found.epsilon:.4g}"
            if found is self.bits and refuted:
                more = found.epsilon > self.values.epsilon
                said += f" by the {found.rule.name}" + (f"; {LEAK}" if more else _NO_MORE)
            lines.append(f"  {name:<12} {said}")
        return lines

    def _where(self) -> list[str]:
        chosen = f", chosen among {self.pairs} pairs" if self.pairs > 1 else ""
        return [
            f"  neighbours   {in_one_line(self.pair[0])} and {in_one_line(self.pair[1])}{chosen}",
            *(f"  {label:<12} {text}" for label, text in _event_lines(self.rule)),
        ]

    def _counted(self) -> str:
        counts = self.counts
        if counts.design is Design.SIDES:
            return f"{counts.hits} of {counts.runs} against {counts.misses} of {counts.other_runs}"
        said = f"{counts.hits} right and {counts.misses} wrong guesses"
        if self.guesses is None:
            return f"{said} in {counts.runs} runs"
        tried = ", ".join(map(str, self.guesses.right))
        return f"{said} of {counts.runs} canaries (numbers of guesses tried: {tried})"

    def _estimate(self) -> list[str]:
        mu = f"{self.mu:.4g}" if self.mu is not None else ""
        variation = self.deltas[0]
        return [
            f"ESTIMATE  {self.target}" + f", {self.size}" * (self.guesses is None),
            *self._where(),
            "",
            *_columns(self.table()),
            f"  epsilon({few(self.bounded_at)}) ≥ {self.epsilon:.4g}, total variation ≥ "
            f"{variation['lower']:.4g}, mu ≥ {mu}",
            *self._channel_lines(),
            "",
            *self.bars(),
            "",
        ]

    def table(self) -> list[list[str]]:
        """Return δ(ε) and ε(δ) as rows of text below a head."""
        rows = [["", "certified ≥", "estimated", "binned ≤", "exact"]]
        for name, at, lines in (
            ("delta", "epsilon", self.deltas),
            ("epsilon", "delta", self.epsilons),
        ):
            rows += [
                [
                    f"{name}({few(line[at])})",
                    *("–" if line[key] is None else f"{line[key]:.4f}" for key in _FLOATS),
                    "–" if line["exact"] is None else str(line["exact"])[:8],
                ]
                for line in lines
            ]
        return rows

    def bars(self) -> list[str]:
        """Return the histogram of the tested feature as text, with ● where the event is."""
        labels, shares, marks = bins(self.rule, self.histogram, _ROWS)
        most = max(1e-300, float(shares.max()))
        width = max(len(label) for label in labels)
        lines = [f"  {self.rule.name}: share of the runs on the first and on the second dataset"]
        for label, (p, q), mark in zip(labels, shares.T, marks, strict=True):
            first, second = (("█" * round(_BAR * x / most)).ljust(_BAR) for x in (p, q))
            sign = "●" if mark > 0 else "○" if mark < 0 else " "
            lines.append(f"  {sign} {label:>{width}} {p:7.2%} {first} {q:7.2%} {second}".rstrip())
        return lines

    def _last(self) -> list[str]:
        return [
            f"  {self.advice}",
            *(
                f"  note: {note}" + f"; seed {self.seed} splits them so again" * (note == GIVEN)
                for note in self.notes
            ),
        ]

    def html_cells(self) -> dict[str, str]:
        """Return the verdict, the claim and the bound, as HTML: a row of `dpassay.Results`."""
        claim = f"{self.guarantee.description} of {self.target}" if self.claimed else self.target
        bound = f"epsilon({few(self.bounded_at)}) ≥ {self.epsilon:.6g}"
        verdict = asking.badge(self.verdict or "ESTIMATE")
        return {"verdict": verdict, "claim": asking.escape(claim), "true": asking.escape(bound)}

    def _repr_html_(self) -> str:
        """Return the verdicts with their bounds, and without a claim the table of the estimate."""
        head = f"{self.guarantee.description} of {self.target}" if self.claimed else self.target
        title = asking.badge(self.verdict or "ESTIMATE") + f" {asking.escape(head)}"
        entries = [line.strip().split("  ", 1) for line in [*self._channel_lines(), *self._where()]]
        facts = [(name, asking.escape(text.strip())) for name, text in entries]
        bound = f"epsilon({few(self.bounded_at)}) ≥ {self.epsilon:.6g}"
        facts += [("bound", asking.escape(bound)), ("it proves", asking.escape(self.advice))]
        table = "" if self.claimed else asking.table(self.table())
        return f"<div>{title}{asking.rows(facts)}{table}</div>"


_FLOATS = ("lower", "estimate", "upper")


def bins(rule: Rule, histogram: Histogram, most: int) -> tuple[list[str], Array, Array]:
    """Return labels, shares (2, rows) and marks of the cells of a rule, in at most a few rows.

    Neighbouring cells with the same mark are joined; of many categories the most frequent ones are
    kept, and the others are joined.
    """
    shares = histogram / np.maximum(1, histogram.sum(axis=1, keepdims=True))
    size, partition = shares.shape[1], rule.partition
    if partition.edges is None:
        kept = np.sort(np.argsort(-shares[:, :-1].sum(axis=0), kind="stable")[:most])
        rest = np.setdiff1d(np.arange(size), kept)
        groups = [np.array([each]) for each in kept] + ([rest] if shares[:, rest].any() else [])
        named = [partition.describe([int(i) for i in group], rule.texts) for group in groups]
        labels = [
            name.strip("{}")
            if len(name) <= _LABEL
            else "others"
            if len(group) > 1
            else f"{name.strip('{}')[:_LABEL]}…"
            for name, group in zip(named, groups, strict=True)
        ]
    else:
        part = np.floor(np.cumsum(shares.sum(axis=0)) / 2 * most * (1 - 1e-9))
        ends = np.flatnonzero((np.diff(part) > 0) | (np.diff(rule.marks) != 0))
        groups = np.split(np.arange(size), ends + 1)
        edges = ["", *(f"{edge:.4g}" for edge in partition.edges), ""]
        labels = [_between(edges[group[0]], edges[group[-1] + 1]) for group in groups]
    marks = np.array([int(rule.marks[group[0]]) for group in groups])
    return labels, np.stack([shares[:, group].sum(axis=1) for group in groups], axis=1), marks


def _between(low: str, high: str) -> str:
    return f"{low} to {high}" if low and high else f"≥ {low}" if low else f"< {high}"


def _columns(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _is_least(found: Tested) -> bool:
    least = LEAST_P_VALUE[found.counts.design]
    return found.p_value * found.rule.share <= least * (1 + 1e-9)


def _written(row: Mapping[str, Any]) -> dict[str, Any]:
    exact = row["exact"]
    plain = {
        key: value if value is None else _finite(value)
        for key, value in row.items()
        if key != "exact"
    }
    return {**plain, "exact": None if exact is None else exact.to_json()}


def _event_lines(rule: Rule) -> list[tuple[str, str]]:
    event = rule.event()
    lines = [("event", f"{event['description']} (likelier on the {event['favours']} dataset)")]
    if "opposite" in event:
        lines.append(("opposite", str(event["opposite"])))
    return lines


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
