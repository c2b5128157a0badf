"""Random allocation of noise whose loss has few values, against all sequences of outcomes."""

from __future__ import annotations

import itertools
import math

import pytest

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import DpassayError
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteLaplace,
    Laplace,
    RandomAllocation,
    TruncatedLaplace,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.questions import profile

RELATION = Adjacency.ADD_REMOVE


def worst(mechanism: Mechanism) -> Pair:
    (pair,) = mechanism.worst_case(RELATION).remove
    return pair


def brute_force(inner: Mechanism, steps: int, taken: int, epsilon: float) -> float:
    """H(ε) over all sequences of outcomes and all sets of steps."""
    listed = worst(RandomAllocation(inner, 1, 1) if steps == 1 else inner)
    from dpassay.accountant.pairs.finite import finite

    few = finite(listed)
    assert few is not None
    p, q = ([float(mass) for mass in masses] for masses in few.source.masses(few.index))
    sets = list(itertools.combinations(range(steps), taken))
    found = 0.0
    for outcomes in itertools.product(range(len(p)), repeat=steps):
        without = math.prod(q[v] for v in outcomes)
        with_record = sum(
            math.prod(p[v] if i in chosen else q[v] for i, v in enumerate(outcomes))
            for chosen in sets
        ) / len(sets)
        found += max(with_record - math.exp(epsilon) * without, 0.0)
    return found


@pytest.mark.parametrize(("steps", "taken"), [(2, 1), (3, 1), (4, 2), (5, 3)])
@pytest.mark.parametrize("shift", [1, 2])
def test_all_sequences_of_outcomes(steps: int, taken: int, shift: int) -> None:
    inner = DiscreteLaplace(1, shift)
    found = worst(RandomAllocation(inner, steps, taken)).hockey_stick(exact("1/5"))
    wanted = brute_force(inner, steps, taken, 0.2)
    assert float(found) == pytest.approx(wanted, rel=1e-12, abs=0)


def test_epochs_of_few_values_are_composed() -> None:
    run = RandomAllocation(DiscreteLaplace(1), 20, 2)
    one, two = (
        profile.delta(mechanism, "1/2", adjacency=RELATION) for mechanism in (run, Composed(run, 2))
    )
    assert one.upper < two.lower


@pytest.mark.parametrize(
    "run",
    [RandomAllocation(Laplace(1), 9), RandomAllocation(TruncatedLaplace(2, 20), 5)],
    ids=repr,
)
def test_what_is_not_known_is_refused(run: RandomAllocation) -> None:
    with pytest.raises(DpassayError, match="few values"):
        run.worst_case(RELATION)
