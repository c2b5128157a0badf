"""Privacy-loss distributions for dp-accounting, proved to lie above or below the profile.

dp-accounting's distribution has masses on the multiples of a step and at infinity, and asks it for
δ(ε) = P(∞) + Σ p(l) (1 − e^{ε−l})⁺. The masses are those of the grid of compositions, whose profile
is proved to lie above that of the release, or below it, also in a product of releases
(`dpassay.accountant.composition.lattice`). What dp-accounting computes from them is in floats
of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dpassay.accountant.composition import lattice
from dpassay.accountant.composition.tails import releases, whole
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import NotApplicableError, expected
from dpassay.accountant.numbers.exact import Number, exact
from dpassay.verifier.claim import Claim
from dpassay.verifier.claims.guarantee import guarantee
from dpassay.verifier.foreign.events import neighbours
from dpassay.verifier.foreign.numbers import attribute, number

_MOST = 1_000_000
"""Cells of a table."""
_FEWEST = 4
"""Cells at least, so that its readers find a range."""
_ROUNDED = 16
"""Times the error of a tail up to which the mass below it is left out of the grid, as rounding."""


@final
@dataclass(frozen=True)
class Masses:
    """A law of the loss on multiples of a step."""

    step: float
    first: int
    """The multiple at which the first mass lies."""
    masses: tuple[float, ...]
    infinity: float
    above: bool
    """Whether it dominates the law that it stands for, else it is dominated by it."""

    def delta(self, epsilon: float) -> float:
        """Return δ(ε), in floats."""
        losses = (self.step * (self.first + i) for i in range(len(self.masses)))
        finite = (
            -mass * math.expm1(epsilon - loss)
            for loss, mass in zip(losses, self.masses, strict=True)
            if loss > epsilon
        )
        return self.infinity + math.fsum(finite)


def masses(
    mechanism: Mechanism,
    *,
    step: float = 1e-2,
    above: bool = True,
    adjacency: Adjacency | str | None = None,
    log_tail: float = -45,
) -> tuple[Masses, Masses]:
    """Return the discretised losses of a mechanism, REMOVE and ADD.

    Parameters
    ----------
    step
        The distance of the losses, a float.
    above
        Whether they dominate the mechanism (pessimistic), or it dominates them (optimistic).
    log_tail
        Logarithm of the mass that may lie above the grid; of the dominating law it is infinite.

    Raises
    ------
    NotApplicableError
        For a mechanism with several worst pairs, or a grid of more than a million points.
    """
    worst = mechanism.worst_case(Adjacency.read(adjacency))
    if len(worst.remove) != 1 or len(worst.add) != 1:
        raise NotApplicableError(
            f"{type(mechanism).__name__} has several worst pairs, so that no one distribution is "
            "worst. Export a table of its profile."
        )
    remove = _of_pair(worst.remove[0], step, log_tail, above=above)
    if worst.add == worst.remove:
        return remove, remove
    return remove, _of_pair(worst.add[0], step, log_tail, above=above)


def privacy_loss_distribution(
    mechanism: Mechanism,
    *,
    step: float = 1e-2,
    pessimistic: bool = True,
    adjacency: Adjacency | str | None = None,
    library: Any = None,
) -> Any:
    """Return a `PrivacyLossDistribution` of dp-accounting.

    The arguments are those of `masses`; `library` is the module `dp_accounting`, None imports it.
    """
    from importlib import import_module

    base = "dp_accounting" if library is None else library.__name__
    pmf = import_module(f"{base}.pld.pld_pmf").DensePLDPmf
    distribution = import_module(f"{base}.pld.privacy_loss_distribution").PrivacyLossDistribution
    remove, add = masses(mechanism, step=step, above=pessimistic, adjacency=adjacency)

    def made(law: Masses) -> Any:
        return pmf(law.step, law.first, np.array(law.masses), law.infinity, pessimistic)

    return distribution(made(remove)) if add is remove else distribution(made(remove), made(add))


def claims(
    distribution: object,
    mechanism: Mechanism,
    epsilons: Sequence[Number],
    relation: object = "ADD_OR_REMOVE_ONE",
) -> list[Claim]:
    """Return what a distribution of dp-accounting says of a mechanism at some ε, as claims."""
    ask = attribute(distribution, "get_delta_for_epsilon")
    assert callable(ask)
    adjacency = neighbours(relation).adjacency.value
    found: list[Claim] = []
    for value in epsilons:
        epsilon = exact(value, "epsilon")
        said = number("delta", ask(float(epsilon)))
        found.append(
            guarantee(
                {"epsilon": epsilon, "delta": said},
                id=f"at-{float(epsilon):g}",
                source=type(distribution).__name__,
                statement=f"({epsilon}, {said})-DP, by the distribution.",
                mechanism=str(mechanism),
                adjacency=adjacency,
            )
        )
    return found


def _of_pair(pair: Pair, step: float, log_tail: float, *, above: bool) -> Masses:
    if not 0 < step < math.inf:
        raise expected("step", step, "> 0")
    (release, count), *others = releases(((pair, 1),))
    if others or count > 1:  # several releases together are asked in balls
        release = whole(pair)
    low, high = lattice.ends(release, log_tail)
    first, last = math.floor(low / step) - 1, math.ceil(high / step) + 1
    last = max(last, first + _FEWEST)
    if last - first > _MOST:
        raise NotApplicableError(
            f"The losses from {low:.4g} to {high:.4g} take {last - first} points at step={step}; "
            f"{_MOST} are the most. Take a larger step."
        )
    index = np.arange(first, last + 1)
    tail = release.survival(step * index)
    rounded = np.count_nonzero(1 - tail.above_p <= _ROUNDED * (tail.error_p + tail.error_q))
    index = index[min(max(rounded - 1, 0), len(index) - _FEWEST) :]
    place = lattice.Place(0.0, step, index)
    if above:
        law = lattice.above(release.survival, place)
    else:
        found = lattice.below(release.survival, place, release.infinity)
        law = found or lattice.GridLaw(0.0, index, 0.0 * index, release.infinity)
    return Masses(step, int(index[0]), tuple(law.masses.tolist()), law.infinity, above)
