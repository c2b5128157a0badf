from __future__ import annotations

import mpmath
import numpy as np
import pytest
from flint import ctx

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms import Composed, DiscreteGaussian
from dpassay.accountant.mechanisms.shapes.correlated import (
    CorrelatedGaussian,
    DiscreteCorrelatedGaussian,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import enclose
from dpassay.accountant.pairs.discrete import DiscreteGaussianPair
from dpassay.accountant.questions import accuracy, guarantees, profile
from dpassay.accountant.reference import laws
from tests.near import mpf
from tests.quick import slow

ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
PAIRS = [
    DiscreteGaussianPair(exact(2), 1, last_shift=1),
    slow(DiscreteGaussianPair(exact("5/4"), 1, 2, 2, 3)),
    slow(DiscreteGaussianPair(exact(3), 2, 2)),
    slow(DiscreteGaussianPair(exact("1/2"), 1, 3, last_shift=2)),
    slow(DiscreteGaussianPair(exact(4), 3)),
]


@pytest.mark.parametrize("pair", PAIRS)
def test_renyi_divergence_is_the_sum_over_all_outcomes(pair: DiscreteGaussianPair) -> None:
    v, q, p = pair.rational_parameter, pair.scale, pair.last_shift
    parts = [Composed(DiscreteGaussian(v, pair.shift), pair.count)]
    parts += [Composed(DiscreteGaussian(q**2 * v, p))] if p else []
    with mpmath.workdps(45):
        (known,) = laws(Composed(parts))[0]
        for order in ("1", "1.5", "2", "3"):
            value = mpf(enclose(lambda a=order: pair.renyi(exact(a).ball())))  # type: ignore[misc]
            assert abs(value - known.renyi(exact(order).mpf())) <= mpmath.mpf("1e-18") * value
        for epsilon in ("0.01", "0.25", "-0.7", "1.9", "sqrt(2)"):
            delta = mpf(enclose(lambda e=epsilon: pair.hockey_stick(exact(e))))  # type: ignore[misc]
            assert abs(delta - known.hockey_stick(exact(epsilon).mpf())) <= mpmath.mpf("1e-28")


@pytest.mark.parametrize(("dimension", "c"), [(1, 1), (4, "7/5"), (81, 3), (10_000, 10)])
def test_zcdp_is_that_of_the_continuous_noise(dimension: int, c: int | str) -> None:
    mechanism = DiscreteCorrelatedGaussian(dimension, "sqrt(2)", c)
    assert guarantees.rho(mechanism, adjacency=ADD).lower == 1
    assert mechanism.exact_rho(ADD) == exact(1)
    (pair,) = mechanism.worst_case(REPLACE).pairs(None)
    assert isinstance(pair, DiscreteGaussianPair)
    assert pair.exact_closed_rho() == mechanism.exact_rho(REPLACE)
    continuous = CorrelatedGaussian(dimension, "sqrt(2)", c)
    assert continuous.exact_rho(REPLACE) == mechanism.exact_rho(REPLACE)
    with ctx.workprec(256):
        mine, theirs = mechanism.variances(), continuous.variances()
        for discrete, other in zip(mine, theirs, strict=True):
            # smaller, by about (2πv)² e^{−2π²v} of it
            assert discrete < other or discrete.overlaps(other)
            assert (other / discrete - 1).upper() < 1e-6


def test_exact_profiles_end_where_too_many_masses_are_needed() -> None:
    with pytest.raises(NotApplicableError, match="Ask for rho or a Rényi divergence"):
        profile.delta(DiscreteCorrelatedGaussian(10_000, 1, 10), 1, adjacency=ADD)
    value = guarantees.renyi(DiscreteCorrelatedGaussian(10_000, 1, 10), 2, adjacency=ADD)
    assert 1 in value


def test_samples_lie_on_their_lattice() -> None:
    """Sizes lie on that of thirds, twice the counts minus the size on the integers."""
    mechanism = DiscreteCorrelatedGaussian(2, "3/2", "3/2")
    noise = mechanism.sample(1000, rng=np.random.default_rng(7))
    released = mechanism.release([0, 0, 0], 1000, rng=np.random.default_rng(7))
    assert (released == noise).all()  # a release has the noise of a sample
    for column in (noise[:, 2] * 3, 2 * noise[:, 0] - noise[:, 2]):
        assert np.allclose(column, np.round(column), rtol=0, atol=1e-9)
    assert accuracy.variance(mechanism)[0].relative_width is not None
