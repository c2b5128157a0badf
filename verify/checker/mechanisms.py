"""What a mechanism's arguments say of its worst pairs and variances, derived a second time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from mpmath import mp

from verify.checker.arithmetic import UnknownError, agree
from verify.checker.laws import Law

WRAPPERS = ("Composed", "PoissonSubsampled")
"""Mechanisms whose first argument, a mechanism, may stand without its name."""

_LEAST_DIMENSION = 3
_MOST_LAPLACE = 12
_DEFAULTS = {
    **dict.fromkeys(("l1_sensitivity", "l2_sensitivity", "sensitivity"), Fraction(1)),
    "categories": Fraction(2),
    "count": Fraction(1),
}


@final
@dataclass(frozen=True)
class Noise:
    """A mechanism as it is named: its arguments are numbers, texts, lists or mechanisms."""

    name: str
    arguments: dict[str, Any]

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
}
"""The arguments that each mechanism needs; more of them are among the defaults."""

_POSITIVE = ("standard_deviation", "scale", "parameter", "sigma_star", "mu", *_DEFAULTS)


def _require(noise: Noise) -> None:
    """Raise ValueError where an argument is missing, unknown or out of its range."""
    given, needed = noise.arguments, _ARGUMENTS[noise.name]
    if missing := [name for name in needed if name not in given]:
        raise ValueError(f"{noise.name} needs {missing[0]}")
    if unknown := [name for name in given if name not in (*needed, *_DEFAULTS)]:
        raise ValueError(f"{noise.name} has no argument {unknown[0]}")
    masses = [given[name] for name in ("p", "q", "probabilities") if name in needed]
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
            decay, gamma = mp.exp(-noise["epsilon"]), noise["gamma"]
            height = (1 - decay) / (2 * (gamma + decay * (1 - gamma)))
            side = mp.mpf(1) / 2 + height * min(gamma, 1 - gamma)
            middle = height * abs(1 - 2 * gamma) * (decay if 2 * gamma < 1 else 1)
            return [
                {
                    "law": "finite",
                    "p": [side, middle, decay * side],
                    "q": [decay * side, middle, side],
                }
            ]
        case "RandomizedResponse":
            odds, rest = mp.exp(noise["epsilon"]), noise["categories"] - 2
            p = [entry / (odds + rest + 1) for entry in (odds, rest, mp.one)]
            return [{"law": "finite", "p": p, "q": p[::-1]}]
        case "RankOneGaussian":
            ratio = noise["l2_sensitivity"] / mp.sqrt(noise["sigma_star"])
            return [{"law": "rank-one-gaussian", "dimension": noise["dimension"], "ratio": ratio}]
        case "Composed":
            return _composition(noise)
        case "Tabulated":
            return _both_ways((list(noise["p"]), list(noise["q"])))
        case "IntegerNoise":
            masses, found = list(noise["probabilities"]), []
            for shift in range(1, int(noise["sensitivity"]) + 1):
                padding = [Fraction(0)] * shift
                found.append((padding + masses, masses + padding))
            return _both_ways(*found)
    raise UnknownError(f"the law of {noise.name}")


def _composition(noise: Noise) -> list[Law]:
    """Return the product of Gaussian laws (their μ² add up) or of few Laplace laws."""
    inside, count = noise["mechanism"], int(noise["count"])
    parts = inside if isinstance(inside, list) else [inside]
    if not parts:
        raise ValueError("Composed of nothing")
    laws = [pairs(part) for part in parts]
    if len(laws) == count == 1:
        return laws[0]
    kinds = {law["law"] for listed in laws for law in listed}
    if kinds == {"gaussian"}:
        squares = sum(mp.mpf(law["mu"]) ** 2 for (law,) in laws)
        return [{"law": "gaussian", "mu": mp.sqrt(count * squares)}]
    if kinds <= {"laplace", "laplace-product"}:
        distances = [d for (law,) in laws for d in law.get("distances", [law.get("distance")])]
        if count * len(distances) <= _MOST_LAPLACE:
            return [{"law": "laplace-product", "distances": sorted(count * distances)}]
    raise UnknownError("the law of this composition")


def _both_ways(*found: tuple[list[Any], list[Any]]) -> list[Law]:
    turned = [(q, p) for p, q in found]
    return [{"law": "finite", "p": p, "q": q} for p, q in (*found, *turned)]


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
            return 1 / (2 * mp.sinh(1 / (2 * mp.mpf(noise["scale"]))) ** 2)
        case "RankOneGaussian":
            return noise["sigma_star"] / noise["dimension"]
    raise UnknownError(f"the variance of {noise.name}")


def mean_squared_error(noise: Noise) -> Any:
    """Return the average of the variances."""
    count = len(noise["sensitivities"]) if noise.name == "EllipticalGaussian" else 1
    return sum(variance(noise, index) for index in range(count)) / count
