"""Exact sampling of noise on lattices, for releases."""
