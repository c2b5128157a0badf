"""Mechanisms built from other mechanisms, and mechanisms given by tables of probabilities."""
