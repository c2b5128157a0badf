"""Sensitivity spaces, covariances, ellipses and workloads."""
