"""How near a mechanism is to Gaussian differential privacy: best μ above and below, and regret.

A mechanism is μ-GDP exactly when its profile lies below δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)
at every ε ≥ 0, in both directions (a profile at −ε is determined by the reversed pair at ε, and
δ_μ by itself). The least such μ says all that a single number can; the regret is what it loses.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.core.validate import probability, rational
from dpassay.accountant.errors import NotApplicableError, UndecidedError, expected
from dpassay.accountant.numbers.dominance import Profile
from dpassay.accountant.numbers.exact import ExactReal, Number, in_short
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs import invert
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.questions import guarantees, profile
from dpassay.accountant.questions.least_mu import bounds, least_mu, needed, profile_of

MU_WIDTH = Fraction(1, 10**6)
_WIDTH = Fraction(1, 10**9)
_ROUGHLY = Fraction(1, 10**4)
"""Relative width of a μ but for δ₀: runs of many steps nearly have one μ, and more digits take ten
times as long each."""
_SEARCH_PRECISION = 64
"""Bits of profiles that are compared: μ and regrets are asked to fewer digits."""
_SAMPLES = 64
"""Points at which a first lower bound is looked for: more find a better one, and cost profiles."""
_MAX_PIECES = 20_000
"""Pieces of a range that are bounded until a refusal."""
_LEAST_REGRET = 1e-12
"""Regrets below it are not told from 0."""


@final
@dataclass(frozen=True, slots=True)
class GaussianBounds:
    """G_upper ≤ trade-off function ≤ G_lower, the latter for δ ≥ `down_to` alone."""

    upper: Interval
    """The least μ for which the mechanism is μ-GDP; +∞ where an outcome tells the neighbours."""
    lower: Interval
    """The largest μ whose profile lies below the mechanism's wherever that is ≥ `down_to`."""
    regret: Interval
    """The least κ with f(α + κ) − κ ≤ G_upper(α) for all α: sup (δ_μ − δ)/(1 + e^ε)."""
    delta0: ExactReal
    """δ₀, the level `down_to` that was named."""
    upper_at_delta0: Interval
    """The least μ for which it is (μ, δ₀)-GDP: f ≥ G_μ − δ₀, that is δ(ε) ≤ δ_μ(ε) + δ₀ at all ε.

    For a test's power, and for ε(δ + δ₀), what has less chance than δ₀ is left out of account."""
    regret_at_delta0: Interval
    """The least κ with f(α + κ) − κ ≤ G(α) for all α, G being that of `upper_at_delta0`."""

    def __str__(self) -> str:
        """Say what the numbers mean."""
        return (
            f"mu-GDP for every mu ≥ {self.upper}, with regret {self.regret}; its profile is above "
            f"that of {self.lower}-GDP; (mu, {in_short(self.delta0)})-GDP for every mu ≥ "
            f"{self.upper_at_delta0}, with regret {self.regret_at_delta0}"
        )


def mu(
    mechanism: Mechanism,
    *,
    adjacency: Adjacency | str | None = None,
    relative_width: Number | None = None,
) -> Interval:
    """Enclose the least μ for which the mechanism is μ-GDP: of exactly Gaussian ones, their μ.

    Without `relative_width` as well as that succeeds soon, else to that width or not at all.
    """
    try:
        return guarantees.mu(mechanism, adjacency=adjacency, relative_width=relative_width)
    except NotApplicableError:
        pairs = profile.worst_pairs(mechanism, Adjacency.read(adjacency), None)
    if invert.most([pair.infinity_mass() for pair in pairs]) > 0:
        return Interval.of_ball(arb.pos_inf())
    if relative_width is None:
        return bounds(pairs, MU_WIDTH)
    return least_mu(pairs, rational("relative_width", relative_width))


def gaussian_bounds(
    mechanism: Mechanism,
    *,
    adjacency: Adjacency | str | None = None,
    down_to: Number = "1e-10",
    relative_width: Fraction = MU_WIDTH,
) -> GaussianBounds:
    """Enclose the best μ on both sides, and the regret of the upper one.

    Exact mechanisms have upper = lower and regret 0. Regrets are found to an absolute width of 1e-4
    of the largest one. With δ₀ = `down_to`, μ and regret of (μ, δ₀)-GDP come too.

    Subsampled Gaussian releases have upper = μ of all of them together, Σ μ_i² = μ², whatever the
    sampling rates q_i > 0 (`dpassay.accountant.questions.least_mu`; `MixtureOfGaussians`:
    that of the largest shift). All that sampling gains is in the regret, and in the lower μ.

    Raises
    ------
    NotApplicableError
        If the privacy loss is unbounded, but finite, and it is not known how small levels bound μ.
    UndecidedError
        If a width is not reached.
    """
    relation = Adjacency.read(adjacency)
    pairs = profile.worst_pairs(mechanism, relation, None)
    floor, zero = probability("down_to", down_to), Interval.of_exact(0)
    asked = invert.to_width(pairs, _WIDTH)
    value = functools.cache(lambda at: invert.hockey_stick(asked, ExactReal.of_rational(at)))

    def less(at: Fraction) -> arb:
        return value(at) - floor.ball()

    if all(isinstance(pair, GaussianPair) for pair in pairs):
        mu = least_mu(pairs, relative_width)
        at_zero = less(Fraction(0))
        met = needed(at_zero, Fraction(0)) * (1 - relative_width)
        needs_it = profile_of(ExactReal.of_rational(met))(ExactReal.of_rational(0)) < at_zero
        at_least = Interval.of_exact(met, 20).lower if needs_it else Decimal(0)
        return GaussianBounds(mu, mu, zero, floor, Interval(at_least, mu.upper), zero)
    if floor.sign == 0:
        raise expected("down_to", down_to, "> 0", "A bounded loss has no lower mu at delta = 0.")
    infinite = Interval.of_ball(arb.pos_inf())
    leak = invert.most([pair.infinity_mass() for pair in pairs])
    if leak == 1:
        return GaussianBounds(infinite, infinite, zero, floor, infinite, zero)
    inverse = profile.signed_epsilon(mechanism, floor, adjacency=relation, relative_width=_WIDTH)
    if inverse.lower < 0:
        raise expected("down_to", down_to, "at most the total variation distance")
    upper = infinite if leak > 0 else least_mu(pairs, relative_width)  # or a refusal, soon
    last = _last(pairs)
    beyond = infinite
    if inverse.upper.is_finite():
        width = max(relative_width, _ROUGHLY)
        beyond = _touching(less, Fraction(inverse.upper), width, above=True)
    at_floor = floor, beyond, _regret_of(beyond, value, last)
    end = (
        Fraction(inverse.lower) if inverse.lower.is_finite() else _kept_by(leak, value(Fraction(0)))
    )
    lower = _touching(value, end, relative_width, above=False)
    return GaussianBounds(upper, lower, _regret_of(upper, value, last), *at_floor)


def _regret_of(mu: Interval, value: Callable[[Fraction], arb], last: Fraction | None) -> Interval:
    """Enclose the regret of the upper end of μ; no loss is above `last`, if that is known."""
    gaussian: Profile = _certain
    if mu.upper.is_finite():
        gaussian = profile_of(ExactReal.of_rational(Fraction(mu.upper)))
    return _regret(value, gaussian, last or _beyond(gaussian))


def _last(pairs: Sequence[Pair]) -> Fraction | None:
    """Return a rational just above the largest loss, None where there is none."""
    end = invert.most([pair.max_loss() for pair in pairs])
    return Fraction(Interval.of_ball(end, 30).upper) if end.is_finite() else None


def _certain(_: ExactReal) -> arb:
    """Return 1, the δ of what may tell the neighbours with certainty."""
    return arb(1)


def _beyond(gaussian: Profile) -> Fraction:
    """Return an ε with δ_μ(ε)/(1 + e^ε), which falls, below all that the regret is told from."""
    stop = Fraction(1)
    while True:
        at = ExactReal.of_rational(stop)
        if gaussian(at) / (1 + at.ball().exp()) < _LEAST_REGRET / 2:
            return stop
        stop *= 2


def _kept_by(leak: arb, total_variation: arb) -> Fraction:
    """Return an ε at which δ_μ(ε) is below δ ≥ leak for the μ with the same δ(0), and all less."""
    gaussian = profile_of(ExactReal.of_rational(needed(total_variation, Fraction(0))))
    stop = Fraction(1)
    while not gaussian(ExactReal.of_rational(stop)) < leak:
        stop *= 2
    return stop


def _touching(
    value: Callable[[Fraction], arb], stop: Fraction, width: Fraction, *, above: bool
) -> Interval:
    """Enclose the least μ with δ_μ ≥ value on 0 ≤ ε ≤ stop (`above`), or the largest with ≤.

    The μ with δ_μ = value at some ε are on one side of it. The last one that was met is proved to
    be so by its ε, and a slightly larger or smaller one to be enough on all pieces.
    """
    choose, side = (max, 1) if above else (min, -1)

    def curve(mu: Fraction) -> Callable[[Fraction], arb]:
        gaussian = profile_of(ExactReal.of_rational(mu))
        return lambda at: gaussian(ExactReal.of_rational(at))

    with ctx.workprec(2 * _SEARCH_PRECISION):
        points = [stop * i / _SAMPLES for i in range(_SAMPLES + 1)]
        best, where = choose((needed(value(at), at), at) for at in points)
        pieces = list(itertools.pairwise(points))
        bound = best * (1 + side * width / 2)
        for _ in range(_MAX_PIECES):
            if not pieces:
                break
            left, right = pieces.pop()
            curves = (value, curve(bound))
            if _below(*(curves if above else curves[::-1]), left, right):
                continue
            middle = (left + right) / 2
            best, where = choose((best, where), (needed(value(middle), middle), middle))
            bound = best * (1 + side * width / 2)
            pieces += [(left, middle), (middle, right)]
        else:
            raise UndecidedError(
                f"The {'upper' if above else 'lower'} mu was not found within {_MAX_PIECES} "
                "pieces; ask for a larger relative_width."
            )
        met = best * (1 - side * width / 4)
        short = side * (value(where) - curve(met)(where))
        if not short > 0:
            raise UndecidedError(
                f"The {'upper' if above else 'lower'} mu is near {float(met):.6g}; it was not "
                "proved on which side."
            )
        low, high = sorted((met, bound))
        return Interval(Interval.of_exact(low, 20).lower, Interval.of_exact(high, 20).upper)


def _below(
    low: Callable[[Fraction], arb], high: Callable[[Fraction], arb], left: Fraction, right: Fraction
) -> bool:
    """Whether low ≤ high is proved on a piece, with an error of second order.

    With z = e^ε both are convex. `high` lies above the chord through its own values at two points
    right of the piece, extended to the left, and `low` below its chord over the piece.
    """
    beyond = 2 * right - left
    z = [ball(at).exp() for at in (left, right, beyond)]
    own = [high(at) for at in (left, right, beyond)]
    support = own[1] + (own[1] - own[2]) * (z[1] - z[0]) / (z[2] - z[1])
    return bool(low(left) <= support and low(right) <= own[1])


def _regret(value: Callable[[Fraction], arb], gaussian: Profile, stop: Fraction) -> Interval:
    """Enclose sup over ε ≥ 0 of (δ_μ(ε) − δ(ε))/(1 + e^ε).

    On a piece δ_μ lies below its chord, δ above the chord right of it extended, both in z. Beyond
    `stop`, δ_μ/(1 + e^ε) falls, where δ is 0, or it is less than half of the least width there is.
    The quotient tends to 0, so that the supremum is not below it.
    """

    @functools.cache
    def gap(at: Fraction) -> tuple[arb, arb, arb]:
        point = ExactReal.of_rational(at)
        return gaussian(point), value(at), point.ball().exp()

    with ctx.workprec(_SEARCH_PRECISION):
        best = arb(0)
        pieces = [(stop * i / _SAMPLES, stop * (i + 1) / _SAMPLES) for i in range(_SAMPLES)]
        for g, d, z in (gap(stop * i / _SAMPLES) for i in range(_SAMPLES + 1)):
            best = best.max((g - d) / (1 + z))
        slack = best / 10**4 + _LEAST_REGRET
        for _ in range(_MAX_PIECES):
            if not pieces:
                found = Interval.of_ball(best.union(best + slack), 15)
                return Interval(max(found.lower, Decimal(0)), found.upper)
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
