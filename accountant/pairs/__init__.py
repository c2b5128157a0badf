"""Pairs that several mechanisms share."""

from accountant.pairs.finite import FiniteLaws, FinitePair
from accountant.pairs.gaussian import GaussianPair

__all__ = ["FiniteLaws", "FinitePair", "GaussianPair"]
