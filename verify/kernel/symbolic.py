"""A guarantee over ranges as one comparison of formulas, and that the arguments stay in their domains.

The table of lemmas gives μ, the largest loss or ρ of some mechanisms as a formula in the arguments;
with the texts of the arguments in their place it is a formula in the variables. Where it is the
claimed one, letter by letter, nothing is left to prove.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from . import expressions
from .lemmas import DOMAIN, STRICTER, UPPER
from .notation import Noise, parse
from .numbers import NotProved, rational

Data = Mapping[str, Any]
ROWS = {
    "Laplace": "laplace",
    "LaplaceVector": "laplace",
    "DiscreteLaplace": "discrete-laplace",
    "Logistic": "logistic",
    "ExponentialMechanism": "exponential",
    "PermuteAndFlip": "permute-and-flip",
    "RandomizedResponse": "randomized-response",
    "Staircase": "staircase",
    "KaryTree": "counter",
    "BinaryTree": "counter",
    "DiscreteGaussian": "discrete-gaussian",
    "DiscreteCorrelatedGaussian": "discrete-correlated",
}


def formula(
    theorem: Data,
    noise: Noise,
    mu_formula: Callable[[Noise, str | None], tuple[str, str] | None],
    losses: Mapping[str, str],
    rhos: Mapping[str, str],
) -> tuple[str, str | None]:
    """Return the row of the table, and the comparison that is left to prove (None: nothing is)."""
    kind, adjacency = theorem["kind"], theorem["adjacency"]
    found = mu_formula(noise, adjacency)
    claim: tuple[str, str] | None = None
    most = UPPER.get(noise.name, {}).get(adjacency or "")
    if most is not None and kind != "approximate-dp" and (found is None or "sqrt" in found[1]):
        found = "correlated", str(_substituted(most, noise))
    if kind == "pure-dp":
        largest = _substituted(losses.get(noise.name), noise)
        if noise.name == "LaplaceVector":
            parts = " + ".join(f"abs({x})" for x in noise["shifts"])
            largest = f"({parts})/({noise['scale']})"
        if largest is not None:
            claim, found = (largest, theorem["epsilon"]), (ROWS[noise.name], "")
    elif kind == "zcdp":
        rho = _substituted(rhos.get(noise.name), noise)
        if rho is not None:
            claim, found = (rho, theorem["rho"]), (ROWS[noise.name], "")
        elif found is not None:
            claim = (f"({found[1]})**2/2", theorem["rho"])
    elif found is not None:
        row, mu = found
        if kind == "gaussian-dp":
            claim = (mu, theorem["mu"])
        elif kind == "renyi-dp":
            claim = (f"({theorem['order']})*({mu})**2/2", theorem["epsilon"])
        elif kind == "approximate-dp":
            claim = _approximate(theorem, mu, mu_formula)
    if claim is None or found is None:
        raise NotProved(f"{noise.name} over ranges of its arguments: no formula of the table fits")
    known = {*theorem["where"], *theorem["for_all"]}
    trees = expressions.definitions(theorem["let"], known, "theorem.let")
    left, right = (expressions.parse(text, "theorem", trees) for text in claim)
    return found[0], None if left is right else f"{claim[0]} <= {claim[1]}"


def _approximate(theorem: Data, mu: str, mu_formula: Callable[..., Any]) -> tuple[str, str]:
    """Return δ of N(μ, 1) against δ; of the δ of another Gaussian mechanism only μ is compared."""
    epsilon, delta = theorem["epsilon"], theorem["delta"]
    other = re.fullmatch(r"round_up\(delta\((\w+\(.*\)), (\w+)\)\)", delta)
    if other and other[2] == epsilon:
        found = mu_formula(parse(other[1]), theorem["adjacency"])
        if found is not None:
            return mu, found[1]
    m, e = f"({mu})", f"({epsilon})"
    return f"Phi({m}/2 - {e}/{m}) - exp({e})*Phi(-{m}/2 - {e}/{m})", delta


def _substituted(text: str | None, noise: Noise) -> str | None:
    if text is None:
        return None
    return re.sub(
        r"[a-z]\w*", lambda m: f"({noise[m[0]]})" if m[0] in noise.arguments else m[0], text
    )


# --- domains ------------------------------------------------------------------------------------
def domains(theorem: Data, noise: Noise, proved: Callable[[str], None]) -> None:
    """Raise NotProved unless the arguments are in their domains wherever the variables are.

    `proved` proves a comparison of formulas over the ranges, or raises NotProved.
    """
    known = {*theorem["where"], *theorem["for_all"]}
    trees = expressions.definitions(theorem["let"], known, "theorem.let")
    ranges = theorem["for_all"]

    def require(of: Noise) -> None:
        for key, entry in of.arguments.items():
            if isinstance(entry, Noise):
                require(entry)
                continue
            domain = STRICTER.get((of.name, key), DOMAIN.get(key, ""))
            if of.name in ("SparseBox", "Box", "L2Ball") and key in ("bound", "bounds", "radius"):
                domain = ""
            if not isinstance(entry, str) or entry == "None" or not domain:
                continue
            node = expressions.parse(entry, "theorem", trees)
            least = 1 if domain == "integer >= 1" else 2 if domain == "integer >= 2" else 0
            fine = (
                _at_least(node, least, ranges)
                if domain.startswith("integer")
                else _positive(node, ranges)
                if domain == "> 0"
                else _not_negative(node, ranges)
                if domain == ">= 0"
                else False
            )
            if not fine and domain == "> 0":
                proved(f"{entry} > 0")
            elif not fine:
                raise NotProved(f"that {key} = {entry} stays {domain} over the ranges")
        _joint(of, trees, ranges, proved)

    require(noise)


def _joint(
    of: Noise, trees: Mapping[str, Any], ranges: Data, proved: Callable[[str], None]
) -> None:
    """Require what arguments must satisfy together."""

    def same(a: str, b: str) -> bool:
        return expressions.parse(a, "theorem", trees) is expressions.parse(b, "theorem", trees)

    if of.name == "SparseBox":
        d, k = of["dimension"], of["sparsity"]
        low = ranges.get(d, {}).get("low") if isinstance(ranges.get(d), Mapping) else None
        if not (same(d, k) or low == k):
            proved(f"{k} <= {d}")
    elif of.name == "CountEllipse" and not same(of["dimension"], f"2*({of['sparsity']})"):
        raise NotProved("that the sparsity is half of the dimension")
    elif of.name == "GeneralGaussian":
        covariance, space = of["covariance"], of["space"]
        if covariance.name == "Diagonal":
            if space.name != "Box" or len(space["bounds"]) != len(covariance["variances"]):
                raise NotProved("that covariance and space have one dimension")
            for text in covariance["variances"]:
                if not _positive(expressions.parse(text, "theorem", trees), ranges):
                    raise NotProved(f"that {text} is positive")
            return
        size, inner = "1", space
        while inner.name == "DisjointGroups":
            size, inner = f"{size}*({inner['groups']})", inner["space"]
        own = str(len(inner["bounds"])) if inner.name == "Box" else inner["dimension"]
        if not (
            same(covariance["dimension"], f"{size}*({own})")
            or same(covariance["dimension"], f"({inner.arguments.get('dimension')})*{size}")
            or (size == "1" and same(covariance["dimension"], own))
        ):
            raise NotProved("that covariance and space have one dimension")


def _bound(ranges: Data, name: str, keys: tuple[str, ...]) -> Any:
    domain = ranges.get(name)
    for key in keys:
        if isinstance(domain, Mapping) and domain.get(key) is not None:
            try:
                return rational(domain[key])
            except ValueError:
                inner = domain[key]
                return _bound(ranges, inner, keys) if inner in ranges and inner != name else None
    return None


def _positive(node: Any, ranges: Data) -> bool:
    """Return whether a formula is seen to be positive wherever its variables are in their ranges."""
    if node.op == "num":
        return bool(node.args[0] > 0)
    if node.op == "var":
        low = _bound(ranges, node.args[0], ("low",))
        above = _bound(ranges, node.args[0], ("above",))
        return (low is not None and low > 0) or (above is not None and above >= 0)
    if node.op in ("*", "/"):
        return all(_positive(part, ranges) for part in node.args)
    if node.op == "+":
        return any(_positive(p, ranges) for p in node.args) and all(
            _not_negative(p, ranges) for p in node.args
        )
    if node.op in ("**", "sqrt"):
        return _positive(node.args[0], ranges)
    if node.op == "exp":
        return True
    return node.op == "round_up" and _positive(node.args[0], ranges)


def _not_negative(node: Any, ranges: Data) -> bool:
    if node.op == "num":
        return bool(node.args[0] >= 0)
    if node.op == "var":
        low = _bound(ranges, node.args[0], ("low", "above"))
        return low is not None and bool(low >= 0)
    if node.op in ("*", "+"):
        return all(_not_negative(part, ranges) for part in node.args)
    return _positive(node, ranges)


def _at_least(node: Any, least: int, ranges: Data) -> bool:
    """Return whether a formula is seen to be a whole number of at least 1 (or 2)."""
    if node.op == "num":
        return bool(node.args[0].q == 1 and node.args[0] >= least)
    if node.op == "var":
        domain = ranges.get(node.args[0])
        low = _bound(ranges, node.args[0], ("low", "above"))
        whole = isinstance(domain, Mapping) and bool(domain.get("integer"))
        return whole and low is not None and bool(low >= least)
    if node.op == "*":
        parts = node.args
        return all(_at_least(part, 1, ranges) for part in parts) and (
            least <= 1 or any(_at_least(part, least, ranges) for part in parts)
        )
    return node.op == "+" and all(_at_least(part, 1, ranges) for part in node.args)
