from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import Composed, Gaussian, Laplace, PoissonSubsampled, Tabulated
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions.profile import delta
from dpassay.figures import style
from dpassay.figures.profile import Table, compute, draw, estimate, plot
from tests.quick import quick

HEADS = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


@pytest.fixture(scope="module")
def table() -> Table:
    marks = [(at, delta(Laplace(scale=2), at)) for at in ("0.1", "-0.2", "0.6")]
    return compute(Laplace(scale=2), marks=marks)


@pytest.mark.parametrize("suffix", quick(HEADS, 2))
def test_a_file_is_written_and_the_same_one_again(suffix: str, tmp_path: Path) -> None:
    marks = [("0.1", delta(Laplace(scale=2), "0.1"))]
    paths = [tmp_path / f"{name}{suffix}" for name in ("one", "two")]
    for path in paths:
        plot(Laplace(scale=2), path, adjacency=None, marks=marks)
    first, second = (path.read_bytes() for path in paths)
    assert first.startswith(HEADS[suffix])
    assert len(first) > 5000
    assert first == second


def test_another_suffix_is_refused(table: Table, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"to end in \.png, \.pdf, \.svg"):
        style.save(draw(table), tmp_path / "profile.jpg")


def test_the_table_is_the_closed_form(table: Table) -> None:
    # 1 − e^{(ε − ½)/2} up to ε = ½, and 1 − e^ε below −½
    for row in table.rows:
        exact = -math.expm1((float(row.epsilon) - 0.5) / 2) if row.epsilon < Fraction(1, 2) else 0.0
        assert isinstance(row.remove, Interval)
        # the float itself cancels near ½; the enclosure does not
        assert float(row.remove.lower) <= exact * (1 + 1e-8) + 1e-15
        assert float(row.remove.upper) >= exact * (1 - 1e-8) - 1e-15
        assert row.add is None


def test_one_curve_and_a_logarithmic_axis(table: Table) -> None:
    (axes,) = draw(table).axes
    assert axes.get_yscale() == "log"
    assert axes.get_xlabel() == "ε (nats)"
    assert axes.get_ylabel() == "δ(ε) (probability)"
    curve, *points = axes.lines
    assert np.shape(curve.get_xdata())[0] == len(table.rows)
    assert len(points) == 2  # δ(0.6) = 0 is left out
    assert {text.get_text() for text in axes.texts} == {"δ(0.1) = 0.1813", "δ(-0.2) = 0.2953"}


def test_two_directions_where_they_differ() -> None:
    noise = PoissonSubsampled(Tabulated(["1/2", "1/4", "1/4", 0], [0, "1/2", "1/4", "1/4"]), "1/2")
    table = compute(noise, adjacency="add-remove")
    assert table.rows[0].add is not None
    # the profile never falls to 0: it is shown a little beyond its largest finite loss, ln 2
    assert math.log(2) < float(table.rows[-1].epsilon) < 2 * math.log(2)
    (axes,) = draw(table).axes
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["remove", "add"]
    assert axes.get_title(loc="left").endswith(", add-remove")
    assert len({line.get_linestyle() for line in axes.lines}) == 2


@pytest.mark.slow
def test_estimates_are_drawn_as_such(tmp_path: Path) -> None:
    training = Composed(PoissonSubsampled(Gaussian(standard_deviation=1), "1/100"), 1000)
    table = estimate(training, adjacency="add-remove")
    assert table.estimated
    truth = delta(training, table.rows[40].epsilon, adjacency="add-remove")
    found = [table.rows[40].remove, table.rows[40].add]
    assert math.isclose(max(x for x in found if isinstance(x, float)), float(truth.lower))
    axes = draw(table).axes[0]
    assert axes.get_title(loc="left").endswith("(estimate)")
    plot(training, tmp_path / "profile.svg", adjacency="add-remove")
    assert (tmp_path / "profile.svg").read_bytes().startswith(HEADS[".svg"])
