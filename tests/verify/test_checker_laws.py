"""The checker's own mathematics, held against the first program's balls, and against mpmath."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from dpassay.accountant.notation import parse
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.verifier import checker, functions
from dpassay.verifier.checker import laws
from dpassay.verifier.checker.arithmetic import narrow, settle
from dpassay.verifier.checker.facts import mechanism
from dpassay.verifier.checker.functions import FUNCTIONS, QUESTIONS, recomputed
from dpassay.verifier.checker.language import Variables, evaluate, split
from dpassay.verifier.checker.laws import hockey_stick
from dpassay.verifier.checker.masses import binomial_mass, binomial_tail
from dpassay.verifier.checker.mechanisms.pairs import pairs
from dpassay.verifier.checker.reals import INFINITE, Real, UnknownError, apply, compare, hull, sqrt
from dpassay.verifier.expression import Expression, split_relation
from tests.verify.forge import decided

MECHANISMS = [
    "Gaussian(standard_deviation=3, l2_sensitivity='sqrt(2)')",
    "Laplace(scale=2)",
    "LaplaceVector(scale=2, shifts=[1, -1, 2, '1/2'])",
    "DiscreteLaplace(scale=3, sensitivity=2)",
    "TruncatedGeometric(scale=2, low=0, high=9, sensitivity=3)",
    "DiscreteGaussian(parameter=10, sensitivity=3)",
    "Staircase(epsilon=2, gamma='0.8')",
    "RandomizedResponse(epsilon=1, categories=4)",
    "Tabulated(p=['1/2', '1/2', 0], q=['1/4', '1/2', '1/4'])",
    "IntegerNoise(probabilities=['1/4', '1/2', '1/4'], lowest=-1, sensitivity=2)",
    "Logistic(scale='2/3')",
]


def inside(value: Any, enclosure: Interval) -> bool:
    """Whether a narrow enclosure of the checker meets another one."""
    low, high = Fraction(enclosure.lower), Fraction(enclosure.upper)
    return bool(
        narrow(value)
        and compare(value, "<", low) is not True
        and compare(value, ">", high) is not True
    )


@pytest.mark.parametrize("order", ["1", "1.5", "2", "7"])
@pytest.mark.parametrize("text", MECHANISMS)
def test_renyi_divergences_lie_in_the_balls(text: str, order: str) -> None:
    pair = parse(text).worst_case(None).pairs(None)[0]
    number = exact(order)

    def ball() -> Any:
        return pair.kullback_leibler() if order == "1" else pair.renyi(number.ball())

    enclosure = enclose(ball)
    (value,) = settle(lambda: [laws.renyi(pairs(mechanism(text))[0], evaluate(order))])
    if enclosure.lower.is_infinite():
        assert value is INFINITE
    else:
        assert inside(value, enclosure)


def test_the_rank_one_law_has_no_divergence_of_order_two() -> None:
    law = pairs(mechanism("RankOneGaussian(dimension=3, sigma_star=1)"))[0]
    assert laws.renyi(law, Fraction(2)) is INFINITE
    with pytest.raises(UnknownError, match="rank-one"):
        laws.renyi(law, Fraction(11, 10))


def test_the_trade_off_function_of_a_gaussian_pair_is_enclosed() -> None:
    """Where both errors are equal they are Φ(−μ/2)."""
    expected = apply("Phi", Fraction(-1, 2))
    (value,) = settle(lambda: [laws.trade_off({"law": "gaussian", "mu": Fraction(1)}, expected)])
    assert narrow(value)
    assert compare(value, "==", expected) is None  # they meet


def test_every_function_of_the_language_is_known_to_the_checker() -> None:
    """Add a twin in verify/checker/functions.py, or name the function in NOT_RECOMPUTED."""
    known = {name for name in functions.FUNCTIONS if recomputed(name)}
    assert known == {*FUNCTIONS, *QUESTIONS}


EXPRESSIONS = [
    "2*log(1.25/d)/e**2",
    "log(d, 2) + log2(e)",
    "exp(-e) + expm1(d) - log1p(d)",
    "sqrt(d)*sqrt(2) + 4**(1/2) + e**d",
    "sin(e) + cos(e) + tanh(e) + pi()",
    "gamma(e) + lgamma(d) + erf(e) + erfc(e)",
    "Phi(-e) + Phi_inverse(d)",
    "gamma_upper(e, 2) + beta_lower(2, e, d)",
    "r1smg_sigma_star(e, d, 7, sqrt(2)) + r1smg_sigma_star(1e-5, 1e-7, 5760000, 1)",
    "lambert_w(e) + abs(-e) + min(d, e) + max(d, e, 2)",
    "floor(10*e) + ceil(log2(9)) + binomial(10, 3) + harmonic(20, 2)",
    "round_up(0.1, 6) + round_up(0.5, 6) + round_down(sqrt(2), 9) + round_down(-1/7, 4)",
    "sum(i, 1, 10, 1/i**2) + product(i, 1, 5, 1 + d*i)",
    "delta(Laplace(scale=2), '1/4') + total_variation(Gaussian(standard_deviation=2))",
    "epsilon(Gaussian(standard_deviation=2), 1e-5) + beta(Laplace(scale=2), 0.1)",
    "renyi(Laplace(scale=2), 2) + mu(Gaussian(standard_deviation=2)) + 3e-2",
    "rho(Gaussian(standard_deviation=2)) + loss_above(Laplace(scale=2), 0.1)",
    "variance(DiscreteLaplace(scale=2)) + mse(Laplace(scale='1/3'))",
    "variance(EllipticalGaussian(sensitivities=[1, 2], mu=1), 1)",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_have_the_value_of_the_first_language(text: str) -> None:
    known = {"d": Fraction(1, 100), "e": Fraction(3, 7)}
    expression = Expression(text)
    enclosure = enclose(lambda: expression.ball(known), relative_width=Fraction(1, 10**25))
    (value,) = settle(lambda: [evaluate(text, Variables(known, {}))])
    assert inside(value, enclosure)


def test_functions_that_are_not_recomputed_are_named() -> None:
    with pytest.raises(UnknownError, match=r"optimal_count_true_delta\(…\)"):
        evaluate("optimal_count_true_delta(3, 1/2, 2)")


@given(st.fractions(), st.fractions(), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
def test_rationals_are_compared_exactly(one: Fraction, other: Fraction, relation: str) -> None:
    truth = {
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
        "==": one == other,
        "!=": one != other,
    }[relation]
    assert compare(one, relation, other) is truth
    text = f"({one}) {relation} ({other})"
    assert split(text)[1] == split_relation(text)[1]


def test_only_identical_numbers_are_equal() -> None:
    root = sqrt(Fraction(2))
    with ctx.workprec(200):
        assert compare(root, "<=", 2 / root) is True
        assert compare(root, "<=", Real(root.ball)) is None  # a ball that holds it
        assert compare(root, "<", root + Fraction(1, 10**30)) is True


@given(st.floats(-3, 3), st.floats(0, 2), st.sampled_from(["exp", "Phi", "erfc", "tanh"]))
def test_functions_over_intervals_hold_the_values_inside(
    low: float, width: float, name: str
) -> None:
    first = Fraction(low)
    box = hull(first, first + Fraction(width))
    found = evaluate(f"{name}(x)", Variables({"x": box}, {}))
    middle = low + width / 3
    value = {
        "exp": math.exp,
        "Phi": lambda x: math.erfc(-x / math.sqrt(2)) / 2,
        "erfc": math.erfc,
        "tanh": math.tanh,
    }[name](middle)
    slack = 1e-13 * abs(value)  # a float function may err by some units in the last place
    assert compare(found, "<=", Fraction(value + slack)) is not False
    assert compare(found, ">=", Fraction(value - slack)) is not False


def test_the_larger_of_two_intervals_holds_the_larger_of_their_members() -> None:
    known = Variables({"x": hull(Fraction(0), Fraction(2)), "y": hull(1, Fraction(3))}, {})
    most, least = evaluate("max(x, y)", known), evaluate("min(x, y, 1/2)", known)
    assert compare(most, ">", Fraction(99, 100)) is True  # radii are rounded up
    assert compare(most, "<", Fraction(301, 100)) is True
    assert compare(least, "<", Fraction(51, 100)) is True


STEPS = [1, 2, 3, 9, 32, 180, 181, 1000, 10**6, 10**30, (19**40 - 1) // 2, 2**300 - 1]


TREES = [
    f"{kind}{name}" for kind in ("tree_", "signed_tree_")
    for name in ("mse", "height", "load", "terms", "live", "gaps", "misfits", "clashes")
]  # fmt: skip


@pytest.mark.parametrize("name", [*TREES, "honaker_mse"])
def test_trees(name: str) -> None:
    """Sums over vertices one by one are for short streams."""
    arities: list[tuple[int, ...]] = [(), (2,), (3,), (4,), (5,), (7,), (8,), (19,), (20,)]
    for arity in arities[1:] if name in TREES else arities[:1]:
        for steps in STEPS if "mse" in name or "height" in name else (1, 2, 5, 13, 40, 81):
            at = [Fraction(number) for number in (*arity, steps)]
            assert FUNCTIONS[name](*at) == functions.FUNCTIONS[name](*at)


@pytest.mark.parametrize(
    ("k", "n", "p"), [(60, 100, 0.5), (999, 1000, 0.7), (1, 1000, 1e-4), (1700, 3000, 0.55)]
)
def test_a_binomial_tail_is_the_sum_of_its_masses(k: int, n: int, p: float) -> None:
    found = binomial_tail(k, n, arb(p))
    assert found.overlaps(sum((binomial_mass(j, n, arb(p)) for j in range(k, n + 1)), arb(0)))
    assert found.rel_accuracy_bits() > 30


def test_a_binomial_tail_far_below_the_mean_has_digits() -> None:
    with ctx.workprec(448):
        found = binomial_tail(10, 100_000, arb("0.3"))
    assert found.rad() < arb(10) ** -100
    assert found.overlaps(arb(1))


def test_skellam_noise_of_a_large_variance_is_nearly_normal() -> None:
    (law,) = pairs(mechanism("Skellam(variance=10**5, sensitivity=300)"))
    with ctx.workprec(256):
        found = laws.hockey_stick(law, Fraction(1, 2))
    normal = laws.hockey_stick({"law": "gaussian", "mu": 3 / sqrt(Fraction(10))}, Fraction(1, 2))
    assert narrow(found)
    assert abs(float(found) - float(normal)) < 1e-5


@pytest.mark.parametrize(
    ("v", "s", "epsilon", "m"), [("9", 1, 5, 668), ("9", 3, 16, 934), ("1e-3", 1, 14, 602)]
)
def test_no_loss_of_skellam_noise_is_too_rare_to_refute(
    v: str, s: int, epsilon: int, m: int
) -> None:
    """The event is far beyond the masses that are listed."""
    noise = f"Skellam(variance='{v}', sensitivity={s})"
    verdict, data = decided(f'kind = "pure-dp"\nmechanism = "{noise}"\nepsilon = {epsilon}')
    assert (verdict, checker.check(data).problems) == ("REFUTED", [])
    with mp.workdps(60):
        p = mp.fsum(mp.besseli(k, v) * mp.exp(-mpf(v)) for k in range(m - s, m + 40))
        loss = mp.log(mp.besseli(m - s, v) / mp.besseli(m, v))
        assert loss > epsilon > mp.log(mp.besseli(m - 1 - s, v) / mp.besseli(m - 1, v))
        low, high = (mpf(data["facts"][0]["p"][end]) for end in ("lower", "upper"))
        assert low <= p <= high <= low * (1 + mpf(10) ** -30)


def test_two_noisy_scores_that_are_far_apart() -> None:
    """P(Y − X ≤ x) = (2 − x)e^x/4 for x ≤ 0, of Laplace noise; t = 2000 here, and ε = 1995."""
    with mp.workdps(50):
        t, epsilon = 2000, 1995

        def tail(x: mpf) -> mpf:
            return (2 - x) * mp.exp(x) / 4

        def gap(a: mpf) -> mpf:
            return mp.log1p(-a - t) + t - epsilon - mp.log1p(-a)

        a = mp.findroot(gap, (-2010, -2020))
        expected = tail(a + t) - mp.exp(epsilon) * tail(a)
        law = pairs(mechanism("ReportNoisyMax('Laplace', '1e-3', 2)"))[0]
        found = hockey_stick(law, Fraction(epsilon)).ball
        assert abs(expected - mpf(str(found.mid().str(30, radius=False)))) < expected / 10**9
        assert found.rel_accuracy_bits() > 30


@pytest.mark.parametrize(
    ("scale", "epsilon"), [("1", 60), ("1", 800), ("1e300", 0), ("1e400", 0), ("1e300", "1e-10")]
)
def test_the_largest_of_normal_scores_beyond_floats_is_bounded(
    scale: str, epsilon: int | str
) -> None:
    law = pairs(mechanism(f"ReportNoisyMax('Gaussian', '{scale}', 3)"))[0]
    assert hockey_stick(law, Fraction(epsilon)) <= 1
