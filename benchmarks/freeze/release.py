"""A release to audit, and an accountant to check."""

from typing import Any


def noisy_count(dataset: int, size: int, rng: Any) -> Any:
    """Return a count with noise, so many times."""
    return dataset + rng.laplace(0.0, 0.4, size)


def epsilon(noise_multiplier: float, sampling_prob: float, steps: int, delta: float) -> float:
    """Return an epsilon that is too small for some runs."""
    return 1.0
