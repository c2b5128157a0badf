"""Products among whose factors are products, taken apart into factors that are none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accountant.composition.joint import Factor, JointPair
from accountant.number import ExactReal
from accountant.pair import Pair
from accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from accountant.pairs.discrete_gaussian_product import DiscreteGaussianProductPair


def apart(factors: Sequence[Factor], *, coordinates: bool = True) -> tuple[Factor, ...]:
    """Return the distinct factors of a product with their counts, none of them a product itself.

    Discrete Gaussian noise on several coordinates, which has exact sums of its own, is taken apart
    if `coordinates` is asked for.

    A mechanism may have a product as its worst pair (a tree of noise, noise on several
    coordinates). Products of products are products of all the factors, which engines know.
    """
    found: dict[Pair, int] = {}
    for pair, count in factors:
        for inner, times in _parts(pair, coordinates):
            found[inner] = found.get(inner, 0) + count * times
    return tuple(found.items())


def _parts(pair: Pair, coordinates: bool) -> Iterator[Factor]:
    if isinstance(pair, DiscreteGaussianProductPair) and coordinates:
        square = ExactReal.of_rational(pair.scale**2 * pair.parameter)
        yield DiscreteGaussianPair(ExactReal.of_rational(pair.parameter), pair.shift), pair.count
        if pair.last_shift:
            yield DiscreteGaussianPair(square, pair.last_shift), 1
    elif isinstance(pair, JointPair) and pair.is_product:
        yield from apart(pair.factors, coordinates=coordinates)
    else:
        yield pair, 1
