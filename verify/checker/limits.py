"""How much of a certificate is looked at: text, numbers, nesting, length."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from verify import seal

_DEEPEST = 60
"""Levels of objects and lists: proofs nest, laws within laws do."""
_MOST_ENTRIES = 500_000
_LONGEST_TEXT = 200_000
_LONGEST_NAME = 500
_LARGEST_INTEGER = 10**18


def excess(data: Mapping[str, Any]) -> tuple[list[tuple[str, str]], str]:
    """Return what is malformed wherever it stands, and what is too large to be checked.

    Malformed are numbers that are not finite and fields that stand twice in one object.
    """
    problems: list[tuple[str, str]] = []
    stack: list[tuple[str, object, int]] = [("", data, 0)]
    seen = 0
    while stack:
        path, value, depth = stack.pop()
        seen += 1
        if seen > _MOST_ENTRIES:
            return problems, f"it has more than {_MOST_ENTRIES} entries"
        if depth > _DEEPEST:
            return problems, f"it is nested more than {_DEEPEST} levels deep"
        if isinstance(value, seal.Twice):
            problems.append(
                (f"{path}.{value.repeated}" if path else value.repeated, "stands twice")
            )
        if isinstance(value, dict):
            if any(len(key) > _LONGEST_NAME for key in value):
                return problems, f"{path or 'it'} has a field with a name of endless length"
            stack += [(f"{path}.{k}" if path else k, v, depth + 1) for k, v in value.items()]
        elif isinstance(value, list):
            stack += [(f"{path}[{i}]", entry, depth + 1) for i, entry in enumerate(value)]
        elif isinstance(value, str) and len(value) > _LONGEST_TEXT:
            return problems, f"{path} is longer than {_LONGEST_TEXT} characters"
        elif isinstance(value, float) and not math.isfinite(value):
            problems.append((path, f"is {value}, which is no number"))
        elif isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
            problems.append((path, "is an integer beyond 10**18"))
    return problems, ""
