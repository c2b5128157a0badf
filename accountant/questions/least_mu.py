"""The least μ for which a pair of laws is μ-GDP: in closed form, by a search, or between bounds.

A pair is μ-GDP if at every ε ≥ 0 its profile and the profile of its reverse are at most that of
N(μ, 1) and N(0, 1),

    δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ).

Let Φ̄(t) = 1 − Φ(t), and t(α) the number with Φ̄(t(α)) = α. A test of level α and power 1 − β
requires μ ≥ t(α) − t(1 − β), and the least μ is the supremum over all tests.

**Closed forms.** For Gaussian releases, sampled or mixed in any way, the least μ is a limit at
small levels (`limiting_mu`). For discrete Gaussian noise it is the μ that the half-line in the
middle requires (`_discrete`).

**The search**, for bounded losses, finds the ε in [0, largest loss] at which δ(ε) requires the
largest μ, and proves that no other ε requires more. δ and δ_μ are convex in z = e^ε, so on an
interval of z δ lies below its chord and δ_μ above any tangent.

**Two bounds** are computed for other unbounded losses, and if only bounds of δ are known. *Upper
bound*: the μ of a dominating pair suffices; for several releases, also adaptive ones, the root of
the sum of the μ² does (Dong, Roth and Su 2022, Corollary 3.3). A pair with losses in [−t, t] is
t-DP: its trade-off function is above the line segments through (0, 1), (c, c) and (1, 0),
c = 1/(1 + e^t). The trade-off function of N(μ, 1) is convex, so it is below them if it passes
through (c, c), that is, Φ(−μ/2) = c. *Lower bound*: μ is too small if δ_μ(ε) is less than a lower
bound of δ(ε) for some ε, or if μ² < 2 D_a/a for some order a.
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
"""Precision in bits of μ and of the profiles compared; answers have fewer."""
_DIGITS = 30
"""Number of digits of the ends of an answer."""
MU_WIDTH = Fraction(1, 10**6)
"""Default relative width of μ."""
_FINER = 1000
"""Factor by which the relative width of δ is finer than that of μ."""
_SAMPLES = 16
"""Number of intervals of ε at whose ends a first lower bound is computed."""
_MAX_PIECES = 2000
"""Largest number of intervals of ε in one attempt at a proof."""
_CERTAIN = 64
"""Accuracy in bits of the μ that a test provably requires."""
_BISECTIONS, _NEWTON_STEPS = 36, 3
"""Steps of the root search for μ: bisection gives 8 digits of ln μ, Newton steps more than 50."""
_FEW = 32
"""Largest number of Laplace releases searched as one pair, which takes half a second; a thousand
take minutes."""
_LONG = 50
"""Loss above which the bound Φ(−x) ≤ e^{−x²/2}/2 is accurate enough."""
_NEAREST = Fraction(1, 10)
"""Largest κ (see `log_spread`) for which the error bound of `_discrete_sum` holds."""


def mu(
    mechanism: Mechanism,
    *,
    adjacency: Adjacency | str | None = None,
    relative_width: Number | None = None,
) -> Interval:
    """Enclose the least μ for which the mechanism is μ-GDP.

    It is +∞ if the loss is infinite with positive probability. Without `relative_width` the
    enclosure is as narrow as is found quickly.

    Raises
    ------
    NotApplicableError
        If no finite μ suffices, or none is known to.
    UndecidedError
        If `relative_width` is given and not reached; the error carries the best enclosure.
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
    """Enclose the least μ such that all profiles of the pairs are at most δ_μ, to a relative width.

    Raises
    ------
    NotApplicableError
        If no finite μ suffices, because D_a/a is unbounded, or if none is known to suffice.
    UndecidedError
        If the width is not reached; the error carries the best enclosure.
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
    """Return the best enclosure of the least μ; the width need not be reached.

    Raises NotApplicableError in the same cases as `least_mu`.
    """
    if limiting_mu(pairs) is not None:
        return enclose(lambda: limiting_mu(pairs) or arb(0))  # 0 is false
    largest = most([pair.max_loss() for pair in pairs])
    if largest == 0:  # the two laws are equal
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
    """Return the value of `limiting_mu` if it is known as an exact number, else None."""
    numbers = [mu for mu in map(_limit, pairs) if isinstance(mu, ExactReal)]
    return max(numbers) if len(numbers) == len(pairs) else None


def limiting_mu(pairs: Sequence[Pair]) -> arb | None:
    """Return the least μ of Gaussian releases, subsampled or mixed in any way, else None.

    Let the releases have shifts μ_i and sampling rates q_i > 0; then μ² = Σ μ_i². For the lower
    bound, there is a test of level α with power at least Π q_i Φ(μ − t(α)), which for small α
    exceeds the power that any smaller μ allows. μ suffices, because hockey-stick divergences are
    jointly convex. An epoch of random allocation to t steps counts as a release with q = 1/t, since
    a test may use its first step only.
    """
    found = [mu for mu in map(_limit, pairs) if mu is not None]
    return most([_ball(mu) for mu in found]) if len(found) == len(pairs) else None


def _limit(pair: Pair) -> ExactReal | arb | None:
    """Return the μ of Gaussian releases as if none were subsampled; None for other pairs.

    For a mixture of normal laws and a single normal law it is the largest shift.
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
    """Return a lower bound of the least μ, by tests of small levels of the pair and its reverse.

    A μ-GDP pair has D_a ≤ aμ²/2 at every order a, and so has its reverse. So μ² is at least twice
    the limit of D_a/a for a → ∞, which is additive over products and may be +∞. For mixtures of
    N(a_i, 1) and N(b_j, 1) with largest means m and n, the limit is at least (m − n)²/2. Indeed,
    with w the weight of m, ∫ P^a Q^{1−a} ≥ w^a ∫ N(m, 1)^a N(n, 1)^{1−a} over x > n, which is at
    least half of the whole integral.
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
    """Return the weight and the mean of the component with the largest mean."""
    return max(mixture, key=lambda part: part[1])


def _of_pair(pair: Pair, width: Fraction) -> arb:
    own = limiting_mu([pair])
    if own is not None:
        return own
    if only_bounded(pair):
        return _between(pair, width)
    if isinstance(pair, GaussianMixturePair):
        # the largest shift suffices, since hockey-stick divergences are jointly convex
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
    if isinstance(pair, SubsampledPair):  # sampling does not increase μ, by joint convexity
        return floor(pair).union(_of_pair(pair.inner, width))
    if isinstance(pair, Product) and pair.is_product:
        return _of_product(pair, width)
    raise NotApplicableError(
        "The privacy loss is unbounded, and no mu is known to be enough. Ask for delta or epsilon."
    )


def _of_bounded_losses(pairs: Sequence[Pair], width: Fraction) -> arb:
    """Return the least μ of pairs with finite largest loss, by a search over ε."""
    sides = list(dict.fromkeys(pairs))  # a symmetric pair is evaluated once
    largest = most([side.max_loss() for side in sides])
    end = Fraction(Interval.of_ball(largest, _DIGITS).upper)
    search = _Search(sides, arb(0))
    enough, finer = _of_loss(largest), width / 8  # a finer width costs little
    return search.up_to(end, enough, finer)


def _of_product(pair: Product, width: Fraction) -> arb:
    """Enclose the least μ of a composition, which is at least every μ_i and at most √Σ μ_i²."""
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
    """Enclose the least μ of discrete Gaussian noise, for several coordinates up to √Σ μ_i²."""
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
    """Return a ball that contains both bounds, if only bounds of the profile are known."""
    high = _enough(pair, width)
    if not high.is_finite():
        raise NotApplicableError("No mu is known to be enough. Ask for delta or epsilon.")
    low = arb(0)
    with contextlib.suppress(NotApplicableError):  # no divergence may be known
        rare = floor(pair).lower()
        low = low if rare.is_nan() else low.max(rare)  # NaN: the root of a ball around 0
    search = _Search([pair, pair.reverse()], low)
    loss = _largest_loss(pair)
    end = Fraction(float(loss)) if loss.is_finite() else Fraction(4)
    for i in range(4):  # few values, because each takes long
        search.attempt(end * i / 4)
    return nonnegative(search.best.union(high))


def _largest_loss(pair: Pair) -> arb:
    """Return an upper bound of the largest loss of the pair and of its reverse."""
    return most([pair.max_loss(), pair.reverse().max_loss()]).upper()


def _enough(pair: Pair, width: Fraction) -> arb:
    """Return a μ that suffices, or +∞ if none is known."""
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
    """Return a μ, 2Φ⁻¹(e^t/(1 + e^t)) or slightly more, that suffices for all t-DP pairs.

    `largest` is t; +∞ if it is not finite.
    """
    if not largest.is_finite():
        return arb.pos_inf()
    if largest < _LONG:
        return (arb(8).sqrt() * (largest / 2).tanh().erfinv()).upper()
    return (arb(8) * ((1 + largest.exp()) / 2).log()).sqrt().upper()


class _Search:
    """A search for the largest μ that any ε requires: `best` is the largest one proved so far."""

    def __init__(self, pairs: Sequence[Pair], best: arb) -> None:
        """Begin with a lower bound `best` of the least μ."""
        self._pairs = list(dict.fromkeys(pairs))
        self._known: dict[Fraction, arb] = {}
        self.best = best

    def up_to(self, end: Fraction, enough: arb, width: Fraction) -> arb:
        """Enclose the largest μ that an ε in [0, end] requires, to a relative width.

        If the proof takes too many steps, return a ball from `best` up to `enough`.
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
        """Whether δ(ε) provably requires a μ larger than `best`; if so, update `best`."""
        own = self._value(at).lower()
        if not own > 0 or (self.best > 0 and not own > tangent(self.best.mid(), ball(at))[0]):
            return False
        more = ball(needed(own, at)) * (1 - arb(2) ** -_CERTAIN)
        if not (more > self.best and tangent(more, ball(at))[0] < own):
            return False
        self.best = more
        return True

    def _proved(self, goal: arb, stop: Fraction) -> bool:
        """Whether δ ≤ δ_goal is proved on [0, stop]; if not, a larger `best` was found.

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
        raise UndecidedError(
            f"A privacy profile was not bounded within {_MAX_PIECES} pieces. Ask for a larger "
            "relative_width."
        )


def tangent(mu: arb, epsilon: arb) -> tuple[arb, arb]:
    """Return δ_μ(ε) and its derivative with respect to e^ε."""
    half, cut = mu / 2, epsilon / mu
    slope = -normal_cdf(-half - cut)
    return normal_cdf(half - cut) + epsilon.exp() * slope, slope


def needed(delta: arb, epsilon: Fraction) -> Fraction:
    """Return a rational near the μ with δ_μ(ε) = δ, by bisection and Newton's method.

    The derivative of δ_μ(ε) with respect to μ is the normal density at μ/2 − ε/μ.
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
    """Return t with Φ̄(t) = tail, for a ball inside (0, 1); NaN if it is not inside."""
    low, high = (_at(arb(end)) for end in (tail.upper(), tail.lower()))
    return low.union(high)


def _at(tail: arb) -> arb:
    return arb(2).sqrt() * (2 * tail).erfcinv()


def _discrete(parameter: ExactReal, shift: int) -> arb:
    """Return the least μ of discrete Gaussian noise with parameter v, shifted by s = `shift`.

    Z has the masses p(z) ∝ e^{−z²/2v}. Define t(k) by T(k) = P(Z ≥ k) = Φ̄(t(k)). With a shift of s
    the test {Z ≥ k} requires μ_k = t(k) − t(k − s). No other test requires more than the largest of
    these: between two of them the power is linear in the level, and Φ(μ − t(α)) is concave in α.
    μ_k is the sum of d(j) = t(j + 1) − t(j) over k − s ≤ j < k. As t(1 − k) = −t(k), d(−j) = d(j).
    *Claim: d(j) decreases for j ≥ 0.* So the sum is largest in the middle, at k = ⌊s/2⌋ + 1.

    *Proof.* Suppose not, and let k ≥ 1 be the least integer with d(k) > d(k − 1) =: b. Let ℓ be the
    straight line through t(k − 1) and t(k), and for real j let q(j) = Φ̄(ℓ(j)) − Φ̄(ℓ(j + 1)).
    T and Φ̄(ℓ) agree at k − 1 and k, and T is smaller at k + 1. So r = ln(q/p) has r(k − 1) = 0,
    r(k) < 0 and r > 0 at some j > k, and p and q have the same sum over j < k − 1. Let V be the
    variance of u under the density ∝ e^{−ℓ(j)u − u²/2} on [0, b]. Then

        q = ∫ φ(ℓ(j) + u) du over [0, b],   r″ = 1/v − b²(1 − V).

    V decreases to 0 on both sides of the place where ℓ(j) = −b/2 (shown below). If r″ > 0
    everywhere, r is convex, hence positive at all j < k − 1, and the sums differ: a contradiction.
    Otherwise r tends to −∞ on both sides and r″ changes its sign at most twice, so r has at most
    four zeros. r < 0 far to the left, and since the sums are equal, r > 0 at some j < k − 1. This
    is one zero; k − 1 is another; and r(k) < 0, r > 0 beyond and r < 0 far to the right give two
    more. So there is no zero between that j and k − 1, and r(k − 2) > 0. Then Φ̄(ℓ) > T at k − 2,
    so t(k − 2) > ℓ(k − 2) and d(k − 2) < b = d(k − 1). For k ≥ 2 this contradicts that k is least.
    For k = 1 it contradicts d(−1) = d(1) > b.

    *V decreases.* Centred at the middle, w = u − b/2 has the density ∝ e^{−mw − w²/2} on
    [−b/2, b/2], and dV/dm = −κ₃, the third cumulant. For two independent copies let S = w + w′ and
    D = w − w′; then 2κ₃ = Cov(D², S). Given S, D has the density ∝ e^{−D²/4} on |D| ≤ b − |S|, so
    E[D² | S] decreases in |S|. Given |S|, S has the mean −|S| tanh(m|S|), which for m > 0 decreases
    in |S| too. So κ₃ ≥ 0 by Chebyshev's inequality, and V decreases as m grows from 0.
    """
    first = shift // 2 + 1
    # for large v the scores are about 1/√v, so the sum loses bits
    with ctx.workprec(ctx.prec + math.floor(parameter).bit_length()):
        found = score(upper_tail(parameter, first)) + score(
            upper_tail(parameter, shift + 1 - first)
        )
    return +found


def _discrete_sum(parameter: ExactReal, shift: int, count: int, width: Fraction) -> arb | None:
    """Enclose the least μ of a sum of shifted discrete Gaussian variables; None for a small v.

    The masses of a sum of n = `count` variables are those of one variable of parameter nv times
    factors in [e^{−κ}, e^{κ}] (`dpassay.accountant.pairs.discrete.log_spread`). For κ ≤ 1/10, a
    factor on a tail changes its score t by at most κ/λ(−κ) ≤ 3κ/2, λ = φ/Φ̄, so μ changes by at
    most 3κ. None also if this error is too large for the relative width.
    """
    spread = log_spread(parameter, count)
    if not spread <= ball(_NEAREST):
        return None
    found = _discrete(ExactReal.of_rational(count) * parameter, count * shift)
    if not 3 * spread <= found * ball(width) / 8:
        return None
    return found + arb(0, (3 * spread).upper())
