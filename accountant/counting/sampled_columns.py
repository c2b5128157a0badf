"""Amplification by sampling: what a record shows that takes part in its steps by chance.

A record may take part in steps i, i + b, … of a strategy with at most b bands, in each with
probability q, independently (Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu 2023,
"(Amplified) Banded Matrix Factorization", Section 5, which has the longest column for all). For
add/remove the guarantee is exactly that of one `PoissonSubsampled` Gaussian release of sensitivity
‖C_{·i}‖ for each of these steps.

*Proof.* Column i is 0 outside rows i to i + b − 1, so that each row y_t = (C x + Z)_t shows one
participation at most. Given all y before row i, and the other records' samples, the rows from i on
have the law that they have without the record, but with probability q moved by u_i ⊗ C_{·i}, u_i
known, by ‖C_{·i}‖ at most: the mixture that a sampled release has. A record that always moves its
steps by the full norm attains it.

A record whose columns, sorted, are no longer than those of another one, and no more, is no worse:
to be moved less is a post-processing. The first steps that are left are all named as worst.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from dpassay.accountant.counting.participation import Participation
from dpassay.accountant.counting.strategies import Dense, Toeplitz
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.subsampled import PoissonSubsampled
from dpassay.accountant.numbers.exact import ExactReal


def sampled_releases(
    matrix: Toeplitz | Dense, schema: Participation, noise: ExactReal, sampling_prob: ExactReal
) -> list[Composed]:
    """Return the compositions of which the worst is as private: one for each worst first step.

    Of a Toeplitz strategy it is the first step: its columns are the longest, and the most.
    """
    if sampling_prob.sign == 0:
        return [Composed(PoissonSubsampled(Gaussian(noise), sampling_prob))]
    steps = 1 if isinstance(matrix, Toeplitz) else min(schema.separation, schema.steps)
    found: list[list[Fraction]] = []
    for step in range(steps):
        norms = matrix.squared_norms(schema.from_step(step))
        if norms is None:
            raise NotApplicableError(
                "The columns of this strategy have too many digits for an exact norm. Give fewer "
                "bands, or shorter coefficients."
            )
        norms.sort(reverse=True)
        if not any(_covers(other, norms) for other in found):
            found = [other for other in found if not _covers(norms, other)] + [norms]

    def release(square: Fraction) -> PoissonSubsampled:
        return PoissonSubsampled(Gaussian(noise, ExactReal.of_root(square)), sampling_prob)

    return [
        Composed([Composed(release(square), n) for square, n in Counter(norms).items()])
        for norms in found
    ]


def _covers(one: list[Fraction], other: list[Fraction]) -> bool:
    """Whether sorted norms are as many or more, and each at least as large."""
    return len(one) >= len(other) and all(a >= b for a, b in zip(one, other, strict=False))
