"""Claim files: TOML, many claims per file, every error at once with its path.

An entry of the registry of deployments (YAML) is read as one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import InvalidInputError, one_line, suggestion
from dpassay.verifier import registry
from dpassay.verifier.claims import KINDS, Claim
from dpassay.verifier.claims import errors as wrong_in
from dpassay.verifier.proof import corrected_by, named

SCHEMA_VERSION = 1
"""Version of the claim files that are read."""
_MAX_BYTES = 10_000_000
"""Bytes of a claim file: a larger one is refused unread."""
FIELD = "field"
"""The ledger of claims that several papers and libraries make."""
DEPLOYMENTS = "deployments"
"""The ledger of what is said of public deployments."""
_OF_NO_PAPER = (FIELD, DEPLOYMENTS)


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of one file, with what the file says about their source."""

    name: str = ""
    title: str = ""
    authors: str = ""
    numbered: tuple[str, ...] = ()
    """The numbered statements of the source, such as `Lemma 3`, in their order."""
    claims: tuple[Claim, ...]


def read_file(path: Path | str) -> Document:
    """Read a claim file (TOML), or an entry of the registry of deployments (.yaml).

    Raises InvalidInputError if it cannot be read or is no valid claim file; the message lists
    every error with its path, such as `claims[3].delta: …`.
    """
    text = text_of(path)
    if Path(path).suffix in (".yaml", ".yml"):
        return read_registry(text, str(path))
    return read_text(text, str(path))


def text_of(path: Path | str) -> str:
    """Return the text of a file that a user wrote, without a byte order mark.

    Raises InvalidInputError if it cannot be read, is too large or is not UTF-8.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InvalidInputError(f"Cannot read {path}: {error.strerror or error}.") from None
    if len(data) > _MAX_BYTES:
        raise InvalidInputError(f"Expected {path} to be at most {_MAX_BYTES} bytes.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} is not UTF-8 text: byte {error.start}.") from None


def read_registry(text: str, origin: str = "entry") -> Document:
    """Read the text of an entry of OpenDP's registry of deployments as claims.

    What follows from its numbers is a claim to decide; what it does not say is a pending claim with
    the question to ask.

    >>> loss = "privacy_loss: {privacy_parameters: {epsilon: 1, delta: 1e-6}}"
    >>> entry = "deployment: {basic: {name: Counts}, dp_variant: {variant_name: Pure DP}, %s}"
    >>> [(claim.id, claim.kind) for claim in read_registry(entry % loss).claims][2:4]
    [('parameters', 'pure-dp'), ('mechanism', 'pending')]
    """
    return _checked(registry.claim_file(text, origin), origin)


def read_text(text: str, origin: str = "claims") -> Document:
    """Read the text of a claim file; numbers are kept as written, and so are exact."""
    return _checked(read_toml(text, origin), origin)


def read_toml(text: str, origin: str) -> dict[str, Any]:
    """Return the tables of a TOML text, with decimals as they are written.

    Raises InvalidInputError, which names `origin`, if it is none.
    """
    try:
        return tomllib.loads(text, parse_float=str)
    except RecursionError:
        raise InvalidInputError(f"{origin}: brackets are nested too deeply.") from None
    except ValueError as error:  # a TOMLDecodeError, or an integer of more than 4300 digits
        raise InvalidInputError(
            f"{origin} is not a TOML file: {error}. Look for a missing quote or bracket, or a "
            "file that was cut off."
        ) from None


def _checked(data: dict[str, Any], origin: str) -> Document:
    """Return the claims of a file, or raise every error of it at once."""
    errors: list[str] = []
    document = _document(data, errors)
    if errors:
        count = f"{len(errors)} error{'s' if len(errors) > 1 else ''}"
        raise InvalidInputError(
            f"{origin}: {count}.\n" + "\n".join(f"  {one_line(e)}" for e in errors)
        )
    return document


def _document(data: dict[str, Any], errors: list[str]) -> Document:
    known = {"schema_version", "name", "title", "authors", "numbered", "claims"}
    errors += [f"{key}: unknown key. {suggestion(key, known)}" for key in data if key not in known]
    version = data.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        errors.append(
            f"schema_version: expected {SCHEMA_VERSION}, not {version!r}. "
            f"Write schema_version = {SCHEMA_VERSION}."
        )
    entries = data.get("claims", [])
    if not isinstance(entries, list) or not entries:
        errors.append("claims: expected at least one [[claims]] table.")
        entries = []
    claims, seen = [], set()
    for index, entry in enumerate(entries):
        path = f"claims[{index}]"
        found = _claim(entry, path, errors)
        if found is None:
            continue
        if found.id in seen:
            errors.append(f"{path}.id: {found.id!r} is used twice.")
        seen.add(found.id)
        claims.append(found)
    stated = {str(entry.get("id")) for entry in entries if isinstance(entry, dict)}
    for index, entry in enumerate(entries):
        for field in ("lemmas", "proof") if isinstance(entry, dict) else ():
            listed = entry.get("lemmas") if field == "lemmas" else list(named(entry.get("proof")))
            errors += [
                f"claims[{index}].{field}: no claim has the id {name!r}. "
                f"{suggestion(str(name), stated)}"
                for name in (listed if isinstance(listed, list) else ())
                if name not in stated
            ]
    errors += [
        f"{claim.id}.slip: its correction names no other claim of the file. Name one that holds."
        for claim in claims
        if claim.slip and not corrected_by(claim, seen - {claim.id})
    ]
    texts = {key: data.get(key, "") for key in ("name", "title", "authors")}
    errors += [f"{k}: expected a text." for k, v in texts.items() if not isinstance(v, str)]
    numbered = data.get("numbered", [])
    if not isinstance(numbered, list) or not all(isinstance(name, str) for name in numbered):
        errors.append('numbered: expected a list of texts, such as ["Lemma 3"].')
    if errors:
        return Document(claims=())
    return Document(claims=tuple(claims), numbered=tuple(numbered), **texts)


def _claim(entry: object, path: str, errors: list[str]) -> Claim | None:
    """Read one claim; where that fails, field by field, so that every wrong field is reported."""
    if not isinstance(entry, dict):
        errors.append(f"{path}: expected a table.")
        return None
    kind = entry.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        hint = suggestion(str(kind), KINDS) if kind else f"Known: {', '.join(sorted(KINDS))}."
        errors.append(f"{path}.kind: unknown kind {kind!r}. {hint}")
        return None
    try:
        claim: Claim = msgspec.convert(_texts(entry), KINDS[kind])
    except (msgspec.ValidationError, InvalidInputError) as error:
        errors += _wrong_fields(entry, KINDS[kind], path) or [f"{path}: {error}"]
        return None
    errors += _meaning_errors(claim, path)
    return claim


def _wrong_fields(entry: dict[str, Any], kind: type[Claim], path: str) -> list[str]:
    """Return what is wrong with each field of a claim."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    errors = []
    for key, value in entry.items():
        if key == "kind":
            continue
        if key not in fields:
            errors.append(f"{path}.{key}: unknown field. {suggestion(key, fields)}")
            continue
        errors += _field_errors(value, fields[key].type, f"{path}.{key}")
    errors += [
        f"{path}.{name}: missing."
        for name, field in fields.items()
        if field.required and name not in entry
    ]
    return errors


def _field_errors(value: object, kind: Any, path: str) -> list[str]:
    try:
        msgspec.convert(_texts(value), kind)
    except msgspec.ValidationError as error:
        if "$[...]" in str(error) and isinstance(value, dict) and len(value) > 1:
            entries = ({key: entry} for key, entry in value.items())
            return [found for entry in entries for found in _field_errors(entry, kind, path)]
        key = f".{next(iter(value))}" if isinstance(value, dict) and value else "[...]"
        return [explained(msgspec.ValidationError(str(error).replace("[...]", key, 1)), path)]
    return []


def explained(error: msgspec.ValidationError, path: str = "") -> str:
    """Say which field of a TOML file is wrong, and what to type.

    >>> explained(msgspec.ValidationError("Expected `str`, got `array` - at `$.epsilon`"))
    'epsilon: expected a text or a number, not a list. Write epsilon = "…".'
    """
    text, _, where = str(error).partition(" - at ")
    field = (path + where.strip("`").removeprefix("$")).removeprefix(".")
    types = _TYPES.fullmatch(text)
    if types is None:
        return f"{field}: {text[0].lower()}{text[1:].rstrip('.')}.".removeprefix(": ")
    expected, found = types.groups()
    kinds = expected.split(" | ")
    what, example = _TOML.get("str" if "str" in kinds else kinds[0], (expected, ""))
    name = field.rpartition(".")[2]
    remedy = f" Write {name} = {example}." if example and not name.endswith("]") else ""
    return f"{field}: expected {what}, not {_TOML.get(found, (found, ''))[0]}.{remedy}"


_TYPES = re.compile("Expected `([^`]*)`, got `([^`]*)`")
_TOML = {
    "str": ("a text or a number", '"…"'),
    "array": ("a list", '["…"]'),
    "object": ("a table", '{name = "…"}'),
    "bool": ("true or false", "true"),
    "int": ("an integer", "1"),
}
"""What a file calls the types of msgspec, with an example of each."""


def _texts(value: object) -> object:
    """Write bare numbers of expression fields as text; they are exact either way."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return [_texts(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _texts(entry) for key, entry in value.items()}
    return value


def _meaning_errors(claim: Claim, path: str) -> list[str]:
    """Check names, expressions, assumptions and the adjacency before anything is computed."""
    errors = [
        f"{f'{path}.{where}' if where else path}: {what.rstrip('.')}."
        for where, what in wrong_in(claim.plain())
    ]
    try:
        Adjacency.read(claim.adjacency)
    except InvalidInputError as error:
        errors.append(f"{path}.adjacency: {error}")
    return errors


def papers() -> list[str]:
    """Return the names of the papers whose ledgers come with the package."""
    return [name for name in _ledgers() if name not in _OF_NO_PAPER]


def _ledgers() -> list[str]:
    found = (entry.name for entry in resources.files("dpassay.verifier.papers").iterdir())
    return sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml"))


def read_paper(name: str) -> Document:
    """Read the ledger of one paper, of the field, or of the deployments.

    Raises InvalidInputError for an unknown name, with a suggestion.
    """
    if name not in _ledgers():
        raise InvalidInputError(f"Unknown paper {name!r}. {suggestion(name, _ledgers())}")
    ledger = resources.files("dpassay.verifier.papers") / f"{name}.toml"
    return read_text(ledger.read_text("utf-8"), f"{name}.toml")


def every_paper() -> Iterator[Document]:
    """Read the ledgers of all papers."""
    return (read_paper(name) for name in papers())
