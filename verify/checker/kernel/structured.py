"""Closed forms of mechanisms whose arguments are lists, covariances and spaces, and of families."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from verify.checker.kernel.closed_forms import GAUSSIAN, Asked, Found, answered, whole
from verify.checker.kernel.expressions import (
    ZERO,
    Apply,
    Comparison,
    Entries,
    Node,
    Number,
    ProofError,
    Text,
    number,
    parse,
    substitute,
)

_LARGEST_SUPPORT: Final = 30


def _entries(value: Node | None) -> tuple[Node, ...] | None:
    return value.items if isinstance(value, Entries) else None


def structured(noise: Apply, asked: Asked) -> Found | None:
    """Answer for mechanisms whose arguments are lists, covariances and spaces."""
    given = dict(noise.named)
    match noise.name, asked.question, asked.rest:
        case "LaplaceVector", "max_loss", ():
            return _laplace_vector(given, "t")
        case "LaplaceVector", "renyi", (order,) if order == number(1):
            return _laplace_vector(given, "t + exp(-t) - 1")
        case "EllipticalGaussian", ("mu" | "rho" | "renyi" | "delta" | "variance"), _:
            return _elliptical(given, asked)
        case "GeneralGaussian", ("mu" | "rho" | "renyi" | "delta"), _:
            return _general(given, asked)
    return None


def _laplace_vector(given: Mapping[str, Node], term: str) -> Found | None:
    """Add up a function of t, the distance of each coordinate."""
    shifts = _entries(given.get("shifts"))
    if set(given) != {"scale", "shifts"} or not shifts:
        return None
    scale, shown = given["scale"], parse(term)
    sizes = (Apply("abs", (shift,)) / scale for shift in shifts)
    terms = (substitute(shown, {"t": size}) for size in sizes)
    return sum(terms, ZERO), [Comparison(scale, ">", number(0))]


def _elliptical(given: Mapping[str, Node], asked: Asked) -> Found | None:
    """N(0, Δ_j ΣΔ_i/μ²) per coordinate: exactly μ-GDP."""
    sizes = _entries(given.get("sensitivities"))
    if not sizes or set(given) != {"sensitivities", "mu"}:
        return None
    mu = given["mu"]
    conditions = [Comparison(value, ">", number(0)) for value in (mu, *sizes)]
    if asked.question != "variance":
        return _of_mu(mu, asked, conditions)
    match asked.rest:
        case (Number(value=place),) if place.denominator == 1 and 0 <= place < len(sizes):
            return sizes[int(place)] * sum(sizes, ZERO) / (mu * mu), conditions
    return None


def _of_mu(mu: Node, asked: Asked, conditions: list[Comparison]) -> Found:
    """Answer for a mechanism that is exactly μ-GDP by a Gaussian pair."""
    return answered(substitute(parse(GAUSSIAN[asked.question]), {"MU": mu}), asked, conditions)


def _box(covariance: Apply, bounds: tuple[Node, ...], asked: Asked) -> Found | None:
    """Independent noise over a box: μ² = Σ bound²/variance."""
    conditions: list[Comparison] = []
    match covariance.name, dict(covariance.named):
        case "Isotropic", {"dimension": size, "variance": variance, **rest} if not rest:
            variances: tuple[Node, ...] = (variance,) * len(bounds)
            conditions.append(Comparison(size, "==", number(len(bounds))))
        case "Diagonal", {"variances": Entries(items=variances), **rest} if not rest:
            pass
        case _:
            return None
    if len(variances) != len(bounds):
        return None
    conditions += [Comparison(value, ">", number(0)) for value in (*variances, *bounds)]
    shares = (bound * bound / own for bound, own in zip(bounds, variances, strict=True))
    return _of_mu(Apply("sqrt", (sum(shares, ZERO),)), asked, conditions)


def _general(given: Mapping[str, Node], asked: Asked) -> Found | None:
    """Isotropic noise over a space of sparse boxes: μ is the largest norm over σ."""
    match given:
        case {"covariance": Apply() as covariance, "space": Apply() as space, **rest} if not rest:
            noise, inner = dict(covariance.named), space
        case _:
            return None
    if space.name == "Box":
        match dict(space.named):
            case {"bounds": Entries(items=bounds), **rest} if bounds and not rest:
                return _box(covariance, bounds, asked)
        return None
    if covariance.name != "Isotropic" or set(noise) != {"dimension", "variance"}:
        return None
    groups: Node = number(1)
    if space.name == "DisjointGroups":
        match dict(space.named):
            case {"groups": groups, "space": Apply() as inner, **rest} if not rest:
                pass
            case _:
                return None
    box = {"bound": number(1), "signed": Text(False), **dict(inner.named)}
    if inner.name != "SparseBox" or set(box) != {"dimension", "sparsity", "bound", "signed"}:
        return None
    size, sparsity, bound = box["dimension"], box["sparsity"], box["bound"]
    conditions = [
        *(whole(count) for count in (noise["dimension"], groups, size, sparsity)),
        Comparison(noise["variance"], ">", number(0)),
        Comparison(groups, ">=", number(1)),
        Comparison(sparsity, ">=", number(1)),
        Comparison(sparsity, "<=", size),
        Comparison(bound, ">", number(0)),
        Comparison(noise["dimension"], "==", groups * size),
    ]
    return _of_mu(bound * Apply("sqrt", (sparsity / noise["variance"],)), asked, conditions)


def _count_noise_delta(arguments: tuple[Node, ...]) -> Found:
    """max_k (C P_k − E^k)/(B S_k), k ≤ D, and 1/(B A_D), for a number D (Sadeghi et al.)."""
    match arguments:
        case (ratio, eta, Number(value=support)) if support.denominator == 1:
            size = int(support)
        case _:
            raise ProofError("count_noise_delta is known for a number D only")
    if not 1 <= size <= _LARGEST_SUPPORT:
        raise ProofError(f"expected D from 1 to {_LARGEST_SUPPORT}")
    bounds = []
    for k in range(1, size + 1):
        below = "+".join(f"E**{j}" for j in range(k))
        weighted = "+".join(f"{j + 1}*E**{j}" for j in range(k))
        bounds.append(f"(2*eta*({below}) - (1 - eta)*E**{k})/(2*({weighted}))")
    last = "+".join(f"{size - j}*E**{j}" for j in range(size))
    bounds.append(f"(1 - eta)/(2*({last}))")
    formula = substitute(parse(f"max({', '.join(bounds)})"), {"E": ratio, "eta": eta})
    return formula, [
        Comparison(ratio, ">=", number(1)),
        Comparison(eta, ">", number(0)),
        Comparison(eta, "<", number(1)),
    ]


def _full_tree(signed: bool, formula: str) -> Callable[[tuple[Node, ...]], Found]:
    """Return a rule for n = k^h − 1 outputs, or (k^h − 1)/2 with signed digits and odd k.

    Then the n outputs and 0 (with signed digits: and the negative ones) have every string of h
    digits once, so each level has the average of all digits.
    """

    def rule(arguments: tuple[Node, ...]) -> Found:
        match arguments:
            case (arity, outputs) if not signed:
                full = outputs
            case (arity, Apply(name="/", arguments=(full, Number(value=half)))) if half == 2:
                pass
            case _:
                raise ProofError("a tree is known for (k**h - 1)/2 outputs only")
        match full:
            case Apply(name="-", arguments=(Apply(name="**", arguments=(base, height)), last)):
                if base != arity or last != number(1):
                    raise ProofError("a tree is known for k**h - 1 outputs only")
            case _:
                raise ProofError("a tree is known for k**h - 1 outputs only")
        conditions = [whole(arity), whole(height), Comparison(height, ">=", number(1))]
        conditions.append(Comparison(arity, ">=", number(3 if signed else 2)))
        if signed:
            conditions.append(whole((arity - 1) / 2))
        return substitute(parse(formula), {"K": arity, "H": height}), conditions

    return rule


FAMILIES: Final[Mapping[str, Callable[[tuple[Node, ...]], Found]]] = {
    "count_noise_delta": _count_noise_delta,
    "tree_mse": _full_tree(False, "2*H**2*H*(K - 1)/2*K**H/(K**H - 1)"),
    "tree_height": _full_tree(False, "H"),
    "signed_tree_mse": _full_tree(True, "2*H**2*H*(K - 1/K)/4*K**H/(K**H - 1)"),
    "signed_tree_height": _full_tree(True, "H"),
}
"""Functions of a family of mechanisms → rule."""
