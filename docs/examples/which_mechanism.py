# ruff: noqa: T201
"""Which mechanism for ten sums with different bounds?

Every candidate is calibrated to the same budget; one with its published noise is struck out.
"""

import dpassay
from dpassay.verifier.compare.output import best_lines, table

found = dpassay.compare(
    dpassay.Budget(dpassay.EpsilonDelta(1, "1e-6")),
    dpassay.BoundedSum([1, 1, 1, 1, 1, 2, 4, 8, 16, 32]),
    metrics=["variance", "rmse"],
    simulated=False,
)
for line in table(found):
    print("  ".join(cell.ljust(31) for cell in line[:4]).rstrip())
print(*best_lines(found), sep="\n")
