"""Gaussian noise shaped to a sensitivity space."""
