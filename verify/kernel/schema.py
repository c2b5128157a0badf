"""The format of certificates: one table defines the reader and the JSON Schema.

A certificate is a JSON object with the fields `version` (2), `theorem`, `lemmas` and `witness`. It
is untrusted and read strictly: an unknown, missing or repeated field, a number with a point, or a
text that is too long makes it INVALID. (Hints of a claim may have any form, since no hint makes a
false theorem VALID.) Numbers are strings such as "0.1" or "3/7", because JSON readers differ in the
precision of numbers; integers up to 2⁵³ may be JSON numbers.

Any JSON text is accepted; the prover writes the canonical form (RFC 8785). Nothing in a certificate
vouches for it: `sha256sum` shows its integrity, and the kernel's proof its truth.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .numbers import Wrong

VERSION = 2
MOST_BYTES = 16_000_000
"""Limit on the size of a file, in bytes."""
LONGEST_TEXT = 200_000
"""Limit on the length of a string, in characters."""
LARGEST_INTEGER = 2**53
"""JSON readers agree on integers of at most this size."""
RESERVED = "VALID|CONDITIONAL|INVALID|HOLDS|REFUTED|SUPPORTED|ARGUED|OPTIMAL|NOT_REFUTED"
"""Words that begin the kernel's output: no variable may have these names."""
Schema = dict[str, Any]

# --- the table ----------------------------------------------------------------------------------
TABLE = """
Ends      low:formula? above:formula? high:formula? below:formula? integer:flag=false statement:words=
Domain    &Ends grid:formula*
Space     type:Box|SparseBox bounds:formula* dimension:formula= sparsity:formula= bound:formula= signed:flag=false
Among     type:Gaussian objective:total|mean space:Space mu:formula
Dual      law:corners|sparse ones:formula=
Point     epsilon:number delta:number
Step      &Point reversed:flag
Claim     id:words= statement:words= source:words= argument:words= adjacency:add-remove|replace-one? let:formula% where:grid% for_all:Domain% assume:formula* lemmas:words* verdict:HOLDS|REFUTED|SUPPORTED|ARGUED
Hints     case:formula%
Ratio     ratio:number+
Optimum   verdict:OPTIMAL lower:number upper:number
Power     &Optimum epsilon:formula? ratio:number?
Tested    kind:epsilon-delta|gaussian|mechanism|profile description:words= points:Point* parameter:formula=
Audit     verdict:REFUTED|NOT_REFUTED significance:number claim:Tested
Replay    target:words samples:count pairs:words**? search:words? adjacency:words?
Drawn     seed:numeral replay:Replay?
Law       first:size last:size? lowest:whole probabilities:number+
Flow      count:count other:count noise:whole flow:number
Vertex    square:number entries:number*

approximate-dp    &Claim mechanism:formula epsilon:formula delta:formula
pure-dp           &Claim mechanism:formula epsilon:formula
gaussian-dp       &Claim mechanism:formula mu:formula
renyi-dp          &Claim mechanism:formula order:formula epsilon:formula
zcdp              &Claim mechanism:formula rho:formula
relation          &Claim claim:formula
limit             &Claim expression:formula variable:name over:Ends? limit:formula rate:formula=
optimality        &Claim value:formula among:Among dual:Dual tolerance:formula=0
count-noise       &Power eta:number support:size min_count:size=1 max_count:size? objective:singular|true-delta
  witness         &Ratio laws:Law+ mass:number# mean:number# flows:Flow*
integer-noise     &Power objective:variance|absolute|error|cost|delta support:size sensitivity:size costs:number* monotone:flag=false delta:number? error_free:number?
  witness         &Ratio law:number+ tests:number++ steps:number*
gaussian-shape    &Optimum space:formula objective:total|worst weights:number+
  witness         vertices:Vertex* covariance:number++ root:number++ law:number* shares:number+ scales:number*
audit             &Audit target:words tested:Point p_value:number share:number=1 epsilon_lower_bound:number=0
  witness         &Drawn design:sides|guesses favours:first|second marks:mark+ histogram:count++ event:any? pairs_searched:count=0 training_runs:count=0 pair:words*
one-run-audit     &Audit p_value:number delta:number epsilon_lower_bound:number=0
  witness         seed:numeral scores:number* included:coins guesses_tried:size+ guesses:size epsilon_guesses:size tested:Step*
"""  # noqa: E501
"""Records with their fields, then each kind with the fields of its theorem and its witness.

`&R` includes the fields of the record R. After a type, `?` marks a field that may be null or
omitted, `*` a list (default empty), `+` a nonempty list, `%` an object whose keys are names, `#` an
object whose keys are integers, and `=` gives the default. The witness of a claim may have any
fields besides `case`.
"""


def _text(pattern: str, what: str, most: int = LONGEST_TEXT) -> Schema:
    return {"type": "string", "maxLength": most, "pattern": f"^{pattern}$", "description": what}


def _whole(least: int, most: int = LARGEST_INTEGER) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


_NAME = _text(rf"(?!(?:{RESERVED})$)[A-Za-z_][A-Za-z0-9_]*", "a name of letters and digits", 100)
_TYPES: dict[str, Schema] = {
    "any": {},
    "formula": _text(
        r"(?![\s\S]*[0-9.][eE][+-]?[0-9_]{6})[\t\n -\"$-\[\]-~]*",
        "an expression or mechanism: ASCII without # and \\, exponents of at most five digits",
        100_000,
    ),
    "name": _NAME,
    "words": {"type": "string", "maxLength": 20_000},
    "number": _text(
        r"[+-]?[0-9]+(?:/[1-9][0-9]*|(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,5})?)",
        "a decimal or a fraction, as a text",
    ),
    "numeral": _text(r"-?[0-9]{1,40}", "an integer as a text"),
    "coins": _text("[01]*", "a 0 or a 1 for each canary"),
    "row": _text("[a-z0-9-]{1,60}", "the name of a row of the table of lemmas"),
    "whole": _whole(-LARGEST_INTEGER),
    "count": _whole(0),
    "size": _whole(1, 10**6),
    "flag": {"type": "boolean"},
    "mark": {"enum": [-1, 0, 1]},
}


def _shape(text: str) -> Schema:
    """Return the JSON Schema of a type in the notation of the table."""
    if text[-1] in "?*+%#":
        inner = _shape(text[:-1])
        if text[-1] == "?":
            return {"anyOf": [{"type": "null"}, inner], "default": None}
        if text[-1] == "*":
            return {"type": "array", "items": inner, "default": []}
        if text[-1] == "+":
            return {"type": "array", "items": inner, "minItems": 1}
        names = _NAME if text[-1] == "%" else _TYPES["numeral"]
        keyed = {"type": "object", "propertyNames": names, "additionalProperties": inner}
        return {**keyed, "default": {}}
    kind, given, default = text.partition("=")
    shape: Schema = _TYPES[kind] if kind in _TYPES else {"enum": kind.split("|")}
    values = {"": "", "false": False}
    known = int(default) if default.isdigit() and shape.get("type") == "integer" else default
    return {**shape, "default": values.get(default, known)} if given else shape


def _kinds() -> dict[str, tuple[Schema, Schema]]:
    """Return kind → the schemas of its theorem and of its witness."""
    found: dict[str, tuple[Schema, Schema]] = {}
    name = ""
    for line in filter(None, TABLE.split("\n")):
        own, *words = line.split()
        fields: dict[str, Schema] = {}
        for word in words:
            field, colon, kind = word.partition(":")
            fields |= {field: _shape(kind)} if colon else _TYPES[word[1:]]["properties"]
        required = [field for field, shape in fields.items() if "default" not in shape]
        shape: Schema = {"type": "object", "properties": fields, "required": required}
        shape["additionalProperties"] = own == "Hints"
        if own == "witness":
            found[name] = found[name][0], shape
        elif own[0].isupper():
            _TYPES[own] = shape
        else:
            name, fields["kind"] = own, {"enum": [own]}
            found[own] = {**shape, "required": [*required, "kind"]}, _TYPES["Hints"]
    return found


_TYPES["grid"] = _shape("formula+")
KINDS: Mapping[str, tuple[Schema, Schema]] = _kinds()


def _envelope(theorem: Schema, witness: Schema) -> Schema:
    fields = {"version": {"enum": [VERSION]}, "theorem": theorem, "witness": witness}
    fields["lemmas"] = {"type": "array", "items": _TYPES["row"]}
    shape = {"type": "object", "properties": fields, "required": [*fields]}
    return {**shape, "additionalProperties": False}


def json_schema() -> Schema:
    """Return the JSON Schema of all certificates (draft 2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A certificate of dpassay, version 2",
        "description": "One certificate. A file holds one, or a list of them.",
        "anyOf": [_envelope(*shapes) for shapes in KINDS.values()],
    }


# --- reading ------------------------------------------------------------------------------------
class Malformed(str):
    """The reason why a JSON value is not allowed, in the place of that value."""


def content(path: str) -> bytes:
    """Read a regular file, or standard input for `-`, up to one byte beyond the limit."""
    if path == "-":
        return sys.stdin.buffer.read(MOST_BYTES + 1)
    if not Path(path).is_file():
        raise OSError("not a regular file: name a file, or - for a pipe")
    with Path(path).open("rb") as file:
        return file.read(MOST_BYTES + 1)


def read(given: bytes) -> list[Any]:
    """Return the certificates in a file, which holds one object or a list of them.

    Raises Wrong if the text is not JSON. `require` checks each certificate.
    """
    if len(given) > MOST_BYTES:
        raise Wrong("file", f"is longer than {MOST_BYTES // 10**6} MB")
    try:
        data = json.loads(
            given.decode("utf-8"),
            object_pairs_hook=_object,
            parse_float=lambda _: Malformed("is a number with a point: write it as a text"),
            parse_constant=lambda _: Malformed("is no JSON"),
            parse_int=lambda text: int(text) if len(text) < 20 else Malformed("is beyond 2^53"),
        )
    except RecursionError:
        raise Wrong("file", "is nested too deeply") from None
    except ValueError as error:
        raise Wrong("file", f"is not a JSON certificate: {error}") from None
    entries = data if isinstance(data, list) else [data]
    if not entries or not all(isinstance(entry, (dict, Malformed)) for entry in entries):
        raise Wrong("file", "holds no certificate: expected an object, or a list of them")
    return entries


def _object(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Malformed("has a field twice")


def require(data: Any) -> Mapping[str, Any]:
    """Return a certificate with defaults filled in; raise Wrong if it does not fit."""
    if isinstance(data, dict) and data.get("version") != VERSION:
        raise Wrong("version", f"expected {VERSION}: certify the claim again")
    theorem = fit(data, _envelope({}, {}), "")["theorem"]
    kind = theorem.get("kind") if isinstance(theorem, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise Wrong("theorem.kind", f"expected one of {', '.join(KINDS)}")
    found: Mapping[str, Any] = fit(data, _envelope(*KINDS[kind]), "")
    return found


def _inside(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


_PYTHON: dict[str, type] = {
    **{"string": str, "integer": int, "boolean": bool},
    **{"array": list, "object": dict, "null": type(None)},
}


def fit(value: Any, schema: Schema, path: str) -> Any:
    """Return a value with defaults filled in; raise Wrong if it does not fit the schema."""
    if isinstance(value, Malformed):
        raise Wrong(path or "certificate", str(value))
    if "anyOf" in schema:
        return None if value is None else fit(value, schema["anyOf"][1], path)
    kind = schema.get("type")
    if kind and type(value) is not _PYTHON[kind]:
        raise Wrong(path or "certificate", f"expected {schema.get('description', kind)}")
    if "enum" in schema and not any(type(v) is type(value) and v == value for v in schema["enum"]):
        raise Wrong(path, f"expected one of {', '.join(map(str, schema['enum']))}")
    if kind == "integer" and not schema["minimum"] <= value <= schema["maximum"]:
        raise Wrong(path, f"expected from {schema['minimum']} to {schema['maximum']}")
    if kind == "string" and len(value) > schema["maxLength"]:
        raise Wrong(path, f"expected at most {schema['maxLength']} characters")
    if "pattern" in schema and not re.fullmatch(schema["pattern"][1:-1], value):
        raise Wrong(path, f"expected {schema['description']}")
    if kind == "array" and len(value) < schema.get("minItems", 0):
        raise Wrong(path, "is empty")
    if kind == "array":
        return [fit(entry, schema["items"], f"{path}[{i}]") for i, entry in enumerate(value)]
    return _fields(value, schema, path) if kind == "object" else value


def _fields(value: dict[str, Any], schema: Schema, path: str) -> dict[str, Any]:
    own, others = schema.get("properties", {}), schema["additionalProperties"]
    for name in value:
        if name not in own and others is False:
            raise Wrong(_inside(path, name), "is no field here")
        fit(name, schema.get("propertyNames", {}), _inside(path, name))
    if missing := [name for name in schema.get("required", ()) if name not in value]:
        raise Wrong(_inside(path, missing[0]), "is missing")
    rest = {} if others is True else others
    found = {name: shape["default"] for name, shape in own.items() if "default" in shape}
    for name, entry in value.items():
        found[name] = fit(entry, own.get(name, rest), _inside(path, name))
    return found
