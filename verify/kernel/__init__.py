"""The trusted checker of certificates.

Read `docs/kernel.md` first, then the modules in this order:

* `schema`, `theorem`, `check`: input, output and dispatch;
* `numbers`, `notation`, `expressions`, `cases`: formulas at points;
* `laws`, `lemmas`, `quantities`, `releases`: guarantees of mechanisms, with `noises`, `particular`,
  `densities`, `compositions` and `lattice` for those that need them;
* `questions`, `functions`: quantities of mechanisms inside formulas, and special functions;
* `boxes`, `proofs`, `statements`: formulas over ranges;
* `programs`, `statistics`: optima and audits.

A module is loaded only when a theorem needs it. The kernel imports python-flint and the standard
library, and nothing else of dpassay.
"""

from __future__ import annotations

from .check import Checked, Outcome, check, trust
from .schema import VERSION, json_schema
from .theorem import Theorem

__all__ = ["VERSION", "Checked", "Outcome", "Theorem", "check", "json_schema", "trust"]
