"""Certificates as plain data: their shape, their seal, reading and writing them.

A certificate holds the claim, the case, the facts with their enclosures, and the comparison
between them that gives the verdict. Every leaf is sealed: `seal` maps the path of each leaf to a
digest, so that a changed digit is reported by the field it stands in. The seal guards against
accidents; the mathematics of `verify.checker` guards against mistakes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, final

import msgspec

from accountant.errors import InvalidInputError

SCHEMA_VERSION = 1

_DECIMAL = r"^-?([0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,18})?|Infinity)$"
Decimal = Annotated[str, msgspec.Meta(pattern=_DECIMAL)]


class _Plain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shared by the parts of a certificate."""


@final
class Enclosure(_Plain, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two decimals that a number lies between."""

    lower: Decimal
    upper: Decimal


class _Fact(_Plain, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="fact"):
    """Shared by the facts; `name` is what the conclusion calls it."""


@final
class Event(_Fact, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="event"):
    """p = P(L > ε) and q = Q(L > ε) for the pair of laws `law` and ε = `loss_above`."""

    name: str
    law: dict[str, Any]
    loss_above: str
    description: str
    p: Enclosure
    q: Enclosure


@final
class HockeyStick(_Fact, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="hockey-stick"):
    """The divergence H(ε) = sup_S P(S) − e^ε Q(S)."""

    name: str
    law: dict[str, Any]
    epsilon: str
    value: Enclosure


@final
class Renyi(_Fact, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="renyi"):
    """The Rényi divergence of an order."""

    name: str
    law: dict[str, Any]
    order: str
    value: Enclosure


@final
class GaussianMu(_Fact, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="gaussian-mu"):
    """The least μ of a pair: that of Gaussian releases, subsampled and mixed or not."""

    name: str
    law: dict[str, Any]
    value: Enclosure


@final
class ExpressionFact(
    _Fact, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="expression"
):
    """The value of an expression of the claim, at given values of further variables."""

    name: str
    expression: str
    value: Enclosure
    variables: dict[str, str] = {}


@final
class Sweep(_Fact, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="sweep"):
    """Points between which two monotone curves were compared, end against end."""

    name: str
    cuts: list[str]


@final
class Point(_Fact, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="point"):
    """The value of the variable at which a claimed curve is missed."""

    name: str
    value: str


Fact = Event | HockeyStick | Renyi | GaussianMu | ExpressionFact | Sweep | Point


@final
class Certificate(_Plain, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


def read(path: Path) -> list[dict[str, Any]]:
    """Read a certificate file.

    Raises InvalidInputError if it cannot be read, is not JSON, or holds no certificate.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidInputError(f"Cannot read {path}: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{path} is not a JSON certificate: {error}. Was the file cut off?"
        ) from None
    entries = data if isinstance(data, list) else [data]
    if not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidInputError(f"{path} is not a certificate: expected an object or a list.")
    return entries
