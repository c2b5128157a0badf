"""Proofs of claims over whole domains: asked of the kernel that the checker asks, too.

A proof is data in the claim. Wherever a table of it has a text `claim`, it names another claim of
the same file, which the kernel proves as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from dpassay.verifier import rules
from dpassay.verifier.claim import Claim, Scope

if TYPE_CHECKING:
    from dpassay.verifier.checker.kernel import Proved

_NAME = "claim"


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


def proved(claim: Claim, lemmas: Iterable[Claim]) -> tuple[Proved | None, str]:
    """Prove a claim over its domains; return the theorem, or None and why not."""
    from dpassay.verifier.checker.kernel import ProofError, prove

    try:
        return prove(plain(claim), {e.id: plain(e) for e in reachable(claim, lemmas)}), ""
    except ProofError as error:
        return None, str(error)


def in_case(claim: Claim, scope: Scope, **changes: Any) -> Claim:
    """Return a claim about one case alone, with other fields where they are given."""
    let = {**scope.to_json(), **claim.let}
    changes = {"where": {}, "for_all": {}, "assume": [], "let": let, **changes}
    found: Claim = msgspec.structs.replace(claim, **changes)
    return found


def identical(left: str, right: str, scope: Scope) -> bool:
    """Whether two expressions are proved to be the same number in a case."""
    from dpassay.verifier.checker.kernel import ProofError, prove

    data = {
        "kind": "relation",
        "id": "identity",
        "claim": f"{left} == {right}",
        "let": {**scope.to_json(), **{name: each.text for name, each in scope.let.items()}},
        "proof": {"method": "identity"},
    }
    try:
        prove(data, {})
    except ProofError:
        return False
    return True
