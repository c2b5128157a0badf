"""Many streams side by side have the law of one, each for itself."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dpassay.accountant.counting.streams import ParallelCounter, noise
from dpassay.accountant.counting.streams.exact_noise import Rounding
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import BridgedTree
from tests.accountant.counting.streams.one_hot import STEPS, exact_variables, generator

MECHANISM = BridgedTree(50, [3, 4, 5], epsilon=1)


@pytest.mark.parametrize("floats", [False, True])
@pytest.mark.parametrize("mechanism", [MECHANISM, BridgedTree(13, [3, 2, 3], mu=1, pooled=1)])
def test_every_stream_has_the_left_factor_and_no_noise_in_common(
    mechanism: BridgedTree, floats: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A noise variable is in the outputs of one stream, with the weights of a column of L."""
    monkeypatch.setattr(noise, "_BUFFERED", 4)
    exact_variables(monkeypatch)
    unit = float(mechanism.scale) if floats else STEPS * float(Rounding(mechanism).step)
    columns: dict[int, Counter[tuple[float, ...]]] = {stream: Counter() for stream in range(3)}
    hot, drawn = 0, 1
    while hot < drawn:
        one_hot, rng = generator(hot)
        counter = ParallelCounter(mechanism, 3, rng=rng, insecure_floats=floats)
        outputs = np.array([counter.update(np.zeros(3)) for _ in range(mechanism.steps)]).T
        users = np.flatnonzero(outputs.any(axis=1))
        assert len(users) <= 1
        for stream in users:
            weights = np.round(outputs[stream] / unit + 1.7e-12, 9)
            columns[int(stream)][tuple(weights)] += 1
        hot, drawn = hot + 1, one_hot.drawn
    left = np.array(mechanism.factorisation()[0], dtype=np.float64)
    expected = Counter(tuple(np.round(c + 1.7e-12, 9)) for c in left.T if c.any())
    assert all(found == expected for found in columns.values())


@pytest.mark.parametrize("floats", [False, True])
def test_sums_and_bad_input(floats: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise the sums come out; a bad row is refused whole."""
    exact_variables(monkeypatch)
    counter = ParallelCounter(MECHANISM, 2, rng=generator(-1)[1], insecure_floats=floats)
    for bad, message in (
        ([1, 2], r"input 1 of stream 1=2\.0 in \[0, 1\]"),
        ([1], "one for each of 2 streams"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            counter.update(bad)
    for step in range(1, 51):
        np.testing.assert_array_equal(counter.update([1, 0.5]), [step, step / 2])
    assert counter.counted == 50
    with pytest.raises(InvalidInputError, match="at most 50"):
        counter.update([0, 0])
    with pytest.raises(InvalidInputError, match="streams=0 ≥ 1"):
        ParallelCounter(MECHANISM, 0, rng=np.random.default_rng(1))
