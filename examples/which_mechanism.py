"""Which mechanism for ten sums with different bounds?

Every candidate is calibrated to the same budget; one with its published noise is struck out.
"""

import dpassay

found = dpassay.compare(
    dpassay.Budget(dpassay.EpsilonDelta(1, "1e-6")),
    dpassay.BoundedSum([1, 1, 1, 1, 1, 2, 4, 8, 16, 32]),
    metrics=["variance", "rmse"],
)
print(found)
