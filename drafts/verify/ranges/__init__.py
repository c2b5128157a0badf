"""The kernel of proofs: plain data in, a theorem or ProofError out.

This is what a person has to trust: exact rational functions and intervals with outward rounding
(python-flint), and the methods below. It imports nothing of the rest of the program.
"""

from dpassay.verifier.ranges.expressions import OutOfTimeError, ProofError
from dpassay.verifier.ranges.prove import prove
from dpassay.verifier.ranges.prover import Proved

__all__ = ["OutOfTimeError", "ProofError", "Proved", "prove"]
