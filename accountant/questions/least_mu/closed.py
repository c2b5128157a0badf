"""Least μ that are known without a search, and limits at small levels."""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb

from dpassay.accountant.composition.invert import most
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.pairs.gaussian_mixture import GaussianMixturePair
from dpassay.accountant.pairs.random_allocation import RandomAllocationPair
from dpassay.accountant.pairs.subsampled import SubsampledPair
from dpassay.accountant.questions.least_mu import mixture


def limiting_mu(pairs: Sequence[Pair]) -> arb | None:
    """Return the least μ of worst pairs, where small levels alone decide it; else None.

    It is that of Gaussian releases, subsampled or mixed in any way. Let them have the shifts μ_i
    and sampling rates q_i > 0, μ² = Σ μ_i². A test of level α has a power of at least
    Π q_i Φ(μ − z_α), which as α falls is more than that of any smaller μ; and μ is enough, for
    hockey-stick divergences are jointly convex. An epoch of random allocation to t steps is one
    with q = 1/t: a test may look at its first step alone.
    """
    found = [mu_of_all(pair) for pair in pairs]
    return None if any(mu is None for mu in found) else most([known(mu) for mu in found])


def mu_of_all(pair: Pair) -> arb | None:
    """Return the μ of Gaussian releases as if none was subsampled; None for other pairs.

    Of a mixture of normal laws beside a single one it is that of the largest shift.
    """
    if isinstance(pair, GaussianPair):
        return pair.mu()
    if isinstance(pair, RandomAllocationPair):
        return pair.mu.ball()
    if isinstance(pair, GaussianMixturePair) and min(len(pair.p), len(pair.q)) == 1:
        return pair.largest_shift()
    if isinstance(pair, SubsampledPair):
        return mu_of_all(pair.inner)
    if not isinstance(pair, Product):
        return None
    parts = [(mu_of_all(part), count) for part, count in pair.factors]
    if any(mu is None for mu, _ in parts):
        return None
    return sum((count * known(mu) ** 2 for mu, count in parts), start=arb(0)).sqrt()


def known(mu: arb | None) -> arb:
    """Return what is not None."""
    assert mu is not None
    return mu


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
        return mixture.shift(pair)
    if isinstance(pair, Product):
        squares = (count * _at_one_end(part) ** 2 for part, count in pair.factors)
        return sum(squares, start=arb(0)).sqrt()
    rho = pair.closed_rho()
    return arb(0) if rho is None else (2 * rho).sqrt()
