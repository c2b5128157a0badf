"""Optimal noise: linear and semidefinite programs with certified optima."""
