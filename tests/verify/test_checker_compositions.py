"""The checker's laws of products: against the balls, closed forms and few releases on a grid."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from flint import ctx
from mpmath import mp

import dpassay
from accountant.core.adjacency import Direction
from accountant.core.mechanism import Mechanism
from accountant.mechanisms import Composed, Gaussian, Laplace, PoissonSubsampled
from accountant.notation import parse
from accountant.numbers.exact import exact
from accountant.questions import profile
from tests.quick import quick
from tests.verify.forge import decided, problems
from verify import checker
from verify.checker import suprema
from verify.checker.arithmetic import UnknownError, compare, interval_digits
from verify.checker.compositions import composed, contour
from verify.checker.compositions.grid import enclose
from verify.checker.compositions.mixtures import Mixture
from verify.checker.compositions.moments import DiscreteNormal, Factor, Listed, Normal
from verify.checker.compositions.moments import Laplace as LaplaceLoss
from verify.checker.facts import mechanism
from verify.checker.mechanisms import fits, pairs, under


def step(sigma: str, q: str) -> str:
    noise = f"Gaussian(standard_deviation='{sigma}')"
    return f"PoissonSubsampled(mechanism={noise}, sampling_prob='{q}')"


def times(inside: str, count: int) -> str:
    return f"Composed(mechanism={inside}, count={count})"


def claim(inside: str, epsilon: str, delta: str, adjacency: str = "add-remove") -> str:
    return (
        f'kind = "approximate-dp"\nmechanism = "{inside}"\nepsilon = "{epsilon}"\n'
        f'delta = "{delta}"\nadjacency = "{adjacency}"'
    )


TRAINING = times(step("1.1", "256/60000"), 7032)
SHORT = times(step("2", "0.2"), 20)
COIN = times("RandomizedResponse(epsilon='0.1', categories=3)", 200)
INTEGERS = times("DiscreteGaussian(parameter=25)", 100)
FIXED = (
    "SampledWithoutReplacement(mechanism=Gaussian(standard_deviation=2), sample_size=10, "
    "population=1000)"
)
SAMPLED = times(
    "PoissonSubsampled(mechanism=DiscreteLaplace(scale=3, sensitivity=2), sampling_prob='0.1')", 12
)


@pytest.mark.parametrize("delta", ["0.001", "3.1e-19"])
def test_what_is_not_recomputed_is_said(delta: str) -> None:
    """Chernoff's bound of 1.2e-17 decides the first of two claims."""
    inside = times("Laplace(scale=1)", 150)
    said, data = decided(claim(inside, "130", delta))
    assert said == "HOLDS"
    checked = checker.check(data)
    assert checked.problems == []
    given = ["facts[0].value: too long to recompute, but at most 1.2067e-17"]
    if delta != "0.001":
        given.append("value <= delta, which no number of digits decides")
    assert checked.taken_as_given == given


LAWS = [
    (SHORT, "add-remove", ("-0.5", "4")),
    (times(step("1", "0.3"), 30), "add-remove", ("0",)),
    (times(step("20", "0.9"), 1000), "add-remove", ("1",)),
    (COIN, "replace-one", ("0", "0.1", "3")),
    (times("DiscreteLaplace(scale=3, sensitivity=3)", 50), "add-remove", ("0", "20", "49.5")),
    (INTEGERS, "add-remove", ("0", "4")),
    (SAMPLED, "add-remove", ("0", "0.7")),
    ("Composed([RandomizedResponse(epsilon='0.1'), RandomizedResponse(epsilon='0.25')], count=9)",
     "replace-one", ("1", "0.35")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "adjacency", "levels"), quick(LAWS, 3, 4, 6, 7))
def test_a_product_has_the_numbers_of_the_balls(
    text: str, adjacency: Any, levels: tuple[str, ...]
) -> None:
    """All three answers in both directions, and their width, against the other path."""
    theirs = parse(text).worst_case(adjacency).pairs(None)
    with mp.workdps(100), interval_digits(100):
        ours = pairs(under(mechanism(text), adjacency))
        assert len(ours) == len(theirs)
        for law, pair in zip(ours, theirs, strict=True):
            for level in levels:
                point = Fraction(level)
                found = composed.answers(law, point)
                tails = pair.tails(exact(level))
                hockey = pair.hockey_stick(exact(level))
                for mine, ball in (
                    (found.hockey_stick, hockey),
                    (found.above_p, tails.p_above),
                    (found.above_q, tails.q_above),
                ):
                    low, high = (mp.mpf(str(end)) for end in _ends(ball))
                    slack = abs(high) * mp.mpf(10) ** -30 + mp.mpf(10) ** -60
                    assert mp.mpf(mine.a) <= high + slack
                    assert low - slack <= mp.mpf(mine.b)
                    assert mp.mpf(mine.delta.b) <= mp.mpf(10) ** -18 * abs(mp.mpf(mine.b))


def _ends(ball: Any) -> tuple[str, str]:
    return (
        ball.lower().str(50, radius=False),
        ball.upper().str(50, radius=False),
    )


def test_the_integral_has_the_normal_tails() -> None:
    """One Gaussian loss, against its closed form, at levels from the middle to 1e-300."""
    with mp.workdps(60), interval_digits(60):
        for epsilon in (Fraction(-1), Fraction(0), Fraction(1), Fraction(30)):
            mu = Fraction(4, 5)
            found = contour.invert(((Normal(mu), 1),), epsilon)
            p = mp.ncdf(mp.mpf(mu) / 2 - mp.mpf(epsilon) / mu)
            q = mp.ncdf(-mp.mpf(mu) / 2 - mp.mpf(epsilon) / mu)
            for mine, right in (
                (found.above_p, p),
                (found.above_q, q),
                (found.hockey_stick, p - mp.exp(epsilon) * q),
            ):
                assert mine.a <= right * (1 + mp.mpf(10) ** -45)
                assert right * (1 - mp.mpf(10) ** -45) <= mine.b
                assert mp.mpf(mine.delta.b) <= right * mp.mpf(10) ** -38


@pytest.mark.slow
def test_a_cap_is_above_the_modulus_and_falls() -> None:
    """|M(c + it)| ≤ b(T) for t ≥ T, against the quadrature of mpmath."""
    mixture = Mixture(((Fraction(7, 10), Fraction(0)), (Fraction(3, 10), Fraction(3, 2))), True)
    other = Mixture(mixture.parts, False)
    with mp.workdps(20):
        for factor in (mixture, other):
            for end in (mp.mpf(2), mp.mpf(12)):
                height = factor.estimate_cap(1.5, float(end))[1]
                cap = mp.exp(factor.log_cap(mp.mpf(1.5), end, height, 16))
                assert cap <= mp.exp(factor.log_moment(mp.mpf(1.5), 16))
                for stretch in (1, mp.mpf("1.5")):
                    power = 2.5 + 1j * end * stretch if factor.first else -1.5 - 1j * end * stretch
                    points = [mp.mpf(x) for x in range(-9, 14, 2)]
                    size = abs(mp.quad(lambda x, w=power: _integrand(x, w), points))
                    assert size <= cap * (1 + mp.mpf(10) ** -10)


def _integrand(x: Any, power: Any) -> Any:
    ratio = mp.mpf("0.7") + mp.mpf("0.3") * mp.exp(mp.mpf("1.5") * x - mp.mpf("1.125"))
    return mp.npdf(x) * ratio**power


def test_ratios_along_the_line_are_within_their_error() -> None:
    line, width = mp.mpf(2), mp.mpf("0.7")
    factors: list[Factor] = [
        Normal(Fraction(1, 2)),
        LaplaceLoss(Fraction(1, 3)),
        Listed(((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))),
        DiscreteNormal(Fraction(4), 1),
        Mixture(((Fraction(1, 2), Fraction(0)), (Fraction(1, 2), Fraction(1))), True),
    ]
    for factor in factors:
        with mp.workprec(200):
            fine = factor.along(line, width, 5, 50)
        with mp.workprec(120):
            coarse = factor.along(line, width, 5, 20)
        for one, other in zip(fine.ratios, coarse.ratios, strict=True):
            assert abs(one - other) <= fine.error + coarse.error + mp.mpf(2) ** -110
            assert abs(one) <= 1 + mp.mpf(2) ** -100


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (TRAINING.replace("Gaussian(standard_deviation", "Laplace(scale"), "add-remove"),
        (FIXED, "replace-one"),
        (COIN, "replace-one"),
        (times("IntegerNoise(probabilities=['1/2', '1/3', '1/6'], lowest=0)", 2), "add-remove"),
    ],
)
def test_a_relation_has_to_fit(text: str, right: str) -> None:
    noise = mechanism(text)
    other = {"add-remove": "replace-one", "replace-one": "add-remove"}[right]
    assert fits(noise, right)
    assert not fits(noise, other)


SHARE = Fraction(1, 100)
STEP = PoissonSubsampled(Gaussian(standard_deviation="0.8"), "0.01")
PARTS = ((1 - SHARE, Fraction(0)), (SHARE, Fraction(5, 4)))


def both(factors: Any, epsilon: str) -> tuple[Any, Any]:
    with mp.workdps(100):
        found = enclose(tuple(factors), Fraction(epsilon)).hockey_stick
        return mp.mpf(found.a), mp.mpf(found.b)


CASES: list[tuple[Any, Mechanism, str, float]] = [
    ([(Mixture(PARTS, True), 1)], STEP, "0.5", 2e-3),
    ([(Mixture(PARTS, True), 2)], Composed(STEP, 2), "7", 1e-2),
    ([(Mixture(PARTS, True), 4)], Composed(STEP, 4), "1", 4e-3),
    ([(Normal(Fraction(1)), 3)], Composed(Gaussian(standard_deviation=1), 3), "2", 2e-3),
    ([(LaplaceLoss(Fraction(1)), 3)], Composed(Laplace(scale=1), 3), "1", 3e-2),
]


LONG = (0, 1, 2, 3)


@pytest.mark.parametrize(
    "case",
    [pytest.param(i, marks=[pytest.mark.slow] * (i in LONG)) for i in range(len(CASES))],
)
def test_the_true_value_is_between_both(case: int) -> None:
    factors, mechanism, epsilon, width = CASES[case]
    low, high = both(factors, epsilon)
    true = profile.delta(
        mechanism,
        epsilon,
        adjacency="add-remove",
        direction=Direction.REMOVE,
        relative_width=Fraction(1, 10**9),
    )
    assert low <= mp.mpf(str(true.upper))
    assert mp.mpf(str(true.lower)) <= high
    assert high - low < width * high


@pytest.mark.slow
def test_what_is_not_for_a_grid() -> None:
    coin = ((Fraction(2, 3), Fraction(1, 3)), (Fraction(1, 3), Fraction(2, 3)))
    low, high = both([(Listed(coin), 3), (Normal(Fraction(1)), 1)], "1")
    assert 0 < low < high
    for factors, epsilon in (
        ([(Normal(Fraction(1)), 9)], "1"),
        ([(DiscreteNormal(Fraction(4), 1), 2)], "1"),
        ([(Normal(Fraction(1)), 2)], "100"),
        ([(Listed(coin, Fraction(1, 9)), 2)], "1"),
    ):
        with pytest.raises(UnknownError, match="the law of this composition"):
            both(factors, epsilon)


GROUP = (
    "MixtureOfGaussians(standard_deviation=2, sensitivities=[0, 1, 2], "
    "sampling_probs=['0.9', '0.08', '0.02'])"
)


@pytest.mark.slow
def test_certificates_of_few_releases() -> None:
    """Facts as narrow as the engine reaches, in digits that the checker finds again."""
    said, data = decided(claim(f"Composed(mechanism={GROUP}, count=2)", "0.8", "2e-5"))
    assert said == "HOLDS"
    found = checker.check(data)
    assert found.valid
    assert found.taken_as_given == []
    assert any("digits" in said for said in found.recomputed)
    for fact in data["facts"]:
        fact["value"] = {end: str(float(x) / 2) for end, x in fact["value"].items()}
    assert any("does not enclose" in why for _, why in problems(data))


SAMPLES = (
    "Composed(mechanism=PoissonSubsampled(mechanism=Laplace(scale=1), sampling_prob='1/10'), "
    "count=20)"
)
COINS = "Composed(mechanism=[RandomizedResponse(epsilon='0.1'), RandomizedResponse(epsilon=1)])"
MIXED = "Composed(mechanism=[Gaussian(standard_deviation=2), Laplace(scale=2)], count=3)"
STAIRS = "Staircase(epsilon=1, gamma='0.4')"


@pytest.mark.parametrize("noise", [SAMPLES, COINS, MIXED, STAIRS, "DiscreteLaplace(scale=2)"])
def test_the_searched_rho_is_the_one_of_the_accountant(noise: str) -> None:
    relation = "replace-one" if "Response" in noise else "add-remove"
    least = dpassay.rho(dpassay.parse(noise), adjacency=relation)
    above, below = Fraction(least.upper) * 1001 / 1000, Fraction(least.lower) * 999 / 1000
    with ctx.workprec(160):
        laws = pairs(under(mechanism(noise), relation))
        found = [suprema.bounded_rho(law, above) for law in laws]
        assert all(value <= above for value in found)
        assert any(compare(value, ">=", below) for value in found)
        found = [suprema.bounded_rho(law, below) for law in laws]
        assert any(value > below for value in found)


def test_no_least_mu_is_known_of_other_losses() -> None:
    (law,) = pairs(mechanism("Laplace(scale=1)"))
    with pytest.raises(UnknownError, match="least mu"):
        suprema.least_mu(law, Fraction(1))


@pytest.mark.parametrize(
    ("epsilon", "verdict"), [("300", "HOLDS"), ("1500", "HOLDS"), ("30", "REFUTED")]
)
def test_what_many_tables_compose_to_is_not_checked_as_one(epsilon: str, verdict: str) -> None:
    """The envelope of the tables is one too, but moments bound what is chosen more tightly."""
    rows = "[['1/2', '1/2'], ['1/4', '3/4'], ['1/3', '2/3']]"
    text = claim(times(f"Channel(matrix={rows})", 1000), epsilon, "1e-6", "replace-one")
    said, data = decided(text)
    assert said == verdict
    found = checker.check(data)
    assert (found.outcome.value, found.problems) == ("CONDITIONAL", [])
