"""Which arguments each mechanism has, and what each may be: one table, checked before all else.

A name that is not in the table is no mechanism. An argument that a mechanism does not have, that
is missing, or that lies outside its domain is a ValueError with the name of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from dpassay.verifier.checker.declared import BY_MECHANISM
from dpassay.verifier.checker.declared.own_density import written_out
from dpassay.verifier.checker.mechanisms import entries, local, matrices
from dpassay.verifier.checker.mechanisms.keys import KEYS
from dpassay.verifier.checker.mechanisms.quadratic import pivots
from dpassay.verifier.checker.mechanisms.shown import is_open
from dpassay.verifier.checker.notation import (
    Argument,
    Noise,
    both,
    each,
    integer,
    name_of,
    not_negative,
    number,
    one_of,
    optional,
    positive,
    probability,
    rational,
    relation,
    share,
    switch,
)


def mechanisms(value: Any) -> Any:
    """Require a mechanism, or a list of them; compositions of some are only enclosed."""
    return each(_any_mechanism)(value) if isinstance(value, list) else _any_mechanism(value)


COVARIANCES = ("Diagonal", "Exchangeable", "Isotropic", "Matrix")
SPACES = ("Box", "DisjointGroups", "FiniteSet", "L2Ball", "SparseBox")
RECURSIONS = ("BufferedToeplitz",)
NO_MECHANISMS = COVARIANCES + SPACES + RECURSIONS
"""What has a notation, and is an argument of mechanisms."""
covariance = one_of(COVARIANCES, "a covariance")
space = one_of(SPACES, "a sensitivity space")


def mechanism(value: Any) -> Noise:
    """Require a mechanism of which several releases are known."""
    found = _any_mechanism(value)
    if only_enclosed(found):
        raise ValueError(f"a mechanism other than {found.name}, of which one release is known")
    return found


def only_enclosed(noise: Noise) -> bool:
    """Whether several releases of a mechanism, or of a part of it, are known between two ends."""
    inside = noise["mechanism"] if noise.name == "Composed" else []
    if any(map(only_enclosed, inside if isinstance(inside, list) else [inside])):
        return True
    if is_open(noise):
        return True
    return noise.name in (*KEYS, "ProposeTestRelease", "TopSelections") or (
        noise.name in BY_MECHANISM and BY_MECHANISM[noise.name].only_alone
    )


def _any_mechanism(value: Any) -> Noise:
    if not isinstance(value, Noise) or value.name in NO_MECHANISMS:
        raise ValueError("a mechanism")
    return value


_COUNT, _SOME = Argument(integer(1)), Argument(positive)
_ONE = Argument(positive, Fraction(1))
_STEP = Argument(integer(1), Fraction(1))
_COUNTER = {
    "epsilon": Argument(optional(positive), None),
    "mu": Argument(optional(positive), None),
    "contributions": _STEP,
}
_RELEASES = Argument(name_of(("outputs", "measurements")), "outputs")
_MOST_ROWS = 100
"""Rows of a channel: 9,900 ordered pairs."""
_LISTED = Argument(each(both(rational, not_negative)))
_INNER = Argument(mechanism)
_COVARIANCE = Argument(covariance)

TABLE: Mapping[str, Mapping[str, Argument]] = {
    "BinaryTree": {"steps": _COUNT, **_COUNTER},
    "BoundedCountNoise": {
        "epsilon": Argument(not_negative),
        "eta": Argument(share),
        "support": _COUNT,
    },
    "Box": {"bounds": Argument(each(not_negative))},
    "BridgedTree": {
        "steps": _COUNT,
        "arities": Argument(each(integer(1))),
        **_COUNTER,
        "pooled": Argument(integer(0), Fraction(0)),
        "released": _RELEASES,
    },
    "BufferedToeplitz": {
        "output_scales": Argument(each(rational)),
        "decays": Argument(each(rational)),
    },
    "Channel": {
        "matrix": Argument(each(each(not_negative))),
        "neighbours": Argument(optional(each(each(integer(0)))), None),
    },
    "Composed": {
        "mechanism": Argument(mechanisms),
        "count": _STEP,
    },
    "CorrelatedGaussian": {
        "dimension": _COUNT,
        "mu": _SOME,
        "c": Argument(optional(positive), None),
        "release_size": Argument(switch, True),
    },
    "CountEllipse": {"dimension": _COUNT, "sparsity": _COUNT, "mu": _SOME},
    "DelannoyCounter": {"steps": _COUNT, "levels": _COUNT, **_COUNTER},
    "Diagonal": {"variances": _LISTED},
    "DiscreteCorrelatedGaussian": {
        "dimension": _COUNT,
        "mu": _SOME,
        "c": Argument(both(rational, positive)),
    },
    "DiscreteGaussian": {"parameter": _SOME, "sensitivity": _STEP},
    "DiscreteKaryTree": {
        "steps": _COUNT,
        "arity": Argument(integer(2)),
        "epsilon": Argument(both(rational, positive)),
        "subtraction": Argument(switch, True),
    },
    "DiscreteLaplace": {"scale": _SOME, "sensitivity": _STEP},
    "DisjointGroups": {"groups": _COUNT, "space": Argument(space)},
    "DisjointGroupsGaussian": {
        "groups": _COUNT,
        "dimension": _COUNT,
        "mu": _SOME,
        "adjacency": Argument(relation),
        "as_printed": Argument(switch, False),
    },
    "EllipticalGaussian": {"sensitivities": Argument(each(positive)), "mu": _SOME},
    "Exchangeable": {
        "dimension": _COUNT,
        "diagonal": Argument(both(rational, not_negative)),
        "off_diagonal": Argument(rational),
    },
    "FiniteSet": {"vectors": Argument(each(each(number)))},
    "Gaussian": {"standard_deviation": _SOME, "l2_sensitivity": _ONE},
    "GeneralGaussian": {"covariance": _COVARIANCE, "space": Argument(space)},
    "Guaranteed": {"epsilon": Argument(not_negative), "delta": Argument(probability, Fraction(0))},
    "HonakerTree": {"steps": _COUNT, **_COUNTER, "released": _RELEASES},
    "IntegerNoise": {"probabilities": _LISTED, "lowest": Argument(integer()), "sensitivity": _STEP},
    "Isotropic": {"dimension": _COUNT, "variance": Argument(both(rational, positive))},
    "KaryTree": {
        "steps": _COUNT,
        "arity": Argument(integer(2)),
        "epsilon": _SOME,
        "subtraction": Argument(switch, True),
        "contributions": _STEP,
    },
    "KnownSizeGaussian": {
        "dimension": _COUNT,
        "mu": _SOME,
        "size_mu": Argument(optional(positive), None),
    },
    "L2Ball": {"dimension": _COUNT, "radius": _ONE},
    "Laplace": {"scale": _SOME, "l1_sensitivity": _ONE},
    "LaplaceVector": {"scale": _SOME, "shifts": Argument(each(number))},
    "Matrix": {"rows": Argument(each(each(rational)))},
    "MatrixMechanism": {
        "strategy": Argument(matrices.strategy),
        "noise_multiplier": _SOME,
        "steps": _COUNT,
        "participation": Argument(name_of(matrices.SCHEMAS)),
        "separation": Argument(optional(integer(1)), None),
        "participations": Argument(optional(integer(1)), None),
        "bands": Argument(optional(integer(1)), None),
        "step_sampling_prob": Argument(optional(probability), None),
    },
    "MatrixVariateGaussian": {
        "row_covariance": _COVARIANCE,
        "column_covariance": _COVARIANCE,
        "l2_sensitivity": _ONE,
    },
    **{
        name: {noise: _SOME, "threshold": _SOME, "partitions": _STEP, "sensitivity": _ONE}
        for name, noise in (
            ("GaussianThreshold", "standard_deviation"),
            ("LaplaceThreshold", "scale"),
        )
    },
    "DiscreteLaplaceThreshold": {
        "scale": _SOME,
        "threshold": Argument(both(rational, positive)),
        "partitions": _STEP,
        "sensitivity": _STEP,
    },
    "MixtureOfGaussians": {
        "standard_deviation": _SOME,
        "sensitivities": Argument(each(not_negative)),
        "sampling_probs": _LISTED,
    },
    "OptimalEllipse": {"dimension": _COUNT, "sparsity": _COUNT, "mu": _SOME},
    "OptimalGroups": {
        "groups": _COUNT,
        "counts": _COUNT,
        "mu": _SOME,
        "adjacency": Argument(relation),
    },
    "OneSidedGaussian": {"bounds": Argument(each(positive)), "mu": _SOME},
    "PartitionSelection": {"epsilon": _SOME, "delta": Argument(share)},
    "PoissonSubsampled": {"mechanism": _INNER, "sampling_prob": Argument(probability)},
    "ProposeTestRelease": {
        **dict.fromkeys(("test_scale", "threshold", "scale"), Argument(both(rational, positive))),
        "sensitivity": Argument(both(rational, positive), Fraction(1)),
    },
    "RandomAllocation": {
        "mechanism": _INNER,
        "steps": _COUNT,
        "participations": Argument(integer(1), Fraction(1)),
    },
    "RandomizedResponse": {
        "epsilon": Argument(not_negative),
        "categories": Argument(integer(2), Fraction(2)),
    },
    "RankOneGaussian": {
        "dimension": Argument(integer(3)),
        "sigma_star": Argument(both(rational, positive)),
        "l2_sensitivity": _ONE,
    },
    "SampledWithoutReplacement": {"mechanism": _INNER, "sample_size": _COUNT, "population": _COUNT},
    "Shuffled": {"mechanism": _INNER, "users": _COUNT},
    "SmoothBinary": {"steps": _COUNT, **_COUNTER, "released": _RELEASES},
    "SparseBox": {
        "dimension": _COUNT,
        "sparsity": _COUNT,
        "bound": _ONE,
        "signed": Argument(switch, False),
    },
    "NormalizedSquareRoot": {"steps": _COUNT, **_COUNTER},
    "SquareRootFactorization": {"steps": _COUNT, **_COUNTER},
    "Staircase": {"epsilon": _SOME, "gamma": Argument(probability), "sensitivity": _ONE},
    "Tabulated": dict.fromkeys(("p", "q"), Argument(each(not_negative))),
    "TopSelections": {
        "epsilon": _SOME,
        "selected": _COUNT,
        "sensitivity": _ONE,
        "monotone": Argument(switch, False),
        "noise": Argument(name_of(("Gumbel", "Laplace", "Exponential")), "Gumbel"),
    },
    "TruncatedGeometric": {
        "scale": _SOME,
        "low": Argument(integer()),
        "high": Argument(integer()),
        "sensitivity": _STEP,
    },
    **local.ARGUMENTS,
    **{name: law.arguments for name, law in BY_MECHANISM.items()},
}
"""The arguments of every mechanism, covariance and sensitivity space, in their order."""

WRAPPERS = (
    "Composed",
    "PoissonSubsampled",
    "RandomAllocation",
    "SampledWithoutReplacement",
    "Shuffled",
)
"""Mechanisms whose first argument is a mechanism."""


def build(name: str, unnamed: list[Any], named: Iterable[tuple[str | None, Any]]) -> Noise:
    """Return the named mechanism with all of its arguments, or raise ValueError."""
    if name not in TABLE:
        raise ValueError(f"no mechanism is called {name[:40]!r}")
    table = TABLE[name]
    if len(unnamed) > len(table):
        raise ValueError(f"{name} has {len(table)} arguments, not {len(unnamed)}")
    pairs = [*zip(table, unnamed, strict=False), *named]
    given: dict[str, Any] = {}
    for key, value in pairs:
        if key is None or key not in table:
            raise ValueError(f"{name} has no argument {str(key)[:40]!r}")
        if key in given:
            raise ValueError(f"argument {key} of {name} is given twice")
        given[key] = value
    if missing := [
        key for key, entry in table.items() if entry.default is ... and key not in given
    ]:
        raise ValueError(f"{name} needs {missing[0]}")
    read = {key: _read(name, key, table[key], given) for key in table}
    noise = Noise(name, read)
    if name == "AdditiveNoise":
        noise = written_out(noise)
    if name in _JOINT and (wrong := _JOINT[name](noise)):
        raise ValueError(f"{name} with {wrong}")
    return noise


def _read(name: str, key: str, entry: Argument, given: Mapping[str, Any]) -> Any:
    if key not in given:
        return entry.default
    try:
        return entry.domain(given[key])
    except ValueError as error:
        raise ValueError(f"{name} with {key} out of its range: expected {error}") from None


def _whole(name: str) -> Callable[[Noise], str]:
    """Require a list of masses that sum to 1 exactly."""
    return lambda noise: f"{name} of a sum other than 1" if sum(noise[name]) != 1 else ""


def _rows(noise: Noise) -> str:
    """Require two or more rows of one length, each of sum 1 exactly."""
    rows = noise["matrix"]
    if not 2 <= len(rows) <= _MOST_ROWS or any(len(row) != len(rows[0]) for row in rows):
        return f"rows of different lengths, or not 2 to {_MOST_ROWS} of them"
    if any(
        len(set(e)) != len(e) or len(e) != 2 or max(e) >= len(rows)
        for e in noise["neighbours"] or ()
    ):
        return "neighbours that are no two inputs"
    return next(filter(None, map(entries.misfit, rows)), "")


def _one_kind(noise: Noise) -> str:
    both = (noise["epsilon"] is None) == (noise["mu"] is None)
    return "epsilon and mu, or neither" if both else ""


def _bridged(noise: Noise) -> str:
    room = 1
    for arity in noise["arities"]:
        room *= int(arity)
    if min(noise["arities"][1:], default=2) < 2:
        return "an arity below 2"
    return (
        "more steps than the arities have room for" if noise["steps"] > room else _one_kind(noise)
    )


def _sparse(noise: Noise) -> str:
    return "sparsity above the dimension" if noise["sparsity"] > noise["dimension"] else ""


def _count_ellipse(noise: Noise) -> str:
    far = 2 * noise["sparsity"] > noise["dimension"] > 1
    return "sparsity above half the dimension" if far else _sparse(noise)


def _truncated(noise: Noise) -> str:
    room = noise["high"] - noise["low"]
    return "low, high and sensitivity that do not fit" if noise["sensitivity"] > room else ""


def _exchangeable(noise: Noise) -> str:
    d, a, b = noise["dimension"], noise["diagonal"], noise["off_diagonal"]
    negative = d > 1 and (a + (d - 1) * b < 0 or a < b)
    return "a negative eigenvalue" if negative else ""


def _matrix(noise: Noise) -> str:
    rows = noise["rows"]
    if any(len(row) != len(rows) for row in rows):
        return "rows that are no square"
    if any(row[j] != rows[j][i] for i, row in enumerate(rows) for j in range(i)):
        return "rows that are not symmetric"
    return "a direction of negative variance" if pivots(rows) is None else ""


def _finite_set(noise: Noise) -> str:
    vectors = noise["vectors"]
    if len({len(vector) for vector in vectors}) > 1:
        return "vectors of different lengths"
    return "" if any(entry for vector in vectors for entry in vector) else "no vector but 0"


def dimension(noise: Noise) -> int:
    """Return the number of coordinates of a covariance or a space."""
    match noise.name:
        case "Diagonal":
            return len(noise["variances"])
        case "Matrix":
            return len(noise["rows"])
        case "Box":
            return len(noise["bounds"])
        case "FiniteSet":
            return len(noise["vectors"][0])
        case "DisjointGroups":
            return int(noise["groups"]) * dimension(noise["space"])
    return int(noise["dimension"])


def _general(noise: Noise) -> str:
    same = dimension(noise["covariance"]) == dimension(noise["space"])
    return "" if same else "covariance and space of different dimensions"


_JOINT: Mapping[str, Callable[[Noise], str]] = {
    **dict.fromkeys(("BinaryTree", "HonakerTree", "SmoothBinary"), _one_kind),
    "NormalizedSquareRoot": _one_kind,
    "SquareRootFactorization": _one_kind,
    "BridgedTree": _bridged,
    "BufferedToeplitz": lambda n: (
        "decays that are not as many as output_scales"
        if len(n["output_scales"]) != len(n["decays"])
        else ""
    ),
    "Box": lambda n: "" if any(n["bounds"]) else "no bound but 0",
    "Channel": _rows,
    "CountEllipse": _count_ellipse,
    "DelannoyCounter": lambda n: (
        "more levels than steps" if n["levels"] > n["steps"] else _one_kind(n)
    ),
    "Exchangeable": _exchangeable,
    "FiniteSet": _finite_set,
    "GeneralGaussian": _general,
    "IntegerNoise": _whole("probabilities"),
    "Matrix": _matrix,
    "MatrixMechanism": matrices.misfit,
    "MixtureOfGaussians": lambda n: (
        "sensitivities and sampling_probs of different lengths"
        if len(n["sensitivities"]) != len(n["sampling_probs"])
        else _whole("sampling_probs")(n)
    ),
    "OptimalEllipse": _sparse,
    "RandomAllocation": lambda n: (
        "participations above the steps" if n["participations"] > n["steps"] else ""
    ),
    "SampledWithoutReplacement": lambda n: (
        "sample_size above the population" if n["sample_size"] > n["population"] else ""
    ),
    "Shuffled": lambda n: (
        ""
        if n["mechanism"].name == "RandomizedResponse"
        or (n["mechanism"].name == "Guaranteed" and n["mechanism"]["delta"] == 0)
        else "what is no randomised response, and is not ε-DP by its name"
    ),
    "SparseBox": _sparse,
    "SubsetSelection": local.misfit,
    "Tabulated": lambda n: (
        "p and q of different lengths"
        if len(n["p"]) != len(n["q"])
        else entries.misfit(n["p"]) or entries.misfit(n["q"])
    ),
    "TruncatedGeometric": _truncated,
}
"""What a mechanism's arguments must satisfy together: the text says what is wrong."""
