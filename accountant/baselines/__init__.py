"""What an accountant of the literature would say of the same releases, as enclosures.

Every function takes the guarantees of the single releases, or a mechanism and a count, and
encloses the ε that its theorem gives at a δ. All but the central-limit approximation are proved
upper bounds.
"""

from accountant.baselines.advanced import advanced, advanced_epsilon
from accountant.baselines.basic import basic
from accountant.baselines.central_limit import CentralLimit, central_limit
from accountant.baselines.compare import Row, compare
from accountant.baselines.kairouz import kairouz, kairouz_closed, kairouz_delta
from accountant.baselines.moments import ORDERS, Moments, moments
from accountant.baselines.zcdp import zcdp

__all__ = [
    "ORDERS",
    "CentralLimit",
    "Moments",
    "Row",
    "advanced",
    "advanced_epsilon",
    "basic",
    "central_limit",
    "compare",
    "kairouz",
    "kairouz_closed",
    "kairouz_delta",
    "moments",
    "zcdp",
]
