"""Prove the formal claim of a claim file from its plain data, or raise ProofError."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Final, final

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.ranges.atoms import Puncture
from dpassay.verifier.ranges.claims import goals_of, limits_of, resolved, sides_of, theorem_of
from dpassay.verifier.ranges.domain import INTEGER, Goal
from dpassay.verifier.ranges.expressions import (
    Budget,
    Comparison,
    Node,
    ProofError,
    comparison,
    number,
    parse,
    substitute,
)
from dpassay.verifier.ranges.limits import StatedLimit, limit_proof
from dpassay.verifier.ranges.methods import (
    by_sweep,
    cases,
    identity,
    positive,
    require_whole,
    without_abs,
)
from dpassay.verifier.ranges.nested import (
    both,
    branch,
    combine,
    derivative,
    each,
    in_form,
    induction,
    split_proof,
)
from dpassay.verifier.ranges.prover import Method, Proved, Spec
from dpassay.verifier.ranges.resolver import Resolver

METHODS: Final[dict[str, Method]] = {
    "identity": identity,
    "positive": positive,
    "sweep": by_sweep,
    "cases": cases,
    "split": split_proof,
    "both": both,
    "derivative": derivative,
    "induction": induction,
    "combine": combine,
    "each": each,
    "branch": branch,
    "form": in_form,
}
_TRIED: Final = ({"method": "identity"}, {"method": "positive"}, {"method": "sweep", "pieces": 500})
"""What is tried where a proof does not say its method."""
_DEEPEST: Final = 30
_UNREADABLE: Final = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError
)  # fmt: skip
"""What data of a wrong shape or size may raise on the way."""
_PRECISION: Final = 128


def prove(
    claim: Mapping[str, Any],
    lemmas: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    seconds: float = 60.0,
) -> Proved:
    """Prove the formal claim of plain data by the proof that it carries.

    `lemmas` has the claims of the same file by id. Raises ProofError for everything that is not
    proved within the time.
    """
    kernel = Kernel({} if lemmas is None else lemmas, Budget(seconds))
    return kernel.claim(claim)


@final
class Kernel:
    """Proofs of the claims of one file, each proved at most once."""

    def __init__(self, lemmas: Mapping[str, Mapping[str, Any]], budget: Budget) -> None:
        self.budget = budget
        self._claims = lemmas
        self._proved: dict[str, list[Goal]] = {}
        self._open: list[str] = []
        self._depth = 0
        self._names: Mapping[str, Node] = {}

    def read(self, text: object) -> Node:
        """Parse an expression of a proof, which may use the names of its claim.

        A formula stands for a question about a mechanism here, whether or not its conditions hold.
        """
        return Resolver().resolve(substitute(parse(text), self._names))

    def compared(self, text: object) -> Comparison:
        """Parse a comparison of a proof."""
        found = comparison(text)
        left, right = (
            Resolver().resolve(substitute(side, self._names)) for side in (found.left, found.right)
        )
        return Comparison(left, found.relation, right)

    def claim(self, claim: Mapping[str, Any]) -> Proved:
        """Prove a claim."""
        try:
            with ctx.workprec(_PRECISION):
                return self._claim(claim)
        except _UNREADABLE as error:
            raise ProofError(f"the proof cannot be read ({error!r:.200})") from error
        except Puncture:
            raise ProofError("a divisor may be 0 at one point of the domain") from None

    def _claim(self, claim: Mapping[str, Any]) -> Proved:
        spec = claim.get("proof")
        if not isinstance(spec, Mapping) or not isinstance(spec.get("method"), str):
            raise ProofError("the claim has no proof")
        if claim.get("kind") == "limit":
            found = [self._limit(stated, spec) for stated in limits_of(claim)]
        else:
            found = [self._named(goal, names, spec) for goal, names in goals_of(claim)]
            for side, names in sides_of(claim):
                self._named(side, names, None)
        if not found:
            raise ProofError("the claim has no case")
        sizes = found[0].size if len(found) == 1 else f"{len(found)} goals"
        theorem = theorem_of(claim) or "; ".join(proved.theorem for proved in found[:20])
        return Proved(theorem, str(spec["method"]), sizes)

    def _limit(self, stated: StatedLimit, spec: Spec) -> Proved:
        before, self._names = self._names, stated.names
        try:
            self._hold(stated.conditions)
            return limit_proof(stated, spec, self)
        finally:
            self._names = before

    def _named(self, goal: Goal, names: Mapping[str, Node], spec: Spec | None) -> Proved:
        before, self._names = self._names, names
        try:
            return self._stated(goal, spec)
        finally:
            self._names = before

    def _stated(self, goal: Goal, spec: Spec | None) -> Proved:
        """Prove a goal of a claim, after the conditions of the formulas that it uses."""
        if goal.relation == INTEGER:
            require_whole(goal, goal.left, self.budget)
            return Proved(str(goal), "integer", "1 step")
        told, conditions = resolved(goal)
        self._hold(conditions)
        plain = without_abs(told, self.budget)
        return dataclasses.replace(self.prove(plain, spec), theorem=str(goal))

    def _hold(self, conditions: Iterable[Goal]) -> None:
        """Prove the conditions of formulas."""
        for condition in conditions:
            if condition.relation == INTEGER:
                require_whole(condition, condition.left, self.budget)
            else:
                self._attempt(condition)

    def prove(self, goal: Goal, spec: Spec | None) -> Proved:
        """Prove a goal by a nested proof, or by what is tried without one."""
        if spec is None:
            return self._attempt(goal)
        method = METHODS.get(str(spec.get("method")))
        if method is None:
            known = ", ".join(METHODS)
            raise ProofError(f"unknown method {str(spec.get('method'))[:40]!r}; known: {known}")
        self._depth += 1
        try:
            if self._depth > _DEEPEST:
                raise ProofError("the proof is nested too deeply")
            return method(goal, spec, self)
        except Puncture as point:
            return self._around(goal, spec, point)
        finally:
            self._depth -= 1

    def _attempt(self, goal: Goal) -> Proved:
        failures = []
        for spec in _TRIED:
            try:
                return self.prove(goal, spec)
            except ProofError as error:
                failures.append(str(error)[:120])
        raise ProofError(f"not proved: {goal}. {'; '.join(failures)}")

    def _around(self, goal: Goal, spec: Spec, at: Puncture) -> Proved:
        """Prove a goal without one value of a variable, and at that value, by the same proof."""
        variable = goal.domain.variable(at.variable)
        if variable is None or variable.integer:
            raise ProofError(f"a divisor may be 0 at {at.variable} = {at.point}")
        point, parts = number(at.point), []
        for low, high in ((None, point), (point, None)):
            if low is None and variable.low == high and not variable.low_open:
                continue  # the value is the low end itself
            if high is None and variable.high == low and not variable.high_open:
                continue
            piece = dataclasses.replace(
                variable,
                low=variable.low if low is None else low,
                low_open=variable.low_open if low is None else True,
                high=variable.high if high is None else high,
                high_open=variable.high_open if high is None else True,
            )
            parts.append(goal.on(goal.domain.put(piece)))
        if not parts:
            raise ProofError(f"a divisor is 0 at {at.variable} = {at.point}")
        proofs = [self.prove(part, spec) for part in parts]
        self._at(goal, spec, {at.variable: point})
        return Proved(str(goal), proofs[0].method, f"{proofs[0].size}; {at.variable} = {at.point}")

    def _at(self, goal: Goal, spec: Spec, values: Mapping[str, Node]) -> None:
        """Prove a goal with values in the place of variables, there and in the proof's texts."""
        fixed = {name: substitute(node, values) for name, node in self._names.items()}
        before, self._names = self._names, {**fixed, **values}
        try:
            self.prove(goal.fix(values), spec)
        finally:
            self._names = before

    def lemma(self, name: str) -> list[Goal]:
        """Return what a claim of the same file states, after it has been proved."""
        if name in self._open:
            raise ProofError(f"the lemma {name[:60]!r} rests on itself")
        if name not in self._proved:
            if name not in self._claims:
                raise ProofError(f"there is no lemma {name[:60]!r}")
            self._open.append(name)
            try:
                self._claim(self._claims[name])
                found = goals_of(self._claims[name])
                self._proved[name] = [resolved(goal)[0] for goal, _ in found]
            finally:
                self._open.pop()
        return self._proved[name]
