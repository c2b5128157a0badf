"""Bounds over all shifts of two norms, against shifts, and against plans that are not good."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx

from accountant.composition.exact.laplace_product import of_counts, of_distances
from accountant.geometry.shifts.line import Line, line_bound
from accountant.geometry.shifts.plan import LinePlan, log_factor, plan
from accountant.numbers.exact import ExactReal, exact
from tests.quick import quick

SETS = [
    ("1", "0.4", "0.5"),
    *(
        pytest.param(*each, marks=pytest.mark.slow)
        for each in (("2", "1", "1"), ("3", "1.2", "2"), ("4", "0.8", "1"))
    ),
    ("2", "1", "0"),
]


def delta(sizes: list[Fraction], epsilon: str) -> arb:
    pair = of_distances([ExactReal.of_rational(size) for size in sizes])
    with ctx.workprec(64):
        return pair.hockey_stick(exact(epsilon))


def random_shift(first: Fraction, second: Fraction, chosen: random.Random) -> list[Fraction]:
    """Return up to nine sizes in the set that attain a norm, nearly; often some of them equal."""
    power = chosen.choice([0.2, 1, 3])
    sizes = [
        Fraction(round(1000 * chosen.random() ** power) + 1) for _ in range(chosen.randint(1, 9))
    ]
    if chosen.random() < 0.5:
        sizes = [chosen.choice(sizes[:2]) for _ in sizes]
    norm = Fraction(math.sqrt(sum(size**2 for size in sizes)) * (1 + 1e-12))
    factor = min(first / sum(sizes), second / norm)
    unit = Fraction(1, 10**6)
    return [size * factor // unit * unit for size in sizes]


@pytest.mark.parametrize(("first", "second", "epsilon"), quick(SETS, 1))
def test_no_shift_is_above_the_bound(first: str, second: str, epsilon: str) -> None:
    bound = line_bound(exact(first), exact(second), exact(epsilon))
    chosen = random.Random(f"{first} {second} {epsilon}")
    for _ in range(100):
        sizes = random_shift(Fraction(first), Fraction(second), chosen)
        assert delta(sizes, epsilon) <= bound


@pytest.mark.parametrize(
    ("first", "second", "epsilon", "factor"),
    [
        pytest.param("2.4", "0.24", "1", 1.05, marks=pytest.mark.slow),
        pytest.param("2.5", "0.25", "0.5", 1.05, marks=pytest.mark.slow),
        pytest.param("4", "0.8", "3", 1.13, marks=pytest.mark.slow),
        pytest.param("100", "sqrt(10)", "20", 1.005, marks=pytest.mark.slow),
        ("2", "1", "1", 1.5),
    ],
)
def test_the_bound_is_near_equal_sizes(
    first: str, second: str, epsilon: str, factor: float
) -> None:
    kappa = exact(first).square / exact(second).square
    assert kappa.denominator == 1
    size = exact(first) / ExactReal.of_rational(kappa)
    with ctx.workprec(64):
        equal = of_counts({size: int(kappa)}).hockey_stick(exact(epsilon))
    bound = line_bound(exact(first), exact(second), exact(epsilon))
    assert equal <= bound <= equal * factor


def spoiled(good: LinePlan, chosen: random.Random) -> LinePlan:
    """Return a plan with other supports, rows, smoothing and step."""
    rows = tuple(
        tuple(
            cut
            and replace(
                cut, support=replace(cut.support, moment=cut.support.moment + chosen.uniform(-1, 1))
            )
            for cut in row
        )
        for row in good.cuts
    )
    return replace(
        good,
        cuts=rows[: chosen.randint(1, len(rows))],
        smoothing=good.smoothing * chosen.uniform(0.5, 2),
        step=good.step * chosen.uniform(0.7, 1.4),
        line=good.line * chosen.uniform(0.8, 1.2),
    )


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second", "epsilon"), SETS[:4])
def test_a_bad_plan_gives_a_larger_bound_not_a_wrong_one(
    first: str, second: str, epsilon: str
) -> None:
    chosen = random.Random(7)
    good = plan(float(first), float(second), float(epsilon))
    assert good is not None
    kappa = math.ceil((float(first) / float(second)) ** 2 - 1e-9)
    size = min(Fraction(first) / kappa, Fraction(second) / Fraction(math.sqrt(kappa) * (1 + 1e-9)))
    attained = delta([size] * kappa, epsilon)
    for _ in range(6):
        with ctx.workprec(96):
            bound = Line(
                exact(first).ball(),
                exact(second).ball(),
                exact(epsilon).ball(),
                spoiled(good, chosen),
            ).bound()
        assert attained <= bound


@pytest.mark.parametrize(("first", "second", "epsilon"), SETS[:4])
def test_every_node_is_bounded_for_shifts_of_both_norms(
    first: str, second: str, epsilon: str
) -> None:
    """Re F at k equal sizes beside another one, of both norms, in the cells of their A."""
    one, two, eps = float(first), float(second), float(epsilon)
    good = plan(one, two, eps)
    assert good is not None
    c, s = good.line, good.smoothing
    top = (one / two) ** 2 * float(log_factor(two**2 / one, np.array(complex(c))).real)
    seen = 0
    with ctx.workprec(96):
        line = Line(arb(one), arb(two), arb(eps), good)
        nodes = [line.node(k * arb(good.step), row) for k, row in enumerate(good.cuts[:12], 1)]
    for k in range(1, 60):
        room = k * ((k + 1) * two**2 - one**2)
        if room < 0:
            continue
        for sign in (-1, 1):
            other = (one + sign * math.sqrt(room)) / (k + 1)
            each = (one - other) / k
            if min(other, each) <= 0:
                continue
            moment = [
                k * log_factor(each, z) + log_factor(other, z)
                for z in (np.array(complex(c, j * good.step)) for j in range(len(nodes) + 1))
            ]
            a = top - float(moment[0].real)
            cells = [j for j, (low, high) in enumerate(pairwise(good.ends)) if low <= a <= high]
            for j, lines in enumerate(nodes, 1):
                z = complex(c, j * good.step)
                whole = complex(moment[j]) + z * (z + 1) * s * s / 2 - z * eps
                value = (np.exp(whole) / (z * (z + 1))).real
                for cell in [*cells, -1]:
                    seen += 1
                    exponent = float(lines[cell][0].upper()) - lines[cell][1] * a
                    assert value <= math.exp(exponent) * (1 + 1e-9)
    assert seen > 100


def test_no_plan_very_near_the_pure_guarantee() -> None:
    assert not line_bound(exact(2), exact(1), exact("1.99999")).is_finite()
