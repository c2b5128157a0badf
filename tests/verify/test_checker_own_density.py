"""Densities that are written as formulas: the checker's own modes and integrals."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from accountant.mechanisms import AdditiveNoise
from accountant.notation import parse
from accountant.numbers.exact import exact
from accountant.questions import profile, utility
from tests.quick import quick
from verify import checker
from verify.certificate import certify
from verify.checker.declared import line
from verify.checker.declared.own_density import OWN_DENSITY
from verify.checker.facts import mechanism
from verify.checker.mechanisms.pairs import pairs
from verify.checker.reals import UnknownError, ball
from verify.claims import ApproximateDP, Relation

ONE_MODE = [
    "exp(-x)/(1+exp(-x))**2",
    "exp(-sqrt(abs(x)))",
    "exp(-abs(x)**1.5)",
    "exp(-abs(x)**3)",
    "exp(-x**4)",
    "(1+x**2/3)**-2",
    "(1+x**2/5)**-3",
    "1/(1+x**2)",
    "1/cosh(x)",
    "0.7*exp(-x**2/2)+0.3*exp(-abs(x)/3)",
    "exp(-x) if x > 0 else exp(2*x)",
    "exp(-x**2/2) if abs(x) < 3 else 0",
    "exp(-(x-1)**2)+exp(-(x-1.3)**2/2)",
    "linear((-1,0),(0,3),(2,1),(3,0))",
    "loglinear((-1,1),(0,3),(2,1))",
    "steps((-1,1),(0,3),(2,1),(3,0))",
    "exp(-max(0, x))*(x > -1)",
    "exp(-abs(x-3)**3)",
]
SEVERAL = [
    "exp(-x**2/2)+exp(-(x-10)**2/2)",
    "(abs(x)<1)+0.5*(abs(x-3)<1)",
    "linear((-3,0),(-2,1),(-1,1/4),(0,1),(1,0))",
    "exp(-abs(abs(x)-1))",
    "x**2*exp(-abs(x))",
    "exp(-abs(x))+0.001*(2<x)*(x<3)",
]


def _noise(density: str) -> str:
    return f"AdditiveNoise(density={density!r}, scale='5/4')"


def _checked(claim: Any) -> Any:
    return checker.check(json.loads(json.dumps(certify(claim)[1])))


@pytest.mark.parametrize("density", ONE_MODE)
def test_a_density_with_one_mode_is_told_from_its_formula(density: str) -> None:
    assert line.one_mode(density)
    assert line.one_mode(f"({density})*2")


@pytest.mark.parametrize("density", SEVERAL)
def test_a_density_with_several_modes_is_not_taken_for_one(density: str) -> None:
    assert not line.one_mode(density)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("mass='exp(-abs(x))'", UnknownError),
        ("cdf='1/(1+exp(-x))'", UnknownError),
        ("mass='exp(-abs(x))', cdf='1/(1+exp(-x))'", ValueError),
    ],
)
def test_masses_and_distribution_functions_are_left_open(
    arguments: str, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"masses|function"):
        pairs(mechanism(f"AdditiveNoise({arguments})"))


def test_pieces_whose_ends_are_irrational_are_left_open() -> None:
    with pytest.raises(UnknownError, match="rational"):
        line.one_mode("exp(-abs(x)) if abs(x) < sqrt(2) else 0")


@pytest.mark.parametrize("density", quick(ONE_MODE, 0, 1, 8, 10, 11, 15))
def test_divergences_are_those_of_the_accountant(density: str) -> None:
    text = _noise(density)
    known = profile.worst_pairs(parse(text), None, None)
    for law in pairs(mechanism(text)):
        (theirs,) = (
            (p for p in known if law["mirrored"] == getattr(p, "mirrored", None))
            if (len(known) > 1)
            else known
        )
        for epsilon in ("0", "2/3", "3"):
            value = ball(OWN_DENSITY.hockey_stick(law, Fraction(epsilon)))  # type: ignore[misc]
            assert value.overlaps(theirs.hockey_stick(exact(epsilon)))
            assert value.rad() <= value.mid() * 1e-14 or value.upper() < 1e-40


@pytest.mark.parametrize("density", quick(ONE_MODE, 3, 6, 16, 17))
def test_certificates_on_both_sides_of_delta_are_valid(density: str) -> None:
    true = profile.delta(parse(_noise(density)), "1/7")
    for delta, verdict in (
        (2 * Fraction(true.upper), "HOLDS"), (Fraction(true.lower) / 2, "REFUTED")
    ):  # fmt: skip
        claim = ApproximateDP(
            id="c", mechanism=_noise(density), epsilon="1/7", delta=str(min(delta, Fraction(1)))
        )
        finding, data = certify(claim)
        assert finding.verdict.value == verdict
        found = checker.check(json.loads(json.dumps(data)))
        assert (found.problems, found.taken_as_given) == ([], [])


@pytest.mark.parametrize(
    ("density", "epsilon"),
    [("1/cosh(x)", "4/5"), ("exp(-x)/(1+exp(-x))**2", "4/5"), ("(1+x**2/3)**-2", "9/10"),
     ("exp(-x) if x > 0 else exp(2*x)", "8/5"), ("loglinear((-1,1),(0,3),(2,1))", None)],
)  # fmt: skip
def test_a_pure_guarantee_is_valid(density: str, epsilon: str | None) -> None:
    found = _checked(
        ApproximateDP(id="c", mechanism=_noise(density), epsilon=epsilon or "1", delta="0")
    )
    assert (found.problems, found.taken_as_given) == ([], [])


def test_a_smaller_shift_that_refutes_stays_with_the_claim() -> None:
    """The full shift lays one of two modes on the other: there δ(1) is 1/2, at half of it 1."""
    noise = "AdditiveNoise(density='exp(-20*(abs(x)-1)**2)', sensitivity=2)"
    _, data = certify(ApproximateDP(id="c", mechanism=noise, epsilon="1", delta="4/5"))
    assert data is not None
    assert Fraction(data["facts"][0]["law"]["distance"]) < 2
    assert checker.check(json.loads(json.dumps(data))).problems == []


def test_a_worst_shift_of_several_modes_is_taken_as_given() -> None:
    claim = ApproximateDP(id="c", mechanism=_noise(SEVERAL[0]), epsilon="1", delta="1/2")
    found = _checked(claim)
    assert found.problems == []
    assert found.taken_as_given == ["that the worst shift of AdditiveNoise is as it is written"]


def test_a_forged_divergence_is_refused() -> None:
    claim = ApproximateDP(id="c", mechanism=_noise("1/(1+x**2)"), epsilon="1/7", delta="1/2")
    data = certify(claim)[1]
    assert data is not None
    text = json.dumps(data)
    lower = data["facts"][0]["value"]["lower"]
    forged = text.replace(lower[:6], f"{float(lower) / 2:.4f}"[:6])
    assert forged != text
    assert checker.check(json.loads(forged)).problems


@pytest.mark.parametrize("density", quick(["(1+x**2/5)**-3", ONE_MODE[10]], 1))
def test_moments_are_those_of_the_accountant(density: str) -> None:
    text = _noise(density)
    (variance,) = utility.variance(AdditiveNoise(density, scale="5/4"))
    for claim in (
        f"variance({text}) <= {Fraction(variance.upper) * 2}",
        f"variance({text}) >= {Fraction(variance.lower) / 2}",
    ):
        found = _checked(Relation(id="c", claim=claim))
        assert (found.problems, found.taken_as_given) == ([], [])


def test_a_renyi_divergence_is_that_of_the_accountant() -> None:
    text = _noise(ONE_MODE[10])
    found = _checked(Relation(id="c", claim=f"renyi({text}, 3/2) <= 1"))
    assert (found.problems, found.taken_as_given) == ([], [])


@pytest.mark.parametrize(("dimension", "delta"), [(2, "1/10"), (2, "1/3"), (7, "1/10"), (7, "1/3")])
def test_noise_that_falls_with_a_norm_is_valid(dimension: int, delta: str) -> None:
    text = f"KNorm(scale='3/4', dimension={dimension})"
    found = _checked(ApproximateDP(id="c", mechanism=text, epsilon="1/7", delta=delta))
    assert (found.problems, found.taken_as_given) == ([], [])


@pytest.mark.parametrize("delta", ["1/5", "1/100"])
def test_noise_that_falls_with_the_square_of_a_length_is_gaussian(delta: str) -> None:
    text = "KNorm(scale=3, dimension=10, power=2)"
    found = _checked(ApproximateDP(id="c", mechanism=text, epsilon="1/2", delta=delta))
    assert (found.problems, found.taken_as_given) == ([], [])


def test_noise_that_falls_with_another_power_of_a_length_is_conditional() -> None:
    text = "KNorm(scale=3, dimension=3, power='3/2')"
    found = _checked(ApproximateDP(id="c", mechanism=text, epsilon="1/2", delta="1/5"))
    assert found.problems == []
    assert any("power of a norm" in line for line in found.taken_as_given)
