"""The epsilon of a training run, and what two accountants reported for it.

The run is a mechanism; each epsilon that was reported becomes a claim.
"""

import dpassay

step = dpassay.PoissonSubsampled(dpassay.Gaussian(sigma="1.1"), sample_rate="256/60000")
training = step * 7032
neighbours = {"adjacency": "add-remove"}
print("exact:", training.epsilon(delta="1e-5", **neighbours))
reported = {
    "Opacus, RDPAccountant": 1.7934728423217132,
    "Opacus, GaussianAccountant": 1.5791869973724761,
}
for name, epsilon in reported.items():
    finding = dpassay.verify(training, epsilon=epsilon, delta="1e-5", **neighbours)
    print(f"{name} says {epsilon:.6f}: {finding.verdict.value}")
