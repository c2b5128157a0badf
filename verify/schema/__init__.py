"""The published shapes of claim files, findings and certificates, as JSON Schema (2020-12).

`python -m dpassay.verifier.schema` writes the files anew from the types that they describe.
"""

from __future__ import annotations

import inspect
import json
from importlib import resources
from typing import Any, Literal, Union

import msgspec

from dpassay.verifier.claims import KINDS
from dpassay.verifier.kernel import json_schema
from dpassay.verifier.verdict import Finding

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_WORDS = frozenset(
    {"id", "statement", "source", "adjacency", "cause", "correction", "reason", "variable"}
    | {"argument", "lemmas", "tail", "proof", "expected"}
)
"""Fields of a claim that are words: every other text may also be written as a bare number."""


ClaimFile = msgspec.defstruct(
    "ClaimFile",
    [
        ("schema_version", Literal[1]),
        ("claims", list[Union[tuple(KINDS[kind] for kind in KINDS)]]),  # type: ignore[misc]  # noqa: UP007
        ("name", str, ""),
        ("title", str, ""),
        ("authors", str, ""),
        ("numbered", list[str], []),
    ],
    kw_only=True,
    forbid_unknown_fields=True,
    namespace={
        "__doc__": "A claim file (TOML): claims, and what the file says about their source."
    },
)


class Findings(msgspec.Struct, kw_only=True):
    """What `dpassay verify --json` prints."""

    schema_version: Literal[1]
    findings: list[Finding]


def generate() -> dict[str, dict[str, Any]]:
    """Return every schema by the name of its file."""
    return {
        "claims.schema.json": _schema(_with_numbers(msgspec.json.schema(ClaimFile))),
        "finding.schema.json": _schema(msgspec.json.schema(Findings)),
        "certificate.schema.json": json_schema(),
    }


def stored(name: str) -> dict[str, Any]:
    """Return a schema as it is published with the package."""
    text = (resources.files(__name__) / name).read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def text(schema: dict[str, Any]) -> str:
    """Print a schema as its file has it."""
    indent = None if "anyOf" in schema else 2  # what one table makes is not read in its file
    return json.dumps(schema, indent=indent, ensure_ascii=False) + "\n"


def _schema(found: dict[str, Any]) -> dict[str, Any]:
    for definition in found["$defs"].values():
        if "description" in definition:  # Python 3.13 takes the indentation away by itself
            definition["description"] = inspect.cleandoc(definition["description"])
    return {"$schema": _DIALECT, **found}


def _with_numbers(schema: dict[str, Any]) -> dict[str, Any]:
    """Let the expressions of claims be bare numbers, as in a claim file."""
    for name, definition in schema["$defs"].items():
        for field, shape in definition.get("properties", {}).items():
            if name != "ClaimFile" and field not in _WORDS:
                definition["properties"][field] = _or_number(shape)
    return schema


def _or_number(shape: dict[str, Any]) -> dict[str, Any]:
    if shape.get("type") == "string":
        return {**shape, "type": ["string", "number"]}
    if "items" in shape:
        return {**shape, "items": _or_number(shape["items"])}
    if isinstance(shape.get("additionalProperties"), dict):
        return {**shape, "additionalProperties": _or_number(shape["additionalProperties"])}
    kinds = shape.get("anyOf", [])
    if {"type": "integer"} in kinds or {"type": "string"} in kinds:
        return {**shape, "anyOf": [*shape["anyOf"], {"type": "number"}]}
    return shape
