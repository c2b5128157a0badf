"""What would make a refuted claim true: more noise, a larger ε, the corrected statement."""

from __future__ import annotations

import contextlib
from decimal import Decimal
from typing import Any

from verify.verdict import Finding, Verdict

COMMAND_LINE = "command line"
"""The source of a claim that a user has typed, whose least noise is found as well."""
_DIGITS = 5
"""Of the noise in a remedy, rounded to the side on which the claim is true."""
_WORDS = ("epsilon", "delta", "mu", "rho")
_FALLBACK = "claim it of fewer cases: the case that is shown refutes it"


def remedy(finding: Finding) -> str:
    """Return what would make a refuted claim true; empty for other verdicts."""
    if finding.verdict is not Verdict.REFUTED:
        return ""
    parts = [_noise(finding), finding.true_from, finding.correction]
    return "; ".join(part for part in parts if part) or _value(finding) or _FALLBACK


def _noise(finding: Finding) -> str:
    """Say with which noise a mechanism that a user typed has the guarantee."""
    from accountant import notation
    from accountant.errors import DpassayError

    if finding.source != COMMAND_LINE:
        return ""
    with contextlib.suppress(DpassayError):
        mechanism: Any = notation.parse(str(finding.witness.get("mechanism", "")))
        argument = mechanism.noise_argument
        if argument is None:
            return ""
        from verify.ask import calibrate

        kinds = [n for n in (argument, mechanism.gaussian_noise_argument) if n]
        argument = next((n for n in kinds if getattr(mechanism, n) is not None), argument)
        others = {
            name: getattr(mechanism, name)
            for name in notation.argument_names(type(mechanism).__name__)
            if name not in (*kinds, "adjacency") and getattr(mechanism, name) is not None
        }
        words: dict[str, Any] = {n: finding.claimed[n] for n in _WORDS if n in finding.claimed}
        found = calibrate(
            type(mechanism), adjacency=finding.adjacency, digits=_DIGITS, **words, **others
        )
        sign = "≥" if mechanism.noise_grows else "≤"
        return f"needs {argument} {sign} {getattr(found.mechanism, argument)}"
    return ""


def _value(finding: Finding) -> str:
    """Give the true value where a number was misprinted."""
    from accountant.numbers.reading import text

    value = finding.true.get("value")
    if not isinstance(value, dict):
        return ""
    return f"print {text(Decimal(value['lower']), Decimal(value['upper']))}"
