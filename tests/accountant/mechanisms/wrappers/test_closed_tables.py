"""Tables whose probabilities are formulas."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant import notation
from dpassay.accountant.mechanisms import Channel, Composed, Tabulated
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile
from dpassay.verifier.cli import main

_TOTAL = "(exp(1)+2)"
RESPONSE = Channel(
    [[f"exp(1)/{_TOTAL}" if i == j else f"1/{_TOTAL}" for j in range(3)] for i in range(3)]
)
THREE = Channel(
    [["exp(1)/(exp(1)+1)", "1/(1+exp(1))"], ["1-sqrt(2)/2", "sqrt(2)/2"], ["1/3", "2/3"]]
)


def long() -> Channel:
    """Return a table of formulas with sums of 20 and 21 terms, which takes seconds to read."""
    lengths = (20, 21)
    sums = ["+".join(f"exp({i}/{n})" for i in range(n)) for n in lengths]
    entries = zip(sums, lengths, strict=True)
    first = [f"exp({i}/{n})/(2*({all_of}))" for all_of, n in entries for i in range(n)]
    return Channel([first, ["1/41"] * 41])


def test_a_table_is_the_largest_of_its_pairs_in_mpmath() -> None:
    with mpmath.workdps(50):
        e, root = mpmath.e, mpmath.sqrt(2) / 2
        third = mpmath.mpf(1) / 3
        rows = [[e / (e + 1), 1 / (e + 1)], [1 - root, root], [third, 1 - third]]
        largest = max(
            sum(max(a - mpmath.exp(0.5) * b, mpmath.mpf(0)) for a, b in zip(p, q, strict=True))
            for p in rows
            for q in rows
        )
        found = profile.delta(THREE, "1/2")
        assert mpmath.mpf(str(found.lower)) <= largest <= mpmath.mpf(str(found.upper))
        assert found.digits > 30


@pytest.mark.parametrize("made", [RESPONSE, THREE], ids=["response", "three"])
def test_the_notation_reads_back(made: Channel) -> None:
    assert notation.parse(repr(made)) == made
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("sqrt(8)/4 - 1/sqrt(2)", 0),
        ("+exp(1e0)**.5*exp(-5.e-1)", 1),
        ("exp(2)/(exp(1)*exp(1/2))**2*exp(1)", 1),
        ("(sqrt(2)+sqrt(3))**2 - 2*sqrt(6)", 5),
        ("(exp(2)-1)/(exp(1)-1) - exp(1)", 1),
        ("exp(sqrt(2))*exp(-sqrt(8)/2)", 1),
    ],
)
def test_equal_numbers_are_found_to_be_equal(text: str, value: int) -> None:
    assert exact(text).rational == value


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 9)), min_size=1, max_size=5))
def test_a_formula_has_the_value_that_mpmath_has(terms: list[tuple[int, int]]) -> None:
    text = "+".join(f"({a})*sqrt({b})*exp({a}/{b})" for a, b in terms)
    with mpmath.workdps(30):
        near = mpmath.fsum(a * mpmath.sqrt(b) * mpmath.exp(mpmath.mpf(a) / b) for a, b in terms)
        found = mpmath.mpf(exact(f"{text}+1").ball().mid().str(40, radius=False))
        assert abs(found - 1 - near) < 1e-12 * (1 + abs(near))


@pytest.mark.parametrize("power", [308, 309])
def test_an_exponent_may_be_larger_than_a_float(power: int) -> None:
    one, two = f"exp(-1e{power})", f"exp(-1e{power}-1)"
    assert profile.epsilon(Channel([[one, f"1-{one}"], [two, f"1-{two}"]]), 0) == Interval.of_exact(
        1
    )


def test_long_formulas_of_different_rows_are_balls() -> None:
    sums = ["+".join(f"exp(.{n}{i**n:07d})" for i in range(50)) for n in (3, 4)]
    rows = [[f"1/(1+{each})", f"1-1/(1+{each})"] for each in sums]
    with mpmath.workdps(30):
        p, q = (
            1 / (1 + mpmath.fsum(mpmath.exp(f".{n}{i**n:07d}") for i in range(50))) for n in (3, 4)
        )
        found = profile.epsilon(Channel(rows), 0)
        assert abs(mpmath.mpf(str(found.lower)) - mpmath.log(p / q)) < 1e-20


@pytest.mark.parametrize("digits", [60, 95, 200])
def test_denominators_that_are_nearly_0_are_composed(digits: int) -> None:
    """The first entries are x/(x + y) and y/(x + y), x being what the first digits of e lack.

    Below are the same rows twice; adaptive choices of rows reach no more than the upper end.
    """
    with mpmath.workdps(3 * digits):
        near = mpmath.nstr(mpmath.e, digits + 20)[:digits]
        x, y = mpmath.e - mpmath.mpf(near), mpmath.sqrt(2) * mpmath.mpf(10) ** -digits
        p, q = [x / (x + y), y / (x + y)], [mpmath.mpf("0.25"), mpmath.mpf("0.75")]
        both = [[u * v for u in law for v in law] for law in (p, q)]
        found = [
            sum(max(u - mpmath.exp("0.1") * v, 0) for u, v in zip(one, other, strict=True))
            for one, other in (both, both[::-1])
        ]
    left, right = f"(exp(1)-{near})", f"sqrt(2)*1e-{digits}"
    made = Channel([[f"{part}/({left}+{right})" for part in (left, right)], ["1/4", "3/4"]])
    delta = profile.delta(Composed(made, 2), "0.1")
    same_rows = Decimal(mpmath.nstr(max(found), 40))
    assert same_rows * (1 - Decimal("1e-9")) < delta.lower <= same_rows <= delta.upper
    assert delta.upper < Decimal("1.05") * delta.lower  # adaptive choices gain so much at most


@pytest.mark.parametrize(
    ("made", "claim", "outcome"),
    [
        (RESPONSE, "0.5 0.2267", "VALID"),
        (RESPONSE, "1 0", "CONDITIONAL"),
        (RESPONSE, "0.999 0", "VALID"),
        (Composed(RESPONSE, 10), "0.5 0.79", "VALID"),
        (THREE, "0.5 0.264", "VALID"),
        pytest.param(Composed(THREE, 3), "0.5 0.664", "VALID", marks=pytest.mark.slow),
        pytest.param(long, "0.5 0.9", "VALID", marks=pytest.mark.slow),
        (Tabulated(["exp(-1)", "1-exp(-1)"], ["1/2", "1/2"]), "0.1 0.1", "VALID"),
    ],
)
def test_certificates_are_checked(
    made: Channel | Callable[[], Channel],
    claim: str,
    outcome: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "certificate.json"
    epsilon, delta = claim.split()
    asked = [
        "verify",
        repr(made() if callable(made) else made),
        "--epsilon",
        epsilon,
        "--delta",
        delta,
    ]
    main([*asked, "--certificate", str(path), "--quiet"])
    capsys.readouterr()
    main(["check", str(path), "--json"])
    (found,) = json.loads(capsys.readouterr().out)["certificates"]
    assert found["outcome"] == outcome
    assert not found["problems"]
