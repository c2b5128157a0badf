"""Random polynomial statements: none is proved that has a counterexample."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay.verifier.ranges import ProofError, prove
from tests.quick import quick

_COEFFICIENTS = st.lists(st.integers(-6, 6), min_size=9, max_size=9)
_ENDS = st.sampled_from([("0", "1"), ("-1", "2"), ("1/3", "5/2"), ("0", None), ("1", None)])
_PLACES = [Fraction(i, 6) for i in range(13)]
_FAR = Fraction(1000)


def _text(coefficients: list[int]) -> str:
    terms = (f"({c})*x**{i // 3}*y**{i % 3}" for i, c in enumerate(coefficients))
    return " + ".join(terms)


def _value(coefficients: list[int], x: Fraction, y: Fraction) -> Fraction:
    return sum((c * x ** (i // 3) * y ** (i % 3) for i, c in enumerate(coefficients)), Fraction(0))


def _points(low: str, high: str | None) -> list[Fraction]:
    start = Fraction(low)
    if high is None:
        return [*(start + 4 * place for place in _PLACES), _FAR]
    return [start + (Fraction(high) - start) * place / 2 for place in _PLACES]


@pytest.mark.parametrize("method", quick(["positive", "sweep", "identity", "derivative"], 0, 2, 3))
@given(
    coefficients=_COEFFICIENTS,
    first=_ENDS,
    second=_ENDS,
    relation=st.sampled_from([">=", ">", "<="]),
)
@settings(max_examples=40, deadline=None)
def test_what_is_proved_has_no_counterexample(
    method: str,
    coefficients: list[int],
    first: tuple[str, str | None],
    second: tuple[str, str | None],
    relation: str,
) -> None:
    """A polynomial in two variables on a box is compared with 0, and evaluated at 169 points."""
    domains: dict[str, dict[str, Any]] = {}
    for name, (low, high) in (("x", first), ("y", second)):
        domains[name] = {"low": low} if high is None else {"low": low, "high": high}
    proof: dict[str, Any] = {"method": method}
    if method == "sweep":
        proof["pieces"] = 60
    if method == "derivative":
        nested = {"method": "positive"}
        proof |= {"variable": "x", "start": nested, "slope": nested}
    claim = {
        "kind": "relation",
        "id": "x",
        "claim": f"{_text(coefficients)} {relation} 0",
        "for_all": domains,
        "proof": proof,
    }
    try:
        prove(claim, seconds=20)
    except ProofError:
        return
    for x in _points(*first):
        for y in _points(*second):
            value = _value(coefficients, x, y)
            assert {">=": value >= 0, ">": value > 0, "<=": value <= 0}[relation]


@given(coefficients=_COEFFICIENTS, shift=st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_squares_and_positive_coefficients_are_proved(coefficients: list[int], shift: int) -> None:
    """p² ≥ 0, and p² + shift > 0 where p has no negative coefficient."""
    domains = {"x": {"low": "0"}, "y": {"low": "0"}}
    square = f"({_text(coefficients)})**2 >= 0"
    base = {"kind": "relation", "id": "x", "for_all": domains, "proof": {"method": "positive"}}
    assert prove({**base, "claim": square}).theorem
    plain = f"{_text([abs(c) for c in coefficients])} + {shift} > 0"
    assert prove({**base, "claim": plain}).theorem


@given(degree=st.integers(0, 6), ratio=st.sampled_from(["1", "2", "1/3", "x", "x**2"]))
@settings(max_examples=40, deadline=None)
def test_closed_sums_agree_with_written_out_ones(degree: int, ratio: str) -> None:
    """Σ i^p r^i up to a symbolic end, at n = 7, is the sum of eight terms."""
    term = f"i**{degree}*({ratio})**i"
    claim = f"sum(i, 0, n, {term}) - sum(i, 0, n - 1, {term}) == n**{degree}*({ratio})**n"
    base = {
        "kind": "relation",
        "id": "x",
        "for_all": {"n": {"low": "1", "integer": True}, "x": {"above": "0"}},
        "proof": {"method": "identity"},
    }
    assert prove({**base, "claim": claim}).theorem
    with pytest.raises(ProofError):
        prove({**base, "claim": claim.replace("== n", "== 2 + n")})
