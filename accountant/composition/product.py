"""The pair of a composition, by the first exact engine that applies.

- Laplace laws: one contour for many releases, else the expansion of
  `accountant.pairs.laplace_product`, any distances with rational ratios.
- Discrete Gaussian laws of one parameter and one shift: powers of polynomials,
  `accountant.pairs.discrete_gaussian_product`.
- Finite laws and discrete Laplace laws: the law of the sum of their losses,
  `accountant.composition.convolution`.
- Gaussian laws, subsampled or not: certified contour integrals,
  `accountant.composition.saddle_pair`.
- One of the former, or any single pair, times finite laws: a sum over the values of the loss of
  the latter, `accountant.composition.mixture`.
- Laplace noise and lists beside each other or beside Gaussian noise, and very many Laplace
  releases: the same contour integrals, where so many releases have densities that atoms do not
  count.
- Very many releases of finite laws, or of discrete Gaussian ones of a small parameter, on one
  lattice: sums over a part of the circle, `accountant.composition.circle`.
- Laplace noise, or bounded losses, beside discrete Gaussian noise of one kind: a sum over the
  values of the latter's loss, `accountant.composition.integer_mixture`.
- Other lists of values: sums over pairs of partial sums, `accountant.composition.paired` for few
  releases, `accountant.composition.halved` for more, where these are not too many.
- Few releases of one subsampled Laplace noise: polynomials between breaks,
  `accountant.composition.pieces`.
- Other losses among lists of values, (subsampled) Laplace noise and mixtures of normal laws:
  Fourier inversion, `accountant.composition.atoms`.
- Rank-one Gaussian noise, and all that is beside it: two quick bounds,
  `accountant.composition.heavy`.
- Everything else: two discretised laws that bracket it, `accountant.composition.grid`.

Gaussian laws compose by their μ alone; the mechanism adds those up before it comes here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from accountant.composition import (
    atoms,
    circle,
    expanded,
    halved,
    heavy,
    paired,
    pieces,
    saddle_pair,
)
from accountant.composition.apart import apart
from accountant.composition.circle import CirclePair
from accountant.composition.convolution import MAX_VALUES, ConvolvedPair
from accountant.composition.finite import finite
from accountant.composition.grid import GridPair
from accountant.composition.integer_mixture import IntegerMixedPair, meets_few, split
from accountant.composition.joint import Factor, JointPair
from accountant.composition.ladder import LadderPair
from accountant.composition.mixture import MAX_VALUES as MAX_MIXED
from accountant.composition.mixture import MixedPair
from accountant.composition.saddle_pair import SmoothPair, transform
from accountant.composition.subsampling import SubsampledPair
from accountant.mechanisms.laplace import LaplacePair
from accountant.number import ExactReal
from accountant.pair import Pair
from accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from accountant.pairs.discrete_gaussian_product import DiscreteGaussianProductPair, is_long
from accountant.pairs.finite import FinitePair
from accountant.pairs.gaussian_mixture import GaussianMixturePair
from accountant.pairs.laplace_product import LaplaceProductPair

MAX_LAPLACE = 100_000
"""Most Laplace coordinates whose distances are listed."""
FEW = 80
"""Releases up to which a sum over integers is faster than inversion."""


def product(factors: Sequence[Factor]) -> Pair:
    """Return the pair (⊗ P_i^{k_i}, ⊗ Q_i^{k_i}).

    Exactly where the losses have an exact sum that is short; else for an engine that reaches a
    width.
    """
    found = _exactly(apart(factors, coordinates=False))
    if found is None:
        single = apart(factors)
        found = _exactly(single) or _numerically(single)
    return found


def _exactly(factors: Sequence[Factor]) -> Pair | None:
    """Return a pair with exact sums, or contours of any precision; None where none is known."""
    laplace: list[tuple[LaplacePair | LaplaceProductPair, int]] = []
    integers: dict[DiscreteGaussianPair, int] = {}
    listed: dict[FinitePair, int] = {}
    others: list[Factor] = []
    for pair, count in factors:
        small = finite(pair)
        if small is not None:
            listed[small] = listed.get(small, 0) + count
        elif isinstance(pair, (LaplacePair, LaplaceProductPair)):
            laplace.append((pair, count))
        elif isinstance(pair, DiscreteGaussianPair):
            integers[pair] = integers.get(pair, 0) + count
        else:
            others.append((pair, count))
    others = _smooth(others)
    kinds = sum(count for _, count in others) + len(integers) + bool(laplace)
    if kinds > 1 or _coordinates(laplace) > MAX_LAPLACE or not _commensurable(laplace):
        return None
    for integer, count in integers.items():
        if is_long(integer.parameter, count):
            return None
        whole = _discrete_gaussians(integer, count)
        if whole is None:
            return None
        others.append((whole, 1))
    if laplace:
        others.append((_laplace(laplace), 1))
    if not listed:
        return others[0][0]
    if not others and len(listed) == 1 and sum(listed.values()) == 1:
        return next(iter(listed))
    sums = ConvolvedPair(tuple(listed.items()))
    if sums.size() > (MAX_MIXED if others else MAX_VALUES):
        return None
    return MixedPair(others[0][0], sums) if others else sums


def _numerically(factors: Sequence[Factor]) -> Pair:
    """Return the product for an engine that reaches a width, not any width."""
    all_factors = tuple(factors)
    rungs = _rungs(all_factors)
    if (integer := _beside_integers(all_factors)) is not None:
        few = sum(count for _, count in all_factors) <= FEW
        rungs = [integer, *rungs] if few else [*rungs, integer]
    if saddle_pair.applies(tuple(pair for pair, _ in all_factors)):
        rungs = [SmoothPair(all_factors), *rungs]
    elif circle.applies(tuple(pair for pair, _ in all_factors)):
        rungs = [CirclePair(all_factors), *rungs]
    if expanded.applies(all_factors):
        rungs = [expanded.ExpandedPair(all_factors), *rungs]
    return rungs[0] if len(rungs) == 1 else LadderPair(tuple(rungs))


def _beside_integers(factors: tuple[Factor, ...]) -> IntegerMixedPair | None:
    """Return discrete Gaussian noise of one kind beside Laplace noise, or bounded losses."""
    found = split(factors)
    if found is None:
        return None
    others, (integer, count) = found
    assert isinstance(integer, DiscreteGaussianPair)
    if all(isinstance(pair, (LaplacePair, LaplaceProductPair)) for pair, _ in others):
        first = _exactly(others)
        return None if first is None else IntegerMixedPair(first, integer, count)
    first = _numerically(others)
    quick = not isinstance(first, GridPair) and meets_few(first, integer)
    return IntegerMixedPair(first, integer, count) if quick else None


def _rungs(factors: tuple[Factor, ...]) -> list[JointPair]:
    """Return the product in the forms that engines of sixteen digits take, the best first."""
    each = tuple(pair for pair, _ in factors)
    if halved.applies(each):
        in_balls = [paired.PairedPair(factors)] if paired.applies(factors) else []
        return [*in_balls, halved.HalvedPair(factors), atoms.AtomicPair(factors)]
    if heavy.applies(each):
        return [heavy.HeavyPair(factors)]
    if not atoms.applies(each):
        return [GridPair(factors)]
    if pieces.applies(factors):
        first, second = pieces.PiecewisePair(factors), atoms.AtomicPair(factors)
        few = factors[0][1] <= pieces.FEW
        return [first, second, GridPair(factors)] if few else [second, first, GridPair(factors)]
    if any(isinstance(pair, (SubsampledPair, GaussianMixturePair)) for pair in each):
        return [atoms.AtomicPair(factors), GridPair(factors)]
    return [atoms.AtomicPair(factors)]


def _coordinates(factors: Sequence[tuple[LaplacePair | LaplaceProductPair, int]]) -> int:
    return sum(
        count * (1 if isinstance(pair, LaplacePair) else len(pair.multiples))
        for pair, count in factors
    )


def _commensurable(factors: Sequence[tuple[LaplacePair | LaplaceProductPair, int]]) -> bool:
    """Whether all distances have rational ratios."""
    sizes = [pair.distance if isinstance(pair, LaplacePair) else pair.unit for pair, _ in factors]
    return all((size / sizes[0]).rational is not None for size in sizes)


def _smooth(factors: list[Factor]) -> list[Factor]:
    """Put smooth losses together, where there are several."""
    smooth = [factor for factor in factors if transform(factor[0]) is not None]
    if sum(count for _, count in smooth) < 2:
        return factors
    rest = [factor for factor in factors if transform(factor[0]) is None]
    return [(SmoothPair(tuple(smooth)), 1), *rest]


def _laplace(factors: Sequence[tuple[LaplacePair | LaplaceProductPair, int]]) -> Pair:
    if len(factors) == 1 and factors[0][1] == 1:
        return factors[0][0]
    distances: Counter[ExactReal] = Counter()
    for pair, count in factors:
        if isinstance(pair, LaplacePair):
            distances[pair.distance] += count
            continue
        for number, times in pair.groups:
            distances[ExactReal.of_rational(number) * pair.unit] += count * times
    return LaplaceProductPair.of_counts(distances)


def _discrete_gaussians(pair: DiscreteGaussianPair, count: int) -> Pair | None:
    """Return the product; None for several of an irrational parameter."""
    if count == 1:
        return pair
    if pair.parameter.rational is None:
        return None
    return DiscreteGaussianProductPair(pair.parameter.rational, count, pair.shift, 1, 0)
