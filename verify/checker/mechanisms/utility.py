"""Variances, errors and quantiles of mechanisms, a second time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate
from typing import Any, Final

from dpassay.verifier.checker.arithmetic import total
from dpassay.verifier.checker.declared import BY_MECHANISM
from dpassay.verifier.checker.masses import sum_of_squares, theta
from dpassay.verifier.checker.mechanisms import arguments, counters, local, matrices
from dpassay.verifier.checker.mechanisms.counters import COUNTERS
from dpassay.verifier.checker.mechanisms.counts import count_noise
from dpassay.verifier.checker.mechanisms.ellipse import ellipse
from dpassay.verifier.checker.mechanisms.gaussian import (
    correlated_parts,
    group_parts,
    one_sided_parts,
    optimal_groups,
)
from dpassay.verifier.checker.mechanisms.spaces import variances
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import UnknownError, apply, exp, log, sqrt

_LIKE_THE_INNER: Final = ("PoissonSubsampled", "RandomAllocation", "SampledWithoutReplacement")
_FARTHEST: Final = 1 << 20


def variance(noise: Noise, index: Any = None) -> Any:
    """Return the variance of a coordinate; the index may be left out where all are the same."""
    if noise.name in _LIKE_THE_INNER:
        return variance(noise["mechanism"], index)
    if noise.name == "Composed":
        return _variance_of_one(noise, index)
    length = _listed(noise)
    if index is None and length > 1:
        raise ValueError(f"the variances of {noise.name} differ")
    at = 0 if index is None or length == 1 else index
    if at != int(at) or not 0 <= at < length:
        raise ValueError(f"{noise.name} has no coordinate {at}")
    return _variance(noise, int(at))


def _variance_of_one(noise: Noise, index: Any) -> Any:
    """Return the variance of a composition of one release that has only one."""
    releases = noise["mechanism"] if isinstance(noise["mechanism"], list) else [noise["mechanism"]]
    if len(releases) > 1 or _listed(releases[0]) > 1:
        raise UnknownError("the variances of a composition")
    return variance(releases[0], index)


def _listed(noise: Noise) -> int:
    """Return the number of coordinates; 1 where they are all alike."""
    d = noise["dimension"]
    match noise.name:
        case "CorrelatedGaussian":
            return int(d) + 1 if noise["release_size"] else 1
        case "DiscreteCorrelatedGaussian":
            return int(d) + 1
        case "KnownSizeGaussian":
            return 1 if noise["size_mu"] is None else int(d) + 1
        case "DisjointGroupsGaussian":
            return int(noise["groups"] * (d + 1))
        case "EllipticalGaussian":
            return len(noise["sensitivities"])
        case "OneSidedGaussian":
            return len(noise["bounds"]) + 1
        case "GeneralGaussian":
            return _spread(noise["covariance"])
        case "MatrixVariateGaussian":
            sides = [noise["row_covariance"], noise["column_covariance"]]
            if max(map(_spread, sides)) == 1:
                return 1
            return arguments.dimension(sides[0]) * arguments.dimension(sides[1])
        case _ if noise.name in (*COUNTERS, "DiscreteKaryTree", "MatrixMechanism"):
            return int(noise["steps"])
    return 1


def _spread(covariance: Noise) -> int:
    common = covariance.name in ("Isotropic", "Exchangeable")
    return 1 if common else arguments.dimension(covariance)


def _variance(noise: Noise, index: int) -> Any:
    mu = noise["mu"]
    if noise.name in BY_MECHANISM:
        return BY_MECHANISM[noise.name].variance(noise)
    match noise.name:
        case "Gaussian" | "MixtureOfGaussians":
            return noise["standard_deviation"] * noise["standard_deviation"]
        case "Laplace" | "LaplaceVector":
            return 2 * noise["scale"] * noise["scale"]
        case "DiscreteLaplace":
            return _geometric(noise["scale"])
        case "DiscreteGaussian":
            return _discrete_gaussian(noise["parameter"])
        case "BoundedCountNoise":
            return count_noise(noise["epsilon"], noise["eta"], noise["support"]).variance()
        case "IntegerNoise":
            return _moment(noise, 2) - _moment(noise, 1) ** 2
        case "RankOneGaussian":
            return noise["sigma_star"] / noise["dimension"]
        case "RandomizedResponse" if noise["categories"] == 2:
            odds = exp(noise["epsilon"])
            return odds / ((1 + odds) * (1 + odds))
        case "Staircase":
            return _staircase(noise)
        case "EllipticalGaussian":
            entries = noise["sensitivities"]
            return entries[index] * total(entries) / (mu * mu)
        case "OneSidedGaussian":
            number, alone = one_sided_parts(noise)
            if index == len(alone):
                return number / (mu * mu)
            bound = noise["bounds"][index]
            return (alone[index] + bound * bound * number / 4) / (mu * mu)
        case "GeneralGaussian":
            return variances(noise["covariance"])[index]
        case "MatrixVariateGaussian":
            rows, columns = noise["row_covariance"], noise["column_covariance"]
            row, column = divmod(index, arguments.dimension(columns))
            return variances(rows)[row] * variances(columns)[column]
        case "CorrelatedGaussian":
            size, own = correlated_parts(noise)
            last = index == noise["dimension"]
            return (size if last else (size + own) / 4) / (mu * mu)
        case "KnownSizeGaussian":
            size_mu = noise["size_mu"]
            size = Fraction(0) if size_mu is None else 1 / (size_mu * size_mu)
            if index == noise["dimension"]:
                return size
            return (noise["dimension"] / (mu * mu) + size) / 4
        case "DisjointGroupsGaussian":
            shared, own = group_parts(noise)
            last = index % (noise["dimension"] + 1) == noise["dimension"]
            return (4 * shared if last else shared + own) / (mu * mu)
        case "CountEllipse" | "OptimalEllipse":
            return ellipse(noise).query_variance / (mu * mu)
        case "OptimalGroups":
            groups, d = noise["groups"], noise["counts"]
            ones, sums, rest = optimal_groups(noise)
            trace = ones + sums * (groups - 1) + rest * (groups * (d - 1))
            return trace / (groups * d * mu * mu)
        case "DiscreteCorrelatedGaussian":
            c, square = noise["c"], mu * mu
            v = (noise["dimension"] + c * c) / square
            own, size = _discrete_gaussian(v), _discrete_gaussian(v * c.denominator**2)
            size = size / c.numerator**2
            return size if index == noise["dimension"] else (own + size) / 4
        case "MatrixMechanism":
            sigma = noise["noise_multiplier"]
            return sigma * sigma * matrices.error_units(noise, index)
        case "DiscreteKaryTree":
            return _tree_noise(noise) * counters.output_units(_continuous(noise), index + 1)
        case _ if noise.name in COUNTERS:
            return counters.unit_variance(noise) * counters.output_units(noise, index + 1)
        case _ if noise.name in local.ARGUMENTS:
            return local.variance(noise)
    raise ValueError(f"{noise.name} has no variance of its own")


def mean_squared_error(noise: Noise) -> Any:
    """Return the average of the variances; of biased noise, of the mean squares."""
    match noise.name:
        case "PoissonSubsampled" | "RandomAllocation" | "SampledWithoutReplacement":
            return mean_squared_error(noise["mechanism"])
        case "Composed":
            inside = noise["mechanism"]
            releases = inside if isinstance(inside, list) else [inside]
            errors = (dimension(one) * mean_squared_error(one) for one in releases)
            return sum(errors, Fraction(0)) / sum(map(dimension, releases))
        case "IntegerNoise":
            return _moment(noise, 2)
        case _ if noise.name in local.ARGUMENTS:
            return local.mean_squared_error(noise)
        case "RandomizedResponse" if noise["categories"] == 2:
            return 1 / (1 + exp(noise["epsilon"]))
        case "MatrixMechanism":
            sigma = noise["noise_multiplier"]
            return sigma * sigma * matrices.mean_units(noise)
        case "DiscreteKaryTree":
            units = counters.units(_continuous(noise)) / noise["steps"]
            return _tree_noise(noise) * units
        case _ if noise.name in COUNTERS:
            return counters.unit_variance(noise) * (counters.units(noise) / noise["steps"])
        case "EllipticalGaussian":
            whole, mu = total(noise["sensitivities"]), noise["mu"]
            return whole * whole / (mu * mu * len(noise["sensitivities"]))
        case "OneSidedGaussian":
            every = range(_listed(noise))
            return total([_variance(noise, index) for index in every]) / len(every)
        case "GeneralGaussian":
            return _mean_variance(noise["covariance"])
        case "MatrixVariateGaussian":
            sides = (noise["row_covariance"], noise["column_covariance"])
            return _mean_variance(sides[0]) * _mean_variance(sides[1])
    if _listed(noise) == 1:
        return variance(noise)
    d = noise["dimension"]  # counts of one law, and a size: in every group
    return (d * variance(noise, 0) + variance(noise, d)) / (d + 1)


def _mean_variance(covariance: Noise) -> Fraction:
    entries = variances(covariance)
    return sum(entries, Fraction(0)) / len(entries)


def dimension(noise: Noise) -> Any:
    """Return the number of coordinates of the true answer."""
    match noise.name:
        case "LaplaceVector":
            return Fraction(len(noise["shifts"]))
        case "EllipticalGaussian":
            return Fraction(len(noise["sensitivities"]))
        case "OneSidedGaussian":
            return Fraction(len(noise["bounds"]))
        case "OptimalGroups":
            return noise["groups"] * noise["counts"]
        case "Shuffled":
            return Fraction(noise["mechanism"]["categories"])
        case _ if noise.name in local.ARGUMENTS:
            return noise["categories"]
        case "GeneralGaussian":
            return Fraction(arguments.dimension(noise["space"]))
        case "MatrixVariateGaussian":
            sides = (noise["row_covariance"], noise["column_covariance"])
            return Fraction(arguments.dimension(sides[0]) * arguments.dimension(sides[1]))
        case "Composed":
            inside = noise["mechanism"]
            each = sum(map(dimension, inside if isinstance(inside, list) else [inside]))
            return each * noise["count"]
        case "PoissonSubsampled" | "SampledWithoutReplacement":
            return dimension(noise["mechanism"])
    return noise["dimension"] or noise["steps"] or Fraction(1)


def quantile(noise: Noise, probability: Any) -> Any:
    """Return the least x with P(noise ≤ x) ≥ p, 0 < p < 1, where all coordinates are alike."""
    if not 0 < probability < 1:
        raise UnknownError("a quantile at 0 or 1")
    if noise.name in BY_MECHANISM:
        return BY_MECHANISM[noise.name].quantile(noise, probability)
    match noise.name:
        case "PoissonSubsampled" | "RandomAllocation" | "SampledWithoutReplacement":
            return quantile(noise["mechanism"], probability)
        case "Laplace" | "LaplaceVector":
            rest = 1 - probability
            below = probability <= Fraction(1, 2)
            size = log(2 * (probability if below else rest))
            return noise["scale"] * (size if below else -size)
        case "Gaussian" | "MixtureOfGaussians":
            return noise["standard_deviation"] * score(probability)
        case (
            "CorrelatedGaussian"
            | "CountEllipse"
            | "KnownSizeGaussian"
            | "OptimalEllipse"
            | "OptimalGroups"
        ):
            return sqrt(variance(noise)) * score(probability)
    rest = 1 - probability
    beyond = _beyond(noise)

    def reached(x: int) -> bool:
        return bool(beyond(x) <= rest)

    low, high = -1, 1
    while reached(low) and low > -_FARTHEST:
        low *= 2
    while not reached(high) and high < _FARTHEST:
        high *= 2
    if max(-low, high) >= _FARTHEST:
        raise UnknownError("a quantile beyond a million")
    return Fraction(low + 1 + bisect_left(range(low + 1, high), True, key=reached))


def score(probability: Any) -> Any:
    """Return Φ⁻¹(p)."""
    if not 0 < probability < 1:
        raise ValueError("a normal quantile of a number that is no probability")
    return Fraction(0) if probability == Fraction(1, 2) else apply("Phi_inverse", probability)


def _beyond(noise: Noise) -> Callable[[int], Any]:
    """Return x ↦ P(Z > x) of integer noise."""
    match noise.name:
        case "DiscreteGaussian":
            v = noise["parameter"]
            return lambda x: theta(v, Fraction(x + 1)) / theta(v)
        case "DiscreteLaplace":
            r = exp(-1 / noise["scale"])
            return lambda x: r ** (x + 1) / (1 + r) if x >= 0 else 1 - r**-x / (1 + r)
        case "BoundedCountNoise":
            law = count_noise(noise["epsilon"], noise["eta"], noise["support"])
            d, eta = law.d, noise["eta"]

            def beyond(x: int) -> Any:
                if abs(2 * x + 1) > 2 * d:
                    return Fraction(int(x < 0))
                if x in (0, -1):  # the law is symmetric
                    return (1 + (1 if x else -1) * eta) / 2
                tail = total([law.mass(z) for z in range(max(x, -x - 1) + 1, d + 1)])
                return tail if x > 0 else 1 - tail

            return beyond
        case "IntegerNoise":
            lowest, sums = int(noise["lowest"]), list(accumulate(noise["probabilities"]))
            return lambda x: Fraction(1) if x < lowest else 1 - sums[min(x - lowest, len(sums) - 1)]
    raise UnknownError(f"the quantile of {noise.name}")


def _geometric(scale: Any) -> Any:
    """Return 2r/(1 − r)² for r = e^{−1/b}."""
    r = exp(-1 / scale)
    fall = 1 - r
    return 2 * r / (fall * fall)


def _discrete_gaussian(parameter: Any) -> Any:
    """Return Σ z² e^{−z²/2v} over Σ e^{−z²/2v}."""
    return sum_of_squares(parameter) / theta(parameter)


def _moment(noise: Noise, power: int) -> Fraction:
    lowest = noise["lowest"]
    terms = ((lowest + z) ** power * p for z, p in enumerate(noise["probabilities"]))
    return sum(terms, Fraction(0))


def _staircase(noise: Noise) -> Any:
    """Return 2aΔ² Σ_k b^k (k²A + kB + C/3), the second moment of the steps k and their parts.

    The part of width γ has ((k + γ)³ − k³)/3 = k²γ + kγ² + γ³/3, the other one b times the rest to
    ((k + 1)³ − k³)/3; the height is a = (1 − b)/(2A).
    """
    gamma, b = noise["gamma"], exp(-noise["epsilon"])
    one, two, three = (
        power + b * (1 - power) for power in (gamma, gamma * gamma, gamma * gamma * gamma)
    )
    fall = 1 - b
    sums = one * b * (1 + b) / (fall * fall) + two * b / fall + three / 3
    return noise["sensitivity"] * noise["sensitivity"] * sums / one


def _continuous(noise: Noise) -> Noise:
    """Return the same tree with Laplace noise."""
    return Noise("KaryTree", noise.arguments)


def _tree_noise(noise: Noise) -> Any:
    return _geometric(counters.sums_of_an_input(noise) / noise["epsilon"])
