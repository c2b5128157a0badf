"""The k-ary tree of integer noise: exact profile, exact variance, integer outputs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from accountant import notation
from accountant.counting.streams import TreeCounter, continued, counter_of
from accountant.errors import InvalidInputError, NotApplicableError
from accountant.mechanisms import Composed, DiscreteKaryTree, DiscreteLaplace
from accountant.questions import profile, utility

TREE = DiscreteKaryTree(steps=100, arity=3, epsilon="1/2")


def test_profile_is_that_of_its_levels() -> None:
    """ε-DP, and below that the h-fold composition of one variable."""
    assert notation.parse(repr(TREE)) == TREE
    assert TREE.scale == 10
    assert profile.delta(TREE, "1/2").upper == 0
    levels = Composed(DiscreteLaplace(scale=10), 5)
    assert profile.delta(TREE, "0.2") == profile.delta(levels, "0.2")
    with pytest.raises(NotApplicableError, match="exact profile"):
        profile.delta(DiscreteKaryTree(20, 3, 1), "0.5")


def test_error_is_that_of_the_tree_times_the_variance_of_the_law() -> None:
    """Over the units of the tree; a little below that of Laplace noise."""
    noise = utility.variance(DiscreteLaplace(scale=10))[0]
    units = TREE.continuous.tree.mean_squared_error() / (2 * 5**2)
    found = utility.mean_squared_error(TREE)
    assert found.lower <= Fraction(noise.upper) * units
    assert Fraction(noise.lower) * units <= found.upper
    assert found.upper < utility.mean_squared_error(TREE.continuous).lower


def test_streams_are_integers_with_the_stated_covariance() -> None:
    """Within six standard errors (false alarm 2e-9 each); the first output has its law."""
    rows = TREE.sample(1500, rng=np.random.default_rng(2))
    assert rows.dtype == np.int64
    exact = np.array([float(entry.mid()) for entry in TREE.variances()])
    squares = rows.astype(float) ** 2
    assert (abs(squares.mean(axis=0) - exact) < 6 * squares.std(axis=0) / 1500**0.5).all()
    inside = np.clip(rows[:, 0], -40, 40)
    observed = np.bincount(inside + 40, minlength=81)
    ratio = np.exp(-1 / 10)
    masses = (1 - ratio) / (1 + ratio) * ratio ** abs(np.arange(-40, 41))
    masses[[0, -1]] = ratio**40 / (1 + ratio)
    assert stats.chisquare(observed, masses * 1500).pvalue > 1e-6


def test_only_bits_are_counted() -> None:
    """A fraction would show through integer noise."""
    counter = counter_of(TREE, rng=np.random.default_rng(1))
    for bad in (lambda: counter.update(0.5), lambda: counter.extend([1, 0, 0.5])):
        with pytest.raises(InvalidInputError, match="0 or 1"):
            bad()
    first = counter.extend([1, 0, 1])
    assert (first % 1 == 0).all()
    again = continued(counter.record(), rng=np.random.default_rng(2))
    assert isinstance(again, TreeCounter)
    assert again.mechanism == TREE
    assert again.update(1) % 1 == 0
    with pytest.raises(InvalidInputError, match="epsilon"):
        DiscreteKaryTree(60, 3, "sqrt(2)")
