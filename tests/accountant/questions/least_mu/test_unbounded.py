"""Least μ of unbounded losses: the limit where it is exact, else two ends."""

from __future__ import annotations

from fractions import Fraction

import pytest
from scipy.stats import norm

import dpassay
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms import (
    Composed,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
    RankOneGaussian,
)
from dpassay.accountant.questions import tradeoff

BOTH: list[tuple[Mechanism, str | None]] = [
    (PoissonSubsampled(Gaussian(2), "0.1"), "replace-one"),
    (PoissonSubsampled(Gaussian(1), "0.9"), "replace-one"),
    (Composed([Gaussian(2), Laplace(2)]), None),
    (Composed([Gaussian(1), RandomizedResponse(1)]), "replace-one"),
]


@pytest.mark.parametrize(("mechanism", "relation"), BOTH)
def test_no_test_needs_more_than_the_upper_end(mechanism: Mechanism, relation: str | None) -> None:
    """A test of level α and type II error β needs Φ⁻¹(1 − α) − Φ⁻¹(β)."""
    found = dpassay.mu(mechanism, adjacency=relation)
    assert 0 < found.lower <= found.upper < 2.5
    for alpha in (Fraction(1, 10**6), Fraction(1, 100), Fraction(1, 4)):
        beta = float(tradeoff.beta(mechanism, alpha, adjacency=relation).lower)
        assert norm.isf(float(alpha)) - norm.ppf(beta) <= float(found.upper) * (1 + 1e-9)


def test_samples_of_gaussian_noise_need_what_they_do_in_the_limit() -> None:
    step = PoissonSubsampled(Gaussian(2), "0.1")
    assert str(dpassay.mu(step, adjacency="add-remove")) == "0.5"
    assert str(dpassay.mu(Composed(step, 16), adjacency="add-remove")) == "2"


def test_no_mu_is_enough_for_noise_of_one_rank() -> None:
    with pytest.raises(NotApplicableError, match="No mu is enough"):
        dpassay.mu(RankOneGaussian(3, 10))


def test_mu_of_other_noise_is_the_least_one() -> None:
    assert str(dpassay.mu("Laplace(1)")).startswith("1.03006")
    assert str(dpassay.mu("Tabulated([1, 0], [0, 1])")) == "Infinity"
    assert dpassay.mu("Channel([['1/2', '1/2'], ['1/2', '1/2']])") == 0
