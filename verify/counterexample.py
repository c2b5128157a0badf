"""A search for a counterexample of a claim over whole domains, where its grid is all that stands.

Tried are a few thousand integers from the nearer end of a domain on, and points that double their
distance from it; between two ends also an even grid, and points that halve their distance from
either. A point is a counterexample only if it lies in its domain, the assumptions hold there, and
the claim is decided to be false there as at any point of its grid. What the search may do is
counted in steps of the evaluation, not in seconds: a verdict does not depend on the machine. Only
elementary functions are searched.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from fractions import Fraction

import msgspec
from flint import arb

from dpassay.accountant.errors import InvalidInputError, UndecidedError
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import START_PRECISION
from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.claim import Claim, Range, Scope, compare_values, listed_value, truth
from dpassay.verifier.claims.behaviour import Behaviour, Minimiser, Monotone
from dpassay.verifier.claims.relation import Relation
from dpassay.verifier.expression import Expression, split_relation, to_ball
from dpassay.verifier.verdict import Verdict

_STEPS = 40_000
"""Operations on numbers of a few digits that a search may make: 0.2 to 0.5 s."""
_MOST_POINTS, _FEWEST_POINTS = 3000, 16
"""Points that are tried, of a cheap claim and of an expensive one."""
_DOUBLINGS = 48
"""The farthest point lies 2^47 from an end."""
_DIGITS_A_STEP = 8
"""A number of so many times the digits of the variable takes one step more."""
_MOST_DEGREE = 10_000
"""Beyond this the numbers are too long to be tried."""
_POWER = 200
"""What a power whose exponent varies counts as: its numbers have thousands of digits."""
_ELEMENTARY = frozenset(
    {"sqrt", "exp", "expm1", "log", "log1p", "log2", "sin", "cos", "tanh", "erf", "erfc"}
    | {"pi", "abs", "min", "max", "floor", "ceil"}
)
_IMPOSSIBLE = (InvalidInputError, UndecidedError, ArithmeticError)
"""A point at which there is no value, or none that is known, is no counterexample."""


def counterexample(claim: Claim) -> Claim | None:
    """Return the claim with a counterexample for its grid, or None where none was found."""
    ranges = _ranges(claim)
    if not ranges or not all(each.is_formal for each in ranges.values()):
        return None
    count = _points(claim, ranges)
    if not count:
        return None
    try:
        listed = list(itertools.islice(_listed(claim), count))
    except _IMPOSSIBLE:
        return None
    for scope in listed:
        for found in _tried(claim, scope, max(count // len(listed), _FEWEST_POINTS)):
            if _refutes(found):
                return found
    return None


def _ranges(claim: Claim) -> Mapping[str, Range]:
    """Return the ranges that are searched, by variable."""
    if isinstance(claim, Relation):
        return claim.for_all
    if isinstance(claim, Monotone | Minimiser) and claim.over is not None and not claim.for_all:
        return {claim.variable: claim.over}
    return {}


def _points(claim: Claim, ranges: Mapping[str, Range]) -> int:
    """Return how many points may be tried; 0 for what is not elementary, or too expensive."""
    ends = [end for each in ranges.values() for _, end in each.ends()]
    sides = [claim.expression] if isinstance(claim, Behaviour) else list(_sides(claim))
    trees = {name: Expression(text).tree() for name, text in claim.let.items()}
    try:
        asked = [Expression(text).tree() for text in (*sides, *ends)]
        asked += [Expression(side).tree() for a in claim.assume for side in split_relation(a)[::2]]
        nodes = [node for tree in (*asked, *trees.values()) for node in ast.walk(tree)]
        if any(isinstance(n, ast.Call) and not _is_elementary(n) for n in nodes):
            return 0
        degrees: dict[str, int] = {}
        for name, tree in trees.items():
            degrees[name] = _degree(tree, degrees)
        degree = max([*degrees.values(), *(_degree(tree, degrees) for tree in asked)])
    except (InvalidInputError, RecursionError):
        return 0
    if degree > _MOST_DEGREE:
        return 0
    return min(_MOST_POINTS, _STEPS // (len(nodes) * (1 + degree // _DIGITS_A_STEP)))


def _sides(claim: Claim) -> tuple[str, str]:
    left, _, right = split_relation(claim.claim)  # type: ignore[attr-defined]  # a Relation
    return left, right


def _is_elementary(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in _ELEMENTARY


def _degree(node: ast.AST, known: Mapping[str, int]) -> int:
    """Return how many times the digits of a variable a value has, about; at most 10^5."""
    match node:
        case ast.Name(id=name):
            return known.get(name, 1)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(exponent))):
            return min(_degree(left, known) * max(exponent, 1), 10 * _MOST_DEGREE)
        case ast.BinOp(op=ast.Pow()):
            return _POWER
        case ast.BinOp(left=left, right=right):
            return min(_degree(left, known) + _degree(right, known), 10 * _MOST_DEGREE)
        case ast.UnaryOp(operand=operand):
            return _degree(operand, known)
        case ast.Call(args=arguments):
            return max((_degree(argument, known) for argument in arguments), default=1)
    return 1


def _listed(claim: Claim) -> Iterator[Scope]:
    """Yield every combination of the listed values alone."""
    for combination in itertools.product(*claim.where.values()):
        read = (listed_value(n, v) for n, v in zip(claim.where, combination, strict=True))
        yield Scope(dict(zip(claim.where, read, strict=True)), claim.let)


def _tried(claim: Claim, scope: Scope, count: int) -> Iterator[Claim]:
    """Yield the claim with points for its grid at which it seems to be false."""
    if isinstance(claim, Relation):
        left, relation, right = split_relation(claim.claim)
        for at in _boxes(claim.for_all, scope, count):
            with_values = Scope({**scope.variables, **at}, claim.let)
            if _is_false(left, relation, right, with_values):
                yield _search_looked_at(claim, at)
    elif isinstance(claim, Monotone):
        relation = ">" if claim.direction == "decreasing" else "<"
        points = _candidates(claim.over, scope, count)
        for low, high in itertools.pairwise(points):
            if _differs(claim, scope, low, relation, high):
                yield _with_points(claim, low, high)
    elif isinstance(claim, Minimiser):
        best = exact(claim.claimed, "claimed").rational or Fraction(0)
        for point in _candidates(claim.over, scope, count):
            if _differs(claim, scope, best, "<=", point):
                yield _with_points(claim, point)


def _is_false(left: str, relation: str, right: str, scope: Scope) -> bool:
    try:
        sides = Expression(left), Expression(right)
        return truth(sides[0], relation, sides[1], scope, START_PRECISION) is False
    except _IMPOSSIBLE:
        return False


def _differs(claim: Behaviour, scope: Scope, one: Fraction, relation: str, other: Fraction) -> bool:
    expression = Expression(claim.expression)
    try:
        known = compare_values(
            lambda: expression.value(claim.inner(scope, one)),
            relation,
            lambda: expression.value(claim.inner(scope, other)),
            START_PRECISION,
        )
    except _IMPOSSIBLE:
        return False
    return known is False


def _boxes(ranges: Mapping[str, Range], scope: Scope, count: int) -> Iterator[dict[str, Fraction]]:
    """Yield values of all variables, about as many of each; an end may use those before it."""
    if not ranges:
        yield {}
        return
    (name, first), *others = ranges.items()
    own = max(int(count ** (1 / len(ranges))), 2)
    for point in _candidates(first, scope, own):
        inner = Scope({**scope.variables, name: point}, {k: e.text for k, e in scope.let.items()})
        for rest in _boxes(dict(others), inner, count // own):
            yield {name: point, **rest}


def _candidates(over: Range | None, scope: Scope, count: int) -> list[Fraction]:
    """Return points of a range, rising: about `count`, the ends and what is near them first."""
    if over is None:
        return []
    low = high = None
    for relation, text in over.ends():
        end = _end(text, scope)
        low, high = (end, high) if relation in (">=", ">") else (low, end)
    far = [Fraction(2) ** k for k in range(_DOUBLINGS)][: max(count // 4, 1)]
    near = [Fraction(i) for i in range(max(count - len(far), 1))]
    away = [*near, *far]
    if not over.integer:
        away += [1 / step for step in far]
    if low is not None and high is not None and not over.integer:
        width, cells = high - low, max(count // 2, 1)
        away = [width * i / cells for i in range(cells + 1)] + [width / step for step in far]
    if low is not None:
        points = {low + step for step in away}
        points |= {high - step for step in away[: count // 4]} if high is not None else set()
    elif high is not None:
        points = {high - step for step in away}
    else:
        points = {sign * step for step in away[: (count + 1) // 2] + far for sign in (1, -1)}
    if over.integer:
        points = {Fraction(point.__ceil__()) for point in points}
    kept = (low is None or p >= low for p in points), (high is None or p <= high for p in points)
    return sorted(p for p, above, below in zip(points, *kept, strict=True) if above and below)


def _end(text: str, scope: Scope) -> Fraction | None:
    """Return about where an end lies, None where it is not known: what is found is checked."""
    try:
        with ctx.workprec(START_PRECISION):
            return _middle(to_ball(Expression(text).value(scope)))
    except (*_IMPOSSIBLE, ValueError):
        return None


def _middle(value: arb) -> Fraction | None:
    if not value.is_finite() or abs(value) > arb(2) ** START_PRECISION:
        return None
    middle = value.mid().fmpq()
    return Fraction(int(middle.p), int(middle.q))


def _search_looked_at(claim: Relation, at: Mapping[str, Fraction]) -> Claim:
    domains = {
        name: msgspec.structs.replace(domain, grid=[_text(at[name])])
        for name, domain in claim.for_all.items()
    }
    return msgspec.structs.replace(claim, for_all=domains)


def _with_points(claim: Monotone | Minimiser, *points: Fraction) -> Claim:
    listed = {exact(value, "at").rational or Fraction(0) for value in claim.at} | {*points}
    return msgspec.structs.replace(claim, at=[_text(point) for point in sorted(listed)])


def _refutes(claim: Claim) -> bool:
    """Whether the claim is refuted on its own grid, which must lie in its domains."""
    try:
        return any(claim.decide(scope).verdict is Verdict.REFUTED for scope in claim.cases())
    except _IMPOSSIBLE:
        return False


def _text(point: Fraction) -> str:
    return str(ExactReal.of_rational(point))
