"""Laws that every mechanism with jointly normal noise obeys, by brute force over records."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import arb, arb_mat, ctx

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import AdjacencyError
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.notation import parse
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.questions import accuracy, guarantees, profile
from tests.near import narrow
from tests.tables import rows

ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
Vector = tuple[int, ...]


def vectors(dimension: int, sparsity: int | None = None) -> list[Vector]:
    """All 0/1 vectors with at most `sparsity` ones."""
    most = dimension if sparsity is None else sparsity
    return [v for v in itertools.product((0, 1), repeat=dimension) if sum(v) <= most]


def grouped(groups: int, dimension: int, *, sizes: bool = True) -> list[Vector]:
    """Records of disjoint groups, the size of each row beside it; one record in no group."""
    records: list[Vector] = [(0,) * (groups * (dimension + int(sizes)))]
    for group in range(groups):
        for row in vectors(dimension):
            if any(row):
                block = (*row, 1) if sizes else row
                before = (0,) * (group * len(block))
                after = (0,) * ((groups - group - 1) * len(block))
                records.append(before + block + after)
    return records


def worst_norm(mechanism: Mechanism, records: Iterable[Vector], relation: Adjacency) -> arb:
    """Largest √(w'Σ⁻¹w) over the differences of neighbours, Σ the covariance matrix."""
    records = list(records)
    if relation is ADD:
        differences = records
    else:
        differences = [
            tuple(a - b for a, b in zip(x, y, strict=True)) for x in records for y in records
        ]
    inverse = arb_mat(mechanism.covariance_matrix()).inv()
    largest = arb(0)
    for difference in set(differences):
        column = arb_mat([[entry] for entry in difference])
        largest = largest.max((column.transpose() * inverse * column)[0, 0])
    return largest.sqrt()


CASES: list[tuple[str, list[Vector]]] = []
for d in (1, 2, 3, 4, 5):
    with_size = [(*v, 1) for v in vectors(d)]
    for c in ("", ", c=1", ', c="sqrt(2)"', ", c=3", ', c="1/3"'):
        CASES.append((f"CorrelatedGaussian(dimension={d}, mu=1.5{c})", with_size))
        hidden = f"CorrelatedGaussian(dimension={d}, mu=1.5{c}, release_size=False)"
        CASES.append((hidden, vectors(d)))
    CASES.append((f'KnownSizeGaussian(dimension={d}, mu="sqrt(2)", size_mu="1/3")', with_size))
    for k in range(1, d + 1):
        if 2 * k <= max(d, 2):
            CASES.append((f"CountEllipse(dimension={d}, sparsity={k}, mu=2)", vectors(d, k)))
        CASES.append((f"OptimalEllipse(dimension={d}, sparsity={k}, mu=0.7)", vectors(d, k)))
for groups, d, printed in itertools.product((1, 2, 3), (2, 3), (True, False)):
    for made_for in ("add-remove", "replace-one"):
        text = (
            f"DisjointGroupsGaussian(groups={groups}, dimension={d}, mu=1.2, "
            f"adjacency='{made_for}', as_printed={printed})"
        )
        CASES.append((text, grouped(groups, d)))
for (groups, d), made_for in itertools.product(
    [(1, 1), (1, 2), (1, 3), (2, 1), (4, 1), (2, 2), (3, 2), (2, 3), (4, 3), (7, 3)],
    ("add-remove", "replace-one"),
):
    text = f"OptimalGroups(groups={groups}, counts={d}, mu=1.2, adjacency='{made_for}')"
    CASES.append((text, grouped(groups, d, sizes=False)))


for bounds in ([1], [3, 1], [1, 2, 4], [2, 2, 1, 5]):
    corners = [(*c, 1) for c in itertools.product(*((0, b) for b in bounds))]
    CASES.append((f"OneSidedGaussian(bounds={bounds}, mu=1.5)", corners))


@pytest.mark.parametrize(("text", "records"), CASES, ids=[text for text, _ in CASES])
def test_mu_is_the_largest_norm_over_all_differences(text: str, records: list[Vector]) -> None:
    mechanism = parse(text)
    for relation in Adjacency:
        with ctx.workprec(192):
            mu = mechanism.gaussian_mu(relation)
            assert mu.overlaps(worst_norm(mechanism, records, relation))
            assert mu.rel_accuracy_bits() > 170
            known = mechanism.exact_gaussian_mu(relation)
            assert known is None or mu.overlaps(known.ball())


ALL = [text for (text,) in rows(Path(__file__).with_name("joint.txt"))]


UNRELEASED = ("MatrixVariateGaussian", "GeneralGaussian(covariance=Diagonal(variances=[1, 0")
"""No lattice sampler is known for the first, and one entry of the second has no noise."""
DISCRETE = "DiscreteCorrelatedGaussian(dimension=2, mu='3/2', c='3/2')"


@pytest.mark.parametrize("text", ALL)
def test_the_profile_is_that_of_a_gaussian_with_the_same_mu(text: str) -> None:
    mechanism = parse(text)
    for relation in Adjacency:
        (pair,) = mechanism.worst_case(relation).pairs(None)
        assert isinstance(pair, GaussianPair)
        assert len(mechanism.worst_case(relation).reason) > 30
        mu = guarantees.mu(mechanism, adjacency=relation)
        assert narrow(mu, Fraction(1, 10**30))
        scalar = Gaussian(1, Fraction(mu.lower) if mu.lower == mu.upper else Fraction(mu.upper))
        mine = profile.delta(
            mechanism, "0.5", adjacency=relation, relative_width=Fraction(1, 10**20)
        )
        bound = profile.delta(scalar, "0.5", relative_width=Fraction(1, 10**20))
        # the upper end of μ is within 1e-30 of μ, and δ is Lipschitz in it
        assert mine.lower <= bound.upper
        assert abs(mine.lower - bound.lower) < abs(mine.lower) / 10**18


@pytest.mark.parametrize("text", ALL)
def test_variances_are_the_diagonal_of_the_covariance_matrix(text: str) -> None:
    mechanism = parse(text)
    with ctx.workprec(128):
        matrix = mechanism.covariance_matrix()
        entries = list(mechanism.variances())
        entries = entries * len(matrix) if len(entries) == 1 else entries
        assert len(entries) == len(matrix)
        for i, entry in enumerate(entries):
            assert entry.overlaps(matrix[i][i])
            assert all(matrix[i][j].overlaps(matrix[j][i]) for j in range(i))
        mean = sum(entries, start=arb(0)) / len(entries)
        assert mechanism.mean_squared_error().overlaps(mean)
    assert accuracy.mean_squared_error(mechanism).relative_width is not None


@pytest.mark.parametrize(
    ("text", "released"),
    [
        *((text, False) for text in [*ALL, DISCRETE]),
        *((text, True) for text in [*ALL, DISCRETE] if not text.startswith(UNRELEASED)),
    ],
)
def test_samples_and_releases_have_the_covariance_matrix(text: str, released: bool) -> None:
    # each entry's z-score is normal to good accuracy, |z| ≤ 6.5 fails with
    # probability 8e-11 each, below 1e-8 over all entries of all mechanisms here.
    draws = 20_000 if released else 200_000
    mechanism, rng = parse(text), np.random.default_rng(20240601)
    expected = np.array([[float(entry) for entry in row] for row in mechanism.covariance_matrix()])
    if released:
        noise = mechanism.release(np.zeros(len(expected), dtype=int), draws, rng=rng)
    else:
        noise = mechanism.sample(draws, rng=rng)
    assert noise.shape == (draws, len(expected))
    observed = noise.T @ noise / draws
    diagonal = np.diag(expected)
    spread = np.sqrt((np.outer(diagonal, diagonal) + expected**2) / draws)
    assert (np.abs(observed - expected) <= 6.5 * spread).all()
    assert (np.abs(noise.mean(axis=0)) <= 6.5 * np.sqrt(diagonal / draws)).all()


@pytest.mark.parametrize(
    "text",
    [
        *(t for t in ALL if t.startswith(("Corr", "Count", "OptimalE", "Known", "OneSided"))),
        DISCRETE,
    ],
)
def test_the_adjacency_must_be_named(text: str) -> None:
    mechanism = parse(text)
    with pytest.raises(AdjacencyError, match="adjacency to be named"):
        guarantees.rho(mechanism)
    with pytest.raises(AdjacencyError, match="adjacency='add-remove'"):
        profile.delta(mechanism, 1)
