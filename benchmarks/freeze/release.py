"""A release to audit, and an accountant to check."""

from typing import Any


def noisy_count(dataset: list[Any], size: int, rng: Any) -> Any:
    """Return noisy counts of a dataset."""
    return len(dataset) + rng.laplace(0.0, 0.4, size)


def epsilon(noise_multiplier: float, sampling_prob: float, steps: int, delta: float) -> float:
    """Return an epsilon that is too small for some runs."""
    return 1.0
