"""Densities that a user writes: read, differentiated, bounded over ranges, integrated."""
