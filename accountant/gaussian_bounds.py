"""How near a mechanism is to Gaussian differential privacy: best μ above and below, and regret.

A mechanism is μ-GDP exactly when its profile lies below δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)
at every ε ≥ 0, in both directions (a profile at −ε is determined by the reversed pair at ε, and
δ_μ by itself). The least such μ says all that a single number can; the regret is what it loses.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb, ctx

from accountant import profile, solve
from accountant._validate import probability
from accountant.adjacency import Adjacency
from accountant.composition.subsampling import SubsampledPair
from accountant.dominance import largest_ratio
from accountant.errors import NotApplicableError, UndecidedError, expected
from accountant.interval import Interval, ball, enclose
from accountant.mechanism import Mechanism
from accountant.mechanisms.gaussian import Gaussian
from accountant.number import ExactReal, Number
from accountant.pair import Pair
from accountant.pairs.gaussian import GaussianPair

MU_WIDTH = Fraction(1, 10**6)
_SEARCH_PRECISION = 64
_ENOUGH = 16
_SAMPLES = 64
_MAX_PIECES = 4000
_LEAST_REGRET = 1e-12


@final
@dataclass(frozen=True, slots=True)
class GaussianBounds:
    """G_upper ≤ trade-off function ≤ G_lower, the latter for δ ≥ `down_to` alone."""

    upper: Interval
    """The least μ for which the mechanism is μ-GDP."""
    lower: Interval
    """The largest μ whose profile lies below the mechanism's wherever that is ≥ `down_to`."""
    regret: Interval
    """The least κ with f(α + κ) − κ ≤ G_upper(α) for all α: sup (δ_μ − δ)/(1 + e^ε)."""


def gaussian_bounds(
    mechanism: Mechanism,
    *,
    adjacency: Adjacency | str | None = None,
    down_to: Number = "1e-10",
    relative_width: Fraction = MU_WIDTH,
) -> GaussianBounds:
    """Enclose the best μ on both sides, and the regret of the upper one.

    Exact mechanisms have upper = lower and regret 0. The regret is found to an absolute width of
    1e-4 of the largest one.

    Subsampled Gaussian releases have upper = μ of the release, whatever the sampling rate q > 0: a
    test of level α has a power of at least q Φ(μ − z_α), which as α falls is more than that of any
    smaller μ. All that sampling gains is in the regret.

    Raises
    ------
    NotApplicableError
        If the privacy loss is unbounded, and neither Gaussian nor one subsampled Gaussian release:
        no finite search bounds it then.
    UndecidedError
        If a width is not reached.
    """
    relation = Adjacency.read(adjacency)
    pairs = profile.worst_pairs(mechanism, relation, None)
    if all(isinstance(pair, GaussianPair) for pair in pairs):
        from accountant.guarantees import mu

        exact_mu = mu(mechanism, adjacency=relation)
        return GaussianBounds(exact_mu, exact_mu, Interval.of_exact(0))
    floor = probability("down_to", down_to)
    if floor.sign == 0:
        raise expected("down_to", down_to, "> 0", "A bounded loss has no lower mu at delta = 0.")
    inner = _subsampled_gaussian(pairs)
    if inner is None:
        stop = _largest_loss(pairs)
        upper = _upper(pairs, stop, relative_width)
    else:
        upper = enclose(inner.mu)
        stop = _beyond(Fraction(upper.upper))
    inverse = profile.epsilon(
        mechanism, floor, adjacency=relation, relative_width=Fraction(1, 10**9)
    )
    if inverse.lower < 0:
        raise expected("down_to", down_to, "at most the total variation distance")
    lower = _lower(pairs, Fraction(inverse.lower), relative_width)
    regret = _regret(pairs, Fraction(upper.upper), stop)
    return GaussianBounds(upper, lower, regret)


def _subsampled_gaussian(pairs: Sequence[Pair]) -> GaussianPair | None:
    """Return the Gaussian pair that all of the pairs are subsampled from, or None."""
    inner = {pair.inner if isinstance(pair, SubsampledPair) else None for pair in pairs}
    found = inner.pop()
    return found if not inner and isinstance(found, GaussianPair) else None


def _beyond(mu: Fraction) -> Fraction:
    """Return an ε with δ_μ(ε) below all that the regret is told from."""
    gaussian, stop = _profile_of(ExactReal.of_rational(mu)), Fraction(1)
    while not gaussian(ExactReal.of_rational(stop)) < _LEAST_REGRET / 2:
        stop *= 2
    return stop


def _largest_loss(pairs: Sequence[Pair]) -> Fraction:
    end = profile.most([pair.max_loss() for pair in pairs])
    if not end.is_finite():
        raise NotApplicableError(
            "The privacy loss is unbounded and not Gaussian: no search over finitely many epsilon "
            "bounds mu. Verify a mu-GDP claim, or compare at one delta."
        )
    return Fraction(Interval.of_ball(end, 30).upper)


def _upper(pairs: Sequence[Pair], stop: Fraction, width: Fraction) -> Interval:
    def excess(mu: ExactReal) -> arb:
        with ctx.workprec(_SEARCH_PRECISION):
            ratio = largest_ratio(
                lambda at: profile.hockey_stick(pairs, at), _profile_of(mu), stop, enough=_ENOUGH
            )
            return ratio.log() if ratio.is_finite() else arb(_ENOUGH)

    guess = max(float(stop), 1e-300)
    low, high = _around(excess, Fraction(guess))
    return solve.root(excess, (low, high), relative_width=width)


def _around(excess: solve.Function, guess: Fraction) -> solve.Bracket:
    """Return points on both sides of the root, by factors of 2 from a guess."""
    low = high = guess
    for _ in range(400):
        if excess(ExactReal.of_rational(high)) < 0:
            break
        high *= 2
    for _ in range(400):
        if excess(ExactReal.of_rational(low)) > 0:
            return low, high
        low /= 2
    raise UndecidedError("No mu was found on either side of the least one.")


def _lower(pairs: Sequence[Pair], stop: Fraction, width: Fraction) -> Interval:
    """Enclose inf over 0 ≤ ε ≤ stop of the μ with δ_μ(ε) = δ(ε).

    On a piece δ_μ ≤ δ holds if δ_μ at its left end is at most δ at its right end.
    """

    def value(at: Fraction) -> arb:
        return profile.hockey_stick(pairs, ExactReal.of_rational(at))

    with ctx.workprec(2 * _SEARCH_PRECISION):
        points = [stop * i / _SAMPLES for i in range(_SAMPLES + 1)]
        best = min(_mu_at(value(at), at) for at in points)
        pieces = list(itertools.pairwise(points))
        bound = best * (1 - width / 2)
        for _ in range(_MAX_PIECES):
            if not pieces:
                break
            left, right = pieces.pop()
            if _below(value, bound, left, right):
                continue
            middle = (left + right) / 2
            best = min(best, _mu_at(value(middle), middle))
            bound = best * (1 - width / 2)
            pieces += [(left, middle), (middle, right)]
        else:
            raise UndecidedError(
                f"The lower mu was not found within {_MAX_PIECES} pieces; ask for a larger "
                "relative_width."
            )
        slack = 1 + Fraction(1, 10**9)
        return Interval(
            Interval.of_exact(bound / slack, 20).lower, Interval.of_exact(best * slack, 20).upper
        )


def _below(value: Callable[[Fraction], arb], mu: Fraction, left: Fraction, right: Fraction) -> bool:
    """Whether δ_μ ≤ δ is proved on a piece, with an error of second order.

    With z = e^ε both are convex. δ lies above the chord through its own values at two points
    right of the piece, extended to the left, and δ_μ below its chord over the piece.
    """
    gaussian = _profile_of(ExactReal.of_rational(mu))
    beyond = 2 * right - left
    z = [ball(at).exp() for at in (left, right, beyond)]
    own = [value(at) for at in (left, right, beyond)]
    chord = [gaussian(ExactReal.of_rational(at)) for at in (left, right)]
    support = own[1] + (own[1] - own[2]) * (z[1] - z[0]) / (z[2] - z[1])
    return bool(chord[0] <= support and chord[1] <= own[1])


def _mu_at(delta: arb, epsilon: Fraction) -> Fraction:
    """Return a rational near the μ with δ_μ(ε) = δ, by bisection of the exponent."""
    low, high = -700.0, 700.0
    for _ in range(60):
        middle = (low + high) / 2
        mu = ExactReal.of_rational(Fraction(math.exp(middle)))
        if _profile_of(mu)(ExactReal.of_rational(epsilon)).mid() < delta.mid():
            low = middle
        else:
            high = middle
    return Fraction(math.exp((low + high) / 2))


def _regret(pairs: Sequence[Pair], mu: Fraction, stop: Fraction) -> Interval:
    """Enclose sup over ε ≥ 0 of (δ_μ(ε) − δ(ε))/(1 + e^ε).

    On a piece δ_μ lies below its chord, δ above the chord right of it extended, both in z. Beyond
    `stop`, δ_μ/(1 + e^ε) falls, where δ is 0, or it is less than half of the least width there is.
    """
    gaussian = _profile_of(ExactReal.of_rational(mu))

    def gap(at: Fraction) -> tuple[arb, arb, arb]:
        point = ExactReal.of_rational(at)
        return gaussian(point), profile.hockey_stick(pairs, point), point.ball().exp()

    with ctx.workprec(_SEARCH_PRECISION):
        best = arb(0)
        pieces = [(stop * i / _SAMPLES, stop * (i + 1) / _SAMPLES) for i in range(_SAMPLES)]
        for g, d, z in (gap(stop * i / _SAMPLES) for i in range(_SAMPLES + 1)):
            best = best.max((g - d) / (1 + z))
        slack = best / 10**4 + _LEAST_REGRET
        for _ in range(_MAX_PIECES):
            if not pieces:
                return Interval.of_ball(best.union(best + slack), 15)
            left, right = pieces.pop()
            (g0, _, z0), (g1, d1, z1), (_, d2, z2) = gap(left), gap(right), gap(2 * right - left)
            support = d1 + (d1 - d2) * (z1 - z0) / (z2 - z1)
            # a ratio of two functions that are linear in z has its largest value at an end
            if not ((g0 - support) / (1 + z0)).max((g1 - d1) / (1 + z1)) <= best + slack:
                middle = (left + right) / 2
                g, d, z = gap(middle)
                best = best.max((g - d) / (1 + z))
                pieces += [(left, middle), (middle, right)]
    raise UndecidedError(f"The regret was not found within {_MAX_PIECES} pieces.")


def _profile_of(mu: ExactReal) -> Callable[[ExactReal], arb]:
    """Return δ_μ."""
    pair = GaussianPair(Gaussian(standard_deviation=1, l2_sensitivity=mu), None)
    return pair.hockey_stick
