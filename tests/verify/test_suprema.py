"""Verdicts by the least μ and ρ: their certificates, and the checker's own bounds."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from flint import ctx

import dpassay
from verify import certificate, checker, document, seal
from verify.checker import suprema
from verify.checker.arithmetic import UnknownError, compare
from verify.checker.facts import mechanism
from verify.checker.mechanisms import pairs, under

STEP = "PoissonSubsampled(mechanism=Gaussian(standard_deviation='1.1'), sampling_prob='256/60000')"
TRAINING = f"Composed(mechanism={STEP}, count=7032)"
MIXTURE = (
    "MixtureOfGaussians(standard_deviation=2, sensitivities=[0, 1, 2], "
    "sampling_probs=['0.5', '0.3', '0.2'])"
)
BOTH = f"Composed(mechanism=[{MIXTURE}, {STEP}], count=5)"
INTEGERS = (
    "Composed(mechanism=PoissonSubsampled(mechanism=DiscreteGaussian(parameter=2), "
    "sampling_prob='1/10'), count=100)"
)
SAMPLES = (
    "Composed(mechanism=PoissonSubsampled(mechanism=Laplace(scale=1), sampling_prob='1/10'), "
    "count=20)"
)
COINS = "Composed(mechanism=[RandomizedResponse(epsilon='0.1'), RandomizedResponse(epsilon=1)])"
MIXED = "Composed(mechanism=[Gaussian(standard_deviation=2), Laplace(scale=2)], count=3)"
STAIRS = "Staircase(epsilon=1, gamma='0.4')"


def certified(kind: str, noise: str, bound: str, relation: str = "add-remove") -> tuple[str, Any]:
    number = "mu" if kind == "gaussian-dp" else "rho"
    relation = "replace-one" if "Response" in noise else relation
    (claim,) = document.read_text(
        f'schema_version = 1\n[[claims]]\nid = "it"\nstatement = "it"\nkind = "{kind}"\n'
        f'mechanism = "{noise}"\n{number} = "{bound}"\nadjacency = "{relation}"'
    ).claims
    finding, data = certificate.certify(claim)
    return finding.verdict.value, json.loads(json.dumps(data))


@pytest.mark.parametrize(
    ("kind", "noise", "bound"),
    [
        ("gaussian-dp", STEP, "0.91"),
        pytest.param("gaussian-dp", TRAINING, "77", marks=pytest.mark.slow),
        ("gaussian-dp", MIXTURE, "1.01"),
        ("gaussian-dp", BOTH, "3.1"),
        ("zcdp", STEP, "0.42"),
        ("zcdp", TRAINING, "3000"),
        pytest.param("zcdp", MIXTURE, "0.51", marks=pytest.mark.slow),
        pytest.param("zcdp", INTEGERS, "26", marks=pytest.mark.slow),
        ("zcdp", "DiscreteGaussian(parameter=2)", "1/4"),
        ("zcdp", SAMPLES, "0.0958"),
        ("zcdp", COINS, "0.5"),
        ("zcdp", MIXED, "0.7"),
        ("zcdp", STAIRS, "0.445"),
        ("zcdp", "Laplace(scale=1)", "0.36789"),
    ],
)
def test_a_claim_that_holds_has_evidence_that_the_checker_finds_again(
    kind: str, noise: str, bound: str
) -> None:
    verdict, data = certified(kind, noise, bound)
    assert verdict == "HOLDS"
    checked = checker.check(data)
    assert (checked.problems, checked.taken_as_given) == ([], [])


@pytest.mark.parametrize("bound", ["2900", "2905"])
def test_a_refutation_by_a_limit_has_evidence_at_a_large_order(bound: str) -> None:
    verdict, data = certified("zcdp", TRAINING, bound)
    assert verdict == "REFUTED"
    checked = checker.check(data)
    assert (checked.problems, checked.taken_as_given) == ([], [])


@pytest.mark.parametrize(
    ("kind", "noise", "bound", "less", "field"),
    [
        ("gaussian-dp", BOTH, "3.1", "3", "conclusion"),
        ("zcdp", TRAINING, "3000", "2905", "verdict"),
        ("zcdp", "Laplace(scale=1)", "0.38", "0.3678", "verdict"),
        ("zcdp", SAMPLES, "0.096", "0.0956", "verdict"),
    ],
)
def test_a_bound_below_the_least_one_is_found(
    kind: str, noise: str, bound: str, less: str, field: str
) -> None:
    _, data = certified(kind, noise, bound)
    name = "mu" if kind == "gaussian-dp" else "rho"
    data["claim"][name] = data["claimed"][name] = less
    plain = {key: value for key, value in data.items() if key != "seal"}
    checked = checker.check({**plain, "seal": seal.seal(plain)})
    assert field in [path for path, _ in checked.problems]


@pytest.mark.parametrize("noise", [SAMPLES, COINS, MIXED, STAIRS, "DiscreteLaplace(scale=2)"])
def test_the_searched_rho_is_the_one_of_the_accountant(noise: str) -> None:
    relation = "replace-one" if "Response" in noise else "add-remove"
    least = dpassay.rho(dpassay.parse(noise), adjacency=relation)
    above, below = Fraction(least.upper) * 1001 / 1000, Fraction(least.lower) * 999 / 1000
    with ctx.workprec(160):
        laws = pairs(under(mechanism(noise), relation))
        found = [suprema.bounded_rho(law, above) for law in laws]
        assert all(value <= above for value in found)
        assert any(compare(value, ">=", below) for value in found)
        found = [suprema.bounded_rho(law, below) for law in laws]
        assert any(value > below for value in found)


FEW = "Composed(mechanism=PoissonSubsampled(mechanism=Gaussian(standard_deviation='0.8'), "
FEW += "sampling_prob='0.01'), count=2)"


@pytest.mark.parametrize(
    ("noise", "bound"),
    [
        pytest.param(FEW, "1", marks=pytest.mark.slow),
        pytest.param(FEW, "1.7", marks=pytest.mark.slow),
        (STEP, "0.905"),
        pytest.param(TRAINING, "0.5", marks=pytest.mark.slow),
    ],
)
def test_a_false_mu_of_few_samples_is_refuted(noise: str, bound: str) -> None:
    """It took a minute and a half, or was not seen: larger μ than claimed show far out alone."""
    verdict, data = certified("gaussian-dp", noise, bound)
    assert verdict == "REFUTED"
    checked = checker.check(data)
    assert (checked.problems, checked.taken_as_given) == ([], [])


@pytest.mark.slow
def test_a_mu_that_is_just_met_holds() -> None:
    verdict, data = certified("gaussian-dp", FEW.replace("0.8", "2"), "sqrt(1/2)")
    assert verdict == "HOLDS"
    assert checker.check(data).problems == []
    assert certified("gaussian-dp", FEW, "sqrt(3)")[0] == "REFUTED"  # it is sqrt(2)/0.8


SAMPLE = "PoissonSubsampled(mechanism=Gaussian(standard_deviation=1), sampling_prob='{}')"
BOUNDED = "Composed(mechanism=[Gaussian(standard_deviation=2), Laplace(scale=2)])"
DISCRETE = "Composed(mechanism=DiscreteGaussian(parameter=4), count=10)"


@pytest.mark.parametrize(
    ("noise", "relation", "bound", "less"),
    [
        ("DiscreteGaussian(parameter=4)", "add-remove", "0.51", "0.5053"),
        ("DiscreteGaussian(parameter=4)", "add-remove", "0.50533", "0.49"),
        ("DiscreteGaussian(parameter='1/4', sensitivity=3)", "add-remove", "7", "6.9"),
        (SAMPLE.format("1/10"), "replace-one", "1", "0.999"),
        (SAMPLE.format("1/10"), "replace-one", "1.1", "0.9"),
        (SAMPLE.format("9/10"), "replace-one", "1.74", "1.735"),
        (SAMPLE.format("9/10"), "replace-one", "1.7354", "1.7"),
        (f"Composed(mechanism={SAMPLE.format('1/10')}, count=3)", "replace-one", "1.8", "1.73"),
    ],
)
def test_the_least_mu_of_unbounded_losses_is_found_again(
    noise: str, relation: str, bound: str, less: str
) -> None:
    verdict, data = certified("gaussian-dp", noise, bound, relation)
    assert verdict == "HOLDS"
    checked = checker.check(data)
    assert (checked.problems, checked.taken_as_given) == ([], [])
    data["claim"]["mu"] = data["claimed"]["mu"] = less
    plain = {key: value for key, value in data.items() if key != "seal"}
    assert checker.check({**plain, "seal": seal.seal(plain)}).problems


@pytest.mark.parametrize(
    ("noise", "bound"),
    [("DiscreteGaussian(parameter=4)", "0.5053"), (DISCRETE, "1.5827"), (BOUNDED, "0.6992")],
)
def test_a_mu_just_below_the_least_one_is_refuted(noise: str, bound: str) -> None:
    verdict, data = certified("gaussian-dp", noise, bound)
    assert verdict == "REFUTED"
    checked = checker.check(data)
    assert checked.problems == []


@pytest.mark.parametrize(
    ("noise", "bound", "given"),
    [
        (DISCRETE, "1.59", "for all releases together"),
        (MIXED, "1.3", "law 'laplace'"),
    ],
)
def test_a_mu_that_the_checker_does_not_find_is_taken_as_given(
    noise: str, bound: str, given: str
) -> None:
    verdict, data = certified("gaussian-dp", noise, bound)
    assert verdict == "HOLDS"
    checked = checker.check(data)
    assert checked.problems == []
    assert given in " ".join(checked.taken_as_given)


def test_no_least_mu_is_known_of_other_losses() -> None:
    (law,) = pairs(mechanism("Laplace(scale=1)"))
    with pytest.raises(UnknownError, match="least mu"):
        suprema.least_mu(law, Fraction(1))
