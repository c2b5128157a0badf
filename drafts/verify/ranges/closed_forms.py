"""What is known of mechanisms in closed form: question → formula in the arguments.

Every entry is a theorem with its conditions; tests compare it with the accountant. First a table,
then rules for arguments that are lists, covariances and spaces, and for families.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, final

from dpassay.verifier.ranges.domain import INTEGER
from dpassay.verifier.ranges.expressions import (
    ZERO,
    Apply,
    Comparison,
    Entries,
    Node,
    Number,
    ProofError,
    Text,
    comparison,
    number,
    parse,
    substitute,
)

QUESTIONS: Final = ("delta", "max_loss", "mse", "mu", "renyi", "rho", "variance", "loss_above")


@final
@dataclass(frozen=True, slots=True)
class Law:
    """A mechanism: its arguments with their defaults, conditions, and formulas by question.

    A key of `formulas` is "question" or "question adjacency"; "<= " before it marks an upper
    bound, which serves only where the question stands on the smaller side of a comparison.
    """

    arguments: Mapping[str, str]
    conditions: tuple[str, ...]
    formulas: Mapping[str, str]
    integers: tuple[str, ...] = ()


GAUSSIAN: Final = {
    "mu": "MU",
    "rho": "MU**2/2",
    "renyi": "ORDER*MU**2/2",
    "delta": "Phi(MU/2 - EPSILON/MU) - exp(EPSILON)*Phi(-MU/2 - EPSILON/MU)",
    "loss_above": "Phi(MU/2 - EPSILON/MU)",
}
"""Answers of a mechanism whose worst pair is N(μ, 1) against N(0, 1)."""
_LAPLACE_DELTA: Final = "max(0, 1 - exp((EPSILON - LOSS)/2))"
_ONES: Final = "min(dimension, floor((dimension + c**2 + 1)/2))"
"""The number of ones of the worst record where the size is hidden: nearest to (d + c²)/2."""
_HIDDEN: Final = f"2*mu*sqrt({_ONES}*(dimension + c**2 - {_ONES}))/(dimension + c**2)"
_FULL: Final = "dimension/c**2 + 1"

_SHORT: Final = "(sparsity + sqrt((dimension - 1)*sparsity*(dimension - sparsity)))"
_ELLIPSE: Final = Law(
    {"dimension": "", "sparsity": "", "mu": ""},
    ("sparsity >= 1", "2*sparsity <= dimension", "mu > 0"),
    {"mu add-remove": "mu", "variance": f"{_SHORT}**2/(dimension**2*mu**2)"},
    integers=("dimension", "sparsity"),
)

LAWS: Final[dict[str, Law]] = {
    "Gaussian": Law(
        {"standard_deviation": "", "l2_sensitivity": "1"},
        ("standard_deviation > 0", "l2_sensitivity > 0"),
        {
            "mu": "l2_sensitivity/standard_deviation",
            "variance": "standard_deviation**2",
            "mse": "standard_deviation**2",
        },
    ),
    "Laplace": Law(
        {"scale": "", "l1_sensitivity": "1"},
        ("scale > 0", "l1_sensitivity > 0"),
        {
            "max_loss": "l1_sensitivity/scale",
            "variance": "2*scale**2",
            "mse": "2*scale**2",
            "delta": _LAPLACE_DELTA.replace("LOSS", "(l1_sensitivity/scale)"),
        },
    ),
    "CorrelatedGaussian": Law(
        {"dimension": "", "mu": "", "c": "sqrt(sqrt(dimension))", "release_size": "True"},
        ("dimension >= 1", "mu > 0", "c > 0"),
        {
            "mu add-remove release_size=True": "mu",
            "<= mu add-remove release_size=False": "mu",
            "mu add-remove release_size=False": _HIDDEN,
            "mu replace-one release_size=True": "2*mu*sqrt(dimension/(dimension + c**2))",
            "variance release_size=False": f"({_FULL} + dimension + c**2)/(4*mu**2)",
            "variance release_size=True index<dimension": f"({_FULL} + dimension + c**2)/(4*mu**2)",
            "variance release_size=True index=dimension": f"({_FULL})/mu**2",
        },
        integers=("dimension",),
    ),
    "CountEllipse": _ELLIPSE,
    "OptimalEllipse": _ELLIPSE,  # for sparsity <= dimension/2; beyond, the formula has cases
    "KnownSizeGaussian": Law(
        {"dimension": "", "mu": "", "size_mu": "None"},
        ("dimension >= 1", "mu > 0"),
        {
            "mu add-remove size_mu=None": "mu",
            "mu add-remove size_mu": "sqrt(mu**2 + size_mu**2)",
            "mu replace-one size_mu=None": "2*mu",
            "mu replace-one size_mu": "2*mu",
            "variance size_mu=None": "dimension/(4*mu**2)",
            "variance size_mu index<dimension": "dimension/(4*mu**2) + 1/(4*size_mu**2)",
            "variance size_mu index=dimension": "1/size_mu**2",
        },
        integers=("dimension",),
    ),
    "DiscreteCorrelatedGaussian": Law(  # c is rational where the mechanism is defined
        {"dimension": "", "mu": "", "c": ""},
        ("dimension >= 1", "mu > 0", "c > 0"),
        {
            "rho add-remove": "mu**2/2",
            "rho replace-one": "2*dimension*mu**2/(dimension + c**2)",
        },
        integers=("dimension",),
    ),
    "DisjointGroupsGaussian": Law(
        {"groups": "", "dimension": "", "mu": "", "adjacency": "", "as_printed": "False"},
        ("groups >= 1", "dimension >= 1", "mu > 0"),
        {
            "mu add-remove adjacency=add-remove": "mu",
            "mu add-remove adjacency=replace-one as_printed=True": "mu*sqrt(5)/4",
            "mu add-remove adjacency=replace-one as_printed=False": "mu*sqrt(1/2)",
            "mu replace-one adjacency=replace-one": "mu",
            "variance adjacency=add-remove index<dimension": "(sqrt(dimension) + 1)**2/(4*mu**2)",
            "variance adjacency=replace-one as_printed=False index<dimension":
                "(dimension + 1)/mu**2",
            "variance adjacency=replace-one as_printed=True index<dimension":
                "(dimension + 4)/mu**2",
        },
        integers=("groups", "dimension"),
    ),
}  # fmt: skip
"""Mechanism → law. What has more structure than that is in `structured`."""


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its adjacency and arguments; `upper`: an upper bound will do."""

    question: str
    adjacency: object
    rest: tuple[Node, ...]
    upper: bool


Found = tuple[Node, list[Comparison]]


def tabulated(noise: Apply, asked: Asked) -> Found | None:
    """Return the formula of the table with its conditions, None where it has none."""
    law = LAWS.get(noise.name)
    if law is None:
        return None
    given = dict(noise.named)
    unknown = set(given) - set(law.arguments)
    if unknown:
        raise ProofError(f"{noise.name} has no argument {min(unknown)}")
    values: dict[str, Node] = {}
    for name, default in law.arguments.items():
        if name not in given and not default:
            raise ProofError(f"{noise.name} lacks its argument {name}")
        values[name] = given[name] if name in given else substitute(parse(default), values)
    made_for = values.get("adjacency")
    if asked.adjacency is None and isinstance(made_for, Text):
        asked = dataclasses.replace(asked, adjacency=made_for.value)
    if asked.upper:
        values = {
            name: rounded_up(value) if name in ("standard_deviation", "scale") else value
            for name, value in values.items()
        }
    conditions = [_filled(comparison(text), values) for text in law.conditions]
    conditions += [whole(values[name]) for name in law.integers]
    own = {key.removeprefix("<= ").split()[0] for key in law.formulas}
    if asked.question in own:
        found = _looked_up(law, asked, values)
        return found and answered(found[0], asked, [*conditions, *found[1]])
    found = _looked_up(law, dataclasses.replace(asked, question="mu", rest=()), values)
    if found is None or asked.question not in GAUSSIAN:
        return None
    answer = substitute(parse(GAUSSIAN[asked.question]), {"MU": found[0]})
    return answered(answer, asked, [*conditions, *found[1]])


def _looked_up(law: Law, asked: Asked, values: Mapping[str, Node]) -> Found | None:
    found = (_matching(key, text, asked, values) for key, text in law.formulas.items())
    return next((formula for formula in found if formula is not None), None)


def answered(formula: Node, asked: Asked, conditions: list[Comparison]) -> Found:
    """Put in the ε or the order that a question is asked at."""
    question, rest = asked.question, asked.rest
    if question == "variance":
        return formula, conditions
    wanted = {"delta": "EPSILON", "renyi": "ORDER", "loss_above": "EPSILON"}.get(question)
    if len(rest) != (0 if wanted is None else 1):
        raise ProofError(f"{question} has the wrong number of arguments")
    if wanted is None:
        return formula, conditions
    if question != "loss_above":
        least = number(1 if question == "renyi" else 0)
        conditions = [*conditions, Comparison(rest[0], ">=", least)]
    return substitute(formula, {wanted: rest[0]}), conditions


def _matching(key: str, text: str, asked: Asked, values: Mapping[str, Node]) -> Found | None:
    """Return the formula of a key of the table that fits, with the conditions on an index."""
    bound = key.startswith("<= ")
    words = key.removeprefix("<= ").split()
    question, rest = asked.question, asked.rest
    if words[0] != question or (bound and not asked.upper):
        return None
    conditions: list[Comparison] = []
    indexed = False
    for word in words[1:]:
        if word in ("add-remove", "replace-one"):
            if asked.adjacency != word:
                return None
        elif word.startswith("index"):
            if len(rest) != 1:
                return None
            indexed, last = True, values["dimension"]
            if word == "index=dimension":
                if rest[0] != last:
                    return None
            elif rest[0] == last:
                return None
            else:
                conditions += [
                    whole(rest[0]),
                    Comparison(rest[0], ">=", number(0)),
                    Comparison(rest[0], "<", last),
                ]
        elif "=" not in word:  # an argument that is given, and > 0
            if isinstance(values[word], Text):
                return None
            conditions.append(Comparison(values[word], ">", number(0)))
        else:
            name, _, wanted = word.partition("=")
            found = values[name]
            if not isinstance(found, Text) or str(found.value) != wanted:
                return None
    if question == "variance" and rest and not indexed:
        if len(rest) != 1:
            return None
        conditions.append(Comparison(rest[0], ">=", number(0)))
        conditions.append(Comparison(rest[0], "<=", number(0)))
    return substitute(parse(text), dict(values)), conditions


def whole(value: Node) -> Comparison:
    """Return the condition that a value is an integer."""
    return Comparison(value, INTEGER, number(0))


def rounded_up(value: Node) -> Node:
    """Return x for round_up(x): less noise, which serves an upper bound."""
    match value:
        case Apply(name="round_up", arguments=(inner,), named=()):
            return inner
    return value


def _filled(condition: Comparison, values: Mapping[str, Node]) -> Comparison:
    return Comparison(
        substitute(condition.left, values), condition.relation, substitute(condition.right, values)
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
