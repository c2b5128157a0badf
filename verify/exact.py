"""Decide claims: every case of a claim, the worst one reported, the verdict of the whole."""

from __future__ import annotations

import ast
import dataclasses
import itertools
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec
from flint import arb

from dpassay.accountant.errors import InvalidInputError, UndecidedError
from dpassay.accountant.numbers import ledger
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import START_PRECISION, Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.claim import (
    Claim,
    Decision,
    Range,
    Scalar,
    Scope,
    compare_values,
    listed_value,
    truth,
)
from dpassay.verifier.claims.behaviour import Behaviour, Minimiser, Monotone
from dpassay.verifier.claims.relation import Relation
from dpassay.verifier.expression import Expression, split_relation, to_ball
from dpassay.verifier.proof import misread, proved, reachable
from dpassay.verifier.verdict import Finding, Rigour, Verdict

"""A search for a counterexample of a claim over whole domains, where its grid is all that stands.

Tried are a few thousand integers from the nearer end of a domain on, and points that double their
distance from it; between two ends also an even grid, and points that halve their distance from
either. A point is a counterexample only if it lies in its domain, the assumptions hold there, and
the claim is decided to be false there as at any point of its grid. What the search may do is
counted in steps of the evaluation, not in seconds: a verdict does not depend on the machine. Only
elementary functions are searched.
"""

_STEPS = 40_000
"""Operations on numbers of a few digits that a search may make: 0.2 to 0.5 s."""
_MOST_POINTS, _FEWEST_POINTS = 3000, 16
"""Points that are tried, of a cheap claim and of a dear one."""
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
    """Return how many points may be tried; 0 where the claim is not elementary, or too dear."""
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


_LISTED = 20
"""So many values of a variable are listed; of more, the ends and the number are given."""
_UNIVERSAL = re.compile(r"\b(every|all|any)\b(?!-)|∀", re.IGNORECASE)
_ORDER = (
    Verdict.REFUTED,
    Verdict.UNDECIDED,
    Verdict.PENDING,
    Verdict.SUPPORTED,
    Verdict.HOLDS,
)
"""The verdict of a claim is the first of these that any of its cases has."""
_STANDING = (Verdict.HOLDS, Verdict.SUPPORTED)
_OPEN = (Verdict.SUPPORTED, Verdict.UNDECIDED)


def formal(claim: Claim) -> str:
    """Say what a claim says: its cases and domains, its assumptions, and its assertion."""
    parts = []
    if claim.where:
        listed = ", ".join(f"{name} in {_values(given)}" for name, given in claim.where.items())
        parts.append(f"in the cases {listed}")
    if claim.for_all:
        domains = " and ".join(domain.words(name) for name, domain in claim.for_all.items())
        parts.append(f"for every {domains}")
    if claim.assume:
        parts.append(f"where {' and '.join(claim.assume)}")
    quantified = " ".join(parts)
    text = f"{quantified}: {claim.assertion()}" if quantified else claim.assertion()
    if claim.adjacency:
        text += f", for neighbours by {claim.adjacency}"
    if claim.let:
        text += ", with " + ", ".join(f"{name} = {value}" for name, value in claim.let.items())
    return text


def note(claim: Claim) -> str:
    """Say where the author's words are universal and the claim is about listed cases alone."""
    if _UNIVERSAL.search(claim.statement) and not claim.has_range():
        return "The file's words say more than was decided: only the listed cases."
    return ""


def _values(values: Sequence[Scalar]) -> str:
    texts = [str(value) for value in values]
    if len(texts) <= _LISTED:
        return "{" + ", ".join(texts) + "}"
    return "{" + ", ".join([*texts[:4], "…", texts[-1]]) + "}" + f" ({len(texts)} values)"


def verify(claim: Claim, *, lemmas: Iterable[Claim] = ()) -> Finding:
    """Decide a claim and say why.

    Every listed case is decided; the worst one (largest true/claimed) is reported with its
    witness. A claim over whole domains is at best SUPPORTED, unless its proof is accepted.

    Its proof may name the `lemmas`: the claims of the same file.

    Raises InvalidInputError if the claim cannot be evaluated (a bad argument, an unknown variable,
    no case left).
    """
    finding, _, _ = verify_with_evidence(claim, lemmas)
    return finding


def verify_with_evidence(
    claim: Claim, lemmas: Iterable[Claim] = ()
) -> tuple[Finding, tuple[Scope, Decision], Claim]:
    """Decide a claim; also return the case and decision that a certificate is made from.

    And the claim as it was looked at: where the grid supports it and a search refutes it, its grid
    is the counterexample that was found.

    Raises UndecidedError where that takes more memory than there is.
    """
    lemmas = tuple(lemmas)
    try:
        finding, case = _decided(claim, lemmas)
    except MemoryError:
        raise UndecidedError(
            f"Claim {claim.id!r} is not decided: it takes more memory than there is."
        ) from None
    if finding.verdict in _OPEN and claim.has_range() and (other := counterexample(claim)):
        found, case = _decided(other, ())
        reason = f"{found.reason} It was found by a search beyond the listed values."
        return msgspec.structs.replace(found, reason=reason), case, other
    return finding, case, claim


def _decided(claim: Claim, lemmas: Sequence[Claim]) -> tuple[Finding, tuple[Scope, Decision]]:
    """Decide a claim where it is looked at, and by its proof."""
    started = time.perf_counter()
    for each in (claim, *reachable(claim, lemmas)):
        if wrong := misread(each):
            said = "; ".join(": ".join(filter(None, entry)) for entry in wrong)
            raise InvalidInputError(f"Claim {each.id!r}: {said}.")
    cases = list(claim.cases())
    if not cases:
        raise InvalidInputError(
            f"Claim {claim.id!r}: its assumptions leave no case. Widen where, for_all or assume."
        )
    with ledger.watched() as engines:
        decided = [(scope, _decide(claim, scope)) for scope in cases]
    verdict = next(v for v in _ORDER if any(d.verdict is v for _, d in decided))
    scope, decision = max(
        ((s, d) for s, d in decided if d.verdict is verdict), key=lambda case: case[1].severity()
    )
    decision = _explained(claim, scope, decision)
    by_proof = verdict in _OPEN and claim.proof and "limit" not in claim.proof
    if by_proof or (verdict is Verdict.HOLDS and claim.for_all):
        verdict, decision = _over_the_range(claim, decision, len(cases), lemmas)
    decision = dataclasses.replace(decision, verdict=verdict)
    if engines and decision.rigour is Rigour.PROVED:
        decision = dataclasses.replace(decision, rigour=Rigour.BOUNDED)
    finding = _finding(claim, scope, decision)
    finding = msgspec.structs.replace(
        finding, cases=len(cases), seconds=round(time.perf_counter() - started, 3)
    )
    return finding, (scope, decision)


def _decide(claim: Claim, scope: Scope) -> Decision:
    """Decide one case; a precision that does not suffice is UNDECIDED, with its reason."""
    try:
        return claim.decide(scope)
    except UndecidedError as error:
        return Decision(verdict=Verdict.UNDECIDED, reason=str(error))
    except InvalidInputError as error:
        if claim.id == claim.kind and not scope.variables:  # of a sentence: it has no name
            raise
        case = f" (case {scope.to_json()})" if scope.variables else ""
        raise InvalidInputError(f"Claim {claim.id!r}{case}: {error}") from error


def _explained(claim: Claim, scope: Scope, decision: Decision) -> Decision:
    """Add the evidence; a decision that came to nothing, or evidence that does, stays as it is."""
    if not decision.claimed:
        return decision
    try:
        return claim.explain(scope, decision)
    except UndecidedError as error:
        return dataclasses.replace(decision, reason=f"{decision.reason} No evidence: {error}")


def _over_the_range(
    claim: Claim, decision: Decision, count: int, lemmas: Iterable[Claim]
) -> tuple[Verdict, Decision]:
    """Return HOLDS if the claim's proof is accepted; else what its cases support."""
    objection = "Between and beyond them nothing is proved."
    if claim.proof:
        theorem, objection = proved(claim, lemmas)
        if theorem:
            reason = f"{theorem.removeprefix('HOLDS: ')}. {decision.reason}"
            route = f"proof by {claim.proof.get('method', 'limit')}"
            return Verdict.HOLDS, dataclasses.replace(decision, reason=reason, route=route)
        objection = f"Its proof was not accepted: {objection}"
    if decision.verdict is Verdict.HOLDS:
        objection = f"All {count} cases of the grid were proved. {objection}"
    verdict = Verdict.UNDECIDED if decision.verdict is Verdict.UNDECIDED else Verdict.SUPPORTED
    return verdict, dataclasses.replace(decision, reason=f"{decision.reason} {objection}")


def _finding(claim: Claim, scope: Scope, decision: Decision) -> Finding:
    witness: dict[str, Any] = dict(decision.witness)
    if scope.variables:
        witness = {"case": scope.to_json(), **witness}
    return Finding(
        id=claim.id,
        source=claim.source,
        statement=claim.statement,
        kind=claim.kind,
        verdict=decision.verdict,
        true=_plain(decision.true),
        claimed=decision.claimed,
        margin=_plain(decision.margin),
        rigour=decision.rigour,
        witness=witness,
        reason=" ".join(decision.reason.split()),
        formal=formal(claim),
        note=note(claim) if decision.verdict in _STANDING else "",
        expected=claim.expected,
        adjacency=claim.adjacency,
        route=decision.route,
        cause=claim.cause if decision.verdict is Verdict.REFUTED else "",
        error=claim.error if decision.verdict is Verdict.REFUTED else "",
        correction=claim.correction,
    )


def _plain(values: dict[str, Interval]) -> dict[str, Any]:
    return {name: interval.to_json() for name, interval in values.items()}
