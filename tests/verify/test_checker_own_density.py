"""Densities that are written as formulas: the checker's own modes and integrals."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import AdditiveNoise
from dpassay.accountant.notation import parse
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.questions import profile, utility
from dpassay.verifier import checker
from dpassay.verifier.certificate import certify
from dpassay.verifier.checker.declared import line
from dpassay.verifier.checker.declared.own_density import OWN_DENSITY
from dpassay.verifier.checker.facts import mechanism
from dpassay.verifier.checker.language import evaluate
from dpassay.verifier.checker.laws import hockey_stick
from dpassay.verifier.checker.mechanisms.pairs import pairs
from dpassay.verifier.checker.reals import UnknownError, ball
from dpassay.verifier.claims import ApproximateDP, Relation
from tests.quick import quick
from tests.verify.forge import mutants, sealed
from tests.verify.test_forgeries import EVERY_SLOW, is_true

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
UNBOUNDED = "abs(x)**(-1/2)*exp(-abs(x))"
"""It has one mode, and no value there; the accountant refuses it."""
SEVERAL = [
    "exp(-x**2/2)+exp(-(x-10)**2/2)",
    "(abs(x)<1)+0.5*(abs(x-3)<1)",
    "linear((-3,0),(-2,1),(-1,1/4),(0,1),(1,0))",
    "exp(-abs(abs(x)-1))",
    "x**2*exp(-abs(x))",
    "exp(-abs(x))+0.001*(2<x)*(x<3)",
    "exp(-abs(x))*(x>0)+exp(-x**2)*(x<-1)",
    "exp(-abs(x))*(abs(x)<=x)+exp(-x**2)*(x<-1)",
    "exp(-abs(x+1))*(1+1/(1+exp(-1/x)))",
    "exp(-abs(x))*(1+1/(1+exp(-1/(x-1))))",
    "exp(-abs(x))*(1+1/(1+exp(-1/(x-64))))",
    "exp(-abs(x)-abs(x-1/3))*(1+1/(1+exp(-1/(x-1/3))))",
    "exp(-abs(x+1))*(1+sqrt(1/(1+exp(-1/x))))",
    "exp(-abs(x+1)+sqrt(max(0,x-1)/(x-1)))",
]


def _noise(density: str) -> str:
    return f"AdditiveNoise(density={density!r}, scale='5/4')"


def _checked(claim: Any) -> Any:
    return checker.check(json.loads(json.dumps(certify(claim)[1])))


@pytest.mark.parametrize("density", [*ONE_MODE, UNBOUNDED])
def test_a_density_with_one_mode_is_told_from_its_formula(density: str) -> None:
    assert line.one_mode(density)
    assert line.one_mode(f"({density})*2")


@pytest.mark.parametrize("density", SEVERAL)
def test_a_density_with_several_modes_is_not_taken_for_one(density: str) -> None:
    assert not line.one_mode(density)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("cdf='1/(1+exp(-x))'", UnknownError),
        ("mass='exp(-abs(x))', cdf='1/(1+exp(-x))'", ValueError),
    ],
)
def test_distribution_functions_are_left_open(arguments: str, error: type[Exception]) -> None:
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


@pytest.mark.parametrize("density", quick(ONE_MODE[1::2], 1, 8))
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


def test_a_smaller_shift_that_refutes_stays_with_the_claim() -> None:
    """The full shift lays one of two modes on the other: there δ(1) is 1/2, at half of it 1."""
    noise = "AdditiveNoise(density='exp(-20*(abs(x)-1)**2)', sensitivity=2)"
    _, data = certify(ApproximateDP(id="c", mechanism=noise, epsilon="1", delta="4/5"))
    assert data is not None
    assert Fraction(data["facts"][0]["law"]["distance"]) < 2
    assert checker.check(json.loads(json.dumps(data))).problems == []


SHIFTS = [
    ("x**2*exp(-abs(x))", "1", "1", lambda x: x**2 * np.exp(-abs(x))),
    ("(abs(x)<1)+0.5*(abs(x-3)<1)", "3", "1", lambda x: (abs(x) < 1) + 0.5 * (abs(x - 3) < 1)),
    ("exp(-abs(abs(x)-1))", "2", "1/2", lambda x: np.exp(-abs(abs(x) - 1))),
    ("exp(-20*(abs(x)-1)**2)", "2", "2", lambda x: np.exp(-20 * (abs(x) - 1) ** 2)),
    ("0.7*exp(-x**2/2)+0.3*exp(-(x-4)**2)", "3", "1/2",
     lambda x: 0.7 * np.exp(-(x**2) / 2) + 0.3 * np.exp(-((x - 4) ** 2))),
    ("(1+x**2)**-3+(1+(x-5)**2)**-3", "2", "1/2",
     lambda x: (1 + x**2) ** -3 + (1 + (x - 5) ** 2) ** -3),
    ("exp(-abs(x))*(x>0)+exp(-x**2)*(x<-1)", "2", "-1/2",
     lambda x: np.exp(-abs(x)) * (x > 0) + np.exp(-(x**2)) * (x < -1)),
]  # fmt: skip


@pytest.mark.parametrize(("density", "distance", "epsilon", "f"), quick(SHIFTS, 1))
def test_all_shifts_of_several_modes_are_bounded(
    density: str, distance: str, epsilon: str, f: Callable[[Any], Any]
) -> None:
    """Sums over midpoints are off by their width times the jumps of p, q, and H between shifts."""
    x, width = (np.arange(-(2**15), 2**15) + 0.5) / 2**10, 2.0**-10
    whole, c = np.sum(f(x)) * width, np.exp(float(Fraction(epsilon)))
    for law in pairs(mechanism(f"AdditiveNoise(density={density!r}, sensitivity={distance!r})")):
        assert law["law"] == "own-shifts"
        side = -1 if law["mirrored"] else 1
        most = max(
            np.sum(np.maximum(f(side * (x - t)) - c * f(side * x), 0)) * width / whole
            for t in np.linspace(0, float(Fraction(distance)), 121)
        )
        found = ball(hockey_stick(law, Fraction(epsilon)))
        assert float(found.lower()) * 0.997 <= most <= float(found.upper()) * 1.003
        assert found.rad() <= found.mid() * 1e-5


def test_a_bound_that_the_full_shift_alone_keeps_is_not_proved() -> None:
    """δ(2) is 1 to four digits at half of the sensitivity, and about 1/2 at the full one."""
    noise = "AdditiveNoise(density='exp(-20*(abs(x)-1)**2)', sensitivity=2)"
    _, data = certify(ApproximateDP(id="c", mechanism=noise, epsilon="2", delta="0.9999"))
    assert data is not None
    data["claim"] |= {"delta": "3/5", "statement": "It is (2, 3/5)-DP."}
    data["claimed"]["delta"] = "3/5"
    for value in (data["facts"][0]["value"], {"lower": "0.5", "upper": "0.5"}):
        data["facts"][0]["value"] = value
        assert checker.check(sealed(data)).problems
    _, data = certify(Relation(id="c", claim=f"delta({noise}, 2) <= 1"))
    assert data is not None
    assert checker.check(sealed(data)).problems == []
    data["claim"]["claim"] = data["claim"]["claim"].replace("<= 1", "<= 3/5")
    for text in ("conclusion", "claimed"):
        data[text] = json.loads(json.dumps(data[text]).replace("<= 1", "<= 3/5"))
    assert checker.check(sealed(data)).problems


def test_a_forged_divergence_is_refused() -> None:
    claim = ApproximateDP(id="c", mechanism=_noise("1/(1+x**2)"), epsilon="1/7", delta="1/2")
    data = certify(claim)[1]
    assert data is not None
    text = json.dumps(data)
    lower = data["facts"][0]["value"]["lower"]
    forged = text.replace(lower[:6], f"{float(lower) / 2:.4f}"[:6])
    assert forged != text
    assert checker.check(json.loads(forged)).problems


MASSES = [
    ("exp(-abs(x)**1.5)", 2, lambda z: mpmath.exp(-(abs(mpmath.mpf(z)) ** 1.5))),
    ("exp(-abs(x-2))+exp(-abs(x+3))", 4,
     lambda z: mpmath.exp(-abs(z - 2)) + mpmath.exp(-abs(z + 3))),
    ("exp(-x/2) if x >= 0 else 0", 3, lambda z: mpmath.exp(-mpmath.mpf(z) / 2) if z >= 0 else 0),
    ("exp(-abs(x)/3)*(1+(x>=2))", 2,
     lambda z: mpmath.exp(-mpmath.mpf(abs(z)) / 3) * (1 + (z >= 2))),
    ("steps((0,3),(1,5),(2,1),(3,4),(4,2),(5,0))", 2,
     lambda z: [3, 5, 1, 4, 2][z] if 0 <= z < 5 else 0),
    ("linear((-2,1),(0,3),(2,1/2))", 1, lambda z: {-2: 1, -1: 2, 0: 3, 1: 1.75, 2: 0.5}.get(z, 0)),
    ("exp(-x**2)*(-2<x)*(x<=3)", 3, lambda z: mpmath.exp(-(z**2)) * (-2 < z <= 3)),
]  # fmt: skip


@pytest.mark.parametrize(("mass", "sensitivity", "f"), MASSES)
@pytest.mark.parametrize("epsilon", ["0", "1/2", "9/5"])
def test_masses_are_added_up(
    mass: str, sensitivity: int, f: Callable[[int], Any], epsilon: str
) -> None:
    noise = f"AdditiveNoise(mass={mass!r}, sensitivity={sensitivity})"
    whole, c = sum(map(f, range(-200, 201))), mpmath.exp(float(Fraction(epsilon)))
    with ctx.workprec(256):
        laws = pairs(mechanism(noise))
        found = [ball(hockey_stick(law, Fraction(epsilon))) for law in laws]
    shifts = [sensitivity] if len(laws) == 2 else range(1, sensitivity + 1)
    for value, (k, side) in zip(found, itertools.product(shifts, (1, -1)), strict=True):
        most = sum(max(0, f(side * (z - k)) - c * f(side * z)) for z in range(-200, 201)) / whole
        assert abs(float(value.mid()) - most) <= 1e-12 * most
        assert value.rad() <= value.mid() * 1e-30


@pytest.mark.parametrize("epsilon", ["41/12000", "41/3500", "-1/100"])
def test_a_tail_of_which_some_losses_are_above_epsilon_is_bounded(epsilon: str) -> None:
    law, _ = pairs(mechanism("AdditiveNoise(mass='1/(1+x**2)', sensitivity=30)"))
    z, c = np.arange(-1e5, 1e5, dtype=np.longdouble), np.exp(np.longdouble(Fraction(epsilon)))
    above = 1 / (1 + (z - 30) ** 2) - c / (1 + z**2)
    whole = np.longdouble(mpmath.nstr(mpmath.pi * mpmath.coth(mpmath.pi), 17))
    true, rest = above[above > 0].sum() / whole, 1e-5 * max(0, 1 - c)
    found = ball(hockey_stick(law, Fraction(epsilon)))
    assert float(found.lower()) - 1e-15 <= true + rest
    assert true <= float(found.upper()) + 1e-15
    assert found.rad() < 1e-6


@pytest.mark.parametrize(
    ("honest", "forged", "epsilon", "delta"),
    [
        ("exp(-abs(x))", "exp(-abs(x)) if x < 5 or x > 5 else 100", "1", "1e-9"),
        ("exp(-abs(x))", "exp(-abs(x)) if x < 5 or x > 5 else 0", "1", "1e-9"),
        ("(abs(x)<=1)*1", "(abs(x)<=1)+(5<=x<=5)", "0", "17/50"),
    ],
)
def test_no_mass_stands_alone(honest: str, forged: str, epsilon: str, delta: str) -> None:
    """What a density has at one point is nothing, what masses have there is not."""
    claim = ApproximateDP(
        id="c", mechanism=f"AdditiveNoise(mass={honest!r})", epsilon=epsilon, delta=delta
    )
    text = json.dumps(certify(claim)[1])
    assert checker.check(json.loads(text)).valid
    assert not checker.check(sealed(json.loads(text.replace(honest, forged)))).valid
    with pytest.raises(InvalidInputError, match="neither side"):
        AdditiveNoise(mass=forged)


@pytest.mark.parametrize(("mass", "sensitivity"), quick([case[:2] for case in MASSES], 2, 4, 6))
def test_certificates_of_masses_are_valid(mass: str, sensitivity: int) -> None:
    noise = f"AdditiveNoise(mass={mass!r}, sensitivity={sensitivity})"
    true = profile.delta(parse(noise), "1/7")
    for delta, verdict in (
        (Fraction(true.upper) * (1 + Fraction(1, 10**12)), "HOLDS"),
        (Fraction(true.lower) * (1 - Fraction(1, 10**9)), "REFUTED"),
    ):
        claim = ApproximateDP(id="c", mechanism=noise, epsilon="1/7", delta=str(delta))
        finding, data = certify(claim)
        assert finding.verdict.value == verdict
        found = checker.check(json.loads(json.dumps(data)))
        assert (found.problems, found.taken_as_given) == ([], [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "delta"),
    [
        ("density='(abs(x)<1)+0.5*(abs(x-3)<1)', sensitivity=3", "99/100"),
        ("mass='exp(-abs(x-2))+exp(-abs(x+3))', sensitivity=4", "9/10"),
        ("mass='exp(-abs(x)**1.5)', sensitivity=2", "1/10"),
    ],
)
def test_no_leaf_of_a_certificate_can_be_changed_to_something_false(noise: str, delta: str) -> None:
    claim = ApproximateDP(id="c", mechanism=f"AdditiveNoise({noise})", epsilon="1", delta=delta)
    genuine = json.loads(json.dumps(certify(claim)[1]))
    some = itertools.islice(mutants(genuine), None, None, EVERY_SLOW)
    passed = [mutant for mutant in some if checker.check(mutant.data).valid]
    assert passed
    assert [mutant.change for mutant in passed if not is_true(mutant.data)] == []


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


@pytest.mark.parametrize(
    "law", ["AdditiveNoise(density='-exp(-x**2)')", "AdditiveNoise('exp(-x**2)-2*exp(-4*x**2)')"]
)
def test_what_is_below_0_has_no_variance(law: str) -> None:
    with pytest.raises(UnknownError):
        evaluate(f"variance({law})")


def test_a_power_beside_a_density_is_refused() -> None:
    with pytest.raises(ValueError, match="either"):
        pairs(mechanism("KNorm(scale=1, dimension=1, density='exp(-r)', power=2)"))


@pytest.mark.parametrize(
    ("mass", "outcome"),
    [
        ("exp(-abs(x)**100000)", "INVALID"),  # another law: its δ is 0.212
        ("exp(-x**2)*((9**2000)**2000)**2000", "VALID"),  # the same: the factor cancels
        ("exp(-2**-200000*x**2)", "CONDITIONAL"),  # left open
    ],
)
def test_numbers_of_too_many_digits_end_a_check(mass: str, outcome: str) -> None:
    """They are powers of numbers, or ends of ranges."""
    claim = ApproximateDP(
        id="c", mechanism="AdditiveNoise(mass='exp(-x**2)')", epsilon="1", delta="1/2"
    )
    text = json.dumps(certify(claim)[1])
    found = checker.check(sealed(json.loads(text.replace("exp(-x**2)", mass))))
    assert found.outcome is checker.Outcome[outcome]


def test_steps_end_with_0() -> None:
    with pytest.raises(ValueError, match="ends with 0"):
        pairs(mechanism("AdditiveNoise(density='steps((0,1),(1,1))')"))
