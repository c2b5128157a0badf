"""Proofs of claims over whole domains.

A proof is data in the claim. Wherever a table of it has a text `claim`, it names another claim of
the same file, which the kernel proves as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from dpassay.verifier import rules
from dpassay.verifier.claim import Claim, Scope

_NAME = "claim"
_LEMMA = ("id", "claim", "let", "where", "for_all", "assume", "adjacency", "proof")


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
    """Return a proof with other names for the claims in it."""
    if isinstance(proof, dict):
        return {
            key: rename(value)
            if key == _NAME and isinstance(value, str)
            else renamed(value, rename)
            for key, value in proof.items()
        }
    return [renamed(entry, rename) for entry in proof] if isinstance(proof, list) else proof


def reachable(claim: Claim, lemmas: Iterable[Claim] | Mapping[str, Claim]) -> list[Claim]:
    """Return the claims that a claim's proof names, and that their proofs name, and so on.

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


def plain(claim: Claim) -> dict[str, Any]:
    """Return a claim as a claim file has it."""
    data: dict[str, Any] = msgspec.to_builtins(claim)
    return data


def misread(claim: Claim) -> rules.Errors:
    """Return what a claim must not say, as `dpassay.verifier.rules` has it, each with its field."""
    return rules.errors(plain(claim))


def theorem_of(claim: Claim, verdict: str) -> dict[str, Any]:
    """Return what the kernel reads of a claim, with the verdict that is to be proved."""
    from dpassay.verifier.kernel.schema import KINDS

    fields = plain(claim)
    names = KINDS[claim.kind][0]["properties"].keys() & fields.keys()
    return {
        **{name: texts(fields[name]) for name in names},
        "kind": claim.kind,
        "verdict": verdict,
    }


def witness_of(claim: Claim, lemmas: Iterable[Claim]) -> dict[str, Any]:
    """Return the proof of a claim, and the claims that it names with theirs."""
    found: dict[str, Any] = {"proof": texts(claim.proof)} if claim.proof else {}
    named = [plain(lemma) for lemma in reachable(claim, lemmas)]
    if named:
        found["lemmas"] = [{k: texts(x[k]) for k in _LEMMA if x.get(k)} for x in named]
    return found


def texts(value: Any) -> Any:
    """Return nested data whose numbers stand as texts."""
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
    from dpassay.verifier.kernel.check import prove
    from dpassay.verifier.kernel.numbers import Budget, NotProved, Wrong
    from dpassay.verifier.kernel.schema import VERSION, require
    from dpassay.verifier.kernel.theorem import said

    whole = {"version": VERSION, "theorem": theorem, "lemmas": [], "witness": witness}
    try:
        data = require(whole)
        found = prove(data["theorem"], data["witness"], Budget())
        return str(said(data["theorem"], data["witness"], found)), ""
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
