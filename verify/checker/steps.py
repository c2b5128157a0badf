"""The steps of checking one certificate."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise, product
from string import Formatter
from typing import Any, final

from mpmath import libmp

from accountant.numbers.precision import ctx
from verify import seal
from verify.checker import optimum
from verify.checker.arithmetic import AGREEMENT, agree, narrow, settle
from verify.checker.compositions.composed import alike, intervals
from verify.checker.declared.own_density import is_shift
from verify.checker.facts import answers, ends, mechanism, named, parameters, read, same
from verify.checker.kernel import OutOfTimeError, ProofError, Proved, prove
from verify.checker.kinds import KINDS, Kind, described, needed, refuting
from verify.checker.language import Variables, evaluate, holds, number, parsed, sides, split
from verify.checker.laws import Law
from verify.checker.mechanisms import BY_PARTS, assumptions, fits, pairs, under
from verify.checker.outcome import quoted
from verify.checker.reals import UnknownError, ball, compare, hull

_NARROW = Fraction(1, 10**5)
"""Relative width that an enclosure has at most: five digits. The comparison is decided apart."""
_MALFORMED = (
    *(
        SyntaxError,
        ValueError,
        TypeError,
        LookupError,
        ArithmeticError,
        AttributeError,
        RecursionError,
    ),
    libmp.NoConvergence,
)
_BUDGET = 4000
"""How many rows are recomputed besides the facts; one with quadratures counts as many."""
_QUADRATURE = 500
"""Cost of a case whose law is an integral, in closed forms."""
_PRODUCT = 200
"""The same of a product of laws."""
_ENDS = {"low": ">=", "above": ">", "high": "<=", "below": "<"}
_INFINITE = ("inf", "-inf")
_MOST_CASES = 100_000
"""Cases of a statement: more are refused."""
_RANGING = ("monotone", "minimiser", "limit", "optimality")
"""Kinds of claims that range over something without `for_all`."""
_SHOWN_BITS = 200
"""Bits of numbers that are shown."""
_POINT = re.compile(r"\bat_(\w+)")
"""The fact whose point a requirement is about."""
_NOT_FROM_FACTS = "does not follow from the facts"
_FREE = {"log_threshold"}
"""Parameters that choose an event of two laws, and follow from nothing."""


def _shown(value: Any, digits: int = 12) -> str:
    with ctx.workprec(_SHOWN_BITS):
        return str(ball(value).str(digits, radius=False))


def _is_whole(value: Any) -> bool:
    return isinstance(value, Fraction) and value.denominator == 1


def _is_probability(value: Any) -> bool:
    """Whether a number is not surely outside [0, 1]."""
    return compare(value, ">=", Fraction(0)) is not False and (
        compare(value, "<=", Fraction(1)) is not False
    )


@final
class Steps:
    """One certificate; each step appends to `problems` and `given`."""

    def __init__(
        self, certificate: seal.Certificate, problems: list[tuple[str, str]], given: list[str]
    ) -> None:
        self.certificate, self.problems, self.given = certificate, problems, given
        self.facts, self.refuted = certificate.facts, certificate.verdict == "REFUTED"
        self.cuts: list[Any] = []
        """Where the pieces of a sweep end."""
        self.found: dict[int, dict[str, Any]] = {}
        """What the numbers of each fact were found to be."""
        self.by_parts = False
        """Whether the mechanism composes, samples or mixes: its law has no one form."""
        self.product = False
        """Whether a law of the claim is a product, with intervals for answers."""
        self.proved: Proved | None = None
        """What the proof of the claim proves, where it has one."""
        self.count = 0
        """How many cases the claim lists."""
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

    def _expect(self, truth: bool, path: str, message: str) -> None:
        if not truth:
            self.problems.append((path, message))

    def _claim(self) -> None:
        """Look up what must be shown for a claim of this kind."""
        claim = self.certificate.claim
        swept = [fact.cuts for fact in self.facts if isinstance(fact, seal.Sweep)]
        self.cuts = [number(cut) for cut in swept[0]] if swept else []
        name = f"{claim['kind']} by sweep" if self.cuts else claim["kind"]
        self.kind: Kind = KINDS[name if name in KINDS else claim["kind"]]
        self.claim = described(claim)
        fits: tuple[str | None, ...] = (None,)
        if "mechanism" in claim:
            fits = (None, "replace-one")
            if not str(claim["mechanism"]).startswith("RandomizedResponse"):  # of one record
                fits += ("add-remove",)
        self._expect(claim.get("adjacency") in fits, "claim.adjacency", "does not fit")
        for text in self.claim["let"].values():
            parsed(text)
        points = [number(point) for point in claim.get("at", [])]
        rising = all(isinstance(p, Fraction) for p in points) and points == sorted({*points})
        self._expect(rising and len(points) != 1, "claim.at", "is no list of rising rationals")
        case = {name: read(value) for name, value in self.certificate.case.items()}
        self.scope = Variables(case, self.claim["let"])
        template = self.kind.refuted if self.refuted else self.kind.holds
        self.text = template.format_map(self.claim)

    def _case(self) -> None:
        """Require a case that the claim lists, and a verdict that cases can give."""
        cases = self._cases()
        self.count = len(cases)
        listed = any(self.scope == case for case, _ in cases)
        self._expect(listed, "case", "is not a case of the claim")
        if self.certificate.verdict == "HOLDS":
            provable = bool(self._proof_data()) or self._is_provable()
            self._expect(provable, "verdict", "listed points never prove this claim")
        if self.refuted and self.claim["kind"] == "optimality":
            rival = bool(self.claim.get("rival"))
            self._expect(rival, "claim.rival", "a typed competitor refutes nothing")

    def _points(self) -> None:
        """Require a value of the expression at every point that the claim lists."""
        for point in self.claim.get("at", ()):
            scope = self.scope.but(**{self.claim["variable"]: number(point)})
            value = number(evaluate(self.claim["expression"], scope))
            self._expect(ball(value).is_finite(), "claim.at", f"{point}: there is no value there")

    def _is_provable(self) -> bool:
        """Whether the cases can prove the claim: its points are all there are, it has a dual."""
        match self.claim["kind"]:
            case "monotone" | "minimiser":
                return self._is_exhausted()
            case "limit":
                return False
            case "optimality":
                return bool(self.claim.get("dual"))
        return True

    def _is_exhausted(self) -> bool:
        """Whether the points are all integers between two ends, in every case."""
        over, variable = self.claim.get("over") or {}, self.claim["variable"]
        points = [number(point) for point in self.claim["at"]]
        if not over.get("integer") or any(high - low != 1 for low, high in pairwise(points)):
            return False

        def inside(point: Any, case: Variables) -> bool:
            return self._within(variable, over, case.but(**{variable: point}))

        return all(
            all(inside(point, case) for point in points)
            and not inside(points[0] - 1, case)
            and not inside(points[-1] + 1, case)
            for case, _ in self._cases()
        )

    def _proof_data(self) -> dict[str, Any]:
        proof = self.claim.get("proof")
        return proof if isinstance(proof, dict) else {}

    def _proof(self) -> None:
        """Prove anew what the claim says of all that it ranges over, by its own proof."""
        if self.certificate.verdict == "HOLDS" and self._proof_data():
            lemmas = {str(lemma["id"]): lemma for lemma in self.certificate.lemmas}
            self.proved = self._prove(self.certificate.claim, lemmas)
        elif self.refuted and self.claim["kind"] == "limit":
            proof = {key: value for key, value in self._proof_data().items() if key != "limit"}
            other = {"limit": self.claim["third_text"], "proof": proof}
            self._prove(self._in_case(self.certificate.case, **other), {})

    def _prove(self, claim: Mapping[str, Any], lemmas: Mapping[str, Any]) -> Proved | None:
        try:
            proved = prove(claim, lemmas)
        except OutOfTimeError as error:
            raise UnknownError("the proof, which takes too long") from error
        except ProofError as error:
            self._expect(False, "claim.proof", f"is no proof: {error}")
            return None
        self.recomputed.append(f"a proof by {proved.method}: {proved.size}")
        return proved

    def _in_case(self, texts: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
        """Return the claim about one case alone, with other fields where they are given."""
        let = {**{name: str(text) for name, text in texts.items()}, **self.claim["let"]}
        kept = {
            name: value
            for name, value in self.certificate.claim.items()
            if name not in ("where", "for_all", "assume", "proof")
        }
        return {**kept, "let": let, **changes}

    def _is_identity(self, texts: Mapping[str, Any]) -> bool:
        """Whether both sides of a relation are proved to be the same number in a case."""
        equal = f"{self.claim['left']} == {self.claim['right']}"
        try:
            prove(self._in_case(texts, claim=equal, proof={"method": "identity"}), {})
        except ProofError:
            return False
        return True

    def _range(self) -> None:
        """Require a proof of a claim over whole domains: cases leave out what lies between."""
        whole = self.certificate.verdict == "HOLDS" and bool(self.claim["for_all"])
        open_ = whole and not self._proof_data()
        self._expect(not open_, "verdict", "cases never prove a claim over whole domains")

    def _argument(self) -> None:
        """Name what an argued claim rests on: what a person says, and other claims."""
        if self.certificate.verdict != "ARGUED":
            return
        argument, lemmas = self.claim.get("argument", ""), self.claim["lemmas"]
        self._expect(bool(argument.strip()), "claim.argument", "is missing")
        ranges = bool(self.claim["for_all"]) or self.claim["kind"] in _RANGING
        self._expect(ranges, "verdict", "nothing is left to argue")
        self.given += [f"the argument of its author: {quoted(argument, 2000)}"]
        self.given += [f"the lemma {quoted(lemma)}" for lemma in lemmas]

    def _cases(self) -> list[tuple[Variables, dict[str, Any]]]:
        """Return every case that is listed, and the texts of its values."""
        grids = {name: domain["grid"] for name, domain in self.claim["for_all"].items()}
        values = {**self.claim["where"], **grids}
        own = {"tradeoff": "alpha", "profile": "epsilon"}.get(self.claim["kind"], "")
        names = [*self.claim["where"], *grids, *self.claim["let"], self.claim.get("variable", own)]
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise ValueError(f"the name {twice[0]} is given twice")
        if math.prod(map(len, values.values())) > _MOST_CASES:
            raise ValueError(f"more than {_MOST_CASES} cases")
        rows = product(*values.values())
        texts = [dict(zip(values, row, strict=True)) for row in rows]
        found = [({name: read(value) for name, value in row.items()}, row) for row in texts]
        cases = [(Variables(row, self.scope.let), text) for row, text in found]
        cases = [c for c in cases if all(holds(text, c[0]) for text in self.claim["assume"])]
        domains = self.claim["for_all"].items()
        if not all(self._within(name, given, case) for case, _ in cases for name, given in domains):
            raise ValueError("a value is listed outside its domain")
        return cases

    def _within(self, name: str, domain: Mapping[str, Any], case: Variables) -> bool:
        """Whether a value lies in its domain."""
        return (not domain.get("integer") or _is_whole(case[name])) and all(
            holds(f"{name} {relation} ({domain[end]})", case)
            for end, relation in _ENDS.items()
            if domain.get(end) and domain[end] not in _INFINITE
        )

    def _claimed(self) -> None:
        """Require the claimed numbers and texts to be those of the claim."""
        said = {name: text.format_map(self.claim) for name, text in self.kind.shown.items()}
        texts = {name: text for name, text in said.items() if text}
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
            if name == "delta" and not _is_probability(found[name]):
                raise ValueError("delta is no probability")
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
            self.index = self.index if fact.name == "gaussian_delta" else index
            chosen = {key: given[key] for key in _FREE & given.keys()}
            return lambda: {**derived()[index], **chosen}
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
            small = isinstance(fact, seal.ExpressionFact)  # a difference of equal numbers, say
            self._meets(f"{path}.{name}", (low, high), value, small=small)

    def _meets(self, path: str, ends: tuple[Any, Any], value: Any, *, small: bool) -> None:
        """Require an enclosure to have a number in common with the ball found here.

        A number that is not told from 0 is taken as given, unless it may well be `small`.
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
            if small:
                self.recomputed.append(f"{path} to be at most {most}")
            else:
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
            row |= refuting(self.claim, self.scope, row, self.index)
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
    return all(same(value, given.get(key)) for key, value in law.items())


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
