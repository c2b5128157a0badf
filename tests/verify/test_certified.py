"""Claims about products and samples: verdict, certificate, independent check, and false ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dpassay.verifier.kernel import Outcome, check
from tests.quick import quick
from tests.tables import rows
from tests.verify.forge import Data, decided


def times(inside: str, count: int | str) -> str:
    return f"Composed(mechanism={inside}, count={count})"


def sampled(inside: str, q: str) -> str:
    return f"PoissonSubsampled(mechanism={inside}, sampling_prob='{q}')"


def normal(sigma: str) -> str:
    return f"Gaussian(standard_deviation='{sigma}')"


COIN, TENTH = "RandomizedResponse(epsilon='{}')", sampled(normal("1"), "1/10")
STEP = sampled(normal("1.1"), "256/60000")
THREE = (
    "MixtureOfGaussians(standard_deviation=2, sensitivities=[0, 1, 2], "
    "sampling_probs=['0.5', '0.3', '0.2'])"
)
POSITIONS = "BridgedTree(steps=12, arities=[3, 2, 2], {}, contributions=3, released={})"
MECHANISMS = {
    "coins": times(COIN.format("0.1"), 100),
    "two-coins": f"Composed(mechanism=[{COIN.format('0.1')}, {COIN.format('1')}])",
    "paired": times(f"[{COIN.format('0.01')}, {COIN.format('0.025')}]", 10**6),
    "three-answers": times("RandomizedResponse(epsilon='0.1', categories=3)", 200),
    "normal": normal("2"),
    "normals": times(normal("100"), 100),
    "two-normals": times(f"[{normal('3')}, {normal('4')}]", 2),
    "laplaces": f"Composed(mechanism=[Laplace(scale=3), {times('Laplace(scale=6)', 2)}])",
    "one-laplace": f"Composed(mechanism=[{times('Laplace(scale=3)', 1)}])",
    "logistics": times("Logistic(scale=2)", 4),
    "laplace-40": times("Laplace(scale=10)", 40),
    "laplace-1000": times("Laplace(scale=10)", 1000),
    "mixed": times(f"[{normal('2')}, Laplace(scale=2)]", 3),
    "bounded": f"Composed(mechanism=[{normal('2')}, Laplace(scale=2)])",
    "step": STEP,
    "training": times(STEP, 7032),
    "short": times(sampled(normal("2"), "0.2"), 20),
    "few": times(sampled(normal("0.8"), "0.01"), 2),
    "few-normal": times(sampled(normal("2"), "0.01"), 2),
    "releases": f"Composed(mechanism=[{times(sampled(normal('1.1'), '0.01'), 500)}, "
    f"{times(sampled(normal('0.9'), '0.002'), 3000)}, {normal('5')}])",
    "whole": times(sampled("Laplace(scale=3)", "1"), 2),
    "laplace-sample": sampled("Laplace(scale=1)", "1/10"),
    "laplace-samples": times(sampled("Laplace(scale=1)", "1/10"), 20),
    "integers": times("DiscreteGaussian(parameter=25)", 100),
    "integers-10": times("DiscreteGaussian(parameter=4)", 10),
    "integers-1e6": times("DiscreteGaussian(parameter=2)", 10**6),
    "integer-samples": times(sampled("DiscreteGaussian(parameter=2)", "1/10"), 100),
    "geometric": times("DiscreteLaplace(scale=10)", 1000),
    "listed-samples": times(sampled("DiscreteLaplace(scale=3, sensitivity=2)", "0.1"), 12),
    "both": f"Composed(mechanism=[{STEP}, DiscreteLaplace(scale=3)])",
    "three": THREE,
    "three-and-step": times(f"[{THREE}, {STEP}]", 5),
    "fixed-size": f"SampledWithoutReplacement(mechanism={normal('2')}, sample_size=10, "
    "population=1000)",
    "replaced": sampled(normal("2"), "0.1"),
    "tenths": times(TENTH, 3),
    "integer": "DiscreteGaussian(parameter=4)",
    "integer-2": "DiscreteGaussian(parameter=2)",
    "coarse": "DiscreteGaussian(parameter='1/4', sensitivity=3)",
    "laplace": "Laplace(scale=1)",
    "stairs": "Staircase(epsilon=1, gamma='0.4')",
    "allocation": "RandomAllocation(Gaussian(1), 20)",
    "often": "RandomAllocation(Gaussian(2), 10, 7)",
    "twice": "RandomAllocation(Gaussian(1), 100, 2)",
    "epochs": times("RandomAllocation(Gaussian(2), 100)", 2),
    "exponential": "ExponentialMechanism(epsilon=2, sensitivity='1/3')",
    "selections": times("ExponentialMechanism(epsilon=1)", 4),
    "selections-inside": f"Composed(mechanism=[{times('ExponentialMechanism(epsilon=1)', 3)}, "
    "ExponentialMechanism(epsilon=1)])",
    "selections-300": times("ExponentialMechanism(epsilon=1)", 300),
    "flips": times("PermuteAndFlip(epsilon=1)", 4),
    "maxima": times("ReportNoisyMax(noise='Laplace', scale=2, candidates=5)", 4),
    "normal-maxima": times("ReportNoisyMax(noise='Gaussian', scale=4, candidates=5)", 4),
    **{
        f"max-{name}-{k}": f"ReportNoisyMax(noise='{name}', scale=2, candidates={k})"
        for name, k in (
            ("Gaussian", 3),
            ("Gaussian", 40),
            ("Laplace", 2),
            ("Laplace", 5),
            ("Gumbel", 5),
            ("Exponential", 5),
        )
    },
    "max-rising": "ReportNoisyMax(noise='Gaussian', scale=1, candidates=6, monotone=True)",
    **{
        name: f"Shuffled({one}, users={users})"
        for name, one, users in (
            ("shuffled", "RandomizedResponse(1)", 10_000),
            ("shuffled-4", "RandomizedResponse(1, 4)", 10_000),
            ("shuffled-few", "RandomizedResponse('1/2', 3)", 3),
            ("shuffled-any", "Guaranteed(1)", 10_000),
        )
    },
    "tree-laplace": POSITIONS.format("epsilon=2", "'measurements'"),
    "tree-normal": POSITIONS.format("mu=1", "'measurements'"),
    "tree-outputs": POSITIONS.format("mu=1", "'outputs'"),
    "tree-few-outputs": "BridgedTree(steps=3, arities=[3, 2, 2], mu=1)",
    "tree-laplace-outputs": POSITIONS.format("epsilon=2", "'outputs'"),
    "root-normal": "SquareRootFactorization(steps=40, mu=1, contributions=4)",
    "streams": times("AboveThreshold(threshold_scale=2, query_scale=4)", 4),
    "logistic": "Logistic(scale=2)",
    "truncated": "TruncatedLaplace(scale=2, bound=20)",
    "matrix": "MatrixMechanism(strategy='square-root', noise_multiplier=4, steps=64, "
    "participation='min-separation', separation=8, bands=8)",
    "columns-cyclic": "MatrixMechanism(strategy='tree', noise_multiplier=3, steps=12, "
    "participation='cyclic', separation=4, bands=4)",
    "fixed-twice": times("SampledWithoutReplacement(Gaussian(2), 10, 1000)", 2),
    "tables-1000": "Composed(Channel([['1/2', '1/2'], ['1/4', '3/4'], ['1/3', '2/3']]), 1000)",
    "two-slopes": "AdditiveNoise('exp(-x) if x > 0 else exp(2*x)', '5/4')",
    "groups": "MixtureOfGaussians(standard_deviation=2, sensitivities=[0, 1, 2], "
    "sampling_probs=['0.9', '0.08', '0.02'])",
    "matrix-sample": "MatrixMechanism(strategy=[[1, 0], ['1/2', 2]], noise_multiplier=1, steps=2, "
    "participation='cyclic', separation=2, step_sampling_prob='1/20')",
}
FIELDS = {
    "dp": ("approximate-dp", "epsilon", "delta"), "pure": ("pure-dp", "epsilon"),
    "rho": ("zcdp", "rho"), "mu": ("gaussian-dp", "mu"), "renyi": ("renyi-dp", "order", "epsilon"),
}  # fmt: skip
RELATIONS = {"-": None, "both": "add-remove", "one": "replace-one"}


@cache
def _certified(row: str) -> tuple[str, str]:
    kind, name, relation, *numbers = row.split()
    mechanism = MECHANISMS.get(name, name)
    tag, *names = FIELDS[kind]
    fields: dict[str, Any] = dict(zip(names, numbers, strict=True))
    if RELATIONS[relation]:
        fields["adjacency"] = RELATIONS[relation]
    lines = "".join(f'{key} = "{value}"\n' for key, value in fields.items())
    said, data = decided(f'kind = "{tag}"\nmechanism = "{mechanism}"\n{lines}')
    assert data
    return said, json.dumps(data)


def certified(row: str) -> Data:
    return dict(json.loads(_certified(" ".join(row.split()))[1]))


def claims() -> list[Any]:
    table = [line.split() for (line,) in rows(Path(__file__).with_name("certified.txt"))]
    slow = [pytest.mark.slow]
    return [
        pytest.param(
            verdict, " ".join(word for word in words if word not in ("slow", "given")),
            "given" in words, marks=slow if "slow" in words else [],
            id=f"{verdict} {' '.join(words)}",
        )
        for verdict, *words in table
    ]  # fmt: skip


@pytest.mark.parametrize(("verdict", "row", "given"), claims())
def test_a_claim_is_decided_and_its_certificate_accepted(
    verdict: str, row: str, given: bool
) -> None:
    assert _certified(row)[0] == verdict
    checked = check(certified(row))
    assert checked.outcome is (Outcome.CONDITIONAL if given else Outcome.VALID), str(checked)


def _everywhere(old: str, new: str) -> Callable[[Data], Data]:
    """Replace a text wherever it stands."""

    def change(data: Data) -> Data:
        text = json.dumps(data)
        assert old in text
        return dict(json.loads(text.replace(old, new)))

    return change


def _in_claim(**changes: str) -> Callable[[Data], Data]:
    def change(data: Data) -> Data:
        return {**data, "theorem": data["theorem"] | changes}

    return change


TRAINING = "dp training both 2 1e-5"
REPLACED, ANSWERS, FIXED = (
    "dp replaced one 0.3 0.001", "dp three-answers one 4 0.001", "dp fixed-size one 0.1 0.01",
)  # fmt: skip
STEP_ONCE, MANY = "dp step both 1 2.1e-13", "dp laplace-1000 both 20 1e-6"
FALSE: list[tuple[str, Callable[[Data], Data]]] = [
    (TRAINING, _in_claim(delta="2.4e-7")),
    (TRAINING, _in_claim(epsilon="1.5")),
    (TRAINING, _everywhere("count=7032", "count=70320")),
    (TRAINING, _everywhere("256/60000", "384/60000")),
    (TRAINING, _in_claim(verdict="REFUTED")),
    (TRAINING, _in_claim(adjacency="replace-one")),
    ("dp both both 1 1e-6", _in_claim(delta="1e-30")),
    (STEP_ONCE, _everywhere("256/60000", "288/60000")),
    (STEP_ONCE, _in_claim(adjacency="replace-one")),
    (REPLACED, _everywhere("'0.1'", "'0.5'")),
    (ANSWERS, _in_claim(epsilon="1")),
    (MANY, _everywhere("count=1000", "count=2000")),
    ("dp integers both 5 0.1", _in_claim(delta="1e-9")),
    ("dp listed-samples both 1 0.01", _everywhere("count=12", "count=1300")),
    ("renyi training both 8 2", _in_claim(order="80")),
    ("mu three-and-step both 3.1", _in_claim(mu="3")),
    ("mu coarse both 7", _in_claim(mu="5")),
    ("mu tree-few-outputs - 0.82", _in_claim(mu="0.7817")),
    ("rho training both 3000", _in_claim(rho="0.1")),
    ("rho laplace both 0.36789", _in_claim(rho="0.3678")),
    ("dp shuffled-4 - 1 0", _in_claim(epsilon="0.0001")),
    *((f"dp {row} 1e-4", _in_claim(delta="1e-30")) for row in (
        "groups one 1",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("row", "change"), quick(FALSE, 0, 1, *range(7, len(FALSE))))
def test_what_is_false_is_never_valid(row: str, change: Callable[[Data], Data]) -> None:
    genuine = certified(row)
    changed = change(genuine)
    assert changed != genuine
    assert check(changed).outcome is not Outcome.VALID
