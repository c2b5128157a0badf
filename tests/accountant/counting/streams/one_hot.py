"""A generator of which one noise variable is 1 and all others are 0: outputs show its weights.

And the ways to feed a stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from dpassay.accountant.counting import noise
from dpassay.accountant.counting.streams import continued

STEPS = 2**44
"""The variable that is 1, in whole steps of a lattice: weights are seen to 44 digits."""


class OneHot:
    """Stands for a generator, of whole steps where `exact_variables` is in force."""

    def __init__(self, hot: int) -> None:
        self.hot, self.drawn = hot, 0

    def draw(self, count: int) -> NDArray[np.float64]:
        found = np.zeros(count)
        if self.drawn <= self.hot < self.drawn + count:
            found[self.hot - self.drawn] = 1
        self.drawn += count
        return found


class _Sampler:
    def whole_steps(self, rows: NDArray[Any], *, rng: OneHot) -> NDArray[Any]:
        found: NDArray[Any] = (STEPS * rng.draw(len(rows))).astype(np.int64)
        return found[:, np.newaxis]


def exact_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let exact counters draw from a `OneHot`."""
    monkeypatch.setattr(noise, "whole_steps", lambda *_: _Sampler())


def generator(hot: int) -> tuple[OneHot, np.random.Generator]:
    """Return a `OneHot`, and the same as a counter takes it."""
    found = OneHot(hot)
    return found, cast(np.random.Generator, found)


Feed = Callable[[Any, NDArray[np.float64]], NDArray[np.float64]]


def one_by_one(counter: Any, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([counter.update(x) for x in inputs])


def one_block(counter: Any, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(counter.extend(inputs))


def mixed(counter: Any, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take blocks of 0, 7, 1, 13, … inputs, with a snapshot in between."""
    found, at = [], 0
    for size in (0, 7, 1, 13, 5, 30, 200):
        block = inputs[at : at + size]
        found.append(counter.extend(block))
        at += len(block)
        counter = continued(counter.snapshot().take(), rng=counter._rng)
    return np.concatenate(found)
