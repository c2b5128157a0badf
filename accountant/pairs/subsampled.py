"""Pairs of Poisson-subsampled releases, envelopes of several pairs, and Gaussian mixtures.

*Poisson subsampling.* Let (A, B) be a worst pair of the release with and without a record. Every
record is sampled independently with probability q. Given which other records are sampled, the
output has the law (1 − q)B + qA with the record and B without it. Hockey-stick divergences are
jointly convex, so the pair ((1 − q)B + qA, B) is worst for REMOVE, and (B, (1 − q)B + qA) for ADD
(Zhu, Dong and Wang 2022, Theorem 11). Both profiles are profiles of the release at another ε:

    sup_S qA(S) − (e^ε − 1 + q) B(S) = q H_{A,B}(ln(1 + (e^ε − 1)/q))   where e^ε > 1 − q,
    sup_S (1 − (1 − q)e^ε) B(S) − q e^ε A(S)
        = (1 − (1 − q)e^ε) H_{B,A}(ε − ln(1 − (1 − q)(e^ε − 1)/q))      where e^ε < 1/(1 − q),

elsewhere the first is 1 − e^ε and the second is 0.

*Envelope.* The envelope of several pairs is the pair whose profile is, at every ε, the largest of
theirs. As functions of z = e^ε, profiles are exactly the convex, non-increasing functions between
(1 − z)⁺ and 1. The maximum of several profiles is such a function too, so it is the profile of a
pair (Zhu, Dong and Wang 2022, Proposition 7).

*The two directions of a sample.* Let (A, B) have the same profile as (B, A), let 0 < q < 1 and
M = (1 − q)B + qA. Then (M, B) has the larger profile of (M, B) and (B, M) at every ε ≥ 0, and
(B, M) at every ε ≤ 0.

Proof. Let z = e^ε ≥ 1 and c = 1 − z(1 − q) ≤ q. Then

    H of (M, B) is ∫ (qA − (q + z − 1)B)⁺,
    H of (B, M) is ∫ (cB − zqA)⁺ = ∫ (cA − zqB)⁺,    and 0 for c ≤ 0,

where the equality is the symmetry of (A, B). Now
qA − (q + z − 1)B = (cA − zqB) + (z − 1)(1 − q)(A − B). Wherever cA > zqB, A > B, as
0 < c ≤ q ≤ zq; so there the first integrand is at least the second. The claim for ε ≤ 0 follows
from the identity H(ε) of (Q, P) = 1 − z + z H(−ε) of (P, Q).

Hence the envelope has the positive losses of (M, B), the negative losses of (B, M), and the
remaining mass at loss 0.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias, final

from flint import acb, arb

from dpassay.accountant.composition.losses.transform import MixtureTransform
from dpassay.accountant.core.pair import (
    Known,
    Pair,
    Tails,
    asked_width,
    exact_infinity_mass,
    max_finite_loss,
    refined,
    rho_bound,
)
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.integral import integral
from dpassay.accountant.numbers.interval import COMPOSED_WIDTH, ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import fraction
from dpassay.accountant.pairs.finite import FinitePair, SubsampledLaws, finite
from dpassay.accountant.pairs.gaussian import GaussianPair, normal_cdf
from dpassay.accountant.pairs.invert import (
    hockey_stick_at,
    hull,
    largest_known,
    least,
    most,
    tails_at,
)

_MOST_ORDER = 10_000
"""Largest integer order of a Rényi divergence; the binomial sum has as many terms."""


def subsampled(pair: Pair, sampling_prob: ExactReal, *, mixed_first: bool) -> Pair:
    """Return ((1 − q)Q + qP, Q), or (P, (1 − q)P + qQ), for 0 < q < 1.

    Subsampling at rate q a release that is subsampled at rate r is subsampling at rate qr.
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
    """((1 − q)Q + qP, Q) if `mixed_first`, else (P, (1 − q)P + qQ), for 0 < q < 1.

    (P, Q) is the pair `inner`. The loss L is an increasing function of its loss l:
    L = ln(1 − q + q e^l), or −ln(1 − q + q e^{−l}). So {L > ε} = {l > c} for some c, and the tails
    of L follow from those of l. For ε = 0, c = 0; for any other algebraic ε, c is irrational and is
    enclosed between two rationals.
    """

    law_name = "subsampled"

    inner: Pair
    sampling_prob: ExactReal
    mixed_first: bool

    @property
    def known(self) -> Known:
        """Return ρ, the usual width of answers and further known quantities."""
        return Known(
            to_width=lambda width: replace(self, inner=refined(self.inner, width)),
            asked=asked_width(self.inner),
            width=self.inner.known.width,
            rho=self._rho,
            # Rényi divergences are jointly quasi-convex, so mixing with Q does not increase them
            rho_bound=lambda: rho_bound(self.inner),
            finite_loss=self._max_finite_loss,
            infinity_mass=self._exact_infinity_mass,
        )

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε) for any real ε."""
        q, rise = self.sampling_prob.ball(), epsilon.ball().expm1()
        if self.mixed_first:
            weight = rise + q
            if weight > 0:
                return q * self._inner_hockey_stick(epsilon)
            # With w the weight, sup_S qP(S) − wQ(S) lies between q − w (S = everything) and q; it
            # equals q − w = 1 − e^ε for w ≤ 0.
            return -rise if weight <= 0 else (-rise).union(q)
        weight = q - (1 - q) * rise
        if weight > 0:
            return weight * self._inner_hockey_stick(epsilon)
        return arb(0) if weight <= 0 else arb(0).union(weight.upper())

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails of the inner pair at c, one side mixed."""
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
        """Return the c with {L > ε} = {l > c}; the weight of the inner divergence must be > 0."""
        q, eps = self.sampling_prob.ball(), epsilon.ball()
        if self.mixed_first:
            return (eps.expm1() / q).log1p()
        return eps - (-(1 - q) * eps.expm1() / q).log1p()

    def _inner_hockey_stick(self, epsilon: ExactReal) -> arb:
        if epsilon.sign == 0:
            return self.inner.hockey_stick(epsilon)
        return hockey_stick_at(self.inner, self._inner_epsilon(epsilon))

    def renyi(self, order: arb) -> arb:
        """Return a ball that contains D_a, or raise NotApplicableError.

        *Gaussian noise.* All orders a ≥ 1 are computed, in both directions.

        *Other noise, mixture first.* At an integer a ≥ 2, D_a follows from the divergences of the
        inner pair at integer orders:

            E_Q[(1 − q + q e^l)^a]
                = 1 + Σ_{k ≥ 2} C(a, k) (1 − q)^{a−k} q^k (e^{(k−1) D_k(P‖Q)} − 1).

        At any order, D_a is returned if the largest losses dominate the moment so much that the
        two bounds

            q^a E_Q[e^{al}] ≤ E_Q[(1 − q + q e^l)^a] ≤ (1 − q + q E_Q[e^{al}]^{1/a})^a

        (the second by Minkowski's inequality) agree to the current precision.

        *Other noise, mixture last.* If the inner pair is its own reverse, the ball reaches from 0
        to D_a of the mixture-first pair. With H the profile of the mixture-first and H' that of the
        mixture-last pair, the former has

            e^{(a−1) D_a} = 1 + a(a − 1) ∫ (e^{(a−1)ε} H(ε) + e^{−aε} H'(ε)) dε over ε > 0,

        and the latter the same with H and H' exchanged, which is no larger, because H' ≤ H
        (*The two directions of a sample*).
        """
        if order == 1:
            return self._mean_loss()
        if (extreme := self.renyi_of_large_losses(order)) is not None:
            return extreme
        whole = order.unique_fmpz() if order.is_exact() else None
        if not self.mixed_first or whole is None or not 2 <= whole <= _MOST_ORDER:
            if isinstance(self.inner, GaussianPair):
                return self._gaussian_renyi(order)
            if not self.mixed_first and self.inner == self.inner.reverse():
                return arb(0).union(self.reverse().renyi(order))
            raise NotApplicableError(
                "The Rényi divergence of a subsampled release is computed at all orders for "
                f"Gaussian noise; for other noise at integer orders from 2 to {_MOST_ORDER}, in "
                "direction REMOVE. Ask for one of these, or for delta, epsilon or the trade-off "
                "function, which are exact in both directions."
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
        """Return D_a = ln M(a − 1)/(a − 1), M(z) = E_P[e^{zL}], for every order a > 1 in a ball."""
        if not order.is_exact():
            both = [self._gaussian_renyi(order.lower()), self._gaussian_renyi(order.upper())]
            return both[0].union(both[1])  # Rényi divergences increase with the order
        if not order > 1:
            raise NotApplicableError(f"Expected an order above 1, not {order}.")
        moments = MixtureTransform(self.inner, self.sampling_prob, self.mixed_first)
        return moments.value(fraction(order) - 1).log() / (order - 1)

    def renyi_of_large_losses(self, order: arb) -> arb | None:
        """Return D_a, mixture first, if its two bounds (see `renyi`) agree, else None."""
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

    def _mean_loss(self) -> arb:
        """Return D_1 of Gaussian noise by integration; raise NotApplicableError for other noise."""
        if not isinstance(self.inner, GaussianPair):
            raise NotApplicableError(
                "The Kullback–Leibler divergence of a subsampled release, and rho with it, is "
                "known for Gaussian noise alone. Ask for delta, epsilon, the trade-off function or "
                "a Rényi divergence of integer order."
            )
        q = self.sampling_prob.ball()
        mixed, plain = [(1 - q, arb(0)), (q, self.inner.mu())], [(arb(1), arb(0))]
        sides = (mixed, plain) if self.mixed_first else (plain, mixed)
        return _mixture_kullback_leibler(*sides)

    def _rho(self) -> arb | None:
        """Return ρ of the inner pair if it is known and the mixture is first, else None.

        Sampling does not change ρ. From q^a E_Q[e^{al}] ≤ E_Q[(1 − q + q e^l)^a],

            D_a(inner)/a + ln q/(a − 1) ≤ D_a/a ≤ D_a(inner)/a,

        where the upper bound holds because Rényi divergences are jointly quasi-convex. Both bounds
        have the same limit as a → ∞.
        """
        return self.inner.known.rho() if self.mixed_first else None

    def max_loss(self) -> arb:
        """Return the loss L at the largest inner loss l."""
        return self._image(self.inner.max_loss())

    def _max_finite_loss(self) -> arb:
        """Return the largest finite loss; for an inner loss +∞, mixture last, L = −ln(1 − q)."""
        if self.mixed_first:
            return self._image(max_finite_loss(self.inner))
        return self.max_loss()

    def _image(self, loss: arb) -> arb:
        q = self.sampling_prob.ball()
        if not self.mixed_first:
            return -(q * (-loss).expm1() if loss.is_finite() else -q).log1p()
        if loss.is_finite():
            return (q * loss.expm1()).log1p()
        return loss if loss > 0 else (-q).log1p()

    def infinity_mass(self) -> arb:
        """Return P(L = +∞): q times that of the inner pair, mixture first.

        It is 0 with the mixture last, because P is absolutely continuous with respect to it.
        """
        if not self.mixed_first:
            return arb(0)
        return self.sampling_prob.ball() * self.inner.infinity_mass()

    def _exact_infinity_mass(self) -> ExactReal | None:
        """Return P(L = +∞) as an exact number if it is known, else None."""
        if not self.mixed_first:
            return ExactReal.of_rational(0)
        mass = exact_infinity_mass(self.inner)
        return None if mass is None else self.sampling_prob * mass

    def reverse(self) -> SubsampledPair:
        """Return the reversed pair: the inner pair reversed, with the other side mixed."""
        return SubsampledPair(self.inner.reverse(), self.sampling_prob, not self.mixed_first)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe {L > ε} as an event of the subsampled release."""
        with_record = "P" if self.mixed_first else "Q"
        return (
            f"the outcomes with ln(dP/dQ) > {epsilon}, {with_record} being the mixture; they are a "
            "half-line of the loss of the release that is subsampled"
        )


Family: TypeAlias = tuple[Pair, ...]


@final
@dataclass(frozen=True)
class EnvelopePair(Pair):
    """The pair whose profile is, at every ε, the largest of the profiles of a family of pairs."""

    family: Family
    listed: bool = False
    """Whether the laws of any two neighbours are dominated by a single pair of the family, rather
    than only by the maximum of the profiles."""

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return max H_i(ε)."""
        return most([pair.hockey_stick(epsilon) for pair in self.family])

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails of the pair with the largest H, or a hull over all candidates.

        As a function of e^ε, H has the right derivative −Q(L > ε). A pair and its reverse have the
        same H(0); there the envelope has the larger right derivative, that is, the smaller Q-tail.
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
        return functools.reduce(hull, tails)

    @property
    def known(self) -> Known:
        """Return the largest losses, the mass at infinity and the usual width of answers."""
        return Known(
            refusal="Releases whose neighbours are dominated only by the largest of several "
            "profiles have no known Rényi or Kullback–Leibler divergence. Ask for delta, epsilon "
            "or the trade-off function, which are enclosed.",
            to_width=lambda width: EnvelopePair(
                tuple(refined(pair, width) for pair in self.family), self.listed
            ),
            asked=next(filter(None, map(asked_width, self.family)), None),
            width=lambda: COMPOSED_WIDTH,
            max_loss=lambda: largest_known([pair.known.max_loss() for pair in self.family]),
            finite_loss=self._max_finite_loss,
            infinity_mass=lambda: largest_known(list(map(exact_infinity_mass, self.family))),
        )

    def renyi(self, order: arb) -> arb:
        """Return the largest D_a of the family; raise NotApplicableError unless `listed`."""
        if not self.listed:
            raise NotApplicableError(self.known.refusal)
        return most([pair.renyi(order) for pair in self.family])

    def max_loss(self) -> arb:
        """Return the largest loss of the family."""
        return most([pair.max_loss() for pair in self.family])

    def _max_finite_loss(self) -> arb:
        """Return a ball that contains the largest finite loss, beyond which H is constant.

        It is at least the largest finite loss of the pairs with the largest mass at infinity, and
        at most the largest finite loss of all pairs.
        """
        masses = [exact_infinity_mass(pair) for pair in self.family]
        losses = [max_finite_loss(pair) for pair in self.family]
        largest = largest_known(masses)
        if largest is None:
            return most(losses).union(least(losses))
        certain = [loss for loss, mass in zip(losses, masses, strict=True) if mass == largest]
        low, high = most(certain), most(losses)
        return low if len(certain) == len(losses) else low.union(high)

    def infinity_mass(self) -> arb:
        """Return the largest mass at infinity."""
        return most([pair.infinity_mass() for pair in self.family])

    def reverse(self) -> EnvelopePair:
        """Return the envelope of the reversed pairs, as H(ε) of (Q, P) is 1 − e^ε + e^ε H(−ε)."""
        return EnvelopePair(tuple(pair.reverse() for pair in self.family), self.listed)

    def law(self) -> dict[str, object]:
        """Return {"law": "envelope", "pairs"}, with the law of each pair as a JSON string."""
        return {"law": "envelope", "pairs": [json.dumps(pair.law()) for pair in self.family]}


def envelope(family: Family, *, listed: bool = False) -> Pair:
    """Return the envelope of a family of pairs, or the pair itself if there is only one."""
    return family[0] if len(family) == 1 else EnvelopePair(family, listed)


# --- Two mixtures of normal laws with one variance, all means of P at or above all means of Q

Mixture: TypeAlias = tuple[tuple[Fraction, ExactReal], ...]
"""(weight > 0, mean) of every component; the variance is 1 and the means are distinct."""

_GUARD = 32
"""Bits that the inversion of the loss may lose."""
_FARTHEST = 80  # doublings of an end of the bracket
_COMPARISON_BITS = 256
"""Precision in bits at which shifts are compared; differences of square roots are not exact numbers
here."""
_MOST_STEPS = 4000
"""Largest number of steps of the root search, enough to bisect a bracket to any usual precision."""


@final
@dataclass(frozen=True)
class GaussianMixturePair(Pair):
    """P = Σ w_i N(a_i, 1), Q = Σ v_j N(b_j, 1) with every a_i ≥ every b_j, P ≠ Q.

    L(x) = ln(p/q)(x) has the derivative E_P[a | x] − E_Q[b | x] > 0, where E is the mean over the
    components given x. So L increases, {L > ε} is a half-line (x, ∞), and

        H(ε) = Σ w_i Φ(a_i − x) − e^ε Σ v_j Φ(b_j − x),   L(x) = ε.

    As x → ∞ (or −∞), L tends to a finite limit if the largest (or least) means of P and Q are
    equal; otherwise it is unbounded.
    """

    p: Mixture
    q: Mixture

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε) for any real ε."""
        side = self._beyond(epsilon)
        if side > 0:
            return arb(0)
        if side < 0:
            return -epsilon.ball().expm1()
        tails = self.tails(epsilon)
        return tails.p_above - epsilon.ball().exp() * tails.q_above

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the probabilities on both sides of the root of L(x) = ε."""
        side = self._beyond(epsilon)
        if side:
            above, below = (arb(0), arb(1)) if side > 0 else (arb(1), arb(0))
            return Tails(above, below, above, below)
        x = self._root(epsilon)
        return Tails(
            p_above=_above(self.p, x),
            p_below=_below(self.p, x),
            q_above=_above(self.q, x),
            q_below=_below(self.q, x),
        )

    def _beyond(self, epsilon: ExactReal) -> int:
        """Return 1 if no loss exceeds ε, −1 if every loss does, 0 otherwise."""
        eps = epsilon.ball()
        if eps >= self.max_loss():
            return 1
        return -1 if eps <= -self.reverse().max_loss() else 0

    def loss(self, x: arb) -> arb:
        """Return L(x) = ln(dP/dQ)(x)."""
        return (_density(self.p, x) / _density(self.q, x)).log()

    def _root(self, epsilon: ExactReal) -> arb:
        """Enclose the x with L(x) = ε.

        Newton's method inside a bracket finds an estimate; opposite signs of L − ε on its two sides
        prove the enclosure.
        """
        with ctx.workprec(ctx.prec + _GUARD):
            eps = epsilon.ball()
            low, high = self._bracket(eps)
            x, radius = ((low + high) / 2).mid(), arb(2) ** (-ctx.prec + _GUARD)
            for _ in range(_MOST_STEPS):
                value = self.loss(x) - eps
                if value < 0:
                    low = x
                elif value > 0:
                    high = x
                else:
                    break
                step = (value / (_mean(self.p, x) - _mean(self.q, x))).mid()
                newton = (x - step).mid()
                inside = low < newton < high
                new = newton if inside else ((low + high) / 2).mid()
                moved, x = abs(new - x), new
                if moved <= radius * (1 + abs(x)):
                    break
            for _ in range(ctx.prec):
                reach = (radius * (1 + abs(x))).mid()
                left, right = (x - reach).mid(), (x + reach).mid()
                if self.loss(left) < eps and self.loss(right) > eps:
                    return left.union(right)
                radius *= 4
        raise UndecidedError(
            f"Whether the loss of a sampled release exceeds epsilon={epsilon} was not decided: "
            "they are too close. Give a slightly different epsilon."
        )

    def _bracket(self, eps: arb) -> tuple[arb, arb]:
        low, high = arb(-1), arb(1)
        for _ in range(_FARTHEST):
            if self.loss(low) < eps:
                break
            low *= 2
        for _ in range(_FARTHEST):
            if self.loss(high) > eps:
                return low, high
            high *= 2
        raise UndecidedError(
            "epsilon is too close to the limit that the loss of a sampled release approaches. Give "
            "a slightly different epsilon."
        )

    def renyi(self, order: arb) -> arb:
        """Return D_a by integration, or in closed form if the largest shift dominates it."""
        if order == 1:
            return _mixture_kullback_leibler(_in_balls(self.p), _in_balls(self.q))
        extreme = self._renyi_of_large_losses(order)
        if extreme is not None:
            return extreme
        return mixture_renyi(_in_balls(self.p), _in_balls(self.q), order)

    def _renyi_of_large_losses(self, order: arb) -> arb | None:
        """Return D_a if Q is a single normal law and two bounds of D_a agree, else None.

        Let r_i be the density of N(a_i, 1) relative to Q, and m the index of the largest mean. Then
        w_m^a E_Q[r_m^a] ≤ E_Q[(Σ w_i r_i)^a] ≤ (Σ w_i E_Q[r_i^a]^{1/a})^a, the second by
        Minkowski's inequality, and E_Q[r_i^a] = e^{a(a − 1)(a_i − b)²/2}.
        """
        if len(self.q) > 1 or not order > 1:
            return None
        (_, b), (weight, farthest) = self.q[0], _largest(self.p)
        largest = (farthest.ball() - b.ball()) ** 2 / 2
        least = order * (ball(weight).log() + (order - 1) * largest)
        rest = arb(0)
        for w, mean in self.p:
            if mean != farthest:
                less = (order - 1) * ((mean.ball() - b.ball()) ** 2 / 2 - largest)
                rest += ball(w / weight) * less.exp()
        excess = order * rest.log1p()
        if not excess < least * arb(2) ** (-ctx.prec):
            return None
        return (least + arb(0).union(excess.upper())) / (order - 1)

    def largest_shift(self) -> arb:
        """Return the largest a_i − b_j."""
        return _largest(self.p)[1].ball() + _largest(_reflected(self.q))[1].ball()

    @property
    def known(self) -> Known:
        """Return ρ, if it is known, and an upper bound of it."""
        return Known(rho=self._rho, rho_bound=self._rho_bound)

    def _rho(self) -> arb | None:
        """Return ρ = (m − n)²/2 if no coupled components are farther apart than m and n, else None.

        m and n are the largest means of P and Q, with weights w and v. P ≥ w N(m, 1), and far to
        the right, where for large a the mass of P^a Q^{1 − a} lies, Q = v N(n, 1)(1 + o(1)). So
        D_a/a tends to (m − n)²/2, which is its upper bound by `_rho_bound`.
        """
        with ctx.workprec(_COMPARISON_BITS):
            *others, limit = self._coupled()
            if any(shift > limit for shift in others):
                return None
        return (self._coupled()[-1] ** 2 / 2).union(rho_bound(self))

    def _rho_bound(self) -> arb:
        """Return an upper bound of ρ: half the square of the largest shift in the coupling.

        For any coupling of the components, P and Q are mixtures with the weights of the coupling of
        laws N(a_i, 1) and N(b_j, 1). Rényi divergences are jointly quasi-convex, so D_a/a is at
        most half the square of the largest coupled shift, which the monotone coupling minimises.
        """
        return functools.reduce(arb.max, self._coupled()) ** 2 / 2

    def _coupled(self) -> list[arb]:
        """Return a_i − b_j for the pairs of components in the monotone coupling, left to right."""
        left, right = (sorted(m, key=lambda part: part[1]) for m in (self.p, self.q))
        (of_p, a), (of_q, b) = left.pop(0), right.pop(0)
        found = [a.ball() - b.ball()]
        while left or right:
            less = min(of_p, of_q)
            of_p, of_q = of_p - less, of_q - less
            if not of_p:
                of_p, a = left.pop(0)
            if not of_q:
                of_q, b = right.pop(0)
            found.append(a.ball() - b.ball())
        return found

    def max_loss(self) -> arb:
        """Return lim L(x) as x → ∞, which is finite if the largest means are equal."""
        (w, a), (v, b) = _largest(self.p), _largest(self.q)
        return (ball(w) / ball(v)).log() if a == b else arb.pos_inf()

    def reverse(self) -> GaussianMixturePair:
        """Return (Q, P), reflected at 0."""
        return GaussianMixturePair(_reflected(self.q), _reflected(self.p))

    def law(self) -> dict[str, object]:
        """Return {"law": "gaussian-mixture", "p", "q"}, JSON strings of [weight, mean] lists."""

        def text(mixture: Mixture) -> str:
            return json.dumps([[str(weight), str(mean)] for weight, mean in mixture])

        return {"law": "gaussian-mixture", "p": text(self.p), "q": text(self.q)}


def _in_balls(mixture: Mixture) -> list[tuple[arb, arb]]:
    return [(ball(weight), mean.ball()) for weight, mean in mixture]


def _densities(mixture: Mixture, x: arb) -> list[tuple[arb, arb]]:
    """Return (weighted density at x relative to N(0, 1), mean) of every component."""
    return [(w * (m * (x - m / 2)).exp(), m) for w, m in _in_balls(mixture)]


def _density(mixture: Mixture, x: arb) -> arb:
    """Return the density at x relative to N(0, 1)."""
    return sum((each for each, _ in _densities(mixture, x)), start=arb(0))


def _mean(mixture: Mixture, x: arb) -> arb:
    """Return the conditional mean of the component's mean given x."""
    parts = _densities(mixture, x)
    return sum((n * m for n, m in parts), start=arb(0)) / sum((n for n, _ in parts), start=arb(0))


def _above(mixture: Mixture, x: arb) -> arb:
    return sum((ball(w) * normal_cdf(m.ball() - x) for w, m in mixture), start=arb(0))


def _below(mixture: Mixture, x: arb) -> arb:
    return sum((ball(w) * normal_cdf(x - m.ball()) for w, m in mixture), start=arb(0))


def _largest(mixture: Mixture) -> tuple[Fraction, ExactReal]:
    return max(mixture, key=lambda part: part[1])


def _reflected(mixture: Mixture) -> Mixture:
    return tuple((weight, -mean) for weight, mean in mixture)


def mixture(weights: Sequence[Fraction], means: Sequence[ExactReal]) -> Mixture:
    """Return the components with positive weight by increasing mean, equal means merged."""
    found: dict[ExactReal, Fraction] = {}
    for weight, mean in zip(weights, means, strict=True):
        if weight:
            found[mean] = found.get(mean, Fraction(0)) + weight
    return tuple((found[mean], mean) for mean in sorted(found))


# --- Rényi and Kullback–Leibler divergences of two normal mixtures, by integration ----------------
# With w = dP/dQ and an order a > 1, D_a = ln E_Q[w^a]/(a − 1) and D_1 = E_Q[w ln w].
#
# The integrals are computed in balls over a finite interval; the tails are bounded. Let M be the
# largest a_i and (v, m) the weight and mean of the rightmost component of Q. To the right of all
# means p ≤ φ(x − M) and q ≥ vφ(x − m), so with c = aM − (a − 1)m
#
#     p^a q^{1−a} ≤ v^{1−a} e^{a(a−1)(M−m)²/2} φ(x − c),
#
# and likewise on the left with the least means. For a = 1: −q ≤ p ln(p/q) ≤ p²/q.

Components: TypeAlias = Sequence[tuple[arb, arb]]
"""(weight > 0, mean) of every component."""
_EXTRA_BITS = 16
"""Bits beyond the precision that determine where the interval of integration ends."""


def mixture_renyi(p: Components, q: Components, order: arb) -> arb:
    """Return D_a of two mixtures of normal laws, for an order a > 1."""
    less = order - 1

    def curve(log_p: acb, log_q: acb) -> acb:
        return (order * log_p - less * log_q).exp()

    moment = _over_normals(p, q, curve, order) + arb(0).union(_rest(p, q, order))
    return moment.log() / less


def _mixture_kullback_leibler(p: Components, q: Components) -> arb:
    """Return D_1 of two mixtures of normal laws."""

    def curve(log_p: acb, log_q: acb) -> acb:
        return log_p.exp() * (log_p - log_q)

    two = arb(2)
    return _over_normals(p, q, curve, two) + (-_outside(p, q, two)).union(_rest(p, q, two))


def _over_normals(
    p: Components, q: Components, curve: Callable[[acb, acb], acb], order: arb
) -> arb:
    """Return ∫ φ(x)·curve(ln(p/φ), ln(q/φ)) dx over the interval that suits an order."""

    def density(parts: Components, x: acb, analytic: bool) -> acb:
        total = acb(0)
        for weight, mean in parts:
            total += weight * (mean * x - mean * mean / 2).exp()
        return total.log(analytic=analytic)

    def integrand(x: acb, analytic: bool) -> acb:
        bell = (-x * x / 2).exp() / (2 * arb.pi()).sqrt()
        return bell * curve(density(p, x, analytic), density(q, x, analytic))

    left, right = _range(p, q, order)
    return integral(integrand, left, right).real


def _range(p: Components, q: Components, order: arb) -> tuple[arb, arb]:
    """Return exact ends of the interval of integration; the tails beyond are negligible."""
    away = arb(math.sqrt(2 * math.log(2) * (ctx.prec + _EXTRA_BITS)) + 1)
    found = []
    for side in (-1, 1):
        means = [_outermost(parts, side)[1] for parts in (p, q)]
        centre = order * means[0] - (order - 1) * means[1]
        farthest = max(float((side * mean).upper()) for mean in (*means, centre))
        found.append(arb(math.ceil(side * farthest)) + side * away)
    return found[0], found[1]


def _outermost(parts: Components, side: int) -> tuple[arb, arb]:
    return max(parts, key=lambda part: float(side * part[1].mid()))


def _rest(p: Components, q: Components, order: arb) -> arb:
    """Return an upper bound of ∫ p^a q^{1−a} outside the interval of integration."""
    total = arb(0)
    for side, end in zip((-1, 1), _range(p, q, order), strict=True):
        (_, most), (weight, mean) = _outermost(p, side), _outermost(q, side)
        centre = order * most - (order - 1) * mean
        growth = order * (order - 1) * (most - mean) ** 2 / 2 - (order - 1) * weight.log()
        total += growth.exp() * normal_cdf(-side * (end - centre))
    return total.upper()


def _outside(p: Components, q: Components, order: arb) -> arb:
    """Return an upper bound of the mass of Q outside the interval of integration."""
    total = arb(0)
    for side, end in zip((-1, 1), _range(p, q, order), strict=True):
        total += normal_cdf(-side * (end - _outermost(q, side)[1]))
    return total.upper()
