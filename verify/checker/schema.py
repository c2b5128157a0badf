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
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from dpassay.verifier import rules, seal
from dpassay.verifier.checker.declared import BY_LAW

PLAIN = re.compile(rules.TEXT)
Text = Annotated[str, Meta(pattern=rules.TEXT, max_length=rules.LONGEST)]
"""An expression or a number."""
Name = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}(?![\s\S])")]
"""A variable."""
Words = Annotated[str, Meta(max_length=20_000)]
"""Somebody's words."""
Whole = Annotated[int, Meta(ge=-(10**18), le=10**18)]
Scalar: TypeAlias = Whole | Text
Grid = Annotated[list[Scalar], Meta(max_length=100_000)]


def shape(*, tag: Any = None, **fields: Any) -> Any:
    """Return the strict shape with these fields, and with the field and the value that name it.

    A field is a type, or a type and the default of one that may be left out; `start` is "from".
    """
    return msgspec.defstruct(
        "Shape" if tag is None else tag[1],
        [(name, *(kind if isinstance(kind, tuple) else (kind,))) for name, kind in fields.items()],
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
        rename={"start": "from"},
        tag_field=tag and tag[0],
        tag=tag and tag[1],
    )


_READ_ELSEWHERE = re.compile(r"(^|\.)(lower|upper|description|outcomes(\[\d+\])?)$")
"""Ends of enclosures, which have a pattern of their own, and words."""
_EXPECTED = "expected plain ASCII without comments, exponents of at most five digits"


_RANGE: dict[str, Any] = {
    "statement": (Words, ""),
    "integer": (bool, False),
    **dict.fromkeys(("low", "above", "high", "below"), (Text | None, None)),
}
"""What a variable ranges over."""
_DOMAIN: Any = shape(**_RANGE, grid=Grid)
"""The same, and where it is looked at."""
_COMMON: dict[str, Any] = {
    "id": Words,
    **dict.fromkeys(
        ("statement", "source", "cause", "correction", "error", "argument"), (Words, "")
    ),
    "adjacency": (Literal["add-remove", "replace-one"] | None, None),
    "let": (dict[Name, Text], {}),
    "where": (dict[Name, Grid], {}),
    "for_all": (dict[Name, _DOMAIN], {}),
    "assume": (list[Text], []),
    "slip": (bool, False),
    "lemmas": (list[Words], []),
    "proof": (dict[str, Any], {}),
    "expected": (Literal["", "REFUTED"], ""),
}
"""The fields of every claim."""
_CURVE: dict[str, Any] = dict.fromkeys(("mechanism", "bound", "low", "high"), Text)
_BEHAVIOUR: dict[str, Any] = {
    "expression": Text,
    "variable": Name,
    "at": Grid,
    "over": (shape(**_RANGE) | None, None),
}
_ENTRIES: Any = Annotated[list[Scalar], Meta(max_length=1000)]
_SPACE: Any = shape(tag=("type", "Box"), bounds=_ENTRIES) | shape(
    tag=("type", "SparseBox"), dimension=Scalar, sparsity=Scalar, bound=Scalar, signed=bool
)
_AMONG: Any = shape(
    tag=("type", "Gaussian"), mu=Scalar, objective=Literal["total", "mean"], space=_SPACE
) | shape(tag=("type", "IntegerNoise"), E=Scalar, eta=Scalar, support=Scalar)
_DUAL: Any = shape(tag=("law", "corners")) | shape(tag=("law", "sparse"), ones=Scalar)
_RIVAL: Any = shape(probabilities=_ENTRIES, lowest=Scalar)

CLAIMS: dict[str, Any] = {
    kind: shape(tag=("kind", kind), **_COMMON, **fields)
    for kind, fields in {
        "approximate-dp": {"mechanism": Text, "epsilon": Text, "delta": Text},
        "pure-dp": {"mechanism": Text, "epsilon": Text},
        "gaussian-dp": {"mechanism": Text, "mu": Text},
        "renyi-dp": {"mechanism": Text, "order": Text, "epsilon": Text},
        "zcdp": {"mechanism": Text, "rho": Text},
        "profile": _CURVE,
        "tradeoff": _CURVE,
        "relation": {"claim": Text},
        "printed-number": {"expression": Text, "printed": Text},
        "monotone": {**_BEHAVIOUR, "direction": Literal["decreasing", "increasing"]},
        "limit": {**_BEHAVIOUR, "limit": Text, "rate": (Text, "")},
        "minimiser": {**_BEHAVIOUR, "claimed": Text, "tail": (Words, "")},
        "optimality": {
            "value": Text,
            **{
                name: (found | msgspec.UnsetType, msgspec.UNSET)
                for name, found in {"among": _AMONG, "dual": _DUAL, "rival": _RIVAL}.items()
            },
            **dict.fromkeys(("lower_bound", "competitor"), (Text, "")),
            "tolerance": (Text, "0"),
        },
    }.items()
}
"""The shape of each kind of claim."""
_ANY_CLAIM: Any = reduce(or_, CLAIMS.values())


LAWS: dict[str, tuple[str, ...]] = {
    "gaussian": ("mu",),
    "laplace": ("distance",),
    "laplace-product": ("unit", "multiples"),
    "discrete-laplace": ("scale", "shift"),
    "discrete-gaussian": ("parameter", "shift"),
    "discrete-gaussian-product": ("parameter", "count", "shift", "scale", "last_shift"),
    "finite": ("outcomes", "p", "q"),
    "rank-one-gaussian": ("dimension", "ratio"),
    "subsampled": ("sampling_prob", "mixture", "pair"),
    "gaussian-mixture": ("p", "q"),
    "product": ("counts", "factors"),
    "between": ("factors",),
    "random-allocation": ("mu", "steps", "mixture"),
    "allocation-event": ("mu", "steps", "mixture", "participations", "power", "log_threshold"),
    "shuffled-reports": ("epsilon", "of", "users"),
    "others-alike": ("epsilon", "of", "users", "categories", "held"),
    **{name: law.parameters for name, law in BY_LAW.items()},
}
"""The fields of a pair of laws."""
_BY_NAME = ("allocated-noise", "envelope", "loss-table")
"""Laws of which no number is found here: what rests on them is taken as given."""


def unheard(data: Mapping[str, Any]) -> str:
    """Return the version or the law of a certificate that another version has; "" for none."""
    version = data.get("schema_version")
    if type(version) is int and version != seal.SCHEMA_VERSION:
        return f"it is of version {version}, and version {seal.SCHEMA_VERSION} is known here"
    facts: Any = data.get("facts")
    stack: list[Any] = []
    if _list(facts):
        stack += [fact.get("law") for fact in facts if isinstance(fact, dict)]
    while stack:
        law = stack.pop()
        if isinstance(law, str):  # laws within a law
            try:
                law = json.loads(law)
            except (ValueError, RecursionError):
                continue
        name = law.get("law") if isinstance(law, dict) else None
        if not isinstance(name, str):
            continue
        if name not in LAWS and name not in _BY_NAME:
            return f"the law {name!r} is not known here: another version may have written it"
        if law.get("gaussian") is False:
            return f"the law {name!r} of other noise is not known here: an earlier version wrote it"
        stack += [law.get("pair"), *(law["factors"] if _list(law.get("factors")) else [])]
    return ""


def _list(value: object) -> bool:
    return isinstance(value, list)


def shape_problems(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the field of a certificate that has another shape than its kind, if there is one."""
    found = _misfit(data, seal.Certificate, "") or _misfit(data["claim"], _ANY_CLAIM, "claim")
    if found:
        return found
    for index, lemma in enumerate(data.get("lemmas", [])):
        if misfit := _misfit(lemma, _ANY_CLAIM, f"lemmas[{index}]"):
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
            if not all(map(str.isprintable, value)):  # half of a character, say
                problems.append((path, "has a field with a name that cannot be printed"))
                continue
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
