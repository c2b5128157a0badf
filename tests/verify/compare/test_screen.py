"""Comparisons on a terminal of 80 or 120 columns, and workloads."""

from __future__ import annotations

import io
import re
from fractions import Fraction

import pytest

import dpassay
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.geometry.workload import BoundedSum, Counts, Histogram, Mean
from dpassay.verifier.compare import Comparison, output
from tests.quick import quick

ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def found() -> Comparison:
    return dpassay.compare(
        "VectorSum(dimension=50, l2_sensitivity=1)", epsilon=1, delta="1e-6", published=True
    )


def shown(found: Comparison) -> str:
    terminal = Terminal()
    output.show(found, output.best_lines(found), terminal)
    return terminal.getvalue()


@pytest.mark.parametrize("columns", quick([60, 80, 120], 1, 2))
def test_it_fits_and_keeps_every_row(
    found: Comparison, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    lines = ESCAPE.sub("", shown(found)).splitlines()
    code = [line for line in lines if line.startswith("release ")]
    assert code[0].endswith(").release(answers)")  # in one piece, to be copied
    assert max(len(line.rstrip()) for line in lines if line not in code) <= columns
    text = "\n".join(lines)
    assert text.startswith("Use `Gaussian(")
    for row in found.rows:
        assert row.candidate.name.split()[0] in text


def test_what_is_not_private_is_struck_out(
    found: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    struck = [line for line in shown(found).splitlines() if "\x1b[2;9m" in line]
    assert [ESCAPE.sub("", line).split()[0] for line in struck] == ["R1SMG", "elliptical"]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in shown(found)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_histogram_is_counts_of_which_a_person_has_one(adjacency: str) -> None:
    answers = [
        dpassay.compare(workload, epsilon=1, adjacency=adjacency)
        for workload in ("Histogram(bins=7)", "Counts(dimension=7, sparsity=1)")
    ]
    histogram, counts = ([row.found.mechanism for row in found.rows] for found in answers)
    assert histogram == counts
    assert repr(answers[0].workload) == "Histogram(bins=7)"
    # A replaced person leaves one bin and enters another.
    most = 2 if adjacency == "replace-one" else 1
    assert histogram[0] == dpassay.parse(f"DiscreteLaplace(scale={most})")


def test_a_mean_moves_by_its_range_over_its_records() -> None:
    assert Mean(-5, 15, 1000).plain(Adjacency.REPLACE_ONE) == BoundedSum([Fraction(1, 50)])
    found = dpassay.compare("Mean(-5, 15, 1000)", epsilon=2, adjacency="replace-one")
    (row,) = found.rows
    variance = row.value("variance")
    assert variance is not None
    assert Fraction(2, 100**2) in variance  # Laplace noise of scale 1/100
    assert variance.digits > 12
    assert Histogram(3).plain(Adjacency.ADD_REMOVE) == Counts(3, 1)


def test_a_mean_says_which_neighbours_it_needs() -> None:
    with pytest.raises(NotApplicableError, match=r"replace-one.*BoundedSum\(bounds=\[15, 1\]\)"):
        dpassay.compare("Mean(-5, 15, 1000)", epsilon=1)
    with pytest.raises(InvalidInputError, match="lower=3 < upper=2"):
        Mean(3, 2, 10)


@pytest.mark.parametrize(
    "schemes",
    [
        ["Poisson", "once", "random"],
        pytest.param(["Poisson", "once", "without"], marks=pytest.mark.slow),
    ],
)
def test_a_training_run_names_the_noise_of_each_scheme(schemes: list[str]) -> None:
    found = dpassay.compare("Training(100, 1000, 2)", epsilon=2, delta="1e-5", only=schemes)
    assert len(found.rows) == len(schemes)
    noise = {row.candidate.name.split()[0]: row for row in found.rows}
    run = dpassay.dpsgd_noise(2, 100, 1000, epochs=2, delta="1e-5")
    assert getattr(noise["Poisson"].found.mechanism, "standard_deviation", 0) == (
        run.noise_multiplier
    )
    once = dpassay.calibrate("Gaussian", epsilon=2, delta="1e-5", count=2)
    assert noise["each"].found.mechanism == once.mechanism
    assert all(row.is_private for row in found.rows)
    relations = {
        name: None if row.finding is None else row.finding.adjacency for name, row in noise.items()
    }
    assert relations.pop("batches", "replace-one") == "replace-one"
    assert relations.pop("random", "add-remove") == "add-remove"
    assert relations == {"Poisson": "add-remove", "each": "add-remove"}


def test_a_training_run_has_its_own_steps() -> None:
    with pytest.raises(NotApplicableError, match="leave releases"):
        dpassay.compare("Training(100, 1000, 2)", epsilon=2, delta="1e-5", releases=3)
    with pytest.raises(InvalidInputError, match="batch_size=100 ≤ dataset_size=10"):
        dpassay.compare("Training(100, 10, 2)", epsilon=2, delta="1e-5")
    with pytest.raises(InvalidInputError, match="epsilon, delta"):
        dpassay.compare("Training(100, 1000, 2)", mu=1, only=["Poisson"])
