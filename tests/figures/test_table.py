"""Tables of figures, drawings of laws and of verdicts."""

from __future__ import annotations

import sys
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import dpassay
from dpassay.accountant.core.asking import Drawable
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms import Gaussian
from dpassay.accountant.numbers.interval import Interval
from dpassay.figures import style
from dpassay.figures.table import Table, columns_of
from dpassay.verifier.cli.optimal import Laws

COLUMNS = columns_of("curve", x="1", y=("nats", 1e-3, 1e-6))


@pytest.fixture
def table() -> Table:
    rows = [("a", 1, Fraction(1, 3)), ("a", 2, None), ("b", 1, Interval(Decimal(2), Decimal(4)))]
    return Table.of(COLUMNS, rows, d=3)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("δ = 5e-07 at 1e-05", "δ = 5·10⁻⁷ at 10⁻⁵"),
        ("1e+10 and 2.5e4", "10¹⁰ and 2.5·10⁴"),
        ("ε = 0.5, 16.983; core e-5", "ε = 0.5, 16.983; core e-5"),
    ],
)
def test_what_is_found_has_powers_of_ten(text: str, shown: str) -> None:
    figure = Figure()
    style.finding(figure, text)
    assert figure.get_label() == shown


def test_a_table_is_read_by_rows_columns_and_curves(table: Table) -> None:
    assert table.distinct("curve") == ["a", "b"]
    assert table.points("x", "y", curve="a") == ([1.0], [0.333333333333])
    assert table.value("y", curve="b") == 3
    assert table.to_csv() == "curve,x,y\na,1,0.333333333333\na,2,\nb,1,3\n"
    with pytest.raises(ValueError, match="values to unpack"):
        table.value("x", curve="a")


def test_a_table_agrees_with_its_own_csv_and_within_the_tolerances(table: Table) -> None:
    stored = table.to_csv()
    assert table.differences(stored) == []
    assert table.differences(stored.replace("0.333333333333", "0.33350")) == []
    assert table.differences(stored.replace("0.333333333333", "0.3340")) == [
        "line 2, y: 0.333333333333, stored: 0.3340"
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("a,2,\n", "a,2,5\n", "line 3, y: nothing, stored: 5"),
        ("b,1,3\n", "", "3 rows, stored: 2"),
        ("b,1,3\n", "b,1\n", "line 4, y: 3, stored: nothing"),
        ("b,1,3\n", "c,1,3\n", "line 4, curve: b, stored: c"),
        ("b,1,3\n", "b,one,3\n", "line 4, x: 1, stored: one"),
        ("curve,x,y", "curve,x,z", "columns curve, x, y, stored: curve, x, z"),
    ],
)
def test_every_kind_of_drift_is_said(table: Table, old: str, new: str, said: str) -> None:
    assert table.differences(table.to_csv().replace(old, new)) == [said]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_an_error(bad: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        Table.of(COLUMNS, [("a", 1, bad)])


def test_every_positive_probability_is_shown() -> None:
    laws = [("a", -1, [0.25, 0.5, 0.25]), ("b", 0, [0.9, 0.0, 0.1])]
    figure = Laws(laws, "two").plot()
    axes = figure.axes[0]
    first, second = axes.lines
    np.testing.assert_array_equal(np.asarray(first.get_xdata()), [-1, 0, 1])
    np.testing.assert_array_equal(np.asarray(second.get_xdata()), [0, 2])
    np.testing.assert_array_equal(np.asarray(second.get_ydata()), [0.9, 0.1])
    assert axes.get_yscale() == "log"
    assert axes.get_ylabel() == "P(Z = z)"
    assert [line.get_label() for line in axes.lines] == ["a", "b"]
    assert axes.get_legend() is not None


def test_the_bars_of_a_comparison_are_its_errors() -> None:
    found = dpassay.compare("Count()", epsilon=1)
    axes = found.plot().axes[0]
    bars: list[Any] = list(axes.patches)
    widths = [bar.get_width() for bar in bars]
    assert widths == [record[found.ranked_by.name] for record in found.to_records()]
    assert widths == sorted(widths)


def test_without_the_public_face_nothing_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Drawable, "drawer", None)
    with pytest.raises(NotApplicableError, match="import dpassay"):
        Gaussian(1).plot()


def test_records_become_a_frame_where_pandas_is(monkeypatch: pytest.MonkeyPatch) -> None:
    found = dpassay.profile("Laplace(1)", epsilon=[0, 2], delta=0)
    assert [record["name"] for record in found.to_records()] == ["delta", "delta", "epsilon"]
    assert found.to_records()[1]["value"] == 0
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(NotApplicableError, match="pip install pandas"):
        found.to_pandas()
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    assert found.to_pandas() == found.to_records()
