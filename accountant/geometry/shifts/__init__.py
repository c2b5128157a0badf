"""Upper bounds of δ(ε) of Laplace noise over all shifts of which two norms are known."""

from __future__ import annotations

from accountant.geometry.shifts.line import line_bound
from accountant.geometry.shifts.order import majorant

__all__ = ["line_bound", "majorant"]
