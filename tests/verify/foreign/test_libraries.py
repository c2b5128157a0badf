"""What Opacus, OpenDP and reports about events say, read and decided."""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from dp_accounting import dp_event

from dpassay.accountant.budget.target import EpsilonDelta
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.geometry.workload import Count
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    GaussianThreshold,
    Laplace,
    LaplaceThreshold,
    PermuteAndFlip,
    PoissonSubsampled,
)
from dpassay.accountant.questions import profile
from dpassay.verifier.ask import verify
from dpassay.verifier.compare import Budget, compare
from dpassay.verifier.document import read_paper
from dpassay.verifier.foreign import as_mechanism, events, opacus, opendp
from dpassay.verifier.verdict import Verdict
from tests.verify.foreign.installed import library


class Accountant:
    """What there is of an accountant of Opacus: a history, and an ε."""

    def __init__(self, history: list[tuple[float, float, int]], epsilon: float) -> None:
        self.history = history
        self._epsilon = epsilon

    def get_epsilon(self, delta: float) -> float:
        return self._epsilon


def test_a_history_is_a_composition() -> None:
    sampled = PoissonSubsampled(Gaussian("1.5"), "0.25")
    assert opacus.mechanism_of([(1.5, 0.25, 10)]) == Composed(sampled, 10)
    assert opacus.mechanism_of([(1.5, 0.25, 1)]) == sampled
    assert opacus.mechanism_of([(2.0, 1.0, 10), (1.5, 0.25, 3)]) == Composed(
        (Composed(Gaussian(2), 10), Composed(sampled, 3))
    )
    assert as_mechanism([(2.0, 1.0, 1)]) == Gaussian(2)
    assert str(profile.delta(opacus.mechanism_of([]), 0)) == "0"


def test_the_accountants_own_epsilon_is_a_claim() -> None:
    for said, verdict in ((9.9, Verdict.REFUTED), (10.1, Verdict.HOLDS)):
        claim = opacus.claim(Accountant([(5.0, 1.0, 100)], said), 1e-5)
        assert verify(claim).verdict is verdict
    claim = opacus.claim([(5.0, 1.0, 100)], 1e-5, 9.9)
    assert verify(claim).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ("1.0", "to be a list"),
        ([(1.0, 0.5)], r"history\[0\]"),
        ([(1.0, 0.5, 10), (1.0, 0.5, -1)], r"history\[1\] steps"),
        ([(1.0, 0.5, 1.5)], "to be an integer"),
        ([(1.0, 1.5, 1)], "sampling_prob"),
        ([(0.0, 0.5, 1)], "standard_deviation"),
    ],
)
def test_wrong_histories_are_named(history: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        opacus.mechanism_of(history)


FLOAT, INTEGER = "AtomDomain(T=f64)", "AtomDomain(T=i32)"


class Profile:
    def epsilon(self, delta: float) -> float:
        return 2.4190931768671953


class Measurement:
    """A measurement as OpenDP 0.16 has it: a map, a measure, and how it was made."""

    def __init__(self, measure: str, value: Any, made: str, **given: Any) -> None:
        self.output_measure = measure
        self.value = value
        if made:
            self.__opendp_dict__ = {"__function__": made, "__kwargs__": given}

    def map(self, d_in: object) -> Any:
        return self.value


class Transformation:
    def map(self, d_in: int) -> int:
        return 10 * d_in


def laplace(domain: str = FLOAT, epsilon: float = 0.5) -> Measurement:
    return Measurement("MaxDivergence", epsilon, "make_laplace", input_domain=domain, scale=2.0)


def gaussian(domain: str = FLOAT, rho: float = 0.125) -> Measurement:
    return Measurement(
        "ZeroConcentratedDivergence", rho, "make_gaussian", input_domain=domain, scale=2.0
    )


def test_the_law_is_read_from_how_it_was_made() -> None:
    assert opendp.mechanism_of(laplace()) == Laplace(2)
    assert opendp.mechanism_of(laplace(), 3.0) == Laplace(2, 3)
    assert opendp.mechanism_of(laplace(INTEGER), 3) == DiscreteLaplace(2, 3)
    assert opendp.mechanism_of(gaussian(INTEGER), 1) == DiscreteGaussian(4)
    assert as_mechanism(gaussian("VectorDomain(AtomDomain(T=f64))")) == Gaussian(2)
    both = Measurement("MaxDivergence", 1.0, "make_composition", measurements=[laplace()] * 2)
    assert opendp.mechanism_of(both) == Composed((Laplace(2), Laplace(2)))
    chain = Measurement(
        "MaxDivergence", 5.0, "make_chain_mt",
        measurement1=laplace(INTEGER), transformation0=Transformation(),
    )  # fmt: skip
    assert opendp.mechanism_of(chain, 1) == DiscreteLaplace(2, 10)


def test_what_the_map_says_is_decided() -> None:
    assert verify(opendp.claim(laplace(), 1.0)).verdict is Verdict.HOLDS
    assert verify(opendp.claim(laplace(epsilon=0.49), 1.0)).verdict is Verdict.REFUTED
    assert verify(opendp.claim(gaussian(), 1.0)).verdict is Verdict.HOLDS
    assert verify(opendp.claim(gaussian(INTEGER), 1)).verdict is Verdict.HOLDS
    whole = Measurement("SmoothedMaxDivergence", Profile(), "make_zCDP_to_approxDP",
                        measurement=gaussian())  # fmt: skip
    assert verify(opendp.claim(whole, 1.0, delta=1e-6)).verdict is Verdict.HOLDS
    at = Measurement("Approximate(MaxDivergence)", (2.0, 1e-6), "make_fix_delta",
                     measurement=whole)  # fmt: skip
    assert verify(opendp.claim(at, 1.0)).verdict is Verdict.REFUTED  # it is 2.2541
    with pytest.raises(InvalidInputError, match="delta"):
        opendp.claim(whole, 1.0)


def test_a_report_of_a_category() -> None:
    response = Measurement("MaxDivergence", 1.9459101490553132, "make_randomized_response",
                           categories=[1, 2, 3, 4], prob=0.7)  # fmt: skip
    # ln 7 of the float 0.7: the map rounds up
    assert verify(opendp.claim(response)).verdict is Verdict.HOLDS


def noisy_max(measure: str, metric: str, value: float) -> Measurement:
    return Measurement(measure, value, "make_noisy_max", input_metric=metric,
                       output_measure=measure, scale=2.0)  # fmt: skip


def test_choices_of_a_noisy_maximum() -> None:
    """Exponential noise under pure DP, Gumbel noise under zCDP, as OpenDP draws them."""
    free, monotone = "LInfDistance(T=i32)", "LInfDistance(monotonic, T=i32)"
    assert opendp.mechanism_of(noisy_max("MaxDivergence", free, 1.0)) == PermuteAndFlip(1)
    assert opendp.mechanism_of(noisy_max("MaxDivergence", monotone, 1.5), 3) == PermuteAndFlip(
        "1.5", 3, monotone=True
    )
    zcdp = noisy_max("ZeroConcentratedDivergence", free, 0.125)
    assert opendp.mechanism_of(zcdp) == ExponentialMechanism(1)
    assert verify(opendp.claim(zcdp)).verdict is Verdict.HOLDS
    low = noisy_max("MaxDivergence", free, 0.99)
    assert verify(opendp.claim(low)).verdict is Verdict.REFUTED


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_keys_whose_noisy_counts_reach_a_threshold(name: str) -> None:
    made: Any = partial(
        Measurement, "Approximate(MaxDivergence)", (1.0, 0.0364), f"make_{name}_threshold",
        input_domain=f"MapDomain {{ key_domain: AtomDomain(T=String), value_domain: {FLOAT} }}",
        scale=1.0,
    )  # fmt: skip
    law = LaplaceThreshold if name == "laplace" else GaussianThreshold
    assert opendp.mechanism_of(made(threshold=12.0), (1, 1.0, 1.0)) == law(1, 12)
    assert opendp.mechanism_of(made(threshold=12.0), (4, 4.0, 1.0)) == law(1, 12, 4)
    with pytest.raises(NotApplicableError, match="by linf"):
        opendp.mechanism_of(made(threshold=12.0), (4, 1.0, 1.0))
    with pytest.raises(InvalidInputError, match="l0"):
        opendp.mechanism_of(made(threshold=12.0), 1)


def test_a_threshold_is_reached_by_a_count_of_its_own_size() -> None:
    """The map of OpenDP 0.16 has P(Z ≥ 3) for a count of 1 and a threshold of 3, not P(Z ≥ 2)."""
    domain = f"MapDomain {{ key_domain: AtomDomain(T=String), value_domain: {INTEGER} }}"
    made = Measurement(
        "Approximate(MaxDivergence)", (1.0, 0.03639726343516558), "make_laplace_threshold",
        input_domain=domain, scale=1.0, threshold=3,
    )  # fmt: skip
    claim = opendp.claim(made, (1, 1, 1))
    assert claim.mechanism == "DiscreteLaplaceThreshold(scale=1, threshold=3)"  # type: ignore[attr-defined]
    finding = verify(claim)
    assert finding.verdict is Verdict.REFUTED
    exact = math.exp(-2) / (1 + math.exp(-1))
    assert float(finding.true["delta"]["lower"]) == pytest.approx(exact, rel=1e-9, abs=0)


def test_the_measurements_of_opendp_itself() -> None:
    dp = library("opendp.prelude")
    dp.enable_features("contrib", "honest-but-curious")
    scores = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    for measure in (dp.max_divergence(), dp.zero_concentrated_divergence()):
        chosen = dp.m.make_noisy_max(*scores, measure, scale=2.0)
        assert verify(opendp.claim(chosen)).verdict is Verdict.HOLDS
    counts = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int))
    metric = dp.l01inf_distance(dp.absolute_distance(T=int))
    keys = dp.m.make_laplace_threshold(counts, metric, scale=1.0, threshold=3)
    runs = 20_000
    shown = sum(bool(keys({"a": 1})) for _ in range(runs))
    exact = math.exp(-2) / (1 + math.exp(-1))
    assert abs(shown - runs * exact) < 5 * math.sqrt(runs * exact)  # fails by chance once in 1e6


def test_a_law_that_is_not_recognised_is_pending_or_named() -> None:
    unknown = Measurement("MaxDivergence", 0.5, "make_user_measurement")
    assert verify(opendp.claim(unknown)).verdict is Verdict.PENDING
    assert verify(opendp.claim(Measurement("MaxDivergence", 0.5, ""))).verdict is Verdict.PENDING
    named = opendp.claim(unknown, mechanism=Laplace(2))
    assert verify(named).verdict is Verdict.HOLDS
    for refused in (laplace("VectorDomain(AtomDomain(T=i32))"), unknown):
        with pytest.raises(NotApplicableError):
            opendp.mechanism_of(refused)
    with pytest.raises(NotApplicableError, match="RenyiDivergence"):
        opendp.claim(Measurement("RenyiDivergence", None, ""))
    with pytest.raises(InvalidInputError, match="d_in"):
        opendp.mechanism_of(laplace(), 0)
    with pytest.raises(InvalidInputError, match="integer"):
        opendp.mechanism_of(laplace(INTEGER), 0.5)


PAGE = Path(__file__).resolve().parents[3] / "docs" / "verdicts.md"
_OF_ACCOUNTANTS = (
    r"^\| `((?:replace-one|dp-sgd|optimistic|conversion)/[^`]+)` .* \| (HOLDS|REFUTED) \|"
)


def test_every_reported_value_is_decided_as_the_page_says() -> None:
    section = PAGE.read_text("utf-8").split("\n## field\n")[1]
    rows = dict(re.findall(_OF_ACCOUNTANTS, section, re.M))
    claims = [claim for claim in read_paper("field").claims if claim.id in rows]
    assert {claim.id: verify(claim).verdict.value for claim in claims} == rows
    assert len(rows) >= 15


def reported(event: object, epsilon: object, delta: object) -> str:
    return verify(events.claim(event, epsilon, delta)).verdict.value


def test_reports_are_decided() -> None:
    event = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(10.0), 100)
    assert reported(event, 5, "1e-6") == "HOLDS"
    assert reported(event, "4.88", "1e-6") == "REFUTED"
    assert reported(dp_event.NonPrivateDpEvent(), 1, "1e-5") == "REFUTED"


def test_refusals() -> None:
    with pytest.raises(NotApplicableError, match="ZCDpEvent"):
        reported(dp_event.ZCDpEvent(0.5), 1, "1e-5")


def test_an_event_is_a_candidate() -> None:
    found = compare(
        Budget(EpsilonDelta(1, "1e-5"), "replace-one"),
        Count(2),
        candidates=[dp_event.GaussianDpEvent(7.5), dp_event.GaussianDpEvent(3.75)],
        only=["Laplace"],
        metrics=["variance"],
    )
    verdicts = {row.candidate.name: row.verdict for row in found.rows}
    assert verdicts["Gaussian(standard_deviation='7.5', l2_sensitivity=2)"] is Verdict.HOLDS
    assert verdicts["Gaussian(standard_deviation='3.75', l2_sensitivity=2)"] is Verdict.REFUTED
    with pytest.raises(InvalidInputError, match="dp-accounting event"):
        compare(found.budget, Count(), candidates=[object()])
