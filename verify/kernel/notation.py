"""The notation of mechanisms, `Name(argument=value, …)`, parsed into trees and never executed.

A value is another mechanism, covariance or space, a list, or the text of a number, formula or word.
`SIGNATURES` lists the arguments in order with their defaults. Omitted arguments get their defaults,
so that equal mechanisms have equal trees.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from .numbers import NotProved, Wrong

LONGEST = 100_000
"""Limit on the length of a formula or mechanism, in characters."""
SIGNATURES = """
AboveThreshold(threshold_scale, query_scale, count=1, sensitivity=1, monotone=False,
    variant='standard')
AdditiveNoise(density, scale=1, sensitivity=1)
BinaryTree(steps, epsilon=None, mu=None, contributions=1)
BoundedCountNoise(epsilon, eta, support)
Box(bounds)
BridgedTree(steps, arities, epsilon=None, mu=None, contributions=1, pooled=0, released='outputs')
Channel(matrix, neighbours=None)
Composed(mechanism, count=1, adaptive=True)
CorrelatedGaussian(dimension, mu, c=None, release_size=True)
CountEllipse(dimension, sparsity, mu)
Diagonal(variances)
DiscreteCorrelatedGaussian(dimension, mu, c)
DiscreteGaussian(parameter, sensitivity=1)
DiscreteLaplace(scale, sensitivity=1)
DisjointGroups(groups, space)
DisjointGroupsGaussian(groups, dimension, mu, adjacency, as_printed=False)
EllipticalGaussian(sensitivities, mu)
Exchangeable(dimension, diagonal, off_diagonal)
ExponentialMechanism(epsilon, sensitivity=1, monotone=False)
FiniteSet(vectors)
Gaussian(standard_deviation, l2_sensitivity=1)
GaussianThreshold(standard_deviation, threshold, partitions=1, sensitivity=1)
GeneralGaussian(covariance, space)
Guaranteed(epsilon, delta=0)
IntegerNoise(probabilities, lowest, sensitivity=1)
Isotropic(dimension, variance)
KaryTree(steps, arity, epsilon, subtraction=True, contributions=1)
KnownSizeGaussian(dimension, mu, size_mu=None)
L2Ball(dimension, radius=1)
Laplace(scale, l1_sensitivity=1)
LaplaceThreshold(scale, threshold, partitions=1, sensitivity=1)
LaplaceVector(scale, shifts)
Logistic(scale, sensitivity=1)
Matrix(rows)
MatrixMechanism(strategy, noise_multiplier, steps, participation, separation=None,
    participations=None, bands=None, step_sampling_prob=None)
MatrixVariateGaussian(row_covariance, column_covariance, l2_sensitivity=1)
MixtureOfGaussians(standard_deviation, sensitivities, sampling_probs)
OneSidedGaussian(bounds, mu)
OptimalEllipse(dimension, sparsity, mu)
OptimalGroups(groups, counts, mu, adjacency)
PartitionSelection(epsilon, delta)
PermuteAndFlip(epsilon, sensitivity=1, monotone=False)
PoissonSubsampled(mechanism, sampling_prob)
PrivateQuantile(epsilon, lower, upper, adjacency, probability=1/2)
RandomAllocation(mechanism, steps, participations=1)
RandomizedResponse(epsilon, categories=2)
RankOneGaussian(dimension, sigma_star, l2_sensitivity=1)
Rappor(flip, categories)
ReportNoisyMax(noise, scale, candidates, sensitivity=1, monotone=False, returns='index')
SampledWithoutReplacement(mechanism, sample_size, population)
Shuffled(mechanism, users)
Skellam(variance, sensitivity=1)
SparseBox(dimension, sparsity, bound=1, signed=False)
SquareRootFactorization(steps, mu, contributions=1)
Staircase(epsilon, gamma, sensitivity=1)
SubsetSelection(epsilon, categories, size=None)
Tabulated(p, q)
TruncatedGeometric(scale, low, high, sensitivity=1)
TruncatedLaplace(scale, bound, sensitivity=1)
UnaryEncoding(epsilon, categories, optimised=False)
"""

WORDS = {
    "noise": ("Laplace", "Gaussian", "Exponential", "Gumbel", "DiscreteLaplace"),
    "released": ("outputs", "measurements"),
}
"""Arguments that take one of a few words."""


@dataclass(frozen=True)
class Noise:
    """A mechanism, covariance or space, with all of its arguments."""

    name: str
    arguments: Mapping[str, Any]

    def __getitem__(self, argument: str) -> Any:
        return self.arguments[argument]

    def __str__(self) -> str:
        """Return the canonical text: by name, the arguments that differ from their defaults."""
        defaults = signatures()[self.name]
        given = (f"{k}={_text(v)}" for k, v in self.arguments.items() if v != defaults[k])
        return f"{self.name}({', '.join(given)})"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return str(value)


@cache
def signatures() -> Mapping[str, Mapping[str, str | None]]:
    """Return name → arguments → default as text, or None for a required argument."""
    found: dict[str, dict[str, str | None]] = {}
    for line in SIGNATURES.replace(",\n", ",").split("\n")[1:-1]:
        name, _, rest = line.partition("(")
        parts = [part.strip().partition("=") for part in rest[:-1].split(",")]
        found[name] = {k: v.strip("'") if equal else None for k, equal, v in parts}
    return found


def parse(text: str, field: str = "theorem.mechanism") -> Any:
    """Return the tree of a mechanism, or the list or text if it is not one.

    Raises Wrong(field, reason) for a syntax error or wrong arguments, and NotProved for an unknown
    mechanism.
    """
    flat, tree = syntax(text, field, "Name(argument=value)")
    try:
        return _tree(tree, flat, field)
    except RecursionError:
        raise Wrong(field, "is nested too deeply") from None


def syntax(text: object, field: str, wanted: str) -> tuple[str, ast.expr]:
    """Return a text on one line, and its Python syntax tree."""
    flat = str(text).replace("\n", " ").replace("\t", " ").strip()
    if len(flat) > LONGEST or not flat.isascii():
        raise Wrong(field, f"expected {wanted} in ASCII, of up to {LONGEST} characters")
    try:
        tree = ast.parse(flat, mode="eval").body
    except (SyntaxError, ValueError):
        raise Wrong(field, f"expected {wanted}, not {flat[:60]!a}") from None
    except (RecursionError, MemoryError):
        raise Wrong(field, "is nested too deeply") from None
    texts = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    if any(flat[n.col_offset + 1 : (n.end_col_offset or 0) - 1] != n.value for n in texts):
        raise Wrong(field, "has a text that is not between one pair of quotation marks")
    return flat, tree


def _tree(node: ast.AST, text: str, field: str) -> Any:
    match node:
        case ast.Constant(value=str()):
            return node.value
        case ast.List(elts=entries) | ast.Tuple(elts=entries):
            return [_tree(entry, text, field) for entry in entries]
        case ast.Call(func=ast.Name(id=name)) if name[:1].isupper() and "_" not in name:
            return _noise(node, name, text, field)
    assert isinstance(node, ast.expr)
    return text[node.col_offset : node.end_col_offset]


def _noise(node: ast.Call, name: str, text: str, field: str) -> Noise:
    if name not in signatures():
        raise NotProved(f"the kernel knows no mechanism {name[:60]!a}")
    arguments = signatures()[name]
    if len(node.args) > len(arguments):
        raise Wrong(field, f"{name} has {len(arguments)} arguments, not {len(node.args)}")
    pairs = [*zip(arguments, node.args, strict=False), *((k.arg, k.value) for k in node.keywords)]
    given: dict[str, Any] = {}
    for key, value in pairs:
        if key not in arguments:
            raise Wrong(field, f"{name} has no argument {str(key)[:60]!a}")
        if key in given:
            raise Wrong(field, f"argument {key} of {name} is given twice")
        if key == "density" and not isinstance(value, ast.Constant):
            raise Wrong(field, f"{name} with {key}: expected a formula between quotation marks")
        given[str(key)] = _tree(value, text, field)
    if missing := [k for k, default in arguments.items() if default is None and k not in given]:
        raise Wrong(field, f"{name} needs {missing[0]}")
    found = {key: given.get(key, default) for key, default in arguments.items()}
    if empty := [k for k, default in arguments.items() if found[k] == "None" != default]:
        raise Wrong(field, f"{name} needs a value of {empty[0]}, not None")
    if {"epsilon", "mu"} <= found.keys() and [found["epsilon"], found["mu"]].count("None") != 1:
        raise Wrong(field, f"{name} needs either epsilon or mu")
    for key in WORDS.keys() & found.keys():
        if str(found[key]) not in WORDS[key]:
            raise Wrong(field, f"{name} with {key}: expected one of {', '.join(WORDS[key])}")
    return Noise(name, found)
