"""Claims about compositions and subsampled releases: verdict, certificate, independent check."""

from __future__ import annotations

import json

import pytest

from verify import certificate, checker, document

COIN = "Composed(mechanism=RandomizedResponse(epsilon='0.1'), count=100)"
GAUSSIAN = "Composed(mechanism=Gaussian(standard_deviation=100), count=100)"
LAPLACE = "Composed(mechanism=[Laplace(scale=3), Composed(mechanism=Laplace(scale=6), count=2)])"
SINGLE = "Composed(mechanism=[Composed(mechanism=Laplace(scale=3))])"
STEP = "PoissonSubsampled(mechanism=Gaussian(standard_deviation='1.1'), sampling_prob='256/60000')"
FULL = "Composed(mechanism=PoissonSubsampled(mechanism=Laplace(scale=3), sampling_prob=1), count=2)"
SHORT = "Composed([Gaussian(standard_deviation=3), Gaussian(standard_deviation=4)], count=2)"
MIXED = "Composed(mechanism=[Gaussian(standard_deviation=2), Laplace(scale=2)], count=3)"
MANY = "Composed(mechanism=Laplace(scale=1000), count=1000000000)"
MOST = "Composed(mechanism=[Laplace(scale=10), RandomizedResponse(epsilon='0.1')], count=10**12)"
COINS = "Composed(mechanism=RandomizedResponse(epsilon='0.001'), count=10**12)"
PAIRED = (
    "Composed(mechanism=[RandomizedResponse(epsilon='0.01'), RandomizedResponse(epsilon='0.025')], "
    "count=1000000000)"
)
INTEGERS = "Composed(mechanism=DiscreteGaussian(parameter=2), count=1000000)"
SAMPLE = "PoissonSubsampled(mechanism=Laplace(scale=1), sampling_prob='1/10')"
THREE = (
    "MixtureOfGaussians(standard_deviation=2, sensitivities=[0, 1, 2], "
    "sampling_probs=['0.5', '0.3', '0.2'])"
)
BOTH = f"Composed(mechanism=[{STEP}, DiscreteLaplace(scale=3)])"

CASES = [
    (f'kind = "approximate-dp"\nmechanism = "{COIN}"\nepsilon = 1\ndelta = "0.1256884"', True),
    (f'kind = "approximate-dp"\nmechanism = "{COIN}"\nepsilon = 1\ndelta = "0.1256883"', False),
    (f'kind = "pure-dp"\nmechanism = "{COIN}"\nepsilon = 10', True),
    (f'kind = "pure-dp"\nmechanism = "{COIN}"\nepsilon = "9.999"', False),
    (f'kind = "zcdp"\nmechanism = "{COIN}"\nrho = "1/2"', True),
    (f'kind = "approximate-dp"\nmechanism = "{GAUSSIAN}"\nepsilon = 1\ndelta = "0.127"', True),
    (f'kind = "gaussian-dp"\nmechanism = "{GAUSSIAN}"\nmu = "0.1"', True),
    (f'kind = "gaussian-dp"\nmechanism = "{SHORT}"\nmu = "0.6"', True),
    (f'kind = "gaussian-dp"\nmechanism = "{GAUSSIAN}"\nmu = "0.0999"', False),
    (f'kind = "approximate-dp"\nmechanism = "{LAPLACE}"\nepsilon = "0.5"\ndelta = "0.02"', False),
    (f'kind = "approximate-dp"\nmechanism = "{MANY}"\nepsilon = 634\ndelta = "1e-5"', True),
    (f'kind = "approximate-dp"\nmechanism = "{MANY}"\nepsilon = 633\ndelta = "1e-5"', False),
    (f'kind = "approximate-dp"\nmechanism = "{MOST}"\nepsilon = "1e10"\ndelta = "1e-5"', True),
    (f'kind = "approximate-dp"\nmechanism = "{COINS}"\nepsilon = 504264\ndelta = "1e-5"', True),
    (f'kind = "approximate-dp"\nmechanism = "{COINS}"\nepsilon = 504263\ndelta = "1e-5"', False),
    (f'kind = "approximate-dp"\nmechanism = "{PAIRED}"\nepsilon = 366114\ndelta = "1e-5"', True),
    (f'kind = "approximate-dp"\nmechanism = "{PAIRED}"\nepsilon = 366113\ndelta = "1e-5"', False),
    (f'kind = "approximate-dp"\nmechanism = "{SINGLE}"\nepsilon = "0.1"\ndelta = "0.2"', True),
    (f'kind = "approximate-dp"\nmechanism = "{MIXED}"\nepsilon = 1\ndelta = "0.2"', True),
    (f'kind = "approximate-dp"\nmechanism = "{MIXED}"\nepsilon = 1\ndelta = "0.19"', False),
    (f'kind = "zcdp"\nmechanism = "{MIXED}"\nrho = "0.7"', True),
    (f'kind = "renyi-dp"\nmechanism = "{MIXED}"\norder = 3\nepsilon = "1.9"', False),
]
ADD_REMOVE = [
    (f'kind = "approximate-dp"\nmechanism = "{STEP}"\nepsilon = 1\ndelta = "2.1e-13"', True),
    (f'kind = "approximate-dp"\nmechanism = "{STEP}"\nepsilon = 1\ndelta = "2e-13"', False),
    (f'kind = "approximate-dp"\nmechanism = "{FULL}"\nepsilon = "0.5"\ndelta = "0.1"', True),
    (f'kind = "approximate-dp"\nmechanism = "{INTEGERS}"\nepsilon = 253015\ndelta = "1e-5"', True),
    (f'kind = "approximate-dp"\nmechanism = "{INTEGERS}"\nepsilon = 253014\ndelta = "1e-5"', False),
    (f'kind = "approximate-dp"\nmechanism = "{BOTH}"\nepsilon = 1\ndelta = "1e-6"', True),
    (f'kind = "approximate-dp"\nmechanism = "{THREE}"\nepsilon = "1/10"\ndelta = "0.2"', True),
    (f'kind = "approximate-dp"\nmechanism = "{THREE}"\nepsilon = "1/10"\ndelta = "1e-3"', False),
    (f'kind = "renyi-dp"\nmechanism = "{THREE}"\norder = 3\nepsilon = 1', True),
    (f'kind = "renyi-dp"\nmechanism = "{SAMPLE}"\norder = "2.5"\nepsilon = 1', True),
    (f'kind = "zcdp"\nmechanism = "{SAMPLE}"\nrho = "1/5"', True),
]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        *CASES,
        *(
            pytest.param(
                f'{text}\nadjacency = "add-remove"',
                holds,
                marks=[pytest.mark.slow] * (BOTH in text or THREE in text),
            )
            for text, holds in ADD_REMOVE
        ),
    ],
)
def test_a_verdict_and_a_certificate_that_the_checker_accepts(text: str, holds: bool) -> None:
    (claim,) = document.read_text(
        f'schema_version = 1\n[[claims]]\nid = "it"\nstatement = "it"\n{text}'
    ).claims
    finding, data = certificate.certify(claim)
    assert finding.verdict.value == ("HOLDS" if holds else "REFUTED"), finding.reason
    checked = checker.check(json.loads(json.dumps(data)))
    assert checked.problems == []
    if (
        "000)" in text
        or "Gaussian(standard_deviation=100)" in text
        or "[Laplace" in text
        or "[Composed" in text
    ):
        assert not any(entry.startswith("the law") for entry in checked.taken_as_given)


@pytest.mark.parametrize("count", ["0", "'3/2'"])
def test_the_checker_refuses_a_count_that_is_none(count: str) -> None:
    from verify.checker.facts import mechanism

    with pytest.raises(ValueError, match="count"):
        mechanism(f"Composed(mechanism=Gaussian(standard_deviation=1), count={count})")
