"""The factor of Chernoff's bound of a profile.

For c > 0 and all real x, (1 − e^{−x})⁺ ≤ e^{cx} c^c/(1 + c)^{1 + c}, with equality at
e^{−x} = c/(1 + c). With x = L − ε and the mean over P,

    H(ε) = E[(1 − e^{ε−L})⁺] ≤ E[e^{cL}] e^{−cε} c^c/(1 + c)^{1 + c}.
"""

from __future__ import annotations

import math

from flint import arb


def log_peak(c: arb) -> arb:
    """Return ln of the largest (1 − e^{−x}) e^{−cx}, which is c ln c − (1 + c) ln(1 + c), c > 0."""
    return c * c.log() - (1 + c) * c.log1p()


def rough_log_peak(c: float) -> float:
    """Return the same in floats, to choose a c by."""
    return c * math.log(c) - (1 + c) * math.log1p(c)
