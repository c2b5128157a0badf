"""The notation of spaces of differences: `Name(argument=value, …)` becomes a tree, unevaluated.

A value is another space, a list, or a text that somebody else evaluates. `SIGNATURES` lists the
arguments in their order with their defaults; an argument left out gets its default.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .numbers import Wrong

LONGEST = 100_000
"""Characters of a space."""
SIGNATURES: Mapping[str, Mapping[str, str | None]] = {
    "Box": {"bounds": None},
    "DisjointGroups": {"groups": None, "space": None},
    "FiniteSet": {"vectors": None},
    "L2Ball": {"dimension": None, "radius": "1"},
    "SparseBox": {"dimension": None, "sparsity": None, "bound": "1", "signed": "False"},
}


@dataclass(frozen=True)
class Space:
    """A space of differences: its name and all of its arguments."""

    name: str
    arguments: Mapping[str, Any]


def parse(text: str, field: str) -> Any:
    """Return the tree of a space; raise Wrong(field, reason) for what is none."""
    if len(text) > LONGEST or not text.isascii():
        raise Wrong(field, f"expected a space in ASCII, of up to {LONGEST} characters")
    flat = " ".join(text.split())
    try:
        return _tree(ast.parse(flat, mode="eval").body, flat, field)
    except (SyntaxError, ValueError):
        raise Wrong(field, f"expected Name(argument=value), not {flat[:60]!a}") from None
    except (RecursionError, MemoryError):
        raise Wrong(field, "is nested too deeply") from None


def _tree(node: ast.AST, text: str, field: str) -> Any:
    match node:
        case ast.Constant(value=str()):
            return node.value
        case ast.List(elts=entries) | ast.Tuple(elts=entries):
            return [_tree(entry, text, field) for entry in entries]
        case ast.Call(func=ast.Name(id=name)) if name[:1].isupper():
            return _space(node, name, text, field)
    assert isinstance(node, ast.expr)
    return text[node.col_offset : node.end_col_offset]


def _space(node: ast.Call, name: str, text: str, field: str) -> Space:
    if name not in SIGNATURES:
        raise Wrong(field, f"expected one of {', '.join(SIGNATURES)}, not {name[:60]!a}")
    arguments = SIGNATURES[name]
    if len(node.args) > len(arguments):
        raise Wrong(field, f"{name} has {len(arguments)} arguments, not {len(node.args)}")
    named = ((str(k.arg), k.value) for k in node.keywords)
    pairs = [*zip(arguments, node.args, strict=False), *named]
    given: dict[str, Any] = {}
    for key, value in pairs:
        if key not in arguments or key in given:
            raise Wrong(field, f"{name} has no argument {key[:60]!a}, or has it twice")
        given[key] = _tree(value, text, field)
    if missing := [k for k, default in arguments.items() if default is None and k not in given]:
        raise Wrong(field, f"{name} needs {missing[0]}")
    return Space(name, {key: given.get(key, default) for key, default in arguments.items()})
