"""The rank-one Gaussian law N(0, σ_* v vᵀ), v uniform on the sphere: its numerical core."""
