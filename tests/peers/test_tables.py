"""Unit-test tables of dp-accounting, prv-accountant and Opacus: reproduced, or decided.

Every row of every table is asked. Its whole enclosure is within the tolerance of the library's own
test, or the row is in decided.toml, which says why and names the test that proves it.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator

import pytest

from dpassay.accountant.errors import UndecidedError
from tests.peers import accountants, laws
from tests.peers.rows import FOLDER, Case, Row, cases

QUESTIONS = {**laws.QUESTIONS, **accountants.QUESTIONS}
DECIDED: list[Row] = tomllib.loads((FOLDER / "decided.toml").read_text(encoding="utf-8"))["decided"]
SLOW = (
    "test_mixture_of_gaussians_basic",
    "test_poisson_subsampled_gaussian",
    "test_self_composed_subsampled_gaussian",
    "test_get_smallest_subsampled_gaussian_noise",
    "test_compute_log_a_equals_mp",
    "test_delta_bounds_gaussian",
    "test_get_noise_multiplier_rdp_steps",
)
"""Few releases of a small q, laws without an exact engine and long sums are the slow ones."""


def _is_decided(case: Case) -> bool:
    return any(_names(entry, case) for entry in DECIDED)


def _names(entry: Row, case: Case) -> bool:
    if case.test not in entry["tests"] or case.row not in entry.get("rows", [case.row]):
        return False
    if case.quantity not in entry.get("quantity", [case.quantity]):
        return False
    if "where" not in entry:
        return True
    key, value = entry["where"].split(" = ")
    return str({**case.given, **case.given.get("law", {})}[key]) in {value, f"{value}.0"}


def _groups() -> Iterator[object]:
    rows = sorted(cases(), key=lambda case: (case.table, case.test))
    for (table, test), group in itertools.groupby(rows, key=lambda case: (case.table, case.test)):
        slow = [pytest.mark.slow] if test.endswith(SLOW) else []
        yield pytest.param(list(group), id=f"{table}:{test}", marks=slow)


@pytest.mark.parametrize("rows", list(_groups()))
def test_every_row_is_reproduced_or_decided(rows: list[Case]) -> None:
    wrong = []
    for case in rows:
        message = QUESTIONS[case.quantity](case.given) if not _is_decided(case) else None
        if message is not None:
            wrong.append(f"{case}: {message}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("entry", DECIDED, ids=lambda entry: entry["proof"])
def test_every_decision_is_about_rows_that_differ(entry: Row) -> None:
    """A decision whose row is reproduced after all is out of date."""
    named = [case for case in cases() if _names(entry, case)]
    assert named
    for case in named:
        if case.test.endswith(SLOW):
            continue
        try:
            message = QUESTIONS[case.quantity](case.given)
        except UndecidedError:
            message = "refused"
        assert message is not None, str(case)


def test_the_size_of_the_tables() -> None:
    rows = list(cases())
    values = sum(
        len(case.given["expected"]) if isinstance(case.given.get("expected"), list) else 1
        for case in rows
    )
    decided = sum(map(_is_decided, rows))
    assert (len(rows), values, decided) == (984, 1427, 54)
