"""Mechanisms made from mechanisms, and mechanisms given by a table."""
