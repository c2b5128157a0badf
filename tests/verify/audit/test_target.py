"""What can be audited, how it is called, and how its outputs are written."""

from __future__ import annotations

import asyncio
import functools
import random
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpassay.accountant import notation
from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.audit import Command, MechanismError, audit, guarantee, target
from dpassay.verifier.audit.features import numeric
from dpassay.verifier.audit.runs import named, worst_pairs
from tests.quick import quick

MECHANISMS = [
    "Gaussian(standard_deviation=3)",
    "DiscreteLaplace(scale=1)",
    "RandomizedResponse(epsilon=1)",
    'Tabulated(p=["1/2", "1/2"], q=["1/3", "2/3"])',
    "PoissonSubsampled(mechanism=Gaussian(standard_deviation=2), sampling_prob=0.1)",
    "Composed(mechanism=[Gaussian(standard_deviation=2), Laplace(scale=1)], count=3)",
    "KaryTree(steps=8, arity=2, epsilon=1)",
    "CorrelatedGaussian(dimension=5, mu=1)",
    "CountEllipse(dimension=6, sparsity=2, mu=1)",
    "RankOneGaussian(dimension=10, sigma_star=0.5)",
    "LaplaceVector(scale=2, shifts=[1, 1])",
    "EllipticalGaussian(sensitivities=[1, 2], mu=1)",
    "Staircase(epsilon=1, gamma=0.3)",
    'IntegerNoise(probabilities=["1/2", "1/2"], lowest=0)',
]


@pytest.mark.parametrize("text", MECHANISMS)
def test_a_mechanism_is_audited_as_it_is(text: str) -> None:
    mechanism = notation.parse(text)
    audited = target(mechanism)
    for pair in worst_pairs(mechanism):
        for dataset in pair:
            rows = numeric(audited.sample(dataset, 5, np.random.default_rng(1)))
            assert rows is not None
            assert len(rows) == 5


def test_foreign_mechanisms_are_told_by_their_methods() -> None:
    class Randomiser:
        def randomise(self, value: float) -> float:
            return value

    class Measurement:
        input_domain = None

        def __call__(self, value: float) -> float:
            return value

    rng = np.random.default_rng(1)
    assert list(target(Randomiser()).sample(2.0, 2, rng)) == [2.0, 2.0]
    assert list(target(Measurement()).sample(2.0, 2, rng)) == [2.0, 2.0]
    with pytest.raises(InvalidInputError, match=r"mechanism\(dataset, rng\)"):
        target(3)


def test_a_command_prints_samples() -> None:
    rng = np.random.default_rng(1)
    script = "for i in range({size}): print({dataset}, i % 2)"
    command = Command(f'{sys.executable} -c "{script}"')
    assert command.sample(7, 3, rng) == [[7.0, 0.0], [7.0, 1.0], [7.0, 0.0]]
    with pytest.raises(MechanismError, match="printed 0 lines where 3"):
        Command(f'{sys.executable} -c "pass"').sample(7, 3, rng)
    with pytest.raises(MechanismError, match=r"did not end within 0\.2 s"):
        Command(f'{sys.executable} -c "import time; time.sleep(9)"', 0.2).sample(7, 3, rng)
    with pytest.raises(MechanismError, match="exit code 1"):
        Command(f'{sys.executable} -c "raise SystemExit(1)"').sample(7, 3, rng)
    with pytest.raises(MechanismError, match="no_such_program could not be started: No such file"):
        Command("no_such_program").sample(7, 3, rng)


def test_a_command_keeps_its_own_braces_and_bytes() -> None:
    rng = np.random.default_rng(1)
    script = (
        "import sys; [sys.stdout.buffer.write(bytes([255, 10])) for _ in {0: range({size})}[0]]"
    )
    assert Command(f'{sys.executable} -c "{script}"').sample(7, 2, rng) == ["\\xff", "\\xff"]


def test_claims_in_every_form() -> None:
    assert guarantee(1).points[0].delta == 0
    assert guarantee(("0.1", "1e-5")).points[0].epsilon == Fraction(1, 10)
    assert guarantee([(1, "1e-3"), (2, "1e-6")]).delta_at(1.5) == 1e-3
    assert guarantee({"epsilon": 1}).delta_at(0.5) == float("inf")
    gaussian = guarantee({"mu": 1})
    assert abs(gaussian.delta_at(1.0) - 0.12693673750664395) < 1e-12
    noise = notation.parse("Gaussian(standard_deviation=1)")
    assert [p.epsilon for p in gaussian.candidates()] == [
        p.epsilon for p in guarantee(noise).candidates()
    ]
    assert all(
        p.delta >= Fraction(gaussian.delta_at(float(p.epsilon))) / (1 + Fraction(1, 10**9))
        for p in gaussian.candidates()
    )
    bad: Any
    for bad in (-1, (1, 2), {"epsilon": 1, "mu": 2}, [], {"mu": 0}):
        with pytest.raises(InvalidInputError):
            guarantee(bad)


def test_a_failure_that_is_seen_is_to_be_returned() -> None:
    def failing(data: int, rng: np.random.Generator) -> int:
        if data and rng.random() < 0.05:
            raise ValueError("no records left")
        return int(rng.integers(2))

    with pytest.raises(MechanismError, match="catch the error and return its name"):
        audit(failing, (1, "1e-3"), pairs=[(1, 0)], samples=5000, seed=1)


def test_rare_failures_are_an_event_in_words() -> None:
    def failing(data: int, rng: np.random.Generator) -> float | str:
        output = rng.random()
        return "ValueError" if data and output < 0.02 else output  # first runs show numbers alone

    found = audit(failing, 1, pairs=[(0, 1)], samples=5000, seed=1)
    assert found.refuted
    assert "NaN or no number" in str(found)


def test_a_path_is_no_module() -> None:
    with pytest.raises(InvalidInputError, match=r"Write private\.release:mean\."):
        named("./private/release.py:mean")


# Mechanisms as users write them: called as they mean to be, and never accused for nothing.


Rng = np.random.Generator
SIGNIFICANCE = 1e-6  # of each audit; forty of them at fixed seeds: false alarms below 4e-5 in all


def noise(rng: Any, scale: float = 1.0, size: int | None = None) -> Any:
    """Return integers: the bits of floating-point noise do leak."""
    return np.rint(rng.laplace(0.0, scale, size))


def debug_switch(data: float, exact: bool = False) -> Any:
    """Private by default; the switch is for tests."""
    return data if exact else data + noise(np.random.default_rng())


def default_rng_last(data: float, sensitivity: float = 1.0, rng: Rng | None = None) -> Any:
    return data + noise(rng or np.random.default_rng(), sensitivity)


def seeded(data: float, seed: int = 0) -> Any:
    return data + noise(np.random.default_rng(seed))


def old_state(data: float, random_state: Any = None) -> Any:
    return data + noise(random_state)


def keyword_only(data: float, *, scale: float = 1.0, generator: Rng) -> Any:
    return data + noise(generator, scale)


def swapped(data: float, rng: Rng, size: int) -> Any:
    return data + noise(rng, size=size)


def size_of_one_output(data: float, rng: Rng, size: int = 3) -> Any:
    """Three numbers with the same noise are one output."""
    return data + np.full(size, noise(rng))


def decorated(data: float, rng: Rng, *extra: Any, **more: Any) -> Any:
    return data + noise(rng)


def global_state(data: float) -> Any:
    return data + noise(np.random)


def with_epsilon(data: float, epsilon: float, rng: Rng) -> Any:
    return data + noise(rng, 1 / epsilon)


class Release:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, data: float, debug: bool = False, rng: Rng | None = None) -> Any:
        return data if debug else data + noise(rng or np.random.default_rng(), self.scale)


class Sampler:
    def sample(self, data: float, rng: Rng, n: int) -> Any:
        return data + noise(rng, size=n)


async def awaited(data: float, rng: Rng) -> Any:
    await asyncio.sleep(0)
    return data + noise(rng)


def yielded(data: float, rng: Rng) -> Iterator[Any]:
    yield from (data + noise(rng), 0.0)


def of_the_standard_library(data: float) -> float:
    return data + round(random.expovariate(1.0) - random.expovariate(1.0))


NULL: list[tuple[Any, str]] = [
    (lambda data, rng: asyncio.run(awaited(data, rng)), "rng=numpy.random.Generator), once a run"),
    (lambda data, rng: list(yielded(data, rng)), "rng=numpy.random.Generator), once a run"),
    (of_the_standard_library, "of_the_standard_library(dataset), once a run, with randomness of"),
    (debug_switch, "debug_switch(dataset), once a run, with randomness of its own"),
    (default_rng_last, "default_rng_last(dataset, rng=numpy.random.Generator), once a run"),
    (seeded, "seeded(dataset, seed=a fresh seed), once a run"),
    (old_state, "old_state(dataset, random_state=numpy.random.RandomState), once a run"),
    (keyword_only, "keyword_only(dataset, generator=numpy.random.Generator), once a run"),
    (swapped, "swapped(dataset, rng=numpy.random.Generator, size=size), once a block of runs"),
    (size_of_one_output, "size_of_one_output(dataset, rng=numpy.random.Generator), once a run"),
    (decorated, "decorated(dataset, rng=numpy.random.Generator), once a run"),
    (global_state, "global_state(dataset), once a run, with randomness of its own"),
    (functools.partial(with_epsilon, epsilon=1.0), "rng=numpy.random.Generator"),
    (Release(1.0), "Release(dataset, rng=numpy.random.Generator), once a run"),
    (Sampler(), "Sampler(dataset, rng=numpy.random.Generator, n=size), once a block of runs"),
]


@pytest.mark.parametrize(
    ("mechanism", "called"), quick(NULL, *range(1, 15)), ids=[entry[1][:20] for entry in NULL]
)
def test_private_mechanisms_are_called_as_meant_and_not_accused(
    mechanism: Any, called: str
) -> None:
    pairs = [(0.0, 1.0), (1.0, 0.0)]
    found = audit(mechanism, 1, pairs=pairs, samples=1_000, significance=SIGNIFICANCE, seed=7)
    assert not found.refuted
    assert any(note.startswith("called as ") and called in note for note in found.notes)


def test_what_was_too_little_noise_is_refuted_all_the_same() -> None:
    found = audit(
        functools.partial(with_epsilon, epsilon=3.0),
        1,
        pairs=[(0.0, 1.0)],
        samples=2_000,
        significance=SIGNIFICANCE,
        seed=7,
    )
    assert found.refuted
    assert "The runs can be repeated" in found.advice


def test_runs_that_no_seed_repeats_are_not_said_to_be_repeatable() -> None:
    found = audit(
        lambda data: data + noise(np.random.default_rng(), 0.2),
        1,
        pairs=[(0.0, 1.0), (1.0, 0.0)],
        samples=2_000,
        significance=SIGNIFICANCE,
        seed=7,
    )
    assert found.refuted
    assert "The runs cannot be repeated" in found.advice


@pytest.mark.parametrize("pairs", [[(0.0, 1.0)], [(0.0, 1.0), (0.0, 2.0), (1.0, 2.0)]])
def test_blocks_that_seed_themselves_are_no_evidence(pairs: list[tuple[float, float]]) -> None:
    def self_seeding(data: float, size: int, rng: Rng) -> Any:
        return data + np.random.default_rng(5).laplace(size=size)

    with pytest.raises(MechanismError, match="runs are not independent"):
        audit(self_seeding, 1, pairs=pairs, samples=2_000, seed=7)


async def coroutine(data: float, rng: Rng) -> float:
    return data


def generator_function(data: float, rng: Rng) -> Iterator[float]:
    yield data


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [
        (with_epsilon, r"with_epsilon needs epsilon.*functools.partial\(with_epsilon, epsilon=…\)"),
        (lambda data, a, b: data, "needs a and b"),
        (lambda *, data: data, r"take the dataset first"),
        (lambda: 0.0, r"take the dataset first"),
        (coroutine, "coroutine function.*asyncio.run"),
        (generator_function, "generator function.*list"),
    ],
)
def test_what_cannot_be_told_is_asked_for(mechanism: Callable[..., Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        target(mechanism)
