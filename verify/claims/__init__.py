"""What a claim is: plain data with a kind, quantifiers, and a way to decide one case.

`errors` says what is wrong with a claim before anything is computed. A name in an expression is
that of

- a listed value (`where`) or a quantified variable (`for_all`);
- the claim's own variable: the `variable` of a limit, a minimiser or a monotone function, the
  `epsilon` or `alpha` of a curve;
- a named expression (`let`), or the index of a sum.

Nothing that bounds a variable may depend on it. Directly or through `let`, an expression may use:

- as a listed value, a point, a tolerance or the claimed minimiser: no variable;
- as an end of a range: the listed values, and the variables of `for_all` before this one;
- as an assumption, an end of `over`, a limit, a rival, an end of a curve or a number of a
  guarantee: the listed values and the variables of `for_all`;
- as the expression, the rate of a limit or a claimed curve: all these and the claim's own variable.

Expressions are printable ASCII without comments. No variable has the name of a function, a
mechanism or a constant.
"""

from __future__ import annotations

import functools
import itertools
import keyword
import math
import operator
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, final

import msgspec
from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import START_PRECISION, Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.expression import (
    FORMS,
    FUNCTIONS,
    QUESTIONS,
    Expression,
    Value,
    free,
    number,
    split_relation,
    to_ball,
    to_exact,
)
from dpassay.verifier.verdict import Rigour, Verdict

if TYPE_CHECKING:
    from dpassay.verifier.claims.behaviour import Limit as Limit
    from dpassay.verifier.claims.behaviour import Minimiser as Minimiser
    from dpassay.verifier.claims.behaviour import Monotone as Monotone
    from dpassay.verifier.claims.curves import GaussianDP as GaussianDP
    from dpassay.verifier.claims.curves import ProfileBound as ProfileBound
    from dpassay.verifier.claims.curves import RenyiDP as RenyiDP
    from dpassay.verifier.claims.curves import TradeoffBound as TradeoffBound
    from dpassay.verifier.claims.curves import ZeroConcentratedDP as ZeroConcentratedDP
    from dpassay.verifier.claims.optimality import Optimality as Optimality
    from dpassay.verifier.claims.privacy import ApproximateDP as ApproximateDP
    from dpassay.verifier.claims.privacy import PureDP as PureDP
    from dpassay.verifier.claims.relation import Pending as Pending
    from dpassay.verifier.claims.relation import PrintedNumber as PrintedNumber
    from dpassay.verifier.claims.relation import Relation as Relation

# --- What a variable of a claim ranges over: an interval, of reals or of integers -----------------

Scalar: TypeAlias = int | str
INFINITE = ("inf", "-inf")
"""Ends that stand for an absent end."""


class Range(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
            omit_defaults=True):  # fmt: skip
    """An interval whose ends are expressions in the variables before it; an absent end is infinite.

    A range is formal if it has an end or is `integer`: `above = "-inf"` means all reals. Nothing
    can be proved over a range that is given in words only.
    """

    statement: str = ""
    """The range in words or symbols, as the source has it: "M > 2 integer"."""
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
    """What a universally quantified variable ranges over, and where it is examined.

    A claim over a domain is refuted by one counterexample from the grid, and supported, never
    proved, by the grid alone: over the whole domain it needs a proof (`Claim.proof`).
    """

    grid: list[Scalar]
    """The values at which the claim is decided."""


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

    Expressions are strings in the language of `dpassay.verifier.expression`. The claim is about
    all combinations of the values that `where` lists, and about every value of the domains of
    `for_all`. `let` names expressions, and each may use those before it. Cases in which a
    comparison of `assume` is false are left out.
    """

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
    """The error that makes the statement false; statements with the same error share its name."""
    slip: bool = False
    """Whether the statement is a misprint or a slip of arithmetic, and its correction is proved."""
    argument: str = ""
    """Why the claim follows from its `lemmas`, in a person's words."""
    lemmas: list[str] = []
    """Ids of claims of the same file on which the proof or the argument rests."""
    proof: dict[str, Any] = {}
    """A proof over the whole domains, as data: its `method` and the arguments of the method."""
    expected: Literal["", "REFUTED"] = ""
    """"REFUTED" where the author of the file expects that."""

    def __post_init__(self) -> None:
        """Accept mechanisms and numbers where a claim file has their notation."""
        for name in _texts(type(self)):
            value = getattr(self, name)
            if not isinstance(value, str):
                text = str(value) if isinstance(value, Mechanism) else str(exact(value, name))
                msgspec.structs.force_setattr(self, name, text)

    @abstractmethod
    def assertion(self) -> str:
        """Return what is asserted of each case, made from the claim's data alone."""

    def has_range(self) -> bool:
        """Whether the claim is about more than its listed cases."""
        return bool(self.for_all)

    @abstractmethod
    def decide(self, scope: Scope) -> Decision:
        """Decide one case, in which every variable has a value."""

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add evidence to the case that is reported (default: none)."""
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
        """Return the theorem of a certificate: the claim, or a comparison that means the same."""
        del verdict
        return self.plain()

    def refuted_at(self, witness: Mapping[str, Any]) -> dict[str, str]:
        """Return the values at which a refutation has variables that only its certificate has."""
        del witness
        return {}

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


_RELATIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def compare_values(
    left: Callable[[], Value],
    relation: str,
    right: Callable[[], Value],
    max_precision: int = 1 << 14,
) -> bool | None:
    """Decide a comparison: exactly where both sides are exact, else in balls."""
    with ctx.workprec(START_PRECISION):  # what is no exact number is remembered for the balls
        sides = [number(side()) for side in (left, right)]
    if not any(isinstance(side, arb) for side in sides):
        return _RELATIONS[relation](*map(to_exact, sides))
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
            "two sides could not be distinguished. Write it with exact numbers."
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


MOST_CASES = 100_000
"""Combinations of listed values that one claim is decided for."""
LARGEST_EXPONENT = 10_000
"""Largest power of ten of a printed number."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_MECHANISM = re.compile(r"[A-Z][a-z]\w*")
_SYMBOLS = QUESTIONS.keys() - {"max_loss", "loss_above", "total_variation"} | {"gamma"}
RESERVED = frozenset({"inf", "infinity", "nan", *FORMS, *FUNCTIONS} - _SYMBOLS)
"""Constants and functions, whose names no variable has. Quantities of the field (delta, mu, …) are
asked of a mechanism in brackets, and may be variables as well: these are `_SYMBOLS`."""
_ENDS = ("low", "above", "high", "below")
_OWN = {"tradeoff": "alpha", "profile": "epsilon"}
_NUMBERS = ("mechanism", "epsilon", "delta", "mu", "rho", "order", "low", "high", "value")
"""Texts of a claim that may use the listed values and the variables of `for_all`."""
_WORDS = ("id", "statement", "source", "cause", "correction", "error", "argument", "tail")

Errors = list[tuple[str, str]]


def errors(claim: Mapping[str, Any]) -> Errors:
    """Return what is wrong with a claim, each with the field it stands in; `claim` has a kind."""
    return _Claim(claim).errors


class _Claim:
    def __init__(self, claim: Mapping[str, Any]) -> None:
        self.claim, self.errors = claim, Errors()
        self._let: dict[str, frozenset[str]] = {}
        """The variables that each named expression depends on."""
        self.listed = frozenset(claim.get("where", {}))
        self.ranged = tuple(claim.get("for_all", {}))
        self.own = claim.get("variable", _OWN.get(claim["kind"]))
        self._words("", {name: claim.get(name, "") for name in _WORDS})
        self._words("lemmas", dict(enumerate(claim.get("lemmas", []))))
        for name, domain in [*claim.get("for_all", {}).items(), ("over", claim.get("over") or {})]:
            self._words(f"{name!r:.120}", {"statement": domain.get("statement", "")})
        self._names()
        if not self.errors:
            self._texts()
            self._structure()

    def _expect(self, truth: object, path: str, message: str) -> None:
        if not truth:
            self.errors.append((path, message))

    def _words(self, path: str, texts: Mapping[Any, object]) -> None:
        """Require words that a terminal or a page shows as they are."""
        for name, text in texts.items():
            kept = str(text) if name in ("id", "lemmas") else " ".join(str(text).split())
            where = f"{path}.{name}" if path else str(name)
            shown = ascii(kept)[:80]
            self._expect(kept.isprintable(), where, f"expected printable text, not {shown}")

    def _names(self) -> None:
        own = [] if self.own is None else [self.own]
        names = [*self.claim.get("let", {}), *self.listed, *self.ranged, *own]
        for name, count in Counter(names).items():
            self._expect(count == 1, "", f"the name {name!r} is given twice")
            self._expect(
                _NAME.fullmatch(name) and not keyword.iskeyword(name),
                "", f"{name!r:.120} is no name of a variable: use letters, digits and _",
            )  # fmt: skip
            taken = name in RESERVED or _MECHANISM.fullmatch(name)
            self._expect(
                not taken, "", f"{name!r} is a constant, function or mechanism, no variable"
            )

    def _texts(self) -> None:
        claim = self.claim
        base = self.listed | frozenset(self.ranged)
        whole = base if self.own is None else base | {self.own}
        for name, text in claim.get("let", {}).items():
            self._let[name] = self._uses(f"let.{name}", text, whole)
        for name, values in claim.get("where", {}).items():
            self._values(f"where.{name}", values)
        for index, name in enumerate(self.ranged):
            domain = claim["for_all"][name]
            self._values(f"for_all.{name}.grid", domain.get("grid", []))
            self._range(f"for_all.{name}", domain, self.listed | {*self.ranged[:index]})
        for index, text in enumerate(claim.get("assume", [])):
            self._compared(f"assume[{index}]", text, base)
        if claim.get("over"):
            self._range("over", claim["over"], base)
        if "at" in claim:
            self._values("at", claim["at"])
        for name in (*_NUMBERS, "limit"):
            if claim.get(name, "") != "":
                self._uses(name, claim[name], base)
        for name in ("expression", "rate", "bound"):
            if claim.get(name, "") != "":
                self._uses(name, claim[name], whole)
        for name in ("claimed", "tolerance"):
            if name in claim:
                self._values(name, [claim[name]])
        for name in ("among", "dual", "rival"):
            for path, text in _leaves(claim.get(name, {}), name):
                self._uses(path, text, base)
        if claim["kind"] == "relation":
            self._compared("claim", claim["claim"], base)
        other = claim.get("proof", {}).get("limit")
        if claim["kind"] == "limit" and other is not None:
            self._uses("proof.limit", other, base)

    def _structure(self) -> None:
        claim, kind = self.claim, self.claim["kind"]
        lists = [*claim.get("where", {}).values()]
        lists += [domain.get("grid", []) for domain in claim.get("for_all", {}).values()]
        count = math.prod(map(len, lists))
        self._expect(count <= MOST_CASES, "", f"{count} cases: expected at most {MOST_CASES}")
        about = "mechanism" in claim or claim.get("adjacency") is None
        self._expect(
            about, "adjacency",
            "only a claim about a mechanism has one. Ask with it, as in mu(…, adjacency=…)",
        )  # fmt: skip
        proof = claim.get("proof")
        self._expect(
            not proof or isinstance(proof.get("method"), str),
            "proof", 'expected a method, such as method = "sweep"',
        )  # fmt: skip
        if "at" in claim:
            self._expect(len(claim["at"]) > 1, "at", "expected two or more points")
        if kind == "optimality":
            one = bool(claim.get("dual")) != bool(claim.get("rival"))
            self._expect(one, "", "expected one of dual and rival to be given")
            self._expect(claim.get("among"), "among", "expected the family of rivals")
        if kind == "printed-number":
            self._expect(_is_printed(claim["printed"]), "printed", _PRINTED)

    def _range(self, path: str, given: Mapping[str, Any], scope: frozenset[str]) -> None:
        ends = {end: given[end] for end in _ENDS if given.get(end) is not None}
        for closed, open_ in (("low", "above"), ("high", "below")):
            both = closed in ends and open_ in ends
            self._expect(not both, path, f"expected one of {closed} and {open_}, not both")
        for end, text in ends.items():
            if (end, str(text).strip()) not in (("above", "-inf"), ("below", "inf")):
                self._uses(f"{path}.{end}", text, scope)

    def _values(self, path: str, values: Any) -> None:
        """Require numbers: expressions without variables and without quoted words."""
        self._expect(isinstance(values, list), path, "expected a list of numbers")
        for index, value in enumerate(values if isinstance(values, list) else []):
            where = path if path in ("claimed", "tolerance") else f"{path}[{index}]"
            used = self._uses(where, value, frozenset(), lets=False)
            words = not used and isinstance(value, str) and ('"' in value or "'" in value)
            self._expect(not words, where, f"expected a number, not {value!r:.60}")

    def _compared(self, path: str, text: object, scope: frozenset[str]) -> None:
        try:
            left, _, right = split_relation(str(text))
        except InvalidInputError as error:
            self.errors.append((path, str(error)))
            return
        for side in (left, right):
            self._uses(path, side, scope)

    def _uses(
        self, path: str, text: object, scope: frozenset[str], *, lets: bool = True
    ) -> frozenset[str]:
        """Return the variables that a text depends on; they must be in its scope."""
        try:
            names, indices = free(str(text))
        except InvalidInputError as error:
            self.errors.append((path, str(error)))
            return frozenset()
        found: set[str] = set()
        for name in sorted(names):
            through = self._let.get(name) if lets else None
            found |= {name} if through is None else through
            if outside := sorted(({name} if through is None else through) - scope):
                by = "" if through is None else f", by way of {name}"
                self._expect(False, path, self._refusal(outside[0]) + by)
        known = {*self._let, *self.claim.get("let", {}), *self.listed, *self.ranged, self.own}
        for index in sorted(indices & known):
            self._expect(False, path, f"the index {index!r} of a sum is a variable of the claim")
        return frozenset(found) & scope

    def _refusal(self, name: str) -> str:
        if name in {*self.listed, *self.ranged, self.own}:
            return f"must not depend on the variable {name!r}"
        return f"unknown variable {name!r}" + (": write pi()" if name == "pi" else "")


def _leaves(data: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield the numbers of a description with their paths: names of types are none."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            if key not in ("type", "law", "objective"):
                yield from _leaves(value, f"{path}.{key}")
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _leaves(value, f"{path}[{index}]")
    elif not isinstance(data, bool):
        yield path, data


_PRINTED = f"expected a decimal such as 0.125 or 1.3e-5, of an exponent up to {LARGEST_EXPONENT}"


def _is_printed(text: object) -> bool:
    try:
        printed = Decimal(str(text))
    except InvalidOperation:
        return False
    if not printed.is_finite() or not str(text).isascii():
        return False
    exponent = int(printed.as_tuple().exponent)
    return max(abs(printed.adjusted()), abs(exponent)) <= LARGEST_EXPONENT


# --- The kinds of claims, each imported when a claim of it is met ---------------------------------

_CLASS = {
    "approximate-dp": ("privacy", "ApproximateDP"),
    "gaussian-dp": ("curves", "GaussianDP"),
    "limit": ("behaviour", "Limit"),
    "minimiser": ("behaviour", "Minimiser"),
    "monotone": ("behaviour", "Monotone"),
    "optimality": ("optimality", "Optimality"),
    "pending": ("relation", "Pending"),
    "printed-number": ("relation", "PrintedNumber"),
    "profile": ("curves", "ProfileBound"),
    "pure-dp": ("privacy", "PureDP"),
    "relation": ("relation", "Relation"),
    "renyi-dp": ("curves", "RenyiDP"),
    "tradeoff": ("curves", "TradeoffBound"),
    "zcdp": ("curves", "ZeroConcentratedDP"),
}
"""Kind in a claim file → the module of its class, and the class."""
_HOME = {name: f"dpassay.verifier.claims.{module}" for module, name in _CLASS.values()}
__all__ = list(_HOME)


class _Kinds(dict[str, Any]):
    """Kind in a claim file → class, which is imported when it is looked up."""

    def __getitem__(self, kind: str) -> Any:
        module, name = super().__getitem__(kind)
        return getattr(import_module(f"{__name__}.{module}"), name)


KINDS: Mapping[str, Any] = _Kinds(_CLASS)
"""Kind → class; each class has fields of its own."""
_FORMS = {
    ("epsilon", "delta"): ("approximate-dp", "({epsilon}, {delta})-DP"),
    ("epsilon",): ("pure-dp", "{epsilon}-DP"),
    ("mu",): ("gaussian-dp", "{mu}-GDP"),
    ("rho",): ("zcdp", "{rho}-zCDP"),
    ("order", "renyi"): ("renyi-dp", "({order}, {renyi})-RDP"),
}


def guarantee(numbers: Mapping[str, Number], **fields: Any) -> Claim:
    """Return the claim of (ε, δ)-DP, ε-DP, μ-GDP, ρ-zCDP or of a Rényi divergence.

    >>> guarantee({"epsilon": 1, "delta": "1e-5"}, mechanism="Gaussian(3)").assertion()
    'Gaussian(3) is (1, 1e-5)-DP'
    """
    said = {name: str(exact(value, name)) for name, value in numbers.items()}
    if said.get("delta") == "0":
        del said["delta"]
    names = next(names for names in _FORMS if {*names} == said.keys())
    kind, form = _FORMS[names]
    usual = {"id": kind, "statement": f"It is {form.format(**said)}."}
    if "renyi" in said:
        said["epsilon"] = said.pop("renyi")
    claim: Claim = KINDS[kind](**{**usual, **said, **fields})
    return claim


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME[name]), name)
    return found
