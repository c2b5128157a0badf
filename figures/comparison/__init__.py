"""Comparisons of mechanisms: plots, a page, and the command `dpassay compare`."""
