"""The releases of a product as survival functions, with what is known of their ends."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

from flint import arb

from accountant.composition.grid import survival as tails
from accountant.composition.grid.own_cells import own_density
from accountant.composition.grid.survival import NormalMixtures, Survival
from accountant.composition.product import Factor, apart
from accountant.core.pair import Pair
from accountant.errors import NotApplicableError
from accountant.mechanisms.additive.laplace import LaplacePair
from accountant.mechanisms.additive.logistic import LogisticPair
from accountant.mechanisms.additive.truncated_laplace import TruncatedLaplacePair
from accountant.numbers.exact import ExactReal
from accountant.numbers.precision import ctx
from accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from accountant.pairs.finite_losses import finite
from accountant.pairs.gaussian import GaussianPair
from accountant.pairs.gaussian_mixture import GaussianMixturePair
from accountant.pairs.own_density import OwnDensityPair
from accountant.pairs.own_mass import OwnMassPair
from accountant.pairs.subsampled import EnvelopePair, Family, SubsampledPair, two_directions

_PRECISION = 128
"""Bits of the balls that become floats: fewer widen the errors of tails, more are lost."""
_IN_FLOATS = LaplacePair, TruncatedLaplacePair, LogisticPair, DiscreteGaussianPair
"""Pairs whose samples have tails in floats, besides Gaussian ones."""
_PLAIN_ATOM = 1e-9
"""Least Q(L = 0) of an envelope that is asked in floats: far above what roundings can part."""


@final
@dataclass(frozen=True)
class Release:
    """One release: its tails, its mass at infinity and the ends of its finite losses."""

    name: object
    """What tells releases apart: the pair, or the shift of normal laws."""
    survival: Survival = field(compare=False)
    infinity: float
    """At most P(L = ∞), and less by rounding alone."""
    top: float | None
    bottom: float | None
    slow: bool = False
    smooth: bool = False
    """Whether the loss has a density without steps between its ends."""
    mu: float | None = None
    """The shift, of normal laws."""


def releases(factors: Sequence[Factor]) -> tuple[tuple[Release, int], ...]:
    """Return the releases with their counts; all plain Gaussian ones are one, of Σ k μ²."""
    found: list[tuple[Release, int]] = []
    square = arb(0)
    with ctx.workprec(_PRECISION):
        for pair, count in apart(factors):
            if isinstance(pair, GaussianPair):
                square += count * pair.mu() ** 2
            else:
                found.append((_release(pair), count))
        if square > 0:
            mu = float(square.sqrt().mid())
            normal = Release(
                ("gaussian", mu), tails.gaussian(mu), 0.0, None, None, smooth=True, mu=mu
            )
            found.append((normal, 1))
    return tuple(found)


@functools.lru_cache(maxsize=1024)
def _release(pair: Pair) -> Release:
    with ctx.workprec(_PRECISION):
        known = _survival(pair)
        mass = float(pair.infinity_mass().lower().max(arb(0)))
        infinity = math.nextafter(mass, 0.0) if mass else 0.0
        return Release(
            pair,
            known or tails.in_balls(pair),
            infinity,
            _end(pair, 1),
            _end(pair.reverse(), -1),
            slow=known is None,
            smooth=isinstance(known, NormalMixtures),
        )


def _end(pair: Pair, sign: int) -> float | None:
    try:
        found = tails.finite_or_none(pair.max_finite_loss())
    except NotApplicableError:
        return None
    return None if found is None else sign * found


def _survival(pair: Pair) -> Survival | None:
    """Return the tails of a pair in floats, None where only balls are known."""
    match pair:
        case LaplacePair(distance):
            return tails.laplace(float(distance.ball().mid()))
        case TruncatedLaplacePair(distance, end):
            return tails.truncated_laplace(*(float(each.ball().mid()) for each in (distance, end)))
        case LogisticPair(distance):
            return tails.logistic(float(distance.ball().mid()))
        case DiscreteGaussianPair(parameter, shift):
            return tails.discrete_gaussian(float(parameter.ball().mid()), shift)
        case SubsampledPair(inner, q, mixed_first):
            return _sampled(inner, q, mixed_first=mixed_first)
        case EnvelopePair(family):
            return _envelope(family)
        case OwnDensityPair():
            return own_density(pair)
        case OwnMassPair():
            return tails.listed(pair)
        case GaussianMixturePair(p, q):
            return NormalMixtures(
                [(float(weight), float(mean.ball().mid())) for weight, mean in p],
                [(float(weight), float(mean.ball().mid())) for weight, mean in q],
            )
    small = finite(pair)
    return None if small is None else tails.listed(small)


def _sampled(inner: Pair, q: ExactReal, *, mixed_first: bool) -> Survival | None:
    share, rest = float(q.ball().mid()), float((1 - q.ball()).mid())
    if isinstance(inner, GaussianPair):
        mu = float(inner.mu().mid())
        return tails.sampled_gaussian(mu, share, rest, mixed_first=mixed_first)
    if not isinstance(inner, _IN_FLOATS):
        return None
    known = _survival(inner)
    return known and tails.sampled(known, share, rest, mixed_first=mixed_first)


def _envelope(family: Family) -> Survival | None:
    """Return the tails of the envelope of the two directions of a sample."""
    known = two_directions(family)
    if known is None:
        return None
    zero = ExactReal.of_rational(0)
    ahead, behind = (pair.tails(zero) for pair in known)
    if not behind.q_above - ahead.q_above > _PLAIN_ATOM:
        return None
    positive, negative = map(_survival, known)
    return None if positive is None or negative is None else tails.switched(positive, negative)
