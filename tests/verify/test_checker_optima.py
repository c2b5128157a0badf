"""What the checker proves of optima, identities and limits: proofs stand, forgeries are named."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpassay.accountant.geometry.spaces import (
    Box,
    DisjointGroups,
    FiniteSet,
    L2Ball,
    Space,
    SparseBox,
)
from dpassay.lp import report
from dpassay.lp.count_noise import optimal_count_noise
from dpassay.lp.integer_noise import optimal_integer_noise
from dpassay.lp.integer_problem import IntegerNoiseProblem
from dpassay.lp.problem import CountNoiseProblem
from dpassay.lp.shape_problem import GaussianShapeProblem
from dpassay.lp.shapes import optimal_gaussian_shape
from dpassay.verifier import checker
from dpassay.verifier.checker import Outcome, check, optimum
from dpassay.verifier.cli import main, optimal_integer, optimal_shape
from tests.verify.forge import Data, at, certified, decided, problems, put, sealed

Forge = Callable[[Data], None]


def plain(data: Any) -> Data:
    again: Data = json.loads(json.dumps(data))
    return again


def count(**options: Any) -> Data:
    return plain(report.certificate(optimal_count_noise(CountNoiseProblem(**options))))


def integer(objective: str, support: int, **options: Any) -> Data:
    asked = IntegerNoiseProblem(objective=objective, support=support, **options)
    return plain(optimal_integer.certificate(optimal_integer_noise(asked)))


def shape(space: Space, objective: str = "total", weights: list[int] | None = None) -> Data:
    found = optimal_gaussian_shape(GaussianShapeProblem(space, objective, weights))
    return plain(optimal_shape.certificate(found))


PROOFS: list[Callable[[], Data]] = [
    lambda: count(epsilon="1.5", eta="1/2", support=6, max_count=20),
    lambda: count(epsilon="2.2", eta="0.7", support=16, max_count=1_000_000),
    lambda: count(epsilon="2.2", eta="0.3", support=16),
    lambda: count(epsilon="1.5", eta="1/10", support=6, max_count=20),
    lambda: count(epsilon="sqrt(2)", eta="1/2", support=4),
    lambda: count(epsilon=0, eta="1/2", support=3, max_count=30),
    lambda: count(ratio=3, eta="1/2", support=4, max_count=3),
    lambda: count(ratio=3, eta="4/5", support=4),
    lambda: count(epsilon=1, eta="1/2", support=4, max_count=1),
    lambda: count(epsilon=1, eta="1/2", support=3, objective="true-delta"),
    lambda: count(ratio=3, eta="1/2", support=3, max_count=5, objective="true-delta"),
    lambda: count(epsilon=2, eta="1/2", support=3, max_count=99, objective="true-delta"),
    lambda: integer("variance", 20, delta="1e-5", epsilon=1),
    lambda: integer("absolute", 12, delta="0.1", epsilon="sqrt(2)"),
    lambda: integer("error", 12, delta="0.1", ratio=3, sensitivity=2),
    lambda: integer("delta", 6, ratio=2, error_free="1/2"),
    lambda: integer("delta", 6, epsilon=0),
    lambda: integer("cost", 3, delta="0.2", epsilon=1, costs=[1, 5, 9]),
    lambda: integer("error", 9, delta="0.1", epsilon=1, monotone=True),
    lambda: integer("delta", 6, ratio=2, error_free="1/9", monotone=True),
]
SPACES: list[tuple[Space, list[int] | None]] = [
    (Box([1, 2, 3]), None),
    (Box(["sqrt(2)", "sqrt(8)"]), [1, 5]),
    (SparseBox(4, 2), None),
    (SparseBox(4, 2, "1/3", signed=True), [1, 1, 2, 3]),
    (FiniteSet([[1, 0], ["sqrt(2)", "sqrt(2)"]]), None),
    (L2Ball(3, "sqrt(2)"), [1, 2, 3]),
    (DisjointGroups(2, Box([1, 2])), None),
    (Box([3]), None),
]


@pytest.mark.parametrize("made", PROOFS)
def test_a_law_of_noise_is_accepted(made: Callable[[], Data]) -> None:
    assert problems(made()) == []


@pytest.mark.parametrize("objective", ["total", "worst"])
@pytest.mark.parametrize(("space", "weights"), SPACES)
def test_a_shape_is_accepted(space: Space, weights: list[int] | None, objective: str) -> None:
    assert problems(shape(space, objective, weights)) == []


ORDINARY = {"epsilon": "1.5", "eta": "1/2", "support": 3, "max_count": 6}
GENUINE: dict[str, Callable[[], Data]] = {
    "by-count": lambda: count(**ORDINARY),
    "one-law": lambda: count(epsilon="1.5", eta="1/2", support=3),
    "exact": lambda: count(ratio=3, eta="1/2", support=3),
    "true": lambda: count(**ORDINARY, objective="true-delta"),
    "integer": lambda: integer("variance", 8, delta="0.01", epsilon=1),
    "box": lambda: shape(Box([1, 2])),
    "sparse": lambda: shape(SparseBox(3, 2), "worst"),
    "ball": lambda: shape(L2Ball(2)),
    "set": lambda: shape(FiniteSet([[1, 0], [1, 1]])),
    "groups": lambda: shape(DisjointGroups(2, Box([1]))),
}


@functools.cache
def _genuine(name: str) -> str:
    return json.dumps(GENUINE[name]())


def scaled(path: str, factor: str) -> Forge:
    def forge(data: Data) -> None:
        put(path, str(Fraction(at(data, path)) * Fraction(factor)))(data)

    return forge


def swapped(path: str, one: int, other: int) -> Forge:
    def forge(data: Data) -> None:
        law = at(data, path)
        law[one], law[other] = law[other], law[one]

    return forge


def without(path: str) -> Forge:
    *parents, last = path.split(".")

    def forge(data: Data) -> None:
        inner: Any = at(data, ".".join(parents)) if parents else data
        del inner[int(last) if isinstance(inner, list) else last]

    return forge


def together(*changes: Forge) -> Forge:
    def forge(data: Data) -> None:
        for change in changes:
            change(data)

    return forge


def _moved_mass(data: Data) -> None:
    law = [Fraction(p) for p in data["laws"][0]["probabilities"]]
    law[0], law[-1] = law[0] + Fraction(1, 1000), law[-1] - Fraction(1, 1000)
    data["laws"][0]["probabilities"] = [str(p) for p in law]


def _other_law(data: Data) -> None:
    """Keep mass, mean and P(0), and lose privacy."""
    law = [Fraction(p) for p in data["laws"][2]["probabilities"]]
    two = 2 - data["laws"][2]["lowest"]
    change = law[two] / 2
    law[two - 1 : two + 2] = [law[two - 1] + change, law[two] - 2 * change, law[two + 1] + change]
    data["laws"][2]["probabilities"] = [str(p) for p in law]


def _larger_flow(data: Data) -> None:
    flow = data["dual"]["flows"][0]
    flow[3] = str(Fraction(flow[3]) + 1)


def _far_flow(data: Data) -> None:
    data["dual"]["flows"][0][1] += 3


def _larger_mass(data: Data) -> None:
    for counted, value in data["dual"]["mass"].items():
        data["dual"]["mass"][counted] = str(abs(Fraction(value)) * 2 + 1)


def _smaller(data: Data) -> None:
    rows = data["covariance"]
    data["covariance"] = [[str(Fraction(x) * Fraction(999, 1000)) for x in row] for row in rows]


LESS, MORE = "999/1000", "1001/1000"
FORGERIES: list[tuple[str, Forge, str]] = [
    ("by-count", scaled("delta.upper", LESS), "delta.upper"),
    ("by-count", scaled("delta.lower", MORE), "delta.lower"),
    ("by-count", put("problem.epsilon", "1.6"), "ratio"),
    ("by-count", put("problem.epsilon", "-1"), "ratio"),
    ("by-count", put("ratio.lower", "5"), "ratio"),
    ("by-count", put("problem.eta", "2/5"), "laws[0]"),
    ("by-count", put("problem.eta", "1"), "problem.eta"),
    ("by-count", put("problem.support", 2), "laws[1]"),
    ("by-count", put("problem.max_count", 7), "laws"),
    ("by-count", without("laws.1"), "laws"),
    ("by-count", _moved_mass, "laws[0]"),
    ("by-count", _other_law, "delta.upper"),
    ("by-count", _larger_flow, "dual.flows"),
    ("by-count", without("dual.flows.0"), "dual"),
    ("by-count", put("dual.flows.0.3", "-1"), "dual.flows[0]"),
    ("by-count", _far_flow, "dual.flows[0]"),
    ("by-count", _larger_mass, "dual"),
    ("by-count", put("dual.mass", {"77": "1"}), "dual"),
    ("by-count", put("exact", "1/100"), "exact"),
    ("by-count", put("laws.0.probabilities", []), "laws[0].probabilities"),
    ("by-count", put("problem.objective", "best"), "problem.objective"),
    ("by-count", put("problem.objective", "true-delta"), "delta.upper"),
    ("by-count", put("delta.lower", "1e999999999"), "delta.lower"),
    ("one-law", scaled("delta.lower", MORE), "delta.lower"),
    ("one-law", put("laws.0.from", 2), "laws"),
    ("one-law", _larger_flow, "dual.flows"),
    ("exact", put("exact", "1/58"), "exact"),
    ("exact", put("problem.ratio", "3.001"), "ratio"),
    ("true", scaled("delta.upper", LESS), "delta.upper"),
    ("true", scaled("delta.lower", MORE), "delta.lower"),
    ("true", _larger_flow, "dual.flows"),
    ("true", put("problem.objective", "singular"), "dual.flows"),
    ("integer", put("optimum", {"lower": "1.5", "upper": "1.5"}), "optimum.upper"),
    ("integer", put("optimum.lower", "1.6"), "optimum.lower"),
    (
        "integer",
        together(scaled("optimum.lower", "101/100"), scaled("optimum.upper", "101/100")),
        "optimum.lower",
    ),
    ("integer", swapped("law", 8, 9), "law"),
    ("integer", put("law.8", "0"), "law"),
    ("integer", put("given.delta", "0.009"), "law"),
    ("integer", put("given.epsilon", "1.01"), "ratio"),
    ("integer", put("tests.0.0", "-1"), "tests"),
    (
        "integer",
        together(put("given.monotone", True), put("steps", ["0"] * 8), swapped("law", 6, 7)),
        "law",
    ),
    ("integer", put("steps", ["1"]), "steps"),
    ("integer", put("exact", "3/2"), "exact"),
    ("integer", put("given.delta", "1e-400000"), "given.delta"),
    ("integer", without("law"), ""),
    ("box", scaled("optimum.upper", LESS), "optimum.upper"),
    ("box", scaled("optimum.lower", MORE), "optimum.lower"),
    ("box", _smaller, "covariance"),
    ("box", put("covariance.0.1", "1"), "covariance"),
    ("box", put("covariance.1.1", "-4"), "covariance"),
    ("box", scaled("law.0", "2"), "law"),
    ("box", put("law.0", "-1"), "law"),
    ("box", put("law.0", "0"), "optimum.lower"),
    ("box", scaled("vertices.0.square", "2"), "vertices[0]"),
    ("box", put("vertices.0.square", "-1"), "vertices[0]"),
    ("box", put("vertices.0.entries", ["1"]), "vertices[0]"),
    ("box", put("shares", ["2", "1"]), "shares"),
    ("box", put("shares", ["1"]), "shares"),
    ("box", put("given.weights", ["1", "0"]), "given.weights"),
    ("box", put("given.weights", ["1", "2"]), "optimum.upper"),
    ("box", put("given.objective", "least"), "given.objective"),
    ("box", put("given.space.bounds", ["1", "3"]), "covariance"),
    ("box", put("given.space.bounds", ["1", "1"]), "vertices[0]"),
    ("box", put("given.space.type", "Cube"), "given.space.type"),
    ("box", put("covariance.0", []), "covariance"),
    ("sparse", put("shares", ["1", "1", "1"]), "shares"),
    ("sparse", scaled("optimum.lower", MORE), "optimum.lower"),
    ("sparse", put("given.space.signed", True), "covariance"),
    ("sparse", put("given.space.sparsity", 1), "vertices[3]"),
    ("sparse", put("given.space.sparsity", 3), "covariance"),
    *((name, _smaller, "covariance") for name in ("ball", "sparse", "set", "groups")),
    ("ball", put("given.space.radius", "2"), "covariance"),
    ("ball", put("given.space.radius", "1/2"), "vertices[0]"),
    ("set", put("vertices.0.entries", ["1", "1/2"]), "vertices[0]"),
    ("groups", put("vertices.0.entries", ["1", "1"]), "vertices[0]"),
]


@pytest.mark.parametrize(("name", "forge", "field"), FORGERIES)
def test_the_field_of_a_forgery_is_named(name: str, forge: Forge, field: str) -> None:
    data = plain(json.loads(_genuine(name)))
    forge(data)
    assert field in [path for path, _ in problems(data)]


def test_a_changed_digit_is_found_by_the_seal() -> None:
    data = sealed(json.loads(_genuine("exact")))
    data["laws"][0]["probabilities"][0] = "1/3"
    assert [field for field, _ in check(data).problems] == ["laws[0].probabilities[0]"]
    assert not check({"kind": "best-noise", "seal": {}}).valid


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "noise.json"
    command = ["optimal", "integer-noise", "--epsilon", "1", "--delta", "0.01", "--support", "8"]
    assert main([*command, "--quiet", "--certificate", str(path)]) == 0
    assert main(["check", str(path)]) == 0
    said = "\nVALID  OPTIMAL: the least variance of a law on -8..8 at epsilon = 1"
    assert said in capsys.readouterr().out
    data = json.loads(path.read_text(encoding="utf-8"))
    data["law"][8] = str(Fraction(data["law"][8]) / 2)
    path.write_text(json.dumps(data), encoding="utf-8")
    assert main(["check", str(path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["certificates"][0]["outcome"] == "INVALID"
    for text in ("[]", "no"):
        path.write_text(text, encoding="utf-8")
        assert main(["check", str(path)]) == 2


LIMIT = (
    'kind = "limit"\nexpression = "1/2 + 1/n"\nvariable = "n"\nat = [1, 2]\nlimit = "1"\n'
    'over = {low = 1}\nproof = {method = "continuity", limit = "1/2"}'
)
LEAST = (
    'kind = "minimiser"\nexpression = "(n - 2)**2"\nvariable = "n"\nat = [1, 2, 3]\nclaimed = 2\n'
    "over = {low = 1, high = 3, integer = true}"
)
BEST = (
    'kind = "optimality"\nvalue = "4"\ndual = {law = "sparse", ones = 2}\n[claims.among]\n'
    'type = "Gaussian"\nmu = 1\nobjective = "total"\n'
    'space = {type = "SparseBox", dimension = 2, sparsity = 2, bound = 1, signed = true}'
)


def wrong_fields(data: dict[str, Any]) -> list[str]:
    return [path for path, _ in problems(data)]


def test_an_equality_without_a_proof_is_decided_by_an_identity() -> None:
    equal = "sqrt(3 + 2*sqrt(2)) == 1 + sqrt(2)"
    checked = checker.check(decided(f'kind = "relation"\nclaim = "{equal}"')[1])
    assert not checked.problems
    assert not checked.taken_as_given


def test_another_limit_is_proved_again() -> None:
    data = decided(LIMIT)[1]
    assert data["verdict"] == "REFUTED"
    checked = checker.check(data)
    assert not checked.problems
    assert not checked.taken_as_given
    assert "it tends to 1/2" in str(checked.theorem)
    data["claim"]["expression"] = data["facts"][0]["expression"] = "3/4 + 1/(4*n)"
    assert "claim.proof" in wrong_fields(data)


@pytest.mark.parametrize("end", ["4", "inf"])
def test_points_prove_what_they_are_all_of(end: str) -> None:
    data = decided(LEAST)[1]
    assert data["verdict"] == "HOLDS"
    assert wrong_fields(data) == []
    data["claim"]["over"]["high"] = end
    assert wrong_fields(data) == ["verdict" if end == "4" else "claim.over.high"]


def test_the_conditions_of_a_dual_are_required() -> None:
    data = decided(BEST)[1]
    assert data["verdict"] == "HOLDS"
    checked = checker.check(data)
    assert not checked.problems
    assert not checked.taken_as_given
    assert "no Gaussian noise that is 1-GDP" in str(checked.theorem)
    data["claim"]["among"]["space"]["sparsity"] = 1  # fewer than the ones of the law
    text = optimum.compared(data["claim"]).text
    data["facts"][1]["expression"] = text
    assert "claim.among" in wrong_fields(data)


def test_a_rival_within_the_tolerance_refutes_nothing() -> None:
    text = (
        'kind = "optimality"\nvalue = "1/10"\ntolerance = "10"\n[claims.among]\n'
        'type = "IntegerNoise"\nE = 3\neta = "1/2"\nsupport = 2\n[claims.rival]\n'
        'probabilities = ["1/16", "3/16", "1/2", "3/16", "1/16"]\nlowest = -2'
    )
    assert decided(text)[0] == "UNDECIDED"


def test_a_shape_of_too_many_corners_is_not_called_wrong() -> None:
    data = certified("gaussian-shape")
    size = 17
    data["given"] |= {"space": {"type": "Box", "bounds": ["1"] * size}, "weights": ["1"] * size}
    data["covariance"] = [[str(size * (i == j)) for j in range(size)] for i in range(size)]
    checked = checker.check(sealed(data))
    assert checked.outcome is Outcome.NOT_CHECKED
    assert checked.problems == []
    assert "65536 vertices" in checked.not_checked
