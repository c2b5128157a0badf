"""Reports of sets of categories: the pair against every report listed from its definition."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from math import comb

import mpmath
import numpy as np
import pytest

from dpassay.accountant.mechanisms import Rappor, SubsetSelection, UnaryEncoding
from dpassay.accountant.mechanisms.wrappers.channel import LocalReport
from dpassay.accountant.questions import accuracy, profile

Report = tuple[int, ...]
CASES = [
    UnaryEncoding(1, 3),
    UnaryEncoding("1/2", 4, optimised=True),
    Rappor("1/2", 3),
    SubsetSelection(1, 5),
    SubsetSelection("1/3", 5, size=3),
    SubsetSelection(2, 2),
]


def coins(chances: list[float]) -> Iterator[tuple[Report, float]]:
    for bits in itertools.product((0, 1), repeat=len(chances)):
        yield bits, float(np.prod([c if b else 1 - c for b, c in zip(bits, chances, strict=True)]))


def reports(mechanism: LocalReport, truth: int) -> Iterator[tuple[object, Report, float]]:
    """List what is reported, the set it stands for, and its probability, by the definition."""
    k = mechanism.categories
    e = float(np.exp(0 if isinstance(mechanism, Rappor) else float(mechanism.epsilon)))
    match mechanism:
        case UnaryEncoding():
            keep = 0.5 if mechanism.optimised else e**0.5 / (1 + e**0.5)
            lie = 1 / (1 + e) if mechanism.optimised else 1 - keep
            for bits, chance in coins([keep if j == truth else lie for j in range(k)]):
                yield bits, bits, chance
        case Rappor():
            f = float(mechanism.flip)
            for bits, chance in coins([(j == truth) * (1 - f) + f / 2 for j in range(k)]):
                yield bits, bits, chance
        case SubsetSelection():
            d = mechanism.size or max(1, round(k / (e + 1)))
            whole = comb(k - 1, d - 1) * e + comb(k - 1, d)
            for chosen in itertools.combinations(range(k), d):
                bits = tuple(int(j in chosen) for j in range(k))
                yield chosen, bits, (e if truth in chosen else 1) / whole


@pytest.mark.parametrize("mechanism", CASES, ids=repr)
def test_the_pair_is_that_of_all_reports(mechanism: LocalReport) -> None:
    laws: list[dict[object, float]] = [{}, {}]
    for law, truth in zip(laws, (1, 0), strict=True):
        for report, _, chance in reports(mechanism, truth):
            law[report] = law.get(report, 0) + chance
    assert sum(laws[0].values()) == pytest.approx(1, rel=1e-13, abs=0)
    for epsilon in ("-1/3", "0", "1/4", "0.45"):
        factor = float(mpmath.exp(mpmath.mpf(float(Fraction(epsilon)))))
        expected = sum(max(p - factor * laws[1][report], 0) for report, p in laws[0].items())
        found = profile.delta(mechanism, epsilon)
        assert float(found.lower) == pytest.approx(expected, rel=1e-12, abs=0)
    largest = max(np.log(p / laws[1][report]) for report, p in laws[0].items())
    assert float(profile.epsilon(mechanism, 0).lower) == pytest.approx(largest, rel=1e-12, abs=0)


@pytest.mark.parametrize("mechanism", CASES, ids=repr)
def test_reports_are_drawn_and_estimated(mechanism: LocalReport) -> None:
    law: dict[Report, float] = defaultdict(float)
    for _, bits, chance in reports(mechanism, 1):
        law[bits] += chance
    p = sum(chance for bits, chance in law.items() if bits[1])
    q = sum(chance for bits, chance in law.items() if bits[0])
    drawn = mechanism.release(np.full(20_000, 1), rng=np.random.default_rng(3))
    assert drawn.shape == (20_000, mechanism.categories)
    counted = dict.fromkeys(law, 0)
    for row in drawn:
        counted[tuple(map(int, row))] += 1  # a set that has no probability is a KeyError
    for bits, chance in law.items():
        # six standard deviations of each of at most 16 sets in 10 cases: a false alarm below 1e-6
        assert abs(counted[bits] - 20_000 * chance) <= 6 * (20_000 * chance * (1 - chance)) ** 0.5
    assert mechanism.estimate(drawn)[1] == pytest.approx(
        (drawn[:, 1].sum() - 2e4 * q) / (p - q), rel=1e-9, abs=0
    )
    k = mechanism.categories
    for value, expected in (
        (accuracy.variance(mechanism)[0], q * (1 - q) / (p - q) ** 2),
        (
            accuracy.mean_squared_error(mechanism),
            (p * (1 - p) + (k - 1) * q * (1 - q)) / (p - q) ** 2 / k,
        ),
    ):
        assert float(value.lower) == pytest.approx(expected, rel=1e-11, abs=0)


def test_defaults_minimise_the_variance_of_a_count_nearly() -> None:
    def variance(mechanism: LocalReport) -> Fraction:
        return Fraction(accuracy.variance(mechanism)[0].lower)

    optimised = variance(UnaryEncoding(2, 50, optimised=True))
    assert variance(UnaryEncoding(2, 50)) > optimised
    subsets = [variance(SubsetSelection(2, 50, size=d)) for d in range(1, 50)]
    assert variance(SubsetSelection(2, 50)) <= min(subsets) * Fraction(101, 100)
