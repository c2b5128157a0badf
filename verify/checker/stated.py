"""What a certificate states: its claim, the cases that it lists, and what is proved or argued."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

from dpassay.verifier import seal
from dpassay.verifier.checker.arithmetic import agree
from dpassay.verifier.checker.facts import read
from dpassay.verifier.checker.kernel import OutOfTimeError, ProofError, Proved, prove
from dpassay.verifier.checker.kinds import KINDS, Kind, described
from dpassay.verifier.checker.language import Variables, evaluate, holds, number, parsed
from dpassay.verifier.checker.outcome import quoted
from dpassay.verifier.checker.reals import UnknownError, ball, compare

_ENDS = {"low": ">=", "above": ">", "high": "<=", "below": "<"}
_INFINITE = ("inf", "-inf")
_RANGING = ("monotone", "minimiser", "limit", "optimality")
"""Kinds of claims that range over something without `for_all`."""


def _is_probability(value: Any) -> bool:
    """Whether a number is not surely outside [0, 1]."""
    return compare(value, ">=", Fraction(0)) is not False and (
        compare(value, "<=", Fraction(1)) is not False
    )


class Stated:
    """The claim of one certificate; each step appends to `problems` and `given`."""

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
        self.chosen: dict[str, Any] = {}
        """The event of that pair, where it has several."""
        self.open = False
        """Whether the facts leave the conclusion undecided."""
        self.recomputed: list[str] = []
        """How many digits of a product's numbers were found again."""

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
        """Require points of the range, the claimed one among them, with values at all of them."""
        points = [number(point) for point in self.claim.get("at", ())]
        listed = "claimed" not in self.claim or number(self.claim["claimed"]) in points
        self._expect(listed, "claim.claimed", "is none of the points")
        positive = compare(number(self.claim["tolerance"]), ">=", Fraction(0)) is not False
        self._expect(positive, "claim.tolerance", "is below 0")
        for point in self.claim.get("at", ()):
            scope = self.scope.but(**{self.claim["variable"]: number(point)})
            inside = self._within(self.claim["variable"], self.claim.get("over") or {}, scope)
            self._expect(inside, "claim.at", f"{point} lies outside the range")
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
        elif self.refuted and self.claim.get("third") == "other":
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
        return (not domain.get("integer") or getattr(case[name], "denominator", 0) == 1) and all(
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
