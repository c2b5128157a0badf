"""What a claim rests on: its proof over whole domains, its lemmas, its correction.

A proof is data in the claim. A table in it with a text `claim` refers to another claim of the same
file. In the certificate it is replaced by what that claim states `at` some values, and its proof.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import msgspec

from dpassay.verifier.claims import Claim, Scope
from dpassay.verifier.verdict import Finding, Rigour, Verdict

_NAME = "claim"
_FORMULAS = ("form", "times", "fact", "factor", "of", "variable")

_Put = Callable[[str], str]


def named(proof: object) -> Iterator[str]:
    """Yield the ids of the claims that a proof names."""
    if isinstance(proof, dict):
        for key, value in proof.items():
            if key == _NAME and isinstance(value, str):
                yield value
            else:
                yield from named(value)
    elif isinstance(proof, list):
        for entry in proof:
            yield from named(entry)


def renamed(proof: Any, rename: Callable[[str], str]) -> Any:
    """Return a proof with the claims in it renamed."""
    if isinstance(proof, dict):
        return {
            key: rename(value)
            if key == _NAME and isinstance(value, str)
            else renamed(value, rename)
            for key, value in proof.items()
        }
    return [renamed(entry, rename) for entry in proof] if isinstance(proof, list) else proof


def reachable(claim: Claim, lemmas: Iterable[Claim] | Mapping[str, Claim]) -> list[Claim]:
    """Return the claims that a claim's proof names, directly or through their proofs.

    `lemmas` are those that it may name, or the same by id.
    """
    if not claim.proof:
        return []
    by_id = lemmas if isinstance(lemmas, Mapping) else {lemma.id: lemma for lemma in lemmas}
    found: dict[str, Claim] = {}
    waiting = list(named(claim.proof))
    while waiting:
        name = waiting.pop()
        if name in by_id and name not in found:
            found[name] = by_id[name]
            waiting += named(by_id[name].proof)
    return [found[name] for name in sorted(found)]


def theorem_of(claim: Claim, verdict: str) -> dict[str, Any]:
    """Return what the kernel reads of a claim, with the verdict that is to be proved."""
    from dpassay.verifier.kernel.schema import KINDS

    fields = {**claim.certified(Verdict(verdict)), "verdict": verdict}
    shape = KINDS.get(fields["kind"], ({"properties": {}}, {}))[0]["properties"]
    return {name: texts(fields[name]) for name in shape.keys() & fields.keys()}


def witness_of(claim: Claim, lemmas: Iterable[Claim]) -> dict[str, Any]:
    """Return the proof of a claim, with the claims that it names written out."""
    if not claim.proof:
        return {}
    by_id = {lemma.id: lemma for lemma in reachable(claim, lemmas)}
    return {"proof": _inlined(texts(claim.proof), by_id, lambda text: text)}


def _inlined(proof: Any, lemmas: Mapping[str, Claim], at: _Put) -> Any:
    """Return a proof with `at` applied to its formulas, and the claims it names written out."""
    if isinstance(proof, list):
        return [_inlined(entry, lemmas, at) for entry in proof]
    if not isinstance(proof, dict):
        return proof
    found = {
        key: at(value) if key in _FORMULAS else _inlined(value, lemmas, at)
        for key, value in proof.items()
        if key not in (_NAME, "at", "case") or _NAME not in proof
    }
    if "at" in found:
        found["at"] = [at(value) for value in proof["at"]]
    if _NAME not in proof:
        return found
    lemma = lemmas.get(proof[_NAME])
    if lemma is None:
        return proof
    inner = _instance(lemma, proof, at)
    fact = {"fact": inner(getattr(lemma, "claim", ""))}
    if not lemma.proof:
        return {**found, **fact}
    others = {name: other for name, other in lemmas.items() if name != lemma.id}
    return {**found, **fact, "by": _inlined(texts(lemma.proof), others, inner)}


def _instance(
    lemma: Claim, entry: Mapping[str, Any], at: Callable[[str], str]
) -> Callable[[str], str]:
    """Return a function that substitutes the values that an entry names for a claim's variables."""
    from dpassay.verifier.kernel import expressions

    fields = texts(lemma.plain())
    where = fields.get("where") or {}
    listed = list(product(*where.values()))
    place = str(entry.get("case", "0"))
    chosen = listed[int(place)] if place.isdecimal() and int(place) < len(listed) else ()
    given = {**dict(zip(where, chosen, strict=False)), **(entry.get("at") or {})}
    values = {name: expressions.parse(at(str(text))) for name, text in given.items()}
    names = expressions.definitions(fields.get("let") or {}, values, "let")

    def put(text: str) -> str:
        sides = re.split(r"(<=|>=|==|!=|<|>)", text)
        read = [expressions.parse(side, names=names) for side in sides[::2]]
        shown = [expressions.show(expressions.substitute(node, values)) for node in read]
        return "".join(a + b for a, b in zip(shown, [*sides[1::2], ""], strict=True))

    return put


def texts(value: Any) -> Any:
    """Return nested data with its numbers as texts."""
    if isinstance(value, Mapping):
        return {str(key): texts(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [texts(entry) for entry in value]
    return value if isinstance(value, (str, bool)) or value is None else str(value)


def proved(claim: Claim, lemmas: Iterable[Claim]) -> tuple[str, str]:
    """Prove a claim over its domains with the kernel: the theorem, or "" and why there is none."""
    if claim.kind == "pending":
        return "", "it is pending"
    return _proved(theorem_of(claim, "HOLDS"), witness_of(claim, lemmas))


def _proved(theorem: Mapping[str, Any], witness: Mapping[str, Any]) -> tuple[str, str]:
    from dpassay.verifier.kernel.check import in_words, prove
    from dpassay.verifier.kernel.numbers import Budget, NotProved, Wrong
    from dpassay.verifier.kernel.schema import VERSION, require

    whole = {"version": VERSION, "theorem": theorem, "lemmas": [], "witness": witness}
    try:
        data = require(whole)
        found = prove(data["theorem"], data["witness"], Budget())
        return str(in_words(data["theorem"], data["witness"], found)), ""
    except NotProved as error:
        return "", error.reason
    except Wrong as error:
        return "", f"{error.field} {error.reason}"
    except RecursionError:
        return "", "its formulas are nested too deeply"
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return "", f"a text cannot be read: {error}"


def in_case(claim: Claim, scope: Scope, **changes: Any) -> Claim:
    """Return a claim about one case alone, with other fields where they are given."""
    let = {**scope.to_json(), **claim.let}
    changes = {"where": {}, "for_all": {}, "assume": [], "let": let, **changes}
    found: Claim = msgspec.structs.replace(claim, **changes)
    return found


def identical(left: str, right: str, scope: Scope) -> bool:
    """Whether two expressions are proved to be the same number in a case."""
    let = {**scope.to_json(), **{name: each.text for name, each in scope.let.items()}}
    theorem = {"kind": "relation", "verdict": "HOLDS", "claim": f"{left} == {right}", "let": let}
    return bool(_proved(theorem, {"proof": {"method": "identity"}})[0])


# --- What a verdict owes to other claims: ARGUED to its lemmas, SLIP to its correction ------------

_ENOUGH = (Verdict.HOLDS, Verdict.ARGUED)


def conclude(claims: Sequence[Claim], findings: Sequence[Finding]) -> list[Finding]:
    """Turn SUPPORTED into ARGUED, and REFUTED into SLIP, where other claims allow it.

    A claim with an argument is ARGUED if all of its lemmas stand. A text is never a proof: the
    verdict is not HOLDS, whatever the lemmas are. A slip is REFUTED unless its correction names
    a claim that HOLDS.

    Claims and findings are those of one file, in the same order. A lemma may itself be argued;
    claims that rest on each other in a circle are never accepted.
    """
    result = list(findings)
    standing = {f.id for f in result if f.verdict in _ENOUGH}
    waiting = [
        index
        for index, claim in enumerate(claims)
        if claim.argument.strip() and result[index].verdict is Verdict.SUPPORTED
    ]
    changed = True
    while changed:
        changed = False
        for index in list(waiting):
            if all(lemma in standing for lemma in claims[index].lemmas):
                result[index] = _argued(claims[index], result[index])
                standing.add(result[index].id)
                waiting.remove(index)
                changed = True
    holding = {f.id for f in result if f.verdict is Verdict.HOLDS}
    for index, claim in enumerate(claims):
        refuted = result[index].verdict is Verdict.REFUTED
        if claim.slip and refuted and not holding.isdisjoint(corrected_by(claim, holding)):
            result[index] = msgspec.structs.replace(result[index], verdict=Verdict.SLIP)
    return result


def corrected_by(claim: Claim, ids: Collection[str]) -> list[str]:
    """Return the ids that the correction of a claim names, with or without a paper in front."""
    words = re.findall(r"[\w./-]*\w", claim.correction)
    return [each for each in ids if any(f"/{each}".endswith(f"/{word}") for word in words)]


def _argued(claim: Claim, finding: Finding) -> Finding:
    lemmas = f" It rests on {', '.join(claim.lemmas)}." if claim.lemmas else " It names no lemma."
    return msgspec.structs.replace(
        finding,
        verdict=Verdict.ARGUED,
        rigour=Rigour.ARGUED,
        reason=f"Argued by a person, not proved here: “{claim.argument.strip()}”{lemmas} "
        f"{finding.reason}",
        route=f"argument from {len(claim.lemmas)} lemmas; {finding.route}",
    )
