"""Optimal Gaussian shapes: certified, exactly private, and equal to the known closed forms."""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal
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
from dpassay.accountant.mechanisms.shapes.ellipses import EllipticalGaussian, OptimalEllipse
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import enclose
from dpassay.accountant.questions import accuracy
from dpassay.lp.shapes import (
    GaussianShape,
    GaussianShapeProblem,
    optimal_gaussian_shape,
    shape_bound,
    vertices,
)
from dpassay.verifier.cli import main
from tests.near import narrow

ONE = ExactReal.of_rational(1)


def _solve(space: Space, objective: str = "total", weights: Any = None) -> GaussianShape:
    found = optimal_gaussian_shape(GaussianShapeProblem(space, objective, weights))
    assert found.mechanism.exact_gaussian_mu(None) == ONE
    assert sum(found.law) == 1
    return found


def _is_narrow(found: GaussianShape, width: str) -> bool:
    reached = found.value.relative_width
    return reached is not None and reached < Fraction(width)


@pytest.mark.parametrize(
    ("dimension", "sparsity"), [(1, 1), (3, 1), (4, 2), (4, 4), (5, 5), (6, 4), (7, 3)]
)
def test_sparse_counts_reproduce_the_optimal_ellipse(dimension: int, sparsity: int) -> None:
    found = _solve(SparseBox(dimension, sparsity))
    query = accuracy.variance(OptimalEllipse(dimension, sparsity, 1))[0]
    low, high = Fraction(query.lower) * dimension, Fraction(query.upper) * dimension
    assert Fraction(found.value.lower) <= high
    assert low <= Fraction(found.value.upper)
    assert _is_narrow(found, "1e-12")


@pytest.mark.parametrize("bounds", [[1], [1, 2, 3], ["sqrt(2)", "sqrt(8)"], ["1e-3", 1, 50]])
def test_boxes_reproduce_the_elliptical_gaussian(bounds: list[Any]) -> None:
    found = _solve(Box(bounds))
    mechanism = EllipticalGaussian(bounds, 1)
    total = enclose(lambda: mechanism.mean_squared_error() * mechanism.dimension)
    assert found.value.overlaps(total)
    assert _is_narrow(found, "1e-12")


def test_signed_sparse_box_and_finite_sets() -> None:
    assert Decimal(8) in _solve(SparseBox(4, 2, 1, True)).value
    corners = FiniteSet([[1, 1, 1], [1, 1, -1], [1, -1, 1], [1, -1, -1]])
    assert _solve(corners).value.overlaps(_solve(Box([1, 1, 1])).value)
    assert _is_narrow(_solve(FiniteSet([[1, 0], [1, 1], [3, 2]])), "1e-12")


def test_worst_coordinate() -> None:
    """For a box the worst variance is that of independent equal noise, Σ Δ²."""
    found = _solve(Box([1, 2, 3]), "worst")
    assert Decimal(14) in found.value
    assert _is_narrow(found, "1e-6")
    query = accuracy.variance(OptimalEllipse(5, 5, 1))[0]
    assert _solve(SparseBox(5, 5), "worst").value.overlaps(query)


def test_any_law_gives_a_valid_bound() -> None:
    space = SparseBox(4, 3)
    found = _solve(space)
    every = vertices(space)
    uniform = [Fraction(1, len(every))] * len(every)
    assert shape_bound(every, uniform, [Fraction(1)] * 4).upper < found.value.lower
    first = shape_bound(every[:1], [Fraction(1)], [Fraction(1)] * 4)  # one axis: the norm squared
    assert first.lower <= 1 <= first.upper


@pytest.mark.parametrize("objective", ["total", "worst"])
def test_balls_need_isotropic_noise(objective: str) -> None:
    found = _solve(L2Ball(3, "sqrt(2)"), objective=objective)
    assert (6 if objective == "total" else 2) in found.value
    assert narrow(found.value, Fraction(1, 10**7))


def test_groups_cost_what_each_of_them_costs() -> None:
    """A difference lies in one group, so each group has the noise that it needs alone."""
    alone = _solve(Box([1, 2])).value
    groups = _solve(DisjointGroups(2, Box([1, 2]))).value
    assert Fraction(groups.lower) <= 2 * Fraction(alone.upper)
    assert 9 in alone
    assert 18 in groups


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["optimal", "gaussian-shape", "Box(bounds=[1, 2, 3])", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert Decimal(printed["objective"]["lower"]) <= 36 <= Decimal(printed["objective"]["upper"])
    proof = tmp_path / "proof.json"
    space = "SparseBox(dimension=4, sparsity=2)"
    assert main(["optimal", "gaussian-shape", space, "--certificate", str(proof)]) == 0
    assert "7.464101615" in capsys.readouterr().out
    written = json.loads(proof.read_text(encoding="utf-8"))
    assert sum(Fraction(mass) for mass in written["witness"]["law"]) == 1
    assert main(["optimal", "gaussian-shape", space, "--quiet", "--weights", "1,1,1,1"]) == 0
    assert capsys.readouterr().out.startswith("GeneralGaussian(covariance=Matrix(")
    assert main(["check", str(proof)]) == 0
    assert capsys.readouterr().out.startswith("VALID  OPTIMAL: the least")
    assert main(["optimal", "gaussian-shape", "Gaussian(standard_deviation=1)"]) == 2
    assert "sensitivity space" in capsys.readouterr().err


def test_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "shape.toml"
    table.write_text('space = "Box(bounds=[1, 2, 3])"\nobjective = "worst"\n', encoding="utf-8")
    assert main(["optimal", "gaussian-shape", str(table)]) == 0
    assert "least worst variance at mu = 1   14.0" in capsys.readouterr().out
    assert main(["optimal", "gaussian-shape", str(table), "--objective", "total"]) == 0
    assert "36.0000000000" in capsys.readouterr().out
    data = tmp_path / "shape.json"
    data.write_text('{"vertices": [[0.5, 0], [0, 1]], "weights": [4, 1]}', encoding="utf-8")
    assert main(["optimal", "gaussian-shape", str(data), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert Decimal(printed["objective"]["lower"]) <= 2 <= Decimal(printed["objective"]["upper"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.toml", "space = ", "is not a TOML file"),
        ("a.json", "{", "is not a JSON file"),
        ("a.json", "[" * 100000, "is not a JSON file"),
        ("a.json", "[]", "to hold a table"),
        ("a.toml", "objective = 'total'", "one of space and vertices"),
        ("a.toml", "spaec = 'Box(bounds=[1])'", "Did you mean 'space'"),
        ("a.toml", "vertices = [[1, 0], [1]]", "vectors"),
    ],
)
def test_bad_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, content: str, message: str
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    assert main(["optimal", "gaussian-shape", str(path)]) == 2
    assert message in capsys.readouterr().err
    assert main(["optimal", "gaussian-shape", str(tmp_path / "none.toml")]) == 2


def test_no_noise_has_less_for_the_queries_where_the_size_has_as_much() -> None:
    """better-gaussian/beyond/size/optimum, d = 3: exact up to g = 3/2, and no further."""
    records = [[*entries, 1] for entries in itertools.product((0, 1), repeat=3)]
    for g, is_least in ((Fraction(1), True), (Fraction(3, 2), True), (Fraction(17, 10), False)):
        size = (3 / g**2 - 1) / 4
        found = _solve(FiniteSet(records), weights=[Fraction(1, 3)] * 3 + [size])
        theirs = (4 + g + 3 / g) / 4 + size * (1 + g)
        if is_least:
            assert _is_narrow(found, "1e-5")
            assert Fraction(found.value.lower) <= theirs
        assert (Fraction(found.value.upper) >= theirs * (1 - Fraction(1, 10**6))) == is_least


def test_records_in_two_of_three_groups() -> None:
    """better-gaussian/beyond/contributions/optimum, three counts in each group."""
    entries = list(itertools.product((0, 1), repeat=3))
    records = {(*a, *b, 0, 0, 0) for a in entries for b in entries}
    records |= {(*v[3:6], *v[6:], *v[:3]) for v in records} | {(*v[6:], *v[:6]) for v in records}
    found = _solve(FiniteSet(sorted(map(list, records - {(0,) * 9}))))
    root = math.sqrt(8 / 3)
    most = 9 * 2 * (root + math.sqrt(root**2 + 6)) ** 2 / 12
    least = max(2 * (root * s + math.sqrt(6 * s * (3 - s))) ** 2 / 3 for s in (1, 2, 3))
    assert least * (1 - 1e-6) <= float(found.value.upper)
    assert float(found.value.lower) <= most * (1 + 1e-6)
