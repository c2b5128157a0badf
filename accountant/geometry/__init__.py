"""Sensitivity spaces, covariances, ellipses, worst shifts, workloads."""
