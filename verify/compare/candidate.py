"""A way to release a workload, calibrated to a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, final

from dpassay.accountant.budget.calibrate import calibrate
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.geometry.workload import Workload
from dpassay.accountant.mechanisms.shapes.correlated import DisjointGroupsGaussian
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.numbers.interval import Interval
from dpassay.verifier.compare.budget import Budget


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
        schedule=budget.schedule,
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
    if budget.schedule:
        raise NotApplicableError("Its noise is given: no schedule scales it.")
    release = mechanism if copies == 1 else Composed(mechanism, copies)
    return Calibrated(mechanism, budget.whole(release), layout, bound=bound, bound_for=bound_for)
