"""Certificates of `dpassay optimal`, each decided in fractions alone."""
