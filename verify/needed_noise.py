"""The least noise with which a refuted guarantee would be true."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpassay.verifier.verdict import Finding

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
