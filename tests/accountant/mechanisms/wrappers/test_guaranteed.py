"""The worst mechanism of a guarantee: optimal composition, and what is dominated by it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from accountant import baselines
from accountant.core.mechanism import Mechanism
from accountant.mechanisms import Composed, Gaussian, Guaranteed, Laplace
from accountant.questions import profile


def test_it_has_the_guarantee_and_no_better_one() -> None:
    one = Guaranteed(epsilon="1.5", delta="1e-3")
    assert Fraction(1, 1000) in profile.delta(one, "1.5")
    assert profile.delta(one, "1.499").lower > Fraction(1, 1000)
    assert str(profile.epsilon(one, "1e-3")) == "1.5"
    assert profile.epsilon(one, "0.999e-3").lower == float("inf")


@pytest.mark.parametrize("mechanism", [Laplace(scale=10), Gaussian(standard_deviation=10)])
@pytest.mark.parametrize("delta", ["0.01", "1e-6"])
def test_it_dominates_what_has_the_guarantee(mechanism: Mechanism, delta: str) -> None:
    own = profile.epsilon(mechanism, delta).upper
    worst = Guaranteed(epsilon=own, delta=delta)
    for epsilon in ("0", "0.2", "0.7"):
        whole = profile.delta(Composed(mechanism, 9), epsilon)
        assert whole.lower <= profile.delta(Composed(worst, 9), epsilon).upper


def test_composition_is_kairouz_oh_and_viswanath() -> None:
    parts = [Composed(Guaranteed(epsilon="0.1", delta="1e-4"), 7), Guaranteed(epsilon="0.35")]
    known = baselines.kairouz_delta([("0.1", "1e-4", 7), ("0.35", 0)], "0.4")
    assert known.overlaps(profile.delta(Composed(parts), "0.4"))
