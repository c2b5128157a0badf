"""Comparison: which mechanism should be used under a budget?

A `Budget` says what may be spent, a workload (`accountant.geometry.workload`) what is released.
`compare`
calibrates every candidate to the least noise that the budget allows, proves its guarantee,
computes its error exactly and confirms it by simulation.
"""

from verify.compare.budget import Budget
from verify.compare.comparison import Comparison, Row, compare
from verify.compare.crossover import Crossover, Sweep, sweep

__all__ = ["Budget", "Comparison", "Crossover", "Row", "Sweep", "compare", "sweep"]
