"""False statements, written by hand against one weak place each: none is ever VALID."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from dpassay.verifier.kernel import Checked, Outcome
from dpassay.verifier.kernel import check as checked
from dpassay.verifier.kernel.numbers import Budget
from tests.tables import rows

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
    name: json.loads(fields) for name, fields in rows(Path(__file__).with_name("forged.txt"))
}
FALSE["nearly equal roots"] = of("pure-dp", mechanism=ROOTS, epsilon="1000*sqrt(2) - 12e-112")


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
