"""Lists of losses beside contour integrals: what is small takes little, and the sum is the same."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb, ctx

from accountant.composition.choose import Ladder
from accountant.composition.conditional import CONDITIONAL
from accountant.composition.product import Product
from accountant.core.adjacency import Adjacency
from accountant.core.mechanism import Mechanism
from accountant.mechanisms import (
    Composed,
    Gaussian,
    Guaranteed,
    MixtureOfGaussians,
    PoissonSubsampled,
    Staircase,
)
from accountant.numbers.exact import ExactReal, exact
from accountant.numbers.interval import asked_width, narrowed
from accountant.questions import profile
from tests.quick import quick

BOTH = Adjacency.ADD_REMOVE
NINE = Fraction(1, 10**9)
STEP = PoissonSubsampled(Gaussian(standard_deviation=1), "0.01")
WHOLE = Composed([Composed(Staircase(epsilon=1, gamma="0.3"), 10), Composed(STEP, 200)])
LEAKY = Composed([Guaranteed(epsilon="1/3", delta="1e-9"), Composed(STEP, 50)], 4)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Fraction]:
    """Note the widths that contour integrals are asked for."""
    found: list[Fraction] = []
    before = Ladder.profile

    def noted(self: Ladder, product: Product, epsilon: ExactReal) -> arb:
        found.append(asked_width.get() or Fraction(0))
        return before(self, product, epsilon)

    monkeypatch.setattr(Ladder, "profile", noted)
    return found


@pytest.mark.parametrize(
    ("mechanism", "epsilon"), quick([(WHOLE, "5"), (WHOLE, "11"), (LEAKY, "5")], 2)
)
def test_the_sum_is_the_same(mechanism: Mechanism, epsilon: str, asked: list[Fraction]) -> None:
    pair = mechanism.worst_case(BOTH).remove[0]
    assert isinstance(pair, Product)
    assert pair.engine == CONDITIONAL
    with ctx.workprec(64):
        plain = pair.hockey_stick(exact(epsilon))
        terms = len(asked)
        with narrowed(NINE):
            found = pair.hockey_stick(exact(epsilon))
        bound = pair.bound(exact(epsilon))
    assert found.overlaps(plain)
    assert 2 * found.rad() < 2e-9 * found
    assert len(asked) - terms <= terms
    assert max(asked) > NINE
    assert not bound < found


def test_a_mixture_of_normal_laws_composes() -> None:
    """Pairs that know their loss at a point are not taken for pairs with a transform."""
    noise = MixtureOfGaussians(1, [0, 1], ["1/2", "1/2"])
    both = Composed(noise, 2)
    found = profile.delta(both, "1/2", adjacency="add-remove", relative_width=Fraction(1, 1000))
    assert found.overlaps(
        profile.delta(
            both, "1/2", adjacency="add-remove", method="grid", relative_width=Fraction(1, 10)
        )
    )
