"""Pairs that several mechanisms share."""

from accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from accountant.pairs.discrete_laplace import DiscreteLaplacePair
from accountant.pairs.finite import FiniteLaws, FinitePair
from accountant.pairs.gaussian import GaussianPair

__all__ = [
    "DiscreteGaussianPair",
    "DiscreteLaplacePair",
    "FiniteLaws",
    "FinitePair",
    "GaussianPair",
]
