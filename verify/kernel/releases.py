"""Guarantees of mechanisms: approximate-dp, pure-dp, gaussian-dp, renyi-dp, zcdp, profile, tradeoff.

HOLDS is proved for every listed case, and over the whole of `for_all` by one statement in formulas
(`statements`): μ, the largest loss or ρ of the mechanism, as the table of lemmas gives it, is at
most what is claimed. REFUTED is proved by one case: δ from below, or the supremum of the loss, is
more than claimed.

Witness, all of it hints: for a composition `step` and `bits` of its lattice; for REFUTED `case`, the
values of the variables, and for zCDP the `order` of a Rényi divergence; for μ an `epsilon`, at which
δ is more than that of μ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

from flint import ctx, fmpq

from . import expressions, quantities
from .laws import INFINITE, ZERO, gaussian, told
from .lemmas import CURVE, LARGEST, Worst, merged, mu_formula, worst
from .notation import Noise, parse
from .numbers import (
    Budget,
    NotProved,
    Number,
    Proof,
    TooFewDigits,
    Wrong,
    compare,
    decide,
    precision,
    shown,
    sqrt,
)

Data = Mapping[str, Any]


class Case:
    """One assignment of the variables: texts become numbers at the working precision."""

    def __init__(self, theorem: Data, case: Mapping[str, Any], budget: Budget) -> None:
        self.theorem, self.case, self.budget = theorem, case, budget
        known = {*theorem["where"], *theorem["for_all"]}
        for name in known:
            expressions.allowed(name, f"theorem.{name}")
        self.trees = expressions.definitions(theorem["let"], known, "theorem.let")
        self.lemmas: set[str] = set()
        self._bits, self._names = 0, dict[str, Number]()
        self._kept: dict[tuple[str, int], Number] = {}

    def value(self, text: Any) -> Number:
        """Return the value of a formula."""
        key = (str(text), ctx.prec)
        if key not in self._kept:
            self._kept[key] = self._value(expressions.parse(text, "theorem", self.trees))
        return self._kept[key]

    def square(self, text: Any) -> Number:
        """Return the square of a formula, exact where the formula is a root."""
        node = expressions.parse(text, "theorem", self.trees)
        if node.op == "sqrt":
            return self._value(node.args[0])
        number = self._value(node)
        return number * number

    def _value(self, node: Any) -> Number:
        adjacency = self.theorem["adjacency"]
        return expressions.value(node, self.budget, adjacency, self.lemmas, self._at())

    def _at(self) -> Mapping[str, Number]:
        if self._bits != ctx.prec:
            self._names = {
                name: expressions.value(expressions.parse(text, "theorem"), self.budget)
                for name, text in self.case.items()
            }
            self._bits = ctx.prec
        return self._names

    def holds(self, text: str) -> bool | None:
        """Return whether a comparison is true."""
        left, relation, right = expressions.comparison(text, "theorem.assume", self.trees)
        return compare(self._value(left), relation, self._value(right))

    def check(self) -> None:
        """Raise Wrong unless the case is one that the theorem speaks of."""
        theorem, given = self.theorem, self.case
        where, for_all = theorem["where"], theorem["for_all"]
        if {*given} != {*where, *for_all}:
            raise Wrong("witness.case", "expected a value for every variable, and no other")
        for name, listed in where.items():
            if str(given[name]) not in [str(x) for x in listed] and not any(
                compare(self._at()[name], "==", self.value(x)) for x in listed
            ):
                raise Wrong(f"witness.case.{name}", "is not one of the listed values")
        for name, domain in for_all.items():
            for key, relation in (("low", ">="), ("above", ">"), ("high", "<="), ("below", "<")):
                if domain[key] is None:
                    continue
                bound = expressions.parse(domain[key], f"theorem.for_all.{name}", self.trees)
                if name in bound.free:
                    raise Wrong(f"theorem.for_all.{name}.{key}", "contains its own variable")
                self._require(
                    lambda b=bound, r=relation, n=name: compare(self._at()[n], r, self._value(b)),
                    name,
                )  # type: ignore[misc]
            if domain["integer"]:
                number = self._at()[name]
                if not isinstance(number, fmpq) or number.q != 1:
                    raise Wrong(f"witness.case.{name}", "is not a whole number")
        for text in theorem["assume"]:
            self._require(lambda t=text: self.holds(t), "an assumption")  # type: ignore[misc]

    def _require(self, question: Callable[[], bool | None], name: str) -> None:
        if decide(question, self.budget) is not True:
            raise Wrong("witness.case", f"is not in the domain: {name}")


def cases(theorem: Data, budget: Budget) -> Iterator[dict[str, str]]:
    """Yield every listed case."""
    where = theorem["where"]
    for values in product(*where.values()):
        budget.check(cases=1)
        yield {name: str(x) for name, x in zip(where, values, strict=True)}


def prove(theorem: Data, witness: Data, budget: Budget) -> Proof:
    """Prove a guarantee of a mechanism, or that it is false."""
    noise = parse(theorem["mechanism"])
    verdict = theorem["verdict"]
    proof = Proof()
    if verdict == "REFUTED":
        given = witness.get("case", {})
        if not isinstance(given, Mapping) or not all(
            isinstance(x, (str, int)) for x in given.values()
        ):
            raise Wrong("witness.case", "expected the values of the variables, as texts")
        case = Case(theorem, {k: str(v) for k, v in given.items()}, budget)
        case.check()
        _decide(theorem, noise, case, witness, budget, proof, refute=True)
        return proof
    if theorem["for_all"] and verdict == "HOLDS":
        return _over_ranges(theorem, noise, witness, budget)
    number = 0
    for values in cases(theorem, budget):
        grids = {n: d["grid"] for n, d in theorem["for_all"].items()}
        for point in product(*grids.values()):
            budget.check(cases=1)
            both = values | {n: str(x) for n, x in zip(grids, point, strict=True)}
            case = Case(theorem, both, budget)
            if theorem["assume"] and not all(
                decide(lambda t=t, c=case: c.holds(t), budget)
                for t in theorem["assume"]  # type: ignore[misc]
            ):
                continue
            number += 1
            _decide(theorem, noise, case, witness, budget, proof, refute=False)
    if not number:
        raise NotProved("it has no case")
    proof.numbers["cases"] = str(number)
    return proof


def _decide(
    theorem: Data,
    noise: Any,
    case: Case,
    witness: Data,
    budget: Budget,
    proof: Proof,
    *,
    refute: bool,
) -> None:
    """Decide one case, or raise NotProved."""
    kind = theorem["kind"]
    if kind not in _CLAIMS:
        raise NotProved(f"the kernel has no proof of the kind {kind} at a point")
    hints = dict(witness)
    rows: set[str] = set()
    said: dict[str, str] = {}

    def question(fine: int) -> bool | None:
        found = worst(noise, theorem["adjacency"], case.value, budget)
        rows.update(found.rows)
        return _CLAIMS[kind](theorem, found, case, hints, budget, refute, fine, said)

    answer, last = None, ""
    for bits, fine in _ladder(theorem, noise, case, budget):
        if bits > budget.bits:
            break
        budget.check()
        with precision(bits):
            try:
                answer = question(fine)
            except TooFewDigits as error:
                last = error.reason
                continue
        if answer is not None:
            break
    if answer is not True:
        wanted = "refuted" if refute else "proved"
        at = ", ".join(f"{k} = {v}" for k, v in case.case.items())
        why = "; ".join(f"{k} {v}" for k, v in said.items()) or last or "too close to call"
        raise NotProved(f"the claim could not be {wanted}{' at ' + at if at else ''}: {why}")
    proof.lemmas |= rows | case.lemmas
    proof.numbers.update(said)


def _ladder(theorem: Data, noise: Any, case: Case, budget: Budget) -> tuple[tuple[int, int], ...]:
    """Return precisions, and how fine a lattice is where one is needed."""
    found = worst(noise, theorem["adjacency"], case.value, budget)
    if all(quantities.is_single(merged(way)) for way in found.ways):
        return tuple((bits, 16) for bits in (64, 128, 256, 512, 1024, 2048))
    return tuple((quantities.LATTICE_BITS, fine) for fine in quantities.FINENESS)


Said = dict[str, str]


def _approximate(
    theorem: Data,
    found: Worst,
    case: Case,
    hints: Data,
    budget: Budget,
    refute: bool,
    fine: int,
    said: Said,
) -> bool | None:
    epsilon, claimed = case.value(theorem["epsilon"]), case.value(theorem["delta"])
    _nonnegative("delta", claimed)
    if compare(claimed, "==", ZERO):
        return _largest(found, epsilon, refute, said)
    if refute:
        real = quantities.lower_delta(found, epsilon, budget, hints, fine)
        said["delta, from below"] = shown(real)
        return compare(real, ">", claimed) or _near(real, ">", claimed * fmpq(9, 10))
    if compare(claimed, ">=", fmpq(1)):
        return True
    real = quantities.upper_delta(found, epsilon, budget, hints, fine)
    said["delta, from above"] = shown(real)
    return compare(real, "<=", claimed) or _near(real, "<", claimed * fmpq(11, 10))


def _near(real: Number, relation: str, claimed: Number) -> bool | None:
    """Return None, which asks for a finer lattice, where one may help; else False."""
    return False if compare(real, relation, claimed) is False else None


def _nonnegative(name: str, x: Number) -> None:
    if compare(x, "<", ZERO):
        raise NotProved(f"{name} is negative")


def _largest(found: Worst, epsilon: Number, refute: bool, said: Said) -> bool | None:
    if refute and found.attained not in (CURVE, LARGEST):
        raise NotProved("the table of lemmas bounds this mechanism from above only")
    largest = quantities.max_loss(found)
    said["largest loss"] = "infinite" if largest is INFINITE else shown(largest)
    return compare(largest, ">" if refute else "<=", epsilon)


def _pure(
    theorem: Data, found: Worst, case: Case, _: Data, __: Budget, refute: bool, ___: int, said: Said
) -> bool | None:
    return _largest(found, case.value(theorem["epsilon"]), refute, said)


def _gaussian(
    theorem: Data,
    found: Worst,
    case: Case,
    hints: Data,
    budget: Budget,
    refute: bool,
    fine: int,
    said: Said,
) -> bool | None:
    claimed = case.value(theorem["mu"])
    try:
        square = quantities.gaussian_square(found)
    except NotProved:
        if not refute or "epsilon" not in hints:
            raise
        if not told(claimed, ">", ZERO):
            raise NotProved("a claimed mu that is not positive") from None
        at = case.value(str(hints["epsilon"]))
        real = quantities.lower_delta(found, at, budget, hints, fine)
        return compare(real, ">", gaussian(claimed).delta(at))
    if refute and found.attained != CURVE:
        raise NotProved("the table of lemmas bounds this mechanism from above only")
    _nonnegative("mu", claimed)
    said["mu"] = shown(sqrt(square))
    return compare(square, ">" if refute else "<=", case.square(theorem["mu"]))


def _renyi(
    theorem: Data, found: Worst, case: Case, _: Data, __: Budget, refute: bool, ___: int, said: Said
) -> bool | None:
    order, claimed = case.value(theorem["order"]), case.value(theorem["epsilon"])
    if refute and found.attained != CURVE:
        raise NotProved("the table of lemmas bounds this mechanism from above only")
    divergence = quantities.renyi(found, order)
    said["divergence"] = shown(divergence)
    return compare(divergence, ">" if refute else "<=", claimed)


def _zcdp(
    theorem: Data,
    found: Worst,
    case: Case,
    hints: Data,
    _: Budget,
    refute: bool,
    __: int,
    said: Said,
) -> bool | None:
    claimed = case.value(theorem["rho"])
    if not refute:
        rho = quantities.rho(found)
        found.rows.add("pure")
        said["rho, from above"] = shown(rho)
        return compare(rho, "<=", claimed)
    if found.attained != CURVE:
        raise NotProved("the table of lemmas bounds this mechanism from above only")
    order = case.value(str(hints.get("order", "2")))
    divergence = quantities.renyi(found, order)
    said[f"divergence of order {shown(order)}"] = shown(divergence)
    return compare(divergence, ">", claimed * order)


_CLAIMS: dict[str, Callable[..., bool | None]] = {
    "approximate-dp": _approximate,
    "pure-dp": _pure,
    "gaussian-dp": _gaussian,
    "renyi-dp": _renyi,
    "zcdp": _zcdp,
}


# --- over ranges --------------------------------------------------------------------------------
LARGEST_LOSS = {
    "Laplace": "l1_sensitivity/scale",
    "DiscreteLaplace": "sensitivity/scale",
    "Logistic": "sensitivity/scale",
    "ExponentialMechanism": "epsilon",
    "PermuteAndFlip": "epsilon",
    "RandomizedResponse": "epsilon",
    "Staircase": "epsilon",
    "KaryTree": "epsilon",
    "BinaryTree": "epsilon",
}
"""Mechanism → the largest loss in its arguments."""
RHO = {
    "DiscreteGaussian": "sensitivity**2/(2*parameter)",
    "DiscreteCorrelatedGaussian": "mu**2/2",
    "ExponentialMechanism": "epsilon**2/8",
}
"""Mechanism → ρ in its arguments."""


def _over_ranges(theorem: Data, noise: Any, witness: Data, budget: Budget) -> Proof:
    """Prove a guarantee over ranges by one statement in formulas."""
    from . import statements
    from .symbolic import domains, formula

    if not isinstance(noise, Noise):
        raise Wrong("theorem.mechanism", "expected a mechanism")
    row, claim = formula(theorem, noise, mu_formula, LARGEST_LOSS, RHO)
    lemmas = {row}

    def proved(comparison: str, hints: Data | None = None) -> None:
        statement = {**theorem, "kind": "relation", "claim": comparison}
        lemmas.update(statements.prove(statement, hints or {}, budget).lemmas)

    domains(theorem, noise, proved)
    if claim is not None:
        proved(claim, witness)
    return Proof(lemmas=lemmas)
