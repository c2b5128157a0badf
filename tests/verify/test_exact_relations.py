"""Relations between exact numbers, sweeps of whole boxes, bound names, rounding."""

from __future__ import annotations

import pytest
from flint import ctx

from verify.claims import Relation
from verify.domain import Domain
from verify.exact import verify
from verify.expression import Expression
from verify.verdict import Verdict


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("1/3 + 1/3 == 2/3", Verdict.HOLDS),
        ("1/3 <= 1/3", Verdict.HOLDS),
        ("1/3 < 1/3", Verdict.REFUTED),
        ("sqrt(1/3) != sqrt(3)/3", Verdict.REFUTED),
        ("15/sqrt(27) == 5*sqrt(3)/3", Verdict.HOLDS),
        ("sqrt(2) >= sqrt(3)", Verdict.REFUTED),
        ("-sqrt(2) > -sqrt(3)", Verdict.HOLDS),
        ("exp(1)**2 == exp(2)", Verdict.HOLDS),
        ("exp(1)**2 < exp(2)", Verdict.REFUTED),
        ("sqrt(2)*sqrt(3) == sqrt(6)", Verdict.HOLDS),
        ("sqrt(3 + 2*sqrt(2)) == 1 + sqrt(2)", Verdict.HOLDS),
        ("sqrt(3 + 2*sqrt(2)) != 1 + sqrt(2)", Verdict.REFUTED),
        ("mu(Gaussian(standard_deviation=3)) == 1/3", Verdict.HOLDS),
        ("gamma(1/3)*gamma(2/3) == 2*pi()/sqrt(3)", Verdict.UNDECIDED),  # true
    ],
)
def test_exact_sides_are_compared_exactly(claim: str, verdict: Verdict) -> None:
    assert verify(Relation(id="exact", claim=claim)).verdict is verdict


def test_a_domain_without_ends_is_only_supported() -> None:
    boxed = Domain(statement="x in [0, 1]", grid=["0", "1"], low="0", high="1")
    listed = Domain(statement="n ≥ 1", grid=[1, 2])
    claim = "x/(x + n) < 1"
    proved = verify(
        Relation(id="a", claim="x < 2", proof={"method": "sweep"}, for_all={"x": boxed})
    )
    assert proved.verdict is Verdict.HOLDS
    both = {"x": boxed, "n": listed}
    found = verify(Relation(id="b", claim=claim, proof={"method": "sweep"}, for_all=both))
    assert found.verdict is Verdict.SUPPORTED


def test_a_sum_in_one_name_does_not_evaluate_the_others() -> None:
    names = {"first": "sum(i, 1, 3, i)", "second": "first + product(i, 1, 3, i)"}
    assert verify(Relation(id="c", claim="second == 12", let=names)).verdict is Verdict.HOLDS


@pytest.mark.parametrize("precision", [20, 53, 128, 512])
def test_rounding_does_not_depend_on_the_precision(precision: int) -> None:
    with ctx.workprec(precision):
        up = Expression("round_up(log(2)/2)").exact({})
        down = Expression("round_down(log(2)/2)").exact({})
    assert str(up) == "0.3465735902799726547086160607290882840378"
    assert str(down) == "0.3465735902799726547086160607290882840377"
