"""Uniform integers from the operating system, and exact samplers that use nothing else."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpassay.accountant.core.randomness import SECURE
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import DiscreteLaplace, Gaussian, KaryTree, RandomizedResponse
from dpassay.accountant.release import sampling
from dpassay.accountant.release import sampling as lazy_reals


@pytest.mark.parametrize("bound", [2, 3, 7, 16, 17, 200, 2**24, 2**24 + 1, 2**52, 3 * 2**52])
def test_integers_are_uniform(bound: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chi-square test over at most 16 classes of equal size: false alarm 1e-7 for each bound."""
    monkeypatch.setattr(os, "urandom", np.random.default_rng(1).bytes)
    drawn = SECURE.integers(0, bound, 20_000)
    assert drawn.dtype == np.int64
    assert drawn.min() >= 0
    assert drawn.max() < bound
    classes = min(bound, 16)
    observed = np.bincount([int(d) * classes // bound for d in drawn], minlength=classes)
    edges = [-(-i * bound // classes) for i in range(classes + 1)]
    sizes = np.diff(edges)
    assert stats.chisquare(observed, sizes / bound * len(drawn)).pvalue > 1e-7


def test_every_remainder_has_as_many_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all 256 words of one byte, those that are kept fall evenly on the remainders."""
    for bound in (3, 5, 7, 11, 13, 15, 16):
        words = iter([bytes(range(256)), *[bytes(256)] * 9])
        monkeypatch.setattr(os, "urandom", lambda n, words=words: next(words)[:n])
        kept = 256 // bound * bound if bound != 16 else 256
        counts = np.bincount(SECURE.integers(0, bound, 256)[:kept], minlength=bound)
        assert (counts == kept // bound).all()


def test_shapes_types_and_bounds() -> None:
    assert SECURE.integers(5, 6) == 5
    assert type(SECURE.integers(0, 1 << 64)) is int
    assert SECURE.integers(0, 1 << 64, 3, dtype=np.uint64).dtype == np.uint64
    assert SECURE.integers(-3, 4, (2, 5)).shape == (2, 5)
    assert set(SECURE.integers(-1, 2, 200).tolist()) == {-1, 0, 1}
    assert SECURE.integers(0, 9, 0).shape == (0,)
    for low, high, size in ((0, 0, 1), (2, 1, 1), (0, (1 << 63) + 1, 1), (0, (1 << 64) + 1, None)):
        with pytest.raises(InvalidInputError, match="high="):
            SECURE.integers(low, high, size)


def test_a_fork_shares_nothing() -> None:
    """There is no state to copy: draws around a fork are independent (equal: 2^−128)."""
    first = SECURE.integers(0, 1 << 64, 2, dtype=np.uint64).tolist()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, SECURE.integers(0, 1 << 64, 2, dtype=np.uint64).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    second = np.frombuffer(os.read(read, 16), dtype=np.uint64).tolist()
    third = SECURE.integers(0, 1 << 64, 2, dtype=np.uint64).tolist()
    os.close(read)
    os.close(write)
    assert len({*first, *second, *third}) == 6


# ---------------------------------------------------------------- what is built on it

SAMPLES = 40_000


def rounded(law: str) -> Callable[[Any], Any]:
    sampler = lazy_reals.laplace if law == "laplace" else lazy_reals.normal
    return lambda rng: np.floor(sampler(SAMPLES, rng=rng).floats() * 4 + 0.5)


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize(
    ("draw", "mass"),
    [
        (
            lambda rng: sampling.discrete_laplace(Fraction(7, 3), SAMPLES, rng=rng),
            lambda z: math.exp(-abs(z) * 3 / 7) * math.tanh(3 / 14),
        ),
        (
            lambda rng: sampling.discrete_gaussian(Fraction(29, 4), SAMPLES, rng=rng),
            lambda z: (
                math.exp(-z * z * 2 / 29)
                / sum(math.exp(-k * k * 2 / 29) for k in range(-60, 61))
            ),
        ),
        (rounded("laplace"), lambda z: stats.laplace.cdf((z + 0.5) / 4)
            - stats.laplace.cdf((z - 0.5) / 4)),
        (rounded("normal"), lambda z: stats.norm.cdf((z + 0.5) / 4)
            - stats.norm.cdf((z - 0.5) / 4)),
    ],
    ids=["discrete Laplace", "discrete Gaussian", "rounded Laplace", "rounded normal"],
)  # fmt: skip
def test_laws_of_the_samplers(
    draw: Callable[[Any], Any],
    mass: Callable[[int], float],
    secure: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A chi-square test against the exact masses, tails pooled; false alarm 1e-7 for each of 8.

    The bytes of the secure generator are those of a seed here, so that the outcome is fixed.
    """
    monkeypatch.setattr(os, "urandom", np.random.default_rng(2).bytes)
    drawn = draw(SECURE if secure else np.random.default_rng(3))
    inside = next(k for k in range(1, 100) if mass(k) * SAMPLES < 25)
    masses = [mass(z) for z in range(-inside, inside + 1)]
    tail = (1 - sum(masses)) / 2
    masses[0] += tail
    masses[-1] += tail
    observed = np.bincount((np.clip(drawn, -inside, inside) + inside).astype(int))
    assert stats.chisquare(observed, np.array(masses) * SAMPLES).pvalue > 1e-7


def test_releases_are_secure_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a generator the operating system's is used, and there is no other source."""
    for mechanism, value in (
        (Gaussian(1), 3),
        (DiscreteLaplace(4), 3),
        (RandomizedResponse(1, 5), 3),
        (KaryTree(3, 2, 1), [0, 1, 1]),
    ):
        results = []
        for _ in range(2):
            monkeypatch.setattr(os, "urandom", np.random.default_rng(4).bytes)
            results.append(np.asarray(mechanism.release(value, 20)).tolist())
        assert results[0] == results[1]
        monkeypatch.undo()
        assert np.asarray(mechanism.release(value, 20)).tolist() != results[0]
