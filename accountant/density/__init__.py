"""Densities given as text: parsed, differentiated, bounded over ranges and integrated."""
