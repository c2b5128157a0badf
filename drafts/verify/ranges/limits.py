"""Limits at +∞, by the laws of limits; the value is an expression again, so that it is exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from dpassay.verifier.ranges.domain import Domain, Goal
from dpassay.verifier.ranges.expressions import (
    ONE,
    ZERO,
    Apply,
    Budget,
    Name,
    Node,
    Number,
    ProofError,
    free,
    number,
    show,
)
from dpassay.verifier.ranges.extended import MONOTONE, evaluate
from dpassay.verifier.ranges.methods import difference, vanishes
from dpassay.verifier.ranges.normal import Normaliser
from dpassay.verifier.ranges.prover import Proved, Prover, Spec, nested, normalised, options
from dpassay.verifier.ranges.ranges import fraction
from dpassay.verifier.ranges.sweep import box_of

_CONTINUOUS: Final = frozenset({"log", "log1p", "log2", "sqrt", "abs"} | MONOTONE.keys())


@final
@dataclass(frozen=True, slots=True)
class Limit:
    """Where an expression tends to: +∞ or −∞ (infinite = ±1), or the value of an expression.

    `side` says that the expression is eventually above (1) or below (−1) a finite limit, 0 that it
    equals it, None that this is not known.
    """

    value: Node = ZERO
    infinite: int = 0
    side: int | None = None


@final
class Limits:
    """Limits as one variable grows without bound, the others fixed."""

    def __init__(self, name: str, domain: Domain, budget: Budget) -> None:
        self._name, self._budget = name, budget
        kept = tuple(v for v in domain.variables if v.name != name)
        self.domain = Domain(kept)
        self._box = box_of(self.domain, budget)

    def of(self, node: Node) -> Limit:
        """Return the limit; raise ProofError where the laws do not give it."""
        if self._name not in free(node):
            return Limit(node, side=0)
        match node:
            case Name():
                return Limit(infinite=1)
            case Apply(name="+", arguments=(left, right)):
                return self._sum(self.of(left), self.of(right))
            case Apply(name="-", arguments=(left, right)):
                return self._sum(self.of(left), self._product(Limit(number(-1)), self.of(right)))
            case Apply(name="*", arguments=(left, right)):
                return self._product(self.of(left), self.of(right))
            case Apply(name="/", arguments=(left, right)):
                return self._product(self.of(left), self._inverse(self.of(right)))
            case Apply(name="**", arguments=(base, exponent)):
                return self._power(base, exponent)
            case Apply(name=name, arguments=(x,), named=()) if name in _CONTINUOUS:
                return self._function(name, self.of(x))
        raise ProofError(f"the limit of {show(node)[:60]} is not known")

    def _sign(self, value: Node) -> int:
        """Return the sign of a number that does not depend on the variable."""
        if self._is_zero(value):
            return 0
        found = evaluate(value, self._box, self._budget).sign()
        if found is None or not found[1]:
            raise ProofError(f"the sign of {show(value)[:60]} was not found")
        return found[0]

    def _is_zero(self, value: Node) -> bool:
        goal = Goal(value, "==", ZERO, self.domain)
        return normalised(goal, self._budget, lambda n: vanishes(n, difference(goal, n)))

    def _sum(self, x: Limit, y: Limit) -> Limit:
        if x.infinite and y.infinite and x.infinite != y.infinite:
            raise ProofError("a limit has the form ∞ - ∞: write it in another form")
        if x.infinite or y.infinite:
            return Limit(infinite=x.infinite or y.infinite)
        opposed = x.side and y.side and x.side != y.side
        side = None if None in (x.side, y.side) or opposed else x.side or y.side
        return Limit(x.value + y.value, side=side)

    def _product(self, x: Limit, y: Limit) -> Limit:
        if not x.infinite and not y.infinite:
            value = x.value * y.value
            side: int | None = None
            one, two = self._kind(x), self._kind(y)
            if one is not None and two is not None and self._is_zero(value):
                side = one * two
            return Limit(ZERO if side is not None else value, side=side)
        signs = [z.infinite or self._sign(z.value) for z in (x, y)]
        if 0 in signs:
            raise ProofError("a limit has the form 0·∞: write it in another form")
        return Limit(infinite=signs[0] * signs[1])

    def _kind(self, x: Limit) -> int | None:
        """Return the sign that the values have in the end, None where it is not known."""
        try:
            return self._sign(x.value) or x.side
        except ProofError:
            return None

    def _inverse(self, x: Limit) -> Limit:
        if x.infinite:
            return Limit(ZERO, side=x.infinite)
        sign = self._sign(x.value)
        if sign:
            side = None if x.side is None else -x.side
            return Limit(1 / x.value, side=side)
        if not x.side:
            raise ProofError("a divisor tends to 0")
        return Limit(infinite=x.side)

    def _power(self, base: Node, exponent: Node) -> Limit:
        if isinstance(exponent, Number):
            power, below = exponent.value, self.of(base)
            if power < 0:
                return self._inverse(self._power(base, Number(-power)))
            if power == 0:
                return Limit(ONE, side=0)
            if below.infinite:
                if below.infinite < 0 and power.denominator > 1:
                    raise ProofError("a power of what tends to -∞")
                return Limit(infinite=below.infinite if power % 2 else 1)
            if power.denominator > 1 and self._sign(below.value) < 0:
                raise ProofError("a root of a negative limit")
            side = below.side if self._kind(below) == 1 else None
            return Limit(below.value**exponent, side=side)
        whole = exponent * Apply("log", (base,))
        return self._function("exp", self.of(whole))

    def _function(self, name: str, x: Limit) -> Limit:
        if x.infinite:
            return self._at_infinity(name, x.infinite)
        if name in ("log", "log2") and self._sign(x.value) == 0:
            if x.side != 1:
                raise ProofError("the logarithm of what tends to 0")
            return Limit(infinite=-1)
        side = x.side if name != "abs" else None
        if name in MONOTONE and MONOTONE[name].falls and side is not None:
            side = -side
        return Limit(Apply(name, (x.value,)), side=side)

    @staticmethod
    def _at_infinity(name: str, sign: int) -> Limit:
        if name in MONOTONE:
            law = MONOTONE[name]
            end = law.at_infinity if sign > 0 else law.at_minus_infinity
            if end.is_finite():
                return Limit(number(fraction(end)), side=sign if law.falls else -sign)
        if sign < 0 and name != "abs":
            raise ProofError(f"{name} of what tends to -∞")
        return Limit(infinite=1)


@final
@dataclass(frozen=True, slots=True)
class StatedLimit:
    """What a claim of kind limit states, in one of its listed cases."""

    expression: Node
    variable: str
    limit: Node
    rate: Node | None
    domain: Domain
    names: Mapping[str, Node]
    conditions: tuple[Goal, ...] = ()
    """Under which its formulas answer the questions about mechanisms."""


def limit_proof(stated: StatedLimit, spec: Spec, prover: Prover) -> Proved:
    """Prove that an expression tends to a number as a variable of the domain tends to +∞.

    `continuity`: by the laws of limits, applied to the expression or an identical `form`. `rate`:
    |expression − limit| ≤ rate over the domain, and the rate tends to 0. A stated rate is proved
    either way.
    """
    expression, claimed, rate = stated.expression, stated.limit, stated.rate
    variable, domain = stated.variable, stated.domain
    moving = domain.variable(variable)
    if moving is None or moving.high is not None:
        raise ProofError("expected the variable of a limit to have no upper end")
    if domain.assumptions:
        raise ProofError("a limit with assumptions is not understood")
    limits = Limits(variable, domain, prover.budget)
    theorem = f"for {domain}: {show(expression)} tends to {show(claimed)}"
    theorem += "" if rate is None else f", and is off by at most {show(rate)} on the way"
    if spec.get("method") == "continuity":
        given = options(spec, ("form", "below", "above"))
        form = expression if "form" not in given else prover.read(given["form"])
        goal = Goal(expression, "==", form, domain)
        _identical(goal, prover, "the form is not the expression")
        found = limits.of(form)
        if found.infinite:
            raise ProofError("the expression tends to infinity")
        _identical(
            Goal(found.value, "==", claimed, limits.domain), prover,
            f"the limit is {show(found.value)[:80]}",
        )  # fmt: skip
        if rate is not None:
            prover.prove(Goal(expression - claimed, "<=", rate, domain), nested(spec, "above"))
            prover.prove(Goal(expression - claimed, ">=", -rate, domain), nested(spec, "below"))
        return Proved(theorem, "continuity", "1 limit")
    if spec.get("method") == "rate" and rate is not None:
        given = options(spec, ("below", "above", "form"))
        form = rate if "form" not in given else prover.read(given["form"])
        _identical(Goal(rate, "==", form, domain), prover, "the form is not the rate")
        found = limits.of(form)
        if found.infinite:
            raise ProofError("the rate does not tend to 0")
        _identical(
            Goal(found.value, "==", ZERO, limits.domain), prover, "the rate does not tend to 0"
        )
        gap = expression - claimed
        upper = prover.prove(Goal(gap, "<=", rate, domain), nested(given, "above"))
        lower = prover.prove(Goal(gap, ">=", -rate, domain), nested(given, "below"))
        return Proved(theorem, "rate", f"above: {upper.size}; below: {lower.size}")
    raise ProofError("a limit is proved by continuity, or by rate where the claim has one")


def _identical(goal: Goal, prover: Prover, otherwise: str) -> None:
    def work(normaliser: Normaliser) -> None:
        if not vanishes(normaliser, difference(goal, normaliser)):
            raise ProofError(otherwise)

    normalised(goal, prover.budget, work)
