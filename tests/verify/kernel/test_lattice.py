"""Lattices against exact fractions: both ends are on their sides, at every ε, and not far apart."""

from __future__ import annotations

from fractions import Fraction
from itertools import product as pairs

import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay.verifier.kernel import lattice, laws, noises
from dpassay.verifier.kernel.compositions import diluted, sampled
from dpassay.verifier.kernel.numbers import Budget, NotProved, ball, precision

WEIGHTS = st.lists(st.integers(0, 9), min_size=2, max_size=4).filter(any)


def _law(p: list[int], q: list[int]) -> tuple[list[Fraction], list[Fraction]]:
    size = min(len(p), len(q))
    p, q = p[:size], q[:size]
    if not any(p) or not any(q):
        p, q = [1] * size, [1] * size
    return [Fraction(x, sum(p)) for x in p], [Fraction(x, sum(q)) for x in q]


def _table(p: list[Fraction], q: list[Fraction]) -> laws.Law:
    exact = [tuple(fmpq(x.numerator, x.denominator) for x in row) for row in zip(p, q, strict=True)]
    return laws.table(exact)  # type: ignore[arg-type]


def _truth(p: list[Fraction], q: list[Fraction], count: int, factor: arb) -> arb:
    """Return H of a product by the sum over all outcomes."""
    total = arb(0)
    for outcome in pairs(range(len(p)), repeat=count):
        a, b = Fraction(1), Fraction(1)
        for i in outcome:
            a, b = a * p[i], b * q[i]
        gain = ball(fmpq(a.numerator, a.denominator)) - factor * fmpq(b.numerator, b.denominator)
        total += gain.max(arb(0))
    return total


@settings(max_examples=60, deadline=None)
@given(WEIGHTS, WEIGHTS, st.integers(1, 3), st.integers(-20, 20), st.integers(1, 40))
def test_products_of_tables(p: list[int], q: list[int], count: int, at: int, fine: int) -> None:
    masses = _law(p, q)
    epsilon = fmpq(at, 10)
    with precision(384):
        law, truth = _table(*masses), _truth(*masses, count, ball(epsilon).exp())
        for upper in (True, False):
            step = fmpq(1, fine)
            factors = [((law,), count)]
            measure = lattice.compose(factors, step, 96, Budget(), upper=upper)
            found = measure.delta(epsilon)
            slack = arb(2) ** -60
            if upper:
                assert found.upper() >= truth.lower() - slack
            else:
                assert found.lower() <= truth.upper() + slack


@settings(max_examples=6, deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(-10, 20))
def test_one_release_by_every_law(size: int, fine: int, at: int) -> None:
    t, epsilon = fmpq(size, 10), fmpq(at, 10)
    with precision(384):
        smooth = laws.gaussian(t)
        for law in (
            smooth,
            laws.laplace(t),
            noises.logistic(t),
            sampled(smooth, fmpq(1, 10)),
            diluted(smooth, fmpq(1, 10)),
            sampled(laws.laplace(t), fmpq(1, 3)),
            laws.swapped(sampled(smooth, fmpq(1, 10))),
            noises.discrete_laplace(fmpq(2), size),
            noises.discrete_gaussian(fmpq(4), size),
            noises.truncated_laplace(t, t + 1),
            noises.bounded_range(t),
        ):
            truth = ball(law.delta(epsilon))
            step = fmpq(1, fine)
            high = lattice.compose([((law,), 1)], step, 84, Budget(), upper=True)
            assert high.delta(epsilon).upper() >= truth.lower() - arb(2) ** -50, law.name
            try:
                low = lattice.compose([((law,), 1)], step, 84, Budget(), upper=False)
            except NotProved:
                continue
            assert low.delta(epsilon).lower() <= truth.upper(), law.name


def test_swapping_is_diluting_and_sampling_from_the_other_side() -> None:
    with precision(256):
        mu, q = fmpq(3, 2), fmpq(1, 7)
        other, back = diluted(laws.gaussian(mu), q), laws.swapped(sampled(laws.gaussian(mu), q))
        for at in (-3, -1, 0, 1):
            loss = fmpq(at, 10)
            for a, b in zip(back.at(loss), other.at(loss), strict=True):
                assert a.overlaps(b)
                assert a.rad() < 1e-60


@pytest.mark.parametrize(
    ("law", "count", "step", "wide"),
    [
        (lambda: laws.gaussian(fmpq(1, 10)), 100, fmpq(1, 512), 3e-4),
        (lambda: laws.laplace(fmpq(1, 10)), 100, fmpq(1, 640), 4e-5),
        (lambda: sampled(laws.gaussian(fmpq(1)), fmpq(1, 50)), 50, fmpq(1, 1024), 2e-2),
        (lambda: diluted(laws.gaussian(fmpq(1)), fmpq(1, 50)), 50, fmpq(1, 1024), 4e-2),
    ],
)
def test_both_ends_are_close(law, count: int, step: fmpq, wide: float) -> None:  # type: ignore[no-untyped-def]
    with precision(384):
        ends = [
            lattice.compose([((law(),), count)], step, 96, Budget(), upper=upper).delta(fmpq(1, 2))
            for upper in (False, True)
        ]
        assert ends[0].lower() <= ends[1].upper()
        assert ends[1].upper() - ends[0].lower() <= wide * ends[1]


def test_a_gaussian_composition_has_its_exact_value_inside() -> None:
    with precision(384):
        law, whole = laws.gaussian(fmpq(1, 10)), laws.gaussian(fmpq(1))
        for at in (0, 1, 3):
            truth = ball(whole.delta(fmpq(at)))
            factors = [((law,), 100)]
            low, high = (
                lattice.compose(factors, fmpq(1, 512), 96, Budget(), upper=upper).delta(fmpq(at))
                for upper in (False, True)
            )
            assert low.lower() <= truth.lower()
            assert truth.upper() <= high.upper()
