"""The formal claim in words: what a verdict is about, made from the claim's data alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from verify.claim import Claim
from verify.domain import Scalar

_LISTED = 20
"""So many values of a variable are listed; of more, the ends and the number are given."""
_UNIVERSAL = re.compile(r"\b(every|all|any)\b(?!-)|∀", re.IGNORECASE)


def formal(claim: Claim) -> str:
    """Say what a claim says: its cases and domains, its assumptions, and its assertion."""
    parts = []
    if claim.where:
        listed = ", ".join(f"{name} in {_values(given)}" for name, given in claim.where.items())
        parts.append(f"in the cases {listed}")
    if claim.for_all:
        domains = " and ".join(domain.words(name) for name, domain in claim.for_all.items())
        parts.append(f"for every {domains}")
    if claim.assume:
        parts.append(f"where {' and '.join(claim.assume)}")
    quantified = " ".join(parts)
    text = f"{quantified}: {claim.assertion()}" if quantified else claim.assertion()
    if claim.adjacency:
        text += f", for neighbours by {claim.adjacency}"
    if claim.let:
        text += ", with " + ", ".join(f"{name} = {value}" for name, value in claim.let.items())
    return text


def note(claim: Claim) -> str:
    """Say where the author's words are universal and the claim is about listed cases alone."""
    if _UNIVERSAL.search(claim.statement) and not claim.has_range():
        return "The file's words say more than was decided: only the listed cases."
    return ""


def _values(values: Sequence[Scalar]) -> str:
    texts = [str(value) for value in values]
    if len(texts) <= _LISTED:
        return "{" + ", ".join(texts) + "}"
    return "{" + ", ".join([*texts[:4], "…", texts[-1]]) + "}" + f" ({len(texts)} values)"
