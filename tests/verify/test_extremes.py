"""Questions far from the middle: δ next to 1, ε of three hundred digits."""

from __future__ import annotations

import re
from fractions import Fraction

import mpmath
import pytest

from accountant.errors import InvalidInputError
from accountant.mechanisms import Laplace
from accountant.questions import profile
from verify import document
from verify.claims import ApproximateDP
from verify.exact import verify
from verify.expression import Expression
from verify.verdict import Verdict


@pytest.mark.parametrize("nines", [20, 100, 2000])
def test_epsilon_at_a_delta_next_to_one(nines: int) -> None:
    """Far below 0 the Laplace profile is 1 − e^ε: its inverse is the logarithm of 1 − δ."""
    found = profile.epsilon(Laplace(scale=2), "0." + "9" * nines)
    with mpmath.workdps(60):
        true = -nines * mpmath.log(10)
        assert mpmath.mpf(str(found.lower)) <= true <= mpmath.mpf(str(found.upper))
    assert found.relative_width is not None
    assert found.relative_width <= Fraction(1, 10**30)


def test_a_sum_of_too_many_terms() -> None:
    with pytest.raises(InvalidInputError, match="at most 1000000 terms, not 1000000000000"):
        Expression("sum(i, 1, 10**12, 1/i)").value({})


def test_the_worst_case_is_the_infinite_one() -> None:
    """An infinite excess is worse than any factor."""
    claim = document.read_text(
        'schema_version = 1\n[[claims]]\nid = "c"\nkind = "renyi-dp"\n'
        "mechanism = \"Tabulated(p=['1/2', '1/2'], q=[q, 1 - q])\"\n"
        'order = "2"\nepsilon = "0.001"\nwhere = {q = ["1/100", 0, "1/10"]}'
    ).claims[0]
    finding = verify(claim)
    assert finding.verdict is Verdict.REFUTED
    assert finding.witness["case"] == {"q": "0"}


def test_a_delta_beyond_the_usual_decimals_is_described() -> None:
    """δ(1) of this noise is about 10^(−1.9 million): the factor leaves the default context."""
    claim = ApproximateDP(
        id="tiny",
        source="test",
        statement="",
        mechanism="Gaussian(standard_deviation=3000)",
        epsilon="1",
        delta="0.00001",
    )
    finding = verify(claim)
    assert finding.verdict is Verdict.HOLDS
    assert re.search(r"by a factor of \d\.\d+e\+19\d{5}", finding.reason)
