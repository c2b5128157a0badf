"""Counts, bounded counts and running counts."""
