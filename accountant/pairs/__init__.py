"""Pairs that several mechanisms share."""

from accountant.pairs.discrete_laplace import DiscreteLaplacePair
from accountant.pairs.finite import FiniteLaws, FinitePair
from accountant.pairs.gaussian import GaussianPair

__all__ = ["DiscreteLaplacePair", "FiniteLaws", "FinitePair", "GaussianPair"]
