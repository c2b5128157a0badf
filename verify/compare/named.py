"""Mechanisms that the user names as candidates: do they fit the workload that they are put to?"""

from __future__ import annotations

from functools import partial, singledispatch

from accountant.core.adjacency import Adjacency
from accountant.core.mechanism import Mechanism
from accountant.errors import InvalidInputError, NotApplicableError
from accountant.geometry.workload import (
    BoundedSum,
    Count,
    Counts,
    GroupedCounts,
    KeyedCounts,
    PrefixSums,
    Selection,
    Workload,
)
from accountant.mechanisms.additive.gaussian import Gaussian
from accountant.mechanisms.additive.laplace import Laplace
from accountant.mechanisms.additive.laplace_vector import LaplaceVector
from accountant.mechanisms.counting.bounded_count_noise import BoundedCountNoise
from accountant.mechanisms.counting.discrete_kary_tree import DiscreteKaryTree
from accountant.mechanisms.counting.kary_tree import KaryTree
from accountant.mechanisms.counting.linear_counter import LinearCounter
from accountant.mechanisms.counting.matrix_mechanism import MatrixMechanism
from accountant.mechanisms.selection.exponential import ExponentialMechanism
from accountant.mechanisms.selection.partition_selection import PartitionSelection
from accountant.mechanisms.selection.permute_and_flip import PermuteAndFlip
from accountant.mechanisms.selection.report_noisy_max import ReportNoisyMax
from accountant.mechanisms.selection.threshold import GaussianThreshold, LaplaceThreshold
from accountant.mechanisms.shapes.correlated import CorrelatedGaussian
from accountant.mechanisms.shapes.count_ellipse import CountEllipse
from accountant.mechanisms.shapes.disjoint_groups import DisjointGroupsGaussian
from accountant.mechanisms.shapes.elliptical import EllipticalGaussian
from accountant.mechanisms.shapes.general_gaussian import GeneralGaussian
from accountant.mechanisms.shapes.matrix_variate import MatrixVariateGaussian
from accountant.mechanisms.shapes.one_sided import OneSidedGaussian
from accountant.mechanisms.shapes.optimal_ellipse import OptimalEllipse
from accountant.mechanisms.shapes.optimal_groups import OptimalGroups
from accountant.mechanisms.shapes.rank_one_gaussian import RankOneGaussian
from accountant.numbers.exact import ExactReal, exact
from verify.compare.budget import Budget
from verify.compare.candidate import Candidate, Layout, fixed
from verify.compare.sensitivity import l1_sensitivity, l2_sensitivity, moved


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
        repr(mechanism),
        "as given",
        partial(fixed, mechanism, layout=layout, copies=copies),
        as_published=True,
    )


@singledispatch
def _copies(mechanism: Mechanism, workload: Workload, budget: Budget) -> int:
    """Return how many answers move at once, each by the sensitivity of a scalar mechanism."""
    given = getattr(mechanism, "sensitivity", None)
    if mechanism.dimension > 1 or given is None:
        raise NotApplicableError(
            f"It is not known how {type(mechanism).__name__} would release {workload!r}. "
            "Name a mechanism that adds noise to the answers."
        )
    mechanism.variances()  # refuses noise that depends on the answer
    return _scalar_copies(mechanism, exact(given), workload, budget)


@_copies.register(Gaussian)
@_copies.register(RankOneGaussian)
@_copies.register(MatrixVariateGaussian)
def _(
    mechanism: Gaussian | RankOneGaussian | MatrixVariateGaussian,
    workload: Workload,
    budget: Budget,
) -> int:
    _require_size(mechanism, workload)
    _require_at_least(
        mechanism, "l2_sensitivity", mechanism.l2_sensitivity, l2_sensitivity(workload, budget)
    )
    return 1


@_copies.register
def _(mechanism: Laplace, workload: Workload, budget: Budget) -> int:
    if isinstance(workload, (Counts, GroupedCounts)):
        one = ExactReal.of_rational(1)
        if mechanism.l1_sensitivity == one:
            return moved(workload, budget)
    _require_at_least(
        mechanism, "l1_sensitivity", mechanism.l1_sensitivity, l1_sensitivity(workload, budget)
    )
    return 1


@_copies.register
def _(mechanism: BoundedCountNoise, workload: Workload, budget: Budget) -> int:
    return _scalar_copies(mechanism, ExactReal.of_rational(1), workload, budget)


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


@_copies.register(CorrelatedGaussian)
@_copies.register(OptimalEllipse)
@_copies.register(CountEllipse)
def _(
    mechanism: CorrelatedGaussian | OptimalEllipse | CountEllipse,
    workload: Workload,
    budget: Budget,
) -> int:
    if not isinstance(workload, Counts):
        raise NotApplicableError(f"{type(mechanism).__name__} releases Counts, not {workload!r}.")
    ellipse = not isinstance(mechanism, CorrelatedGaussian)
    if ellipse and budget.adjacency is not Adjacency.ADD_REMOVE:
        raise NotApplicableError(f"{type(mechanism).__name__} is for adjacency='add-remove'.")
    _require(mechanism, "dimension", mechanism.dimension, workload.dimension)
    sparsity = mechanism.dimension if not ellipse else mechanism.sparsity  # type: ignore[union-attr]  # an ellipse
    if sparsity < workload.sparsity:
        raise InvalidInputError(
            f"{mechanism!r} is for at most {sparsity} ones in a record; the workload has "
            f"sparsity={workload.sparsity}."
        )
    return 1


@_copies.register(DisjointGroupsGaussian)
@_copies.register(OptimalGroups)
def _(mechanism: DisjointGroupsGaussian | OptimalGroups, workload: Workload, budget: Budget) -> int:
    if not isinstance(workload, GroupedCounts):
        raise NotApplicableError(
            f"{type(mechanism).__name__} releases GroupedCounts, not {workload!r}."
        )
    wanted = (workload.groups, workload.dimension)
    each = mechanism.counts if isinstance(mechanism, OptimalGroups) else mechanism.dimension
    _require(mechanism, "(groups, dimension)", (mechanism.groups, each), wanted)
    return 1


@_copies.register(EllipticalGaussian)
@_copies.register(LaplaceVector)
def _(mechanism: EllipticalGaussian | LaplaceVector, workload: Workload, budget: Budget) -> int:
    if not isinstance(workload, BoundedSum):
        raise NotApplicableError(f"{type(mechanism).__name__} releases BoundedSum here.")
    name = "sensitivities" if isinstance(mechanism, EllipticalGaussian) else "shifts"
    given = getattr(mechanism, name)
    _require(mechanism, f"len({name})", len(given), len(workload.bounds))
    for index, (own, bound) in enumerate(zip(given, workload.bounds, strict=True)):
        wanted = ExactReal.of_rational(bound)
        _require_at_least(mechanism, f"{name}[{index}]", own, wanted)
    return 1


@_copies.register
def _(mechanism: OneSidedGaussian, workload: Workload, budget: Budget) -> int:
    if not isinstance(workload, BoundedSum) or workload.signed:
        raise NotApplicableError("OneSidedGaussian releases BoundedSum(…, signed=False).")
    _require(mechanism, "len(bounds)", len(mechanism.bounds), len(workload.bounds))
    for index, (own, bound) in enumerate(zip(mechanism.bounds, workload.bounds, strict=True)):
        _require_at_least(mechanism, f"bounds[{index}]", own, ExactReal.of_rational(bound))
    return 1


@_copies.register
def _(mechanism: GeneralGaussian, workload: Workload, budget: Budget) -> int:
    _require(mechanism, "dimension", mechanism.dimension, workload.answers)
    return 1


@_copies.register(DiscreteKaryTree)
@_copies.register(KaryTree)
@_copies.register(LinearCounter)
@_copies.register(MatrixMechanism)
def _(
    mechanism: DiscreteKaryTree | KaryTree | LinearCounter | MatrixMechanism,
    workload: Workload,
    budget: Budget,
) -> int:
    if not isinstance(workload, PrefixSums):
        raise NotApplicableError(
            f"{type(mechanism).__name__} releases PrefixSums, not {workload!r}."
        )
    _require(mechanism, "steps", mechanism.steps, workload.steps)
    return 1


@_copies.register(ExponentialMechanism)
@_copies.register(PermuteAndFlip)
@_copies.register(ReportNoisyMax)
def _(
    mechanism: ExponentialMechanism | PermuteAndFlip | ReportNoisyMax,
    workload: Workload,
    budget: Budget,
) -> int:
    if not isinstance(workload, Selection):
        raise NotApplicableError(f"{type(mechanism).__name__} chooses by scores, not {workload!r}.")
    if isinstance(mechanism, ReportNoisyMax):
        _require(mechanism, "candidates", mechanism.candidates, workload.candidates)
    _require_at_least(mechanism, "sensitivity", mechanism.sensitivity, workload.sensitivity)
    if mechanism.monotone and not workload.monotone:
        _require(mechanism, "monotone", mechanism.monotone, workload.monotone)
    return 1


@_copies.register(PartitionSelection)
@_copies.register(LaplaceThreshold)
@_copies.register(GaussianThreshold)
def _(
    mechanism: PartitionSelection | LaplaceThreshold | GaussianThreshold,
    workload: Workload,
    budget: Budget,
) -> int:
    if not isinstance(workload, KeyedCounts):
        raise NotApplicableError(f"{type(mechanism).__name__} releases KeyedCounts here.")
    if isinstance(mechanism, PartitionSelection):
        _require(mechanism, "partitions", 1, workload.partitions)
        return 1
    if mechanism.partitions < workload.partitions:
        _require(mechanism, "partitions", mechanism.partitions, workload.partitions)
    _require_at_least(mechanism, "sensitivity", mechanism.sensitivity, workload.sensitivity)
    return 1


def _require_size(mechanism: Mechanism, workload: Workload) -> None:
    if mechanism.dimension > 1:
        _require(mechanism, "dimension", mechanism.dimension, workload.answers)


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
            f"answers of this workload by so much. It is {own}."
        )
