"""Poisson subsampling of one release.

Let (A, B) be a worst pair of the release with and without a record. Every record is taken with
probability q, independently. Given which of the other records are taken, the output is
(1 − q)B + qA with the record and B without it; hockey-stick divergences are jointly convex, so
the pair ((1 − q)B + qA, B) is worst for REMOVE, and (B, (1 − q)B + qA) for ADD (Zhu, Dong and Wang
2022, Theorem 11). Both profiles are those of the release at another ε:

    sup_S qA(S) − (e^ε − 1 + q) B(S) = q H_{A,B}(ln(1 + (e^ε − 1)/q))   where e^ε > 1 − q,
    sup_S (1 − (1 − q)e^ε) B(S) − q e^ε A(S)
        = (1 − (1 − q)e^ε) H_{B,A}(ε − ln(1 − (1 − q)(e^ε − 1)/q))      where e^ε < 1/(1 − q),

and 1 − e^ε in the first, 0 in the second line elsewhere.

The envelope of several pairs: the pair whose profile is the largest of theirs at every ε.

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
from typing import TYPE_CHECKING, ClassVar, TypeAlias, final

from flint import arb

from dpassay.accountant.composition.invert import least, most
from dpassay.accountant.composition.losses.transform import MixtureTransform
from dpassay.accountant.composition.product import hockey_stick_at, hull, tails_at
from dpassay.accountant.core.pair import Pair, ProfileOnly, Tails
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import COMPOSED_WIDTH
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import fraction
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.pairs.finite_losses import SubsampledLaws, finite
from dpassay.accountant.pairs.gaussian import GaussianPair

if TYPE_CHECKING:
    from dpassay.accountant.pairs.density_moments import Base

_MOST_ORDER = 10_000
"""Largest order whose binomial sum is written out: the sum has a term for each integer below it."""


def subsampled(pair: Pair, sampling_prob: ExactReal, *, mixed_first: bool) -> Pair:
    """Return ((1 − q)Q + qP, Q), or (P, (1 − q)P + qQ), for 0 < q < 1.

    A mixture of Q and of a mixture with weight r is one with weight qr.
    """
    listed = finite(pair)
    if listed is not None:
        return FinitePair(SubsampledLaws(listed, sampling_prob, mixed_first), 0)
    if isinstance(pair, SubsampledPair) and pair.mixed_first == mixed_first:
        return SubsampledPair(pair.inner, sampling_prob * pair.sampling_prob, mixed_first)
    return SubsampledPair(pair, sampling_prob, mixed_first)


@final
@dataclass(frozen=True)
class SubsampledPair(Pair):
    """((1 − q)Q + qP, Q) with the mixture first, else (P, (1 − q)P + qQ), for 0 < q < 1.

    The loss is an increasing function of the loss l of (P, Q): ln(1 − q + q e^l) or
    −ln(1 − q + q e^{−l}). So {L > ε} = {l > c}, and every tail is one of the inner pair. At ε = 0
    also c = 0; at every other algebraic ε, c is irrational, and enclosed between two rationals.
    """

    law_name = "subsampled"

    inner: Pair
    sampling_prob: ExactReal
    mixed_first: bool

    @property
    def usual_width(self) -> Fraction:
        """Return that of the inner pair."""
        return self.inner.usual_width

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε) for any real ε."""
        q, rise = self.sampling_prob.ball(), epsilon.ball().expm1()
        if self.mixed_first:
            weight = rise + q
            if weight > 0:
                return q * self._inner_hockey_stick(epsilon)
            # qA(S) − wB(S) lies between q − w (every outcome) and q, and equals q − w for w ≤ 0
            return -rise if weight <= 0 else (-rise).union(q)
        weight = q - (1 - q) * rise
        if weight > 0:
            return weight * self._inner_hockey_stick(epsilon)
        return arb(0) if weight <= 0 else arb(0).union(weight.upper())

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails of the inner loss at c, mixed."""
        q, rise = self.sampling_prob.ball(), epsilon.ball().expm1()
        weight = rise + q if self.mixed_first else q - (1 - q) * rise
        everything = Tails(arb(1), arb(0), arb(1), arb(0))
        nothing = Tails(arb(0), arb(1), arb(0), arb(1))
        beyond = everything if self.mixed_first else nothing
        if not weight > 0:
            return beyond if weight <= 0 else hull(everything, nothing)
        inner = (
            self.inner.tails(epsilon)
            if epsilon.sign == 0
            else tails_at(self.inner, self._inner_epsilon(epsilon))
        )
        above = (1 - q) * (inner.q_above if self.mixed_first else inner.p_above)
        below = (1 - q) * (inner.q_below if self.mixed_first else inner.p_below)
        if self.mixed_first:
            above, below = above + q * inner.p_above, below + q * inner.p_below
            return Tails(above, below, inner.q_above, inner.q_below)
        above, below = above + q * inner.q_above, below + q * inner.q_below
        return Tails(inner.p_above, inner.p_below, above, below)

    def _inner_epsilon(self, epsilon: ExactReal) -> arb:
        """Return c, where the weight of the inner hockey-stick divergence is positive."""
        q, eps = self.sampling_prob.ball(), epsilon.ball()
        if self.mixed_first:
            return (eps.expm1() / q).log1p()
        return eps - (-(1 - q) * eps.expm1() / q).log1p()

    def _inner_hockey_stick(self, epsilon: ExactReal) -> arb:
        if epsilon.sign == 0:
            return self.inner.hockey_stick(epsilon)
        return hockey_stick_at(self.inner, self._inner_epsilon(epsilon))

    def renyi(self, order: arb) -> arb:
        """Return D_a at an integer a ≥ 2, mixture first, from the integer orders of the pair.

        Where the largest losses dominate the moment so much that the bounds

            q^a E_Q[e^{al}] ≤ E_Q[(1 − q + q e^l)^a] ≤ (1 − q + q E_Q[e^{al}]^{1/a})^a,

        the latter Minkowski's inequality, agree to the precision, they are returned for any order.

        E_Q[(1 − q + q e^l)^a] = 1 + Σ_{k ≥ 2} C(a, k) (1 − q)^{a−k} q^k (e^{(k−1) D_k(P‖Q)} − 1).
        Sampled Gaussian, discrete Gaussian, Laplace and logistic noise has every order above 1, in
        both directions, by quadrature or a sum (`dpassay.accountant.pairs.density_moments`).
        """
        if (extreme := self.renyi_of_large_losses(order)) is not None:
            return extreme
        whole = order.unique_fmpz() if order.is_exact() else None
        if not self.mixed_first or whole is None or not 2 <= whole <= _MOST_ORDER:
            if isinstance(self.inner, GaussianPair):
                return self._gaussian_renyi(order)
            base = self._base()
            if base is not None:
                from dpassay.accountant.pairs.density_moments import sampled_renyi

                q = self.sampling_prob.ball()
                return sampled_renyi(base, q, order, mixed_first=self.mixed_first)
            raise NotApplicableError(
                "The Rényi divergence of a subsampled release is computed at all orders of "
                "Gaussian, discrete Gaussian, Laplace and logistic noise, and at integer orders "
                f"from 2 to {_MOST_ORDER} of the pair in direction REMOVE of other noise. Ask for "
                "delta, epsilon or the trade-off function, which are exact in both directions."
            )
        a, q = int(whole), self.sampling_prob.ball()
        total, weight = arb(0), (1 - q) ** a
        odds = q / (1 - q)
        for k in range(1, a + 1):
            weight = weight * odds * (a - k + 1) / k
            if k > 1:
                total += weight * ((k - 1) * self.inner.renyi(arb(k))).expm1()
        return total.log1p() / (a - 1)

    def _gaussian_renyi(self, order: arb) -> arb:
        """Return ln M(a − 1)/(a − 1) at an order above 1; between its ends for one in a ball."""
        if not order.is_exact():
            both = [self._gaussian_renyi(order.lower()), self._gaussian_renyi(order.upper())]
            return both[0].union(both[1])  # Rényi divergences increase with the order
        if not order > 1:
            raise NotApplicableError(f"Expected an order above 1, not {order}.")
        moments = MixtureTransform(self.inner, self.sampling_prob, self.mixed_first)
        return moments.value(fraction(order) - 1).log() / (order - 1)

    def renyi_of_large_losses(self, order: arb) -> arb | None:
        """Return D_a between its two bounds (see `renyi`) where these agree, mixture first.

        None elsewhere.
        """
        if not self.mixed_first or not order > 1:
            return None
        try:
            moment = (order - 1) * self.inner.renyi(order)  # ln E_Q[e^{al}]
        except NotApplicableError:
            return None
        q = self.sampling_prob.ball()
        least = moment + order * q.log()
        excess = order * ((1 - q) / q * (-moment / order).exp()).log1p()
        if not (moment.is_finite() and excess < least * arb(2) ** (-ctx.prec)):
            return None
        return (least + arb(0).union(excess.upper())) / (order - 1)

    def _base(self) -> Base | None:
        """Return the means over the loss of the noise under the law that is not mixed."""
        from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
        from dpassay.accountant.mechanisms.additive.logistic import LogisticPair
        from dpassay.accountant.pairs import density_moments as moments
        from dpassay.accountant.pairs.discrete_gaussian import DiscreteGaussianPair

        match self.inner:  # each is its own reverse
            case LaplacePair(distance):
                return moments.laplace(distance)
            case LogisticPair(distance):
                return moments.logistic(distance)
            case DiscreteGaussianPair(parameter, shift):
                return moments.discrete_gaussian(parameter, shift)
        return None

    def kullback_leibler(self) -> arb:
        """Return D_1 of Gaussian, discrete Gaussian, Laplace, logistic noise: an integral or sum.

        Raises NotApplicableError for other noise.
        """
        from dpassay.accountant.pairs import density_moments as moments

        q = self.sampling_prob.ball()
        if isinstance(self.inner, GaussianPair):
            mixed, plain = [(1 - q, arb(0)), (q, self.inner.mu())], [(arb(1), arb(0))]
            sides = (mixed, plain) if self.mixed_first else (plain, mixed)
            return moments.mixture_kullback_leibler(*sides)
        base = self._base()
        if base is not None:
            return moments.sampled_kullback_leibler(base, q, mixed_first=self.mixed_first)
        raise NotApplicableError(
            "The Kullback–Leibler divergence of a subsampled release has no closed form. Ask for "
            "delta, epsilon, the trade-off function or a Rényi divergence of integer order."
        )

    def closed_rho(self) -> arb | None:
        """Return that of the pair, mixture first: q^a E_Q[e^{al}] ≤ E_Q[(1 − q + q e^l)^a], so that

            D_a(pair)/a + ln q/(a − 1) ≤ D_a/a ≤ D_a(pair)/a,

        the latter as a mixture shows no more; both tend to the same at large orders.
        """
        return self.inner.closed_rho() if self.mixed_first else None

    def rho_bound(self) -> arb:
        """Return that of the pair: a mixture shows no more."""
        return self.inner.rho_bound()

    def max_loss(self) -> arb:
        """Return the image of the largest inner loss."""
        return self._image(self.inner.max_loss())

    def max_finite_loss(self) -> arb:
        """Return the largest finite loss: −ln(1 − q) where the inner loss may be infinite."""
        if self.mixed_first:
            return self._image(self.inner.max_finite_loss())
        return self.max_loss()

    def _image(self, loss: arb) -> arb:
        q = self.sampling_prob.ball()
        if not self.mixed_first:
            return -(q * (-loss).expm1() if loss.is_finite() else -q).log1p()
        if loss.is_finite():
            return (q * loss.expm1()).log1p()
        return loss if loss > 0 else (-q).log1p()

    def infinity_mass(self) -> arb:
        """Return q times that of the pair, mixture first; else 0: Q charges what P charges."""
        if not self.mixed_first:
            return arb(0)
        return self.sampling_prob.ball() * self.inner.infinity_mass()

    def exact_infinity_mass(self) -> ExactReal | None:
        """Return the same as an exact number where it is known."""
        if not self.mixed_first:
            return ExactReal.of_rational(0)
        mass = self.inner.exact_infinity_mass()
        return None if mass is None else self.sampling_prob * mass

    def reverse(self) -> SubsampledPair:
        """Return (Q, P): the reversed pair with the other side mixed."""
        return SubsampledPair(self.inner.reverse(), self.sampling_prob, not self.mixed_first)

    @property
    def relative_width(self) -> Fraction | None:
        """That of the inner pair."""
        return self.inner.relative_width

    def to_width(self, relative_width: Fraction | None) -> SubsampledPair:
        """Return the same of the inner pair to that width."""
        inner = self.inner.to_width(relative_width)
        return SubsampledPair(inner, self.sampling_prob, self.mixed_first)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe {L > ε} as an event of the pair that is subsampled."""
        with_record = "P" if self.mixed_first else "Q"
        return (
            f"the outcomes with ln(dP/dQ) > {epsilon}, {with_record} being the mixture; they are a "
            "half-line of the loss of the release that is subsampled"
        )


Family: TypeAlias = tuple[Pair, ...]


@final
@dataclass(frozen=True)
class EnvelopePair(ProfileOnly):
    """The pair whose profile is the largest of those of the pairs of a family."""

    family: Family
    listed: bool = False
    """Whether every neighbour is dominated by one of these pairs at all ε, not by their maximum."""

    usual_width: ClassVar = COMPOSED_WIDTH
    """That of compositions."""
    refusal = (
        "Releases whose neighbours are dominated only by the largest of several profiles have no "
        "known Rényi or Kullback–Leibler divergence. Ask for delta, epsilon or the trade-off "
        "function, which are enclosed."
    )

    @property
    def relative_width(self) -> Fraction | None:
        """That of the pairs of the family which have one."""
        asked = (pair.relative_width for pair in self.family)
        return next((width for width in asked if width is not None), None)

    @property
    def largest_order(self) -> float:
        """The least one of the pairs of the family."""
        return min(pair.largest_order for pair in self.family)

    def to_width(self, relative_width: Fraction | None) -> EnvelopePair:
        """Return the same of the pairs of the family to that width."""
        asked = tuple(pair.to_width(relative_width) for pair in self.family)
        return EnvelopePair(asked, self.listed)

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

    def exact_max_loss(self) -> ExactReal | None:
        """Return the largest of those of the pairs of the family, where all are known."""
        known = [pair.exact_max_loss() for pair in self.family]
        exact = [loss for loss in known if loss is not None]
        return max(exact) if len(exact) == len(known) else None

    def renyi(self, order: arb) -> arb:
        """Return the largest divergence of the neighbours; NotApplicableError if not listed."""
        return most([pair.renyi(order) for pair in self._neighbours()])

    def kullback_leibler(self) -> arb:
        """Return the same of order 1."""
        return most([pair.kullback_leibler() for pair in self._neighbours()])

    def _neighbours(self) -> Family:
        if not self.listed:
            raise NotApplicableError(self.refusal)
        return self.family

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

    def reverse(self) -> EnvelopePair:
        """Return the envelope of the reversed pairs: H of (Q, P) is 1 − e^ε + e^ε H(−ε)."""
        return EnvelopePair(tuple(pair.reverse() for pair in self.family), self.listed)

    def law(self) -> dict[str, object]:
        """Return {"law": "envelope", "pairs"}, each pair's law as a JSON text."""
        return {"law": "envelope", "pairs": [json.dumps(pair.law()) for pair in self.family]}


def envelope(family: Family, *, listed: bool = False) -> Pair:
    """Return the pair with the largest profile of a family, itself where there is one only."""
    return family[0] if len(family) == 1 else EnvelopePair(family, listed)


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
