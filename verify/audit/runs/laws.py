"""Our own mechanisms as targets: the dataset is the true answer, the output answer + noise.

A mechanism says itself at which true answers its worst case is attained (`worst_answers`) and how
its outputs are drawn (`outputs`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.noise import GaussianNoise
from dpassay.accountant.errors import DpassayError, InvalidInputError
from dpassay.accountant.mechanisms.additive.laplace import LaplaceNoise
from dpassay.accountant.mechanisms.shapes.rank_one_gaussian import RankOneGaussian

Pair: TypeAlias = tuple[Any, Any]
_MOST_ENTRIES = 400
"""Entries up to which a covariance is inverted."""


@final
@dataclass(frozen=True)
class MechanismTarget:
    """A mechanism of this package; a dataset is a true answer (of a composition: one per part)."""

    mechanism: Mechanism
    simulated: bool = False
    """Whether real noise is drawn in floats, in place of the exact release: for estimates, some
    twenty times faster. Then last bits tell nothing of the release, and are left out."""

    @property
    def name(self) -> str:
        """Its notation."""
        return str(self.mechanism)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `size` releases of the true answer `dataset`."""
        if not self.simulated or not self.mechanism.adds_real_noise():
            return self.mechanism.outputs(dataset, size, rng=rng)
        drawn: NDArray[Any] = self.mechanism.sample(size, rng=rng) + np.asarray(dataset)
        return drawn


@final
@dataclass(frozen=True, eq=False)
class Loss:
    """ln p/q of the output of a mechanism whose densities on both answers are known."""

    mechanism: Mechanism
    answers: Pair
    discrete: bool = False

    @property
    def name(self) -> str:
        """What it is."""
        return "privacy loss"

    def __call__(self, outputs: NDArray[Any]) -> NDArray[Any]:
        """Return ln p(output)/q(output), +∞ where it is no number."""
        log_density = _log_density(self.mechanism, outputs.shape[1])
        assert log_density is not None  # `losses` proposed it
        first, second = (
            log_density(outputs - np.asarray(answer, dtype=np.float64)) for answer in self.answers
        )
        with np.errstate(invalid="ignore"):
            return np.asarray(np.nan_to_num(first - second, nan=np.inf))

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"feature": "loss", "mechanism": repr(self.mechanism)}


def losses(target: Any, pair: Pair) -> Callable[[Any, Any], Iterable[Loss]] | None:
    """Return what proposes the privacy loss of a mechanism, where it is written here."""
    if not isinstance(target, MechanismTarget):
        return None
    width = np.size(pair[0])
    if _log_density(target.mechanism, width) is None:
        return None
    loss = Loss(target.mechanism, pair)
    return lambda first, _: [loss] if first.shape[1] == width else []


@functools.lru_cache(maxsize=16)
def _log_density(mechanism: Mechanism, width: int) -> Callable[[NDArray[Any]], NDArray[Any]] | None:
    """Return ln of the density of noise up to a constant; None where one entry tells all."""
    if width < 2:
        return None
    if isinstance(mechanism, RankOneGaussian):
        exponent, variance = mechanism.dimension - 1, 2 * float(mechanism.sigma_star)

        def of_norm(noise: NDArray[Any]) -> NDArray[Any]:
            square = np.einsum("ij,ij->i", noise, noise)
            with np.errstate(divide="ignore"):
                found: NDArray[Any] = -exponent / 2 * np.log(square) - square / variance
            return found

        return of_norm
    if isinstance(mechanism, LaplaceNoise):
        scale = float(mechanism.scale)
        return lambda noise: -np.abs(noise).sum(axis=1) / scale
    if isinstance(mechanism, GaussianNoise) and width <= _MOST_ENTRIES:
        try:
            covariance = np.array(mechanism.covariance_matrix(), dtype=np.float64)
        except DpassayError:
            return None
        if len(covariance) == 1:
            covariance = covariance[0, 0] * np.eye(width)
        if len(covariance) == width:
            inverse = np.linalg.pinv(covariance, hermitian=True)
            return lambda noise: -np.einsum("ij,ij->i", noise @ inverse, noise) / 2
    return None


def neighbours(mechanism: Mechanism) -> list[Pair]:
    """Return the pairs of true answers (without, with the record) at which the worst is attained.

    Raises InvalidInputError for a mechanism that lists none.
    """
    found = mechanism.worst_answers()
    if not found:
        raise InvalidInputError(
            f"No worst pair of true answers is listed for {type(mechanism).__name__}. "
            "Name two with pairs=[(answer, neighbouring answer)]."
        )
    return found
