"""Functions that claims ask for by name, as formulas: bounded count noise, trees, mechanisms.

Bounded count noise on −D..D with P(Z = 0) = η and E = e^ε: P_m = Σ_{j<m} E^j, S_m = Σ_{j<m} (j + 1)E^j
and A_m = Σ_{j<m} (m − j)E^j, B = 2/(1 − η), C = 2η/(1 − η). The printed optimum is the largest of
δ_k = (C·P_k − E^k)/(B·S_k), k = 1..D, and 1/(B·A_D); the true one replaces the last by the largest of
(1 − C(E + … + E^m))/(B(A_m + A_{D−m})), m = 0..D/2.

A tree of arity k writes a time step in digits, plain or signed, and its output adds |d_i| vertices
of level i, each with the noise of variance 2h², h the height.
"""

from __future__ import annotations

from .expressions import ONE, ZERO, Node, make, number, parse, walk
from .notation import signatures
from .numbers import NotProved

MOST = 60
"""Largest support that is written out."""


def expanded(node: Node, conditions: Conditions) -> Node:
    """Put formulas in the place of every function that is one; say where they may stand."""
    for _ in range(10):
        found = {n: new for n in walk(node) if (new := _formula(n, conditions)) is not None}
        if not found:
            return node
        node = _replaced(node, found, {})
    return node


def _replaced(node: Node, found: dict[Node, Node], done: dict[Node, Node]) -> Node:
    if node in found:
        return found[node]
    if node not in done:
        inner = (_replaced(a, found, done) if isinstance(a, Node) else a for a in node.args)
        done[node] = make(node.op, *inner)
    return done[node]


def _formula(node: Node, conditions: Conditions) -> Node | None:
    if node.op.startswith("count_noise_"):
        return _count_noise(node.op.removeprefix("count_noise_"), node.args)
    if node.op in ("tree_mse", "signed_tree_mse", "tree_height", "signed_tree_height"):
        return _tree(node)
    if node.op in _ASKED and node.args:
        return _mechanism(node, conditions)
    return None


def _integer(node: Node, most: int) -> int | None:
    if node.op != "num" or node.args[0].q != 1:
        return None
    if not 0 <= node.args[0] <= most:
        raise NotProved("a formula is asked for beyond what is written out")
    return int(node.args[0].p)


def _count_noise(what: str, args: tuple[Node, ...]) -> Node | None:
    *index, e, eta, last = args
    d, wanted = _integer(last, MOST), 1 if what in ("mass", "weight") else 0
    if d is None or d < 1 or len(index) != wanted:
        return None
    powers = [e ** number(i) for i in range(d + 1)]

    def total(terms: list[Node]) -> Node:
        found = ZERO
        for term in terms:
            found = found + term
        return found

    plain = [total(powers[:m]) for m in range(d + 2)]
    rising = [total([number(j + 1) * powers[j] for j in range(m)]) for m in range(d + 1)]
    falling = [total([number(m - j) * powers[j] for j in range(m)]) for m in range(d + 1)]
    b, c = number(2) / (ONE - eta), number(2) * eta / (ONE - eta)
    first = [(c * plain[k] - powers[k]) / (b * rising[k]) for k in range(1, d + 1)]
    printed = make("max", *first, ONE / (b * falling[d]))
    if what == "delta":
        return printed
    if what == "optimal_delta":
        others = [
            (ONE - c * (plain[m + 1] - ONE)) / (b * (falling[m] + falling[d - m]))
            for m in range(d // 2 + 1)
        ]
        return make("max", *first, *others)
    z = _integer(index[0], MOST)
    if z is None or (z == 0 and what == "weight") or z > d:
        return None
    if z == 0:
        return eta
    # α = P_{D+1−z}/A_D where C ≤ P_{D+1}/A_D; beyond, (C − Bδ·P_z)/E^z or 0
    low = plain[d + 1 - z] / falling[d]
    high = make("max", ZERO, (c - b * printed * plain[z]) / powers[z])
    weight = make("where", c - plain[d + 1] / falling[d], low, high)
    return weight if what == "weight" else weight / b


def _tree(node: Node) -> Node | None:
    if len(node.args) != 2:
        return None
    k, n = (_integer(a, 1 << 1024) for a in node.args)
    if k is None or n is None:
        return None
    if not (2 <= k <= 1000 and n >= 1):
        raise NotProved("a tree has an arity from 2 to 1000 and a step")
    lowest = (k - 1) // 2 if node.op.startswith("signed") else 0
    height = 1
    while (k - 1 - lowest) * ((k**height - 1) // (k - 1)) < n:
        height += 1
    if node.op.endswith("height"):
        return number(height)
    total = 0
    for level in range(height):  # adding `lowest` to each digit makes the digits of t + shift plain
        unit = k**level
        shift = lowest * (unit * k - 1) // (k - 1)
        for plain in range(k):
            inside = _below(n + shift + 1, plain, unit, k) - _below(shift + 1, plain, unit, k)
            total += abs(plain - lowest) * inside
    return number(2 * height**2 * total) / number(n)


def _below(end: int, digit: int, unit: int, arity: int) -> int:
    """Count 0 ≤ u < end whose digit of weight `unit` is `digit`."""
    periods, rest = divmod(end, unit * arity)
    return periods * unit + min(max(rest - digit * unit, 0), unit)


_CORRELATED = "(dimension/c**2 + 1 + dimension + c**2)/(4*mu**2)"
_ELLIPSE = (
    "(sparsity + sqrt((dimension - 1)*sparsity*(dimension - sparsity)))**2/(dimension**2*mu**2)"
)
_VARIANCE = {
    "Gaussian": ("standard_deviation**2", ""),
    "Laplace": ("2*scale**2", ""),
    "CorrelatedGaussian": (_CORRELATED, "(dimension/c**2 + 1)/mu**2"),
    "CountEllipse": (_ELLIPSE, ""),
    "OptimalEllipse": (_ELLIPSE, ""),
    "KnownSizeGaussian": ("dimension/(4*mu**2)", ""),
    "KnownSizeGaussian sized": ("dimension/(4*mu**2) + 1/(4*size_mu**2)", "1/size_mu**2"),
    "DisjointGroupsGaussian add-remove": ("(sqrt(dimension) + 1)**2/(4*mu**2)", ""),
    "DisjointGroupsGaussian replace-one": ("(dimension + 1)/mu**2", ""),
    "DisjointGroupsGaussian printed": ("(dimension + 4)/mu**2", ""),
}
"""Mechanism → the variance of a coordinate, and of the one after the last: the size."""
_MU = {
    "Gaussian": {"": "l2_sensitivity/standard_deviation"},
    "CorrelatedGaussian": {
        "add-remove": "mu",
        "replace-one": "2*mu*sqrt(dimension/(dimension + c**2))",
    },
    "CountEllipse": {"add-remove": "mu"},
    "OptimalEllipse": {"add-remove": "mu"},
    "KnownSizeGaussian": {"add-remove": "mu", "replace-one": "2*mu"},
    "KnownSizeGaussian sized": {"add-remove": "sqrt(mu**2 + size_mu**2)", "replace-one": "2*mu"},
    "DisjointGroupsGaussian add-remove": {"add-remove": "mu"},
    "DisjointGroupsGaussian replace-one": {"add-remove": "mu*sqrt(1/2)", "replace-one": "mu"},
    "DisjointGroupsGaussian printed": {"add-remove": "mu*sqrt(5)/4"},
}
"""Mechanism → by relation, the μ of the Gaussian that it is as good as (rows of `lemmas`)."""
_ROWS = {
    "Gaussian": "gaussian", "Laplace": "laplace", "CorrelatedGaussian": "correlated",
    "CountEllipse": "ellipse", "OptimalEllipse": "ellipse", "KnownSizeGaussian": "known-size",
    "DisjointGroupsGaussian": "groups",
}  # fmt: skip
_OF_MU = {
    "mu": "MU",
    "rho": "MU**2/2",
    "renyi": "AT*MU**2/2",
    "delta": "Phi(MU/2 - AT/MU) - exp(AT)*Phi(-MU/2 - AT/MU)",
    "loss_above": "Phi(MU/2 - AT/MU)",
}
_ASKED = ("variance", "mse", "max_loss", *_OF_MU)


class Conditions:
    """What has to be true where a formula stands for a question, and the rows it rests on."""

    def __init__(self, adjacency: str | None) -> None:
        self.adjacency = adjacency
        self.positive: list[Node] = []
        self.whole: list[Node] = []
        self.lemmas: set[str] = set()


def _mechanism(node: Node, conditions: Conditions) -> Node | None:
    """Return the formula of a question about one release, whose arguments may be formulas."""
    *given, keys = node.args
    count = len(given) - len(keys)
    named = dict(zip(keys, given[count:], strict=True))
    if count < 1 or {*named} - {"adjacency"} or given[0].op not in _ROWS:
        return None
    relation = named["adjacency"].args[0] if "adjacency" in named else conditions.adjacency
    noise, rest = given[0], given[1:count]
    own = signatures()[noise.op]
    *values, names = noise.args
    placed = zip([*[*own][: len(values) - len(names)], *names], values, strict=True)
    arguments = dict(placed)
    if not {*arguments} <= {*own}:
        return None
    plain = {k: parse(v) for k, v in own.items() if v not in (None, "None", "True", "False")}
    arguments = {**plain, **arguments}
    name = noise.op
    if name == "CorrelatedGaussian" and "c" not in arguments:
        arguments["c"] = make("sqrt", make("sqrt", arguments["dimension"]))
    sized = arguments.get("release_size", arguments.get("size_mu"))
    if name == "KnownSizeGaussian" and sized is not None:
        name += " sized"
    if name == "DisjointGroupsGaussian":
        printed = arguments.pop("as_printed", None)
        made = arguments.pop("adjacency").args[0]
        name += " printed" if printed is make("text", "True") else f" {made}"
        relation = relation or made
    hidden = name == "CorrelatedGaussian" and sized is make("text", "False")
    numbers = {k: v for k, v in arguments.items() if v.op not in ("text", "list")}
    found = _answer(node.op, name, numbers, rest, relation, hidden)
    if found is None:
        return None
    conditions.lemmas.add(_ROWS[noise.op])
    formula, more = found
    conditions.positive += [*numbers.values(), *more]
    conditions.whole += [v for k, v in numbers.items() if k in ("dimension", "sparsity", "groups")]
    if "sparsity" in numbers:
        slack = numbers["dimension"] - number(2) * numbers["sparsity"] + ONE
        conditions.positive.append(slack)
    return formula


def _answer(
    asked: str,
    name: str,
    numbers: dict[str, Node],
    rest: list[Node],
    relation: str | None,
    hidden: bool,
) -> tuple[Node, list[Node]] | None:
    if asked == "max_loss" and name == "Laplace" and not rest:
        return parse("l1_sensitivity/scale", names=numbers), []
    if asked in ("variance", "mse") and name in _VARIANCE:
        formula, last = _VARIANCE[name]
        if not rest:
            alone = name in ("Gaussian", "Laplace") or (asked == "variance" and not last)
            return (parse(formula, names=numbers), []) if alone or hidden else None
        (index,) = rest[:1]
        size = numbers.get("dimension", ONE)
        if asked == "mse" or len(rest) > 1 or (index.op != "num" and index is not size):
            return None
        if index is size:
            return (parse(last, names=numbers), []) if last and not hidden else None
        if index.args[0].q != 1 or index.args[0] < 0:
            return None
        return parse(formula, names=numbers), [size - index]
    formulas = {} if hidden else _MU.get(name, {})
    text = formulas.get(relation or "", formulas.get(""))
    if text is None or asked not in _OF_MU or len(rest) != ("AT" in _OF_MU[asked]):
        return None
    at = dict(zip(["AT"], rest, strict=False))
    found = parse(_OF_MU[asked], names={"MU": parse(text, names=numbers), **at})
    return found, [rest[0]] if asked == "renyi" else []
