"""The steps of checking one certificate."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from string import Formatter
from typing import Any, final

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier import seal
from dpassay.verifier.checker import optimum
from dpassay.verifier.checker.arithmetic import AGREEMENT, narrow, settle
from dpassay.verifier.checker.compositions.composed import alike, intervals
from dpassay.verifier.checker.declared.own_density import OWN_DENSITY, is_shift
from dpassay.verifier.checker.facts import answers, ends, mechanism, named, parameters, read, same
from dpassay.verifier.checker.kinds import needed, refuting
from dpassay.verifier.checker.language import Variables, evaluate, holds, number, sides, split
from dpassay.verifier.checker.laws import Law
from dpassay.verifier.checker.mechanisms.neighbours import assumptions, under
from dpassay.verifier.checker.mechanisms.pairs import BY_PARTS, fits, pairs
from dpassay.verifier.checker.outcome import quoted
from dpassay.verifier.checker.reals import UnknownError, ball, compare, hull
from dpassay.verifier.checker.stated import Stated

_NARROW, _SLOPE = Fraction(1, 10**5), Fraction(1, 100)
"""Relative width that an enclosure has at most: five digits, two for a probability of an event of a
composition. The comparison is decided apart."""
_NEAR_ZERO = Fraction(1, 10**30)
"""Width that an expression may have in any case: it may be a difference of like numbers."""
_MALFORMED = (
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    RecursionError,
)
_BUDGET = 4000
"""How many rows are recomputed besides the facts; one with quadratures counts as many."""
_QUADRATURE = 500
"""Cost of a case whose law is an integral, in closed forms."""
_PRODUCT = 200
"""The same of a product of laws."""
_SHOWN_BITS = 200
"""Bits of numbers that are shown."""
_POINT = re.compile(r"\bat_(\w+)")
"""The fact whose point a requirement is about."""
_NOT_FROM_FACTS = "does not follow from the facts"
_FREE = {"log_threshold", "power", "event"}
"""Parameters that choose an event of a law, and follow from nothing. A refutation may also take a
smaller distance of a density."""
_WRITTEN = {"laplace-product": {"unit", "multiples"}, "finite": {"outcomes"}}
"""What a law is written with besides: distances as multiples, and names of outcomes."""


def _shown(value: Any, digits: int = 12) -> str:
    with ctx.workprec(_SHOWN_BITS):
        return str(ball(value).str(digits, radius=False))


@final
class Steps(Stated):
    """One certificate: its claim, its facts, and the claim decided anew."""

    def run(self) -> None:
        """Run every step; what cannot be evaluated is a problem of the field that it reads."""
        steps = {
            "claim": self._claim,
            "case": self._case,
            "claim.at": self._points,
            "claim.proof": self._proof,
            "claim.for_all": self._range,
            "claim.argument": self._argument,
            "claimed": self._claimed,
            "mechanism": self._mechanism,
            **{f"facts[{index}]": self._fact(index) for index in range(len(self.facts))},
            "facts": self._requirements,
            "conclusion": self._conclusion,
            "verdict": self._recompute,
        }
        for path, step in steps.items():
            before = len(self.given)
            try:
                step()
            except UnknownError as error:
                self.given.append(str(error))
            except _MALFORMED as error:
                self.problems.append((path, f"cannot be checked: {error}"))
            if self.proved is not None:  # the numbers of a case add nothing to a theorem
                del self.given[before:]
            if self.problems and path in ("claim", "case"):
                return

    def _mechanism(self) -> None:
        """Require the claim's mechanism, with the values of the case."""
        shown = self.certificate.mechanism
        if "mechanism" in self.claim:
            derived = mechanism(self.claim["mechanism"], self.scope)
            self._expect(
                same(derived, mechanism(shown)),
                "mechanism",
                "is not the claim's, with the values of the case",
            )
            adjacency = self.claim.get("adjacency")
            derived = under(derived, adjacency)
            self._expect(fits(derived, adjacency), "claim.adjacency", "does not fit")
            self.given += assumptions(derived)
            self.by_parts = derived.name in BY_PARTS
            self.product = any(map(intervals, pairs(derived)))
        else:
            self._expect(not shown, "mechanism", "is not named by the claim")

    def _fact(self, index: int) -> Callable[[], None]:
        """Require a fact that the claim needs, and true numbers in it."""
        fact, path = self.facts[index], f"facts[{index}]"

        def step() -> None:
            expressions = self.kind.expressions(self.claim)
            if self.kind.wanted(self.claim, self.refuted).get(fact.name) is not type(fact):
                self.problems.append((path, "is not a fact that this claim needs"))
            elif isinstance(fact, seal.ExpressionFact):
                text = expressions[fact.name]
                self._expect(fact.expression == text, f"{path}.expression", "is not the claim's")
                self._expect(self._listed(fact.variables), f"{path}.variables", "are not listed")
                scope = self.scope.but(**{k: read(v) for k, v in fact.variables.items()})
                self._encloses(index, lambda: {"value": number(evaluate(text, scope))})
            elif not isinstance(fact, (seal.Sweep, seal.Point)):
                law = self._law(fact, f"{path}.law")
                self._encloses(index, lambda: answers(fact, law()))

        return step

    def _listed(self, variables: Mapping[str, str]) -> bool:
        if "at" not in self.claim:
            return not variables
        points = [read(point) for point in self.claim["at"]]
        given = [read(value) for value in variables.values()]
        return [*variables] == [self.claim["variable"]] and all(v in points for v in given)

    def _law(self, fact: Any, path: str) -> Callable[[], Law]:
        """Return the law as it follows from the mechanism, else as it is given."""

        def derived() -> list[Law]:
            if fact.name == "gaussian_delta":
                return [{"law": "gaussian", "mu": evaluate(self.claim["mu"], self.scope)}]
            noise = mechanism(self.claim["mechanism"], self.scope)
            return pairs(under(noise, self.claim.get("adjacency")))

        given = parameters(fact.law)
        try:
            laws = derived()
            plain = [
                _as_given(law, given) or is_shift(law, given, refuted=self.refuted) for law in laws
            ]
            by_parts = self.by_parts and True not in plain
            parts = [_by_parts(law, given) for law in laws] if by_parts else plain
        except UnknownError as error:
            shown = quoted(json.dumps(fact.law))
            self.given.append(f"{error}, for which the certificate takes {shown}")
            return lambda: given
        if True in parts:
            index = parts.index(True)
            free = (_FREE - laws[index].keys()) & given.keys() if self.refuted else set()
            chosen = {key: given[key] for key in free}
            if self.refuted and given["law"] == OWN_DENSITY.name:  # by one shift, if need be
                distance = min(laws[index]["distance"], given["distance"])
                chosen |= {"law": given["law"], "distance": distance}
            if fact.name != "gaussian_delta":  # a law of the claimed curve
                self.index, self.chosen = index, chosen
            return lambda: {**derived()[index], **chosen}
        raise ValueError(f"{path} does not follow from the mechanism")

    def _encloses(self, index: int, compute: Callable[[], dict[str, Any]]) -> None:
        """Require enclosures that have a number in common with what is found here.

        They are narrow. Probabilities of an event of a composition have fewer digits: they are
        slopes of a profile, which is known better than they are.
        """
        fact, path = self.facts[index], f"facts[{index}]"
        self.found[index] = settle(compute)
        small = isinstance(fact, seal.ExpressionFact)  # a difference of equal numbers, say
        for name, value in self.found[index].items():
            low, high = ends(getattr(fact, name))
            probable = isinstance(fact, (seal.Event, seal.HockeyStick))
            self._expect(not probable or high <= 1 + _NARROW, f"{path}.{name}", "is above 1")
            known = narrow(value)
            if known or (isinstance(fact, seal.Event) and low * high > 0):
                slope = isinstance(fact, seal.Event) and fact.law.get("law") == "product"
                wide = (1 if not known else _SLOPE if slope else _NARROW) * abs(low)
                wide = wide if low * high > 0 else AGREEMENT**2
                wide = max(wide, _NEAR_ZERO) if small else wide
                endless = not ball(high).is_finite() or not ball(low).is_finite()  # no decimal
                right = low == high or endless or 0 < high - low <= wide
                self._expect(right, f"{path}.{name}", "is not narrow")
            self._meets(f"{path}.{name}", (low, high), value)

    def _meets(self, path: str, ends: tuple[Any, Any], value: Any) -> None:
        """Require an enclosure to have a number in common with the ball found here.

        Nothing rests on its digits: the verdict is decided from the ball, or is taken as given.
        """
        shown = _shown(value, 25)
        below, above = compare(ends[0], ">", value), compare(ends[1], "<", value)
        self._expect(not below, f"{path}.lower", f"does not enclose {shown}")
        self._expect(not above, f"{path}.upper", f"does not enclose {shown}")
        if narrow(value):
            return
        around = ball(value)
        if around > 0 or around < 0:
            digits = int(around.rel_accuracy_bits() * math.log10(2))
            self.recomputed.append(f"{path} to {max(digits, 0)} digits")
        else:
            most = ball(value).abs_upper().str(5, radius=False)
            self.recomputed.append(f"{path} to be at most {most}")

    def _rows(self, *, recomputed: bool = False) -> list[Variables]:
        """Return what the facts say, or were found to be: one row for each fact named `value`."""
        entries = [
            named(fact, self.found.get(index, {}) if recomputed else {})
            for index, fact in enumerate(self.facts)
        ]
        shared = {k: v for entry in entries if "value" not in entry for k, v in entry.items()}
        repeated = [entry for entry in entries if "value" in entry] or [{}]
        return [self._with_numbers(self.scope, {**shared, **entry}) for entry in repeated]

    def _with_numbers(self, scope: Variables, row: dict[str, Any]) -> Variables:
        """Add the numbers that the claim states, and the claimed curve at the point of the row."""
        numbers = self._numbers(scope)
        variable = "alpha" if self.claim["kind"] == "tradeoff" else "epsilon"
        if "bound" in self.claim and variable in row:
            inner = scope.but(**{variable: row[variable]})
            numbers["bound"] = number(evaluate(self.claim["bound"], inner))
        return Variables({**row, **numbers}, {})

    def _requirements(self) -> None:
        """Require every fact that is needed, about the point that the claim names."""
        for name in self.kind.wanted(self.claim, self.refuted):
            there = any(fact.name == name for fact in self.facts)
            self._expect(there, "facts", f"expected a fact named {name!r}")
        counted = Counter(fact.name for fact in self.facts if fact.name != "value")
        repeated = [name for name, count in counted.items() if count > 1]
        self._expect(not repeated, "facts", "a fact stands twice")
        laws = [fact.law for fact in self.facts if isinstance(fact, seal.Event)]
        self._expect(all(law == laws[0] for law in laws), "facts", "expected events of one pair")
        wanted = {*self.kind.wanted(self.claim, self.refuted)}
        templates = [
            template
            for template in self.kind.requires + (self.kind.to_refute if self.refuted else ())
            if {*_POINT.findall(template)} <= wanted
        ]
        for row in self._rows() if not self.problems else []:
            for template in templates:
                text = template.format_map(self.claim)
                fields = [name for _, name, _, _ in Formatter().parse(template) if name]
                stated = {f"of_{n}": number(evaluate(self.claim[n], self.scope)) for n in fields}
                about = template.format_map({name: f"of_{name}" for name in fields})
                one, relation, other = sides(about, Variables({**row, **stated}, {}))
                truth = compare(one, relation, other)
                if truth is None:
                    self.given.append(f"that {text}")
                self._expect(truth is not False, "facts", f"expected {text}")

    def _conclusion(self) -> None:
        """Require the conclusion that the verdict needs, and that the facts give it."""
        self._expect(self.certificate.conclusion == self.text, "conclusion", f"not {self.text!r}")
        if self.text and (self.refuted or not self.kind.by_sweep_alone):
            for row, found in zip(self._rows(), self._rows(recomputed=True), strict=True):
                truths = [compare(*sides(self.text, one)) for one in (row, found)]
                if False in truths:
                    self.problems.append(("conclusion", _NOT_FROM_FACTS))
                self.open = self.open or truths == [None, None]

    @property
    def _undecided(self) -> str:
        return f"{self.text}, which what is found again does not decide"

    def _judge(self, truth: bool | None, path: str, message: str) -> None:
        """Take as given what is not decided."""
        if truth is None:
            self.given.append(self._undecided)
        else:
            self._expect(truth, path, message)

    def _recompute(self) -> None:
        """Decide the claim anew from its own text: all cases, unless one counterexample is it."""
        try:
            if self.refuted:
                self._recompute_refutation()
            elif self.text:
                self._recompute_cases()
        except UnknownError:
            self.given += [self._undecided] if self.open else []
            raise

    def _recompute_cases(self) -> None:
        others = [(case, texts) for case, texts in self._cases() if case != self.scope]
        cases = [(self.scope, self.certificate.case), *others]
        cost = _QUADRATURE if "RankOneGaussian" in str(self.certificate.claim) else 1
        cost = _PRODUCT if self.product else cost
        for count, (case, texts) in enumerate(cases):
            left_out = f"{len(cases) - count} of the {len(cases)} cases, not recomputed"
            if (count + 1) * cost * max(len(self.cuts), 1) > _BUDGET or (count and self.cuts):
                self.given.append(left_out)
                break
            try:
                self._recompute_case(case, texts)
            except UnknownError:
                self.given += [left_out] if len(cases) > 1 else []
                raise

    def _recompute_refutation(self) -> None:
        """Decide anew that the claim is false in the stated case, at the point of the facts."""
        self._conditions(self.scope)

        def both() -> list[Any]:
            row = dict(self._rows(recomputed=True)[0])
            for fact in self.facts:
                if isinstance(fact, seal.ExpressionFact):
                    scope = self.scope.but(**{k: read(v) for k, v in fact.variables.items()})
                    text = self.kind.expressions(self.claim)[fact.name]
                    row[fact.name] = number(evaluate(text, scope))
            row |= refuting(self.claim, self.scope, row, self.index, self.chosen)
            left, _, right = sides(self.text, self._with_numbers(self.scope, row))
            return [left, right]

        relation = split(self.text)[1]
        left, right = settle(both, lambda found: compare(found[0], relation, found[1]) is not None)
        shown = f"{_shown(left)}, {_shown(right)}"
        self._judge(compare(left, relation, right), "verdict", f"{self.text} is false: {shown}")

    def _recompute_case(self, case: Variables, texts: Mapping[str, Any]) -> None:
        relation = split(self.text)[1]
        self._conditions(case)

        def both() -> list[Any]:
            rows = needed(self.kind, self.claim, case, self.cuts)
            found = [sides(self.text, self._with_numbers(case, row)) for row in rows]
            return [side for left, _, right in found for side in (left, right)]

        def decided(found: list[Any]) -> bool:
            pairs = zip(found[::2], found[1::2], strict=True)
            return all(compare(left, relation, right) is not None for left, right in pairs)

        values = settle(both, decided)
        pieces = list(pairwise(self.cuts)) if "bound" in self.claim else []
        for index, (left, right) in enumerate(zip(values[::2], values[1::2], strict=True)):
            truth = compare(left, relation, right)
            shown = f"{_shown(left)}, {_shown(right)}"
            if truth is None and self.claim["kind"] == "relation":
                truth = (relation in ("==", "<=", ">=") and self._is_identity(texts)) or None
            self._judge(truth, "verdict", f"{self.text} is false: {shown}")
            if pieces and truth:
                self._hold_over(case, pieces[index], left, right)

    def _conditions(self, case: Variables) -> None:
        """Require what makes the number that a claim of optimality is compared with a bound."""
        if self.claim["kind"] == "optimality":
            for condition in optimum.compared(self.certificate.claim).conditions:
                self._expect(holds(condition, case), "claim.among", f"expected {condition}")

    def _hold_over(self, case: Variables, piece: tuple[Any, Any], left: Any, right: Any) -> None:
        """Require the comparison for all values of the claimed curve on a piece of a sweep."""

        def bound(point: Any) -> Any:
            return number(evaluate(self.claim["bound"], case.but(**{variable: point})))

        trade_off = self.claim["kind"] == "tradeoff"
        variable, relation = "alpha" if trade_off else "epsilon", split(self.text)[1]
        try:
            over = bound(hull(*piece))
            sure = compare(over if trade_off else left, relation, right if trade_off else over)
        except UnknownError:
            sure = None
        if not sure:
            rises = compare(bound(piece[0]), "<", bound(piece[1]))
            self._expect(not rises, "verdict", "the claimed curve increases")
            self.given.append("that the claimed curve does not increase")


def _as_given(law: Law, given: Law) -> bool:
    """Whether a law that was derived is one that is given, entry by entry."""
    more = given.keys() - law.keys() - _FREE - _WRITTEN.get(law["law"], set())
    return not more and all(same(value, given.get(key)) for key, value in law.items())


def _by_parts(law: Law, given: Law) -> bool:
    """Whether a law that was derived has the parts of one that is given, in any order."""
    if "between" not in (law["law"], given["law"]):
        return _as_given(law, given) or alike(law, given)
    ends, others = law.get("factors", []), given.get("factors", [])
    return (
        law["law"] == given["law"]
        and len(ends) == len(others)
        and all(map(_by_parts, ends, others))
    )
