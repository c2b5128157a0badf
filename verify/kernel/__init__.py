"""A kernel that checks certificates: read `docs/kernel.md` first, then the files in this order.

`numbers`, `notation`, `laws`, `lattice`, `lemmas`, `quantities`, `releases`: what a mechanism
guarantees. `expressions`, `boxes`, `statements`: formulas at points and over ranges. `programs`,
`statistics`: optima and audits. `schema`, `theorem`, `check`: what comes in, and what is said.

It imports python-flint and the standard library, and nothing else of dpassay.
"""

from __future__ import annotations

from .check import Checked, Outcome, check, trust
from .schema import VERSION, json_schema
from .theorem import Theorem

__all__ = ["VERSION", "Checked", "Outcome", "Theorem", "check", "json_schema", "trust"]
