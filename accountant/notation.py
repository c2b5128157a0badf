"""The one notation for mechanisms: parse it; `repr` prints it.

`Name(argument=value, …)`, nested. Numbers are ints and decimals, read exactly as written, or
strings: rationals "256/60000", decimals "1e-300", roots "sqrt(2)"; lists stand in brackets. The
mechanism that another one wraps may stand without its name: `Composed(Gaussian(…), count=3)`.
The text is parsed, never evaluated: anything but this grammar is refused.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from typing import Any

from accountant.errors import InvalidInputError, suggestion
from accountant.mechanism import Mechanism
from accountant.mechanisms import DESCRIPTIONS
from accountant.workload import WORKLOADS

_KNOWN: dict[str, type] = {**DESCRIPTIONS, **WORKLOADS}
_MAX_LENGTH = 1_000_000
_REMEDY = 'Write a mechanism such as Gaussian(standard_deviation="1.1").'


def parse(text: str) -> Mechanism:
    """Read one mechanism.

    Raises
    ------
    InvalidInputError
        For anything outside the grammar; an unknown mechanism or argument comes with a
        suggestion, a bad value with its argument, value and range.
    """
    described = parse_description(text)
    if not isinstance(described, Mechanism):
        raise InvalidInputError(
            f"Expected a mechanism, not the {type(described).__name__} in {_shown(text)}. {_REMEDY}"
        )
    return described


def parse_description(text: str, *, noun: str = "mechanism", remedy: str = _REMEDY) -> object:
    """Read a mechanism, a sensitivity space, a covariance, a workload: all that has a notation.

    `noun` and `remedy` say what was expected where the text has no such form.
    """
    if len(text) > _MAX_LENGTH:
        raise InvalidInputError(
            f"Expected a {noun} of at most {_MAX_LENGTH} characters, not {len(text)}."
        )
    source = text.strip()
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidInputError(f"Expected a {noun}, not {_shown(text)}. {remedy}") from None
    if not isinstance(tree, ast.Call):
        raise InvalidInputError(f"Expected a {noun}, not {_shown(text)}. {remedy}")
    return _build(tree, source)


def parse_value(text: str) -> object:
    """Read one argument as the notation writes it: a number, a string, a list, a description."""
    if len(text) > _MAX_LENGTH:
        raise InvalidInputError(f"Expected a value of at most {_MAX_LENGTH} characters.")
    source = text.strip()
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidInputError(f"Expected a value, not {_shown(text)}.") from None
    return _value(tree, source)


def _build(call: ast.Call, source: str) -> object:
    if not isinstance(call.func, ast.Name):
        raise _refused(call.func, source)
    name = call.func.id
    if name not in _KNOWN:
        raise InvalidInputError(f"Unknown mechanism {name!r}. {suggestion(name, _KNOWN)}")
    arguments: dict[str, Any] = {}
    if takes_mechanism(name, len(call.args)):
        arguments["mechanism"] = _value(call.args[0], source)
    elif call.args:
        raise InvalidInputError(
            f"Expected every argument of {name} by name, not {_segment(call.args[0], source)!r}. "
            f"Arguments: {', '.join(argument_names(name))}."
        )
    for keyword in call.keywords:
        if keyword.arg is None:
            raise _refused(keyword.value, source)
        if keyword.arg in arguments:
            raise InvalidInputError(f"Argument {keyword.arg!r} of {name} is given twice.")
        arguments[keyword.arg] = _value(keyword.value, source)
    return build(name, arguments)


def build(name: str, arguments: Mapping[str, Any]) -> object:
    """Build the named mechanism from already parsed arguments, checking their names."""
    if name not in _KNOWN:
        raise InvalidInputError(f"Unknown mechanism {name!r}. {suggestion(name, _KNOWN)}")
    known = argument_names(name)
    for given in arguments:
        if given not in known:
            raise InvalidInputError(f"{name} has no argument {given!r}. {suggestion(given, known)}")
    missing = [
        parameter.name
        for parameter in inspect.signature(_KNOWN[name]).parameters.values()
        if parameter.default is inspect.Parameter.empty and parameter.name not in arguments
    ]
    if missing:
        raise InvalidInputError(
            f"{name} needs {', '.join(missing)}. Arguments: {', '.join(known)}."
        )
    return _KNOWN[name](**arguments)


def argument_names(name: str) -> list[str]:
    """Return the argument names of a mechanism, in order."""
    return list(inspect.signature(_KNOWN[name]).parameters)


def takes_mechanism(name: str, positional: int) -> bool:
    """Whether one unnamed argument is given that can only be the mechanism which `name` wraps."""
    return positional == 1 and name in _KNOWN and argument_names(name)[:1] == ["mechanism"]


def _value(node: ast.expr, source: str) -> object:
    match node:
        case ast.Call():
            return _build(node, source)
        case ast.List(elts=entries):
            return [_value(entry, source) for entry in entries]
        case ast.Constant(value=bool() | None):
            return node.value
        case ast.Constant(value=str()):
            return node.value
        case ast.Constant(value=int() | float()):
            return _segment(node, source)  # the decimal as written, not its binary rounding
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
            return _segment(node, source)
    raise _refused(node, source)


def _segment(node: ast.expr, source: str) -> str:
    return ast.get_source_segment(source, node) or ast.unparse(node)


def _refused(node: ast.expr, source: str) -> InvalidInputError:
    return InvalidInputError(
        f"Expected a number, a string, a list or a mechanism, not {_segment(node, source)!r}. "
        'The notation is never evaluated; write a ratio as a string: "256/60000".'
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:60]}…")
