"""Contour integrals of moments: the Fourier engine."""
