"""Questions about mechanisms replaced by formulas of the tables, with their conditions."""

from __future__ import annotations

from typing import Final, final

from dpassay.verifier.ranges.closed_forms import FAMILIES, QUESTIONS, Asked, structured, tabulated
from dpassay.verifier.ranges.expressions import (
    Apply,
    Comparison,
    Entries,
    Fold,
    Node,
    ProofError,
    Text,
    children,
    show,
)

_GROWING: Final = ("delta", "max_loss", "mu", "renyi", "rho")
"""Questions whose answers grow with μ, and fall with the noise."""


@final
class Resolver:
    """Replace questions about mechanisms by formulas, and gather the conditions of these."""

    def __init__(self, upper: bool = False) -> None:
        self.upper = upper
        self.conditions: list[tuple[Comparison, tuple[Fold, ...]]] = []

    def resolve(self, node: Node, folds: tuple[Fold, ...] = (), top: bool = True) -> Node:
        """Return a node without questions; raise ProofError for one that is not in the table."""
        match node:
            case Apply(name=name, arguments=(Apply() as noise, *rest)) if name in QUESTIONS:
                asked = [self.resolve(value, folds, False) for value in rest]
                return self._answer(node, noise, asked, folds, top and self.upper)
            case Apply(name=name, arguments=arguments, named=()) if name in FAMILIES:
                inner = tuple(self.resolve(a, folds, False) for a in arguments)
                answer, conditions = FAMILIES[name](inner)
                self.conditions += [(condition, folds) for condition in conditions]
                return answer
            case Apply(name=name, arguments=arguments, named=()):
                return Apply(name, tuple(self.resolve(a, folds, False) for a in arguments))
            case Fold(name=name, index=index, low=low, high=high, term=term):
                ends = self.resolve(low, folds, False), self.resolve(high, folds, False)
                return Fold(name, index, *ends, self.resolve(term, (*folds, node), False))
        if children(node):
            raise ProofError(f"{show(node)[:60]} is not in the kernel's table")
        return node

    def _answer(
        self, node: Apply, noise: Apply, rest: list[Node], folds: tuple[Fold, ...], upper: bool
    ) -> Node:
        named = dict(node.named)
        relation = named.pop("adjacency", Text(None))
        known = (None, "add-remove", "replace-one")
        if named or not isinstance(relation, Text) or relation.value not in known:
            raise ProofError(f"an argument of {node.name} is unknown")
        noise = Apply(
            noise.name,
            noise.arguments,
            tuple((key, self._argument(value, folds)) for key, value in noise.named),
        )
        if noise.arguments:
            raise ProofError(f"the arguments of {noise.name} need names")
        upper = upper and node.name in _GROWING
        asked = Asked(node.name, relation.value, tuple(rest), upper)
        found = structured(noise, asked)
        if found is None:
            found = tabulated(noise, asked)
        if found is None:
            raise ProofError(f"{node.name} of {noise.name} is not in the kernel's table")
        formula, conditions = found
        self.conditions += [(condition, folds) for condition in conditions]
        return formula

    def _argument(self, value: Node, folds: tuple[Fold, ...]) -> Node:
        match value:
            case Entries(items=items):
                return Entries(tuple(self._argument(item, folds) for item in items))
            case Text():
                return value
            case Apply(name=name, named=named, arguments=()) if named and name[:1].isupper():
                inner = ((key, self._argument(item, folds)) for key, item in named)
                return Apply(name, (), tuple(inner))
        return self.resolve(value, folds, False)
