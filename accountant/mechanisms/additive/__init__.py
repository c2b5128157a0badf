"""Noise added to a number or a vector."""
