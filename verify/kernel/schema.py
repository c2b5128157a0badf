"""What a certificate looks like: one JSON Schema, made here, which is also what reads certificates.

A certificate is a JSON object with the fields `version` (2), `theorem`, `lemmas` and `witness`. It
may have been written by anybody, so it is read strictly: a field that is unknown, missing or stands
twice, a number with a point, a text that is no Unicode, and whatever is too long or nested too
deeply, make it INVALID by the name of the field. Numbers are texts, such as "0.1" or "3/7", because
a JSON number means different things to different readers; integers up to 2⁵³ may stand bare.

Canonical form (RFC 8785): no space, keys in order, the shortest escapes. It is what the prover
writes; the reader takes any form. Nothing in a certificate vouches for it: its integrity is the
reader's `sha256sum`, its truth is what the kernel proves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from .numbers import Wrong

VERSION = 2
MOST_BYTES = 32_000_000
"""Of a file: more is not read."""
MOST_ENTRIES = 500_000
"""Of one certificate: keys, list entries and texts."""
MOST_LEVELS = 40
"""Of objects and lists inside each other."""
LONGEST_TEXT = 200_000
"""Characters of one text."""
LARGEST_INTEGER = 2**53
"""JSON readers agree on integers up to here."""
RESERVED = "VALID|CONDITIONAL|INVALID|HOLDS|REFUTED|SUPPORTED|ARGUED|OPTIMAL|NOT_REFUTED"
"""Words with which the kernel's sentences begin: no variable has such a name."""
Schema = dict[str, Any]


# --- reading ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Malformed:
    """What stands for a JSON value that no certificate may have."""

    why: str


def read(content: bytes) -> list[Any]:
    """Return the certificates of a file: its one object, or the entries of its list.

    Raises Wrong if it is not JSON. That each is a certificate is found by `require`.
    """
    if len(content) > MOST_BYTES:
        raise Wrong("file", f"is longer than {MOST_BYTES // 10**6} MB")
    try:
        data = json.loads(
            content.decode("utf-8"),
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
    if len(found) == len(pairs):
        return found
    twice = next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i]))
    return Malformed(f"has the field {json.dumps(twice[:60])} twice")


def canonical(value: Any) -> bytes:
    """Return the canonical form of a certificate (RFC 8785; its keys are ASCII)."""
    form = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    return json.dumps(value, sort_keys=True, **form).encode("utf-8")  # type: ignore[arg-type]


def require(data: Any) -> Mapping[str, Any]:
    """Return a certificate with its defaults; raise Wrong(field, reason) if it is none."""
    _limit(data)
    if isinstance(data, dict) and data.get("version") != VERSION:
        raise Wrong("version", f"expected {VERSION}: certify the claim again")
    theorem = fit(data, _envelope(ANYTHING, ANYTHING), "")["theorem"]
    kind = theorem.get("kind") if isinstance(theorem, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise Wrong("theorem.kind", f"expected one of {', '.join(KINDS)}")
    found: Mapping[str, Any] = fit(data, _envelope(*KINDS[kind]), "")
    return found


def _limit(data: Any) -> None:
    """Raise Wrong for what is malformed or too large, wherever it stands."""
    stack: list[tuple[str, Any, int]] = [("", data, 0)]
    seen = 0
    while stack:
        path, value, level = stack.pop()
        seen += 1
        if seen > MOST_ENTRIES or level > MOST_LEVELS:
            limits = f"{MOST_ENTRIES} entries, or is nested more than {MOST_LEVELS} levels deep"
            raise Wrong("certificate", f"has more than {limits}")
        why = _objection(value)
        if why:
            raise Wrong(path or "certificate", why)
        if isinstance(value, dict):
            stack += [(_inside(path, key), entry, level + 1) for key, entry in value.items()]
        elif isinstance(value, list):
            stack += [(f"{path}[{i}]", entry, level + 1) for i, entry in enumerate(value)]


def _objection(value: Any) -> str:
    """Say what no value of a certificate may be; nothing if it is all right."""
    match value:
        case Malformed():
            return value.why
        case dict() if not all(isinstance(k, str) and len(k) < 200 and k.isascii() for k in value):
            return "has a field whose name is no short ASCII"
        case str() if len(value) > LONGEST_TEXT:
            return f"is longer than {LONGEST_TEXT} characters"
        case str() if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            return "is no Unicode text"
        case bool() | None | dict() | list() | str():
            return ""
        case int() if abs(value) <= LARGEST_INTEGER:
            return ""
    return "is no text, integer up to 2^53, true, false, list or object"


def _inside(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def fit(value: Any, schema: Schema, path: str) -> Any:
    """Return a value with its defaults; raise Wrong where a schema (of those made here) says no.

    Of several shapes, the objection of the one that went furthest is told.
    """
    worst = Wrong(path or "certificate", schema.get("description") or "has another type")
    for shape in schema.get("anyOf", ()):
        try:
            return fit(value, shape, path)
        except Wrong as error:
            worst = error if len(error.field) > len(worst.field) else worst
    kind = schema.get("type")
    if "anyOf" in schema or (kind and type(value) is not _TYPES[kind]):
        raise worst
    if "enum" in schema and not any(type(v) is type(value) and v == value for v in schema["enum"]):
        raise Wrong(path, f"expected one of {', '.join(map(str, schema['enum']))}")
    size = value if kind == "integer" else len(value) if kind in ("string", "array") else 0
    least, most = _LIMITS.get(kind or "", ("", ""))
    if not schema.get(least, size) <= size <= schema.get(most, size):
        raise Wrong(path, f"expected from {schema.get(least, 0)} to {schema.get(most)}, not {size}")
    if "pattern" in schema and not re.fullmatch(schema["pattern"][1:-1], value):
        raise worst
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
    defaults = {name: shape["default"] for name, shape in own.items() if "default" in shape}
    found = {name: fit(v, own.get(name, others), _inside(path, name)) for name, v in value.items()}
    return defaults | found


_TYPES = {"string": str, "integer": int, "array": list, "object": dict, "null": type(None)}
_LIMITS = {
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum"),
    "array": ("minItems", "maxItems"),
}


# --- how shapes are written ---------------------------------------------------------------------
def _text(pattern: str, what: str, most: int = LONGEST_TEXT) -> Schema:
    limits = {"type": "string", "maxLength": most, "description": f"expected {what}"}
    return limits | ({"pattern": f"^{pattern}$"} if pattern else {})


def _whole(least: int = -LARGEST_INTEGER, most: int = LARGEST_INTEGER) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


def _one(*values: Any) -> Schema:
    return {"enum": [*values]}


def _items(of: Schema, least: int = 0, most: int = MOST_ENTRIES) -> Schema:
    return {"type": "array", "items": of, "minItems": least, "maxItems": most}


def _table(key: Schema, of: Schema) -> Schema:
    return {"type": "object", "propertyNames": key, "additionalProperties": of}


def _any(*shapes: Schema) -> Schema:
    return {"anyOf": [*shapes]}


def _may(shape: Schema, default: Any = None) -> Schema:
    """Return the shape of a field that may be left out."""
    return {**(_any({"type": "null"}, shape) if default is None else shape), "default": default}


def _record(**fields: Schema) -> Schema:
    required = [name for name, shape in fields.items() if "default" not in shape]
    shape = {"type": "object", "properties": fields, "additionalProperties": False}
    return {**shape, "required": required}


def _each(names: str, shape: Schema) -> dict[str, Schema]:
    return dict.fromkeys(names.split(), shape)


# --- the table ----------------------------------------------------------------------------------
ANYTHING: Schema = {}
FORMULA = _text(
    r"(?![\s\S]*[0-9.][eE][+-]?[0-9_]{6})[\t\n -\"$-\[\]-~]*",
    "an expression or mechanism: ASCII without # and \\, exponents of at most five digits",
    100_000,
)
NAME = _text(rf"(?!(?:{RESERVED})$)[A-Za-z_][A-Za-z0-9_]*", "a name of letters and digits", 100)
WORDS = _may(_text("", "words", 20_000), "")
NUMBER = _text(
    r"[+-]?[0-9]+(?:/[1-9][0-9]*|(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,5})?)",
    "a decimal or a fraction, as a text",
    100_000,
)
NUMERAL = _text(r"-?[0-9]{1,40}", "an integer as a text")
ROW = _text("[a-z0-9-]{1,60}", "the name of a row of the table of lemmas")
WHOLE, COUNT, SIZE, FLAG = _whole(), _whole(0), _whole(1, 10**6), _one(False, True)
SCALAR = _any(FORMULA, WHOLE)
GRID, ENTRIES, NUMBERS = _items(SCALAR, 1, 100_000), _items(SCALAR, 1, 1000), _items(NUMBER)
HINTS = _table(NAME, ANYTHING)
ENDS = {**_each("low above high below", _may(FORMULA)), "integer": _may(FLAG, False)}
RANGE = _record(**ENDS, statement=WORDS)
POINT, PAIR = _record(epsilon=NUMBER, delta=NUMBER), _items(WORDS, 2, 2)
CLAIM = {
    "verdict": _one("HOLDS", "REFUTED", "SUPPORTED", "ARGUED"),
    **_each("id statement source argument", WORDS),
    "adjacency": _may(_one("add-remove", "replace-one")),
    "let": _may(_table(NAME, FORMULA), {}),
    "where": _may(_table(NAME, GRID), {}),
    "for_all": _may(_table(NAME, _record(**ENDS, statement=WORDS, grid=_may(GRID, []))), {}),
    "assume": _may(_items(FORMULA, 0, 100), []),
    "lemmas": _may(_items(WORDS, 0, 1000), []),
}
BEHAVIOUR = {"expression": FORMULA, "variable": NAME, "at": _may(GRID, []), "over": _may(RANGE)}
SPACES = (
    _record(type=_one("Box"), bounds=ENTRIES),
    _record(type=_one("SparseBox"), **_each("dimension sparsity bound", SCALAR), signed=FLAG),
)
AMONG = (
    _record(type=_one("Gaussian"), mu=SCALAR, objective=_one("total", "mean"), space=_any(*SPACES)),
    _record(type=_one("IntegerNoise"), E=SCALAR, eta=SCALAR, support=SCALAR),
)
DUALS = _record(law=_one("corners")), _record(law=_one("sparse"), ones=SCALAR)
CLAIMS: dict[str, dict[str, Schema]] = {
    "approximate-dp": _each("mechanism epsilon delta", FORMULA),
    "pure-dp": _each("mechanism epsilon", FORMULA),
    "gaussian-dp": _each("mechanism mu", FORMULA),
    "renyi-dp": _each("mechanism order epsilon", FORMULA),
    "zcdp": _each("mechanism rho", FORMULA),
    "profile": _each("mechanism bound low high", FORMULA),
    "tradeoff": _each("mechanism bound low high", FORMULA),
    "relation": {"claim": FORMULA},
    "printed-number": _each("expression printed", FORMULA),
    "monotone": {**BEHAVIOUR, "direction": _one("decreasing", "increasing")},
    "limit": {**BEHAVIOUR, "limit": FORMULA, "rate": _may(FORMULA, "")},
    "minimiser": {**BEHAVIOUR, "claimed": FORMULA, "tail": WORDS},
    "optimality": {
        "value": FORMULA,
        "among": _may(_any(*AMONG)),
        "dual": _may(_any(*DUALS)),
        "rival": _may(_record(probabilities=ENTRIES, lowest=SCALAR)),
        **_each("lower_bound competitor", _may(FORMULA, "")),
        "tolerance": _may(FORMULA, "0"),
    },
}
OPTIMUM = {
    "verdict": _one("OPTIMAL"),
    "optimum": _record(lower=NUMBER, upper=NUMBER),
    "epsilon": _may(FORMULA),
    "ratio": _may(NUMBER),
}
AUDIT = {
    "verdict": _one("REFUTED", "NOT_REFUTED"),
    "significance": NUMBER,
    "claim": _record(
        kind=_one("epsilon-delta", "gaussian", "mechanism", "profile"),
        description=WORDS,
        points=_may(_items(POINT, 0, 1000), []),
        parameter=_may(FORMULA, ""),
    ),
}
DRAWN = {
    "seed": NUMERAL,
    "replay": _may(
        _record(
            target=WORDS,
            samples=COUNT,
            pairs=_may(_items(PAIR)),
            **_each("search adjacency device", _may(WORDS)),
        )
    ),
}
BOUND, STEPS = _may(NUMBER, "0"), _items(_record(**POINT["properties"], reversed=FLAG), 0, 1000)
LAW = _record(first=SIZE, last=_may(SIZE), lowest=WHOLE, probabilities=_items(NUMBER, 1))
ROUND = _record(tested=POINT, stake=NUMBER, **_each("right wrong runs pair", COUNT), event=WORDS)
VERTEX, ROWS = _record(square=NUMBER, entries=NUMBERS), _items(_items(NUMBER, 1, 1000), 1, 1000)
OTHERS: dict[str, tuple[dict[str, Schema], dict[str, Schema]]] = {
    "count-noise": (
        {
            **OPTIMUM,
            "eta": NUMBER,
            "support": SIZE,
            "min_count": _may(SIZE, 1),
            "max_count": _may(SIZE),
            "objective": _one("singular", "true-delta"),
        },
        {
            "ratio": _items(NUMBER, 2, 2),
            "laws": _items(LAW, 1),
            **_each("mass mean", _table(NUMERAL, NUMBER)),
            "flows": _items(_record(count=COUNT, other=COUNT, noise=WHOLE, flow=NUMBER)),
        },
    ),
    "integer-noise": (
        {
            **OPTIMUM,
            "objective": _one("variance", "absolute", "error", "cost", "delta"),
            **_each("support sensitivity", SIZE),
            "costs": _may(NUMBERS, []),
            "monotone": _may(FLAG, False),
            **_each("delta error_free", _may(NUMBER)),
        },
        {
            "ratio": _items(NUMBER, 2, 2),
            "law": _items(NUMBER, 3),
            "tests": _items(NUMBERS, 1),
            "steps": _may(NUMBERS, []),
        },
    ),
    "gaussian-shape": (
        {
            **OPTIMUM,
            "space": FORMULA,
            "objective": _one("total", "worst"),
            "weights": _items(NUMBER, 1, 1000),
        },
        {"vertices": _items(VERTEX), **_each("covariance root", ROWS)}
        | _each("law shares scales", NUMBERS),
    ),
    "audit": (
        {**AUDIT, "target": WORDS, "tested": POINT, "p_value": NUMBER, "share": _may(NUMBER, "1")}
        | _each("epsilon_lower_bound delta_lower_bound mu_lower_bound", BOUND),
        {
            **DRAWN,
            "design": _one("sides", "guesses"),
            "favours": _one("first", "second"),
            "marks": _items(_one(-1, 0, 1), 1),
            "histogram": _items(_items(COUNT, 1), 2, 2),
            "event": _may(HINTS, {}),
            **_each("pairs_searched training_runs", _may(COUNT, 0)),
            "pair": PAIR,
        },
    ),
    "sequential-audit": (
        {**AUDIT, "target": WORDS, "evidence": NUMBER},
        {**DRAWN, "pairs": _items(PAIR), "rounds": _items(ROUND, 0, 100_000)},
    ),
    "one-run-audit": (
        {**AUDIT, **_each("p_value delta", NUMBER)}
        | _each("epsilon_lower_bound mu_lower_bound", BOUND),
        {
            "seed": NUMERAL,
            "scores": NUMBERS,
            "included": _text("[01]*", "a 0 or a 1 for each canary"),
            "guesses_tried": _items(_whole(1), 1, 1000),
            **_each("guesses epsilon_guesses mu_guesses", _whole(1)),
            **_each("tested mu_tested", STEPS),
        },
    ),
}
KINDS: Mapping[str, tuple[Schema, Schema]] = {
    **{kind: (_record(kind=_one(kind), **CLAIM, **own), HINTS) for kind, own in CLAIMS.items()},
    **{
        kind: (_record(kind=_one(kind), **theorem), _record(**witness))
        for kind, (theorem, witness) in OTHERS.items()
    },
}
"""Kind → the shapes of its theorem and its witness."""


def _envelope(theorem: Schema, witness: Schema) -> Schema:
    lemmas = _items(ROW, 0, 100)
    return _record(version=_one(VERSION), theorem=theorem, lemmas=lemmas, witness=witness)


@cache
def json_schema() -> Schema:
    """Return the JSON Schema of certificates (draft 2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A certificate of dpassay, version 2",
        "description": "One certificate. A file holds one, or a list of them.",
        "anyOf": [_envelope(*shapes) for shapes in KINDS.values()],
    }
