"""Epochs that double: no last input, one budget, exact variances."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpassay.accountant.counting.streams import UnboundedCounter
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.questions import profile


@pytest.mark.slow
def test_variances_are_those_of_the_outputs() -> None:
    """At some steps of three epochs, over 600 streams: within six standard errors (2e-9 each)."""
    steps = [1, 1000, 1024, 1025, 3000, 3072, 3073, 5000]
    rows = []
    for seed in range(600):
        counter = UnboundedCounter(epsilon=1, rng=np.random.default_rng(seed), insecure_floats=True)
        estimates = counter.extend(np.ones(5000))
        rows.append([estimates[step - 1] - step for step in steps])
    squares = np.array(rows) ** 2
    exact = [float(counter.variance(step)) for step in steps]
    assert (abs(squares.mean(axis=0) - exact) < 6 * squares.std(axis=0) / 600**0.5).all()


def test_an_epoch_ends_with_one_unit_and_keeps_the_budget() -> None:
    """Each epoch is ε-DP; its last estimate adds 2h²/ε², h its number of levels."""
    counter = UnboundedCounter(epsilon=2, rng=np.random.default_rng(1))
    total = Fraction(0)
    for epoch in range(12):
        mechanism = counter.epoch_mechanism(epoch)
        assert mechanism.steps == 2 ** (10 + epoch)
        assert profile.delta(mechanism, 2).upper == 0
        total += Fraction(2 * len(mechanism.arities) ** 2, 4)
        end = 2**10 * (2 ** (epoch + 1) - 1)
        assert counter.variance(end).rational == total


@pytest.mark.parametrize("floats", [False, True])
def test_feeding_and_continuing(floats: bool) -> None:
    """One by one or in blocks, across the ends of epochs, and from a record."""
    counter = UnboundedCounter(mu=1, rng=np.random.default_rng(1), insecure_floats=floats)
    first = [counter.update(1) for _ in range(1030)]
    assert len(first) == 1030
    assert counter.counted == 1030
    again = UnboundedCounter.of_record(counter.record(), rng=np.random.default_rng(2))
    assert again.record() == counter.record()
    assert len(again.extend(np.zeros(100_000))) == 100_000
    assert again.counted == 101_030
    assert again.stored <= 100
    with pytest.raises(InvalidInputError, match=r"input 101032=2\.0 in \[0, 1\]"):
        again.extend([1, 2])
    assert again.counted == 101_030
    assert len(again.extend([])) == 0


def test_every_output_is_on_the_lattice() -> None:
    """Sums of released numbers, over the ends of epochs."""
    found = UnboundedCounter(epsilon=1).extend(np.full(4000, 0.3))
    assert (found * 2.0**32 % 1 == 0).all()


@pytest.mark.parametrize(
    "change", [{"epoch": 3}, {"epoch": -1}, {"base": "x"}, {"base": float("nan")}, {"counter": {}}]
)
def test_a_damaged_record_is_refused(change: dict[str, object]) -> None:
    """Every field is checked."""
    record = UnboundedCounter(epsilon=1, rng=np.random.default_rng(1)).record()
    with pytest.raises(InvalidInputError):
        UnboundedCounter.of_record({**record, **change}, rng=np.random.default_rng(1))
    without = {key: value for key, value in record.items() if key not in change}
    with pytest.raises(InvalidInputError):
        UnboundedCounter.of_record(without, rng=np.random.default_rng(1))


def test_one_kind_of_noise() -> None:
    """As for every counter."""
    with pytest.raises(InvalidInputError, match="epsilon"):
        UnboundedCounter(rng=np.random.default_rng(1))
