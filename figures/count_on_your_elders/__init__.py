"""Figures of Andersson, Pagh and Torkamani, Count on Your Elders."""
