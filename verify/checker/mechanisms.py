"""What a mechanism's arguments say of its worst pairs and variances, derived a second time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from verify.checker.arithmetic import UnknownError, agree
from verify.checker.composed import Law, alike
from verify.checker.masses import masses
from verify.checker.reals import exp, sqrt

WRAPPERS = ("Composed", "PoissonSubsampled", "SampledWithoutReplacement")
"""Mechanisms whose first argument, a mechanism, may stand without its name."""

_LEAST_DIMENSION = 3
_MOST_LAPLACE = 100_000
_LISTS = ("finite", "discrete-laplace")
_DEFAULTS = {
    **dict.fromkeys(("l1_sensitivity", "l2_sensitivity", "sensitivity"), Fraction(1)),
    "categories": Fraction(2),
    "count": Fraction(1),
}
_NOTHING: list[Law] = [{"law": "finite", "p": [Fraction(1)], "q": [Fraction(1)]}]
"""A release that says nothing."""


@final
@dataclass(frozen=True)
class Noise:
    """A mechanism as it is named: its arguments are numbers, texts, lists or mechanisms."""

    name: str
    arguments: dict[str, Any]
    adjacency: str | None = None
    """The relation, where it was noted (`under`)."""

    def __getitem__(self, argument: str) -> Any:
        return self.arguments.get(argument, _DEFAULTS.get(argument))


_ARGUMENTS = {
    "Gaussian": ("standard_deviation",),
    "Laplace": ("scale",),
    "LaplaceVector": ("scale", "shifts"),
    "DiscreteLaplace": ("scale",),
    "TruncatedGeometric": ("scale", "low", "high"),
    "DiscreteGaussian": ("parameter",),
    "EllipticalGaussian": ("sensitivities", "mu"),
    "Staircase": ("epsilon", "gamma"),
    "RandomizedResponse": ("epsilon",),
    "RankOneGaussian": ("dimension", "sigma_star"),
    "Tabulated": ("p", "q"),
    "IntegerNoise": ("probabilities", "lowest"),
    "Composed": ("mechanism",),
    "PoissonSubsampled": ("mechanism", "sampling_prob"),
    "SampledWithoutReplacement": ("mechanism", "sample_size", "population"),
    "MixtureOfGaussians": ("standard_deviation", "sensitivities", "sampling_probs"),
}
"""The arguments that each mechanism needs; more of them are among the defaults."""

_LAWS = ("probabilities", "sampling_probs")
_POSITIVE = ("standard_deviation", "scale", "parameter", "sigma_star", "mu", *_DEFAULTS)


def _require(noise: Noise) -> None:
    """Raise ValueError where an argument is missing, unknown or out of its range."""
    given, needed = noise.arguments, _ARGUMENTS[noise.name]
    if missing := [name for name in needed if name not in given]:
        raise ValueError(f"{noise.name} needs {missing[0]}")
    if unknown := [name for name in given if name not in (*needed, *_DEFAULTS)]:
        raise ValueError(f"{noise.name} has no argument {unknown[0]}")
    masses = [given[name] for name in ("p", "q", *_LAWS) if name in needed]
    wrong = [name for name in _POSITIVE if name in given and not given[name] > 0]
    if "epsilon" in needed and given["epsilon"] < 0:
        wrong.append("epsilon")
    if "gamma" in needed and not 0 <= given["gamma"] <= 1:
        wrong.append("gamma")
    if "low" in needed and not noise["sensitivity"] <= given["high"] - given["low"]:
        wrong.append("sensitivity")
    if noise["count"] != int(noise["count"]):
        wrong.append("count")
    if "sampling_prob" in needed and not 0 <= given["sampling_prob"] <= 1:
        wrong.append("sampling_prob")
    if "population" in needed and not 1 <= given["sample_size"] <= given["population"]:
        wrong.append("sample_size")
    small = "dimension" in needed and given["dimension"] < _LEAST_DIMENSION
    if small or noise["categories"] < 2:
        wrong.append("dimension" if small else "categories")
    if any(min(law) < 0 or not agree(sum(law), Fraction(1)) for law in masses):
        wrong.append("probabilities")
    if wrong:
        raise ValueError(f"{noise.name} with {wrong[0]} out of its range")


def pairs(noise: Noise) -> list[Law]:
    """Derive the worst pairs of a mechanism from its arguments, or raise UnknownError."""
    if noise.name in _ARGUMENTS:
        _require(noise)
    match noise.name:
        case "Gaussian":
            mu = noise["l2_sensitivity"] / noise["standard_deviation"]
            return [{"law": "gaussian", "mu": mu}]
        case "Laplace":
            return [{"law": "laplace", "distance": noise["l1_sensitivity"] / noise["scale"]}]
        case "LaplaceVector":
            distances = sorted(abs(shift) / noise["scale"] for shift in noise["shifts"])
            return [{"law": "laplace-product", "distances": distances}]
        case "DiscreteLaplace" | "TruncatedGeometric":
            law = {"law": "discrete-laplace", "scale": noise["scale"]}
            return [{**law, "shift": noise["sensitivity"]}]
        case "DiscreteGaussian":
            law = {"law": "discrete-gaussian", "parameter": noise["parameter"]}
            return [{**law, "shift": noise["sensitivity"]}]
        case "EllipticalGaussian":  # Σ Δ_j²/σ_j² = μ² for σ_j² = Δ_j Σ Δ_i/μ²
            return [{"law": "gaussian", "mu": noise["mu"]}]
        case "Staircase":
            decay, gamma = exp(-noise["epsilon"]), noise["gamma"]
            height = (1 - decay) / (2 * (gamma + decay * (1 - gamma)))
            side = Fraction(1, 2) + height * min(gamma, 1 - gamma)
            middle = height * abs(1 - 2 * gamma) * (decay if 2 * gamma < 1 else 1)
            return [
                {
                    "law": "finite",
                    "p": [side, middle, decay * side],
                    "q": [decay * side, middle, side],
                }
            ]
        case "RandomizedResponse":
            odds, rest = exp(noise["epsilon"]), noise["categories"] - 2
            p = [entry / (odds + rest + 1) for entry in (odds, rest, Fraction(1))]
            return [{"law": "finite", "p": p, "q": p[::-1]}]
        case "RankOneGaussian":
            ratio = noise["l2_sensitivity"] / sqrt(noise["sigma_star"])
            return [{"law": "rank-one-gaussian", "dimension": noise["dimension"], "ratio": ratio}]
    remove, add = _directions(noise)
    return remove + [law for law in add if law not in remove]


def _directions(noise: Noise) -> tuple[list[Law], list[Law]]:
    """Derive the worst pairs for removing a record, and for adding one."""
    if noise.name in _ARGUMENTS:
        _require(noise)
    match noise.name:
        case "Composed":
            return _composition(noise)
        case "PoissonSubsampled" | "SampledWithoutReplacement":
            return _sample(noise)
        case "MixtureOfGaussians":
            return _mixture(noise)
        case "Tabulated":
            return _both_ways((list(noise["p"]), list(noise["q"])))
        case "IntegerNoise":
            listed, found = list(noise["probabilities"]), []
            for shift in range(1, int(noise["sensitivity"]) + 1):
                padding = [Fraction(0)] * shift
                found.append((padding + listed, listed + padding))
            return _both_ways(*found)
        case _ if noise.name in _ARGUMENTS:
            laws = pairs(noise)
            return laws, laws
    raise UnknownError(f"the law of {noise.name}")


def enveloped(noise: Noise) -> bool:
    """Whether neighbours are known to be dominated by the largest of several profiles alone.

    Of a sample without replacement records that are unlike both of two exchanged ones may lie
    between its two extremes.
    """
    inside = noise.arguments.get("mechanism")
    releases = inside if isinstance(inside, list) else [inside]
    between = noise.name == "SampledWithoutReplacement"
    if between and noise["sample_size"] < noise["population"]:
        return True
    return any(enveloped(release) for release in releases if isinstance(release, Noise))


def under(noise: Noise, adjacency: str | None) -> Noise:
    """Return the mechanism with a relation noted: the pair of a Poisson sample depends on it."""
    if noise.name not in WRAPPERS or adjacency is None:
        return noise
    inside = noise["mechanism"]
    known = (
        [under(release, adjacency) for release in inside]
        if isinstance(inside, list)
        else under(inside, adjacency)
    )
    return Noise(noise.name, {**noise.arguments, "mechanism": known}, adjacency)


def _sample(noise: Noise) -> tuple[list[Law], list[Law]]:
    """Mix the pairs of a release (A, B): (1 − q)B + qA and B, or A and (1 − q)A + qB.

    A replaced record of a Poisson sample of Gaussian noise is there with probability q, before and
    after, and moves the answer by ±μ: the two laws are reflections of each other.
    """
    remove, add = _directions(noise["mechanism"])
    if noise.name == "PoissonSubsampled" and noise.adjacency == "replace-one":
        found = [_replaced(remove[0]["mu"], noise["sampling_prob"])]
        return found, found
    if noise.name == "PoissonSubsampled":
        q = noise["sampling_prob"]
    else:  # the worse of both mixtures of every pair
        q = Fraction(noise["sample_size"]) / noise["population"]
        remove = add = remove + [law for law in add if law not in remove]
    if q == 0:
        return _NOTHING, _NOTHING
    if q == 1:
        return remove, add
    return [_mixed(law, q, first=True) for law in remove], [
        _mixed(law, q, first=False) for law in add
    ]


def _replaced(mu: Any, q: Any) -> Law:
    if q == 0:
        return _NOTHING[0]
    if q == 1:
        return {"law": "gaussian", "mu": 2 * mu}
    rest, none = 1 - q, Fraction(0)
    return {"law": "gaussian-mixture", "p": [[rest, none], [q, mu]], "q": [[q, -mu], [rest, none]]}


def _mixed(law: Law, q: Any, *, first: bool) -> Law:
    """Mix one side of a pair, of a list outcome by outcome."""
    if law["law"] not in _LISTS:
        side = "P" if first else "Q"
        return {"law": "subsampled", "sampling_prob": q, "mixture": side, "pair": law}
    mixed = [
        ((1 - q) * b + q * a, b) if first else (a, (1 - q) * a + q * b) for a, b in masses(law)
    ]
    return {"law": "finite", "p": [p for p, _ in mixed], "q": [q for _, q in mixed]}


def _mixture(noise: Noise) -> tuple[list[Law], list[Law]]:
    """Return the mixture of shifted normal laws against N(0, 1), and the reverse."""
    sizes, weights = noise["sensitivities"], noise["sampling_probs"]
    if len(sizes) != len(weights) or min(sizes) < 0:
        raise ValueError("MixtureOfGaussians with sensitivities out of their range")
    joint: dict[Any, Any] = {}
    for size, weight in zip(sizes, weights, strict=True):
        mean = size / noise["standard_deviation"]
        joint[mean] = joint.get(mean, 0) + weight
    entries = sorted((mean, weight) for mean, weight in joint.items() if weight)
    if entries[-1][0] == 0:
        return _NOTHING, _NOTHING
    largest = {"law": "gaussian", "mu": entries[-1][0]}
    if len(entries) == 1:
        return [largest], [largest]
    if len(entries) == 2 and entries[0][0] == 0:
        q = entries[-1][1]
        return [_mixed(largest, q, first=True)], [_mixed(largest, q, first=False)]
    shifted, plain = [[w, mean] for mean, w in entries], [[Fraction(1), Fraction(0)]]
    return (
        [{"law": "gaussian-mixture", "p": shifted, "q": plain}],
        [{"law": "gaussian-mixture", "p": plain, "q": shifted}],
    )


def _composition(noise: Noise) -> tuple[list[Law], list[Law]]:
    """Multiply the pairs of all releases, in each direction."""
    inside, count = noise["mechanism"], int(noise["count"])
    releases = inside if isinstance(inside, list) else [inside]
    if not releases:
        raise ValueError("Composed of nothing")
    ways = [_directions(release) for release in releases]
    if len(ways) == count == 1:
        return ways[0]
    if any(len(laws) != 1 for way in ways for laws in way):
        raise UnknownError("the worst pair of this composition")
    remove, add = ([way[side][0] for way in ways] for side in (0, 1))
    first = [_product(remove, count)]
    return first, first if remove == add else [_product(add, count)]


def _product(laws: list[Law], count: int) -> Law:
    """Return a Gaussian law (the μ² add up), Laplace laws, or a product."""
    kinds = {law["law"] for law in laws}
    if kinds == {"gaussian"}:
        squares = sum(law["mu"] ** 2 for law in laws)
        return {"law": "gaussian", "mu": sqrt(count * squares)}
    if kinds <= {"laplace", "laplace-product"}:
        distances = [d for law in laws for d in law.get("distances", [law.get("distance")])]
        if count * len(distances) <= _MOST_LAPLACE:
            return {"law": "laplace-product", "distances": sorted(count * distances)}
    return {"law": "product", "factors": laws, "counts": [count] * len(laws)}


def _both_ways(*found: tuple[list[Any], list[Any]]) -> tuple[list[Law], list[Law]]:
    remove = [{"law": "finite", "p": p, "q": q} for p, q in found]
    return remove, [{"law": "finite", "p": law["q"], "q": law["p"]} for law in remove]


def fits(noise: Noise, adjacency: str | None) -> bool:
    """Whether a relation is one for which the worst pairs are known.

    A sample needs replace-one if its size is fixed; if every record takes part by chance it needs
    one of both relations, and Gaussian noise under replace-one. A composition of releases whose
    directions differ needs add/remove. The mechanism has been asked for what it is `under` it.
    """
    match noise.name:
        case "RandomizedResponse":
            return adjacency != "add-remove"
        case "SampledWithoutReplacement":
            return adjacency != "add-remove" and fits(noise["mechanism"], "replace-one")
        case "PoissonSubsampled":
            inside = noise["mechanism"]
            if adjacency == "replace-one":
                return bool(inside.name == "Gaussian")
            return adjacency == "add-remove" and fits(inside, adjacency)
        case "MixtureOfGaussians":
            return adjacency == "add-remove"
        case "Composed":
            inside = noise["mechanism"]
            releases = inside if isinstance(inside, list) else [inside]
            return all(fits(release, adjacency) for release in releases) and (
                adjacency == "add-remove" or not any(map(_one_way, releases))
            )
    return True


def _one_way(noise: Noise) -> bool:
    if noise.name == "Tabulated":
        return False
    try:
        remove, add = _directions(noise)
        return len(remove) != len(add) or not all(map(alike, remove, add))
    except UnknownError:
        return False


def variance(noise: Noise, index: Any = 0) -> Any:
    """Return the variance of a coordinate; of every one, where they are the same."""
    match noise.name:
        case "EllipticalGaussian":
            return (
                noise["sensitivities"][int(index)] * sum(noise["sensitivities"]) / noise["mu"] ** 2
            )
        case "Gaussian":
            return noise["standard_deviation"] ** 2
        case "Laplace" | "LaplaceVector":
            return 2 * noise["scale"] ** 2
        case "DiscreteLaplace":
            decay = exp(-1 / noise["scale"])
            return 2 * decay / (1 - decay) ** 2
        case "RankOneGaussian":
            return noise["sigma_star"] / noise["dimension"]
    raise UnknownError(f"the variance of {noise.name}")


def mean_squared_error(noise: Noise) -> Any:
    """Return the average of the variances."""
    count = len(noise["sensitivities"]) if noise.name == "EllipticalGaussian" else 1
    return sum(variance(noise, index) for index in range(count)) / count
