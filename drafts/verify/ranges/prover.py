"""What the methods of proof share: a goal goes in, what was proved comes out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeVar, final

from dpassay.verifier.ranges.atoms import Memory, Restart
from dpassay.verifier.ranges.domain import Goal
from dpassay.verifier.ranges.expressions import (
    Apply,
    Budget,
    Comparison,
    Name,
    Node,
    Number,
    ProofError,
    walk,
)
from dpassay.verifier.ranges.normal import Normaliser

Answer = TypeVar("Answer")
Spec = Mapping[str, Any]


@final
@dataclass(frozen=True, slots=True)
class Proved:
    """A theorem with the method and the size of its proof."""

    theorem: str
    method: str
    size: str

    def __str__(self) -> str:
        """Say the theorem and how it was proved."""
        return f"{self.theorem} (by {self.method}: {self.size})"


class Prover(Protocol):
    """What a method may ask for."""

    budget: Budget

    @abstractmethod
    def prove(self, goal: Goal, spec: Spec | None) -> Proved:
        """Prove a smaller goal by a nested proof, or by what is tried without one."""

    @abstractmethod
    def read(self, text: object) -> Node:
        """Parse an expression of a proof."""

    @abstractmethod
    def compared(self, text: object) -> Comparison:
        """Parse a comparison of a proof."""

    @abstractmethod
    def lemma(self, name: str) -> list[Goal]:
        """Return what a claim of the same file states, after it has been proved."""


Method = Callable[[Goal, Spec, Prover], Proved]


def normalised(
    goal: Goal, budget: Budget, work: Callable[[Normaliser], Answer], *others: Node
) -> Answer:
    """Do work in a normaliser of the goal's domain, again after every request to start again."""
    memory = Memory()
    roots = frozenset(
        name
        for node in (goal.left, goal.right, *others, *goal.domain.nodes())
        for inner in walk(node)
        if (name := _under_root(inner)) is not None
    )
    while True:
        try:
            return work(Normaliser(goal.domain, budget, memory, roots))
        except Restart:
            continue


def _under_root(node: Node) -> str | None:
    match node:
        case Apply(name="sqrt", arguments=(Name(name=name),)):
            return name
        case Apply(name="**", arguments=(Name(name=name), Number(value=value))):
            return name if value == Fraction(1, 2) else None
    return None


def whole_number(found: object, what: str) -> int:
    """Read an integer of a proof, which may be written as a text."""
    if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 10:
        found = int(found)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise ProofError(f"expected {what} to be an integer >= 0")
    return found


def nested(given: Mapping[str, Any], name: str) -> Spec | None:
    """Return a nested proof; None where there is none."""
    found = given.get(name)
    if found is None:
        return None
    if not isinstance(found, Mapping) or not isinstance(found.get("method"), str):
        raise ProofError(f"expected {name} to be a proof with its method")
    return found


def options(spec: Spec, allowed: tuple[str, ...]) -> dict[str, Any]:
    """Return the parameters of a method; raise ProofError for unknown ones."""
    unknown = set(spec) - set(allowed) - {"method"}
    if unknown:
        raise ProofError(f"{spec.get('method', 'a proof')} has no parameter {min(unknown)!r}")
    return {key: value for key, value in spec.items() if key != "method"}
