"""What a claim is: plain data with a kind, quantifiers, and a way to decide one case."""

from __future__ import annotations

import functools
import itertools
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, final

import msgspec
from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import START_PRECISION, Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.expression import Expression, Value, number, split_relation, to_ball, to_exact
from dpassay.verifier.verdict import Rigour, Verdict

"""What a variable of a claim ranges over: an interval, of reals or of integers."""

Scalar: TypeAlias = int | str
INFINITE = ("inf", "-inf")
"""Ends that say in so many words that there is none."""


class Range(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
            omit_defaults=True):  # fmt: skip
    """An interval, its ends expressions in the variables before it; an absent end is infinite.

    One of the ends, or `integer`, makes the range formal; `above = "-inf"` says "all reals". A
    range with none of them is only words, over which nothing can be proved.
    """

    statement: str = ""
    """The range in words or symbols, as the claim has it: "M > 2 integer"."""
    low: str | None = None
    """The least value."""
    above: str | None = None
    """An open lower end."""
    high: str | None = None
    """The largest value."""
    below: str | None = None
    """An open upper end."""
    integer: bool = False

    @property
    def is_formal(self) -> bool:
        """Whether the range is given by more than words."""
        return self.integer or any(True for _ in self._given())

    def ends(self) -> Iterator[tuple[str, str]]:
        """Yield the finite ends, each with the relation of a value to it."""
        return ((relation, end) for relation, end in self._given() if end not in INFINITE)

    @property
    def upper(self) -> str | None:
        """The upper end, None where it is infinite."""
        return next((end for relation, end in self.ends() if relation in ("<=", "<")), None)

    def words(self, name: str) -> str:
        """Say the range of a variable: "x in [0, 1)", "d ≥ 2 (integer)"."""
        kind = " (integer)" if self.integer else ""
        if not self.is_formal:
            return f"{name} (“{self.statement}”, in words only)"
        given = dict(self.ends())
        lower = next((r for r in (">=", ">") if r in given), None)
        upper = next((r for r in ("<=", "<") if r in given), None)
        if lower and upper:
            brackets = ("[" if lower == ">=" else "(", "]" if upper == "<=" else ")")
            return f"{name} in {brackets[0]}{given[lower]}, {given[upper]}{brackets[1]}{kind}"
        if lower or upper:
            (relation,) = given
            sign = {">=": "≥", "<=": "≤"}.get(relation, relation)
            return f"{name} {sign} {given[relation]}{kind}"
        return f"integer {name}" if self.integer else f"real {name}"

    def _given(self) -> Iterator[tuple[str, str]]:
        ends = ((">=", self.low), (">", self.above), ("<=", self.high), ("<", self.below))
        return ((relation, end) for relation, end in ends if end is not None)


class Domain(Range, frozen=True, kw_only=True):
    """What a universally quantified variable ranges over, and where it is looked at.

    A claim over a domain is refuted by one counterexample from the grid, and supported, never
    proved, by the grid alone: over the whole domain it needs a proof (`Claim.proof`).
    """

    grid: list[Scalar]
    """Values that are decided one by one."""


Computed = TypeVar("Computed")


class Claim(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    omit_defaults=True,
):
    """A statement that can be true or false.

    Expressions are strings in the language of `dpassay.verifier.expression`. `where` lists the
    values the claim is exactly about (all combinations); `for_all` gives domains it ranges over;
    `let` names sub-expressions, each of which may use the ones before it; `assume` drops the cases
    in which a listed comparison is false.
    """

    written: ClassVar[tuple[str, ...]] = ()
    """The fields that are expressions, besides `let`."""
    id: str
    statement: str = ""
    source: str = ""
    adjacency: str | None = None
    let: dict[str, str] = {}
    where: dict[str, list[Scalar]] = {}
    for_all: dict[str, Domain] = {}
    assume: list[str] = []
    cause: str = ""
    correction: str = ""
    error: str = ""
    """The error with which the statement falls: the same name for all that fall with it."""
    slip: bool = False
    """Whether what is refuted is a misprint or arithmetic, whose correction is proved."""
    argument: str = ""
    """The step from the claims named in `lemmas` to this one, in a person's words."""
    lemmas: list[str] = []
    """Ids of claims of the same file: what the proof or the argument rests on."""
    proof: dict[str, Any] = {}
    """A proof over the whole domains, as data: its `method` and what the method wants."""
    expected: Literal["", "REFUTED"] = ""
    """"REFUTED" where the file is meant to say that the claim is false."""

    def __post_init__(self) -> None:
        """Accept mechanisms and numbers where a claim file has their notation."""
        for name in _texts(type(self)):
            value = getattr(self, name)
            if not isinstance(value, str):
                text = str(value) if isinstance(value, Mechanism) else str(exact(value, name))
                msgspec.structs.force_setattr(self, name, text)

    @abstractmethod
    def assertion(self) -> str:
        """Say what is asserted of each case, from the claim's data alone."""

    def has_range(self) -> bool:
        """Whether the claim is about more than its listed cases."""
        return bool(self.for_all)

    @abstractmethod
    def decide(self, scope: Scope) -> Decision:
        """Decide one case, in which every variable has a value."""

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add what is worth knowing about the case that is reported (default: nothing)."""
        return decision

    @property
    def kind(self) -> str:
        """The kind in a claim file."""
        return str(self.__struct_config__.tag)

    def plain(self) -> dict[str, Any]:
        """Return the claim as a claim file has it."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    def certified(self, verdict: Verdict) -> dict[str, Any]:
        """Return what a certificate states: the claim, or the kernel's comparison that says it."""
        del verdict
        return self.plain()

    def refuted_at(self, witness: Mapping[str, Any]) -> dict[str, str]:
        """Return the values, in a refutation, of variables that only the certificate has."""
        del witness
        return {}

    def expressions(self) -> dict[str, str]:
        """Return every field that is an expression, by name (for checks on reading)."""
        return {**{name: getattr(self, name) for name in self.written}, **self.let}

    def relation(self) -> Adjacency | None:
        """Return the adjacency."""
        return Adjacency.read(self.adjacency)

    def cases(self) -> Iterator[Scope]:
        """Yield every combination of the listed values that satisfies the assumptions.

        Raises
        ------
        InvalidInputError
            If an assumption is not decided, or a value of a grid lies outside its domain.
        """
        values = {**self.where, **{name: d.grid for name, d in self.for_all.items()}}
        for combination in itertools.product(*values.values()):
            read = (listed_value(name, v) for name, v in zip(values, combination, strict=True))
            scope = Scope(dict(zip(values, read, strict=True)), self.let)
            if all(holds(assumption, scope) for assumption in self.assume):
                self._require_inside(scope)
                yield scope

    def _require_inside(self, scope: Scope) -> None:
        for name, domain in self.for_all.items():
            require_inside(f"for_all.{name}.grid", domain, name, scope)


@functools.cache
def _texts(kind: type[Claim]) -> tuple[str, ...]:
    """Return the names of the fields that are texts."""
    return tuple(info.name for info in msgspec.structs.fields(kind) if info.type is str)


def require_inside(field_name: str, domain: Range, name: str, scope: Scope) -> None:
    """Raise InvalidInputError if the value of a variable certainly lies outside a range."""
    shown = scope.to_json()[name]
    value = scope[name]
    if domain.integer and not (isinstance(value, Fraction) and value.denominator == 1):
        raise InvalidInputError(f"Expected {field_name} to be integers, not {shown}.")
    if is_outside(domain, name, scope, ("<", "<=", ">", ">=")):
        raise InvalidInputError(
            f"Expected {field_name} within {domain.words(name)}, not {shown}. Correct the values "
            "or the ends."
        )


def is_outside(domain: Range, name: str, scope: Scope, relations: Collection[str]) -> bool:
    """Whether a value certainly lies beyond an end of one of these kinds."""
    return any(
        truth(Expression(name), relation, Expression(end), scope) is False
        for relation, end in domain.ends()
        if relation in relations
    )


def listed_value(name: str, value: Scalar) -> Value:
    """Read a listed value: a number where it is one, else a text (a mechanism's name, say)."""
    try:
        return number(exact(value, name))
    except InvalidInputError:
        return value


@final
class Scope(Mapping[str, Value]):
    """Variables with values, and named sub-expressions evaluated at flint's precision."""

    def __init__(self, variables: Mapping[str, Value], let: Mapping[str, str]) -> None:
        self.variables = dict(variables)
        self.let = {name: Expression(text) for name, text in let.items()}
        self._known: dict[tuple[str, int], Value] = {}
        self._once: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Value:
        if name in self.variables:
            return self.variables[name]
        key = (name, ctx.prec)
        if key not in self._known:
            self._known[key] = self.let[name].value(self)
        return self._known[key]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.variables, **self.let})

    def __len__(self) -> int:
        return len({**self.variables, **self.let})

    def once(self, name: str, compute: Callable[[], Computed]) -> Computed:
        """Return what `compute` gives when this case is first asked for it under this name."""
        if name not in self._once:
            self._once[name] = compute()
        found: Computed = self._once[name]
        return found

    def to_json(self) -> dict[str, str]:
        """Return the variables as exact strings."""
        return {
            name: str(ExactReal.of_rational(v)) if isinstance(v, Fraction) else str(v)
            for name, v in self.variables.items()
        }


def compare(
    left: Callable[[], arb], relation: str, right: Callable[[], arb], max_precision: int = 1 << 14
) -> bool | None:
    """Decide `left relation right` up the ladder of precisions; None if it stays open.

    An equality of balls is never proved: it can only be refuted here, or be exact.
    """
    precision = START_PRECISION
    while True:
        with ctx.workprec(precision):
            x, y = left(), right()
            difference = x - y
            if x.is_exact() and y.is_exact() and not x.is_finite() and x == y:
                difference = arb(0)  # ∞ ≤ ∞
            if difference > 0:
                return relation in (">", ">=", "!=")
            if difference < 0:
                return relation in ("<", "<=", "!=")
            if difference.is_zero():
                return relation in ("<=", ">=", "==")
            if (relation == "<=" and difference <= 0) or (relation == ">=" and difference >= 0):
                return True
        if precision >= max_precision:
            return None
        precision *= 4


def exact_truth(x: Value, relation: str, y: Value) -> bool | None:
    """Compare two values that are exact; None where one is only known as a ball."""
    left, right = number(x), number(y)
    if isinstance(left, arb) or isinstance(right, arb):
        return None
    one, other = to_exact(left), to_exact(right)
    order = (other < one) - (one < other)
    return {
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
        "==": order == 0,
        "!=": order != 0,
    }[relation]


def compare_values(
    left: Callable[[], Value],
    relation: str,
    right: Callable[[], Value],
    max_precision: int = 1 << 14,
) -> bool | None:
    """Decide a comparison: exactly where both sides are exact, else in balls."""
    with ctx.workprec(START_PRECISION):  # what is no exact number is remembered for the balls
        exactly = exact_truth(left(), relation, right())
    if exactly is not None:
        return exactly
    return compare(lambda: to_ball(left()), relation, lambda: to_ball(right()), max_precision)


def truth(
    left: Expression, relation: str, right: Expression, scope: Scope, max_precision: int = 1 << 14
) -> bool | None:
    """Decide a comparison of two expressions."""
    return compare_values(
        lambda: left.value(scope), relation, lambda: right.value(scope), max_precision
    )


def holds(assumption: str, scope: Scope) -> bool:
    """Whether an assumption is true in a case.

    Raises InvalidInputError if it is not decided: a case must not drop out unnoticed.
    """
    left, relation, right = split_relation(assumption)
    known = truth(Expression(left), relation, Expression(right), scope)
    if known is None:
        raise InvalidInputError(
            f"The assumption {assumption!r} is not decided in the case {scope.to_json()}: its "
            "sides were not told apart. Write it with exact numbers."
        )
    return known


@final
@dataclass(frozen=True)
class Decision:
    """The outcome of one case."""

    verdict: Verdict
    true: dict[str, Interval] = field(default_factory=dict)
    claimed: dict[str, str] = field(default_factory=dict)
    margin: dict[str, Interval] = field(default_factory=dict)
    witness: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    route: str = "balls"
    rigour: Rigour = Rigour.PROVED

    def severity(self) -> Decimal:
        """How far true exceeds claimed: what the worst counterexample maximises."""
        for name in ("factor", "difference"):
            if name in self.margin:
                return self.margin[name].lower
        return Decimal(0)


def verdict_of(truth: bool | None) -> Verdict:
    """Return HOLDS, REFUTED or UNDECIDED."""
    if truth is None:
        return Verdict.UNDECIDED
    return Verdict.HOLDS if truth else Verdict.REFUTED
