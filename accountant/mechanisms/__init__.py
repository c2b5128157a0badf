"""The mechanisms: one law per file."""

from __future__ import annotations

from accountant.mechanisms.discrete_laplace import DiscreteLaplace
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.integer_noise import IntegerNoise
from accountant.mechanisms.laplace import Laplace
from accountant.mechanisms.truncated_geometric import TruncatedGeometric

__all__ = [
    "DiscreteLaplace",
    "Gaussian",
    "IntegerNoise",
    "Laplace",
    "TruncatedGeometric",
]

DESCRIPTIONS: dict[str, type] = {name: globals()[name] for name in __all__}
"""Everything that the notation can name."""
