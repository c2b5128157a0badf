"""The envelope of several pairs: the pair whose profile is the largest of theirs at every ε.

Profiles are the functions of z = e^ε that are convex, non-increasing, at least (1 − z)⁺ and at most
1. The maximum of several is one too, so it is the profile of a pair (Zhu, Dong and Wang 2022,
Proposition 7).

*The two directions of a sample.* Let (A, B) have the same profile as (B, A), 0 < q < 1, and
M = (1 − q)B + qA. Of the pairs (M, B) and (B, M), the first has the larger profile at ε ≥ 0, the
second at ε ≤ 0. For, with z = e^ε ≥ 1 and c = 1 − z(1 − q) ≤ q,

    H of (M, B) is ∫ (qA − (q + z − 1)B)⁺,
    H of (B, M) is ∫ (cB − zqA)⁺ = ∫ (cA − zqB)⁺,    and 0 for c ≤ 0,

by the symmetry; and qA − (q + z − 1)B = (cA − zqB) + (z − 1)(1 − q)(A − B). Where cA > zqB, with
0 < c ≤ q ≤ zq, A > B: the first integrand is at least the second. The second claim follows from
H of (Q, P) at ε = 1 − z + z (H of (P, Q) at −ε). So the losses above 0 of the envelope are those of
(M, B), the losses below 0 are those of (B, M), and it has the loss 0 with the mass that is left.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from flint import arb

from accountant.composition.argument import hull
from accountant.composition.invert import least, most
from accountant.composition.subsampling import SubsampledPair
from accountant.core.pair import Pair, Tails
from accountant.errors import NotApplicableError
from accountant.mechanisms.additive.laplace import LaplacePair
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import COMPOSED_WIDTH
from accountant.pairs.gaussian import GaussianPair

Family: TypeAlias = tuple[Pair, ...]

_NO_FORM = (
    "Releases that choose among several worst pairs have no known Rényi or Kullback–Leibler "
    "divergence. Ask for delta, epsilon or the trade-off function, which are enclosed."
)


@final
@dataclass(frozen=True)
class EnvelopePair(Pair):
    """The pair whose profile is the largest of those of the pairs of a family."""

    family: Family

    @property
    def usual_width(self) -> Fraction:
        """Return that of compositions."""
        return COMPOSED_WIDTH

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return max H_i(ε)."""
        return most([pair.hockey_stick(epsilon) for pair in self.family])

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails of the pair with the largest H; of all that may be it, their hull.

        −Q(L > ε) is the derivative of H to the right, as a function of e^ε. A pair and its reverse
        have the same H(0): there the derivative is the larger one.
        """
        values = [pair.hockey_stick(epsilon) for pair in self.family]
        largest = most(values)
        near = [p for p, v in zip(self.family, values, strict=True) if not v < largest]
        tails = [pair.tails(epsilon) for pair in near]
        if epsilon.sign == 0 and len(near) == 2 and near[0].reverse() == near[1]:
            first, second = tails
            if first.q_above < second.q_above:
                return first
            if second.q_above < first.q_above:
                return second
        result = tails[0]
        for other in tails[1:]:
            result = hull(result, other)
        return result

    def max_loss(self) -> arb:
        """Return the largest of all losses."""
        return most([pair.max_loss() for pair in self.family])

    def max_finite_loss(self) -> arb:
        """Return a ball for the loss beyond which H is level.

        It is at least the largest finite loss of the pairs with the largest mass at infinity, and
        at most that of all.
        """
        masses = [pair.exact_infinity_mass() for pair in self.family]
        losses = [pair.max_finite_loss() for pair in self.family]
        known = [mass for mass in masses if mass is not None]
        if len(known) < len(masses):
            return most(losses).union(least(losses))
        largest_mass = max(known)
        certain = [loss for loss, mass in zip(losses, known, strict=True) if mass == largest_mass]
        low, high = most(certain), most(losses)
        return low if len(certain) == len(losses) else low.union(high)

    def infinity_mass(self) -> arb:
        """Return the largest mass at infinity."""
        return most([pair.infinity_mass() for pair in self.family])

    def exact_infinity_mass(self) -> ExactReal | None:
        """Return the same where it is known."""
        known = [pair.exact_infinity_mass() for pair in self.family]
        masses = [mass for mass in known if mass is not None]
        return max(masses) if len(masses) == len(known) else None

    def renyi(self, order: arb) -> arb:
        """Raise NotApplicableError: it is that of no pair of the family."""
        raise NotApplicableError(_NO_FORM)

    def kullback_leibler(self) -> arb:
        """Raise NotApplicableError: it is that of no pair of the family."""
        raise NotApplicableError(_NO_FORM)

    def reverse(self) -> EnvelopePair:
        """Return the envelope of the reversed pairs: H of (Q, P) is 1 − e^ε + e^ε H(−ε)."""
        return EnvelopePair(tuple(pair.reverse() for pair in self.family))

    def law(self) -> dict[str, object]:
        """Return {"law": "envelope", "pairs"}, each pair's law as a JSON text."""
        return {"law": "envelope", "pairs": [json.dumps(pair.law()) for pair in self.family]}


def envelope(family: Family) -> Pair:
    """Return the pair with the largest profile of a family, itself where there is one only."""
    return family[0] if len(family) == 1 else EnvelopePair(family)


def two_directions(family: Family) -> tuple[SubsampledPair, SubsampledPair] | None:
    """Return (M, B) and (B, M) where the family is these, of a symmetric (A, B); else None."""
    match family:
        case (SubsampledPair() as one, SubsampledPair() as other):
            ahead, behind = (one, other) if one.mixed_first else (other, one)
            same = one.inner == other.inner and one.sampling_prob == other.sampling_prob
            symmetric = isinstance(one.inner, GaussianPair | LaplacePair)
            if same and symmetric and ahead.mixed_first and not behind.mixed_first:
                return ahead, behind
    return None
