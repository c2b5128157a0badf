"""A budget, a way to release a workload with it, and by how much a person changes the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Any, final

from dpassay.accountant.budget.calibrate import calibrate
from dpassay.accountant.budget.target import EpsilonDelta, Mu, Rho, Target
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import Integer, Probability, Relation
from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.accountant.geometry.workload import (
    BoundedSum,
    Count,
    Counts,
    GroupedCounts,
    LinearQueries,
    MatrixRelease,
    PrefixSums,
    VectorSum,
    Workload,
)
from dpassay.accountant.mechanisms.shapes.correlated import DisjointGroupsGaussian
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.sampling import PoissonSubsampled
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval
from dpassay.verifier.claim import Claim
from dpassay.verifier.claims import guarantee

"""What may be spent: a guarantee for all releases together."""


@final
@dataclass(frozen=True)
class Budget:
    """A guarantee, the neighbouring relation that it is about, and how many releases share it.

    Parameters
    ----------
    target
        `EpsilonDelta`, `Mu` or `Rho`.
    adjacency
        Who is a neighbour. The sensitivities of the workload are those for this relation.
    releases
        How often the whole workload is released, each time with fresh noise; the guarantee is
        for all of them together.
    sampling_prob
        The probability with which a person takes part in a release, independently.
    """

    target: Target
    adjacency: Relation = Relation("add-remove")
    releases: Integer = Integer(1, least=1)
    sampling_prob: Probability = Probability(1)

    def __post_init__(self) -> None:
        target = self.target
        if not isinstance(target, Target):
            raise expected("target", target, "to be a target", "Write epsilon=1, delta=1e-5.")
        if objection := self.target.objection():
            raise InvalidInputError(objection)
        if self.sampling_prob.sign == 0:
            raise InvalidInputError(
                "Expected sampling_prob=0 > 0. With 0 nobody's data is used; leave the query out."
            )
        if self.is_sampled and self.adjacency is not Adjacency.ADD_REMOVE:
            raise InvalidInputError(
                f"Expected adjacency='add-remove' with sampling_prob={self.sampling_prob}, not "
                f"{self.adjacency.value!r}: the exact laws of Poisson subsampling are for it."
            )

    @property
    def is_sampled(self) -> bool:
        """Whether a person may be left out of a release."""
        return self.sampling_prob.rational != 1

    @property
    def epsilon_delta(self) -> EpsilonDelta | None:
        """The target, where it is (ε, δ)-DP."""
        return self.target if isinstance(self.target, EpsilonDelta) else None

    def whole(self, release: Mechanism) -> Mechanism:
        """Return all releases together."""
        one = PoissonSubsampled(release, self.sampling_prob) if self.is_sampled else release
        return one if self.releases == 1 else Composed(one, self.releases)

    def claim(
        self, whole: Mechanism, name: str, adjacency: Adjacency | None = None
    ) -> Claim | None:
        """Return the claim that a mechanism keeps to the budget; None for a profile.

        It is for the budget's neighbouring relation unless another is given.
        """
        kinds = {EpsilonDelta: ("epsilon", "delta"), Mu: ("mu",), Rho: ("rho",)}
        names = kinds.get(type(self.target))
        if names is None:
            return None
        return guarantee(
            {part: getattr(self.target, part) for part in names},
            id=name,
            source="comparison",
            mechanism=str(whole),
            adjacency=(adjacency or self.adjacency).value,
        )

    def __str__(self) -> str:
        relation = self.adjacency.value
        several = f", {self.releases} releases together" if self.releases > 1 else ""
        part = f", each with a {self.sampling_prob} sample" if self.is_sampled else ""
        return f"{self.target} under {relation}{several}{part}"

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "target": str(self.target),
            "adjacency": self.adjacency.value,
            "releases": self.releases,
            "sampling_prob": str(self.sampling_prob),
        }


class Layout(Enum):
    """How the law of a mechanism becomes the noise of the answers."""

    EACH = "each"
    """Every answer has its own independent noise with the scalar law."""
    JOINT = "joint"
    """The first coordinates are the noise of the answers; more may follow, such as a size."""
    STREAM = "stream"
    """Coordinate t is the noise of the t-th prefix sum."""


@final
@dataclass(frozen=True)
class Calibrated:
    """A mechanism with the noise that a budget asks for."""

    mechanism: Mechanism
    """The law of one release: of each answer, or of all, as the layout says."""
    whole: Mechanism
    """What the budget is about: a mechanism as private as all releases together."""
    layout: Layout
    least: Interval | None = None
    """Encloses the noise argument at which the noise is least; None where it is not calibrated."""
    argument: str = ""
    adjacency: Adjacency | None = None
    """The neighbouring relation of its guarantee, where that is not the budget's."""
    bound: Interval | None = None
    """A proved lower bound of the variance of any mechanism of the kind `bound_for`."""
    bound_for: str = ""

    def answer_columns(self, workload: Workload) -> list[int]:
        """Return which coordinates of the mechanism are the answers; others are released too."""
        if isinstance(self.mechanism, DisjointGroupsGaussian):
            row = self.mechanism.dimension + 1
            return [g * row + j for g in range(self.mechanism.groups) for j in range(row - 1)]
        return list(range(workload.answers))


@final
@dataclass(frozen=True)
class Candidate:
    """A named way to release the workload."""

    name: str
    why: str
    """What the law is and why it fits, in one line."""
    make: Callable[[Budget], Calibrated] = field(repr=False)
    as_published: bool = False
    """Whether its noise is a published formula rather than calibrated."""


@final
@dataclass(frozen=True)
class LeftOut:
    """A candidate that does not apply."""

    name: str
    reason: str


def calibrated(
    kind: str, budget: Budget, layout: Layout = Layout.JOINT, *, copies: int = 1, **fixed: Any
) -> Calibrated:
    """Calibrate a mechanism to a budget.

    Parameters
    ----------
    copies
        How many answers, each with its own noise of a scalar law, change by its sensitivity at
        once: one release is then as private as so many releases of the scalar mechanism.
    """
    found = calibrate(
        kind,
        budget.target,
        adjacency=budget.adjacency,
        count=budget.releases * copies,
        sampling_prob=budget.sampling_prob,
        **fixed,
    )
    return Calibrated(found.mechanism, found.whole, layout, found.least, found.argument)


def fixed(
    mechanism: Mechanism,
    budget: Budget,
    layout: Layout,
    *,
    copies: int = 1,
    bound: Interval | None = None,
    bound_for: str = "",
) -> Calibrated:
    """Return a mechanism with the noise that it has, and what is known of its kind."""
    release = mechanism if copies == 1 else Composed(mechanism, copies)
    return Calibrated(mechanism, budget.whole(release), layout, bound=bound, bound_for=bound_for)


Image = tuple[Fraction, Sequence[Fraction]]
"""The vector √square·entries."""


def moved(workload: Counts | GroupedCounts, budget: Budget) -> int:
    """Return how many counts change by 1 at once.

    Under add/remove the ones of a record. Under replace-one those of two records, which in dense
    counts can be no more than all of them, and in groups may lie in two groups.
    """
    if isinstance(workload, Counts):
        ones = workload.sparsity
        both = min(2 * ones, workload.dimension)
    else:
        ones, both = workload.dimension, min(2 * workload.dimension, workload.answers)
    return ones if budget.adjacency is Adjacency.ADD_REMOVE else both


def images(workload: LinearQueries) -> list[Image]:
    """Return W v for the vertices v of the space, those that are not 0."""
    from dpassay.lp.shapes import vertices

    found: list[Image] = []
    for vertex in vertices(workload.space):
        image = [
            sum((w * x for w, x in zip(row, vertex.entries, strict=True)), start=Fraction(0))
            for row in workload.matrix
        ]
        if any(image):
            found.append((vertex.square, image))
    return found


def l2_sensitivity(workload: Workload, budget: Budget) -> ExactReal:
    """Return the largest ℓ2 norm of a change, or the least bound of it that follows."""
    match workload:
        case Count(sensitivity=sensitivity):
            return ExactReal.of_rational(sensitivity)
        case Counts() | GroupedCounts():
            return ExactReal.of_root(Fraction(moved(workload, budget)))
        case BoundedSum(bounds=bounds):
            return ExactReal.of_root(_total(b * b for b in bounds))
        case VectorSum():
            return _l2_bound(workload)
        case MatrixRelease(l2_sensitivity=norm):
            return norm
        case PrefixSums(steps=steps):
            return ExactReal.of_root(Fraction(steps))
        case LinearQueries():
            found = images(workload)
            return ExactReal.of_root(max(square * _total(y * y for y in i) for square, i in found))
    raise TypeError(type(workload).__name__)


def l1_sensitivity(workload: Workload, budget: Budget) -> ExactReal | None:
    """Return the largest ℓ1 norm of a change, or the least bound that follows; None without one.

    Laplace noise of one scale on every answer is no worse for a change of ℓ1 norm T than for one
    answer that moves by T: with f_t the trade-off function of Lap(t) and Lap(0), moving the
    coordinates one after the other gives at least f_s(1 − f_t) (group privacy), and for a location
    family of log-concave density, F(F⁻¹(1 − α) − t), that is f_{s+t}.
    """
    match workload:
        case Count(sensitivity=sensitivity):
            return ExactReal.of_rational(sensitivity)
        case Counts() | GroupedCounts():
            return ExactReal.of_rational(moved(workload, budget))
        case BoundedSum(bounds=bounds):
            return ExactReal.of_rational(_total(bounds))
        case VectorSum():
            return _l1_bound(workload)
        case PrefixSums(steps=steps):
            return ExactReal.of_rational(steps)
        case LinearQueries():
            return max(
                ExactReal.of_root(square) * ExactReal.of_rational(_total(abs(y) for y in image))
                for square, image in images(workload)
            )
    return None


def _l2_bound(workload: VectorSum) -> ExactReal:
    """Return the least of ‖v‖₁, ‖v‖₂, √d‖v‖_∞ and √(‖v‖₁‖v‖_∞)."""
    bounds = [workload.l1_sensitivity, workload.l2_sensitivity]
    if workload.linf_sensitivity is not None:
        bounds.append(workload.linf_sensitivity * ExactReal.of_root(Fraction(workload.dimension)))
        if workload.l1_sensitivity is not None:
            product = workload.l1_sensitivity * workload.linf_sensitivity
            if product.rational is not None:
                bounds.append(ExactReal.of_root(product.rational))
    return min(bound for bound in bounds if bound is not None)


def _l1_bound(workload: VectorSum) -> ExactReal:
    """Return the least of ‖v‖₁, √d‖v‖₂ and d‖v‖_∞."""
    bounds = [workload.l1_sensitivity]
    if workload.l2_sensitivity is not None:
        bounds.append(workload.l2_sensitivity * ExactReal.of_root(Fraction(workload.dimension)))
    if workload.linf_sensitivity is not None:
        bounds.append(workload.linf_sensitivity * ExactReal.of_rational(workload.dimension))
    return min(bound for bound in bounds if bound is not None)


def _total(values: object) -> Fraction:
    return sum(values, start=Fraction(0))  # type: ignore[call-overload,no-any-return]
