"""Exact numbers, intervals, roots, precision."""
