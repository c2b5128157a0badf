"""A kernel that checks certificates: read `docs/kernel.md` first, then the files in this order.

`schema`, `theorem`, `check`: what comes in, and what is said. `numbers`, `notation`, `expressions`,
`cases`: formulas at points. `laws`, `lemmas`, `quantities`, `releases`: what a mechanism
guarantees; for some also `noises`, `particular`, `densities`, `compositions` and `lattice`.
`questions`, `functions`: what a formula asks of a mechanism, and the rarer functions. `boxes`,
`proofs`, `statements`: formulas over ranges. `programs`, `statistics`: optima and audits. A file is
loaded where a theorem needs it.

It imports python-flint and the standard library, and nothing else of dpassay.
"""

from __future__ import annotations

from .check import Checked, Outcome, check, trust
from .schema import VERSION, json_schema
from .theorem import Theorem

__all__ = ["VERSION", "Checked", "Outcome", "Theorem", "check", "json_schema", "trust"]
