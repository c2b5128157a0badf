"""The Fourier engine: contour integrals of moment generating functions."""
