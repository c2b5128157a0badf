"""Compositions and samples: one house of engines, and the table that chooses among them."""
