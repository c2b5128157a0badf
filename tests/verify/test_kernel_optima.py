"""What the kernel proves of optima: proofs stand, and the field of a forgery is named."""

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
from dpassay.lp.count_noise import optimal_count_noise
from dpassay.lp.integer_noise import IntegerNoiseProblem, optimal_integer_noise
from dpassay.lp.problem import CountNoiseProblem
from dpassay.lp.shapes import GaussianShapeProblem, optimal_gaussian_shape
from dpassay.verifier.cli import main
from dpassay.verifier.kernel import Outcome, check
from dpassay.verifier.prover import optima
from tests.verify.forge import Data, at, certified, problems, put

Forge = Callable[[Data], None]


def plain(data: Any) -> Data:
    again: Data = json.loads(json.dumps(data))
    return again


def count(**options: Any) -> Data:
    return plain(optima.count_noise(optimal_count_noise(CountNoiseProblem(**options))))


def integer(objective: str, support: int, **options: Any) -> Data:
    asked = IntegerNoiseProblem(objective=objective, support=support, **options)
    return plain(optima.integer_noise(optimal_integer_noise(asked)))


def shape(space: Space, objective: str = "total", weights: list[int] | None = None) -> Data:
    found = optimal_gaussian_shape(GaussianShapeProblem(space, objective, weights))
    return plain(optima.gaussian_shape(found))


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
    law = [Fraction(p) for p in data["witness"]["laws"][0]["probabilities"]]
    law[0], law[-1] = law[0] + Fraction(1, 1000), law[-1] - Fraction(1, 1000)
    data["witness"]["laws"][0]["probabilities"] = [str(p) for p in law]


def _other_law(data: Data) -> None:
    """Keep mass, mean and P(0), and lose privacy."""
    law = [Fraction(p) for p in data["witness"]["laws"][2]["probabilities"]]
    two = 2 - data["witness"]["laws"][2]["lowest"]
    change = law[two] / 2
    law[two - 1 : two + 2] = [law[two - 1] + change, law[two] - 2 * change, law[two + 1] + change]
    data["witness"]["laws"][2]["probabilities"] = [str(p) for p in law]


def _larger_flow(data: Data) -> None:
    flow = data["witness"]["flows"][0]
    flow["flow"] = str(Fraction(flow["flow"]) + 1)


def _far_flow(data: Data) -> None:
    data["witness"]["flows"][0]["other"] += 3


def _larger_mass(data: Data) -> None:
    for counted, value in data["witness"]["mass"].items():
        data["witness"]["mass"][counted] = str(abs(Fraction(value)) * 2 + 1)


def _smaller(data: Data) -> None:
    rows = data["witness"]["covariance"]
    data["witness"]["covariance"] = [
        [str(Fraction(x) * Fraction(999, 1000)) for x in row] for row in rows
    ]


LESS, MORE = "999/1000", "1001/1000"
SPARSE = "SparseBox(dimension=3, sparsity"
LOWERED = together(scaled("theorem.lower", LESS), scaled("theorem.upper", LESS))
RAISED = together(scaled("theorem.lower", MORE), scaled("theorem.upper", MORE))
FORGERIES: list[tuple[str, Forge, str]] = [
    ("by-count", LOWERED, "theorem.upper"),
    ("by-count", scaled("theorem.lower", MORE), "theorem.lower"),
    ("by-count", put("theorem.epsilon", "1.6"), "witness.ratio"),
    ("by-count", put("theorem.epsilon", "-1"), "theorem.epsilon"),
    ("by-count", put("witness.ratio.0", "5"), "witness.ratio"),
    ("by-count", put("theorem.eta", "2/5"), "witness.laws[0]"),
    ("by-count", put("theorem.eta", "1"), "theorem.eta"),
    ("by-count", put("theorem.support", 2), "witness.laws[0]"),
    ("by-count", put("theorem.max_count", 7), "witness.laws"),
    ("by-count", without("witness.laws.1"), "witness.laws[1]"),
    ("by-count", _moved_mass, "witness.laws[0]"),
    ("by-count", _other_law, "theorem.upper"),
    ("by-count", _larger_flow, "witness.flows"),
    ("by-count", without("witness.flows.0"), "witness"),
    ("by-count", put("witness.flows.0.flow", "-1"), "witness.flows[0]"),
    ("by-count", _far_flow, "witness.flows[0]"),
    ("by-count", _larger_mass, "witness"),
    ("by-count", put("witness.mass", {"77": "1"}), "witness.mass"),
    ("by-count", put("witness.laws.0.probabilities", []), "witness.laws[0].probabilities"),
    ("by-count", put("theorem.objective", "best"), "theorem.objective"),
    ("by-count", put("theorem.objective", "true-delta"), "theorem.upper"),
    ("by-count", put("theorem.lower", "1e999999999"), "theorem.lower"),
    ("one-law", scaled("theorem.lower", MORE), "theorem.lower"),
    ("one-law", put("witness.laws.0.first", 2), "witness.laws[0]"),
    ("one-law", _larger_flow, "witness.flows"),
    ("exact", put("theorem.ratio", "3.001"), "witness.ratio"),
    ("true", LOWERED, "theorem.upper"),
    ("true", scaled("theorem.lower", MORE), "theorem.lower"),
    ("true", _larger_flow, "witness.flows"),
    ("true", put("theorem.objective", "singular"), "witness.flows"),
    (
        "integer",
        together(put("theorem.lower", "1.5"), put("theorem.upper", "1.5")),
        "theorem.upper",
    ),
    ("integer", put("theorem.lower", "1.6"), "theorem.lower"),
    ("integer", RAISED, "theorem.lower"),
    ("integer", swapped("witness.law", 8, 9), "witness.law"),
    ("integer", put("witness.law.8", "0"), "witness.law"),
    ("integer", put("theorem.delta", "0.009"), "witness.law"),
    ("integer", put("theorem.epsilon", "1.01"), "witness.ratio"),
    ("integer", put("witness.tests.0.0", "-1"), "witness.tests"),
    (
        "integer",
        together(
            put("theorem.monotone", True),
            put("witness.steps", ["0"] * 8),
            swapped("witness.law", 6, 7),
        ),
        "witness.law",
    ),
    ("integer", put("witness.steps", ["1"]), "witness.steps"),
    ("integer", put("theorem.delta", "1e-400000"), "theorem.delta"),
    ("integer", without("witness.law"), "witness.law"),
    ("box", LOWERED, "theorem.upper"),
    ("box", scaled("theorem.lower", MORE), "theorem.lower"),
    ("box", _smaller, "witness.covariance"),
    ("box", put("witness.covariance.0.1", "1"), "witness.covariance"),
    ("box", put("witness.covariance.1.1", "-4"), "witness.covariance"),
    ("box", scaled("witness.law.0", "2"), "witness.law"),
    ("box", put("witness.law.0", "-1"), "witness.law"),
    ("box", put("witness.law.0", "0"), "witness.root"),
    ("box", scaled("witness.vertices.0.square", "2"), "witness.vertices[0]"),
    ("box", put("witness.vertices.0.square", "-1"), "witness.vertices[0]"),
    ("box", put("witness.vertices.0.entries", ["1"]), "witness.vertices[0]"),
    ("box", put("witness.shares", ["2", "1"]), "witness.shares"),
    ("box", put("witness.shares", ["1"]), "witness.shares"),
    ("box", put("theorem.weights", ["1", "0"]), "theorem.weights"),
    ("box", put("theorem.weights", ["1", "2"]), "theorem.upper"),
    ("box", put("theorem.objective", "least"), "theorem.objective"),
    ("box", put("theorem.space", "Box(bounds=[1, 3])"), "witness.covariance"),
    ("box", put("theorem.space", "Box(bounds=[1, 1])"), "witness.vertices[0]"),
    ("box", put("theorem.space", "Isotropic(dimension=2, variance=1)"), "theorem.space"),
    ("box", put("witness.covariance.0", []), "witness.covariance[0]"),
    ("sparse", put("witness.shares", ["1", "1", "1"]), "witness.shares"),
    ("sparse", scaled("theorem.lower", MORE), "theorem.lower"),
    ("sparse", put("theorem.space", f"{SPARSE}=2, signed=True)"), "witness.covariance"),
    ("sparse", put("theorem.space", f"{SPARSE}=1)"), "witness.vertices[3]"),
    ("sparse", put("theorem.space", f"{SPARSE}=3)"), "witness.covariance"),
    *((name, _smaller, "witness.covariance") for name in ("ball", "sparse", "set", "groups")),
    ("ball", put("theorem.space", "L2Ball(dimension=2, radius=2)"), "witness.covariance"),
    ("ball", put("theorem.space", "L2Ball(dimension=2, radius='1/2')"), "witness.vertices[0]"),
    ("set", put("witness.vertices.0.entries", ["1", "1/2"]), "witness.vertices[0]"),
    ("groups", put("witness.vertices.0.entries", ["1", "1"]), "witness.vertices[0]"),
]


@pytest.mark.parametrize(("name", "forge", "field"), FORGERIES)
def test_the_field_of_a_forgery_is_named(name: str, forge: Forge, field: str) -> None:
    data = plain(json.loads(_genuine(name)))
    forge(data)
    assert field in [path for path, _ in problems(data)]


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "noise.json"
    command = ["optimal", "integer-noise", "--epsilon", "1", "--delta", "0.01", "--support", "8"]
    assert main([*command, "--quiet", "--certificate", str(path)]) == 0
    assert main(["check", str(path)]) == 0
    said = "\nVALID  OPTIMAL: the least mean of Z^2 at epsilon = 1 of a law on -8..8"
    assert said in capsys.readouterr().out
    data = json.loads(path.read_text(encoding="utf-8"))
    law = data["witness"]["law"]
    law[8] = str(Fraction(law[8]) / 2)
    path.write_text(json.dumps(data), encoding="utf-8")
    assert main(["check", str(path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["certificates"][0]["outcome"] == "INVALID"
    for text in ("[]", "no"):
        path.write_text(text, encoding="utf-8")
        assert main(["check", str(path)]) == 2


def test_a_shape_of_too_many_corners_is_not_called_wrong() -> None:
    data, size = certified("gaussian-shape"), 17
    space = f"Box(bounds=[{', '.join('1' * size)}])"
    data["theorem"] |= {"space": space, "weights": ["1"] * size}
    rows = [[str(size * (i == j)) for j in range(size)] for i in range(size)]
    data["witness"]["covariance"] = rows
    checked = check(data)
    assert checked.outcome is Outcome.CONDITIONAL
    assert "more than 32768 vertices" in checked.assumptions[0]


@pytest.mark.parametrize(
    "space",
    [
        *("Box", "Box(bounds=12)", "Box(bounds=[-1, 2])", "Box(bounds=[0, 0])", "Box(bounds=[])"),
        *("FiniteSet(vectors=12)", "FiniteSet(vectors=[[1], [1, 2]])", "FiniteSet(vectors=[[]])"),
        *("SparseBox(dimension=2, sparsity=0)", "SparseBox(2, 1, signed=maybe)", "L2Ball(2, -1)"),
        *("DisjointGroups(groups=2, space=3)", "DisjointGroups(groups=1, space=Gaussian(1))"),
        *(
            "Box(bounds=[1, 2], bounds=[1])",
            "Box(bounds=[1, 'sqrt(-4)'])",
            "Box(bounds=[1, 2]) + 1",
        ),
    ],
)
def test_what_is_no_space_has_no_optimum(space: str) -> None:
    data = certified("gaussian-shape")
    data["theorem"]["space"] = space
    assert [path for path, _ in check(data).problems] == ["theorem.space"]
