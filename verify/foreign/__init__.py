"""What other libraries describe or claim, read without importing them.

Their objects are recognised by their attributes. A description becomes a mechanism in the notation;
an ε, δ or ρ that a library reports becomes a *claim* about it, to be decided like any other.

>>> from dpassay.verifier.foreign import opacus
>>> opacus.mechanism_of([(2.0, 1.0, 10)])
Composed(mechanism=Gaussian(standard_deviation=2), count=10)
"""

from dpassay.verifier.foreign.candidates import as_mechanism

__all__ = ["as_mechanism"]
