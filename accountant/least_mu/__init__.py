"""The least μ for which a pair of laws is μ-GDP: in closed form, or enclosed by a search."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb, ctx

from accountant.composition.joint import JointPair
from accountant.errors import NotApplicableError
from accountant.interval import Interval, enclose, narrowed
from accountant.least_mu import bounded, mixture, product
from accountant.least_mu.closed import floor, known, limiting_mu
from accountant.pair import Pair
from accountant.pairs.gaussian_mixture import GaussianMixturePair
from accountant.profile import most

_PRECISION = 128
_DIGITS = 30
_FINER = 1000
"""How much finer than the μ a δ is asked for."""

__all__ = ["least_mu", "limiting_mu"]


def least_mu(pairs: Sequence[Pair], width: Fraction) -> Interval:
    """Enclose the least μ for which no profile of the pairs is above δ_μ, to a relative width.

    Raises
    ------
    NotApplicableError
        If no μ is enough, as D_a/a is unbounded; or if it is not known how small levels bound μ.
    UndecidedError
        If the width is not reached, with what is known.
    """
    if limiting_mu(pairs) is not None:
        return enclose(lambda: known(limiting_mu(pairs)))
    if most([pair.max_loss() for pair in pairs]).is_finite():
        return bounded.least_mu(pairs, width)
    distinct: list[Pair] = []
    for pair in pairs:
        if pair.reverse() not in distinct:
            distinct.append(pair)
    with ctx.workprec(_PRECISION), narrowed(width / _FINER):
        return Interval.of_ball(most([_of_pair(pair, width) for pair in distinct]), _DIGITS)


def _of_pair(pair: Pair, width: Fraction) -> arb:
    own = limiting_mu([pair])
    if own is not None:
        return own
    if isinstance(pair, GaussianMixturePair):
        return mixture.least_mu(pair, width)
    both = [pair, pair.reverse()]
    if most([side.max_loss() for side in both]).is_finite():
        return bounded.least_mu(both, width).ball()
    if floor(pair) == arb.pos_inf():
        raise NotApplicableError(
            "No mu is enough: the Rényi divergences D_a of this mechanism are below no multiple of "
            "the order a, as those of every mu-GDP mechanism are. Ask for delta or epsilon."
        )
    if isinstance(pair, JointPair) and pair.is_product:
        return product.least_mu(pair, width, _of_pair)
    raise NotApplicableError(
        "The privacy loss is unbounded, and how small levels bound mu is not known: no search over "
        "finitely many epsilon does. Verify a mu-GDP claim, or compare at one delta."
    )
