"""Comparison: which mechanism should be used under a budget?

A `Budget` says what may be spent, a workload (`dpassay.accountant.geometry.workload`) what is
released. `compare` calibrates every candidate to the least noise that the budget allows, proves
its guarantee and computes its error exactly.
"""

from dpassay.verifier.compare.candidates import Budget
from dpassay.verifier.compare.comparison import Comparison, Row, compare

__all__ = ["Budget", "Comparison", "Row", "compare"]
