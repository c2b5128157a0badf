"""A kernel that checks certificates of version 2: of optima and of audits.

A certificate is a theorem, the lemmas that it rests on, and a witness: a law with the multipliers
that no law can beat, or counts, bets and scores. Read `numbers`, `programs` (optima), `statistics`
(audits), `schema` (what comes in), `theorem` (what is said) and `check`, in this order. The kernel
imports python-flint and the standard library, and nothing else of dpassay.
"""

from __future__ import annotations

from .check import Found, check
from .schema import VERSION, canonical, json_schema

__all__ = ["VERSION", "Found", "canonical", "check", "json_schema"]
