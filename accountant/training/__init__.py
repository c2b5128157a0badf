"""The privacy of a DP-SGD run from its settings, and the noise that a budget requires."""

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
