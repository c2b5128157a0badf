"""Choosing one of several candidates: mechanisms, and how far from the best the choice may be."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_FLOOR, Context
from functools import partial

from flint import arb

from accountant.core.validate import probability
from accountant.errors import NotApplicableError
from accountant.geometry.workload import Selection, Workload
from accountant.mechanisms.additive.logistic import Logistic
from accountant.mechanisms.selection.exponential import ExponentialMechanism
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import Interval, enclose
from verify.compare.budget import Budget
from verify.compare.candidate import Calibrated, Candidate, Layout, calibrated

_DIGITS = 12


def candidates(workload: Selection, budget: Budget) -> Iterator[Candidate]:
    """Yield the mechanisms that choose by scores."""
    yield Candidate(
        "exponential mechanism",
        "chooses in proportion to the exponential of the score: the report of noisy maximum with "
        "Gumbel noise",
        partial(_exponential, workload=workload),
    )


def _exponential(budget: Budget, *, workload: Selection) -> Calibrated:
    """Calibrate the exponential mechanism; several releases through logistic noise.

    The profile of one release is that of logistic noise at distance ε. Whatever the scores, its
    pair is dominated by that of logistic noise, and so are compositions and samples of it.
    """
    if budget.total_releases == 1 and not budget.is_sampled:
        return calibrated(
            "ExponentialMechanism",
            budget,
            Layout.EACH,
            sensitivity=workload.sensitivity,
            monotone=workload.monotone,
        )
    found = calibrated("Logistic", budget, Layout.EACH)
    assert isinstance(found.mechanism, Logistic)
    inverse = enclose((ExactReal.of_rational(1) / found.mechanism.scale).ball)
    epsilon = Context(prec=_DIGITS, rounding=ROUND_FLOOR).plus(inverse.lower)
    mechanism = ExponentialMechanism(epsilon, workload.sensitivity, workload.monotone)
    return Calibrated(mechanism, found.whole, Layout.EACH, found.least, "epsilon")


def regret(found: Calibrated, workload: Workload, level: str) -> Interval:
    """Enclose the least t such that the choice is within t of the best score with a probability.

    For the worst scores: P(the score is t or more below the best) is largest where all candidates
    but one are at t. To lower a score from less than t below the best to t makes it more probable
    that one of those at t or below is chosen, and so does raising one from below t to t. The
    exponential mechanism then errs with probability (k − 1)e^{−at}/(1 + (k − 1)e^{−at}) for
    a = ε/(2Δ), or ε/Δ for monotone scores.

    Raises NotApplicableError for a mechanism that is not about scores.
    """
    mechanism, p = found.mechanism, probability("level", level)
    if not isinstance(mechanism, ExponentialMechanism) or not isinstance(workload, Selection):
        raise NotApplicableError(f"{type(mechanism).__name__} chooses by no scores.")
    others = workload.candidates - 1

    def distance() -> arb:
        q = p.ball()
        rate = mechanism.epsilon.ball() / mechanism.sensitivity.ball()
        return (others * q / (1 - q)).log().max(arb(0)) / (rate if mechanism.monotone else rate / 2)

    return enclose(distance)
