# ruff: noqa: T201
"""The epsilon of a training run, as Opacus keeps it.

The history of an accountant becomes a mechanism; the epsilon that it reported becomes a claim.
"""

from fractions import Fraction

import dpassay
from dpassay.verifier.foreign import opacus

history = [(1.1, 256 / 60000, 7032)]  # noise multiplier, sample rate, steps
reported = {"RDPAccountant": 1.7934728423217132, "GaussianAccountant": 1.5791869973724761}
exact = dpassay.epsilon(
    opacus.mechanism_of(history),
    "1e-5",
    adjacency="add-remove",
    relative_width=Fraction(1, 10**9),
)
print("exact:", exact)
for name, epsilon in reported.items():
    finding = dpassay.verify(opacus.claim(history, "1e-5", epsilon))
    print(f"{name} says {epsilon:.6f}: {finding.verdict.value}")
