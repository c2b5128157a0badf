"""Choosing one of several candidates: mechanisms, and how far from the best the choice may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import ROUND_FLOOR, Context
from fractions import Fraction
from functools import partial

from flint import arb

from dpassay.accountant.core.validate import probability
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.geometry.workload import Selection, Workload
from dpassay.accountant.mechanisms.additive.laplace import Laplace, Logistic
from dpassay.accountant.mechanisms.selection.candidates import (
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
)
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.numbers.solve import bracket, root
from dpassay.verifier.compare.budget import Budget
from dpassay.verifier.compare.candidate import Calibrated, Candidate, Layout, calibrated

_DIGITS = 12
"""Digits of an ε, rounded down."""
_WIDTH = Fraction(1, 10**14)
"""Relative width of a regret that is searched."""


def candidates(workload: Selection, budget: Budget) -> Iterator[Candidate]:
    """Yield the mechanisms that choose by scores."""
    yield Candidate(
        "exponential mechanism",
        "chooses in proportion to the exponential of the score: the report of noisy maximum with "
        "Gumbel noise",
        partial(_calibrated, workload=workload, kind=ExponentialMechanism, noise="Logistic"),
    )
    yield Candidate(
        "permute-and-flip",
        "goes through candidates in random order and takes one by a flip: the report of noisy "
        "maximum with exponential noise",
        partial(_calibrated, workload=workload, kind=PermuteAndFlip, noise="Laplace"),
    )


def _calibrated(
    budget: Budget,
    *,
    workload: Selection,
    kind: type[ExponentialMechanism | PermuteAndFlip],
    noise: str,
) -> Calibrated:
    """Calibrate a choice; several releases, and a budget in divergences, through its noise.

    The profile of one release is that of logistic noise, or of Laplace noise, at distance ε.
    Whatever the scores, its pair is dominated by that of the noise, and so are compositions and
    samples of it. Of permute-and-flip no divergence is known exactly.
    """
    exact = kind is ExponentialMechanism or budget.epsilon_delta is not None
    if budget.total_releases == 1 and not budget.is_sampled and exact:
        return calibrated(
            kind.__name__,
            budget,
            Layout.EACH,
            sensitivity=workload.sensitivity,
            monotone=workload.monotone,
        )
    found = calibrated(noise, budget, Layout.EACH)
    assert isinstance(found.mechanism, Laplace | Logistic)
    inverse = enclose((ExactReal.of_rational(1) / found.mechanism.scale).ball)
    epsilon = Context(prec=_DIGITS, rounding=ROUND_FLOOR).plus(inverse.lower)
    mechanism = kind(epsilon, workload.sensitivity, workload.monotone)
    return Calibrated(mechanism, found.whole, Layout.EACH, found.least, "epsilon")


def regret(found: Calibrated, workload: Workload, level: str) -> Interval:
    """Enclose the least t such that the choice is within t of the best score with a probability.

    For the worst scores: P(the score is t or more below the best) is largest where all candidates
    but one are at t. To lower a score from less than t below the best to t makes it more probable
    that one of those at t or below is chosen, and so does raising one from below t to t. With
    q = e^{−at} for a = ε/(2Δ), or ε/Δ for monotone scores, the best of k is then chosen with
    probability 1/(1 + (k − 1)q) by the exponential mechanism. Permute-and-flip takes it where all
    candidates before it are refused: (1/k) Σ_{j<k} (1 − q)^j = (1 − (1 − q)^k)/(kq).

    With independent noises ReportNoisyMax takes it with the chance that one noise and t exceed the
    largest of k − 1 others.

    Raises NotApplicableError for a mechanism that is not about scores.
    """
    mechanism, p = found.mechanism, probability("level", level)
    if isinstance(mechanism, ReportNoisyMax):
        mechanism = mechanism.same() or mechanism
    if not (
        isinstance(mechanism, ExponentialMechanism | PermuteAndFlip | ReportNoisyMax)
        and isinstance(workload, Selection)
    ):
        raise NotApplicableError(f"{type(mechanism).__name__} chooses by no scores.")
    if isinstance(mechanism, ReportNoisyMax) and mechanism.noise == "DiscreteLaplace":
        raise NotApplicableError("A distance between integer scores has no quantile.")
    count = workload.candidates
    if isinstance(mechanism, ReportNoisyMax):
        return _distance(mechanism.chance_of_best, p) * enclose(mechanism.scale.ball)
    unit = mechanism.sensitivity / mechanism.epsilon
    unit = unit if mechanism.monotone else unit * ExactReal.of_rational(2)
    if isinstance(mechanism, ExponentialMechanism):

        def distance() -> arb:
            chance = p.ball()
            log: arb = ((count - 1) * chance / (1 - chance)).log()
            return log.max(arb(0)) * unit.ball()

        return enclose(distance)

    def taken(t: arb) -> arb:
        q = (-t).exp()
        return arb(1) / count if t.is_zero() else -(count * (-q).log1p()).expm1() / (count * q)

    return _distance(taken, p) * enclose(unit.ball)


def _distance(taken: Callable[[arb], arb], p: ExactReal) -> Interval:
    """Enclose the least t ≥ 0 at which a rising probability is p, or more."""

    def missed(t: ExactReal) -> arb:
        return p.ball() - taken(t.ball())

    if not missed(ExactReal.of_rational(0)) > 0:
        return Interval.of_exact(0)
    return root(missed, bracket(missed, Fraction(1), floor=Fraction(0)), relative_width=_WIDTH)
