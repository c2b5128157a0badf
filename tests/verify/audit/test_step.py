"""One step of DP-SGD: a correct one is spared, each bug is found and named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier import checker
from dpassay.verifier.audit import StepResult, audit_step, audit_training

BATCH, SIZE = 50, 10


def clipped(gradients: Any) -> Any:
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return gradients * np.minimum(1, 1 / np.maximum(norms, 1e-12))


def correct(gradients: Any, rng: np.random.Generator) -> Any:
    return (clipped(gradients).sum(axis=0) + 2 * rng.normal(size=SIZE)) / BATCH


def half_the_noise(gradients: Any, rng: np.random.Generator) -> Any:
    return (clipped(gradients).sum(axis=0) + rng.normal(size=SIZE)) / BATCH


def unclipped(gradients: Any, rng: np.random.Generator) -> Any:
    return (gradients.sum(axis=0) + 2 * rng.normal(size=SIZE)) / BATCH


def real_batch(gradients: Any, rng: np.random.Generator) -> Any:
    noisy = clipped(gradients).sum(axis=0) + 2 * rng.normal(size=SIZE)
    return noisy / max(1, len(gradients))


def together(gradients: Any, rng: np.random.Generator) -> Any:
    whole = clipped(gradients.sum(axis=0, keepdims=True))[0]
    return (whole + 2 * rng.normal(size=SIZE)) / BATCH


def reused(gradients: Any, rng: np.random.Generator) -> Any:
    return (clipped(gradients).sum(axis=0) + 2 * np.random.default_rng(7).normal(size=SIZE)) / BATCH


def audited(step: Callable[..., Any], seed: int = 1) -> StepResult:
    return audit_step(
        step, clip=1, noise_multiplier=2, batch=BATCH, dimension=SIZE, runs=200, seed=seed
    )


def test_a_correct_step_is_spared() -> None:
    for seed in range(2):
        found = audited(correct, seed)
        assert not found.refuted, str(found)
        assert found.leak is not None
        assert found.to_json()["verdict"] == "NOT_REFUTED"


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (half_the_noise, "noise"),
        (unclipped, "clipping"),
        (real_batch, "batch of 5"),
        (together, "batch of 2"),
        (reused, "reuse"),
    ],
)
def test_a_bug_is_found_and_named(step: Callable[..., Any], name: str) -> None:
    found = audited(step)
    assert found.refuted
    assert name in [each.name for each in found.findings if each.refuted]
    if step is unclipped:
        assert found.leak is not None
        assert (found.leak.mu or 0) > 0.5


@pytest.mark.parametrize(
    ("argument", "said"),
    [({"clip": 0}, "clip"), ({"noise_multiplier": -1}, "noise"), ({"runs": 3}, "runs")],
)
def test_what_is_out_of_range_is_named(argument: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"clip": 1, "noise_multiplier": 2, "batch": 1, "dimension": SIZE}
    with pytest.raises(InvalidInputError, match=said):
        audit_step(correct, **{**given, **argument})


def test_an_update_that_is_written_over_is_kept() -> None:
    """All runs were the last one, and a correct step was refuted."""
    kept = np.zeros(SIZE)

    def again(gradients: Any, rng: np.random.Generator) -> Any:
        kept[:] = correct(gradients, rng)
        return kept

    assert not audited(again).refuted


def test_weights_in_place_of_updates_are_refused() -> None:
    weights = np.zeros(SIZE)

    def trained(gradients: Any, rng: np.random.Generator) -> Any:
        nonlocal weights
        weights = weights - correct(gradients, rng)
        return weights

    with pytest.raises(InvalidInputError, match="Return the update alone"):
        audited(trained)


@pytest.mark.parametrize("rate", [-0.1, 3.0])
def test_a_learning_rate_is_named(rate: float) -> None:
    with pytest.raises(InvalidInputError, match="no learning rate, no sign"):
        audited(lambda gradients, rng: rate * correct(gradients, rng))


@pytest.mark.parametrize("rate", [-1.0, 0.001, 3.0])
@pytest.mark.parametrize(("runs", "size", "sigma"), [(40, 1, 1), (100, 20, 4), (1000, 3, 10)])
def test_a_learning_rate_is_named_with_much_noise_too(
    rate: float, runs: int, size: int, sigma: int
) -> None:
    """A tenth was what means and noise might differ by: chance made it more, and an accusation."""

    def scaled(gradients: Any, rng: np.random.Generator) -> Any:
        return rate * (clipped(gradients).sum(axis=0) + sigma * rng.normal(size=size))

    for seed in range(8 if runs < 1000 else 1):
        with pytest.raises(InvalidInputError, match="no learning rate, no sign"):
            audit_step(
                scaled, clip=1, noise_multiplier=sigma, batch=1, dimension=size, runs=runs,
                significance=0.05, seed=seed,
            )  # fmt: skip


@pytest.mark.parametrize(("runs", "sigma"), [(40, 1), (40, 20), (200, 20)])
def test_too_little_noise_is_no_learning_rate(runs: int, sigma: int) -> None:
    def halved(gradients: Any, rng: np.random.Generator) -> Any:
        return clipped(gradients).sum(axis=0) + sigma / 2 * rng.normal(size=10)

    for seed in range(8):
        found = audit_step(
            halved, clip=1, noise_multiplier=sigma, batch=1, dimension=10, runs=runs, seed=seed
        )
        assert "noise" in [each.name for each in found.findings if each.refuted]


def test_an_update_of_another_shape_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="10 finite numbers"):
        audited(lambda gradients, rng: 0.0)


# ------------------------------------------------------------ the steps of one training run


def _steps(noise: float, count: int, seed: int) -> Any:
    """Yield (score, coin) of steps with a canary of norm 1; what was learned before moves all."""
    rng, drift = np.random.default_rng(seed), 0.0
    for _ in range(count):
        coin = bool(rng.random() < 0.5)
        update = coin + noise * rng.normal() + drift
        drift = 0.5 * np.tanh(update)
        yield update, coin


def test_half_of_the_noise_shows_before_the_training_ends() -> None:
    steps = _steps(1.0, 5000, 1)
    found = audit_training(steps, {"mu": "1/2"}, significance=1e-6)
    assert found.refuted
    assert next(steps, None) is not None  # it was not read to its end
    again = checker.check(found.certificate())
    assert again.outcome is checker.Outcome.CONDITIONAL, again.problems


@pytest.mark.slow
def test_steps_that_are_as_private_as_claimed_are_seldom_accused() -> None:
    """Of 8 trainings at 5 % more than 3 are accused with probability below 4e-4."""
    accused = sum(audit_training(_steps(2.0, 300, i), {"mu": "1/2"}).refuted for i in range(8))
    assert accused <= 3


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([], "at least one step"),
        ([(1.0, True), (np.nan, False)], "step 1 has nan"),
        ([(1.0, 2)], "true or false"),
        ([1.0], "pairs"),
        ([("a", True)], "pairs"),
    ],
)
def test_what_is_no_step_is_named(steps: Any, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        audit_training(steps, 1)
