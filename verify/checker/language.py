"""The expression language a second time: rationals stay exact, all else is a ball.

Part of the independent checker: no code is shared with `dpassay.verifier.expression` or
`dpassay.verifier.functions`. Texts are read by the parser of the kernel.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.arithmetic import settle
from dpassay.verifier.checker.functions import FUNCTIONS, QUESTIONS, recomputed
from dpassay.verifier.checker.kernel import expressions
from dpassay.verifier.checker.kernel.expressions import (
    Apply,
    Entries,
    Fold,
    Name,
    Node,
    Number,
    ProofError,
    Text,
)
from dpassay.verifier.checker.mechanisms.arguments import build
from dpassay.verifier.checker.mechanisms.neighbours import under
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import Real, UnknownError, ball, compare, power, short

_MAX_TERMS = 1_000_000
"""Of all sums and products of an expression together."""
_MAX_WORK = 10_000_000
"""Terms and names of a claim, at all precisions together."""
_EXACT_TERMS = 2000
"""Terms that are added up as fractions."""
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": power,
}


class Variables(dict[str, Any]):
    """Values by name; a name of `let` is evaluated when it is asked for, at the precision then."""

    def __init__(
        self, values: Mapping[str, Any], let: Mapping[str, str], work: list[int] | None = None
    ) -> None:
        super().__init__(values)
        self.let = let
        self.work = [0] if work is None else work
        """How many terms and names were evaluated, in all scopes that come from one."""
        self._asked: set[str] = set()
        self._known: dict[tuple[str, int], Any] = {}
        """Names of `let` by precision: no index of a sum occurs in them."""

    def __missing__(self, name: str) -> Any:
        if name not in self.let:
            raise ValueError(f"unknown variable {name!r}")
        if name in self._asked:
            raise ValueError(f"{name!r} is defined by itself")
        key = (name, ctx.prec)
        if key in self._known:
            return self._known[key]
        self.count()
        self._asked.add(name)
        try:
            found = self._known[key] = evaluate(self.let[name], self)
            return found
        finally:
            self._asked.remove(name)

    def but(self, **values: Any) -> Variables:
        """Return the same variables with some values of their own."""
        scope = Variables({**self, **values}, self.let, self.work)
        scope._asked |= self._asked
        return scope

    def count(self) -> None:
        """Raise ValueError where a claim takes too much work."""
        self.work[0] += 1
        if self.work[0] > _MAX_WORK:
            raise ValueError(f"expressions of more than {_MAX_WORK} terms")


def evaluate(text: str, variables: Variables | None = None) -> Any:
    """Evaluate an expression at flint's precision; raise ValueError where it is malformed."""
    scope = Variables({}, {}) if variables is None else variables
    return _Evaluation().value(parsed(text), scope)


@lru_cache(maxsize=1024)
def parsed(text: str) -> Node:
    """Parse an expression; raise ValueError where it is malformed."""
    if not isinstance(text, str):
        raise ValueError(f"expected a text, not {text!r}")
    if not text.isascii():  # Python's parser would read some letters as others
        raise ValueError(f"{ascii(text)[:60]} has letters that are not ASCII")
    try:
        return expressions.parse(text)
    except ProofError as error:
        raise ValueError(str(error)) from None


def split(text: str) -> tuple[str, str, str]:
    """Split "left <= right" into its sides and the relation."""
    try:
        return expressions.split(text)
    except ProofError as error:
        raise ValueError(str(error)) from None


def number(value: Any) -> Any:
    """Return a number: a text is read as one."""
    if isinstance(value, str):
        return number(evaluate(value))
    if isinstance(value, (list, Noise, bool)) or value is None:
        raise ValueError(f"expected a number, not {value!r}")
    return Fraction(value) if isinstance(value, int) else value


class _Evaluation:
    """One expression; it counts the terms of its sums."""

    def __init__(self) -> None:
        self._terms = 0

    def value(self, node: Node, variables: Variables) -> Any:
        match node:
            case Number(value=value) | Text(value=value):
                return value
            case Name(name=name):
                return variables[name]
            case Entries(items=items):
                return [self.value(item, variables) for item in items]
            case Fold():
                return self._series(node, variables)
            case Apply(name=name) if name in _OPERATORS:
                return self._operation(node, variables)
        values = [self.value(argument, variables) for argument in node.arguments]
        return _call(node.name, values, [(k, self.value(v, variables)) for k, v in node.named])

    def _operation(self, node: Apply, variables: Variables) -> Any:
        """Apply an operator; a chain of them to the left is no nesting."""
        chain, first = [node], node.arguments[0]
        while isinstance(first, Apply) and first.name in _OPERATORS:
            chain.append(first)
            first = first.arguments[0]
        result = number(self.value(first, variables))
        for step in reversed(chain):
            right = number(self.value(step.arguments[1], variables))
            result = short(_OPERATORS[step.name](result, right))
        return result

    def _series(self, node: Fold, variables: Variables) -> Any:
        """Add or multiply terms: exactly if there are few of them."""
        ends = [number(self.value(end, variables)) for end in (node.low, node.high)]
        if not all(isinstance(end, Fraction) and end.denominator == 1 for end in ends):
            raise ValueError(f"expected integers as ends of a {node.name}")
        first, last = (int(end) for end in ends)
        self._terms += max(last - first + 1, 0)
        if self._terms > _MAX_TERMS:
            raise ValueError(f"expected at most {_MAX_TERMS} terms of sums and products")
        operation = operator.add if node.name == "sum" else operator.mul
        result: Any = Fraction(0 if node.name == "sum" else 1)
        exact, scope = last - first < _EXACT_TERMS, variables.but()
        for i in range(first, last + 1):
            variables.count()
            scope[node.index] = Fraction(i)
            value = number(self.value(node.term, scope))
            result = short(operation(result, value if exact else Real(ball(value))))
        return result


def _call(name: str, values: list[Any], named: list[tuple[str, Any]]) -> Any:
    """Evaluate a function, or name a mechanism."""
    if name in QUESTIONS and values and isinstance(values[0], Noise):
        asked = under(values[0], _relation(name, named))
        return QUESTIONS[name](asked, *map(number, values[1:]))
    if name[:1].isupper() and name not in FUNCTIONS:
        return build(name, values, named)
    if named:
        raise ValueError(f"{name} has no argument {named[0][0]!r}")
    if name in FUNCTIONS:
        return FUNCTIONS[name](*map(number, values))
    if not recomputed(name):
        raise UnknownError(f"{name}(…)")
    raise ValueError(f"unknown function {name!r}")


def _relation(name: str, named: list[tuple[str, Any]]) -> str | None:
    """Return the relation that a question is about, its only argument with a name."""
    if not named:
        return None
    (key, value), *more = named
    if more or key != "adjacency" or value not in ("add-remove", "replace-one"):
        raise ValueError(f"{name} with an argument {str(key)!r} that it does not have")
    return str(value)


def sides(text: str, row: Variables) -> tuple[Any, str, Any]:
    """Evaluate both sides of a comparison."""
    left, relation, right = split(text)
    return number(evaluate(left, row)), relation, number(evaluate(right, row))


def holds(text: str, scope: Variables) -> bool:
    """Whether a comparison is true; raise UnknownError where no number of digits decides it."""
    left, relation, right = split(text)

    def decided(found: list[Any]) -> bool:
        return compare(found[0], relation, found[1]) is not None

    one, other = settle(lambda: [number(evaluate(side, scope)) for side in (left, right)], decided)
    truth = compare(one, relation, other)
    if truth is None:
        raise UnknownError(f"whether {text}")
    return truth
