"""β(α) from values of the profile agrees with β(α) from tails and from exact sums."""

from __future__ import annotations

from fractions import Fraction

import pytest

from accountant.core.mechanism import Mechanism
from accountant.mechanisms import Composed, Gaussian, PoissonSubsampled
from accountant.notation import parse
from accountant.questions.tradeoff import beta, power
from tests.near import narrow
from tests.quick import quick

COARSE, MIDDLE, FINE = (Fraction(1, 10**digits) for digits in (6, 10, 12))
BOTH = "add-remove"


def sampled(sigma: str, q: str, count: int) -> Composed:
    return Composed(PoissonSubsampled(Gaussian(standard_deviation=sigma), q), count)


CASES: list[tuple[Mechanism, str]] = [
    (sampled("0.8", "0.01", 1000), "1e-3"),
    (sampled("2", "0.1", 300), "1/2"),
]


@pytest.mark.parametrize(("mechanism", "level"), quick(CASES, 1))
def test_values_and_tails_agree(mechanism: Mechanism, level: str) -> None:
    for ask in (beta, power):
        fine = ask(mechanism, level, adjacency=BOTH, relative_width=FINE)
        for width in (COARSE, MIDDLE):
            found = ask(mechanism, level, adjacency=BOTH, relative_width=width)
            assert found.overlaps(fine)
            assert narrow(found, width)


def test_atoms_on_a_grid() -> None:
    """At ±700 nothing is cut off that a float tells: the laws are those of Laplace noise."""
    known = beta(parse("Composed(Laplace(scale='6.6'), 5)"), "0.01")
    cut = parse("Composed(TruncatedLaplace(scale='6.6', bound=700), 5)")
    assert beta(cut, "0.01", relative_width=COARSE).overlaps(known)
