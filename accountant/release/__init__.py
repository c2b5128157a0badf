"""Noise on lattices, sampled exactly: what releases use."""
