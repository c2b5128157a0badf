"""The ledger of "Count on Your Elders": every verdict, and its numbers a second time."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb

import pytest
from mpmath import exp, log, mp, mpf, pi, quad, sqrt

from accountant.mechanisms import LaplaceVector
from accountant.questions import profile
from verify.verdict import Finding

pytestmark = pytest.mark.slow  # the default run decides the two shorter ledgers


@pytest.fixture(scope="module")
def findings(decided: Callable[[str], dict[str, Finding]]) -> dict[str, Finding]:
    return decided("count-on-your-elders")


def test_the_counterexamples(findings: dict[str, Finding]) -> None:
    bound = findings["section-1-1/huu-bound/cited"]
    assert bound.witness["case"] == {"n": "1"}
    assert (bound.witness["left"], bound.witness["right"][:7]) == ("1", "0.86298")
    ratio = findings["corollary-5-5/ratio-2"]
    assert ratio.witness["case"] == {"delta": "0.5"}
    even = findings["claim-1/worse/finite"]
    assert (even.witness["claimed"], even.witness["rival"]) == ("9", "8")
    assert even.true["value at 8"]["lower"] == "32"
    assert even.true["value at 9"]["lower"] == "33"


# ---------------------------------------------------------------- the numbers, a second time


def vertices(arity: int, steps: int) -> tuple[int, int]:
    """The height, and the vertices of all outputs, by writing every time step in signed digits."""
    low = (arity - 1) // 2
    height = 1
    while (arity - 1 - low) * (arity**height - 1) // (arity - 1) < steps:
        height += 1
    total = 0
    for step in range(1, steps + 1):
        rest = step
        for _ in range(height):
            digit = (rest + low) % arity - low
            total += abs(digit)
            rest = (rest - digit) // arity
        assert rest == 0
    return height, total


@pytest.mark.parametrize(("steps", "best"), [(1000, 14), (10_000, 28)])
def test_the_best_arity(steps: int, best: int) -> None:
    """What theorem-1-2/calibrated says of k = 2, …, 64, and which of them is best."""
    errors = {}
    for arity in range(2, 65):
        height, total = vertices(arity, steps)
        errors[arity] = Fraction(2 * height**2 * total, steps)
    assert min(errors, key=errors.__getitem__) == best
    with mp.workdps(30):
        gaussian = 2 * mpf("0.92") * log(steps) * (1 + log(mpf(4 * steps) / 5) / pi) ** 2
        assert gaussian < mpf(errors[best].numerator) / errors[best].denominator


def test_even_arity_at_32() -> None:
    assert vertices(8, 32) == (2, 128)
    errors = {}
    for arity in range(3, 68, 2):
        height, total = vertices(arity, 32)
        errors[arity] = Fraction(2 * height**2 * total, 32)
    assert min(errors.values()) == errors[9] == errors[65] == 33


@pytest.mark.parametrize("n", range(1, 31))
def test_the_square_root_factorization(n: int) -> None:
    """n ≤ 6 are the exceptions, by multiplying the factors out: M[i][j] = C(2m, m)/4^m, m = i−j."""
    root = [Fraction(comb(2 * m, m), 4**m) for m in range(n)]
    column = sum((entry**2 for entry in root), Fraction(0))
    rows = sum(((n - m) * entry**2 for m, entry in enumerate(root)), Fraction(0)) / n
    for i in range(n):  # M² is the lower triangular matrix of ones
        assert sum(root[m] * root[i - m] for m in range(i + 1)) == 1
    with mp.workdps(30):
        product = column * rows
        value = mpf(product.numerator) / product.denominator
        assert (value <= (1 + log(mpf(4 * n) / 5) / pi) ** 2) == (n >= 7)


def test_the_limit_of_the_ratio(findings: dict[str, Finding]) -> None:
    with mp.workdps(30):
        found = mpf(findings["corollary-5-5/ratio-2"].true["value at 10000000"]["lower"])
        expected = 2 * log(2) / log(mpf("2.5")) * ((1 + sqrt(1 + mpf(1) / 10**7)) / 2) ** 2
        assert mp.almosteq(found, expected, mpf("1e-14"))


def test_lemma_5_4_in_two_dimensions() -> None:
    """δ at ε = 1 with the λ of δ = 0.9, by conditioning on the loss of one coordinate."""
    with mp.workdps(25):
        level = -log(mpf("0.9"))
        t = mpf(mp.nstr(sqrt(level + 1) - sqrt(level), 15))  # each shift in units of λ, Δ₂ = √2

        def one(epsilon: mpf) -> mpf:
            """The hockey stick of one coordinate, at any real ε."""
            if epsilon >= t:
                return mpf(0)
            return 1 - exp(epsilon) if epsilon <= -t else 1 - exp((epsilon - t) / 2)

        delta = one(1 - t) / 2 + exp(-t) / 2 * one(1 + t)
        # dP = e^{(u − t)/2}/4 du between the atoms; a shift u leaves ε − u to the other coordinate
        kink = 1 - t
        ends = [-t, *([kink] if -t < kink < t else []), t]
        delta += quad(lambda u: exp((u - t) / 2) / 4 * one(1 - u), ends)
        shifts = [mp.nstr(t, 15)] * 2
        found = profile.delta(LaplaceVector(scale=1, shifts=shifts), 1)
        assert mp.almosteq(mpf(str(found.lower)), delta, mpf("1e-20"), mpf("1e-20"))
        assert mpf("0.05") < delta < mpf("0.9")


def test_threshold_exponent() -> None:
    with mp.workdps(30):
        k = mpf(19)
        odd = k * (1 - k**-2) / (2 * (log(k) / log(2)) ** 3)
        second = 4 * log(2) ** 3 / pi**2
        assert mp.almosteq(odd / second, mpf("0.915695295699375803372870653448"), mpf("1e-28"))
        assert mpf("0.91") < odd / second < mpf("0.92")
