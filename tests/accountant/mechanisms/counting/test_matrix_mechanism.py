from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay.accountant import notation
from dpassay.accountant.errors import AdjacencyError, NotApplicableError
from dpassay.accountant.mechanisms import (
    BufferedToeplitz,
    Composed,
    Gaussian,
    MatrixMechanism,
    PoissonSubsampled,
    SquareRootFactorization,
)
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.questions import accuracy, guarantees, profile
from tests.near import narrow
from tests.quick import quick

Matrix = list[list[Fraction]]
SCHEMAS = [
    ("single", None, None),
    ("cyclic", 1, None),
    ("cyclic", 3, None),
    ("cyclic", 4, 2),
    ("min-separation", 1, 3),
    ("min-separation", 1, None),
    ("min-separation", 2, None),
    ("min-separation", 3, 3),
    ("min-separation", 5, None),
]
N = 12


def matrix(strategy: Any, n: int, bands: int | None = None) -> Matrix:
    """Write out C, by its definition."""
    if isinstance(strategy, list) and isinstance(strategy[0], list):
        return [[Fraction(entry) for entry in row] for row in strategy]
    if strategy == "identity":
        c = [Fraction(1)]
    elif strategy == "square-root":
        c = [Fraction(1)]
        for j in range(1, n):
            c.append(c[-1] * Fraction(2 * j - 1, 2 * j))
    elif isinstance(strategy, BufferedToeplitz):
        pairs = list(zip(strategy.output_scales, strategy.decays, strict=True))
        c = [Fraction(1), *(sum((w * t**i for w, t in pairs), Fraction(0)) for i in range(n))]
    else:
        c = [Fraction(entry) for entry in strategy]
    c = [*c[:bands], *[Fraction(0)] * n][:n]
    return [[c[i - j] if j <= i else Fraction(0) for j in range(n)] for i in range(n)]


def patterns(n: int, schema: str, b: int | None, k: int | None) -> Iterator[tuple[int, ...]]:
    """Yield every set of steps that a record may take part in."""
    most = n if k is None else k
    for size in range(1, (1 if schema == "single" else most) + 1):
        for steps in itertools.combinations(range(n), size):
            gaps = [y - x for x, y in itertools.pairwise(steps)]
            if all(gap == b if schema == "cyclic" else gap >= (b or 0) for gap in gaps):
                yield steps


def by_brute_force(
    c: Matrix, schema: str, b: int | None, k: int | None
) -> tuple[Fraction, Fraction]:
    """Return the largest ‖Σ ±C_i‖² over patterns and signs, and the largest Σ |⟨C_i, C_j⟩|."""
    below = lcm(*(entry.denominator for row in c for entry in row))
    whole = np.array([[int(entry * below) for entry in row] for row in c], dtype=object)
    gram = whole.T @ whole
    lower = upper = 0
    for steps in patterns(len(c), schema, b, k):
        own = gram[np.ix_(steps, steps)]
        above = np.abs(own).sum()
        upper = max(upper, above)
        if own.min() >= 0:
            lower = max(lower, above)
        elif above > lower:
            for signs in itertools.product([1, -1], repeat=len(steps) - 1):
                signed = np.array((1, *signs), dtype=object)
                lower = max(lower, signed @ own @ signed)
    return Fraction(lower, below**2), Fraction(upper, below**2)


def full(entry: Any) -> Matrix:
    return [[Fraction(entry(i, j)) if j <= i else Fraction(0) for j in range(N)] for i in range(N)]


STRATEGIES: dict[str, tuple[Any, int | None]] = {
    "identity": ("identity", None),
    "square root": ("square-root", None),
    "banded square root": ("square-root", 3),
    "rising Toeplitz": ([1, 2, "7/2"], None),
    "signed Toeplitz": ([1, "-1/2", "1/4", "-1/8"], None),
    "momentum": ([Fraction(9, 10) ** j for j in range(N)], None),
    "two buffers": (BufferedToeplitz(["0.31", "0.17"], ["0.95", "0.4"]), None),
    "banded rows": (full(lambda i, j: Fraction(1 + (3 * i + j) % 5, 4) if i - j < 3 else 0), None),
    "dense rows": (full(lambda i, j: Fraction(1 + (5 * i + 3 * j) % 7, 6)), None),
    "late rows": (full(lambda i, j: Fraction(1 + i + j * j, 9)), None),
    "signed rows": (full(lambda i, j: Fraction(1 - 2 * (j % 2)) * (2 + (i + j) % 3) / 4), None),
}
"""Strategies of twelve steps."""


@pytest.mark.parametrize("name", STRATEGIES)
def test_sensitivities_are_those_of_all_patterns(name: str) -> None:
    """Exact rationals on both sides; an alternating column's signs are found."""
    strategy, bands = STRATEGIES[name]
    c = matrix(strategy, N, bands)
    for schema, b, k in SCHEMAS:
        made = MatrixMechanism(strategy, 1, N, schema, separation=b, participations=k, bands=bands)
        if (schema, b, k) == ("min-separation", 1, None) and "signed" in name:
            continue  # signs of 4095 patterns take seconds
        lower, upper = by_brute_force(c, schema, b, k)
        if lower < upper:
            assert name == "signed Toeplitz"
            found = made.sensitivity()
            assert Fraction(found.lower) ** 2 <= lower
            assert Fraction(found.upper) ** 2 >= upper
        else:
            assert made.column_sensitivity.exact == lower, (schema, b, k)
        assert notation.parse(repr(made)) == made


numbers = st.integers(-8, 8).map(lambda eighths: Fraction(eighths, 4))


@st.composite
def mechanisms(draw: st.DrawFn) -> MatrixMechanism:
    n = draw(st.integers(1, 6))
    entry = draw(st.sampled_from([numbers, numbers.map(abs)]))
    diagonal = numbers.filter(bool)
    strategy: Any
    if draw(st.booleans()):
        strategy = [
            [draw(entry) if j < i else draw(diagonal) if i == j else 0 for j in range(n)]
            for i in range(n)
        ]
    else:
        strategy = [draw(diagonal), *draw(st.lists(entry, max_size=n - 1))]
    schema = draw(st.sampled_from(["single", "cyclic", "min-separation"]))
    if schema == "single":
        return MatrixMechanism(strategy, 1, n, schema)
    b = draw(st.integers(1, n))
    k = draw(st.none() | st.integers(1, -(-n // b)))
    return MatrixMechanism(strategy, 1, n, schema, separation=b, participations=k)


@given(mechanisms())
@settings(max_examples=60)
def test_any_strategy_against_all_patterns(made: MatrixMechanism) -> None:
    given_: Any = made.strategy
    given_ = [list(row) for row in given_] if isinstance(given_[0], tuple) else list(given_)
    c = matrix(given_, made.steps)
    lower, upper = by_brute_force(c, made.participation, made.separation, made.participations)
    known, found = made.column_sensitivity.exact, made.sensitivity()
    assert Fraction(found.lower) ** 2 <= lower
    assert Fraction(found.upper) ** 2 >= (lower if known is not None else upper)
    if known is not None:
        assert known == lower
    moved = np.array([[float(e) for e in row] for row in c]) @ np.diff(
        made.worst_shift(), prepend=0
    )
    assert moved @ moved == pytest.approx(float(found.lower) ** 2, rel=1e-9, abs=0)


def enclosed(noise: Any) -> MatrixMechanism:
    """Return a strategy whose columns have no order, with 4 of 40 steps, 2 apart."""
    n = 40
    c = [[Fraction(1 + (7 * i + 11 * j) % 13, 8) if j <= i else Fraction(0) for j in range(n)]
         for i in range(n)]  # fmt: skip
    return MatrixMechanism(c, noise, n, "min-separation", separation=2, participations=4)


def test_too_many_patterns_are_enclosed() -> None:
    made = enclosed(2)
    rows: Any = made.strategy
    c = matrix([list(row) for row in rows], 40)
    floats = np.array([[float(entry) for entry in row] for row in c])
    gram = floats.T @ floats
    steps = np.array([p for p in patterns(40, "min-separation", 2, 4) if len(p) == 4])
    best = gram[steps[:, :, None], steps[:, None, :]].sum(axis=(1, 2)).max() ** 0.5
    found = made.sensitivity()
    assert float(found.lower) <= best * (1 + 1e-12)
    assert float(found.upper) >= best * (1 - 1e-12)
    assert float(found.upper) <= 1.02 * float(found.lower)


@pytest.mark.slow
def test_both_ends_of_a_sensitivity_are_answers() -> None:
    """Each answer is that of the least and of the most μ."""
    made = enclosed(20)
    ends = made.sensitivity()
    least, most = (Gaussian(20, str(end)) for end in (ends.lower, ends.upper))
    for ask in (
        lambda m: profile.delta(m, 1),
        lambda m: profile.epsilon(m, "1e-5"),
        guarantees.mu,
        guarantees.rho,
        lambda m: guarantees.renyi(m, 2),
        lambda m: profile.delta(m, "-1/2"),
    ):
        found, low, high = ask(made), ask(least), ask(most)
        rounding = 1 + Fraction(1, 10**6)  # of balls with thirty bits for a radius
        assert 1 / rounding < Fraction(found.lower) / Fraction(low.lower) < rounding
        assert 1 / rounding < Fraction(found.upper) / Fraction(high.upper) < rounding
        assert Fraction(found.lower) <= Fraction(low.upper) * (1 + Fraction(1, 10**18))
        assert Fraction(found.upper) >= Fraction(high.lower) * (1 - Fraction(1, 10**18))
    for wrapped in (Composed, lambda m: PoissonSubsampled(m, "1/2")):
        with pytest.raises(NotApplicableError, match=r"between 21.*Ask about Gaussian\("):
            wrapped(made)


SAMPLED = {
    "as DP-SGD": ("identity", 10, 1, None),
    "whole": ("square-root", 12, 4, 4),
    "last column cut off": ("square-root", 14, 4, 4),
    "fewer bands": ([2, -1], 9, 3, None),
    "second step": ([[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0], [0, 0, 0, 2]], 4, 2, None),
    "rows": (
        [[1, 0, 0, 0, 0], [1, 2, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 2, 2, 0], [0, 0, 0, 0, 4]],
        5,
        2,
        None,
    ),
}


@pytest.mark.parametrize("name", quick(SAMPLED, 0, 2, 5))
def test_samples_are_sampled_gaussian_releases(name: str) -> None:
    """The worst of all first steps, its columns' norms written out."""
    strategy, n, b, bands = SAMPLED[name]
    c = matrix(strategy, n, bands)
    made = MatrixMechanism(
        strategy, "3/2", n, "cyclic", separation=b, bands=bands, step_sampling_prob="1/20"
    )
    each = []
    for first in range(b):
        squares = [sum((row[i] ** 2 for row in c), Fraction(0)) for i in range(first, n, b)]
        norms = [ExactReal.of_root(square) for square in squares]
        each.append(
            profile.delta(
                Composed([PoissonSubsampled(Gaussian("3/2", norm), "1/20") for norm in norms]),
                "1/2",
                adjacency="add-remove",
            )
        )
    found = profile.delta(made, "1/2", adjacency="add-remove")
    assert found.overlaps(max(each, key=lambda interval: interval.upper))
    assert found.digits > 5
    with pytest.raises(AdjacencyError, match="add-remove"):
        profile.delta(made, 1)
    with pytest.raises(AdjacencyError, match="zeroed out"):
        profile.delta(made, 1, adjacency="replace-one")
    with pytest.raises(NotApplicableError, match="not exactly Gaussian"):
        guarantees.mu(made, adjacency="add-remove")
    with pytest.raises(NotApplicableError, match="chooses records"):
        made.release(np.zeros(n))
    assert notation.parse(repr(made)) == made


def test_outputs_of_samples_leave_inputs_out_by_chance() -> None:
    """Means and variances of 40000 runs are within six standard errors (below 1e-8 each)."""
    made = MatrixMechanism(
        "square-root", 1, 6, "cyclic", separation=3, bands=3, step_sampling_prob="1/4"
    )
    (_, answer), *_ = made.worst_answers()
    assert answer.tolist() == [1, 1, 1, 2, 2, 2]
    runs = made.outputs(3 * answer, 40_000, rng=np.random.default_rng(8))
    expected = np.array([float(v.mid()) for v in made.variances()]) + answer * 9 * 3 / 16
    assert (abs(runs.mean(axis=0) - answer * 3 / 4) < 6 * runs.std(axis=0) / 200).all()
    spread = ((runs - runs.mean(axis=0)) ** 2).std(axis=0) / 200
    assert (abs(runs.var(axis=0) - expected) < 6 * spread).all()


def test_published_buffers() -> None:
    """The zCDP that accounting_test.py of google-parfait/federated-compute expects (2025)."""
    blt = BufferedToeplitz(
        output_scales=[
            "0.0070314825502323835",
            "0.10613806907600574",
            "0.1898159060327625",
            "0.1966594748073734",
        ],
        decays=[
            "0.9999999999921251",
            "0.9944453083640997",
            "0.8985923474607591",
            "0.4912001418098778",
        ],
    )
    made = MatrixMechanism(blt, 1, 100, "min-separation", separation=50)
    rho = guarantees.rho(made)
    assert abs(Fraction(rho.lower) - Fraction("3.17226586")) < Fraction(1, 10**8)
    assert rho.digits > 25


def test_long_strategies_are_enclosed() -> None:
    """Beyond exact coefficients: those of the square root add up to Landau's constants."""
    n = 12_000
    made = MatrixMechanism("square-root", 1, n, "single")
    assert made.column_sensitivity.exact is None
    counter = SquareRootFactorization(n, mu=1)
    assert enclose(made.column_sensitivity.ball).overlaps(enclose(counter.variance_ball))
    assert guarantees.mu(made).digits > 25
    banded = MatrixMechanism("square-root", 1, n, "min-separation", separation=100, bands=100)
    square = banded.column_sensitivity.exact
    assert square is not None
    column = sum((c[0] ** 2 for c in matrix("square-root", 100)), Fraction(0))
    assert square == 120 * column


@pytest.mark.parametrize("name", STRATEGIES)
def test_errors_are_those_of_the_inverse(name: str) -> None:
    """B C = A is solved in rationals, row by row."""
    strategy, bands = STRATEGIES[name]
    c = matrix(strategy, N, bands)
    made = MatrixMechanism(strategy, 3, N, "single", bands=bands)
    with ctx.workprec(160):
        variances = [Interval.of_ball(variance, 30) for variance in made.variances()]
    total = Fraction(0)
    for t, variance in enumerate(variances):
        row = [Fraction(0)] * N
        for j in range(t, -1, -1):
            rest = 1 - sum((row[i] * c[i][j] for i in range(j + 1, t + 1)), Fraction(0))
            row[j] = rest / c[j][j]
        square = 9 * sum((b * b for b in row), Fraction(0))
        assert square in variance
        assert narrow(variance, Fraction(1, 10**25))
        total += square
    assert total / N in accuracy.mean_squared_error(made)


@pytest.mark.parametrize("name", ["identity", "banded square root", "two buffers", "dense rows"])
def test_step_noise_solves_for_white_noise(name: str) -> None:
    """C times the noise of all steps is what the generator draws, for noise of any shape."""
    strategy, bands = STRATEGIES[name]
    made = MatrixMechanism(strategy, "1/2", N, "single", bands=bands)
    noise = np.array(list(made.step_noise((2, 3), rng=np.random.default_rng(7))))
    c = np.array([[float(entry) for entry in row] for row in matrix(strategy, N, bands)])
    white = np.random.default_rng(7).normal(0.0, 0.5, (N, 2, 3))
    # substitution in doubles: condition numbers below 1e4 here
    assert np.abs(np.tensordot(c, noise, axes=1) - white).max() < 1e-11
