"""The least μ for which a pair of laws is μ-GDP: in closed form, or enclosed by a search."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from dpassay.accountant.composition.invert import most, to_width
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from dpassay.accountant.pairs.discrete_gaussian_product import DiscreteGaussianProductPair
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.pairs.gaussian_maxima import GaussianMaximaPair
from dpassay.accountant.pairs.gaussian_mixture import GaussianMixturePair
from dpassay.accountant.pairs.random_allocation import RandomAllocationPair
from dpassay.accountant.pairs.subsampled import SubsampledPair
from dpassay.accountant.questions.least_mu import (
    bounded,
    discrete,
    enclosed,
    mixture,
    product,
)
from dpassay.accountant.questions.least_mu.closed import floor, known, limiting_mu, mu_of_all

_PRECISION = 128
"""Bits of a μ, which is answered to fewer."""
_DIGITS = 30
"""Digits of its ends."""
_ROUGH = Fraction(1, 10**6)
_FINER = 1000
"""How much finer than the μ a δ is asked for."""

__all__ = ["bounds", "closed_mu", "exact_mu", "least_mu", "limiting_mu"]


def least_mu(pairs: Sequence[Pair], width: Fraction) -> Interval:
    """Enclose the least μ for which no profile of the pairs is above δ_μ, to a relative width.

    Raises
    ------
    NotApplicableError
        If no μ is enough, as D_a/a is unbounded; or if it is not known how small levels bound μ.
    UndecidedError
        If the width is not reached, with what is known.
    """
    found = bounds(pairs, width)
    reached = found.relative_width or 0
    if reached > width:
        ends = f"Reached the least mu in [{found.lower:.12g}, {found.upper:.12g}]"
        if any(pair.only_bounded for pair in pairs):
            ends += ": only bounds of the profile are known. Ask for delta or epsilon."
        else:
            ends += f", of relative width {float(reached):.0e}, for {float(width):.1e}. Ask for a "
            ends += "larger relative_width."
        raise UndecidedError(
            ends,
            reached=float(reached),
            interval=found,
        )
    return found


def bounds(pairs: Sequence[Pair], width: Fraction) -> Interval:
    """Enclose it as far as that is possible; raise NotApplicableError as `least_mu` does."""
    if limiting_mu(pairs) is not None:
        return enclose(lambda: known(limiting_mu(pairs)))
    largest = most([pair.max_loss() for pair in pairs])
    if largest == 0:  # the laws are one
        return Interval.of_exact(0)
    if largest.is_finite() and not any(pair.only_bounded for pair in pairs):
        return bounded.least_mu(pairs, width)
    distinct: list[Pair] = []
    for pair in pairs:
        if pair.reverse() not in distinct:
            distinct.append(pair)
    asked = to_width(distinct, width / _FINER)
    with ctx.workprec(_PRECISION):
        return Interval.of_ball(most([_of_pair(pair, width) for pair in asked]), _DIGITS)


def closed_mu(pairs: Sequence[Pair]) -> arb | None:
    """Return the least μ where it has a closed form, else None.

    That of discrete Gaussian noise falls as its parameter grows: each P(Z ≥ k), k ≥ 1, grows.
    """
    if pairs and all(isinstance(pair, DiscreteGaussianPair) for pair in pairs):
        return most([_of_pair(pair, _ROUGH) for pair in pairs])
    return limiting_mu(pairs)


def exact_mu(pairs: Sequence[Pair]) -> ExactReal | None:
    """Return the least μ as an exact number, where it is one that small levels alone decide.

    That of Gaussian releases, sampled or mixed; of replaced records of samples where the limit is
    proved to be enough.
    """
    found = [_exact(pair) for pair in pairs]
    numbers = [number for number in found if number is not None]
    return max(numbers) if len(numbers) == len(found) else None


def _exact(pair: Pair) -> ExactReal | None:
    if isinstance(pair, GaussianPair):
        return pair.mechanism.exact_gaussian_mu(pair.adjacency)
    if isinstance(pair, RandomAllocationPair):
        return pair.mu
    if isinstance(pair, SubsampledPair):
        return None if mu_of_all(pair) is None else _exact(pair.inner)
    if isinstance(pair, GaussianMixturePair):
        with ctx.workprec(_PRECISION):
            limit = floor(pair)
            if mu_of_all(pair) is None and mixture.least_mu(pair, limit, _ROUGH) is not limit:
                return None
        return mixture.exact_limit(pair)
    if not isinstance(pair, Product) or not pair.is_product:
        return None
    total = ExactReal.of_rational(0)
    for part, count in pair.factors:
        own = _exact(part)
        if own is None:
            return None
        total += own.squared.times(count)
    return total.root()


def _of_pair(pair: Pair, width: Fraction) -> arb:
    own = limiting_mu([pair])
    if own is not None:
        return own
    if pair.only_bounded:
        return enclosed.least_mu(pair, lambda part: bounds([part, part.reverse()], width))
    if isinstance(pair, GaussianMixturePair):
        return mixture.least_mu(pair, floor(pair), width)
    if isinstance(pair, GaussianMaximaPair):
        return pair.least_mu()
    if isinstance(pair, DiscreteGaussianPair):
        return discrete.least_mu(pair.parameter, pair.shift)
    if isinstance(pair, DiscreteGaussianProductPair):
        return _of_coordinates(pair, width)
    both = [pair, pair.reverse()]
    if most([side.max_loss() for side in both]).is_finite():
        return bounded.least_mu(both, width).ball()
    if floor(pair) == arb.pos_inf():
        raise NotApplicableError(
            "No mu is enough: the Rényi divergences D_a of this mechanism are below no multiple of "
            "the order a, as those of every mu-GDP mechanism are. Ask for delta or epsilon."
        )
    if isinstance(pair, SubsampledPair):
        return _of_sample(pair, width)
    if isinstance(pair, Product) and pair.is_product:
        return product.least_mu(pair, width, _of_pair)
    raise NotApplicableError(
        "The privacy loss is unbounded, and how small levels bound mu is not known: no search over "
        "finitely many epsilon does. Verify a mu-GDP claim, or compare at one delta."
    )


def _of_sample(pair: SubsampledPair, width: Fraction) -> arb:
    """Enclose that of a sample: at most that of the release, by the joint convexity of profiles."""
    return floor(pair).union(_of_pair(pair.inner, width))


def _of_coordinates(pair: DiscreteGaussianProductPair, width: Fraction) -> arb:
    """Enclose that of discrete Gaussian noise on several coordinates, or as √Σ μ_i² bounds it."""
    parameter = ExactReal.of_rational(pair.parameter)
    if not pair.last_shift:
        found = discrete.of_sum(parameter, pair.shift, pair.count, width)
        if found is not None:
            return found
    squares = pair.count * discrete.least_mu(parameter, pair.shift) ** 2
    if pair.last_shift:
        last = ExactReal.of_rational(pair.scale**2) * parameter
        squares += discrete.least_mu(last, pair.last_shift) ** 2
    return floor(pair).union(squares.sqrt())
