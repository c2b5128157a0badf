"""The privacy of DP-SGD from the settings of a training run, and the noise for a budget."""

from __future__ import annotations

from dpassay.accountant.training.run import (
    Schemes,
    Training,
    dpsgd,
    dpsgd_noise,
    training,
    training_schemes,
)

__all__ = ["Schemes", "Training", "dpsgd", "dpsgd_noise", "training", "training_schemes"]
