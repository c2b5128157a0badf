"""Figures about Poulsen's note on elliptical Gaussian noise."""
