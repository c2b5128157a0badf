"""What an accountant of the literature would say of the same releases, as enclosures.

Every function takes the guarantees of the single releases, or a mechanism and a count, and
encloses the ε that its theorem gives at a δ. All but the central-limit approximation are proved
upper bounds.
"""

from dpassay.accountant.baselines.central_limit import CentralLimit, central_limit
from dpassay.accountant.baselines.compare import Row, compare
from dpassay.accountant.baselines.moments import ORDERS, Moments, moments
from dpassay.accountant.baselines.theorems import (
    advanced_epsilon,
    basic,
    kairouz,
    kairouz_delta,
    zcdp,
)

__all__ = [
    "ORDERS",
    "CentralLimit",
    "Moments",
    "Row",
    "advanced_epsilon",
    "basic",
    "central_limit",
    "compare",
    "kairouz",
    "kairouz_delta",
    "moments",
    "zcdp",
]
