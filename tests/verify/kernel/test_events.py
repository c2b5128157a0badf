"""What lies below a mechanism, and rows that are exact: against the accountant's δ."""

from __future__ import annotations

import pytest

from dpassay.accountant.notation import parse as parse_mechanism
from dpassay.accountant.questions.profile import delta
from dpassay.verifier.kernel import quantities
from dpassay.verifier.kernel.expressions import real
from dpassay.verifier.kernel.lemmas import worst
from dpassay.verifier.kernel.notation import parse
from dpassay.verifier.kernel.numbers import Budget, NotProved, ball, precision, rational
from tests.quick import quick

TREE = "BridgedTree(steps=12, arities=[3, 2, 2], {}, contributions={}, released={})"
EXACT = [
    TREE.format("mu=1", 3, "'measurements'"),
    TREE.format("mu=1", 3, "'outputs'"),
    "BridgedTree(steps=12, arities=[3, 2, 2], mu=1, contributions=2, pooled=1)",
    "BinaryTree(steps=15, mu=1)",
]
BETWEEN = [
    "ReportNoisyMax('Laplace', 2, 2)",
    "ReportNoisyMax('Laplace', 1, 2, monotone=True)",
    "ReportNoisyMax('Gaussian', 2, 3)",
    "ReportNoisyMax('Laplace', 2, 5)",
    "Composed(ExponentialMechanism(1), 4)",
    "Composed([PermuteAndFlip(1), Gaussian(2)])",
    "SquareRootFactorization(steps=40, mu=1, contributions=4)",
    TREE.format("epsilon=2", 1, "'measurements'"),
]


def _ends(text: str, epsilon: str) -> tuple[float, float, float, float]:
    with precision(128):
        found = worst(parse(text), None, real, Budget())
    with precision(quantities.LATTICE_BITS if not quantities.is_single(found) else 128):
        found = worst(parse(text), None, real, Budget())
        budget = Budget()
        low = ball(quantities.lower_delta(found, rational(epsilon), budget))
        high = ball(quantities.upper_delta(found, rational(epsilon), budget))
    known = delta(parse_mechanism(text), epsilon, adjacency=None)
    ends = (low.lower(), known.upper, known.lower, high.upper())
    return tuple(float(x) for x in ends)  # type: ignore[return-value]


@pytest.mark.parametrize("text", quick(EXACT + BETWEEN, 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13))
def test_the_ends_are_on_their_sides(text: str) -> None:
    for epsilon in ("0", "1/5", "3/5"):
        low, most, least, high = _ends(text, epsilon)
        assert low <= most * (1 + 1e-12)
        assert least <= high * (1 + 1e-12)
        if text in EXACT:
            assert high - low <= 1e-7


@pytest.mark.parametrize("text", ["PermuteAndFlip(1)", "ReportNoisyMax('Gaussian', 1, 2)"])
def test_one_release_of_each_epsilon_tells_no_divergence(text: str) -> None:
    """Which pair is worst depends on ε, so a divergence of the worst curve refutes nothing."""
    found = worst(parse(text), None, real, Budget())
    with pytest.raises(NotProved):
        quantities.renyi(found, rational("3"))


def test_samples_of_selections_are_not_attained_together() -> None:
    text = "Composed(PoissonSubsampled(ExponentialMechanism(1), '1/2'), 3)"
    with precision(128):
        found = worst(parse(text), "add-remove", real, Budget())
        assert found.lower is not None


def test_a_tree_has_room_for_its_steps() -> None:
    with pytest.raises(Exception, match="room"):
        worst(
            parse("BridgedTree(steps=12, arities=[2, 2], mu=1)"),
            None,
            real,
            Budget(),
        )
