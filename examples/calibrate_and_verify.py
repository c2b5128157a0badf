"""Calibrate noise, then verify it.

The least noise for a budget, rounded towards more, and the verdicts just above and just below it.
"""

import dpassay

target = dpassay.EpsilonDelta(1, "1e-6")
found = dpassay.calibrate("Gaussian", target)
print("least:", found.least)
for deviation in (found.mechanism.standard_deviation, "4.2246"):
    claim = dpassay.ApproximateDP(
        id="release",
        source="an example",
        statement=f"Noise of standard deviation {deviation} is (1, 1e-6)-DP.",
        mechanism=repr(dpassay.Gaussian(standard_deviation=deviation)),
        epsilon="1",
        delta="1e-6",
    )
    finding = dpassay.verify(claim)
    print(finding.verdict.value, finding.formal)
