"""The checker of optimal Gaussian shapes accepts proofs, and names the field of every forgery."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from accountant.geometry.spaces import Box, DisjointGroups, FiniteSet, L2Ball, Space, SparseBox
from lp.shape_problem import GaussianShapeProblem
from lp.shapes import optimal_gaussian_shape
from verify import seal
from verify.checker import check
from verify.cli.optimal_shape import certificate

Data = dict[str, Any]


def made(space: Space, objective: str = "total", weights: list[int] | None = None) -> Data:
    found = optimal_gaussian_shape(GaussianShapeProblem(space, objective, weights))
    data: Data = json.loads(json.dumps(certificate(found)))
    return data


def problems(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Check data under a new seal."""
    plain = {key: value for key, value in data.items() if key != "seal"}
    return check({**plain, "seal": seal.seal(plain)}).problems


@pytest.mark.parametrize("objective", ["total", "worst"])
@pytest.mark.parametrize(
    ("space", "weights"),
    [
        (Box([1, 2, 3]), None),
        (Box(["sqrt(2)", "sqrt(8)"]), [1, 5]),
        (SparseBox(4, 2), None),
        (SparseBox(4, 2, "1/3", signed=True), [1, 1, 2, 3]),
        (FiniteSet([[1, 0], ["sqrt(2)", "sqrt(2)"]]), None),
        (L2Ball(3, "sqrt(2)"), [1, 2, 3]),
        (DisjointGroups(2, Box([1, 2])), None),
        (Box([3]), None),
    ],
)
def test_accepts_proofs(space: Space, weights: list[int] | None, objective: str) -> None:
    assert problems(made(space, objective, weights)) == []


@functools.cache
def _bases() -> dict[str, Data]:
    return {
        "box": made(Box([1, 2])),
        "sparse": made(SparseBox(3, 2), "worst"),
        "ball": made(L2Ball(2)),
        "set": made(FiniteSet([[1, 0], [1, 1]])),
        "groups": made(DisjointGroups(2, Box([1]))),
    }


def _set(path: str, value: object) -> Callable[[Data], None]:
    *parents, last = path.split(".")

    def forge(data: Data) -> None:
        inner: Any = data
        for key in parents:
            inner = inner[int(key) if key.isdigit() else key]
        inner[int(last) if last.isdigit() else last] = value

    return forge


def _scaled(*path: str | int, by: str = "1001/1000") -> Callable[[Data], None]:
    def forge(data: Data) -> None:
        inner: Any = data
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = str(Fraction(inner[path[-1]]) * Fraction(by))

    return forge


def _smaller(data: Data) -> None:
    data["covariance"] = [
        [str(Fraction(entry) * Fraction(999, 1000)) for entry in row] for row in data["covariance"]
    ]


@pytest.mark.parametrize(
    ("base", "forge", "field"),
    [
        ("box", _scaled("optimum", "upper", by="999/1000"), "optimum.upper"),
        ("box", _scaled("optimum", "lower"), "optimum.lower"),
        ("box", _smaller, "covariance"),
        ("box", _set("covariance.0.1", "1"), "covariance"),
        ("box", _set("covariance.1.1", "-4"), "covariance"),
        ("box", _scaled("law", 0, by="2"), "law"),
        ("box", _set("law.0", "-1"), "law"),
        ("box", _set("law.0", "0"), "optimum.lower"),
        ("box", _scaled("vertices", 0, "square", by="2"), "vertices[0]"),
        ("box", _set("vertices.0.square", "-1"), "vertices[0]"),
        ("box", _set("vertices.0.entries", ["1"]), "vertices[0]"),
        ("box", _set("shares", ["2", "1"]), "shares"),
        ("box", _set("shares", ["1"]), "shares"),
        ("box", _set("given.weights", ["1", "0"]), "given.weights"),
        ("box", _set("given.weights", ["1", "2"]), "optimum.upper"),
        ("box", _set("given.objective", "least"), "given.objective"),
        ("box", _set("given.space.bounds", ["1", "3"]), "covariance"),
        ("box", _set("given.space.bounds", ["1", "1"]), "vertices[0]"),
        ("box", _set("given.space.type", "Cube"), "given.space.type"),
        ("box", _set("schema_version", 2), "schema_version"),
        ("box", _set("covariance.0", []), "covariance"),
        ("sparse", _set("shares", ["1", "1", "1"]), "shares"),
        ("sparse", _scaled("optimum", "lower"), "optimum.lower"),
        ("sparse", _set("given.space.signed", True), "covariance"),
        ("sparse", _set("given.space.sparsity", 1), "vertices[3]"),
        ("sparse", _set("given.space.sparsity", 3), "covariance"),
        ("ball", _smaller, "covariance"),
        ("ball", _set("given.space.radius", "2"), "covariance"),
        ("ball", _set("given.space.radius", "1/2"), "vertices[0]"),
        ("set", _set("vertices.0.entries", ["1", "1/2"]), "vertices[0]"),
        ("groups", _set("vertices.0.entries", ["1", "1"]), "vertices[0]"),
    ],
)
def test_names_the_field_of_a_forgery(base: str, forge: Callable[[Data], None], field: str) -> None:
    data = copy.deepcopy(_bases()[base])
    forge(data)
    assert field in [name for name, _ in problems(data)]
