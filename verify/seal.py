"""Certificates as plain data: their shape, their seal, reading and writing them.

A certificate holds the claim, the case, the facts with their enclosures, and the comparison
between them that gives the verdict. Every leaf is sealed: `seal` maps the path of each leaf to a
digest, so that a changed digit is reported by the field it stands in. The seal guards against
accidents; the mathematics of `dpassay.verifier.checker` guards against mistakes.

A file is read as one that a stranger wrote: from a regular file or a pipe, so much of it and no
more, and a field that stands twice in an object is noted (`Twice`).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, final

import msgspec

from dpassay.accountant.errors import InvalidInputError

SCHEMA_VERSION = 1
"""Version of the certificates that are written and read."""
MOST_BYTES = 32_000_000
"""Of a certificate file: the largest that this program wrote has some ten million."""
_MOST_ENTRIES = 4_000_000
"""Of all its objects and lists: what they take in memory."""

_DECIMAL = r"^-?([0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,18})?|Infinity)(?![\s\S])"
Decimal = Annotated[str, msgspec.Meta(pattern=_DECIMAL)]


class _Plain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shared by the parts of a certificate."""


@final
class Enclosure(_Plain, frozen=True, kw_only=True):
    """Two decimals that a number lies between."""

    lower: Decimal
    upper: Decimal


class _Fact(_Plain, frozen=True, kw_only=True, tag_field="fact"):
    """Shared by the facts; `name` is what the conclusion calls it."""

    name: str


class _OfLaw(_Fact, frozen=True, kw_only=True):
    """Shared by the facts about a pair of laws."""

    law: dict[str, Any]


@final
class Event(_OfLaw, frozen=True, kw_only=True, tag="event"):
    """p = P(L > ε) and q = Q(L > ε) for the pair of laws `law` and ε = `loss_above`."""

    loss_above: str
    description: str
    p: Enclosure
    q: Enclosure


@final
class HockeyStick(_OfLaw, frozen=True, kw_only=True, tag="hockey-stick"):
    """The divergence H(ε) = sup_S P(S) − e^ε Q(S)."""

    epsilon: str
    value: Enclosure


@final
class Renyi(_OfLaw, frozen=True, kw_only=True, tag="renyi"):
    """The Rényi divergence of an order."""

    order: str
    value: Enclosure


@final
class GaussianMu(_OfLaw, frozen=True, kw_only=True, tag="gaussian-mu"):
    """The least μ of a pair: that of Gaussian releases, subsampled and mixed or not."""

    value: Enclosure


@final
class ExpressionFact(_Fact, frozen=True, kw_only=True, tag="expression"):
    """The value of an expression of the claim, at given values of further variables."""

    expression: str
    value: Enclosure
    variables: dict[str, str] = {}


@final
class Sweep(_Fact, frozen=True, kw_only=True, tag="sweep"):
    """Points between which two monotone curves were compared, end against end."""

    cuts: list[str]


@final
class Point(_Fact, frozen=True, kw_only=True, tag="point"):
    """The value of the variable at which a claimed curve is missed."""

    value: str


Fact = Event | HockeyStick | Renyi | GaussianMu | ExpressionFact | Sweep | Point


@final
class Certificate(_Plain, frozen=True, kw_only=True):
    """A verdict with everything that is needed to check it."""

    schema_version: Literal[1]
    claim: dict[str, Any]
    """The claim as a claim file has it (claims.schema.json)."""
    lemmas: list[dict[str, Any]] = []
    """The claims that its proof names, and those that their proofs name."""
    case: dict[str, str]
    """The values of the claim's variables in the case that is shown."""
    verdict: Literal["HOLDS", "ARGUED", "REFUTED", "SUPPORTED"]
    claimed: dict[str, str]
    worst_case: str
    mechanism: str
    route: str
    facts: list[Fact]
    conclusion: str
    """The comparison between named facts and claimed numbers that gives the verdict."""
    seal: dict[str, str]
    """The digest of every leaf by its path."""


def seal(data: dict[str, Any]) -> dict[str, str]:
    """Return the digest of every leaf by its path."""
    return {path: _digest(path, leaf) for path, leaf in leaves(data)}


def broken(data: Mapping[str, Any]) -> list[str]:
    """Return the path of every leaf that was changed, added or removed since the sealing."""
    found = seal({key: value for key, value in data.items() if key != "seal"})
    stated = data["seal"] if isinstance(data.get("seal"), dict) else {}
    return [path for path in {**found, **stated} if found.get(path) != stated.get(path)]


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield every leaf of nested data with its path, such as `facts[0].p.lower`."""
    if isinstance(value, dict) and value:
        for key, entry in value.items():
            yield from leaves(entry, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for index, entry in enumerate(value):
            yield from leaves(entry, f"{path}[{index}]")
    else:
        yield path, value


def _digest(path: str, leaf: object) -> str:
    text = json.dumps([path, leaf], ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def write(path: Path, certificates: list[dict[str, Any]]) -> None:
    """Write one certificate, or several as a list."""
    data = certificates[0] if len(certificates) == 1 else certificates
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "utf-8")


@final
class TooLargeError(InvalidInputError):
    """A file of certificates that is longer than a check reads."""


class Twice(dict[str, Any]):
    """An object in which a field stands twice; the last one counts, `repeated` names it."""

    repeated: str


def read(path: Path) -> list[dict[str, Any]]:
    """Read a certificate file, or the standard input for the path `-`.

    Raises TooLargeError if it is longer than `MOST_BYTES`, and InvalidInputError if it cannot be
    read, is not JSON, or holds no certificate.
    """
    name = "The standard input" if str(path) == "-" else str(path)
    try:
        content = _content(path, name)
    except OSError as error:
        raise InvalidInputError(f"Cannot read {name}: {error.strerror or error}.") from None
    try:
        data = json.loads(content.decode("utf-8"), object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidInputError(
            f"{name} is not a JSON certificate: {why}. Was the file cut off?"
        ) from None
    entries = data if isinstance(data, list) else [data]
    if not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidInputError(f"{name} is not a certificate: expected an object or a list.")
    return entries


def _content(path: Path, name: str) -> bytes:
    """Return the content of a file, read up to the limit."""
    if str(path) == "-":
        content = sys.stdin.buffer.read(MOST_BYTES + 1)
    else:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InvalidInputError(f"{name} is no regular file. Name a file, or - for a pipe.")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES or sum(map(content.count, b"[{,")) > _MOST_ENTRIES:
        raise TooLargeError(
            f"{name} is longer than {MOST_BYTES // 10**6} MB, or has more than "
            f"{_MOST_ENTRIES // 10**6} million entries. Check its certificates in parts."
        )
    return content


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            twice = Twice(pairs)
            twice.repeated = name
            return twice
        found[name] = value
    return found
