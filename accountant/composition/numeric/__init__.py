"""Numerical tools of the engines."""
