"""Permute-and-flip: the largest of scores with exponential noise.

In units of the noise let p(t) be the chance that a set S of candidates holds the maximum when its
scores are raised by t against the others. The largest noisy score M in S exceeds x + s with a
chance of at least e^{-s} where it exceeds x, as one of independent exponentials does. So
p(t + s) <= e^s p(t), and for the others 1 - p(t) <= e^s (1 - p(t + s)): p' <= min(p, 1 - p). From
q = p(0) the most that is reached at t is F(F^{-1}(q) + t), F the distribution function of Laplace
noise, and two candidates reach it. The profile is the largest F(x) - e^eps F(x - t): for
|eps| < t the best x has 1 - F(x) = e^{(eps - t)/2}/2 and F(x - t) = e^{-(t + eps)/2}/2.
"""

from __future__ import annotations

from fractions import Fraction

from dpassay.verifier.checker.declared.law import DeclaredLaw, laplace_tails, two_candidates
from dpassay.verifier.checker.notation import Argument, positive, switch
from dpassay.verifier.checker.reals import exp

PERMUTE_AND_FLIP = DeclaredLaw(
    mechanism="PermuteAndFlip",
    arguments={
        "epsilon": Argument(positive),
        "sensitivity": Argument(positive, Fraction(1)),
        "monotone": Argument(switch, False),
    },
    name="noisy-maximum",
    parameters=("distance",),
    # score differences of 2Δ, or of Δ, are ε units of noise
    pair=lambda noise: {"law": "noisy-maximum", "distance": noise["epsilon"]},
    tails=lambda pair, epsilon: laplace_tails(pair["distance"], epsilon),
    largest_loss=lambda pair: pair["distance"],
    only_alone=True,
    ends=lambda pair: (
        two_candidates(lambda x: exp(-x) / 2, pair["distance"]),
        {"law": "laplace", "distance": pair["distance"]},
    ),
)
