"""What a theorem ranges over: variables with ends, and assumptions between them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from dpassay.verifier.ranges.expressions import (
    Comparison,
    Name,
    Node,
    ProofError,
    bounded,
    free,
    show,
    show_comparison,
    substitute,
)

INTEGER = "is an integer, beside"
"""The relation of a condition that its left side is an integer (the right side is 0)."""


@final
@dataclass(frozen=True, slots=True)
class Variable:
    """A real or integer variable between two ends, which may depend on earlier variables."""

    name: str
    low: Node | None = None
    high: Node | None = None
    low_open: bool = False
    high_open: bool = False
    integer: bool = False

    def ends(self) -> tuple[Node, ...]:
        """Return the ends that there are."""
        return tuple(end for end in (self.low, self.high) if end is not None)

    def conditions(self) -> list[Comparison]:
        """Return the ends as comparisons."""
        found, own = [], Name(self.name)
        if self.low is not None:
            found.append(Comparison(own, ">" if self.low_open else ">=", self.low))
        if self.high is not None:
            found.append(Comparison(own, "<" if self.high_open else "<=", self.high))
        return found

    def __str__(self) -> str:
        """Say what the variable ranges over, in words."""
        low = "" if self.low is None else f"{show(self.low)} {'<' if self.low_open else '<='} "
        high = "" if self.high is None else f" {'<' if self.high_open else '<='} {show(self.high)}"
        return f"{'integer' if self.integer else 'real'} {low}{self.name.split('#')[0]}{high}"


@final
@dataclass(frozen=True, slots=True)
class Domain:
    """Variables in an order in which ends use earlier ones only, and assumptions."""

    variables: tuple[Variable, ...] = ()
    assumptions: tuple[Comparison, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an end that uses a later variable, and a name given twice."""
        known: set[str] = set()
        for variable in self.variables:
            if variable.name in known:
                raise ProofError(f"the variable {variable.name} is given twice")
            for end in variable.ends():
                if not free(end) <= known:
                    raise ProofError(f"an end of {variable.name} uses a variable that is not there")
            known.add(variable.name)
        for assumption in self.assumptions:
            if not free(assumption.left) | free(assumption.right) <= known:
                raise ProofError("an assumption uses a variable that is not there")

    def variable(self, name: str) -> Variable | None:
        """Return the variable of a name."""
        return next((found for found in self.variables if found.name == name), None)

    def names(self) -> frozenset[str]:
        """Return the names of all variables."""
        return frozenset(variable.name for variable in self.variables)

    def put(self, changed: Variable) -> Domain:
        """Return the domain with a variable changed."""
        kept = (changed if v.name == changed.name else v for v in self.variables)
        return dataclasses.replace(self, variables=tuple(kept))

    def add(self, variable: Variable) -> Domain:
        """Return the domain with one more variable."""
        return dataclasses.replace(self, variables=(*self.variables, variable))

    def fix(self, values: Mapping[str, Node]) -> Domain:
        """Return the domain with some variables replaced by values; their ends are dropped."""
        kept = tuple(
            dataclasses.replace(
                variable,
                low=None if variable.low is None else substitute(variable.low, values),
                high=None if variable.high is None else substitute(variable.high, values),
            )
            for variable in self.variables
            if variable.name not in values
        )
        assumptions = tuple(
            Comparison(substitute(a.left, values), a.relation, substitute(a.right, values))
            for a in self.assumptions
        )
        return Domain(kept, assumptions)

    def nodes(self) -> list[Node]:
        """Return the ends and the sides of the assumptions."""
        ends = [end for variable in self.variables for end in variable.ends()]
        return [*ends, *(side for a in self.assumptions for side in (a.left, a.right))]

    def mentioned(self, name: str) -> bool:
        """Whether the ends of other variables or an assumption use a variable."""
        return any(name in free(node) for node in self.nodes())

    def __str__(self) -> str:
        """Say the domain in words."""
        parts = [f"every {variable}" for variable in self.variables]
        parts += [f"where {show_comparison(assumption)}" for assumption in self.assumptions]
        return ", ".join(parts)


@final
@dataclass(frozen=True, slots=True)
class Goal:
    """A comparison to be proved over a domain."""

    left: Node
    relation: str
    right: Node
    domain: Domain

    def __post_init__(self) -> None:
        """Refuse a variable that ranges over nothing, and sides that are too large."""
        bounded(self.left)
        bounded(self.right)
        unknown = (free(self.left) | free(self.right)) - self.domain.names()
        if unknown:
            name = min(unknown).split("#")[0]
            raise ProofError(f"{name} has no formal domain (low, above, high or below)")
        if self.relation not in ("<=", "<", ">=", ">", "==", "!=", INTEGER):
            raise ProofError(f"{self.relation!r} is no relation")

    def on(self, domain: Domain) -> Goal:
        """Return the same comparison over another domain."""
        return dataclasses.replace(self, domain=domain)

    def fix(self, values: Mapping[str, Node]) -> Goal:
        """Return the goal with some variables replaced by values."""
        left, right = substitute(self.left, values), substitute(self.right, values)
        return Goal(left, self.relation, right, self.domain.fix(values))

    def __str__(self) -> str:
        """Say the theorem."""
        shown = f"{show(self.left)} {self.relation} {show(self.right)}"
        where = str(self.domain)
        return f"for {where}: {shown}" if where else shown
