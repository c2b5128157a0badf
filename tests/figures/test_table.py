from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from accountant.numbers.interval import Interval
from figures.table import Table, label, number

COLUMNS = (label("curve"), number("x", "1"), number("y", "nats", relative=1e-3, absolute=1e-6))


@pytest.fixture
def table() -> Table:
    rows = [("a", 1, Fraction(1, 3)), ("a", 2, None), ("b", 1, Interval(Decimal(2), Decimal(4)))]
    return Table.of(COLUMNS, rows, d=3)


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


def test_an_empty_stored_file_is_drift(table: Table) -> None:
    assert table.differences("") == ["columns curve, x, y, stored: "]
