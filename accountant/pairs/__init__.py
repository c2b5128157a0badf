"""Dominating pairs of single releases."""
