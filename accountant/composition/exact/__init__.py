"""Engines for products whose profile is a sum of finitely many terms."""
