"""OpenDP's measurements, by the attributes that they have."""

from __future__ import annotations

from typing import Any

import pytest

from accountant.errors import InvalidInputError, NotApplicableError
from accountant.mechanisms import Composed, DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from verify.exact import verify
from verify.foreign import as_mechanism, opendp
from verify.verdict import Verdict

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
