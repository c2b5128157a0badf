"""Workloads that are other names of plain ones, and training runs by scheme."""

from __future__ import annotations

from fractions import Fraction

import pytest

import dpassay
from accountant.core.adjacency import Adjacency
from accountant.errors import InvalidInputError, NotApplicableError
from accountant.geometry.workload import BoundedSum, Counts, Histogram, Mean


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_histogram_is_counts_of_which_a_person_has_one(adjacency: str) -> None:
    answers = [
        dpassay.compare(workload, epsilon=1, adjacency=adjacency, simulated=False)
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
    [["Poisson", "once"], pytest.param(["Poisson", "once", "without"], marks=pytest.mark.slow)],
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
    relations = {name: row.finding and row.finding.adjacency for name, row in noise.items()}
    assert relations.pop("batches", "replace-one") == "replace-one"
    assert relations == {"Poisson": "add-remove", "each": "add-remove"}


def test_a_training_run_has_its_own_steps() -> None:
    with pytest.raises(NotApplicableError, match="leave releases"):
        dpassay.compare("Training(100, 1000, 2)", epsilon=2, delta="1e-5", releases=3)
    with pytest.raises(InvalidInputError, match="batch_size=100 ≤ dataset_size=10"):
        dpassay.compare("Training(100, 10, 2)", epsilon=2, delta="1e-5")
    with pytest.raises(InvalidInputError, match="epsilon, delta"):
        dpassay.compare("Training(100, 1000, 2)", mu=1, only=["Poisson"])
