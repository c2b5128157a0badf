"""Single releases against dp-accounting: it brackets our enclosure, or the mpmath route decides."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from accountant.core.mechanism import Mechanism
from accountant.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from accountant.numbers.exact import exact
from accountant.questions import profile
from tests.accountant.composition.mpmath_route import by_mpmath

# Their sums have about 1e5 terms of relative error 1e-16 each.
ROUNDING = Fraction(1, 10**11)
EPSILONS = ("0", "0.5", "1", "3", "8", "20", "40")

Peer = Callable[[bool], Any]
BRACKETED: list[tuple[Mechanism, Peer]] = [
    (
        Gaussian(standard_deviation=2),
        lambda p: pld.from_gaussian_mechanism(2.0, pessimistic_estimate=p),
    ),
    (
        Laplace(scale="0.25"),
        lambda p: pld.from_laplace_mechanism(0.25, pessimistic_estimate=p),
    ),
    (
        DiscreteLaplace(scale=2, sensitivity=3),
        lambda p: pld.from_discrete_laplace_mechanism(0.5, 3, pessimistic_estimate=p),
    ),
]


@pytest.mark.parametrize(("mechanism", "peer"), BRACKETED, ids=lambda case: str(case)[:24])
def test_the_peer_brackets_the_enclosure(mechanism: Mechanism, peer: Peer) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        low, high = peer(False), peer(True)
    for epsilon in EPSILONS:
        ours = profile.delta(mechanism, epsilon)
        optimistic = Fraction(float(low.get_delta_for_epsilon(float(epsilon))))
        pessimistic = Fraction(float(high.get_delta_for_epsilon(float(epsilon))))
        assert optimistic * (1 - ROUNDING) <= Fraction(ours.upper), epsilon
        # below float's range their sums are absolutely, not relatively, accurate
        floor = Fraction(1, 10**18)
        assert Fraction(ours.lower) <= pessimistic * (1 + ROUNDING) + floor, epsilon


def test_a_truncated_support_is_no_lower_bound() -> None:
    mechanism = DiscreteGaussian(parameter=9)
    peer = pld.from_discrete_gaussian_mechanism(3.0, pessimistic_estimate=False)
    theirs = Fraction(float(peer.get_delta_for_epsilon(5.0)))
    ours = profile.delta(mechanism, 5)
    assert theirs > 10**15 * Fraction(ours.upper)
    reference = by_mpmath(mechanism.worst_case(None).remove[0]).hockey_stick(exact(5), 50)
    with mpmath.workdps(60):
        assert abs(reference / mpmath.mpf(str(ours.lower)) - 1) < mpmath.mpf(10) ** -29
