"""Where floating point has no number left.

The tail keeps its digits at any size: there is no 1 - x where x is near 1.
"""

import dpassay

noise = dpassay.Gaussian(standard_deviation=1)
for epsilon in (10, 100, 1000, 10000):
    print(f"delta({epsilon}) =", dpassay.delta(noise, epsilon))
print("epsilon(1e-1000) =", dpassay.epsilon(noise, "1e-1000"))
