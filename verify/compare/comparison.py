"""Compare: calibrate and prove every candidate, measure its error exactly, and rank them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, final

import msgspec
from flint import arb

from dpassay.accountant import notation
from dpassay.accountant.budget.target import Mu, Target, read_target
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.asking import Drawable
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import probability
from dpassay.accountant.errors import (
    InvalidInputError,
    NeitherTrueNorFalse,
    NotApplicableError,
    UndecidedError,
    forgiving,
    suggestion,
)
from dpassay.accountant.geometry.workload import Quantile, Selection, Workload
from dpassay.accountant.mechanisms.additive.integers import IntegerNoise
from dpassay.accountant.notation import read_mechanism
from dpassay.accountant.numbers.exact import Number, floats_in_short
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.pairs.invert import most
from dpassay.accountant.questions import accuracy
from dpassay.accountant.questions.least_mu import limiting_mu
from dpassay.verifier.compare import output
from dpassay.verifier.compare.candidates import (
    Budget,
    Calibrated,
    Candidate,
    Layout,
    LeftOut,
    candidates_for,
    named,
    regret,
)
from dpassay.verifier.document import explained, read_toml, text_of
from dpassay.verifier.foreign import as_mechanism
from dpassay.verifier.prover import decided
from dpassay.verifier.verdict import Finding, Verdict

TYPICAL = "rmse"
"""The metric that ranks by default: it is known exactly for every candidate."""
DEFAULT = (TYPICAL, "variance", "mean-absolute-error", "quantile:0.95", "p-exact")
_BY_CHOICE = ("regret:0.95", "regret:0.5")
_WIDTH = Fraction(1, 10**15)


@final
@dataclass(frozen=True)
class Metric:
    """A measure of the error of one release."""

    name: str
    meaning: str
    of: Callable[[Calibrated, Workload, str], Interval]
    """Raises NotApplicableError for a law whose value is not known."""
    more_is_better: bool = False
    advice: str = ""
    """What a value means for the user, with {} in its place."""
    level: str | None = None
    """Its probability, where it has one: in its name, and in its texts in the place of {p}."""

    def compute(self, found: Calibrated, workload: Workload) -> Interval:
        """Enclose it for a mechanism, or raise NotApplicableError."""
        return self.of(found, workload, self.level or "")

    def better(self, first: Interval, second: Interval) -> bool:
        """Whether the first is proved to be better."""
        if self.more_is_better:
            return first.lower > second.upper
        return first.upper < second.lower


def usual(workload: Workload) -> tuple[str, ...]:
    """Return the metrics of a workload; the first is known of every candidate, and ranks."""
    return _BY_CHOICE if isinstance(workload, (Selection, Quantile)) else DEFAULT


def metric(name: str) -> Metric:
    """Return a metric by its name; `quantile:P` and `max-quantile:P` take a probability.

    Raises InvalidInputError for an unknown name or a level outside (0, 1).
    """
    kind, colon, level = name.partition(":")
    found = _METRICS.get(kind)
    if found is None or (colon and found.level is None):
        known = [k if m.level is None else f"{k}:{m.level}" for k, m in _METRICS.items()]
        raise InvalidInputError(f"Unknown metric {name!r}. {suggestion(kind, known)}")
    if found.level is None:
        return found
    if not colon:
        raise InvalidInputError(f"The metric {name!r} needs a level, such as {kind}:{found.level}.")
    if probability("level", level).rational in (0, 1):
        raise InvalidInputError(f"Expected a level in (0, 1) in the metric {name!r}.")
    meaning, advice = (text.replace("{p}", level) for text in (found.meaning, found.advice))
    return replace(found, name=name, meaning=meaning, advice=advice, level=level)


def mean_square(found: Calibrated, workload: Workload) -> Interval:
    """Enclose E[(released − true)²], averaged over the answers: other outputs do not count."""

    def average() -> arb:
        if _releases_the_answers_alone(found, workload):
            return found.mechanism.mean_squared_error()
        entries, columns = list(found.mechanism.variances()), found.answer_columns(workload)
        return sum((entries[j] for j in columns), start=arb(0)) / len(columns)

    return enclose(average, relative_width=_WIDTH)


def _releases_the_answers_alone(found: Calibrated, workload: Workload) -> bool:
    is_joint = found.layout is Layout.JOINT
    return not is_joint or len(found.mechanism.variances()) in (1, workload.answers)


def _variance(found: Calibrated, workload: Workload, _: str = "") -> Interval:
    if isinstance(found.mechanism, IntegerNoise):
        return enclose(lambda: found.mechanism.variances()[0], relative_width=_WIDTH)
    return mean_square(found, workload)


def _rmse(found: Calibrated, workload: Workload, _: str) -> Interval:
    value = mean_square(found, workload)
    return enclose(lambda: value.ball().sqrt(), relative_width=10 * _WIDTH)


def _absolute(found: Calibrated, workload: Workload, _: str) -> Interval:
    if not _releases_the_answers_alone(found, workload):
        raise NotApplicableError("It is known only if nothing but the answers is released.")
    return accuracy.mean_absolute_error(found.mechanism)


def _bias(found: Calibrated, *_: object) -> Interval:
    if isinstance(found.mechanism, IntegerNoise):
        return Interval.of_exact(found.mechanism.mean())
    accuracy.require_symmetric(found.mechanism)
    return Interval.of_exact(0)


def _maximum(found: Calibrated, workload: Workload, level: str) -> Interval:
    if found.layout is not Layout.EACH and workload.answers > 1:
        raise NotApplicableError("The answers are dependent.")
    return accuracy.maximum_quantile(found.mechanism, level, coordinates=workload.answers)


_METRICS = {
    entry.name: entry
    for entry in (
        Metric("variance", "variance of an answer, averaged over the answers", _variance),
        Metric("rmse", "root of the mean squared error", _rmse, advice="typical error ±{}"),
        Metric("mean-absolute-error", "mean absolute error of an answer", _absolute),
        Metric("bias", "mean error of an answer", _bias),
        Metric(
            "p-exact",
            "probability that an answer is exact",
            lambda found, *_: accuracy.probability_exact(found.mechanism),
            more_is_better=True,
        ),
        Metric(
            "quantile",
            "the absolute error of an answer is at most this with probability {p}",
            lambda found, _, level: accuracy.absolute_quantile(found.mechanism, level),
            level="0.95",
        ),
        Metric(
            "max-quantile",
            "all absolute errors are at most this with probability {p}",
            _maximum,
            level="0.95",
        ),
        Metric(
            "regret",
            "the chosen score is at most this below the best one with probability {p}, whatever "
            "the scores",
            regret,
            advice="with probability {p} at most {} below the best score",
            level="0.95",
        ),
    )
}
"""By name, without the level: there `level` is an example."""
_PUBLISHED = (
    "its noise is a formula of a paper, not calibrated; "
    "add --published (published=True) to include it"
)


@final
@dataclass(frozen=True, repr=False)
class Row(NeitherTrueNorFalse):
    """One candidate, judged."""

    compare: ClassVar[str] = ".verdict: HOLDS, REFUTED and UNDECIDED are different"
    candidate: Candidate
    found: Calibrated
    finding: Finding | None
    """The verdict on the claim that it keeps to the budget; None for a profile as the budget."""
    certificate: dict[str, Any] | None
    metrics: dict[str, Interval | str]
    """The exact value, or why there is none."""
    seconds: float

    def __repr__(self) -> str:
        """Return the name, the verdict and the mechanism."""
        return f"<Row {self.candidate.name}: {self.verdict.value}, {self.found.mechanism!r:.200}>"

    @property
    def verdict(self) -> Verdict:
        """HOLDS, REFUTED or UNDECIDED.

        A calibration has evaluated the target and proved that it is met. So what is calibrated
        holds even where the claim, which is met with nothing to spare, could not be decided
        again, or where the budget is a profile and there is no claim.
        """
        undecided = self.finding is None or self.finding.verdict is Verdict.UNDECIDED
        if undecided and self.found.least is not None:
            return Verdict.HOLDS
        return Verdict.UNDECIDED if self.finding is None else self.finding.verdict

    @property
    def is_private(self) -> bool:
        """Whether the budget is proved to be kept. Every other row is struck out."""
        return self.verdict is Verdict.HOLDS

    @property
    def why(self) -> str:
        """What the candidate is, or why it is struck out, in one line."""
        if self.is_private or self.finding is None:
            return self.candidate.why
        return f"struck out: {self.finding.reason}"

    def is_about_others(self, budget: Budget) -> bool:
        """Whether its neighbours are not those of the budget."""
        scheme = self.candidate.scheme
        return scheme is not None and scheme.relation != budget.adjacency.value

    def value(self, name: str) -> Interval | None:
        """Return a metric, where it is known."""
        found = self.metrics[name]
        return found if isinstance(found, Interval) else None


@final
@dataclass(frozen=True, repr=False)
class Comparison(Drawable):
    """Every candidate for a workload under a budget."""

    budget: Budget
    workload: Workload
    metrics: tuple[Metric, ...]
    rows: tuple[Row, ...]
    """The private ones first, by `ranked_by`; then what is struck out."""
    left_out: tuple[LeftOut, ...]
    seconds: float
    complete: bool = True
    """False after an interruption: further candidates were not judged."""
    shown: tuple[Metric, ...] = ()
    """The metrics of the table; none for `ranked_by` alone."""

    @property
    def ranked_by(self) -> Metric:
        """Return the first metric that distinguishes all private rows, else the usual one."""
        return decisive(self.rows, self.metrics, self.typical)

    @property
    def typical(self) -> Metric:
        """Return the usual metric of the workload, which every row has."""
        return metric(usual(self.workload)[0])

    def __repr__(self) -> str:
        """Return the budget, the workload and the candidate that is listed first."""
        first = f"; first {self.rows[0].candidate.name}" if self.rows else ""
        return floats_in_short(
            f"<Comparison: {self.budget}, {self.workload!r}, {len(self.rows)} candidates{first}>"
        )

    def __str__(self) -> str:
        """Return the decision, and the table that it rests on."""
        return output.text(self, output.notes(self, "left_out says why"))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return self.to_json()

    def to_records(self) -> list[dict[str, Any]]:
        """Return one row for each candidate; a metric is a float, or None where it is unknown."""
        return [
            {
                "name": row.candidate.name,
                "verdict": row.verdict.value,
                "noise": output.noise(row.found),
                **{
                    entry.name: None if value is None else float(value.upper)
                    for entry in self.metrics
                    for value in [row.value(entry.name)]
                },
                "mechanism": repr(row.found.mechanism),
            }
            for row in self.rows
        ]

    def to_pandas(self) -> Any:
        """Return the rows of `to_records` as a pandas DataFrame."""
        from dpassay.accountant.core.asking import frame

        return frame(self.to_records())

    def best(self, name: str) -> tuple[Row, ...]:
        """Return the private rows that are not proved to be worse than another by a metric.

        Of rows with the same mechanism the first one represents all.
        None where the metric of a private row is unknown, for that row might be the best; and
        none where the best is a probability of 0.
        """
        measure = metric(name)
        known = _ranking(self.ranked, measure) or []
        kept: dict[Mechanism, Row] = {}
        for row, value in known:
            if not any(measure.better(other, value) for _, other in known):
                kept.setdefault(row.found.mechanism, row)
        return tuple(kept.values())

    def ratio(self, row: Row, name: str) -> float | None:
        """Return a row's metric over the best one, about; below 1 for p-exact."""
        value = row.value(name)
        best = self.best(name)
        if value is None or not best:
            return None
        reference = best[0].value(name)
        assert reference is not None
        return float(value.lower / reference.lower) if reference.lower else None

    def _repr_html_(self) -> str:
        """Return the advice and the table for notebooks; what is not private is struck out."""
        from html import escape

        from dpassay.accountant.core import asking

        best = "<br>".join(escape(text) for text in output.best_lines(self))
        return (
            f"<p><strong>{escape(output.headline(self))}</strong></p>"
            f"<p>{escape(str(self.budget))}: <code>{escape(repr(self.workload))}</code></p>"
            f"{asking.table(output.table(self), output.is_struck_out(self))}<p>{best}</p>"
        )

    @property
    def ranked(self) -> list[Row]:
        """The private rows that are compared: those with neighbours by the budget's relation.

        If no row has it, all are. An ε for other neighbours is another promise.
        """
        private = [row for row in self.rows if row.is_private]
        same = [row for row in private if not row.is_about_others(self.budget)]
        return same or private

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "schema_version": 1,
            "budget": self.budget.to_json(),
            "workload": repr(self.workload),
            "ranked_by": self.ranked_by.name,
            "metrics": {entry.name: entry.meaning for entry in self.metrics},
            "rows": [self._row_json(row) for row in self.rows],
            "best": {
                entry.name: [row.candidate.name for row in self.best(entry.name)]
                for entry in self.metrics
            },
            "left_out": [{"name": e.name, "reason": e.reason} for e in self.left_out],
            "seconds": round(self.seconds, 3),
            "complete": self.complete,
        }

    def _row_json(self, row: Row) -> dict[str, Any]:
        values = {
            name: value.to_json() if isinstance(value, Interval) else None
            for name, value in row.metrics.items()
        }
        unknown = {name: value for name, value in row.metrics.items() if isinstance(value, str)}
        finding = row.finding
        return {
            "name": row.candidate.name,
            "noise": output.noise(row.found),
            "mechanism": repr(row.found.mechanism),
            "whole": repr(row.found.whole),
            "layout": row.found.layout.value,
            "least": row.found.least.to_json() if row.found.least else None,
            "verdict": row.verdict.value,
            "reason": row.why,
            "true": {} if finding is None else finding.true,
            **values,
            "unknown": unknown,
            "ratio": {entry.name: self.ratio(row, entry.name) for entry in self.metrics},
            "lower_bound": _bound_json(row.found),
        }


def _bound_json(found: Calibrated) -> dict[str, Any] | None:
    if found.bound is None:
        return None
    return {"variance": found.bound.to_json()["lower"], "for": found.bound_for}


@forgiving
def compare(
    budget: Budget | Target | Workload | str | None = None,
    workload: Workload | str | None = None,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    mu: Number | None = None,
    rho: Number | None = None,
    adjacency: Adjacency | str | None = None,
    releases: int = 1,
    sampling_prob: Number = 1,
    candidates: Sequence[object] = (),
    only: Sequence[str] | str = (),
    metrics: Sequence[str] | str | None = None,
    published: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Compare every mechanism that can release a workload under a budget.

    Parameters
    ----------
    budget
        A `Budget` or a target; or leave it out, and name it by `epsilon` and `delta`, `mu` or
        `rho`, with `adjacency` (add-remove unless given), `releases` and `sampling_prob`.
    workload
        What is released, as an object or as text: `Count()`, "Counts(dimension=100, sparsity=5)".
        It may come first if the budget is given by name.
    candidates
        Further mechanisms, as objects or as text, judged with the noise that they have; also
        dp-accounting's events, OpenDP's measurements and Opacus' histories
        (`dpassay.verifier.foreign`).
    only
        Names of candidates, in part or whole; the others are left out.
    metrics
        Names of metrics (see `metric`); candidates are ranked by the first one that is known for
        all private ones. By default all usual metrics are computed, and the root mean squared error
        ranks.
    published
        Whether to judge also the noise that papers prescribe by formulas; what `only` names is
        always judged.
    progress
        Called with the name of each candidate before it is judged.

    Raises
    ------
    InvalidInputError
        For an unknown metric or candidate, or a budget that no candidate can meet.

    Notes
    -----
    After an interruption the candidates judged so far are returned, with `complete` False.
    """
    started = time.perf_counter()
    only = [only] if isinstance(only, str) else only
    metrics = [metrics] if isinstance(metrics, str) else metrics
    if metrics is not None and not metrics:
        raise InvalidInputError("Expected at least one metric: the first one ranks.")
    if workload is None and isinstance(budget, (str, Workload)):
        budget, workload = None, budget
    if workload is None:
        raise InvalidInputError(
            'Expected workload=… that says what is released, such as "Count()" or '
            '"Counts(dimension=1000, sparsity=10)".'
        )
    words = {"epsilon": epsilon, "delta": delta, "mu": mu, "rho": rho}
    if budget is not None and any(value is not None for value in words.values()):
        raise InvalidInputError(
            "A budget states its own guarantee; leave epsilon, delta, mu and rho out."
        )
    if not isinstance(budget, Budget):
        budget = Budget(
            read_target(words) if budget is None else budget,  # type: ignore[arg-type]  # checked
            adjacency=adjacency or Adjacency.ADD_REMOVE,
            releases=releases,
            sampling_prob=sampling_prob,
        )
    elif adjacency is not None:
        raise InvalidInputError("A Budget states its own adjacency; leave adjacency out.")
    asked = read_workload(workload) if isinstance(workload, str) else workload
    measures = tuple(metric(name) for name in dict.fromkeys(metrics or usual(asked)))
    typical = metric(usual(asked)[0])
    workload = asked.plain(budget.adjacency)
    entries, left = candidates_for(workload, budget)
    entries = _selected(entries, left, only)
    if not (published or only):
        left += [LeftOut(entry.name, _PUBLISHED) for entry in entries if entry.as_published]
        entries = [entry for entry in entries if not entry.as_published]
    for thing in candidates:
        mechanism = read_mechanism(thing) if isinstance(thing, str) else thing
        entries.append(named(as_mechanism(mechanism, budget.adjacency), workload, budget))
    rows: list[Row] = []
    complete = True
    try:
        for entry in entries:
            if progress is not None:
                progress(entry.name)
            try:
                rows.append(judged(entry, budget, workload, measures))
            except (NotApplicableError, UndecidedError) as error:
                left.append(LeftOut(entry.name, str(error)))
    except KeyboardInterrupt:
        if not rows:
            raise
        complete = False
    if complete and not any(row.is_private for row in rows):
        about = [entry for entry in left if _is_meant(entry.name, only)]
        reasons = " ".join(f"{entry.name}: {entry.reason.rstrip('.')}." for entry in about)
        raise InvalidInputError(f"No candidate meets the budget {budget} for {asked!r}. {reasons}")
    return Comparison(
        budget,
        asked,
        measures,
        tuple(ranked(rows, decisive(rows, measures, typical), budget)),
        tuple(left),
        time.perf_counter() - started,
        complete,
        measures if metrics else (),
    )


def _selected(
    entries: list[Candidate], left: list[LeftOut], only: Sequence[str]
) -> list[Candidate]:
    """Return the candidates that `only` names, in part or whole."""
    names = [entry.name for entry in entries] + [entry.name for entry in left]
    for wanted in only:
        if not any(wanted.lower() in name.lower() for name in names):
            raise InvalidInputError(
                f"No candidate is called {wanted!r}. {suggestion(wanted, names)}"
            )
    return [entry for entry in entries if _is_meant(entry.name, only)]


def _is_meant(name: str, only: Sequence[str]) -> bool:
    """Whether `only` names a candidate, in part or whole; an empty one names all."""
    return not only or any(wanted.lower() in name.lower() for wanted in only)


def judged(entry: Candidate, budget: Budget, workload: Workload, measures: Sequence[Metric]) -> Row:
    """Calibrate, prove and measure one candidate."""
    started = time.perf_counter()
    found = entry.make(budget)
    claim = (
        None
        if _has_no_room(found, budget)
        else budget.claim(found.whole, "budget", found.adjacency)
    )
    finding, certificate = (None, None) if claim is None else decided(claim)
    values: dict[str, Interval | str] = {}
    typical = usual(workload)[0]
    for measure in dict.fromkeys((*measures, metric(typical))):
        try:
            values[measure.name] = measure.compute(found, workload)
        except NotApplicableError as error:
            values[measure.name] = str(error)
    seconds = time.perf_counter() - started
    return Row(entry, found, finding, certificate, values, seconds)


def _has_no_room(found: Calibrated, budget: Budget) -> bool:
    """Whether calibration left the profile of bounded losses touching that of μ-GDP.

    It proved the guarantee by chords. A claim is proved by a sweep, which needs room between the
    two profiles: it would stop undecided after 20,000 pieces.
    """
    if found.least is None or not isinstance(budget.target, Mu):
        return False
    pairs = found.whole.worst_case(budget.adjacency).pairs(None)
    return limiting_mu(pairs) is None and most([p.max_loss() for p in pairs]).is_finite()


def decisive(rows: Sequence[Row], measures: Sequence[Metric], typical: Metric) -> Metric:
    """Return the first measure that every private row has, else the typical one.

    A probability that is 0 for all of them does not rank them.
    """
    private = [row for row in rows if row.is_private]
    return next((each for each in measures if _ranking(private, each) is not None), typical)


def _ranking(rows: Sequence[Row], measure: Metric) -> list[tuple[Row, Interval]] | None:
    """Return rows with a metric; None if one of them has none, or if it is 0 for all of them."""
    known = [(row, value) for row in rows for value in [row.value(measure.name)] if value]
    says_nothing = measure.more_is_better and not any(value.upper > 0 for _, value in known)
    return None if says_nothing or len(known) < len(rows) else known


def ranked(rows: Sequence[Row], measure: Metric, budget: Budget) -> Iterator[Row]:
    """Yield the private rows by a metric, then those without it, then what is struck out.

    Among the private ones those with other neighbours than the budget's come last.
    """

    def key(row: Row) -> tuple[bool, bool, bool, Fraction]:
        other, value = row.is_about_others(budget), row.value(measure.name)
        if value is None:
            return (not row.is_private, other, True, Fraction(0))
        size = Fraction(value.lower)
        return (not row.is_private, other, False, -size if measure.more_is_better else size)

    yield from sorted(rows, key=key)


# --- Comparison files -----------------------------------------------------------------------------

Text = str | int
_WORKLOADS = (
    "Write one such as Count(), Counts(dimension=1000, sparsity=10), "
    "BoundedSum(bounds=[1, 2, 8]) or PrefixSums(steps=1000000)."
)


class BudgetTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[budget]."""

    epsilon: Text | None = None
    delta: Text | None = None
    mu: Text | None = None
    rho: Text | None = None
    profile: str | None = None
    adjacency: str = "add-remove"
    releases: int = 1
    sampling_prob: Text = 1

    def read(self) -> Budget:
        """Return the budget."""
        target = read_target(msgspec.structs.asdict(self))
        return Budget(target, self.adjacency, self.releases, self.sampling_prob)


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A comparison, as a file or a command line states it."""

    schema_version: int
    budget: BudgetTable
    workload: str
    candidates: list[str] = []
    only: list[str] = []
    metrics: list[str] | None = None

    def __post_init__(self) -> None:
        if self.schema_version != 1:
            raise ValueError(f"schema_version={self.schema_version} is not 1. Write 1.")

    def read(self) -> dict[str, Any]:
        """Return the arguments of `compare`."""
        return {
            "budget": self.budget.read(),
            "workload": read_workload(self.workload),
            "candidates": [notation.parse(text) for text in self.candidates],
            "only": self.only,
            "metrics": self.metrics or None,
        }


def read_file(path: Path) -> Document:
    """Read a comparison file.

    Raises InvalidInputError naming the file and the field that is wrong.
    """
    try:
        found = msgspec.convert(read_toml(text_of(path), str(path)), Document)
        found.read()
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"{path}: {explained(error)}") from error
    except ValueError as error:
        raise InvalidInputError(f"{path}: {error}") from error
    return found


def read_workload(text: str) -> Workload:
    """Read a workload in its notation."""
    found = notation.parse_description(text, noun="workload", remedy=_WORKLOADS)
    if isinstance(found, Mechanism) or not isinstance(found, Workload):
        raise InvalidInputError(f"Expected a workload, not {text!r}. {_WORKLOADS}")
    return found
