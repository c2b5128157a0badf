"""Pairs that several mechanisms share."""

from accountant.pairs.gaussian import GaussianPair

__all__ = ["GaussianPair"]
