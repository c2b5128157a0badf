"""Measures of error, each exact, by their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.core.validate import probability
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, suggestion
from dpassay.accountant.geometry.workload import Quantile, Selection, Workload
from dpassay.accountant.mechanisms.additive.integers import IntegerNoise
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.questions import accuracy
from dpassay.verifier.compare.candidate import Calibrated, Layout
from dpassay.verifier.compare.candidates import regret

TYPICAL = "rmse"
"""The metric that ranks unless another is asked for: every candidate's is known exactly."""
DEFAULT = (TYPICAL, "variance", "mean-absolute-error", "quantile:0.95", "p-exact")
_BY_CHOICE = ("regret:0.95", "regret:0.5")
_WIDTH = Fraction(1, 10**15)


@final
@dataclass(frozen=True)
class Metric:
    """A measure of the error of one release."""

    name: str
    meaning: str
    compute: Callable[[Calibrated, Workload], Interval]
    """Raises NotApplicableError for a law of which it is not known."""
    more_is_better: bool = False
    advice: str = ""
    """What a value means for the user, with {} for it."""

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
    known = [*_PLAIN, *(f"{k}:0.95" for k in _WITH_LEVEL)]
    if kind in _PLAIN and not colon:
        return _PLAIN[kind]
    if kind in _WITH_LEVEL and colon:
        p = probability("level", level)
        if p.rational in (0, 1):
            raise InvalidInputError(f"Expected a level in (0, 1) in the metric {name!r}.")
        meaning, compute, advice = _WITH_LEVEL[kind]
        said = advice.replace("{p}", level)
        return Metric(name, meaning.format(level), lambda c, w: compute(c, w, level), advice=said)
    if kind in _WITH_LEVEL:
        raise InvalidInputError(f"The metric {name!r} needs a level, such as {kind}:0.95.")
    raise InvalidInputError(f"Unknown metric {name!r}. {suggestion(kind, known)}")


def mean_square(found: Calibrated, workload: Workload) -> Interval:
    """Enclose E[(released − true)²], averaged over the answers of the workload."""

    def average() -> arb:
        mechanism = found.mechanism
        if found.layout is not Layout.JOINT or _exactly_the_answers(found, workload):
            return mechanism.mean_squared_error()
        return _average(found, workload)

    return enclose(average, relative_width=_WIDTH)


def _exactly_the_answers(found: Calibrated, workload: Workload) -> bool:
    entries = len(found.mechanism.variances())
    return entries in (1, workload.answers)


def _average(found: Calibrated, workload: Workload) -> arb:
    """Average the variances of the answers: what stands behind them is not asked for."""
    entries = list(found.mechanism.variances())
    columns = found.answer_columns(workload)
    return sum((entries[j] for j in columns), start=arb(0)) / len(columns)


def _variance(found: Calibrated, workload: Workload) -> Interval:
    if isinstance(found.mechanism, IntegerNoise):
        return enclose(lambda: found.mechanism.variances()[0], relative_width=_WIDTH)
    return mean_square(found, workload)


def _rmse(found: Calibrated, workload: Workload) -> Interval:
    value = mean_square(found, workload)
    return enclose(lambda: value.ball().sqrt(), relative_width=10 * _WIDTH)


def _absolute(found: Calibrated, workload: Workload) -> Interval:
    if found.layout is Layout.JOINT and not _exactly_the_answers(found, workload):
        raise NotApplicableError("It is not averaged if more than the answers is released.")
    return accuracy.mean_absolute_error(found.mechanism)


def _bias(found: Calibrated, workload: Workload) -> Interval:
    if isinstance(found.mechanism, IntegerNoise):
        return Interval.of_exact(found.mechanism.mean())
    accuracy.require_symmetric(found.mechanism)
    return Interval.of_exact(0)


def _exact(found: Calibrated, workload: Workload) -> Interval:
    return accuracy.probability_exact(found.mechanism)


def _quantile(found: Calibrated, workload: Workload, level: str) -> Interval:
    return accuracy.absolute_quantile(found.mechanism, level)


def _maximum(found: Calibrated, workload: Workload, level: str) -> Interval:
    if found.layout is not Layout.EACH and workload.answers > 1:
        raise NotApplicableError("The answers are dependent.")
    return accuracy.maximum_quantile(found.mechanism, level, coordinates=workload.answers)


_PLAIN = {
    entry.name: entry
    for entry in (
        Metric("variance", "variance of an answer, averaged over the answers", _variance),
        Metric("rmse", "root of the mean squared error", _rmse, advice="typical error ±{}"),
        Metric("mean-absolute-error", "mean absolute error of an answer", _absolute),
        Metric("bias", "mean error of an answer", _bias),
        Metric("p-exact", "probability that an answer is exact", _exact, more_is_better=True),
    )
}
_WITH_LEVEL: dict[str, tuple[str, Callable[[Calibrated, Workload, str], Interval], str]] = {
    "quantile": (
        "the absolute error of an answer is at most this with probability {}",
        _quantile,
        "",
    ),
    "max-quantile": ("all absolute errors are at most this with probability {}", _maximum, ""),
    "regret": (
        "the chosen score is at most this below the best one with probability {}, whatever the "
        "scores",
        regret,
        "with probability {p} at most {} below the best score",
    ),
}
