"""The least μ for which a pair of laws is μ-GDP: in closed form, by a search, or between two ends.

A pair is μ-GDP if its profile is nowhere above that of N(μ, 1) against N(0, 1),

    δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ),

at any ε ≥ 0, nor that of its reverse. With Φ̄(t) = 1 − Φ(t), a test of level α and power 1 − β
needs μ = t(α) − t(1 − β), where Φ̄(t(α)) = α, and the least μ is the supremum over all tests.

**Closed forms.** Of Gaussian releases, sampled or mixed in any way, small levels alone decide it
(`limiting_mu`). That of discrete Gaussian noise is what the half-line in the middle needs
(`_discrete`).

**The search** looks for the ε at which δ needs most, up to the largest loss, and proves that
nothing else needs more: δ and δ_μ are convex in z = e^ε, so that on a piece δ lies below its chord
and δ_μ above a tangent.

**Two ends** are known of other unbounded losses, and where only bounds of δ are. *Above*: the μ of
a pair that dominates is enough, and those of several releases add up in squares, also of adaptive
ones (Dong, Roth and Su 2022, Corollary 3.3). A loss in [−t, t] is t-DP: its trade-off function is
above the lines through (0, 1), (c, c) and (1, 0), c = 1/(1 + e^t), and the convex one of N(μ, 1) is
below them where it passes (c, c), for Φ(−μ/2) = c. *Below*: a μ at which δ_μ(ε) is less than a
lower bound of δ(ε) is too small, and so is one with μ² < 2 D_a/a for some order a.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import operator
from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from dpassay.accountant.composition.exact.laplace_product import is_laplace
from dpassay.accountant.composition.product import Product, exact_sum
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, only_bounded
from dpassay.accountant.core.validate import rational
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.mechanisms.selection.candidates import ChoicePair
from dpassay.accountant.numbers.exact import ExactReal, Number
from dpassay.accountant.numbers.interval import Interval, ball, enclose, nonnegative
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import fraction, halved
from dpassay.accountant.numbers.theta import upper_tail
from dpassay.accountant.pairs.allocation import RandomAllocationPair
from dpassay.accountant.pairs.between import Between
from dpassay.accountant.pairs.discrete import DiscreteGaussianPair, log_spread
from dpassay.accountant.pairs.gaussian import GaussianPair, normal_cdf
from dpassay.accountant.pairs.invert import hockey_stick, most, to_width
from dpassay.accountant.pairs.subsampled import GaussianMixturePair, Mixture, SubsampledPair
from dpassay.accountant.questions import guarantees
from dpassay.accountant.questions.profile import worst_pairs

_PRECISION = 128
"""Bits of a μ and of the profiles that are compared: it is answered to fewer."""
_DIGITS = 30
"""Digits of its ends."""
MU_WIDTH = Fraction(1, 10**6)
"""Relative width of a μ for which none is named."""
_FINER = 1000
"""How much finer than the μ a δ is asked for."""
_SAMPLES = 16
"""Places of ε at which a first lower bound is looked for."""
_MAX_PIECES = 2000
"""Pieces of a range that are bounded until a refusal."""
_CERTAIN = 64
"""Bits of the μ that a test is proved to need."""
_BISECTIONS, _NEWTON_STEPS = 36, 3
"""Steps to the μ that a test needs: bisection leaves 8 digits of ln μ, the others 50 and more."""
_FEW = 32
"""Laplace releases that are searched as one: half a second; a thousand take minutes."""
_LONG = 50
"""Loss from which on Φ(−x) ≤ e^{−x²/2}/2 is near enough."""
_NEAREST = Fraction(1, 10)
"""The largest logarithm of a factor of probabilities that is allowed for in sums."""


def mu(
    mechanism: Mechanism,
    *,
    adjacency: Adjacency | str | None = None,
    relative_width: Number | None = None,
) -> Interval:
    """Enclose the least μ for which the mechanism is μ-GDP.

    Without `relative_width` as narrow as is found quickly; with it, to that width or not at all.
    """
    try:
        return guarantees.mu(mechanism, adjacency=adjacency, relative_width=relative_width)
    except NotApplicableError:
        pairs = worst_pairs(mechanism, adjacency, None)
    if most([pair.infinity_mass() for pair in pairs]) > 0:
        return Interval.of_ball(arb.pos_inf())
    if relative_width is None:
        return bounds(pairs, MU_WIDTH)
    return least_mu(pairs, rational("relative_width", relative_width))


def least_mu(pairs: Sequence[Pair], width: Fraction) -> Interval:
    """Enclose the least μ for which no profile of the pairs is above δ_μ, to a relative width.

    Raises
    ------
    NotApplicableError
        If no μ is enough, as D_a/a is unbounded; or if none is known to be.
    UndecidedError
        If the width is not reached, with what is known.
    """
    found = bounds(pairs, width)
    reached = found.relative_width or 0
    if reached > width:
        ends = f"Reached the least mu in [{found.lower:.12g}, {found.upper:.12g}]"
        if any(only_bounded(pair) for pair in pairs):
            ends += ": only bounds of the profile are known. Ask for delta or epsilon."
        else:
            ends += f", of relative width {float(reached):.0e}, for {float(width):.1e}. Ask for a "
            ends += "larger relative_width."
        raise UndecidedError(ends, reached=float(reached), interval=found)
    return found


def bounds(pairs: Sequence[Pair], width: Fraction) -> Interval:
    """Enclose it as far as that is possible; raise NotApplicableError as `least_mu` does."""
    if limiting_mu(pairs) is not None:
        return enclose(lambda: limiting_mu(pairs) or arb(0))  # 0 is false
    largest = most([pair.max_loss() for pair in pairs])
    if largest == 0:  # the laws are one
        return Interval.of_exact(0)
    with ctx.workprec(_PRECISION):
        if largest.is_finite() and not any(only_bounded(pair) for pair in pairs):
            return Interval.of_ball(_of_bounded_losses(pairs, width), _DIGITS)
        distinct: list[Pair] = []
        for pair in pairs:
            if pair.reverse() not in distinct:
                distinct.append(pair)
        asked = to_width(distinct, width / _FINER)
        return Interval.of_ball(most([_of_pair(pair, width) for pair in asked]), _DIGITS)


def exact_mu(pairs: Sequence[Pair]) -> ExactReal | None:
    """Return what `limiting_mu` does where it is known as an exact number, else None."""
    numbers = [mu for mu in map(_limit, pairs) if isinstance(mu, ExactReal)]
    return max(numbers) if len(numbers) == len(pairs) else None


def limiting_mu(pairs: Sequence[Pair]) -> arb | None:
    """Return the least μ of worst pairs, where small levels alone decide it; else None.

    It is that of Gaussian releases, subsampled or mixed in any way. Let them have the shifts μ_i
    and sampling rates q_i > 0, μ² = Σ μ_i². A test of level α has a power of at least
    Π q_i Φ(μ − t(α)), which as α falls is more than that of any smaller μ; and μ is enough, for
    hockey-stick divergences are jointly convex. An epoch of random allocation to t steps is one
    with q = 1/t: a test may look at its first step alone.
    """
    found = [mu for mu in map(_limit, pairs) if mu is not None]
    return most([_ball(mu) for mu in found]) if len(found) == len(pairs) else None


def _limit(pair: Pair) -> ExactReal | arb | None:
    """Return the μ of Gaussian releases as if none was subsampled; None for other pairs.

    Of a mixture of normal laws against a single one it is that of the largest shift.
    """
    match pair:
        case GaussianPair():
            return pair.mechanism.exact_gaussian_mu(pair.adjacency) or pair.mu()
        case RandomAllocationPair():
            return pair.mu
        case GaussianMixturePair() if min(len(pair.p), len(pair.q)) == 1:
            least = min(mean for _, mean in pair.q)
            return exact_sum([_farthest(pair.p)[1], -least]) or pair.largest_shift()
        case SubsampledPair():
            return _limit(pair.inner)
        case Product():
            parts = [(_limit(part), count) for part, count in pair.factors]
            known = [(mu, count) for mu, count in parts if mu is not None]
            if len(known) < len(parts):
                return None
            exact = [mu.squared.times(n) for mu, n in known if isinstance(mu, ExactReal)]
            if pair.is_product and len(exact) == len(known):
                return functools.reduce(operator.add, exact).root()
            return sum((count * _ball(mu) ** 2 for mu, count in known), start=arb(0)).sqrt()
    return None


def _ball(mu: ExactReal | arb) -> arb:
    return mu.ball() if isinstance(mu, ExactReal) else mu


def floor(pair: Pair) -> arb:
    """Return a number that the least μ is at least: what tests of small levels need, at both ends.

    What is μ-GDP has D_a ≤ aμ²/2 at every order, and so has its reverse: μ² is at least twice the
    limit of D_a/a at large orders, which adds up over products; +∞ where that is. Of mixtures of
    N(a_i, 1) and N(b_j, 1) it is that of their largest means a and b, or more: with w the weight
    of the former, ∫ P^a Q^{1−a} ≥ w^a ∫ N(a, 1)^a N(b, 1)^{1−a} over x > b, half of the whole
    integral or more.
    """
    return _at_one_end(pair).max(_at_one_end(pair.reverse()))


def _at_one_end(pair: Pair) -> arb:
    if isinstance(pair, GaussianMixturePair):
        return _farthest(pair.p)[1].ball() - _farthest(pair.q)[1].ball()
    if isinstance(pair, Product):
        squares = (count * _at_one_end(part) ** 2 for part, count in pair.factors)
        return sum(squares, start=arb(0)).sqrt()
    rho = pair.known.rho()
    return arb(0) if rho is None else (2 * rho).sqrt()


def _farthest(mixture: Mixture) -> tuple[Fraction, ExactReal]:
    """Return the weight and the mean of the component that is farthest out."""
    return max(mixture, key=lambda part: part[1])


def _of_pair(pair: Pair, width: Fraction) -> arb:
    own = limiting_mu([pair])
    if own is not None:
        return own
    if only_bounded(pair):
        return _between(pair, width)
    if isinstance(pair, GaussianMixturePair):
        # hockey-stick divergences are jointly convex: the largest shift is enough
        return floor(pair).union(pair.largest_shift())
    if isinstance(pair, DiscreteGaussianPair):
        return _of_coordinates(pair, width)
    both = [pair, pair.reverse()]
    if most([side.max_loss() for side in both]).is_finite():
        return _of_bounded_losses(both, width)
    if floor(pair) == arb.pos_inf():
        raise NotApplicableError(
            "No mu is enough: mu-GDP mechanisms have Rényi divergences D_a of at most a*mu^2/2, "
            "and no multiple of a bounds those of this one. Ask for delta or epsilon."
        )
    if isinstance(pair, SubsampledPair):  # at most that of the release: profiles are jointly convex
        return floor(pair).union(_of_pair(pair.inner, width))
    if isinstance(pair, Product) and pair.is_product:
        return _of_product(pair, width)
    raise NotApplicableError(
        "The privacy loss is unbounded, and no mu is known to be enough. Ask for delta or epsilon."
    )


def _of_bounded_losses(pairs: Sequence[Pair], width: Fraction) -> arb:
    """Search up to the largest loss."""
    sides = list(dict.fromkeys(pairs))  # a symmetric one is asked once
    largest = most([side.max_loss() for side in sides])
    end = Fraction(Interval.of_ball(largest, _DIGITS).upper)
    search = _Search(sides, arb(0))
    enough, finer = _of_loss(largest), width / 8  # quick, and digits are read
    return search.up_to(end, enough, finer)


def _of_product(pair: Product, width: Fraction) -> arb:
    """Enclose that of a composition: it is at least every μ_i, and at most √Σ μ_i²."""
    (part, count), *others = pair.factors
    if not others and isinstance(part, DiscreteGaussianPair) and part.is_one:
        alike = _discrete_sum(part.parameter, part.shift, count, width)
        if alike is not None:
            return alike
    limit = floor(pair)
    parts = [(part, _of_pair(part, width / 8), count) for part, count in pair.factors]
    together = sum((count * mu**2 for _, mu, count in parts), start=arb(0)).sqrt()
    return most([limit, *(mu for _, mu, _ in parts)]).union(together)


def _of_coordinates(pair: DiscreteGaussianPair, width: Fraction) -> arb:
    """Return that of discrete Gaussian noise; of several coordinates also as √Σ μ_i² bounds it."""
    each = _discrete(pair.parameter, pair.shift)
    if pair.is_one:
        return each
    if not pair.last_shift:
        found = _discrete_sum(pair.parameter, pair.shift, pair.count, width)
        if found is not None:
            return found
    squares = pair.count * each**2
    if pair.last_shift:
        squares += _discrete(pair.last_parameter, pair.last_shift) ** 2
    return floor(pair).union(squares.sqrt())


def _between(pair: Pair, width: Fraction) -> arb:
    """Return a ball around two ends, for a pair of which only bounds of the profile are known."""
    high = _enough(pair, width)
    if not high.is_finite():
        raise NotApplicableError("No mu is known to be enough. Ask for delta or epsilon.")
    low = arb(0)
    with contextlib.suppress(NotApplicableError):  # where no divergence is known
        rare = floor(pair).lower()
        low = low if rare.is_nan() else low.max(rare)  # the root of a ball around 0
    search = _Search([pair, pair.reverse()], low)
    loss = _largest_loss(pair)
    end = Fraction(float(loss)) if loss.is_finite() else Fraction(4)
    for i in range(4):  # each value of such a profile takes long
        search.attempt(end * i / 4)
    return nonnegative(search.best.union(high))


def _largest_loss(pair: Pair) -> arb:
    """Return an upper end of it, in both directions."""
    return most([pair.max_loss(), pair.reverse().max_loss()]).upper()


def _enough(pair: Pair, width: Fraction) -> arb:
    """Return a μ that is enough, +∞ where none is known."""
    enough = _of_loss(_largest_loss(pair))
    if isinstance(pair, Between):
        return enough.min(_enough(pair.most, width))
    if isinstance(pair, ChoicePair) and isinstance(pair.noise, GaussianPair):
        return pair.noise.mu().upper()
    if isinstance(pair, Product) and pair.is_product:
        if not (is_laplace(pair) and sum(count for _, count in pair.factors) <= _FEW):
            squares = (count * _enough(part, width) ** 2 for part, count in pair.factors)
            return enough.min(sum(squares, start=arb(0)).sqrt())
    elif only_bounded(pair):
        return enough
    return enough.min(bounds([pair, pair.reverse()], width).ball().upper())


def _of_loss(largest: arb) -> arb:
    """Return the least μ of all that is t-DP: 2Φ⁻¹(e^t/(1 + e^t)), or little more; ∞ for ∞."""
    if not largest.is_finite():
        return arb.pos_inf()
    if largest < _LONG:
        return (arb(8).sqrt() * (largest / 2).tanh().erfinv()).upper()
    return (arb(8) * ((1 + largest.exp()) / 2).log()).sqrt().upper()


class _Search:
    """The largest μ that a test was seen to need, and proofs that no other one needs more."""

    def __init__(self, pairs: Sequence[Pair], best: arb) -> None:
        """Begin with a number that the least μ is known to be at least."""
        self._pairs = list(dict.fromkeys(pairs))
        self._known: dict[Fraction, arb] = {}
        self.best = best

    def up_to(self, end: Fraction, enough: arb, width: Fraction) -> arb:
        """Return the least μ of all ε up to an end, to a relative width.

        Where that takes too long, a ball from the largest that was met up to `enough`.
        """
        for i in range(_SAMPLES + 1):
            self.attempt(end * i / _SAMPLES)
        stretch = 1 + ball(width) / 2
        with contextlib.suppress(UndecidedError):
            while not self._proved(self.best * stretch, end):
                pass
            return self.best.union(self.best * stretch)
        return self.best.union(enough)

    def _value(self, at: Fraction) -> arb:
        if at not in self._known:
            self._known[at] = hockey_stick(self._pairs, ExactReal.of_rational(at))
        return self._known[at]

    def attempt(self, at: Fraction) -> bool:
        """Whether δ(ε) is proved to need a larger μ than all before; then that is the best one."""
        own = self._value(at).lower()
        if not own > 0 or (self.best > 0 and not own > tangent(self.best.mid(), ball(at))[0]):
            return False
        more = ball(needed(own, at)) * (1 - arb(2) ** -_CERTAIN)
        if not (more > self.best and tangent(more, ball(at))[0] < own):
            return False
        self.best = more
        return True

    def _proved(self, goal: arb, stop: Fraction) -> bool:
        """Prove δ ≤ δ_goal for 0 ≤ ε ≤ stop; False: a test needs more.

        Raises UndecidedError after too many pieces.
        """
        marks = [stop * i / _SAMPLES for i in range(_SAMPLES + 1)]
        pieces = list(itertools.pairwise(marks))
        for _ in range(_MAX_PIECES):
            if not pieces:
                return True
            left, right = pieces.pop()
            middle = (left + right) / 2
            point, slope = tangent(goal, ball(middle))
            z = ball(middle).exp()
            if all(
                self._value(end) <= point + slope * (ball(end).exp() - z) for end in (left, right)
            ):
                continue
            if not self._value(middle) <= point and self.attempt(middle):
                return False
            pieces += [(left, middle), (middle, right)]
        raise UndecidedError(f"A profile was not bounded within {_MAX_PIECES} pieces.")


def tangent(mu: arb, epsilon: arb) -> tuple[arb, arb]:
    """Return δ_μ(ε) and its derivative by e^ε."""
    half, cut = mu / 2, epsilon / mu
    slope = -normal_cdf(-half - cut)
    return normal_cdf(half - cut) + epsilon.exp() * slope, slope


def needed(delta: arb, epsilon: Fraction) -> Fraction:
    """Return a rational near the μ with δ_μ(ε) = δ, by bisection and Newton's method.

    The derivative of δ_μ(ε) by μ is the normal density at μ/2 − ε/μ.
    """
    target, at = delta.mid(), ball(epsilon)

    def is_less(log: float) -> bool:
        return bool(tangent(arb(math.exp(log)), at)[0].mid() < target)

    mu = arb(math.exp(halved(is_less, -700.0, 700.0, _BISECTIONS)[0]))
    for _ in range(_NEWTON_STEPS):
        rise = (-((mu / 2 - at / mu) ** 2) / 2).exp() / (2 * arb.pi()).sqrt()
        step = ((target - tangent(mu, at)[0]) / rise).mid()
        if not abs(step) < mu / 2:
            break
        mu = (mu + step).mid()
    return fraction(mu)


def score(tail: arb) -> arb:
    """Return t with Φ̄(t) = tail, for a tail inside (0, 1); NaN for a ball that leaves it."""
    low, high = (_at(arb(end)) for end in (tail.upper(), tail.lower()))
    return low.union(high)


def _at(tail: arb) -> arb:
    return arb(2).sqrt() * (2 * tail).erfcinv()


def _discrete(parameter: ExactReal, shift: int) -> arb:
    """Return that of discrete Gaussian noise with a parameter v, moved by s = `shift`.

    Z has the masses p(z) ∝ e^{−z²/2v}, and T(k) = P(Z ≥ k) = Φ̄(t(k)). Moved by s, the test {Z ≥
    k} needs μ_k = t(k) − t(k − s). No other test needs more than all of these: between them the
    power is piecewise linear in the level, and Φ(μ − z_α) is concave. μ_k is the sum of d(j) =
    t(j + 1) − t(j) over k − s ≤ j < k. As t(1 − k) = −t(k), d(−j) = d(j). *The d(j) fall from j =
    0 on*, so that the sum is largest in the middle, at k = ⌊s/2⌋ + 1.

    *Proof.* Let k ≥ 1 be the least one with d(k) > d(k − 1) =: b. Let ℓ be the straight line
    through t(k − 1) and t(k), and q(j) = Φ̄(ℓ(j)) − Φ̄(ℓ(j + 1)), for real j. T and Φ̄(ℓ) agree
    at k − 1 and k, and T is less at k + 1. So r = ln q/p is 0 at k − 1, r < 0 at k, r > 0 at some
    j > k; and p and q have the same sum over j < k − 1. With V the variance of u under e^{−ℓ(j)u
    − u²/2} on [0, b],

        q = ∫ φ(ℓ(j) + u) du over [0, b],   r″ = 1/v − b²(1 − V).

    V falls on both sides of the place where ℓ(j) = −b/2, to 0 (below). If r″ > 0 everywhere, r is
    convex, and so positive on all j < k − 1: the sums differ. Else r tends to −∞ on both sides,
    and r″ changes its sign at most twice, so that r has at most four zeros. r < 0 far to the
    left, and as the sums are equal, r > 0 at some j < k − 1. With the zero at k − 1, r(k) < 0, r
    > 0 beyond and r < 0 far out these are four; so none lies between that j and k − 1, and r(k −
    2) > 0. Then Φ̄(ℓ) > T at k − 2, t(k − 2) > ℓ(k − 2), and d(k − 2) < b = d(k − 1). For k ≥ 2
    that is so for no k less than the least; for k = 1 d(−1) = d(1) > b.

    *V.* About the middle, w = u − b/2 has the density e^{−mw − w²/2} on [−b/2, b/2], and dV/dm =
    −κ₃. Let S = w + w′ and D = w − w′ for two of these, so that 2κ₃ = Cov(D², S). Given S, D has
    the density e^{−D²/4} on |D| ≤ b − |S|, so that E D² falls as |S| grows; given |S|, S has the
    mean −|S| tanh(m|S|), which falls too, for m > 0. So κ₃ ≥ 0 (Chebyshev), and V falls as m
    grows from 0.
    """
    first = shift // 2 + 1
    # scores in the middle of much noise are about 1/√v
    with ctx.workprec(ctx.prec + math.floor(parameter).bit_length()):
        found = score(upper_tail(parameter, first)) + score(
            upper_tail(parameter, shift + 1 - first)
        )
    return +found


def _discrete_sum(parameter: ExactReal, shift: int, count: int, width: Fraction) -> arb | None:
    """Enclose that of a sum of such variables, each moved, to a width; None where v is small.

    The law of a sum of n is that of one with the parameter nv but for factors in e^{±κ}
    (`dpassay.accountant.pairs.discrete`). On both tails these move a score by at
    most κ/λ(−κ) ≤ 3κ/2 where κ ≤ 1/10, λ = φ/Φ̄, so that μ changes by at most 3κ.
    """
    spread = log_spread(parameter, count)
    if not spread <= ball(_NEAREST):
        return None
    found = _discrete(ExactReal.of_rational(count) * parameter, count * shift)
    if not 3 * spread <= found * ball(width) / 8:
        return None
    return found + arb(0, (3 * spread).upper())
