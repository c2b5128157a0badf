"""What can be audited, and how its outputs are written."""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpassay.accountant import notation
from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.audit import Command, MechanismError, audit, guarantee, target
from dpassay.verifier.audit.features import numeric
from dpassay.verifier.audit.targets import named, worst_pairs

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
    assert "output[0] in {inf, NaN or no number}" in str(found)


def test_a_path_is_no_module() -> None:
    with pytest.raises(InvalidInputError, match=r"Write private\.release:mean\."):
        named("./private/release.py:mean")
