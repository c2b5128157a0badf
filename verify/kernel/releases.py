"""Guarantees of mechanisms: approximate-dp, pure-dp, gaussian-dp, renyi-dp, zcdp.

HOLDS is proved in every listed case. Over a range (`for_all`) it is proved as a comparison of
formulas (`statements`): the table of lemmas gives a formula for δ, μ, ρ or the largest loss, which
is at most the claimed value. REFUTED is proved in one case: a lower bound exceeds the claim.

The witness holds hints: `step`, `step_add` and `bits` of the lattice of a composition, and the
`direction` (remove or add) that refutes; for REFUTED the `case`; for zCDP the `order` of a Rényi
divergence; for GDP an `epsilon` at which δ exceeds that of μ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from . import expressions, quantities
from .cases import Case, Statement, reading
from .laws import ONE, ZERO, gaussian, resolve
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
    precision,
    shown,
    sqrt,
)

Data = Mapping[str, Any]


def prove(theorem: Data, witness: Data, budget: Budget) -> Proof:
    """Prove or refute a guarantee; raise NotProved or Wrong if that fails."""
    statement, number = reading(theorem, witness, budget), 0
    if theorem["for_all"] and theorem["verdict"] == "HOLDS":
        claim = _CLAIMS[theorem["kind"]][1]
        for name in re.findall(r"{(\w+)}", claim):  # each must be a formula by itself
            expressions.parse(theorem[name], f"theorem.{name}")
        statement.compare(statement.fact(claim.format(**theorem), "claim"))
        return statement.proof
    refuted = theorem["verdict"] == "REFUTED"
    for case in [statement.case()] if refuted else statement.listed():
        number += 1
        _Question(statement, case, witness).settle()
    if not refuted:
        statement.proof.numbers["cases"] = str(number)
    return statement.proof


class _Question:
    """One case of a claim: the true value of the mechanism against the claimed one."""

    def __init__(self, statement: Statement, case: Case, hints: Data) -> None:
        self.statement, self.case, self.hints = statement, case, hints
        self.theorem, self.budget, self.proof = statement.theorem, statement.budget, statement.proof
        self.refute = self.theorem["verdict"] == "REFUTED"
        self.computed, self.found = dict[str, str](), Worst([], [], set())

    def __call__(self, name: str) -> Number:
        """Return the value of a field of the claim in this case."""
        return self.statement.number(self.theorem[name], self.case)

    def worst(self) -> Worst:
        """Return the worst pairs of the mechanism in this case."""
        return worst(
            parse(self.theorem["mechanism"]),
            self.theorem["adjacency"],
            lambda text: self.statement.number(text, self.case),
            self.budget,
        )

    def settle(self) -> None:
        """Decide the case at rising precision, or raise NotProved."""
        answer, last, bits, composed = None, "", 64, False
        while answer is None and bits <= self.budget.bits:
            self.budget.check()
            with precision(bits):
                try:
                    self.found = self.worst()
                    composed = not quantities.is_single(self.found)
                    if not composed or bits >= quantities.LATTICE_BITS:
                        answer = _CLAIMS[self.theorem["kind"]][0](self)
                except TooFewDigits as error:
                    last = error.reason
            if composed and bits >= quantities.LATTICE_BITS:
                break
            bits = quantities.LATTICE_BITS if composed else 2 * bits
        if answer is not True:
            wanted = "refuted" if self.refute else "proved"
            at = ", ".join(f"{k} = {v}" for k, v in self.case.items())
            why = "; ".join(f"{k} {v}" for k, v in self.computed.items()) or last or "undecided"
            raise NotProved(f"the claim could not be {wanted}{' at ' + at if at else ''}: {why}")
        self.proof.lemmas |= self.found.rows
        self.proof.numbers.update(self.computed)

    def compared(self, name: str, real: Number, claimed: Number) -> bool | None:
        """Record a value; return whether it is at most the claimed one, or above it to refute."""
        self.computed[name] = shown(real)
        return compare(real, ">" if self.refute else "<=", claimed)

    def exact(self) -> None:
        """Raise NotProved if a refutation would rest on an upper bound."""
        if self.refute and self.found.lower is not None:
            raise NotProved(quantities.BOUND)

    def largest(self) -> bool | None:
        """Return whether the supremum of the loss is at most ε, or above it to refute."""
        found = quantities.max_loss(self.found, lower=self.refute)
        return self.compared("largest loss", found, self("epsilon"))

    def approximate(self) -> bool | None:
        epsilon, claimed = self("epsilon"), self("delta")
        if compare(claimed, "<", ZERO):
            raise NotProved("the claimed delta is negative")
        if compare(claimed, ">", ONE):
            raise Wrong("theorem.delta", "is more than 1")
        if compare(claimed, "==", ZERO):
            return self.largest()
        if self.refute:
            real = quantities.lower_delta(self.found, epsilon, self.budget, self.hints)
        elif compare(claimed, ">=", ONE):
            return True
        else:
            real = quantities.upper_delta(self.found, epsilon, self.budget, self.hints)
        return self.compared(f"delta, from {'below' if self.refute else 'above'}", real, claimed)

    def gaussian(self) -> bool | None:
        claimed = self("mu")
        if not resolve(claimed, ">=", ZERO):
            raise NotProved("the claimed mu is negative")
        try:
            square = quantities.gaussian_square(self.found)
            self.exact()
        except NotProved:
            if not self.refute or "epsilon" not in self.hints or compare(claimed, "==", ZERO):
                raise
            at = self.statement.number(self.hints["epsilon"], self.case)
            real = quantities.lower_delta(self.found, at, self.budget, self.hints)
            return compare(real, ">", gaussian(claimed).delta(at))
        node = self.statement.formula("mu")  # the square of a root is exact
        exact = node.args[0] if node.op == "sqrt" else node * node
        answer = self.compared("mu", square, self.statement.number(exact, self.case))
        self.computed["mu"] = shown(sqrt(square))
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
        order = self.statement.number(self.hints.get("order", "2"), self.case)
        found = quantities.renyi(self.found, order)
        return self.compared(f"divergence of order {shown(order)}", found, self("rho") * order)


_CLAIMS: dict[str, tuple[Callable[[_Question], bool | None], str]] = {
    "approximate-dp": (_Question.approximate, "delta({mechanism}, {epsilon}) <= {delta}"),
    "pure-dp": (_Question.largest, "max_loss({mechanism}) <= {epsilon}"),
    "gaussian-dp": (_Question.gaussian, "mu({mechanism}) <= {mu}"),
    "renyi-dp": (_Question.renyi, "renyi({mechanism}, {order}) <= {epsilon}"),
    "zcdp": (_Question.zcdp, "rho({mechanism}) <= {rho}"),
}
"""Kind → the decision of one case, and the claim as a comparison of formulas."""
