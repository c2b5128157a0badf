"""A year of releases.

A noisy count every week and one randomised response, composed exactly: no bound is added up.
"""

import dpassay

year = dpassay.Composed(
    [
        dpassay.Composed(dpassay.DiscreteLaplace(scale=40), 52),
        dpassay.RandomizedResponse(epsilon="0.5"),
    ]
)
for delta in ("1e-3", "1e-6", "1e-9", "0"):
    print(f"delta = {delta}: epsilon =", dpassay.epsilon(year, delta))
