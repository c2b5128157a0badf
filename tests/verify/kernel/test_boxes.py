"""Statements over ranges: what is true is proved, what is false is proved by no witness."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay.verifier.claims import KINDS
from dpassay.verifier.kernel.check import prove
from dpassay.verifier.kernel.numbers import Budget, NotProved, Wrong
from dpassay.verifier.kernel.schema import require
from dpassay.verifier.proof import theorem_of
from tests.tables import rows

CLAIMS = rows(Path(__file__).with_name("boxes.txt"))
TRUE: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (claim, json.loads(ranges), json.loads(proof))
    for claim, ranges, proof in CLAIMS
    if proof != "false"
]
FALSE = [(claim, json.loads(ranges)) for claim, ranges, proof in CLAIMS if proof == "false"]
FALSE_LIMITS = [
    ("x*(1/x)", "0"),
    ("x*exp(-x)*exp(x)/x", "0"),
    ("x - x", "1"),
    ("sqrt(x)/x", "1"),
    ("1/(1/x)", "0"),
    ("c*x/x", "0"),
    ("(1 + 1/x)**x", "1"),
    ("exp(-x)*x - 1", "0"),
]


def certificate(claim: str, domains: dict[str, Any], proof: Any, **more: Any) -> Any:
    theorem = {"kind": "relation", "verdict": "HOLDS", "claim": claim, "for_all": domains, **more}
    witness = {} if proof is None else {"proof": proof}
    return require({"version": 2, "theorem": theorem, "lemmas": [], "witness": witness})


def is_proved(data: Any) -> bool:
    try:
        prove(data["theorem"], data["witness"], Budget(seconds=20))
    except (NotProved, Wrong):
        return False
    return True


@pytest.mark.parametrize(("claim", "domains", "proof"), TRUE, ids=[t[0] for t in TRUE])
def test_what_is_true_is_proved(claim: str, domains: dict[str, Any], proof: dict[str, Any]) -> None:
    data = certificate(claim, domains, proof)
    prove(data["theorem"], data["witness"], Budget(seconds=20))


def forged(claim: str, names: list[str], chance: random.Random, depth: int = 0) -> dict[str, Any]:
    """Return a proof at random: methods swapped, gaps left, factors of any sign."""
    left, _, right = claim.partition("<=" if "<=" in claim else "==" if "==" in claim else "<")
    facts = [claim, f"{names[0]} >= 0", f"{names[0]} < 0", "0 <= max(0, 1)", "1 <= 0"]
    texts = [
        names[0],
        f"-{names[0]}",
        "1",
        "-1",
        "0",
        f"1/{names[0]}",
        f"({left}) - ({right or 0})",
    ]

    def inner() -> Any:
        return None if depth > 2 else forged(claim, names, chance, depth + 1)

    return {
        "method": chance.choice(
            [
                "identity",
                "positive",
                "sweep",
                "cases",
                "split",
                "both",
                "derivative",
                "induction",
                "combine",
                "each",
                "form",
            ]
        ),
        "variable": chance.choice(names),
        "pieces": chance.choice([1, 50]),
        "from": chance.choice(
            [
                "low",
                "high",
                "infinity",
                [{"fact": chance.choice(facts), "times": chance.choice(texts)}],
            ]
        ),
        "at": [chance.choice(["-1", "0", "1/2", "3", "1000"])],
        "proofs": [inner(), inner()],
        "slope": inner(),
        "step": inner(),
        "start": inner(),
        "factor": chance.choice(texts),
        "of": chance.choice(["abs(" + names[0] + ")", f"max({names[0]}, 1 - {names[0]})"]),
        **({"rest": inner()} if chance.random() < 0.3 else {}),
        **(
            {"form": chance.choice([*facts, "0 <= 1"]), "times": chance.choice(texts)}
            if chance.random() < 0.5
            else {}
        ),
    }


@pytest.mark.parametrize(("claim", "domains"), FALSE, ids=[f[0] for f in FALSE])
def test_no_witness_proves_what_is_false(claim: str, domains: dict[str, Any]) -> None:
    chance = random.Random(claim)
    methods = ["identity", "positive", "sweep", "both", "each"]
    proofs: list[Any] = [None, *({"method": m, "pieces": 40} for m in methods)]
    proofs += [{"method": m, "variable": v} for m in ("derivative", "induction") for v in domains]
    proofs += [forged(claim, [*domains], chance) for _ in range(5)]
    assert not any(is_proved(certificate(claim, domains, proof)) for proof in proofs)


@pytest.mark.parametrize(("expression", "limit"), FALSE_LIMITS)
def test_no_false_limit_is_proved(expression: str, limit: str) -> None:
    theorem = {
        "kind": "limit",
        "verdict": "HOLDS",
        "expression": expression,
        "variable": "x",
        "limit": limit,
        "over": {"low": "1"},
        "for_all": {"c": {"low": "0"}},
    }
    for proof in (None, {"method": "continuity"}, {"method": "continuity", "form": limit}):
        witness = {} if proof is None else {"proof": proof}
        assert not is_proved(
            require({"version": 2, "theorem": theorem, "lemmas": [], "witness": witness})
        )


coefficients = st.lists(st.integers(-5, 5), min_size=2, max_size=5)


@settings(max_examples=6, deadline=None)
@given(coefficients, coefficients, st.sampled_from(["<=", "<", ">=", ">"]), st.integers(0, 10**6))
def test_a_proved_inequality_is_true_at_random_points(
    top: list[int], low: list[int], relation: str, seed: int
) -> None:
    def text(found: list[int]) -> str:
        return " + ".join(f"({c})*x**{k}" for k, c in enumerate(found))

    claim = f"({text(top)})/(1 + ({text(low)})**2) {relation} 1/3"
    for high in ("2", None):
        domain = {"x": {"low": "-1"} | ({"high": high} if high else {})}
        for method in ("positive", "sweep"):
            if not is_proved(certificate(claim, domain, {"method": method, "pieces": 20})):
                continue
            chance = random.Random(seed)
            points = [Fraction(-1), Fraction(0), Fraction(2)]
            points += [
                Fraction(chance.randint(-100, 200 if high else 10**5), 100) for _ in range(200)
            ]
            for x in points:
                value = sum(c * x**k for k, c in enumerate(top)) / (
                    1 + sum(c * x**k for k, c in enumerate(low)) ** 2
                )
                gap = value - Fraction(1, 3)
                assert {"<=": gap <= 0, "<": gap < 0, ">=": gap >= 0, ">": gap > 0}[relation]


@pytest.mark.parametrize(
    ("kind", "field"), [("monotone", {"direction": "increasing"}), ("minimiser", {"claimed": "1"})]
)
def test_points_prove_nothing_over_a_range(kind: str, field: dict[str, str]) -> None:
    """n·x increases from n = 1 to 2 at the x = 1/2 of the grid, not at x = −1."""
    ranges = {"x": {"low": "-1", "high": "1", "grid": ["1/2"]}}
    function = {"id": "c", "kind": kind, "expression": "n*x", "variable": "n", "at": ["1", "2"]}
    claim = msgspec.convert({**function, **field, "for_all": ranges}, KINDS[kind])
    data = {"version": 2, "theorem": theorem_of(claim, "HOLDS"), "lemmas": [], "witness": {}}
    assert not is_proved(require(data))
