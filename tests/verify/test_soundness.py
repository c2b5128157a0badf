"""No claim holds by an assumption that drops a case, an empty range, or a bound that rises."""

from __future__ import annotations

import pytest

from accountant.errors import InvalidInputError
from verify import checker, document
from verify.certificate import certify
from verify.claim import Claim
from verify.verdict import Verdict

PROFILE = 'kind = "profile"\nmechanism = "Gaussian(standard_deviation=1)"\n'
TRADEOFF = 'kind = "tradeoff"\nmechanism = "Gaussian(standard_deviation=1)"\n'
RELATION = 'kind = "relation"\n'
PRINTED = 'kind = "printed-number"\nexpression = "1/8"\n'


def claim(text: str) -> Claim:
    return document.read_text(f'schema_version = 1\n[[claims]]\nid = "c"\n{text}').claims[0]


@pytest.mark.parametrize(
    "text",
    [
        PROFILE + 'bound = "0.0001 + epsilon"\nlow = 0\nhigh = 1',  # δ(0) = 0.38
        PROFILE + 'bound = "0.0001"\nlow = 1\nhigh = 1',
        TRADEOFF + 'bound = "alpha"\nlow = 0\nhigh = "1/2"',
        TRADEOFF + 'bound = "0.99"\nlow = "1/2"\nhigh = "1/2"',
        # the loss of discrete Gaussian noise has no largest value; its μ²/2 is that of N(1/2, 1)
        'kind = "gaussian-dp"\nmechanism = "DiscreteGaussian(parameter=4)"\nmu = "1/2"',
        RELATION + 'claim = "x >= 1"\nwhere = {x = ["1/3", 2]}\nassume = ["x >= 1/3"]',
    ],
)
def test_a_false_claim_is_refuted(text: str) -> None:
    finding, certificate = certify(claim(text))
    assert finding.verdict is Verdict.REFUTED
    assert certificate is not None
    assert checker.check(certificate).problems == []


@pytest.mark.parametrize(
    "text",
    [
        PROFILE + 'bound = "0.4 - epsilon*(epsilon - 1)/10"\nlow = 0\nhigh = "1/2"',
        PROFILE + 'bound = "delta(Gaussian(standard_deviation=1/2), epsilon)"\nlow = 0\nhigh = 2',
        PROFILE + 'bound = "0.13"\nlow = 1\nhigh = 1',
        PRINTED + 'printed = "0.12"',  # halfway, decided exactly
        PRINTED + 'printed = "0.13"',
    ],
)
def test_a_true_claim_holds(text: str) -> None:
    finding, certificate = certify(claim(text))
    assert finding.verdict is Verdict.HOLDS
    assert certificate is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PROFILE + 'bound = "1"\nlow = 2\nhigh = 1', "low=2 ≤ high=1"),
        (PROFILE + 'bound = "1"\nlow = 0\nhigh = "2**(1/2)"', "high=.*to be rational"),
        (
            PROFILE + 'bound = "2 - delta(Gaussian(standard_deviation=1), epsilon)"\n'
            "low = 0\nhigh = 2",
            "bound that does not increase",
        ),
        (
            RELATION + 'claim = "n != 2"\nwhere = {n = [1, 2]}\nassume = ["exp(log(n)) <= 2"]',
            "is not decided in the case",
        ),
        (
            RELATION + 'claim = "x < 1"\n[claims.for_all.x]\nstatement = "0 ≤ x ≤ 1/2"\n'
            'grid = [2]\nlow = "0"\nhigh = "1/2"',
            "for_all.x.grid within x in",
        ),
        (PRINTED + 'printed = "NaN"', "printed='NaN' to be a decimal"),
        (PRINTED + 'printed = "1/8"', "printed='1/8' to be a decimal"),
        (PRINTED + 'printed = "1e999999999"', "an exponent of at most"),
        ("a = " + "[" * 5000, "nested too deeply"),
    ],
)
def test_what_cannot_be_decided_is_an_error(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        certify(claim(text))


@pytest.mark.parametrize("left", ["log(0)", "log(-1)", "gamma(-1)"])
def test_an_undefined_side_is_undecided(left: str) -> None:
    finding, certificate = certify(claim(RELATION + f'claim = "{left} < 1"'))
    assert finding.verdict is Verdict.UNDECIDED
    assert certificate is None


def test_a_step_function_is_not_swept() -> None:
    finding, _ = certify(
        claim(
            RELATION + 'claim = "floor(y) <= 0"\nproof.method = "sweep"\n[claims.for_all.y]\n'
            'statement = "0 ≤ y ≤ 1"\ngrid = ["1/4"]\nlow = "0"\nhigh = "1"'
        )
    )
    assert finding.verdict is Verdict.SUPPORTED
