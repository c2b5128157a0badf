"""The theorem of an audit, made of fields that were recomputed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from verify.checker.outcome import Theorem
from verify.checker.printing import formula, quoted


def audit_theorem(data: Mapping[str, Any]) -> Theorem:
    """Say what the certificate of an audit without problems shows, from what was recomputed."""
    text = f"{data['verdict']} at significance {data['significance']:.3g}"
    if data["kind"] == "sequential-audit":
        text += f" (evidence {data['evidence']:.4g} after {len(data['rounds'])} rounds of bets)"
    else:
        at, counts = data["tested"], data["counts"]
        tested = f"tested at ({formula(at['epsilon'])}, {formula(at['delta'])})"
        text += f" ({tested}: p-value at most {data['p_value']:.3g}, {_counts(counts)})"
        if data["epsilon_lower_bound"] > 0:
            text += f"; with that confidence epsilon({formula(at['delta'])}) >= "
            text += f"{math.floor(data['epsilon_lower_bound'] * 1e6) / 1e6:.7g}"
    return Theorem(
        mechanism=quoted(data["target"]), adjacency="", claimed=guarantee(data["claim"]),
        verdict=text,
    )  # fmt: skip


def _counts(counts: Mapping[str, Any]) -> str:
    if counts["design"] == "guesses":
        return (
            f"{counts['hits']} right and {counts['misses']} wrong guesses in {counts['runs']} runs"
        )
    return f"{counts['hits']} of {counts['runs']} runs against {counts['misses']} of " + str(
        counts["other_runs"]
    )


def guarantee(claim: Mapping[str, Any]) -> str:
    """Say what is claimed, of the fields that are tested."""
    if claim["kind"] == "epsilon-delta":
        points = ", ".join(f"({point['epsilon']}, {point['delta']})" for point in claim["points"])
        return formula(f"{points}-DP")
    if claim["kind"] == "gaussian":
        return formula(f"{claim['parameter']}-GDP")
    if claim["kind"] == "mechanism":
        return formula(f"the profile of {claim['parameter']}")
    return f"the profile that is called {quoted(claim['description'])}"
