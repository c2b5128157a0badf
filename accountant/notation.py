"""The parser of the notation for mechanisms; `repr` of a mechanism prints the notation.

A description is `Name(argument=value, …)` and can be nested. Values are

* integers and decimals, read exactly as written: 0.1 is 1/10;
* strings: rationals "256/60000", decimals "1e-300", formulas "sqrt(2)" and "log(3)";
* float(0.1), the binary number nearest to 0.1, as reports print Python floats;
* lists in brackets, and further descriptions.

As in Python, leading arguments can be positional: `Composed(Gaussian(1.1), count=3)`. The text is
parsed but never evaluated, and everything outside this grammar is refused.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

from dpassay.accountant.aliases import ALIASES
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.density.text import FUNCTIONS
from dpassay.accountant.errors import InvalidInputError, no_mechanism, suggestion
from dpassay.accountant.geometry.workload import WORKLOADS
from dpassay.accountant.mechanisms import DESCRIPTIONS
from dpassay.accountant.numbers.exact import meant

_KNOWN: Mapping[str, type] = ChainMap(dict(WORKLOADS), DESCRIPTIONS)  # type: ignore[arg-type]  # never written
_GROUPED = re.compile(r"(?<![\w.,])[0-9]{1,3}(?:,[0-9]{3})+(?![\w.])")
"""A number with commas as thousands separators."""
_NOUNS = ("mechanism", "workload")
_MAX_LENGTH = 1_000_000
"""Maximal number of characters; parsing a longer text could exhaust the memory."""
_ARITHMETIC = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Load)
_WRITE = 'Write a mechanism such as Gaussian(standard_deviation="1.1"), or the same as text.'
_REMEDY = 'Write a mechanism such as Gaussian("1.1"), or Composed(Gaussian("1.1"), 10).'


def read_mechanism(value: object) -> Mechanism:
    """Return a mechanism unchanged, or parse a text in the notation."""
    if isinstance(value, Mechanism):
        return value
    if isinstance(value, str):
        return parse(value)
    if isinstance(value, type) and issubclass(value, Mechanism):
        names = ", ".join(f"{name}=…" for name in list(inspect.signature(value).parameters)[:1])
        raise InvalidInputError(
            f"Expected a mechanism, not its class. Write {value.__name__}({names})."
        )
    raise no_mechanism("mechanism", value, _WRITE)


def parse(text: str) -> Mechanism:
    """Parse the notation of a mechanism.

    Raises
    ------
    InvalidInputError
        If the text is outside the grammar, names an unknown mechanism or argument (the message
        suggests a known one), or has a value out of range (the message states the range).
    """
    described = parse_description(text)
    if not isinstance(described, Mechanism):
        name = type(described).__name__
        remedy = "compare finds mechanisms for it." if name in WORKLOADS else _REMEDY
        raise InvalidInputError(f"Expected a mechanism, not the {name} in {_shown(text)}. {remedy}")
    return described


def parse_description(text: str, *, noun: str = "mechanism", remedy: str = _REMEDY) -> object:
    """Parse a mechanism, sensitivity space, covariance or workload.

    Error messages call the expected object `noun` and end with `remedy`.
    """
    if len(text) > _MAX_LENGTH:
        raise InvalidInputError(
            f"Expected a {noun} of at most {_MAX_LENGTH} characters, not {len(text)}."
        )
    source = text.strip()
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        why = ": its brackets do not match" if _unmatched(source) else ""
        if not why and (grouped := _GROUPED.search(source)):
            why = f": write {grouped[0].replace(',', '')}, without a comma"
        if noun in _NOUNS and (name := source.partition(" ")[0]) in _KNOWN:
            remedy = f"Write {name}({', '.join(f'{given}=…' for given in argument_names(name))})."
        elif noun in _NOUNS and (near := suggestion(_joined(source), _names(noun), listed=False)):
            remedy = near
        raise InvalidInputError(f"Expected a {noun}, not {_shown(text)}{why}. {remedy}") from None
    if isinstance(tree, ast.Name) and noun in _NOUNS:  # the error will list required arguments
        tree = ast.Call(tree, [], [])
    if not isinstance(tree, ast.Call):
        raise InvalidInputError(f"Expected a {noun}, not {_shown(text)}. {remedy}")
    if noun in _NOUNS and isinstance(tree.func, ast.Name) and tree.func.id not in _KNOWN:
        name = tree.func.id
        raise InvalidInputError(f"Unknown {noun} {name!r}. {suggestion(name, _names(noun))}")
    return _build(tree, source)


def parse_value(text: str) -> object:
    """Parse the value of one argument: a number, a string, a list or a description."""
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
    if name in FUNCTIONS:
        raise _refused(call, source)
    if name not in _KNOWN:
        raise InvalidInputError(f"Unknown mechanism {name!r}. {suggestion(name, _KNOWN)}")
    positional = [_value(argument, source) for argument in call.args]
    arguments: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise _refused(keyword.value, source)
        if keyword.arg in arguments:
            raise InvalidInputError(f"Argument {keyword.arg!r} of {name} is given twice.")
        arguments[keyword.arg] = _value(keyword.value, source)
    return build(name, arguments, positional)


def build(name: str, arguments: Mapping[str, Any], positional: Sequence[Any] = ()) -> object:
    """Construct the named object from parsed arguments; aliases of arguments are refused."""
    if name not in _KNOWN:
        raise InvalidInputError(f"Unknown mechanism {name!r}. {suggestion(name, _KNOWN)}")
    kind = _KNOWN[name]
    if (others := ALIASES.keys() & arguments.keys()) - {*argument_names(name)}:
        problem = kind._misfit(len(positional), sorted(others - {*argument_names(name)}))  # type: ignore[attr-defined]  # all are described
        raise InvalidInputError(problem)  # in files each argument has exactly one name
    return kind(*positional, **arguments)


def argument_names(name: str) -> list[str]:
    """Return the argument names of a mechanism, in order."""
    return [parameter.name for parameter in _parameters(name)]


@functools.cache
def _parameters(name: str) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(_KNOWN[name]).parameters.values())


def _names(noun: str) -> list[str]:
    """Return the candidates for a suggestion."""
    if noun == "workload":
        return list(WORKLOADS)
    return [name for name, kind in DESCRIPTIONS.items() if issubclass(kind, Mechanism)]


def _value(node: ast.expr, source: str) -> object:
    match node:
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant() | ast.UnaryOp() as read]):
            return f"float({_value(read, source)})"
        case ast.Call(func=ast.Name(id="ln" | "log"), args=[ast.Constant()]):
            return _segment(node, source)  # such as epsilon=log(3)
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
        case ast.BinOp(
            left=ast.UnaryOp(operand=ast.Constant(value=int() | float()))
            | ast.Constant(value=int() | float()),
            op=ast.Div(),
            right=ast.Constant(value=int() | float()),
        ):
            return f"{_value(node.left, source)}/{_value(node.right, source)}"
    raise _refused(node, source)


def _segment(node: ast.expr, source: str) -> str:
    if node.lineno != node.end_lineno:
        return ast.get_source_segment(source, node) or ast.unparse(node)
    return _lines(source)[node.lineno - 1][node.col_offset : node.end_col_offset].decode()


@functools.lru_cache(maxsize=2)
def _lines(source: str) -> list[bytes]:
    """Return the lines as bytes, because `ast` counts columns in bytes; cached for the numbers."""
    return re.split(rb"\r\n|\r|\n", source.encode())


def _refused(node: ast.expr, source: str) -> InvalidInputError:
    nodes = list(ast.walk(node))
    letters = sorted({each.id for each in nodes if isinstance(each, ast.Name)})
    is_arithmetic = all(isinstance(each, _ARITHMETIC) for each in nodes)
    if letters and is_arithmetic and "x" not in letters:  # x is the variable of a density
        return InvalidInputError(
            f"Expected a value, not {_segment(node, source)!r}. Write a number for "
            f'{", ".join(letters)}; put a word in quotes, such as "Gumbel".'
        )
    written = _segment(node, source)
    return InvalidInputError(
        f"Expected a number, a string, a list or a mechanism, not {written!r}. {meant(written)}"
        "The notation is never evaluated: words, densities and formulas are text in quotes, such "
        'as "sqrt(2)" or "log(3)"; a ratio of two numbers, such as 256/60000, needs no quotes.'
    )


def _joined(text: str) -> str:
    """Join the words of a name, such as `exponential mechanism`; "" for any other text."""
    return "".join(text.split()) if re.fullmatch(r"[A-Za-z' -]+", text) else ""


def _unmatched(text: str) -> bool:
    """Whether the numbers of opening and closing brackets differ."""
    return any(text.count(left) != text.count(right) for left, right in ("()", "[]"))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:60]}…")
