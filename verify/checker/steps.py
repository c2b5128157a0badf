"""The steps of checking one certificate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise, product
from string import Formatter
from typing import Any, final

from flint import ctx
from mpmath import libmp

from verify import seal
from verify.checker.arithmetic import (
    AGREEMENT,
    UnknownError,
    agree,
    compare,
    hull,
    narrow,
    settle,
)
from verify.checker.composed import alike, intervals
from verify.checker.facts import answers, ends, mechanism, named, parameters, read, same
from verify.checker.kinds import KINDS, Kind, described, needed, refuting
from verify.checker.language import Variables, evaluate, holds, number, sides, split
from verify.checker.laws import Law
from verify.checker.mechanisms import WRAPPERS, fits, pairs, under
from verify.checker.reals import ball
from verify.checker.sweep import sweep

_NARROW = Fraction(1, 10**12)
_MALFORMED = (
    *(ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError),
    libmp.NoConvergence,
)
_BUDGET = 4000
"""How many rows are recomputed besides the facts; one with quadratures counts as many."""
_QUADRATURE = 500
_PRODUCT = 200
_SHOWN_BITS = 200
_NOT_FROM_FACTS = "does not follow from the facts"


def _shown(value: Any, digits: int = 12) -> str:
    with ctx.workprec(_SHOWN_BITS):
        return str(ball(value).str(digits, radius=False))


def _one_record(claim: Mapping[str, Any]) -> bool:
    return str(claim.get("mechanism", "")).startswith("RandomizedResponse")


@final
class Steps:
    """One certificate; each step appends to `problems` and `given`."""

    def __init__(
        self, certificate: seal.Certificate, problems: list[tuple[str, str]], given: list[str]
    ) -> None:
        self.certificate, self.problems, self.given = certificate, problems, given
        self.facts, self.refuted = certificate.facts, certificate.verdict == "REFUTED"
        swept = [fact.cuts for fact in self.facts if isinstance(fact, seal.Sweep)]
        self.cuts = [number(cut) for cut in swept[0]] if swept else []
        self.found: dict[int, dict[str, Any]] = {}
        """What the numbers of each fact were found to be."""
        self.by_parts = False
        """Whether the mechanism composes, samples or mixes: its law has no one form."""
        self.product = False
        """Whether a law of the claim is a product, with intervals for answers."""
        self.index = 0
        """Which of the mechanism's pairs the facts are about."""
        self.open = False
        """Whether the facts leave the conclusion undecided."""
        self.recomputed: list[str] = []
        """How many digits of a product's numbers were found again."""

    def run(self) -> None:
        """Run every step; what cannot be evaluated is a problem of the field that it reads."""
        steps = {
            "claim": self._claim,
            "case": self._case,
            "claim.for_all": self._range,
            "claimed": self._claimed,
            "mechanism": self._mechanism,
            **{f"facts[{index}]": self._fact(index) for index in range(len(self.facts))},
            "facts": self._requirements,
            "conclusion": self._conclusion,
            "verdict": self._recompute,
        }
        for path, step in steps.items():
            try:
                step()
            except UnknownError as error:
                self.given.append(str(error))
            except _MALFORMED as error:
                self.problems.append((path, f"cannot be checked: {error}"))
            if self.problems and path in ("claim", "case"):
                return

    def _expect(self, truth: bool, path: str, message: str) -> None:
        if not truth:
            self.problems.append((path, message))

    def _claim(self) -> None:
        """Look up what must be shown for a claim of this kind."""
        claim = self.certificate.claim
        name = f"{claim['kind']} by sweep" if self.cuts else claim["kind"]
        self.kind: Kind = KINDS[name if name in KINDS else claim["kind"]]
        self.claim = described(claim)
        fits = (None, "replace-one", *(() if _one_record(self.claim) else ("add-remove",)))
        self._expect(claim.get("adjacency") in fits, "claim.adjacency", "does not fit")
        case = {name: read(value) for name, value in self.certificate.case.items()}
        self.scope = Variables(case, self.claim["let"])
        template = self.kind.refuted if self.refuted else self.kind.holds
        self.text = template.format_map(self.claim)

    def _case(self) -> None:
        """Require a case that the claim lists, and a verdict that cases can give."""
        self._expect(self.scope in self._cases(), "case", "is not a case of the claim")
        if self.certificate.verdict == "HOLDS":
            provable = self.kind.provable and not self.claim["tail"]
            self._expect(provable, "verdict", "listed points never prove this claim")

    def _range(self) -> None:
        """Prove anew that a claim over whole domains holds between the cases, too."""
        domains = self.claim["for_all"].values()
        if self.certificate.verdict == "HOLDS" and domains:
            bounded = all(domain.get("low") and domain.get("high") for domain in domains)
            provable = self.claim["kind"] == "relation" and bounded
            self._expect(provable, "verdict", "cases never prove a claim over whole domains")
            if provable:
                sweep(self.claim)

    def _cases(self) -> list[Variables]:
        grids = {name: domain["grid"] for name, domain in self.claim["for_all"].items()}
        values = {**self.claim["where"], **grids}
        rows = product(*([read(entry) for entry in column] for column in values.values()))
        cases = [Variables(dict(zip(values, row, strict=True)), self.scope.let) for row in rows]
        return [
            c
            for c in cases
            if all(holds(text, c) for text in self.claim["assume"]) and self._inside(c)
        ]

    def _inside(self, case: Variables) -> bool:
        """Whether every value lies in the domain that it is listed for."""
        domains = self.claim["for_all"].items()
        ends = [(name, "low", ">=", domain) for name, domain in domains]
        ends += [(name, "high", "<=", domain) for name, domain in domains]
        return all(
            holds(f"{name} {relation} ({domain[end]})", case)
            for name, end, relation, domain in ends
            if domain.get(end)
        )

    def _claimed(self) -> None:
        """Require the claimed numbers and texts to be those of the claim."""
        texts = {name: text.format_map(self.claim) for name, text in self.kind.shown.items()}
        stated, numbers = self.certificate.claimed, self._numbers(self.scope)
        for name in {**numbers, **texts, **stated}:
            right = name in stated and (
                agree(number(stated[name]), numbers[name])
                if name in numbers
                else stated[name] == texts.get(name)
            )
            self._expect(right, f"claimed.{name}", "is not what the claim says")

    def _numbers(self, scope: Variables) -> dict[str, Any]:
        """Return the numbers that the claim states; as the certificate has them if unknown."""
        found = {}
        for name in self.kind.numbers:
            try:
                found[name] = number(evaluate(self.claim[name], scope))
            except UnknownError as error:
                if scope != self.scope:
                    raise
                found[name] = number(self.certificate.claimed[name])
                self.given.append(f"{name}, for want of {error}")
        return found

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
            self.by_parts = derived.name in (*WRAPPERS, "MixtureOfGaussians")
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

        try:
            laws = derived()
        except UnknownError as error:
            self.given.append(str(error))
            return lambda: parameters(fact.law)
        given = parameters(fact.law)
        plain = [all(same(v, given.get(key)) for key, v in law.items()) for law in laws]
        parts = plain if True in plain else [self.by_parts and alike(law, given) for law in laws]
        if True in parts:
            index = parts.index(True)
            self.index = self.index if fact.name == "gaussian_delta" else index
            return lambda: derived()[index]
        raise ValueError(f"{path} does not follow from the mechanism")

    def _encloses(self, index: int, compute: Callable[[], dict[str, Any]]) -> None:
        """Require narrow enclosures that have a number in common with what is found here."""
        fact, path = self.facts[index], f"facts[{index}]"
        self.found[index] = settle(compute)
        for name, value in self.found[index].items():
            low, high = ends(getattr(fact, name))
            if narrow(value):
                size = _NARROW * abs(low) if low * high > 0 else AGREEMENT**2
                right = low == high or 0 < high - low <= size
                self._expect(right, f"{path}.{name}", "is not narrow")
            self._meets(f"{path}.{name}", (low, high), value)

    def _meets(self, path: str, ends: tuple[Any, Any], value: Any) -> None:
        """Require an enclosure to have a number in common with the ball found here."""
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
            self.given.append(f"{path}: too long to recompute, but at most {most}")

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
        laws = [fact.law for fact in self.facts if isinstance(fact, seal.Event)]
        self._expect(all(law == laws[0] for law in laws), "facts", "expected events of one pair")
        for row in self._rows() if not self.problems else []:
            for template in self.kind.requires + (self.kind.to_refute if self.refuted else ()):
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
        if self.refuted or not self.kind.by_sweep_alone:
            for row, found in zip(self._rows(), self._rows(recomputed=True), strict=True):
                truths = [compare(*sides(self.text, one)) for one in (row, found)]
                if False in truths:
                    self.problems.append(("conclusion", _NOT_FROM_FACTS))
                self.open = self.open or truths == [None, None]

    @property
    def _undecided(self) -> str:
        return f"{self.text}, which no number of digits decides"

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
            else:
                self._recompute_cases()
        except UnknownError:
            self.given += [self._undecided] if self.open else []
            raise

    def _recompute_cases(self) -> None:
        cases = [self.scope, *(case for case in self._cases() if case != self.scope)]
        cost = _QUADRATURE if "RankOneGaussian" in str(self.certificate.claim) else 1
        cost = _PRODUCT if self.product else cost
        for count, case in enumerate(cases):
            left_out = f"{len(cases) - count} of the {len(cases)} cases, not recomputed"
            if (count + 1) * cost * max(len(self.cuts), 1) > _BUDGET or (count and self.cuts):
                self.given.append(left_out)
                break
            try:
                self._recompute_case(case)
            except UnknownError:
                self.given += [left_out] if len(cases) > 1 else []
                raise

    def _recompute_refutation(self) -> None:
        """Decide anew that the claim is false in the stated case, at the point of the facts."""

        def both() -> list[Any]:
            row = dict(self._rows(recomputed=True)[0])
            for fact in self.facts:
                if isinstance(fact, seal.ExpressionFact):
                    scope = self.scope.but(**{k: read(v) for k, v in fact.variables.items()})
                    text = self.kind.expressions(self.claim)[fact.name]
                    row[fact.name] = number(evaluate(text, scope))
            row |= refuting(self.claim, self.scope, row, self.index)
            left, _, right = sides(self.text, self._with_numbers(self.scope, row))
            return [left, right]

        relation = split(self.text)[1]
        left, right = settle(both, lambda found: compare(found[0], relation, found[1]) is not None)
        shown = f"{_shown(left)}, {_shown(right)}"
        self._judge(compare(left, relation, right), "verdict", f"{self.text} is false: {shown}")

    def _recompute_case(self, case: Variables) -> None:
        relation = split(self.text)[1]

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
            self._judge(truth, "verdict", f"{self.text} is false: {shown}")
            if pieces and truth:
                self._hold_over(case, pieces[index], left, right)

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
