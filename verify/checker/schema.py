"""The strict shape of every kind of certificate: what is unknown or missing is no certificate.

Part of the independent checker: the claims are described a second time, not imported. A text that
is evaluated is printable ASCII without comments, its exponents have five digits at most, and words
are only ever quoted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from verify import seal
from verify.checker.declared import BY_LAW
from verify.checker.evidence_schema import KINDS, PLAIN, Grid, Name, Scalar, Strict, Text, Words

_READ_ELSEWHERE = re.compile(r"(^|\.)(lower|upper|description|outcomes(\[\d+\])?)$")
"""Ends of enclosures, which have a pattern of their own, and words."""
_EXPECTED = "expected plain ASCII without comments, exponents of at most five digits"


class Range(Strict, frozen=True, kw_only=True):
    """What a variable ranges over."""

    statement: Words = ""
    low: Text | None = None
    above: Text | None = None
    high: Text | None = None
    below: Text | None = None
    integer: bool = False


class Domain(Range, frozen=True, kw_only=True):
    """The same, and where it is looked at."""

    grid: Grid


class _Claim(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"
):
    """Shared by the kinds of claims."""

    id: Words
    statement: Words = ""
    source: Words = ""
    adjacency: Literal["add-remove", "replace-one"] | None = None
    let: dict[Name, Text] = {}
    where: dict[Name, Grid] = {}
    for_all: dict[Name, Domain] = {}
    assume: list[Text] = []
    cause: Words = ""
    correction: Words = ""
    error: Words = ""
    slip: bool = False
    argument: Words = ""
    lemmas: list[Words] = []
    proof: dict[str, Any] = {}
    expected: Literal["", "REFUTED"] = ""


class _Privacy(_Claim, frozen=True, kw_only=True):
    mechanism: Text


class ApproximateDP(_Privacy, frozen=True, kw_only=True, tag="approximate-dp"):
    """(ε, δ)-DP."""

    epsilon: Text
    delta: Text


class PureDP(_Privacy, frozen=True, kw_only=True, tag="pure-dp"):
    """ε-DP."""

    epsilon: Text


class GaussianDP(_Privacy, frozen=True, kw_only=True, tag="gaussian-dp"):
    """μ-Gaussian DP."""

    mu: Text


class RenyiDP(_Privacy, frozen=True, kw_only=True, tag="renyi-dp"):
    """A Rényi divergence of at most ε."""

    order: Text
    epsilon: Text


class ZeroConcentratedDP(_Privacy, frozen=True, kw_only=True, tag="zcdp"):
    """ρ-zCDP."""

    rho: Text


class Profile(_Privacy, frozen=True, kw_only=True, tag="profile"):
    """δ(ε) is at most a curve on [low, high]."""

    bound: Text
    low: Text
    high: Text


class Tradeoff(_Privacy, frozen=True, kw_only=True, tag="tradeoff"):
    """β(α) is at least a curve on [low, high]."""

    bound: Text
    low: Text
    high: Text


class Relation(_Claim, frozen=True, kw_only=True, tag="relation"):
    """A comparison."""

    claim: Text


class PrintedNumber(_Claim, frozen=True, kw_only=True, tag="printed-number"):
    """A number as it is printed."""

    expression: Text
    printed: Text


class _Behaviour(_Claim, frozen=True, kw_only=True):
    expression: Text
    variable: Name
    at: Grid
    over: Range | None = None


class Monotone(_Behaviour, frozen=True, kw_only=True, tag="monotone"):
    """Falling or rising."""

    direction: Literal["decreasing", "increasing"]


class Limit(_Behaviour, frozen=True, kw_only=True, tag="limit"):
    """What an expression tends to."""

    limit: Text
    rate: Text = ""


class Minimiser(_Behaviour, frozen=True, kw_only=True, tag="minimiser"):
    """Where an expression is least."""

    claimed: Text
    tail: Words = ""


_Entries = Annotated[list[Scalar], Meta(max_length=1000)]


class Box(Strict, frozen=True, kw_only=True, tag_field="type", tag="Box"):
    """|v_i| at most a bound each."""

    bounds: _Entries


class SparseBox(Strict, frozen=True, kw_only=True, tag_field="type", tag="SparseBox"):
    """At most so many entries other than 0."""

    dimension: Scalar
    sparsity: Scalar
    bound: Scalar
    signed: bool


class GaussianFamily(Strict, frozen=True, kw_only=True, tag_field="type", tag="Gaussian"):
    """Gaussian noise over a space, by its variances."""

    mu: Scalar
    objective: Literal["total", "mean"]
    space: Box | SparseBox


class IntegerFamily(Strict, frozen=True, kw_only=True, tag_field="type", tag="IntegerNoise"):
    """Integer noise on a bounded support."""

    E: Scalar
    eta: Scalar
    support: Scalar


class Corners(Strict, frozen=True, kw_only=True, tag_field="law", tag="corners"):
    """Uniform signs."""


class Sparse(Strict, frozen=True, kw_only=True, tag_field="law", tag="sparse"):
    """So many entries other than 0."""

    ones: Scalar


class Rival(Strict, frozen=True, kw_only=True):
    """A law on integers."""

    probabilities: _Entries
    lowest: Scalar


class Optimality(_Claim, frozen=True, kw_only=True, tag="optimality"):
    """A value that no rival beats."""

    value: Text
    among: GaussianFamily | IntegerFamily | msgspec.UnsetType = msgspec.UNSET
    dual: Corners | Sparse | msgspec.UnsetType = msgspec.UNSET
    rival: Rival | msgspec.UnsetType = msgspec.UNSET
    lower_bound: Text = ""
    competitor: Text = ""
    tolerance: Text = "0"


AnyClaim: TypeAlias = (
    ApproximateDP | PureDP | GaussianDP | RenyiDP | ZeroConcentratedDP | Profile | Tradeoff
    | Relation | PrintedNumber | Monotone | Limit | Minimiser | Optimality
)  # fmt: skip


LAWS: dict[str, tuple[str, ...]] = {
    "gaussian": ("mu",),
    "laplace": ("distance",),
    "laplace-product": ("unit", "multiples"),
    "several-positions": ("unit", "multiples"),
    "discrete-laplace": ("scale", "shift"),
    "discrete-gaussian": ("parameter", "shift"),
    "finite": ("outcomes", "p", "q"),
    "rank-one-gaussian": ("dimension", "ratio"),
    "subsampled": ("sampling_prob", "mixture", "pair"),
    "gaussian-mixture": ("p", "q"),
    "product": ("counts", "factors"),
    "between": ("factors",),
    **{name: law.parameters for name, law in BY_LAW.items()},
}
"""The fields of a pair of laws."""


def shape_problems(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the field of a certificate that has another shape than its kind, if there is one."""
    if "kind" in data:
        if data["kind"] not in [*KINDS]:
            return [("kind", f"expected one of {', '.join(KINDS)}")]
        return _misfit(data, KINDS[data["kind"]], "")
    found = _misfit(data, seal.Certificate, "") or _misfit(data["claim"], AnyClaim, "claim")
    if found:
        return found
    for index, lemma in enumerate(data.get("lemmas", [])):
        if misfit := _misfit(lemma, AnyClaim, f"lemmas[{index}]"):
            return misfit
    evaluated = {name: data[name] for name in ("case", "claimed", "mechanism", "facts")}
    if path := _not_plain(evaluated):
        return [(path, _EXPECTED)]
    for index, fact in enumerate(data["facts"]):
        law = fact.get("law", {})
        known = LAWS.get(str(law.get("law")), (*law,))
        for name in law:
            if name not in ("law", *known):
                return [(f"facts[{index}].law.{name}", "is no field of this law")]
    return []


def _not_plain(data: object) -> str:
    """Return the path of a text that is not to be evaluated; laws within a law are JSON texts."""
    for path, leaf in seal.leaves(data):
        if not isinstance(leaf, str) or _READ_ELSEWHERE.search(path):
            continue
        try:
            nested = json.loads(leaf) if leaf[:1] in ("{", "[") else None
        except (ValueError, RecursionError):
            nested = None  # a list of the language
        if _not_plain(nested) if isinstance(nested, (dict, list)) else not PLAIN.search(leaf):
            return path
    return ""


def _misfit(data: object, kind: Any, path: str) -> list[tuple[str, str]]:
    try:
        msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        text, _, where = str(error).partition(" - at ")
        inner = where.strip("`").removeprefix("$").removeprefix(".")
        if "matching regex" in text:
            text = _EXPECTED
        return [(".".join(filter(None, (path, inner))), text)]
    return []


_DEEPEST = 60
"""Levels of objects and lists: proofs nest, laws within laws do."""
_MOST_ENTRIES = 500_000
"""Entries of a certificate: more are refused unread."""
_LONGEST_TEXT = 200_000
"""Characters of a text in it."""
_LONGEST_NAME = 500
"""Characters of a key."""
_LARGEST_INTEGER = 10**18
"""Largest integer: larger ones are written as texts."""


def excess(data: Mapping[str, Any]) -> tuple[list[tuple[str, str]], str]:
    """Return what is malformed wherever it stands, and what is too large to be checked.

    Malformed are numbers that are not finite and fields that stand twice in one object.
    """
    problems: list[tuple[str, str]] = []
    stack: list[tuple[str, object, int]] = [("", data, 0)]
    seen = 0
    while stack:
        path, value, depth = stack.pop()
        seen += 1
        if seen > _MOST_ENTRIES:
            return problems, f"it has more than {_MOST_ENTRIES} entries"
        if depth > _DEEPEST:
            return problems, f"it is nested more than {_DEEPEST} levels deep"
        if isinstance(value, seal.Twice):
            problems.append(
                (f"{path}.{value.repeated}" if path else value.repeated, "stands twice")
            )
        if isinstance(value, dict):
            if any(len(key) > _LONGEST_NAME for key in value):
                return problems, f"{path or 'it'} has a field with a name of endless length"
            stack += [(f"{path}.{k}" if path else k, v, depth + 1) for k, v in value.items()]
        elif isinstance(value, list):
            stack += [(f"{path}[{i}]", entry, depth + 1) for i, entry in enumerate(value)]
        elif isinstance(value, str) and len(value) > _LONGEST_TEXT:
            return problems, f"{path} is longer than {_LONGEST_TEXT} characters"
        elif isinstance(value, float) and not math.isfinite(value):
            problems.append((path, f"is {value}, which is no number"))
        elif isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
            problems.append((path, "is an integer beyond 10**18"))
    return problems, ""
