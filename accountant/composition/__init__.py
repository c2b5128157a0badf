"""Dominating pairs of composed and subsampled mechanisms: exact, or a refusal."""

from accountant.composition.joint import Factor
from accountant.composition.product import product
from accountant.composition.subsampling import subsampled

__all__ = ["Factor", "product", "subsampled"]
