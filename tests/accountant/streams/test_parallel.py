"""Many streams side by side have the law of one, each for itself."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.errors import InvalidInputError
from accountant.mechanisms import BridgedTree
from accountant.streams import ParallelCounter

MECHANISM = BridgedTree(50, [3, 4, 5], epsilon=1)


class OneHot:
    """Stands for a generator: all variables 0 but one."""

    def __init__(self, hot: int) -> None:
        self.hot, self.drawn = hot, 0

    def standard_exponential(self, count: int) -> NDArray[np.float64]:
        found = np.zeros(count)
        if self.drawn <= self.hot < self.drawn + count:
            found[self.hot - self.drawn] = 1
        self.drawn += count
        return found

    def integers(self, low: int, high: int, count: int, dtype: Any) -> NDArray[Any]:
        return np.zeros(count, dtype=dtype)


def test_every_stream_has_the_left_factor_and_no_noise_in_common() -> None:
    """A noise variable is in the outputs of one stream, with the weights of a column of L."""
    columns: dict[int, Counter[tuple[float, ...]]] = {stream: Counter() for stream in range(3)}
    hot, drawn = 0, 1
    while hot < drawn:
        rng = OneHot(hot)
        counter = ParallelCounter(MECHANISM, 3, rng=cast(np.random.Generator, rng))
        outputs = np.array([counter.update(np.zeros(3)) for _ in range(50)]).T
        users = np.flatnonzero(outputs.any(axis=1))
        assert len(users) <= 1
        for stream in users:
            weights = np.round(outputs[stream] / float(MECHANISM.scale) + 1.7e-12, 9)
            columns[int(stream)][tuple(weights)] += 1
        hot, drawn = hot + 1, rng.drawn
    left = np.array(MECHANISM.factorisation()[0], dtype=np.float64)
    expected = Counter(tuple(np.round(c + 1.7e-12, 9)) for c in left.T if c.any())
    assert all(found == expected for found in columns.values())


def test_sums_and_bad_input() -> None:
    """Without noise the sums come out; a bad row is refused whole."""
    counter = ParallelCounter(MECHANISM, 2, rng=cast(np.random.Generator, OneHot(-1)))
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
