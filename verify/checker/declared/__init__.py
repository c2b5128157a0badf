"""Laws of additive noise that are declared in one file each, by mechanism and by pair.

What is declared here is derived a second time, and shares nothing with the accountant. To add a law
is to add its file, and its name to the list below.
"""

from dpassay.verifier.checker.declared.above_threshold import ABOVE_THRESHOLD
from dpassay.verifier.checker.declared.exponential import BOUNDED_RANGE, EXPONENTIAL
from dpassay.verifier.checker.declared.k_norm import (
    FALLING_NOISE,
    K_NORM,
    RADIAL_NOISE,
    ROUND_NOISE,
)
from dpassay.verifier.checker.declared.law import DeclaredLaw
from dpassay.verifier.checker.declared.logistic import LOGISTIC
from dpassay.verifier.checker.declared.own_density import OWN_DENSITY, OWN_SHIFTS
from dpassay.verifier.checker.declared.own_mass import OWN_MASS
from dpassay.verifier.checker.declared.permute_and_flip import PERMUTE_AND_FLIP
from dpassay.verifier.checker.declared.report_noisy_max import (
    DISCRETE_MAXIMA,
    LAPLACE_MAXIMA,
    REPORT_NOISY_MAX,
    UNEQUAL_MAXIMA,
)
from dpassay.verifier.checker.declared.skellam import SKELLAM
from dpassay.verifier.checker.declared.tested_release import TESTED_RELEASE
from dpassay.verifier.checker.declared.truncated_laplace import TRUNCATED_LAPLACE

__all__ = ["BY_LAW", "BY_MECHANISM", "DeclaredLaw"]

_ALL: tuple[DeclaredLaw, ...] = (
    ABOVE_THRESHOLD,
    EXPONENTIAL,
    K_NORM,
    LOGISTIC,
    OWN_DENSITY,
    PERMUTE_AND_FLIP,
    REPORT_NOISY_MAX,
    SKELLAM,
    TRUNCATED_LAPLACE,
)
BY_MECHANISM = {law.mechanism: law for law in _ALL}
_LAWS = (
    BOUNDED_RANGE,
    DISCRETE_MAXIMA,
    FALLING_NOISE,
    LAPLACE_MAXIMA,
    OWN_MASS,
    OWN_SHIFTS,
    RADIAL_NOISE,
    ROUND_NOISE,
    TESTED_RELEASE,
    UNEQUAL_MAXIMA,
)
BY_LAW = {law.name: law for law in (*_ALL, *_LAWS)}
