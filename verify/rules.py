"""What a claim may say, on plain data, before any arithmetic.

A name stands for a listed value (`where`), for what is ranged over (`for_all`, the `variable` of a
limit, of a minimiser or of a monotone function, `epsilon` or `alpha` of a curve), for a named
expression (`let`), or for the index of a sum. What a text may use, directly or by way of `let`:

- a listed value, a point, a tolerance, the claimed minimiser: no variable;
- an end of a range: the listed values, and the variables of `for_all` before it;
- an assumption, an end of `over`, a limit, a rival, the ends of a curve, every number of a
  guarantee: the listed values and the variables of `for_all`;
- the expression, a stated rate, a claimed curve: these and the claim's own variable.

So nothing that bounds a variable can depend on it. Evaluated texts are printable ASCII without
comments; names are those of variables, not of functions, mechanisms or constants.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.expression import FORMS, FUNCTIONS, QUESTIONS, Expression, split_relation

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
COMPARED = ("dual", "rival", "lower_bound", "competitor")
"""What the value of a claim of optimality may be compared with: one of these is given."""

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
        self._words("", {field: claim.get(field, "") for field in _WORDS})
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
        for field in (*_NUMBERS, "limit", "lower_bound", "competitor"):
            if claim.get(field, "") != "":
                self._uses(field, claim[field], base)
        for field in ("expression", "rate", "bound"):
            if claim.get(field, "") != "":
                self._uses(field, claim[field], whole)
        for field in ("claimed", "tolerance"):
            if field in claim:
                self._values(field, [claim[field]])
        for field in ("among", "dual", "rival"):
            for path, text in _leaves(claim.get(field, {}), field):
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
            given = [name for name in COMPARED if claim.get(name)]
            self._expect(
                len(given) == 1, "",
                "expected one of dual, rival, lower_bound and competitor to be given",
            )  # fmt: skip
            needed = claim.get("among") or not {*given} & {"dual", "rival"}
            self._expect(needed, "among", "expected the family of rivals")
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
            names, indices = _free(str(text))
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
        return f"unknown variable {name!r}"


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


@lru_cache(maxsize=4096)
def _free(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that a text uses without binding them, and the indices that it binds."""
    names: set[str] = set()
    indices: set[str] = set()
    stack: list[tuple[ast.AST, frozenset[str]]] = [(Expression(text).tree(), frozenset())]
    while stack:
        node, bound = stack.pop()
        match node:
            case ast.Name(id=name):
                names |= {name} - bound
            case ast.Call(func=ast.Name(id="sum" | "product"), args=[ast.Name(id=i), *rest]):
                indices.add(i)
                stack += [(part, bound) for part in rest[:2]]
                stack += [(part, bound | {i}) for part in rest[2:]]
            case ast.Call(func=ast.Name(), args=args, keywords=keywords):
                stack += [(part, bound) for part in (*args, *(k.value for k in keywords))]
            case _:
                stack += [(part, bound) for part in ast.iter_child_nodes(node)]
    return frozenset(names), frozenset(indices)


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
