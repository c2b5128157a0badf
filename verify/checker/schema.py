"""The strict shape of every kind of certificate: what is unknown or missing is no certificate.

Part of the independent checker: the claims are described a second time, not imported. A text that
is evaluated is printable ASCII without comments, its exponents have five digits at most, and words
are only ever quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from verify import seal

_TEXT = r"^(?![\s\S]*[0-9.][eE][+-]?[0-9_]{6})[\t\n -\"$-\[\]-~]*(?![\s\S])"
_PLAIN = re.compile(_TEXT)
_READ_ELSEWHERE = re.compile(r"(^|\.)(lower|upper|description|outcomes(\[\d+\])?)$")
"""Ends of enclosures, which have a pattern of their own, and words."""
_EXPECTED = "expected plain ASCII without comments, exponents of at most five digits"
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


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shared by everything here."""


class Range(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a variable ranges over."""

    statement: Words = ""
    low: Text | None = None
    above: Text | None = None
    high: Text | None = None
    below: Text | None = None
    integer: bool = False


class Domain(Range, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same, and where it is looked at."""

    grid: Grid


class _Claim(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
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
    argument: Words = ""
    lemmas: list[Words] = []
    proof: dict[str, Any] | Literal["", "sweep"] = {}
    expected: Literal["", "REFUTED"] = ""


class _Privacy(_Claim, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class Optimality(_Claim, frozen=True, kw_only=True, tag="optimality"):
    """A value that no rival beats."""

    value: Text
    lower_bound: Text = ""
    competitor: Text = ""
    tolerance: Text = "0"


AnyClaim: TypeAlias = (
    ApproximateDP | PureDP | GaussianDP | RenyiDP | ZeroConcentratedDP | Profile | Tradeoff
    | Relation | PrintedNumber | Monotone | Limit | Minimiser | Optimality
)  # fmt: skip


class Point(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A point (ε, δ)."""

    epsilon: Text
    delta: Text


class Guarantee(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an audit tests."""

    kind: Literal["epsilon-delta", "gaussian", "mechanism", "profile"]
    description: Words
    points: list[Point]
    parameter: Text


class Counts(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was counted."""

    design: Literal["sides", "guesses"]
    hits: Count
    runs: Count
    misses: Count
    other_runs: Count


class Partition(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Cells by their edges or by their values."""

    edges: list[float] | None = None
    values: list[float] | None = None


class Event(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cells that make up an event."""

    feature: dict[str, Any]
    name: Words
    favours: Literal["first", "second"]
    description: Words
    partition: Partition
    marks: list[Literal[-1, 0, 1]]
    opposite: Words = ""


class Replay(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is needed to draw the runs of an audit again."""

    target: Words
    samples: Count
    pairs: list[Annotated[list[Words], Meta(min_length=2, max_length=2)]] | None
    search: Words | None
    adjacency: Words | None
    device: Words | None


class _Tested(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
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
    training_runs: Count
    spared: Share
    histogram: Annotated[list[list[Count]], Meta(min_length=2, max_length=2)]


class Round(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class Enclosure(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two exact numbers."""

    lower: Text
    upper: Text


class _Optimum(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """Shared by the optima."""

    schema_version: Literal[1]
    seal: dict[str, str] = {}


class CountProblem(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What count noise was asked for."""

    epsilon: Text | None
    ratio: Text | None
    eta: Text
    support: Count
    min_count: Count
    max_count: Count | None
    objective: Literal["singular", "true-delta"]


class CountLaw(
    _Strict, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"start": "from"}
):
    """The law for some counts."""

    start: Count
    to: Count | None
    lowest: Whole
    probabilities: Annotated[list[Text], Meta(min_length=1)]


class CountDual(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class IntegerProblem(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class _Space(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
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


class ShapeProblem(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a Gaussian shape was asked for."""

    space: Box | FiniteSet | SparseBox | L2Ball | DisjointGroups
    objective: Literal["total", "worst"]
    weights: list[Text]


class ShapeVector(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    "count-noise": CountNoise,
    "integer-noise": IntegerNoise,
    "gaussian-shape": GaussianShape,
}
"""The certificates that have a kind; one without is of a claim."""

LAWS: dict[str, tuple[str, ...]] = {
    "gaussian": ("mu",),
    "laplace": ("distance",),
    "laplace-product": ("unit", "multiples"),
    "discrete-laplace": ("scale", "shift"),
    "discrete-gaussian": ("parameter", "shift"),
    "finite": ("outcomes", "p", "q"),
    "rank-one-gaussian": ("dimension", "ratio"),
    "subsampled": ("sampling_prob", "mixture", "pair"),
    "gaussian-mixture": ("p", "q"),
    "product": ("counts", "factors"),
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
        if leaf[:1] in ("{", "["):
            try:
                wrong = bool(_not_plain(json.loads(leaf)))
            except (ValueError, RecursionError):
                wrong = True
        else:
            wrong = not _PLAIN.search(leaf)
        if wrong:
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
