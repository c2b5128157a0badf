from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant.composition.exact.laplace_product import of_distances
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.pair import Tails
from dpassay.accountant.mechanisms import Composed, Laplace
from dpassay.accountant.notation import parse
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import enclose
from dpassay.accountant.questions import profile
from dpassay.accountant.reference import LaplaceProduct
from tests.near import mpf, narrow
from tests.quick import quick

CASES: list[tuple[list[Number], list[str]]] = [
    (["3/2"], ["0", "1/3", "-1", "-1.5"]),
    ([2, 2], ["0", "1", "3.9", "-4", "-1"]),
    (["sqrt(2)", "sqrt(8)"], ["0.3", "sqrt(2)", "-2"]),
]


def product(distances: Sequence[Number]) -> Product:
    return of_distances([exact(distance) for distance in distances])


def all_four(tails: Tails) -> list[arb]:
    return [tails.p_above, tails.p_below, tails.q_above, tails.q_below]


@pytest.mark.parametrize(
    ("distances", "epsilons"), quick([*CASES, ([1, "1/3", "1/2"], ["2/5", "-2/5", "-5/6"])], 0)
)
def test_two_routes_agree(distances: list[Number], epsilons: list[str]) -> None:
    pair = product(distances)
    for epsilon in epsilons:
        eps = exact(epsilon)
        delta = enclose(lambda eps=eps: pair.hockey_stick(eps))  # type: ignore[misc]
        p_above = enclose(lambda eps=eps: pair.tails(eps).p_above)  # type: ignore[misc]
        q_above = enclose(lambda eps=eps: pair.tails(eps).q_above)  # type: ignore[misc]
        with mpmath.workdps(45):
            known = LaplaceProduct(tuple(Counter(exact(d).mpf() for d in distances).items()))
            assert abs(mpf(delta) - known.hockey_stick(eps.mpf())) < 1e-30
            assert abs(mpf(p_above) - known.integrate(lambda p, _: p, eps.mpf())) < 1e-30
            assert abs(mpf(q_above) - known.integrate(lambda _, q: q, eps.mpf())) < 1e-30


@pytest.mark.parametrize("order", ["1.5", "7"])
def test_renyi_divergences_agree(order: str) -> None:
    pair = product([1, "1/3"])
    value = enclose(lambda: pair.renyi(exact(order).ball()))
    with mpmath.workdps(45):
        known = LaplaceProduct(((mpmath.mpf(1), 1), (mpmath.mpf(1) / 3, 1)))
        assert abs(mpf(value) - known.renyi(exact(order).mpf())) < 1e-30


distance_lists = st.lists(st.fractions(0, 3, max_denominator=6), min_size=1, max_size=7)


@given(distance_lists, st.fractions(-8, 8, max_denominator=12))
def test_tails_are_consistent(distances: list[Fraction], epsilon: Fraction) -> None:
    pair, eps = product(list(distances)), ExactReal.of_rational(epsilon)
    with ctx.workprec(200):
        tails, delta = pair.tails(eps), pair.hockey_stick(eps)
        for ball in (*all_four(tails), delta):
            assert ball.rel_accuracy_bits() >= 190
        assert (tails.p_above + tails.p_below).contains(1)
        assert (tails.q_above + tails.q_below).contains(1)
        assert delta.overlaps(tails.p_above - eps.ball().exp() * tails.q_above)
        # −L under Q has the law of L under P: exact where ε is no atom, ≤ where it may be one
        assert tails.q_below <= pair.tails(-eps).p_above + arb("1e-50") + _atom(pair, -eps)


def _atom(pair: Product, epsilon: ExactReal) -> arb:
    tiny = ExactReal.of_rational(Fraction(epsilon.rational or 0) - Fraction(1, 10**80))
    return pair.tails(tiny).p_above - pair.tails(epsilon).p_above + arb("1e-60")


@given(distance_lists, st.fractions(-8, 8, max_denominator=12), st.integers(0, 6))
def test_delta_increases_with_every_distance(
    distances: list[Fraction], epsilon: Fraction, which: int
) -> None:
    larger = list(distances)
    larger[which % len(larger)] += Fraction(1, 7)
    eps = ExactReal.of_rational(epsilon)
    before = product(list(distances)).hockey_stick(eps)
    assert before <= product(list(larger)).hockey_stick(eps) + arb("1e-12")


def test_a_thousand_equal_distances_and_a_tiny_delta() -> None:
    pair = product(["1/100"] * 1000)
    delta = enclose(lambda: pair.hockey_stick(exact("9.99")))
    assert str(delta.lower).startswith("6.22435825952082")
    assert delta.upper.adjusted() == -303
    # the last jump alone: all coordinates on the atom +t, within (T − ε)/2 of it
    leading = (1 - mpmath.exp(mpmath.mpf("-0.01"))) * mpmath.mpf(2) ** -1000
    assert mpf(delta) >= leading


@pytest.mark.parametrize(("scale", "count", "delta"), [("100", 300, "1e-3"), ("100", 300, "1e-12")])
def test_many_releases_to_a_wide_width(scale: str, count: int, delta: str) -> None:
    """A grid and the sums, which answer to finer widths, agree."""
    noise = Composed(Laplace(scale=scale), count=count)
    fine = profile.epsilon(noise, delta)
    wide = profile.epsilon(noise, delta, relative_width=Fraction(1, 10**6))
    assert wide.lower <= fine.upper
    assert fine.lower <= wide.upper
    assert narrow(wide, Fraction(1, 10**6))
    fine, wide = (
        profile.delta(noise, str(fine.lower), relative_width=Fraction(1, 10**digits))
        for digits in (9, 6)
    )
    assert wide.lower <= fine.lower
    assert fine.upper <= wide.upper
    assert narrow(wide, Fraction(1, 10**6))


def test_many_releases_beyond_a_grid() -> None:
    """Beside the largest loss a grid says nothing, and the sums are asked."""
    pair = product(["1/100"] * 300).to_width(Fraction(1, 10**6))
    found = mpf(enclose(lambda: pair.hockey_stick(exact("2.999")), relative_width=Fraction(1, 100)))
    # only the atom on T = 3 lies above 2.98
    assert found >= (1 - mpmath.exp("-0.001")) * mpmath.mpf(2) ** -300
    assert found <= mpmath.mpf(2) ** -290


def test_shifts_without_a_common_grid() -> None:
    """Between the same rounded down and up to one, as delta grows with each shift."""
    shifts = [Fraction(100 + i * i + 7 * i, 4001) for i in range(30)]
    pair, eps = product(shifts), exact("2")
    found = enclose(lambda: pair.hockey_stick(eps), relative_width=Fraction(1, 10**4))
    ends = [
        product([Fraction(round_(shift * 20), 20) for shift in shifts]).hockey_stick(eps)
        for round_ in (math.floor, math.ceil)
    ]
    assert ends[0] < found.ball()
    assert ends[1] > found.ball()
    with ctx.workprec(100):
        tails = pair.tails(eps)
        assert tails.p_above - eps.ball().exp() * tails.q_above < 2 * found.ball()


@pytest.mark.parametrize("log_delta", [-3.0, -40.0, -100.0])
def test_estimates_of_epsilon_are_near(log_delta: float) -> None:
    pair = product([exact("1/10")] * 200 + [exact("1/5")] * 10)
    near = pair.known.epsilon(log_delta)
    assert near is not None
    # the slope of ln H is below 1e3 here, and the estimate aims at 1e-11 of ε ≤ 24
    assert abs(pair.hockey_stick(exact(Fraction(near))).log() - log_delta) < 1e-6


def test_a_grid_answers_where_the_coefficients_are_long() -> None:
    """They have as many bits as there are releases: such a sum took more than a minute."""
    began = time.process_time()
    found = profile.epsilon(Composed(Laplace(scale=20000), 100_000), "1e-5")
    assert time.process_time() - began < 20
    assert narrow(found, Fraction(1, 10**6))


@pytest.mark.parametrize("kinds", [15, 17, 18, 20])
def test_many_different_scales_are_summed_where_few_signs_reach_epsilon(kinds: int) -> None:
    scales = ", ".join(f"Laplace({5 + i})" for i in range(kinds))
    mechanism = parse(f"Composed([{scales}])")
    rough = profile.epsilon(mechanism, "1e-6", relative_width="1e-6")
    fine = profile.epsilon(mechanism, "1e-6", relative_width="1e-20")
    assert rough.overlaps(fine)
    assert fine < sum(Fraction(1, 5 + i) for i in range(kinds))
    delta = profile.delta(mechanism, fine.upper, relative_width="1e-9")
    assert delta.lower <= Fraction(1, 10**6) < Fraction(delta.upper) * (1 + Fraction(1, 10**8))
