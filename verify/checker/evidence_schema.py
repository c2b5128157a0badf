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


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shared by everything here."""


def shape(tag: tuple[str, str] | None = None, **fields: Any) -> Any:
    """Return the strict shape with these fields, and with the field and value that name it.

    A field is a type, or a type and the default of one that may be left out.
    """
    return msgspec.defstruct(
        "Shape" if tag is None else tag[1],
        [(name, *(kind if isinstance(kind, tuple) else (kind,))) for name, kind in fields.items()],
        bases=(Strict,),
        kw_only=True,
        tag_field=tag and tag[0],
        tag=tag and tag[1],
    )


class Point(Strict, frozen=True, kw_only=True):
    """A point (ε, δ)."""

    epsilon: Text
    delta: Text


class Guarantee(Strict, frozen=True, kw_only=True):
    """What an audit tests."""

    kind: Literal["epsilon-delta", "gaussian", "mechanism", "profile"]
    description: Words
    points: list[Point]
    parameter: Text


class Counts(Strict, frozen=True, kw_only=True):
    """What was counted."""

    design: Literal["sides", "guesses"]
    hits: Count
    runs: Count
    misses: Count
    other_runs: Count


class Partition(Strict, frozen=True, kw_only=True):
    """Cells by their edges or by their values."""

    edges: list[float] | None = None
    values: list[float] | None = None


class Event(Strict, frozen=True, kw_only=True):
    """The cells that make up an event."""

    feature: dict[str, Any]
    name: Words
    favours: Literal["first", "second"]
    description: Words
    partition: Partition
    marks: list[Literal[-1, 0, 1]]
    opposite: Words = ""


class Replay(Strict, frozen=True, kw_only=True):
    """What is needed to draw the runs of an audit again."""

    target: Words
    samples: Count
    pairs: list[Annotated[list[Words], Meta(min_length=2, max_length=2)]] | None
    search: Words | None
    adjacency: Words | None
    device: Words | None


class _Tested(Strict, frozen=True, kw_only=True, tag_field="kind"):
    """Shared by the audits."""

    schema_version: Literal[1]
    verdict: Literal["REFUTED", "NOT_REFUTED"]
    target: Words
    claim: Guarantee
    p_value: Share
    significance: Level
    seed: Annotated[str, Meta(pattern=r"^[0-9]{1,40}(?![\s\S])")]
    samples: Count
    seconds: Annotated[float, Meta(ge=0)]
    notes: list[Words]
    advice: Words
    replay: Replay | None = None
    seal: dict[str, str]


class Audit(_Tested, frozen=True, kw_only=True, tag="audit"):
    """One test."""

    tested: Point
    pair: Annotated[list[Words], Meta(min_length=2, max_length=2)]
    pairs_searched: Count
    event: Event
    counts: Counts
    epsilon_lower_bound: Annotated[float, Meta(ge=0, le=700)]
    delta_lower_bound: Share
    mu_lower_bound: Annotated[float, Meta(ge=0, le=60)] | None = None
    training_runs: Count
    spared: Share
    share: Share = 1.0
    histogram: Annotated[list[list[Count]], Meta(min_length=2, max_length=2)]


class Round(Strict, frozen=True, kw_only=True):
    """One bet."""

    tested: Point
    stake: Share
    right: Count
    wrong: Count
    runs: Count
    event: Words
    pair: Count


class SequentialAudit(_Tested, frozen=True, kw_only=True, tag="sequential-audit"):
    """Bets until they refute."""

    pairs: list[Annotated[list[Words], Meta(min_length=2, max_length=2)]]
    evidence: Annotated[float, Meta(gt=0)]
    rounds: Annotated[list[Round], Meta(max_length=100_000)]


class Step(Point, frozen=True, kw_only=True):
    """A point of a claimed curve, or what it implies in the other order."""

    reversed: bool


Steps = Annotated[list[Step], Meta(min_length=1, max_length=1000)]


class OneRunAudit(Strict, frozen=True, kw_only=True, tag_field="kind", tag="one-run-audit"):
    """Guesses of fair coins from one run."""

    schema_version: Literal[1]
    verdict: Literal["REFUTED", "NOT_REFUTED"]
    claim: Guarantee
    tested: Steps
    canaries: Count
    guesses: Count
    right: Count
    guesses_tried: Annotated[list[Count], Meta(min_length=1, max_length=1000)]
    delta: Annotated[float, Meta(ge=0, lt=1)]
    epsilon_lower_bound: Annotated[float, Meta(ge=0, le=60)]
    epsilon_guesses: Count
    mu_lower_bound: Annotated[float, Meta(ge=0, le=60)]
    mu_guesses: Count
    mu_tested: Steps
    p_value: Share
    significance: Level
    seed: Annotated[str, Meta(pattern=r"^-?[0-9]{1,40}(?![\s\S])")]
    scores: list[Words]
    """Numbers with a space between them."""
    included: list[Annotated[str, Meta(pattern=r"^[01]*(?![\s\S])", max_length=20_000)]]
    seal: dict[str, str]


class Enclosure(Strict, frozen=True, kw_only=True):
    """Two exact numbers."""

    lower: Text
    upper: Text


class _Optimum(Strict, frozen=True, kw_only=True, tag_field="kind"):
    """Shared by the optima."""

    schema_version: Literal[1]
    seal: dict[str, str]


class CountProblem(Strict, frozen=True, kw_only=True):
    """What count noise was asked for."""

    epsilon: Text | None
    ratio: Text | None
    eta: Text
    support: Count
    min_count: Count
    max_count: Count | None
    objective: Literal["singular", "true-delta"]


class CountLaw(Strict, frozen=True, kw_only=True, rename={"start": "from"}):
    """The law for some counts."""

    start: Count
    to: Count | None
    lowest: Whole
    probabilities: Annotated[list[Text], Meta(min_length=1)]


class CountDual(Strict, frozen=True, kw_only=True):
    """Multipliers."""

    mass: dict[Annotated[str, Meta(pattern="^[0-9]{1,18}$")], Text]
    mean: dict[Annotated[str, Meta(pattern="^[0-9]{1,18}$")], Text]
    flows: list[tuple[Count, Count, Whole, Text]]


class CountNoise(_Optimum, frozen=True, kw_only=True, tag="count-noise"):
    """Optimal noise of counts."""

    problem: CountProblem
    delta: Enclosure
    exact: Text | None
    ratio: Enclosure
    laws: Annotated[list[CountLaw], Meta(min_length=1)]
    dual: CountDual


class IntegerProblem(Strict, frozen=True, kw_only=True):
    """What integer noise was asked for."""

    objective: Literal["variance", "absolute", "error", "cost", "delta"]
    support: Annotated[int, Meta(ge=1, le=10**6)]
    sensitivity: Annotated[int, Meta(ge=1, le=10**6)]
    costs: list[Text] | None
    monotone: bool
    epsilon: Text | None
    ratio: Text | None
    delta: Text | None
    error_free: Text | None


class IntegerNoise(_Optimum, frozen=True, kw_only=True, tag="integer-noise"):
    """Optimal noise on the integers."""

    given: IntegerProblem
    optimum: Enclosure
    exact: Text | None
    law: list[Text]
    ratio: Annotated[list[Text], Meta(min_length=2, max_length=2)]
    tests: list[list[Text]]
    steps: list[Text]


class _Space(Strict, frozen=True, kw_only=True, tag_field="type"):
    """Shared by the spaces of sensitivities."""


class Box(_Space, frozen=True, kw_only=True, tag="Box"):
    """Bounds of the entries."""

    bounds: Annotated[list[Text], Meta(min_length=1, max_length=1000)]


class FiniteSet(_Space, frozen=True, kw_only=True, tag="FiniteSet"):
    """Listed vectors."""

    vectors: Annotated[list[list[Text]], Meta(min_length=1)]


class SparseBox(_Space, frozen=True, kw_only=True, tag="SparseBox"):
    """Few entries, each within a bound."""

    dimension: Annotated[int, Meta(ge=1, le=1000)]
    sparsity: Annotated[int, Meta(ge=1, le=1000)]
    bound: Text
    signed: bool


class L2Ball(_Space, frozen=True, kw_only=True, tag="L2Ball"):
    """A ball."""

    dimension: Annotated[int, Meta(ge=1, le=1000)]
    radius: Text


class DisjointGroups(_Space, frozen=True, kw_only=True, tag="DisjointGroups"):
    """A space in one of several groups."""

    groups: Annotated[int, Meta(ge=1, le=1000)]
    space: Box | FiniteSet | SparseBox | L2Ball | DisjointGroups


class ShapeProblem(Strict, frozen=True, kw_only=True):
    """What a Gaussian shape was asked for."""

    space: Box | FiniteSet | SparseBox | L2Ball | DisjointGroups
    objective: Literal["total", "worst"]
    weights: list[Text]


class ShapeVector(Strict, frozen=True, kw_only=True):
    """√square·entries."""

    square: Text
    entries: list[Text]


class GaussianShape(_Optimum, frozen=True, kw_only=True, tag="gaussian-shape"):
    """The best covariance."""

    given: ShapeProblem
    optimum: Enclosure
    covariance: list[list[Text]]
    vertices: list[ShapeVector]
    law: list[Text]
    shares: list[Text]


KINDS: dict[str, Any] = {
    "audit": Audit,
    "sequential-audit": SequentialAudit,
    "one-run-audit": OneRunAudit,
    "count-noise": CountNoise,
    "integer-noise": IntegerNoise,
    "gaussian-shape": GaussianShape,
}
"""The certificates that have a kind; one without is of a claim."""
