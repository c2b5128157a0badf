"""False statements, written by hand against one weak place each: none is ever VALID."""

from __future__ import annotations

import time
from typing import Any

import pytest

from dpassay.verifier.kernel import Checked, Outcome
from dpassay.verifier.kernel import check as checked
from dpassay.verifier.kernel.numbers import Budget

Data = dict[str, Any]
BOX: Data = {"type": "Gaussian", "objective": "total", "space": {"type": "Box", "bounds": ["1"]}}
LOCAL = "Channel(matrix=[['3/4','1/4',0],['1/4','3/4',0],[0,0,1]], neighbours=[[0,1]])"
NOISY = "DiscreteLaplace(scale=1"
ROOTS = "LaplaceVector(scale=1, shifts=[{}, sqrt(2) - 1600e-117])".format(
    ", ".join(["sqrt(2) - 915e-117"] * 999)
)
WORDS = {"s": {"statement": "s > 100", "grid": ["200"]}}
POSITIVE = {"s": {"above": "0"}}


def check(kind: str, witness: Data | None = None, verdict: str = "HOLDS", **fields: Any) -> Checked:
    theorem = {"kind": kind, "verdict": verdict, **fields}
    return checked({"version": 2, "theorem": theorem, "lemmas": [], "witness": witness or {}})


def of(kind: str, **fields: Any) -> Data:
    return {"kind": kind, **fields}


def relation(claim: str, **fields: Any) -> Data:
    return of("relation", claim=claim, **fields)


def dp(mechanism: str, epsilon: str, delta: str, adjacency: str | None = None) -> Data:
    fields = {"mechanism": mechanism, "epsilon": epsilon, "delta": delta, "adjacency": adjacency}
    return {"kind": "approximate-dp", **fields}


FALSE: dict[str, Data] = {
    "words among the listed values": of(
        "approximate-dp",
        mechanism="Laplace(scale=s)",
        epsilon="1/s",
        delta="1e-30",
        where={"s": ["1", "2"], "lemmas": ["gaussian"]},
    ),
    # arguments outside what a mechanism may have
    "true and false as numbers": dp("Laplace(scale=1, l1_sensitivity=False)", "0", "0"),
    "no release": dp("Composed(Gaussian(1), count=False)", "0", "0.01"),
    "a pool of less than no level": of(
        "gaussian-dp", mechanism="BridgedTree(steps=4, arities=[2, 2], mu=1, pooled=-1)", mu="0"
    ),
    "integer noise on half a score": dp(f"{NOISY}, sensitivity=0.7)", "0", "0.01"),
    "half a score over a range": of(
        "pure-dp", mechanism=f"{NOISY}, sensitivity=s)", epsilon="s", for_all=POSITIVE
    ),
    "two calibrations": dp("BinaryTree(steps=8, epsilon='1e-9', mu=1)", "1", "0.2"),
    "a guarantee between quotation marks": dp(
        "BridgedTree(steps=8, arities=[8], mu=1, released=') is (0, 0)-DP, (')", "1", "0.2"
    ),
    "an unknown noise": dp("TopSelections(epsilon=1, selected=1, noise='Gaussian')", "1", "0"),
    "half a sparsity": of(
        "gaussian-dp",
        mechanism="GeneralGaussian(covariance=Isotropic(dimension=9, variance=1),"
        " space=SparseBox(dimension=9, sparsity=s))",
        mu="sqrt(s)",
        for_all={"s": {"above": "0", "high": "9"}},
    ),
    "nearly equal roots": of("pure-dp", mechanism=ROOTS, epsilon="1000*sqrt(2) - 12e-112"),
    # lemmas outside their conditions
    "others far from both records": dp(f"Shuffled({LOCAL}, 10000)", "0.2", "1e-3", "replace-one"),
    "batches of batches": dp(
        "Shuffled(Shuffled(RandomizedResponse(1), 2), 10000)", "0.2", "1e-3", "replace-one"
    ),
    "a sample of records far from both": dp(
        f"SampledWithoutReplacement({LOCAL}, 1, 10)", "0.3", "0", "replace-one"
    ),
    "a population larger than its sample": dp(
        "SampledWithoutReplacement(SampledWithoutReplacement(Laplace(1), 1, 1000000), 10, 10)",
        "0.2",
        "1e-3",
        "replace-one",
    ),
    "noise of halves of irrational numbers": dp(
        "DiscreteCorrelatedGaussian(3, 1, sqrt(2))", "1", "0.5", "replace-one"
    ),
    "a single participation of three": dp(
        "MatrixMechanism('identity', 1, 4, 'single', participations=3)", "1", "0.2"
    ),
    "levels of one cell each": relation("mu(BridgedTree(4, [4, 1], mu=1)) < 3/4"),
    # densities, and laws that are not alike in both directions
    "a density without an integral": of(
        "pure-dp", mechanism="AdditiveNoise(density='1 + 0*x', scale=2)", epsilon="0"
    ),
    "a density that sees a variable of the theorem": {
        **dp("AdditiveNoise(density=exp(-x**2/2), scale=1)", "1/2", "0.3"),
        "where": {"x": ["0"]},
    },
    "a composition with a sampled density": dp(
        "Composed([PoissonSubsampled(AdditiveNoise(density='exp(-abs(x))', scale=1/2), 1/4),"
        " Tabulated(p=['236/250', '14/250'], q=['19/25', '6/25'])])",
        "1.2",
        "0.06",
        "add-remove",
    ),
    "Rényi divergences of losses that are larger in the other direction": of(
        "renyi-dp",
        mechanism="Composed([PoissonSubsampled(Laplace(1), 1/2),"
        " Tabulated(p=['99/100', '1/100'], q=['1/2', '1/2'])])",
        order="2",
        epsilon="3.377",
        adjacency="add-remove",
    ),
    # lattices
    "an epsilon far below 0": dp("Composed([Laplace(1), DiscreteLaplace(1)], 3)", "-1e30", "0.1"),
    "an epsilon near 0": {
        **dp("Composed(Laplace(scale='1e200'), 2)", "sqrt(2)*sqrt(3) - sqrt(6)", "1e-300"),
        "witness": {"step": "1e-201", "bits": "2000"},
    },
    # statements
    "an assumption that is too close to call": of(
        "gaussian-dp",
        mechanism="Gaussian(s)",
        mu="1/500",
        where={"s": ["1", "1000"]},
        assume=["(1000 - s)*(sqrt(2)*sqrt(3) - sqrt(6)) <= 0"],
    ),
    "a limit at the other end": of(
        "limit", expression="exp(-x)", variable="x", over={"low": "0", "high": "-inf"}, limit="0"
    ),
    "a power of what tends to 0": of(
        "limit", expression="exp(-x)**(1/x)", variable="x", over={"low": "1"}, limit="1"
    ),
    "a power that is less than its limit": relation(
        "exp(-x)**(1/x) >= 1/2",
        for_all={"x": {"low": "1"}},
        witness={"proof": {"method": "derivative", "variable": "x", "from": "infinity"}},
    ),
    "a tolerance below -1": of(
        "optimality", value="-10", tolerance="-2", among={**BOX, "mu": "1"}, dual={"law": "corners"}
    ),
    "a box with the bound of another space": of(
        "optimality",
        value="1",
        among={**BOX, "mu": "1", "space": {**BOX["space"], "bound": "1/100"}},
        dual={"law": "corners"},
    ),
    "a relation that is none": relation(
        "delta(PoissonSubsampled(Gaussian(1), 1/10), 1, adjacency='replace_one') <= 0.02"
    ),
    "an argument of the question": relation(
        "mu(Gaussian(s), l2_sensitivity=5) <= 1/s", for_all=POSITIVE
    ),
    "a probability of more than 1": relation("beta_lower(1, 1, 2) > 1"),
    "a tail below 0": relation("gamma_upper(-1/2, 1) < 0"),
    "half an index": relation("product(i, 1/2, 5/2, i) == 0"),
    "half a support": relation("count_noise_delta(3, 1/2, 2.9) == count_noise_delta(3, 1/2, 2)"),
    "half a coordinate": relation("variance(Gaussian(2), 1/2) == 4"),
    "one over what is infinite": relation("1/epsilon(Gaussian(1), 0) == 0"),
    "a divergence that is no number": relation(
        "exp(-renyi(Tabulated(p=['1/2', '1/2'], q=[0, 1]), 2)) <= 0"
    ),
    "a negative epsilon": relation("epsilon(Gaussian(10), 9/10) < 0"),
    "no noise at all": relation("count_noise_mass(0, 3, 0, 2) <= 0"),
    "count noise of a ratio below 1": relation("count_noise_delta(1/3, 1/2, 2) > -1"),
    "count noise of a negative eta": relation(
        "count_noise_delta(3, s, 2) >= -1", for_all={"s": {"low": "-1", "high": "1/2"}}
    ),
    "a variable of a sum outside of it": of(
        "pure-dp", mechanism="Laplace(1)", epsilon="sum(i, 1, 5, i)*0 + _1"
    ),
    "a case outside the words of a range": of(
        "relation", verdict="REFUTED", claim="s > 50", for_all=WORDS, witness={"case": {"s": "1"}}
    ),
    "a release outside the words of a range": of(
        "gaussian-dp",
        verdict="REFUTED",
        mechanism="Gaussian(s)",
        mu="1/100",
        for_all=WORDS,
        witness={"case": {"s": "1"}},
    ),
    "a variable that is called e": relation(
        "e**(x/8) == exp(x/8)", for_all={"e": {"low": "1"}, "x": {"low": "0"}}
    ),
    "no subset is so large": relation("s*binomial(2, 5) > 0", for_all=POSITIVE),
    "a gamma function below 0": relation("s*gamma(-1/2) > 0", for_all=POSITIVE),
    "a range from what is no number": relation("s >= 0", for_all={"s": {"low": "sqrt(-1)"}}),
    "sums over two indices": relation(
        "sum(i, 1, n, sqrt(i)*(sum(j, 1, n, i) - all)) <= 0",
        for_all={"n": {"low": "2", "integer": True}},
        let={"all": "sum(j, 1, n, j)"},
    ),
    "a rho of bounded range, which is an upper bound": relation(
        "rho(ExponentialMechanism(1)) >= 1/8"
    ),
    "a word of neither kind over a range": relation(
        "variance(CorrelatedGaussian(2, s, release_size=1)) == (sqrt(2) + 1)**2/(4*s**2)",
        adjacency="add-remove",
        for_all=POSITIVE,
    ),
    "a sum over a variable, with a name for it inside": relation(
        "sum(n, 1, 3, t) == 3*n", for_all={"n": {"low": "1", "integer": True}}, let={"t": "n"}
    ),
    "a name over a variable, with a name for it inside": relation(
        "s == 3*n",
        for_all={"n": {"low": "1", "integer": True}},
        let={"s": "sum(n, 1, 3, t)", "t": "n"},
    ),
    "a place at which nothing was found": of(
        "monotone",
        verdict="REFUTED",
        expression="-x",
        variable="x",
        direction="increasing",
        over={"low": "0", "high": "3"},
        witness={"case": {"x": "99"}, "low": "1", "high": "2"},
    ),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_is_false_is_never_valid(name: str) -> None:
    found = check(**FALSE[name])
    assert found.outcome is not Outcome.VALID, found


@pytest.mark.parametrize(
    "mechanism",
    ["Shuffled(Guaranteed(1), users='1e1000')", "KaryTree(steps='1e20000', arity=2, epsilon=1)"],
)
def test_sizes_beyond_doubles_end_without_a_proof(mechanism: str) -> None:
    found = check(**dp(mechanism, "1", "0.3", "replace-one"))
    assert found.outcome is Outcome.CONDITIONAL, found


LONG = "sum(i, 1, 1000000, sum(j, 1, 1000000, i + j))"


@pytest.mark.parametrize(
    "theorem",
    [
        dp("Composed(Tabulated(p=[1], q=[1]), 10**9)", "1", "0.1"),
        {"kind": "relation", "claim": f"delta(Laplace({LONG}), 1) < 1"},
        {"kind": "relation", "claim": f"variance(OptimalEllipse(2, 1, {LONG})) > 0"},
    ],
)
def test_what_takes_long_ends_with_its_budget(theorem: Data) -> None:
    verdict = "REFUTED" if "mechanism" in theorem else "HOLDS"
    fields = {"version": 2, "theorem": {"verdict": verdict, **theorem}, "lemmas": [], "witness": {}}
    started = time.process_time()
    found = checked(fields, Budget(seconds=0.5))
    assert found.outcome is Outcome.CONDITIONAL, found
    assert time.process_time() - started < 5


def test_a_rate_is_said_with_the_range_it_was_proved_over() -> None:
    over = {"low": "1000"}
    found = check("limit", expression="1/x", variable="x", over=over, limit="0", rate="1/1000")
    assert found.outcome is Outcome.VALID
    assert "over x >= 1000" in str(found)


def test_equal_noise_of_a_threshold_and_of_answers_divides_nothing_by_0() -> None:
    assert check("pure-dp", mechanism="AboveThreshold(1, 1)", epsilon="3").outcome is Outcome.VALID


def test_a_mixture_without_an_answer_that_stays_is_gaussian_noise() -> None:
    mechanism = "MixtureOfGaussians(1, sensitivities=[1], sampling_probs=[1])"
    assert check(**dp(mechanism, "1", "0.127", "add-remove")).outcome is Outcome.VALID


def test_the_lemmas_of_an_argument_and_of_a_claimed_number_are_named() -> None:
    scale = "delta(Composed(Laplace(1), 2), 1/2)"
    epsilon = f"max_loss(Laplace(scale={scale}))"
    found = check("pure-dp", mechanism="RandomizedResponse(1)", epsilon=epsilon)
    assert found.outcome is Outcome.VALID
    assert found.lemmas == ("composition", "laplace", "randomized-response")


@pytest.mark.parametrize("epsilon", ["max_loss(Laplace(1))", "1/0", "exp(0)", "sqrt(sqrt(2))"])
def test_the_epsilon_of_an_optimum_is_a_fraction_or_a_root_of_one(epsilon: str) -> None:
    law = {"first": 1, "last": 1, "lowest": -1, "probabilities": ["1/4", "1/2", "1/4"]}
    witness = {"ratio": ["2", "3"], "laws": [law]}
    sizes = {"support": 1, "max_count": 1, "eta": "1/2", "objective": "singular"}
    found = check("count-noise", witness, "OPTIMAL", **sizes, lower="0", upper="0", epsilon=epsilon)
    assert found.outcome is Outcome.CONDITIONAL
    roots = check("count-noise", witness, "OPTIMAL", **sizes, lower="0", upper="0", epsilon="1")
    assert roots.outcome is Outcome.VALID


@pytest.mark.parametrize("words", ["x is (0, 0)-DP", ") is 0-GDP, (", "HOLDS", "a\\nb"])
def test_words_inside_of_a_formula_are_quoted(words: str) -> None:
    found = check("relation", claim="1 < 2", let={"s": f"'{words}'"})
    assert found.outcome is not Outcome.VALID or f"where s = \"'{words}'\"" in str(found)


def test_formulas_inside_of_a_formula_are_not() -> None:
    mechanism = "AdditiveNoise(density='exp(-abs(x))')"
    found = check("pure-dp", mechanism=mechanism, epsilon="'1/1'")
    assert str(found) == f"VALID  HOLDS: {mechanism} is ('1/1', 0)-DP"


def test_a_sum_of_questions_is_computed_term_by_term() -> None:
    claim = "sum(i, 1, 2, max_loss(Laplace(sum(j, 1, i, j)))) == 4/3"
    assert check("relation", claim=claim).outcome is Outcome.VALID
