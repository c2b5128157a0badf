"""What would make a refuted claim true: more noise, a larger ε, the corrected statement."""

from __future__ import annotations

from decimal import Decimal

from dpassay.verifier.needed_noise import TYPED, needed_noise
from dpassay.verifier.verdict import Finding, Verdict

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
