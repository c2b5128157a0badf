"""Sensitivity spaces, covariances, ellipses, workloads."""
