"""Our own mechanisms as targets: the dataset is the true answer, the output answer + noise.

`neighbours` names the pairs of true answers at which the worst case is attained, so that a
mechanism is audited as it is; for one whose worst shift is not listed here the caller names two
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import InvalidInputError
from accountant.mechanism import Mechanism
from accountant.mechanisms import (
    BoundedCountNoise,
    Composed,
    CorrelatedGaussian,
    CountEllipse,
    DiscreteGaussian,
    DiscreteLaplace,
    EllipticalGaussian,
    Gaussian,
    IntegerNoise,
    KaryTree,
    Laplace,
    LaplaceVector,
    MatrixVariateGaussian,
    OptimalEllipse,
    PoissonSubsampled,
    RandomizedResponse,
    RankOneGaussian,
    Staircase,
    Tabulated,
    TruncatedGeometric,
)

Array: TypeAlias = NDArray[Any]
Pair: TypeAlias = tuple[Any, Any]


@final
@dataclass(frozen=True)
class MechanismTarget:
    """A mechanism of this package; a dataset is a true answer (of a composition: one per part)."""

    mechanism: Mechanism

    @property
    def name(self) -> str:
        """Its notation."""
        return repr(self.mechanism)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Array:
        """Draw `size` releases of the true answer `dataset`."""
        return _release(self.mechanism, dataset, size, rng)


def _release(mechanism: Mechanism, answer: Any, size: int, rng: np.random.Generator) -> Array:
    """Draw releases, one per row."""
    if isinstance(mechanism, Tabulated):
        law = mechanism if answer == 0 else Tabulated(mechanism.q, mechanism.p)
        return law.sample(size, rng=rng)
    if isinstance(mechanism, RandomizedResponse):
        report: Array = (mechanism.sample(size, rng=rng) + int(answer)) % mechanism.categories
        return report
    if isinstance(mechanism, TruncatedGeometric):
        return mechanism.release(int(answer), size, rng=rng)
    if isinstance(mechanism, PoissonSubsampled):
        return _subsampled(mechanism, answer, size, rng)
    if isinstance(mechanism, Composed):
        return _composed(mechanism, answer, size, rng)
    if type(mechanism).lattice_sampler is not Mechanism.lattice_sampler:  # no floating-point leaks
        return mechanism.lattice_sampler().release(answer, size, rng=rng)
    released: Array = mechanism.sample(size, rng=rng) + np.asarray(answer)
    return released


def _subsampled(
    mechanism: PoissonSubsampled, answer: Any, size: int, rng: np.random.Generator
) -> Array:
    """Run the mechanism on the answer where the record is taken, and on 0 where it is not."""
    taken = rng.random(size) < float(mechanism.sampling_prob)
    present, absent = int(taken.sum()), int(size - taken.sum())
    inner = mechanism.mechanism
    with_record = _release(inner, answer, present, rng)
    without = _release(inner, _nothing(answer), absent, rng)
    released: Array = np.empty((size, *with_record.shape[1:]), with_record.dtype)
    released[taken], released[~taken] = with_record, without
    return released


def _nothing(answer: Any) -> Any:
    if isinstance(answer, (list, tuple)):
        return [_nothing(entry) for entry in answer]
    return np.zeros_like(np.asarray(answer))


def _composed(mechanism: Composed, answer: Any, size: int, rng: np.random.Generator) -> Array:
    columns = []
    for (part, count), own in zip(mechanism.parts(), answer, strict=True):
        drawn = _release(part, own, size * count, rng)
        columns.append(drawn.reshape(size, -1))
    return np.hstack(columns)


def neighbours(mechanism: Mechanism) -> list[Pair]:
    """Return the pairs of true answers (without, with the record) at which the worst is attained.

    Raises InvalidInputError for a mechanism whose worst shift is not listed.
    """
    if isinstance(mechanism, (Tabulated, RandomizedResponse)):
        return [(0, 1)]
    if isinstance(mechanism, TruncatedGeometric):
        middle = (mechanism.low + mechanism.high) // 2
        ends = (mechanism.low, middle, mechanism.high - 1)
        return [(count, count + 1) for count in dict.fromkeys(ends)]
    if isinstance(mechanism, PoissonSubsampled):
        return [(_nothing(shift), shift) for _, shift in neighbours(mechanism.mechanism)]
    if isinstance(mechanism, Composed):
        parts = [neighbours(part)[-1] for part, _ in mechanism.parts()]
        return [(tuple(pair[0] for pair in parts), tuple(pair[1] for pair in parts))]
    if isinstance(mechanism, IntegerNoise):
        return [(0, shift) for shift in range(1, mechanism.sensitivity + 1)]
    shift = _shift(mechanism)
    if shift is None:
        raise InvalidInputError(
            f"No worst pair of true answers is listed for {type(mechanism).__name__}. "
            "Name two with pairs=[(answer, neighbouring answer)]."
        )
    return [(np.zeros_like(np.asarray(shift)), shift)]


def _shift(mechanism: Mechanism) -> Any:
    """Return the difference of the true answers that is worst, None where it is not listed."""
    for kind, rule in _SHIFTS.items():
        if isinstance(mechanism, kind):
            return rule(mechanism)
    return None


def _unit(length: int, size: float) -> Array:
    vector = np.zeros(length)
    vector[0] = size
    return vector


def _ones(length: int, count: int) -> Array:
    vector = np.zeros(length)
    vector[:count] = 1
    return vector


def _floats(entries: Sequence[Any]) -> Array:
    return np.array([float(entry) for entry in entries])


_SHIFTS: dict[type, Callable[[Any], Any]] = {
    Gaussian: lambda m: float(m.l2_sensitivity),
    Laplace: lambda m: float(m.l1_sensitivity),
    DiscreteLaplace: lambda m: int(m.sensitivity),
    DiscreteGaussian: lambda m: int(m.sensitivity),
    Staircase: lambda m: float(m.sensitivity),
    BoundedCountNoise: lambda m: 1,
    LaplaceVector: lambda m: _floats(m.shifts),
    EllipticalGaussian: lambda m: _floats(m.sensitivities),
    RankOneGaussian: lambda m: _unit(m.dimension, float(m.l2_sensitivity)),
    CorrelatedGaussian: lambda m: np.ones(m.dimension + int(m.release_size)),
    KaryTree: lambda m: np.ones(m.steps),
    CountEllipse: lambda m: _ones(m.dimension, m.sparsity),
    OptimalEllipse: lambda m: _ones(m.dimension, m.sparsity),
    MatrixVariateGaussian: lambda m: _unit(
        m.row_covariance.dimension * m.column_covariance.dimension, float(m.l2_sensitivity)
    ),
}
