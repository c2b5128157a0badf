"""Mechanism, pair, adjacency and description: what everything else is built on."""
