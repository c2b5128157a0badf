from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import mpmath
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from accountant.numbers.exact import ExactReal, exact
from accountant.numbers.interval import Interval
from accountant.pairs.finite import Balls, FiniteLaws, FinitePair


@dataclass(frozen=True)
class Table(FiniteLaws):
    """Two rational laws."""

    p: tuple[Fraction, ...]
    q: tuple[Fraction, ...]

    def outcomes(self, index: int) -> Sequence[object]:
        return range(len(self.p))

    def rational_masses(self, index: int) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
        return self.p, self.q


@dataclass(frozen=True)
class Tilted(FiniteLaws):
    """Masses 1/(1 + e^ε) and e^ε/(1 + e^ε), exchanged; the losses are known to be ∓ε."""

    epsilon: ExactReal
    known: bool

    def outcomes(self, index: int) -> Sequence[object]:
        return ("left", "right")

    def masses(self, index: int) -> tuple[Balls, Balls]:
        e = self.epsilon.ball().exp()
        return [1 / (1 + e), e / (1 + e)], [e / (1 + e), 1 / (1 + e)]

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        return [-self.epsilon, self.epsilon] if self.known else [None, None]


def normalised(counts: list[int]) -> tuple[Fraction, ...]:
    return tuple(Fraction(count, sum(counts)) for count in counts)


tables = st.integers(2, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(1, 9), min_size=n, max_size=n),
        st.lists(st.integers(1, 9), min_size=n, max_size=n),
    )
)


@given(tables=tables, order=st.integers(2, 6))
def test_renyi_divergence_of_integer_order_is_the_exact_sum(
    tables: tuple[list[int], list[int]], order: int
) -> None:
    p, q = normalised(tables[0]), normalised(tables[1])
    pair = FinitePair(Table(p, q), 0)
    moment = sum((a**order / b ** (order - 1) for a, b in zip(p, q, strict=True)), start=Fraction())
    with ctx.workprec(200):
        found = (pair.renyi(arb(order)) * (order - 1)).exp()
        assert moment in Interval.of_ball(found, 80)
        assert found.rel_accuracy_bits() > 150


@given(tables=tables)
def test_kullback_leibler_and_the_largest_loss(tables: tuple[list[int], list[int]]) -> None:
    p, q = normalised(tables[0]), normalised(tables[1])
    pair = FinitePair(Table(p, q), 0)
    with ctx.workprec(200):
        found = Interval.of_ball(pair.kullback_leibler())
    with mpmath.workdps(40):
        expected = mpmath.mpf(0)
        for a, b in zip(p, q, strict=True):
            ratio = a / b
            weight = mpmath.mpf(a.numerator) / a.denominator
            expected += weight * mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert abs(mpmath.mpf(str(found.lower)) - expected) <= mpmath.mpf("1e-35")
    with ctx.workprec(200):
        largest = max(a / b for a, b in zip(p, q, strict=True))
        assert largest in Interval.of_ball(pair.max_loss().exp(), 80)


def test_a_known_loss_decides_the_tie_that_balls_cannot() -> None:
    epsilon = exact("0.7")
    known, unknown = FinitePair(Tilted(epsilon, True), 0), FinitePair(Tilted(epsilon, False), 0)
    with ctx.workprec(128):
        assert known.hockey_stick(epsilon).is_zero()
        assert known.tails(epsilon).p_above.is_zero()
        # honest without it: both sides are possible, and the divergence is still narrow
        tails = unknown.tails(epsilon)
        right = arb("0.7").exp() / (1 + arb("0.7").exp())
        for side in (tails.p_above, tails.p_below):
            assert side.overlaps(right)
        assert tails.p_above.contains(0)
        assert unknown.hockey_stick(epsilon).contains(0)
        assert unknown.hockey_stick(epsilon) < arb("1e-30")
        assert known.max_loss().overlaps(unknown.max_loss())


def test_an_outcome_that_q_cannot_produce() -> None:
    pair = FinitePair(Table(normalised([1, 1, 2, 0]), normalised([1, 1, 0, 2])), 0)
    assert Fraction(1, 2) in Interval.of_ball(pair.hockey_stick(exact("1e30")))
    assert pair.max_loss() == arb.pos_inf()
    assert pair.max_finite_loss().is_zero()
    assert pair.exact_infinity_mass() == exact("1/2")
    with ctx.workprec(128):
        assert pair.renyi(arb(3)) == arb.pos_inf()
        assert pair.reverse().kullback_leibler() == arb.pos_inf()
    assert pair.describe_event(exact(0)) == "the outcomes {2}"
    assert pair.reverse().describe_event(exact(0)) == "the outcomes {3}"
    assert pair.reverse().reverse() == pair
