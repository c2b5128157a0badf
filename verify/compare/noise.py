"""The noise of a calibrated candidate, in a few words."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.counting.counters import LinearCounter
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.additive.integers import IntegerNoise
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.verifier.compare.candidate import Calibrated

_DIGITS = 5
"""Digits of noise in a table, rounded outward."""
_SYMBOLS = {"standard_deviation": "σ", "sigma_star": "σ_*", "parameter": "σ²", "mu": "μ"}
_SYMBOLS |= {"epsilon": "ε"}


def noise(found: Calibrated) -> str:
    """Return the argument and its value, rounded to more noise; the range of a finite law."""
    mechanism = found.mechanism
    if isinstance(mechanism, IntegerNoise):
        return f"{len(mechanism.probabilities)} masses from {mechanism.lowest} on"
    argument = found.argument or _argument(mechanism)
    value = getattr(mechanism, argument, None) if argument else None
    if isinstance(value, (int, Fraction)):
        value = ExactReal.of_rational(value)
    if not isinstance(value, ExactReal):
        return _deviations(mechanism)
    known = enclose(value.ball) if value.rational is None else Interval.of_exact(value.rational)
    more = mechanism.noise_grows
    rounded = (
        Context(prec=_DIGITS, rounding=ROUND_CEILING).plus(known.upper)
        if more
        else Context(prec=_DIGITS, rounding=ROUND_FLOOR).plus(known.lower)
    )
    return f"{_SYMBOLS.get(argument, argument)} = {float(rounded):.{_DIGITS}g}"


def _argument(mechanism: Mechanism) -> str:
    if isinstance(mechanism, LinearCounter):
        return "epsilon" if mechanism.mu is None else "mu"
    return mechanism.noise_argument or ""


def _deviations(mechanism: Mechanism) -> str:
    """Return the standard deviations, from the least to the largest."""
    try:
        variances = list(mechanism.variances())
    except NotApplicableError:
        return "-"
    sizes = sorted(float(entry.mid()) ** 0.5 for entry in variances)
    few = [f"{size:.{_DIGITS}g}" for size in (sizes[0], sizes[-1])]
    return f"σ = {' to '.join(dict.fromkeys(few))}"
