"""Gaussian noise whose covariance is adapted to the sensitivity space."""
