"""The noise of a training run by how its batches are made, each with its own neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.geometry.workload import Training
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.training import dpsgd_noise
from dpassay.verifier.compare.budget import Budget
from dpassay.verifier.compare.candidate import Calibrated, Candidate, Layout, LeftOut, calibrated

_NOISE = "standard_deviation"


def schemes(workload: Training, budget: Budget) -> Iterator[Candidate | LeftOut]:
    """Yield every way to make batches of which a guarantee is proved."""
    if budget.total_releases > 1 or budget.is_sampled:
        raise NotApplicableError(
            "Training states its own steps and batches: leave releases and sampling_prob out."
        )
    yield Candidate(
        "Poisson batches (add-remove)",
        "every step takes each record independently; neighbours: one record added or removed",
        partial(_searched, workload=workload, sampling="poisson", adjacency=Adjacency.ADD_REMOVE),
    )
    yield Candidate(
        "random allocation (add-remove)",
        "every record is in one step of each epoch, chosen by itself; neighbours: one record added "
        "or removed",
        partial(
            _searched,
            workload=workload,
            sampling="random-allocation",
            adjacency=Adjacency.ADD_REMOVE,
        ),
    )
    yield Candidate(
        "batches without replacement (replace-one)",
        "every step draws a new subset of one size; neighbours: one record replaced",
        partial(
            _searched,
            workload=workload,
            sampling="without-replacement",
            adjacency=Adjacency.REPLACE_ONE,
        ),
    )
    yield Candidate(
        "each record once an epoch (zero-out)",
        "shuffled or fixed batches: no gain by sampling is proved; neighbours differ in a record "
        "whose gradient is 0 in one of them",
        partial(_once, epochs=workload.epochs),
    )


def _searched(
    budget: Budget, *, workload: Training, sampling: str, adjacency: Adjacency
) -> Calibrated:
    """Find the noise of sampled batches."""
    spent = budget.epsilon_delta
    if spent is None:
        raise NotApplicableError(
            "The noise of sampled batches is calibrated to (epsilon, delta) only."
        )
    run = dpsgd_noise(
        spent.epsilon,
        workload.batch_size,
        workload.dataset_size,
        delta=spent.delta,
        epochs=workload.epochs,
        sampling=sampling,
    )
    noise = Gaussian(run.noise_multiplier)
    return Calibrated(noise, run.mechanism, Layout.EACH, argument=_NOISE, adjacency=adjacency)


def _once(budget: Budget, *, epochs: int) -> Calibrated:
    """Find the noise with which an epoch is one Gaussian release of what a record adds."""
    together = replace(budget, releases=epochs, adjacency=Adjacency.ADD_REMOVE)
    return replace(calibrated("Gaussian", together, Layout.EACH), adjacency=Adjacency.ADD_REMOVE)
