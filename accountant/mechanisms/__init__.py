"""The mechanisms: one law per file."""

from __future__ import annotations

from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.laplace import Laplace

DESCRIPTIONS: dict[str, type] = {
    description.__name__: description
    for description in (
        Gaussian,
        Laplace,
    )
}
"""Everything that the notation can name."""

__all__ = ["DESCRIPTIONS", *DESCRIPTIONS]
