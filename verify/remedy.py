"""What would make a refuted claim true: more noise, a larger ε, the corrected statement."""

from __future__ import annotations

import contextlib
from decimal import Decimal
from typing import Any

from dpassay.verifier.verdict import Finding, Verdict

"""The least noise with which a refuted guarantee would be true."""

TYPED = ("command line", "Python")
"""The sources of a claim that a user has typed, whose least noise is found as well."""
_DIGITS = 5
"""Of the noise, rounded to the side on which the claim is true."""
_WORDS = ("epsilon", "delta", "mu", "rho")


def needed_noise(finding: Finding) -> str:
    """Say with which noise a mechanism that a user typed has the guarantee; else empty."""
    from dpassay.accountant import notation
    from dpassay.accountant.budget.calibrate import calibrate
    from dpassay.accountant.budget.target import read_target
    from dpassay.accountant.errors import DpassayError

    if finding.source not in TYPED:
        return ""
    with contextlib.suppress(DpassayError):
        mechanism: Any = notation.parse(str(finding.witness.get("mechanism", "")))
        argument = mechanism.noise_argument
        if argument is None:
            return ""
        kinds = [n for n in (argument, mechanism.gaussian_noise_argument) if n]
        argument = next((n for n in kinds if getattr(mechanism, n) is not None), argument)
        others = {
            name: getattr(mechanism, name)
            for name in notation.argument_names(type(mechanism).__name__)
            if name not in (*kinds, "adjacency") and getattr(mechanism, name) is not None
        }
        target = read_target({name: finding.claimed.get(name) for name in _WORDS})
        found = calibrate(
            type(mechanism), target, adjacency=finding.adjacency, digits=_DIGITS, **others
        )
        sign = "≥" if mechanism.noise_grows else "≤"
        return f"needs {argument} {sign} {getattr(found.mechanism, argument)}"
    return ""


_FALLBACK = "claim it of fewer cases: the case that is shown refutes it"
_LESS = "add noise, or claim less"
"""Of one case that was typed."""


def remedy(finding: Finding) -> str:
    """Return what would make a refuted claim true; empty for other verdicts."""
    if finding.verdict is not Verdict.REFUTED:
        return ""
    parts = [needed_noise(finding), finding.true_from, finding.correction]
    fallback = _LESS if finding.source in TYPED else _FALLBACK
    return "; ".join(part for part in parts if part) or _value(finding) or fallback


def _value(finding: Finding) -> str:
    """Give the true value where a number was misprinted."""
    from dpassay.accountant.numbers.reading import text

    value = finding.true.get("value")
    if not isinstance(value, dict):
        return ""
    return f"print {text(Decimal(value['lower']), Decimal(value['upper']))}"
