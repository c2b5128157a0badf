"""Guarantees of mechanisms: approximate-dp, pure-dp, gaussian-dp, renyi-dp, zcdp.

HOLDS is proved for every listed case, and over the whole of `for_all` by one statement in formulas
(`statements`): μ, the largest loss or ρ of the mechanism, as the table of lemmas gives it, is at
most what is claimed. REFUTED is proved by one case: δ from below, or the supremum of the loss, is
more than claimed.

Witness, all of it hints: for a composition `step`, `step_add`, `bits` of its lattice and its
`direction`; for REFUTED `case`, the values of the variables, and for zCDP the `order` of a Rényi
divergence; for μ an `epsilon`, at which δ is more than that of μ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

from flint import ctx, fmpq

from . import expressions, quantities
from .laws import ONE, ZERO, gaussian, told
from .lemmas import Worst, worst
from .notation import parse
from .numbers import (
    Budget,
    NotProved,
    Number,
    Proof,
    TooFewDigits,
    Wrong,
    compare,
    decide,
    must,
    precision,
    shown,
    sqrt,
)

Data = Mapping[str, Any]


class Case:
    """One assignment of the variables: texts become numbers at the working precision."""

    def __init__(self, theorem: Data, case: Mapping[str, str], budget: Budget) -> None:
        self.theorem, self.case, self.budget = theorem, case, budget
        known = {*theorem["where"], *theorem["for_all"]}
        for name in known:
            expressions.allowed(name, f"theorem.{name}")
        self.trees = expressions.definitions(theorem["let"], known, "theorem.let")
        self.lemmas: set[str] = set()
        self._kept: dict[tuple[str, int], Any] = {}

    def value(self, text: Any) -> Number:
        """Return the value of a formula."""
        key = (str(text), ctx.prec)
        if key not in self._kept:
            self._kept[key] = self._value(expressions.parse(text, "theorem", self.trees))
        found: Number = self._kept[key]
        return found

    def square(self, text: Any) -> Number:
        """Return the square of a formula, exact where the formula is a root."""
        node = expressions.parse(text, "theorem", self.trees)
        if node.op == "sqrt":
            return self._value(node.args[0])
        return self.value(text) * self.value(text)

    def at(self, name: str) -> Number:
        """Return the value of a variable."""
        return self._names()[name]

    def _names(self) -> Mapping[str, Number]:
        key = ("", ctx.prec)
        if key not in self._kept:
            self._kept[key] = {
                name: expressions.value(expressions.parse(text, "theorem"), self.budget)
                for name, text in self.case.items()
            }
        found: Mapping[str, Number] = self._kept[key]
        return found

    def _value(self, node: Any) -> Number:
        adjacency = self.theorem["adjacency"]
        return expressions.value(node, self.budget, adjacency, self.lemmas, self._names())

    def holds(self, text: str) -> bool | None:
        """Return whether a comparison is true."""
        left, relation, right = expressions.comparison(text, "theorem.assume", self.trees)
        return compare(self._value(left), relation, self._value(right))

    def assumed(self) -> bool:
        """Return whether every assumption is true; they must be decided."""
        return all(
            must(lambda t=text: self.holds(t), self.budget, "an assumption")  # type: ignore[misc]
            for text in self.theorem["assume"]
        )

    def check(self) -> None:
        """Raise Wrong unless the case is one that the theorem speaks of."""
        where, for_all = self.theorem["where"], self.theorem["for_all"]
        if {*self.case} != {*where, *for_all}:
            raise Wrong("witness.case", "expected a value for every variable, and no other")
        for name, listed in where.items():
            if self.case[name] not in [str(x) for x in listed] and not any(
                compare(self.at(name), "==", self.value(x)) for x in listed
            ):
                raise Wrong(f"witness.case.{name}", "is not one of the listed values")
        for name, domain in for_all.items():
            for key, relation in (("low", ">="), ("above", ">"), ("high", "<="), ("below", "<")):
                if domain[key] is None:
                    continue
                bound = expressions.parse(domain[key], f"theorem.for_all.{name}", self.trees)
                if name in bound.free:
                    raise Wrong(f"theorem.for_all.{name}.{key}", "contains its own variable")

                def inside(of: str = name, how: str = relation, end: Any = bound) -> bool | None:
                    return compare(self.at(of), how, self._value(end))

                if decide(inside, self.budget) is not True:
                    raise Wrong("witness.case", f"is not in the domain: {name}")
            number = self.at(name)
            if domain["integer"] and not (isinstance(number, fmpq) and number.q == 1):
                raise Wrong(f"witness.case.{name}", "is not a whole number")
        if not self.assumed():
            raise Wrong("witness.case", "is not in the domain: an assumption")


def _cases(theorem: Data, budget: Budget) -> Iterator[Case]:
    """Yield every listed case, of the ranges only their grid."""
    listed = theorem["where"] | {name: d["grid"] for name, d in theorem["for_all"].items()}
    for values in product(*listed.values()):
        budget.check(cases=1)
        case = Case(theorem, dict(zip(listed, map(str, values), strict=True)), budget)
        if case.assumed():
            yield case


def prove(theorem: Data, witness: Data, budget: Budget) -> Proof:
    """Prove a guarantee of a mechanism, or that it is false."""
    if theorem["kind"] not in _CLAIMS:
        raise NotProved(f"the kernel has no proof of the kind {theorem['kind']}")
    proof, refute = Proof(), theorem["verdict"] == "REFUTED"
    if theorem["for_all"] and theorem["verdict"] == "HOLDS":
        from . import statements

        claim = _CLAIMS[theorem["kind"]][1]
        for name in re.findall(r"{(\w+)}", claim):  # each a whole formula by itself
            expressions.parse(theorem[name], f"theorem.{name}")
        claim = claim.format(**theorem)
        return statements.prove({**theorem, "kind": "relation", "claim": claim}, witness, budget)
    if refute:
        given = witness.get("case", {})
        texts = isinstance(given, Mapping) and all(isinstance(x, str | int) for x in given.values())
        if not texts:
            raise Wrong("witness.case", "expected the values of the variables, as texts")
        case = Case(theorem, {name: str(x) for name, x in given.items()}, budget)
        case.check()
    number = 0
    for each in [case] if refute else _cases(theorem, budget):
        number += 1
        _Question(theorem, each, witness, budget, proof).settle()
    if not number:
        raise NotProved("it has no case")
    if not refute:
        proof.numbers["cases"] = str(number)
    return proof


class _Question:
    """One case of a claim: what is true of the mechanism, against what is claimed."""

    def __init__(
        self, theorem: Data, case: Case, hints: Data, budget: Budget, proof: Proof
    ) -> None:
        self.theorem, self.case, self.hints, self.budget = theorem, case, hints, budget
        self.refute = theorem["verdict"] == "REFUTED"
        self.proof, self.said = proof, dict[str, str]()
        self.found = Worst([], [], set())
        self.grid = quantities.Grid(budget)

    def __call__(self, name: str) -> Number:
        """Return the value of a field of the claim."""
        return self.case.value(self.theorem[name])

    def settle(self) -> None:
        """Decide the case at rising precision, or raise NotProved."""
        noise, answer, last = parse(self.theorem["mechanism"]), None, ""
        bits, fine = 64, iter([64] if "step" in self.hints else quantities.FINENESS)
        while answer is None and bits <= self.budget.bits:
            self.budget.check()
            with precision(bits):
                try:
                    self.found = worst(
                        noise, self.theorem["adjacency"], self.case.value, self.budget
                    )
                    if not quantities.is_single(self.found) and bits < quantities.LATTICE_BITS:
                        bits = quantities.LATTICE_BITS
                        continue
                    if not quantities.is_single(self.found):
                        size = next(fine, None)
                        if size is None:
                            break
                        self.grid = quantities.Grid(self.budget, size, self.hints)
                        bits //= 2
                    answer = _CLAIMS[self.theorem["kind"]][0](self)
                except TooFewDigits as error:
                    last = error.reason
            bits *= 2
        if answer is not True:
            wanted = "refuted" if self.refute else "proved"
            at = ", ".join(f"{k} = {v}" for k, v in self.case.case.items())
            why = "; ".join(f"{k} {v}" for k, v in self.said.items()) or last or "too close to call"
            raise NotProved(f"the claim could not be {wanted}{' at ' + at if at else ''}: {why}")
        self.proof.lemmas |= self.found.rows | self.case.lemmas
        self.proof.numbers.update(self.said)

    def compared(self, name: str, real: Number, claimed: Number) -> bool | None:
        """Say what was computed; return whether it is at most what is claimed, or above it."""
        self.said[name] = shown(real)
        return compare(real, ">" if self.refute else "<=", claimed)

    def exact(self) -> None:
        """Raise NotProved where a refutation would rest on an upper bound."""
        if self.refute and self.found.lower is not None:
            raise NotProved(quantities.BOUND)

    def largest(self) -> bool | None:
        """Return whether the supremum of the loss is at most ε, or above it."""
        found = quantities.max_loss(self.found, lower=self.refute)
        return self.compared("largest loss", found, self("epsilon"))

    def approximate(self) -> bool | None:
        epsilon, claimed = self("epsilon"), self("delta")
        if compare(claimed, "<", ZERO):
            raise NotProved("delta is negative")
        if compare(claimed, ">", ONE):
            raise Wrong("theorem.delta", "is more than 1")
        if compare(claimed, "==", ZERO):
            return self.largest()
        if self.refute:
            real = quantities.lower_delta(self.found, epsilon, self.grid)
            near = compare(real, ">", claimed * fmpq(9, 10))
        elif compare(claimed, ">=", ONE):
            return True
        else:
            real = quantities.upper_delta(self.found, epsilon, self.grid)
            near = compare(real, "<", claimed * fmpq(11, 10))
        side = "below" if self.refute else "above"
        answer = self.compared(f"delta, from {side}", real, claimed)
        return answer or (None if near is not False else False)

    def gaussian(self) -> bool | None:
        claimed = self("mu")
        if not told(claimed, ">=", ZERO):
            raise NotProved("mu is negative")
        try:
            square = quantities.gaussian_square(self.found)
            self.exact()
        except NotProved:
            if not self.refute or "epsilon" not in self.hints or compare(claimed, "==", ZERO):
                raise
            at = self.case.value(str(self.hints["epsilon"]))
            real = quantities.lower_delta(self.found, at, self.grid)
            return compare(real, ">", gaussian(claimed).delta(at))
        answer = self.compared("mu", square, self.case.square(self.theorem["mu"]))
        self.said["mu"] = shown(sqrt(square))
        return answer

    def renyi(self) -> bool | None:
        self.exact()
        found = quantities.renyi(self.found, self("order"), upper=not self.refute)
        return self.compared("divergence", found, self("epsilon"))

    def zcdp(self) -> bool | None:
        self.exact()
        if not self.refute:
            self.found.rows.add("pure")
            return self.compared("rho, from above", quantities.rho(self.found), self("rho"))
        order = self.case.value(str(self.hints.get("order", "2")))
        found = quantities.renyi(self.found, order)
        return self.compared(f"divergence of order {shown(order)}", found, self("rho") * order)


_CLAIMS: dict[str, tuple[Callable[[_Question], bool | None], str]] = {
    "approximate-dp": (_Question.approximate, "delta({mechanism}, {epsilon}) <= {delta}"),
    "pure-dp": (_Question.largest, "max_loss({mechanism}) <= {epsilon}"),
    "gaussian-dp": (_Question.gaussian, "mu({mechanism}) <= {mu}"),
    "renyi-dp": (_Question.renyi, "renyi({mechanism}, {order}) <= {epsilon}"),
    "zcdp": (_Question.zcdp, "rho({mechanism}) <= {rho}"),
}
"""Kind → how one case is decided, and the claim in formulas over ranges."""
