"""Every counter: L R = A, the exact sensitivity of R, and the units of L, in rationals."""

from __future__ import annotations

import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, fmpq, fmpq_mat

import dpassay
from dpassay.accountant import notation
from dpassay.accountant.budget.target import Mu
from dpassay.accountant.counting.best_counter import best_counter
from dpassay.accountant.counting.counters import LinearCounter
from dpassay.accountant.counting.grids import factorisation
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms import (
    BinaryTree,
    BridgedTree,
    Composed,
    KaryTree,
    LaplaceVector,
    RandomizedResponse,
    SquareRootFactorization,
)
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.questions import accuracy, guarantees, profile
from tests.quick import slow

COUNTERS: list[LinearCounter] = [
    *(BridgedTree(n, arities, epsilon=1) for arities,
     lengths in {(1,): (1,), (7,): (1, 6, 7), (2, 3, 4): (1, 5, 17, 23, 24), (1, 5, 7): (34, 35),
     (3, 2, 2, 3): (35, 36)}.items() for n in lengths),
    *(BridgedTree(n, [2, 3, 2, 3], mu=1, pooled=r) for n in (1, 17, 30, 36) for r in (1, 2, 3)),
    *(kind(n, mu=1) for kind in (BinaryTree, SquareRootFactorization)
      for n in (1, 2, 3, 4, 5, 6, 7, 8, 11, 19, 20, 33)),
]  # fmt: skip


SHOWN: list[LinearCounter] = [
    *(BinaryTree(n, mu=2) for n in (*range(1, 20), 34)),
    *(SquareRootFactorization(n, mu=2) for n in (1, 5)),
    *(
        BridgedTree(n, [3, 2, 3], mu=2, pooled=r, contributions=c)
        for n in (1, 5, 6, 11) for r in range(4) for c in (1, 2, 7)
    ),
    *(BridgedTree(n, [1, 4, 2], mu=2) for n in (1, 2, 7, 8)),
]  # fmt: skip


@pytest.mark.parametrize(
    "counter",
    [
        *SHOWN,
        *(slow(BridgedTree(18, [3, 2, 3], mu=2, pooled=r, contributions=4)) for r in range(4)),
    ],
    ids=repr,
)
def test_mu_is_that_of_the_outputs(counter: LinearCounter) -> None:
    """Solved from the covariance of the outputs, for all positions of a person."""
    n = counter.steps
    left = fmpq_mat(
        [[fmpq(x.numerator, x.denominator) for x in row] for row in counter.factorisation()[0]]
    )
    prefixes_of = fmpq_mat([[int(j <= i) for j in range(n)] for i in range(n)])
    gram = prefixes_of.transpose() * (left * left.transpose()).solve(prefixes_of)
    most = max(
        sum((gram[i, j] for i in s for j in s), fmpq(0))
        for s in itertools.combinations(range(n), min(counter.contributions, n))
    )
    found = counter.gaussian_mu(None) * counter.scale.ball()
    assert (found**2).contains(most)
    if isinstance(counter, BridgedTree):
        size = counter.grids.cell_sizes()[0]
        if -(-min(counter.contributions, n) // size) * size > n:
            return  # between two ends
    assert found.rad() < 1e-12
    assert counter.gaussian_mu(None) < counter.contributions * arb(2) * (1 + arb(2) ** -40)


@pytest.mark.parametrize("more", ["", ", pooled=1"])
def test_outputs_of_laplace_noise_have_two_ends(more: str) -> None:
    """The largest loss is that of the measured sums; H is at most theirs."""
    outputs, sums = (
        notation.parse(f"BridgedTree(steps=9, arities=[3, 3], epsilon=1{more}, released='{what}')")
        for what in ("outputs", "measurements")
    )
    assert profile.epsilon(outputs, 0).upper == 1
    found = dpassay.delta(outputs, "0.3")
    most = dpassay.delta(sums, "0.3")
    assert 0 <= found.lower < most.lower <= found.upper <= most.upper * Decimal("1.00001")
    with pytest.raises(NotApplicableError, match="released='measurements'"):
        Composed(outputs, 2)
    Composed(sums, 2).worst_case(None)


@pytest.mark.parametrize("counter", COUNTERS, ids=repr)
def test_the_factors_multiply_to_prefix_sums(counter: LinearCounter) -> None:
    """L R = A entry by entry; the norms of the columns of R and the rows of L are as stated."""
    left, right = counter.factorisation()
    steps = counter.steps
    columns = list(zip(*right, strict=True))
    for step, row in enumerate(left, 1):
        weights = [(place, weight) for place, weight in enumerate(row) if weight]
        for position, column in enumerate(columns, 1):
            assert sum(w * column[place] for place, w in weights) == (position <= step)
    l1 = max(sum(map(abs, column)) for column in columns)
    l2 = max(sum(entry**2 for entry in column) for column in columns)
    assert counter.l1_sensitivity == ExactReal.of_rational(l1)
    assert counter.l2_sensitivity.square == l2
    units = [sum((weight**2 for weight in row), Fraction(0)) for row in left]
    assert list(counter.output_units()) == units
    assert counter.units() == sum(units)
    assert len(counter.variances()) == steps
    assert notation.parse(repr(counter)) == counter


@pytest.mark.parametrize(
    "counter",
    [BridgedTree(17, [5, 4], epsilon="1/2"), BinaryTree(30, mu=2, contributions=2)],
    ids=repr,
)
def test_samples_have_the_covariance_of_the_factor(counter: LinearCounter) -> None:
    """Each entry of 20000 streams lies within six standard errors (false alarm 2e-9 each)."""
    rows = counter.sample(20_000, rng=np.random.default_rng(4))
    exact = np.array([[float(entry.mid()) for entry in row] for row in counter.covariance_matrix()])
    products = rows[:, :, None] * rows[:, None, :]
    error = products.std(axis=0) / len(rows) ** 0.5
    assert (abs(products.mean(axis=0) - exact) < 6 * error).all()


def test_profiles() -> None:
    """Laplace noise: ε-DP, with the profile of its product; Gaussian: μ."""
    counter = BinaryTree(7, epsilon=1)
    assert profile.delta(counter, 1).upper == 0
    one_query = notation.parse("Laplace(scale=1)")
    assert Decimal(0) < profile.delta(counter, "0.5").upper
    assert profile.delta(counter, "0.5").upper < profile.delta(one_query, "0.5").lower
    gaussian = BridgedTree(1000, [6, 14, 14], mu="1/2")
    assert gaussian.exact_gaussian_mu(None) == ExactReal.of_root(Fraction(20, 7) / 12)
    assert gaussian.scale == ExactReal.of_root(Fraction(12))
    with pytest.raises(NotApplicableError, match="not exactly Gaussian"):
        counter.gaussian_mu(None)


@pytest.mark.parametrize("times", [2, 3, 5, 8])
@pytest.mark.parametrize(
    "text",
    [
        "BridgedTree(released='measurements', steps=11, arities=[3, 2, 2]",
        "BridgedTree(released='measurements', steps=8, arities=[2, 4]",
    ],
)
def test_the_worst_of_several_positions(text: str, times: int) -> None:
    """Of all sets of positions: μ and the largest loss are exact, and δ lies between both ends."""
    gaussian, laplace = (
        notation.parse(f"{text}, {noise}=2, contributions={times})") for noise in ("mu", "epsilon")
    )
    assert isinstance(gaussian, LinearCounter)
    assert isinstance(laplace, LinearCounter)
    rows = gaussian.factorisation()[1]
    sets = itertools.combinations(range(gaussian.steps), times)
    moved = [[sum((row[i] for i in s), Fraction(0)) for row in rows] for s in sets]
    square = max(sum((x * x for x in m), Fraction(0)) for m in moved)
    assert gaussian.exact_gaussian_mu(None) == ExactReal.of_root(square) / gaussian.scale
    loss = ExactReal.of_rational(max(sum(m, Fraction(0)) for m in moved)) / laplace.scale
    (pair,) = laplace.worst_case(None).remove
    assert abs(pair.max_loss() - loss.ball()) < 1e-12
    assert profile.delta(laplace, loss).upper == 0
    found = profile.delta(laplace, "1/2", relative_width=1000)
    for m in moved[:: len(moved) // 5 + 1]:
        shifts = [str(x) for x in m if x]
        own = profile.delta(LaplaceVector(scale=laplace.scale, shifts=shifts), "1/2")
        assert own.lower <= found.upper
    assert profile.delta(RandomizedResponse(loss), "1/2").upper * Decimal("1.001") > found.upper
    with pytest.raises(NotApplicableError, match="Guaranteed"):
        Composed(laplace, 2).worst_case(None)


@pytest.mark.parametrize("times", [2, 3, 5, 8])
def test_the_worst_positions_of_the_square_root_are_the_first(times: int) -> None:
    counter = SquareRootFactorization(8, mu=2, contributions=times)
    rows = counter.factorisation()[1]
    sets = itertools.combinations(range(8), times)
    moved = ([sum((row[i] for i in s), Fraction(0)) for row in rows] for s in sets)
    square = max(sum((x * x for x in m), Fraction(0)) for m in moved)
    assert counter.exact_gaussian_mu(None) == ExactReal.of_root(square) / counter.scale
    assert counter.worst_case(None).remove[0].max_loss() == arb.pos_inf()


@pytest.mark.parametrize(("steps", "times"), [(5, 7), (10, 30), (37, 4), (37, 30)])
def test_every_counter_that_is_considered_keeps_the_budget(steps: int, times: int) -> None:
    found = best_counter(steps, Mu(1), contributions=times)
    for counter, _ in found.others:
        if counter.worst_positions() is not None:
            assert not counter.gaussian_mu(None) > 1


def test_the_best_counter_has_as_little_noise_as_its_outputs_need() -> None:
    found = best_counter(2_000_000, Mu(1))
    assert isinstance(found.mechanism, BridgedTree)
    for counter, _ in ((found.mechanism, found.error), *found.others):
        mu = guarantees.mu(counter)
        assert Decimal("0.9999999") < mu.lower <= mu.upper <= 1


# The k-ary tree.


TREES = [
    KaryTree(13, 3, 1),
    KaryTree(40, 3, "1/2"),
    KaryTree(10, 4, 2),
    KaryTree(15, 2, 1, subtraction=False),
    KaryTree(7, 5, "sqrt(2)", subtraction=False),
]


@pytest.mark.parametrize("mechanism", TREES, ids=repr)
def test_errors_agree(mechanism: KaryTree) -> None:
    """The noise of every vertex has the scale that the profile is that of."""
    vertices = LaplaceVector(mechanism.scale, [1] * mechanism.tree.height)
    assert profile.delta(mechanism, "1/4") == profile.delta(vertices, "1/4")
    left = np.array(factorisation(mechanism.tree)[0], dtype=int)
    unit = 2 * float(mechanism.scale) ** 2
    shared = left @ left.T
    covariance = [[float(entry) for entry in row] for row in mechanism.covariance_matrix()]
    # entries are integers below 2^53 times one number: a few roundings
    np.testing.assert_allclose(covariance, unit * shared, rtol=1e-14, atol=0)
    variances = [float(entry) for entry in mechanism.variances()]
    np.testing.assert_allclose(variances, unit * np.diag(shared), rtol=1e-14, atol=0)
    mean = accuracy.mean_squared_error(mechanism)
    assert mechanism.exact_mean_squared_error().rational in mean
    assert float(mean.lower) == pytest.approx(np.mean(variances), rel=1e-13, abs=0)


def test_profile_is_refused_where_the_product_is_not_attained() -> None:
    for steps in (13, 27):
        assert profile.delta(KaryTree(steps, 3, 1), "0.5").lower > 0
    # without subtraction there is no such number of steps
    for steps in range(1, 60):
        KaryTree(steps, 3, 1, subtraction=False).worst_case(None)


def test_contributions_multiply_the_noise() -> None:
    """A person in three positions: three times the scale, nine times the error, ε as asked for."""
    one, three = KaryTree(100, 3, 2), KaryTree(100, 3, 2, contributions=3)
    assert three.scale == one.scale * ExactReal.of_rational(3)
    assert three.exact_mean_squared_error() == (
        one.exact_mean_squared_error() * ExactReal.of_rational(9)
    )
    ratio = three.variances()[50] / one.variances()[50]
    assert abs(ratio - 9) < 1e-20
    assert notation.parse(repr(three)) == three
