"""The strict shapes of the certificates of audits and of optima, and what their texts may be."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

_TEXT = r"^(?![\s\S]*[0-9.][eE][+-]?[0-9_]{6})[\t\n -\"$-\[\]-~]*(?![\s\S])"
PLAIN = re.compile(_TEXT)
Text = Annotated[str, Meta(pattern=_TEXT, max_length=100_000)]
"""An expression or a number."""
Name = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}(?![\s\S])")]
"""A variable."""
Words = Annotated[str, Meta(max_length=20_000)]
"""Somebody's words."""
Whole = Annotated[int, Meta(ge=-(10**18), le=10**18)]
Count = Annotated[int, Meta(ge=0, le=10**18)]
Scalar: TypeAlias = Whole | Text
Grid = Annotated[list[Scalar], Meta(max_length=100_000)]
Share = Annotated[float, Meta(ge=0, le=1)]
Level = Annotated[float, Meta(gt=0, lt=1)]


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


def _between(kind: type, **ends: Any) -> Any:
    return Annotated[kind, Meta(**ends)]


def _some(kind: Any, most: int | None = None, *, least: int | None = 1) -> Any:
    return Annotated[list[kind], Meta(min_length=least, max_length=most)]


def _digits(pattern: str, **limits: Any) -> Any:
    return Annotated[str, Meta(pattern=pattern, **limits)]


_PAIR: Any = _some(Words, 2, least=2)
_POINT: Any = shape(epsilon=Text, delta=Text)
_TESTED: dict[str, Any] = {
    "schema_version": Literal[1],
    "verdict": Literal["REFUTED", "NOT_REFUTED"],
    "claim": shape(
        kind=Literal["epsilon-delta", "gaussian", "mechanism", "profile"],
        description=Words,
        points=list[_POINT],
        parameter=Text,
    ),
    "p_value": Share,
    "significance": Level,
    "seal": dict[str, str],
}
"""The fields of every audit."""
_REPLAY: Any = shape(
    target=Words,
    samples=Count,
    pairs=list[_PAIR] | None,
    **dict.fromkeys(("search", "adjacency", "device"), Words | None),
)
"""What is needed to draw the runs of an audit again."""
_RUNS: dict[str, Any] = {
    **_TESTED,
    **dict.fromkeys(("target", "advice"), Words),
    "seed": _digits(r"^[0-9]{1,40}(?![\s\S])"),
    "samples": Count,
    "seconds": _between(float, ge=0),
    "notes": list[Words],
    "replay": (_REPLAY | None, None),
}
"""Those of an audit of many runs."""
_EVENT: Any = shape(
    feature=dict[str, Any],
    favours=Literal["first", "second"],
    partition=shape(**dict.fromkeys(("edges", "values"), (list[float] | None, None))),
    marks=list[Literal[-1, 0, 1]],
    opposite=(Words, ""),
    **dict.fromkeys(("name", "description"), Words),
)
"""The cells that make up an event: by their edges or by their values."""
_COUNTS: Any = shape(
    design=Literal["sides", "guesses"],
    **dict.fromkeys(("hits", "runs", "misses", "other_runs"), Count),
)
_ROUND: Any = shape(
    tested=_POINT,
    stake=Share,
    event=Words,
    **dict.fromkeys(("right", "wrong", "runs", "pair"), Count),
)
"""One bet."""
_MU: Any = _between(float, ge=0, le=60)
_STEPS: Any = _some(shape(epsilon=Text, delta=Text, reversed=bool), 1000)
"""Points of a claimed curve, or what they imply in the other order."""

_OPTIMUM: dict[str, Any] = {"schema_version": Literal[1], "seal": dict[str, str]}
_ENCLOSURE: Any = shape(lower=Text, upper=Text)
_NUMERAL: Any = _digits("^[0-9]{1,18}$")
_BY_COUNT: Any = dict[_NUMERAL, Text]
_COUNT_PROBLEM: Any = shape(
    **dict.fromkeys(("epsilon", "ratio"), Text | None),
    eta=Text,
    support=Count,
    min_count=Count,
    max_count=Count | None,
    objective=Literal["singular", "true-delta"],
)
_COUNT_LAW: Any = shape(start=Count, to=Count | None, lowest=Whole, probabilities=_some(Text))
_INTEGER_PROBLEM: Any = shape(
    objective=Literal["variance", "absolute", "error", "cost", "delta"],
    **dict.fromkeys(("support", "sensitivity"), _between(int, ge=1, le=10**6)),
    costs=list[Text] | None,
    monotone=bool,
    **dict.fromkeys(("epsilon", "ratio", "delta", "error_free"), Text | None),
)
_SIZE: Any = _between(int, ge=1, le=1000)
_ONE_SPACE: Any = (
    shape(tag=("type", "Box"), bounds=_some(Text, 1000))
    | shape(tag=("type", "FiniteSet"), vectors=_some(list[Text]))
    | shape(tag=("type", "SparseBox"), dimension=_SIZE, sparsity=_SIZE, bound=Text, signed=bool)
    | shape(tag=("type", "L2Ball"), dimension=_SIZE, radius=Text)
)


class DisjointGroups(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="DisjointGroups"
):
    """A space in one of several groups."""

    groups: Annotated[int, Meta(ge=1, le=1000)]
    space: _ONE_SPACE | DisjointGroups


KINDS: dict[str, Any] = {
    kind: shape(tag=("kind", kind), **fields)
    for kind, fields in {
        "audit": {
            **_RUNS,
            "tested": _POINT,
            "pair": _PAIR,
            "event": _EVENT,
            "counts": _COUNTS,
            "epsilon_lower_bound": _between(float, ge=0, le=700),
            "mu_lower_bound": (_MU | None, None),
            "share": (Share, 1.0),
            "histogram": _some(list[Count], 2, least=2),
            **dict.fromkeys(("pairs_searched", "training_runs"), Count),
            **dict.fromkeys(("delta_lower_bound", "spared"), Share),
        },
        "sequential-audit": {
            **_RUNS,
            "pairs": list[_PAIR],
            "evidence": _between(float, gt=0),
            "rounds": _some(_ROUND, 100_000, least=None),
        },
        "one-run-audit": {
            **_TESTED,
            "guesses_tried": _some(Count, 1000),
            "delta": _between(float, ge=0, lt=1),
            "seed": _digits(r"^-?[0-9]{1,40}(?![\s\S])"),
            "scores": list[Words],  # numbers with a space between them
            "included": _some(_digits(r"^[01]*(?![\s\S])", max_length=20_000), least=None),
            **dict.fromkeys(("tested", "mu_tested"), _STEPS),
            **dict.fromkeys(("epsilon_lower_bound", "mu_lower_bound"), _MU),
            **dict.fromkeys(
                ("canaries", "guesses", "right", "epsilon_guesses", "mu_guesses"), Count
            ),
        },
        "count-noise": {
            **_OPTIMUM,
            "problem": _COUNT_PROBLEM,
            "exact": Text | None,
            "laws": _some(_COUNT_LAW),
            "dual": shape(
                mass=_BY_COUNT, mean=_BY_COUNT, flows=list[tuple[Count, Count, Whole, Text]]
            ),
            **dict.fromkeys(("delta", "ratio"), _ENCLOSURE),
        },
        "integer-noise": {
            **_OPTIMUM,
            "given": _INTEGER_PROBLEM,
            "optimum": _ENCLOSURE,
            "exact": Text | None,
            "ratio": _some(Text, 2, least=2),
            "tests": list[list[Text]],
            **dict.fromkeys(("law", "steps"), list[Text]),
        },
        "gaussian-shape": {
            **_OPTIMUM,
            "given": shape(
                space=_ONE_SPACE | DisjointGroups,
                objective=Literal["total", "worst"],
                weights=list[Text],
            ),
            "optimum": _ENCLOSURE,
            "covariance": list[list[Text]],
            "vertices": _some(shape(square=Text, entries=list[Text]), least=None),
            **dict.fromkeys(("law", "shares"), list[Text]),
        },
    }.items()
}
"""The certificates that have a kind; one without is of a claim."""
