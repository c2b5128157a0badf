"""Counts by keys that come from the data: thresholds, and how large a count appears."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_UP, Context, Decimal
from fractions import Fraction
from functools import partial

from flint import arb

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import probability
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.geometry.workload import KeyedCounts, Workload
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.additive.laplace import Laplace
from dpassay.accountant.mechanisms.selection.tests import (
    GaussianThreshold,
    LaplaceThreshold,
    PartitionSelection,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.questions import profile
from dpassay.verifier.compare.budget import Budget
from dpassay.verifier.compare.candidate import Calibrated, Candidate, Layout, LeftOut, calibrated

_DIGITS = 12
"""Digits of a threshold, rounded up."""
_STEPS = 40
"""Times it is raised until the guarantee is proved."""
_HIGHER = Fraction(1001, 1000)
"""By how much a threshold that is not proved to be high enough is raised."""


def candidates(workload: KeyedCounts, budget: Budget) -> Iterator[Candidate | LeftOut]:
    """Yield noise with thresholds, and the best way to show keys without their counts."""
    spent = budget.epsilon_delta
    if spent is None or spent.delta.sign == 0 or spent.epsilon.sign <= 0:
        raise NotApplicableError(
            "Releasing the key of a single person needs epsilon > 0 and delta > 0: give both."
        )
    if budget.total_releases > 1 or budget.is_sampled:
        raise NotApplicableError(
            "Counts by keys are compared for one release: leave releases and sampling_prob out."
        )
    yield Candidate(
        "Laplace noise with a threshold",
        "a key is shown with its noisy count where that reaches the threshold",
        partial(_thresholded, workload=workload, kind="Laplace"),
    )
    yield Candidate(
        "Gaussian noise with a threshold",
        "the same with Gaussian noise, which is less for many keys of a person",
        partial(_thresholded, workload=workload, kind="Gaussian"),
    )
    name = "keys without counts"
    if workload.partitions > 1:
        yield LeftOut(name, "the best selection is known for one key of a person only")
        return
    yield Candidate(
        name,
        "which keys there are, and no counts: at every number of people the most of all mechanisms",
        _selected,
    )


def _selected(budget: Budget) -> Calibrated:
    assert budget.epsilon_delta is not None
    mechanism = PartitionSelection(budget.epsilon_delta.epsilon, budget.epsilon_delta.delta)
    return Calibrated(mechanism, mechanism, Layout.EACH)


def _thresholded(budget: Budget, *, workload: KeyedCounts, kind: str) -> Calibrated:
    """Spend all of (ε, δ) on the noise of k old keys, and all of δ on k new ones.

    A person with some new keys and some old ones may lose more than either; then the threshold is
    raised until the exact profile, the largest over all of these, is at most δ.
    """
    assert budget.epsilon_delta is not None
    epsilon, delta = budget.epsilon_delta.epsilon, budget.epsilon_delta.delta
    k, moved = workload.partitions, workload.sensitivity
    norm = {"Laplace": "l1_sensitivity", "Gaussian": "l2_sensitivity"}[kind]
    noise = calibrated(kind, budget, Layout.EACH, copies=k, **{norm: moved}).mechanism
    alone = enclose(lambda: -((-delta.ball()).log1p() / k).expm1()).lower
    above = enclose(lambda: (-noise.quantile(exact(alone))).max(arb(0)))
    level = _rounded(Fraction(enclose(moved.ball).upper) + Fraction(above.upper))
    for _ in range(_STEPS):
        mechanism = _with_threshold(noise, level, workload)
        known = profile.delta(mechanism, epsilon, adjacency=budget.adjacency)
        if exact(known.upper) <= delta:
            return Calibrated(mechanism, mechanism, Layout.EACH, argument="threshold")
        level = _rounded(level * _HIGHER)
    raise NotApplicableError(f"No threshold up to {float(level):.6g} was proved to be enough.")


def _rounded(value: Fraction) -> Fraction:
    """Round up to twelve digits."""
    up = Context(prec=_DIGITS, rounding=ROUND_UP)
    return Fraction(up.divide(Decimal(value.numerator), Decimal(value.denominator)))


def _with_threshold(noise: Mechanism, level: Fraction, workload: KeyedCounts) -> Mechanism:
    k, moved = workload.partitions, workload.sensitivity
    if isinstance(noise, Laplace):
        return LaplaceThreshold(noise.scale, level, k, moved)
    assert isinstance(noise, Gaussian)
    return GaussianThreshold(noise.standard_deviation, level, k, moved)


def users_needed(found: Calibrated, workload: Workload, level: str) -> Interval:
    """Enclose the least count of a key that appears with a probability.

    Raises NotApplicableError for a mechanism that is not about keys.
    """
    mechanism, p = found.mechanism, probability("level", level)
    if isinstance(mechanism, PartitionSelection):
        return Interval.of_exact(mechanism.needed(p))
    if not isinstance(mechanism, (LaplaceThreshold, GaussianThreshold)):
        raise NotApplicableError(f"{type(mechanism).__name__} shows every answer.")
    noise = mechanism.count_noise()
    return enclose(lambda: mechanism.threshold.ball() + noise.quantile(p))
