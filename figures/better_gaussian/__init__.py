"""Figures of Lebeda, Better Gaussian Mechanism using Correlated Noise."""
