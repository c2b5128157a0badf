"""What users name: mechanisms as candidates (do they fit the workload?), and comparison files."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from dpassay.accountant import notation
from dpassay.accountant.budget.target import read_target
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.counting.count_noise import BoundedCountNoise
from dpassay.accountant.counting.counters import LinearCounter
from dpassay.accountant.counting.matrix import MatrixMechanism
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.geometry.workload import (
    BoundedSum,
    Count,
    Counts,
    GroupedCounts,
    PrefixSums,
    Selection,
    Workload,
)
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.additive.laplace import Laplace
from dpassay.accountant.mechanisms.additive.laplace_vector import LaplaceVector
from dpassay.accountant.mechanisms.selection.candidates import (
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
)
from dpassay.accountant.mechanisms.shapes.correlated import (
    CorrelatedGaussian,
    DisjointGroupsGaussian,
    OneSidedGaussian,
)
from dpassay.accountant.mechanisms.shapes.ellipses import (
    CountEllipse,
    EllipticalGaussian,
    OptimalEllipse,
    OptimalGroups,
)
from dpassay.accountant.mechanisms.shapes.general_gaussian import (
    GeneralGaussian,
    MatrixVariateGaussian,
    RankOneGaussian,
)
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.verifier.compare.candidate import (
    Budget,
    Candidate,
    Layout,
    fixed,
    l1_sensitivity,
    l2_sensitivity,
    moved,
)

W = TypeVar("W", bound=Workload)


def named(mechanism: Mechanism, workload: Workload, budget: Budget) -> Candidate:
    """Return a mechanism that the user named, to be judged with the noise that it has.

    Raises
    ------
    InvalidInputError
        If its dimension or sensitivity is not that of the workload.
    NotApplicableError
        If it is not known how the mechanism would release the workload.
    """
    copies = _copies(mechanism, workload, budget)
    layout = Layout.EACH if mechanism.dimension == 1 else Layout.JOINT
    if isinstance(workload, PrefixSums) and mechanism.dimension > 1:
        layout = Layout.STREAM
    return Candidate(
        str(mechanism),
        "as given",
        partial(fixed, mechanism, layout=layout, copies=copies),
        as_published=True,
    )


def _copies(mechanism: Mechanism, workload: Workload, budget: Budget) -> int:
    """Return how many answers move at once, each by the sensitivity of a scalar mechanism."""
    match mechanism:
        case Gaussian() | RankOneGaussian() | MatrixVariateGaussian():
            if mechanism.dimension > 1:
                _require(mechanism, "dimension", mechanism.dimension, workload.answers)
            wanted = l2_sensitivity(workload, budget)
            _require_at_least(mechanism, "l2_sensitivity", mechanism.l2_sensitivity, wanted)
        case Laplace():
            own, known = mechanism.l1_sensitivity, l1_sensitivity(workload, budget)
            if isinstance(workload, (Counts, GroupedCounts)) and own == ExactReal.of_rational(1):
                return moved(workload, budget)
            _require_at_least(mechanism, "l1_sensitivity", own, known)
        case BoundedCountNoise():
            return _scalar_copies(mechanism, ExactReal.of_rational(1), workload, budget)
        case CorrelatedGaussian() | OptimalEllipse() | CountEllipse():
            _require_counts(mechanism, _as(Counts, workload, mechanism), budget)
        case DisjointGroupsGaussian() | OptimalGroups():
            groups = _as(GroupedCounts, workload, mechanism)
            each = mechanism.counts if isinstance(mechanism, OptimalGroups) else mechanism.dimension
            sizes = (groups.groups, groups.dimension)
            _require(mechanism, "(groups, dimension)", (mechanism.groups, each), sizes)
        case EllipticalGaussian(sensitivities=given):
            _require_bounds(mechanism, "sensitivities", given, workload)
        case LaplaceVector(shifts=given):
            _require_bounds(mechanism, "shifts", given, workload)
        case OneSidedGaussian(bounds=given):
            if not isinstance(workload, BoundedSum) or workload.signed:
                raise NotApplicableError("OneSidedGaussian releases BoundedSum(…, signed=False).")
            _require_bounds(mechanism, "bounds", given, workload)
        case GeneralGaussian():
            _require(mechanism, "dimension", mechanism.dimension, workload.answers)
        case LinearCounter() | MatrixMechanism():
            steps = _as(PrefixSums, workload, mechanism).steps
            _require(mechanism, "steps", mechanism.steps, steps)
        case ExponentialMechanism() | PermuteAndFlip() | ReportNoisyMax():
            if not isinstance(workload, Selection):
                raise NotApplicableError(
                    f"{type(mechanism).__name__} chooses by scores, not {workload!r}."
                )
            if isinstance(mechanism, ReportNoisyMax):
                _require(mechanism, "candidates", mechanism.candidates, workload.candidates)
            _require_at_least(mechanism, "sensitivity", mechanism.sensitivity, workload.sensitivity)
            if mechanism.monotone and not workload.monotone:
                _require(mechanism, "monotone", mechanism.monotone, workload.monotone)
        case _:
            return _noise_copies(mechanism, workload, budget)
    return 1


def _noise_copies(mechanism: Mechanism, workload: Workload, budget: Budget) -> int:
    """Return the same for other scalar noise that has a sensitivity."""
    sensitivity = getattr(mechanism, "sensitivity", None)
    if mechanism.dimension > 1 or sensitivity is None:
        raise NotApplicableError(
            f"It is not known how {type(mechanism).__name__} would release {workload!r}. "
            "Name a mechanism that adds noise to the answers."
        )
    mechanism.variances()  # refuses noise that depends on the answer
    return _scalar_copies(mechanism, exact(sensitivity), workload, budget)


def _scalar_copies(
    mechanism: Mechanism, sensitivity: ExactReal, workload: Workload, budget: Budget
) -> int:
    """Return the counts that one record moves, where noise is added to each."""
    if isinstance(workload, Count):
        wanted = ExactReal.of_rational(workload.sensitivity)
        _require_at_least(mechanism, "sensitivity", sensitivity, wanted)
        return 1
    if isinstance(workload, (Counts, GroupedCounts)):
        return moved(workload, budget)
    raise NotApplicableError(f"{type(mechanism).__name__} is noise for counts, not {workload!r}.")


def _as(kind: type[W], workload: Workload, mechanism: Mechanism) -> W:
    """Return a workload of the only kind that a mechanism releases."""
    if not isinstance(workload, kind):
        raise NotApplicableError(
            f"{type(mechanism).__name__} releases {kind.__name__}, not {workload!r}."
        )
    return workload


def _require_counts(
    mechanism: CorrelatedGaussian | OptimalEllipse | CountEllipse, workload: Counts, budget: Budget
) -> None:
    sparsity = mechanism.dimension
    if not isinstance(mechanism, CorrelatedGaussian):
        sparsity = mechanism.sparsity
        if budget.adjacency is not Adjacency.ADD_REMOVE:
            raise NotApplicableError(f"{type(mechanism).__name__} is for adjacency='add-remove'.")
    _require(mechanism, "dimension", mechanism.dimension, workload.dimension)
    if sparsity < workload.sparsity:
        raise InvalidInputError(
            f"{mechanism!r} is for at most {sparsity} ones in a record; the workload has "
            f"sparsity={workload.sparsity}."
        )


def _require_bounds(
    mechanism: Mechanism, name: str, given: Sequence[ExactReal], workload: Workload
) -> None:
    bounds = _as(BoundedSum, workload, mechanism).bounds
    _require(mechanism, f"len({name})", len(given), len(bounds))
    for index, (own, bound) in enumerate(zip(given, bounds, strict=True)):
        _require_at_least(mechanism, f"{name}[{index}]", own, ExactReal.of_rational(bound))


def _require(mechanism: Mechanism, name: str, own: object, wanted: object) -> None:
    if own != wanted:
        raise InvalidInputError(
            f"Expected {name}={wanted} of {type(mechanism).__name__}, as the workload has, "
            f"not {own}."
        )


def _require_at_least(
    mechanism: Mechanism, name: str, own: ExactReal, wanted: ExactReal | None
) -> None:
    if wanted is None:
        raise NotApplicableError(
            f"The workload has no exact {name}, which {type(mechanism).__name__} needs."
        )
    if own < wanted:
        raise InvalidInputError(
            f"Expected {name} ≥ {wanted} of {type(mechanism).__name__}: one person can change the "
            f"answers of this workload by that much. It is {own}."
        )


Text = str | int
_WORKLOADS = (
    "Write one such as Count(), Counts(dimension=1000, sparsity=10), "
    "BoundedSum(bounds=[1, 2, 8]) or PrefixSums(steps=1000000)."
)


class BudgetTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[budget]."""

    epsilon: Text | None = None
    delta: Text | None = None
    mu: Text | None = None
    rho: Text | None = None
    profile: str | None = None
    adjacency: str = "add-remove"
    releases: int = 1
    sampling_prob: Text = 1

    def read(self) -> Budget:
        """Return the budget."""
        target = read_target(msgspec.structs.asdict(self))
        return Budget(target, self.adjacency, self.releases, self.sampling_prob)


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A comparison, as a file or a command line states it."""

    schema_version: int
    budget: BudgetTable
    workload: str
    candidates: list[str] = []
    only: list[str] = []
    metrics: list[str] | None = None

    def __post_init__(self) -> None:
        if self.schema_version != 1:
            raise ValueError(f"schema_version={self.schema_version} is not 1")

    def read(self) -> dict[str, Any]:
        """Return the arguments of `compare`."""
        return {
            "budget": self.budget.read(),
            "workload": read_workload(self.workload),
            "candidates": [notation.parse(text) for text in self.candidates],
            "only": self.only,
            "metrics": self.metrics or None,
        }


def read_file(path: Path) -> Document:
    """Read a comparison file.

    Raises InvalidInputError naming the file and the field that is wrong.
    """
    try:
        found = msgspec.convert(tomllib.loads(path.read_text("utf-8"), parse_float=str), Document)
        found.read()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise InvalidInputError(f"{path}: {error}") from None
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from error
    return found


def read_workload(text: str) -> Workload:
    """Read a workload in its notation."""
    found = notation.parse_description(text, noun="workload", remedy=_WORKLOADS)
    if isinstance(found, Mechanism) or not isinstance(found, Workload):
        raise InvalidInputError(f"Expected a workload, not {text!r}. {_WORKLOADS}")
    return found
