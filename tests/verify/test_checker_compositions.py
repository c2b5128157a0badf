"""The checker's laws of products: against the balls, closed forms and few releases on a grid."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from flint import arb
from mpmath import mp

import dpassay
from dpassay.accountant.core.adjacency import Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import Composed, Gaussian, Laplace, PoissonSubsampled
from dpassay.accountant.notation import parse
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.questions import profile
from dpassay.verifier import checker
from dpassay.verifier.checker import suprema
from dpassay.verifier.checker.compositions import composed, contour
from dpassay.verifier.checker.compositions.grid import enclose
from dpassay.verifier.checker.compositions.losses import Factor, Listed, Normal, discrete_normal
from dpassay.verifier.checker.compositions.losses import Laplace as LaplaceLoss
from dpassay.verifier.checker.compositions.mixtures import Mixture
from dpassay.verifier.checker.facts import mechanism
from dpassay.verifier.checker.mechanisms.neighbours import under
from dpassay.verifier.checker.mechanisms.pairs import fits, pairs
from dpassay.verifier.checker.reals import UnknownError, compare
from tests.quick import quick
from tests.verify.forge import decided, problems, sealed


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


BOUNDED = times("Laplace(scale=1)", 150)
"""Of which Chernoff's bound alone is found again: 1.2067e-17 at ε = 130, where δ is 3.04e-19."""


def bounded(delta: str) -> dict[str, Any]:
    said, data = decided(claim(BOUNDED, "130", delta))
    assert said == "HOLDS"
    return data


@pytest.mark.parametrize(("delta", "outcome"), [("1.3e-17", "VALID"), ("3.1e-19", "CONDITIONAL")])
def test_what_is_not_recomputed_is_said(delta: str, outcome: str) -> None:
    """Chernoff's bound decides the first of two claims: the number in the other one is needed."""
    checked = checker.check(bounded(delta))
    assert (checked.problems, checked.outcome.value) == ([], outcome)
    assert checked.recomputed == ["facts[0].value to be at most 1.2067e-17"]
    open_ = ["value <= delta, which what is found again does not decide"]
    assert checked.taken_as_given == ([] if outcome == "VALID" else open_)


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        ('"epsilon": "130"', '"epsilon": "129.5"', "CONDITIONAL"),  # the bound is above 1.3e-17
        ("count=150", "count=151", "INVALID"),
        ("Laplace(scale=1)", "Laplace(scale=0.99)", "INVALID"),
        ("1.3e-17", "0", "INVALID"),
        ("1.3e-17", "1e-19", "INVALID"),
        ("1.3e-17", "1.2e-17", "CONDITIONAL"),
        ('"unit": "1"', '"unit": "0.99"', "INVALID"),
        ('"add-remove"', '"replace-one"', "VALID"),  # it has the same pair
        ("HOLDS", "REFUTED", "INVALID"),
        ("value <= delta", "p - exp(epsilon)*q > delta", "INVALID"),
        ("3.040861", "30408.61", "INVALID"),
        ("3.040861", "2.040861", "VALID"),  # a number on which nothing rests
    ],
)
def test_a_bound_decides_no_other_claim(old: str, new: str, outcome: str) -> None:
    text = json.dumps(bounded("1.3e-17"))
    assert old in text
    checked = checker.check(sealed(json.loads(text.replace(old, new))))
    assert checked.outcome.value == outcome, checked


def test_a_bound_refutes_nothing() -> None:
    data = bounded("1.3e-17")
    law, value = data["facts"][0]["law"], {"lower": "1e-17", "upper": "1e-17"}
    event = {"fact": "event", "name": "event", "law": law, "loss_above": "130", "p": value}
    event |= {"q": {"lower": "0", "upper": "0"}, "description": "x"}
    data["claim"]["delta"] = data["claimed"]["delta"] = "1e-18"
    data |= {"verdict": "REFUTED", "conclusion": "p - exp(epsilon)*q > delta", "facts": [event]}
    checked = checker.check(sealed(data))
    assert checked.outcome.value == "CONDITIONAL", checked


MIXTURE = (
    "MixtureOfGaussians(standard_deviation=1, sensitivities=[0, 1, 2], "
    "sampling_probs=['1/2', '1/3', '1/6'])"
)
KEYS = "PartitionSelection(epsilon={}, delta='1/95')"


@pytest.mark.parametrize(
    ("text", "factor", "outcome"),
    [
        (KEYS.format("'30/7'"), "1.0001", "VALID"),  # users whose key is always kept are no pair
        (times(KEYS.format(1), 3), "0.9999", "CONDITIONAL"),  # of two directions, one attains it
        (times(MIXTURE, 20), "0.9999", "VALID"),  # an event whose probabilities have few digits
    ],
)
def test_claims_nearly_met_are_not_called_wrong(text: str, factor: str, outcome: str) -> None:
    found = dpassay.delta(parse(text), 1, adjacency="add-remove")
    delta = f"{(found.upper if float(factor) > 1 else found.lower) * Decimal(factor):f}"
    said, data = decided(claim(text, "1", delta))
    assert said == ("HOLDS" if float(factor) > 1 else "REFUTED")
    checked = checker.check(data)
    assert checked.problems == []
    assert checked.outcome.value == outcome


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
    (times("Tabulated(p=['1/2', '1/4', '1/4'], q=['1/2', '1/2', 0])", 3), "add-remove", ("0", "9")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "adjacency", "levels"), quick(LAWS, 3, 4, 6, 7, 8))
def test_a_product_has_the_numbers_of_the_balls(
    text: str, adjacency: Any, levels: tuple[str, ...]
) -> None:
    """All three answers in both directions, and their width, against the other path."""
    theirs = parse(text).worst_case(adjacency).pairs(None)
    ours = pairs(under(mechanism(text), adjacency))
    assert len(ours) == len(theirs)
    for law, pair in zip(ours, theirs, strict=True):
        for level in levels:
            found = composed.answers(law, Fraction(level))
            tails = pair.tails(exact(level))
            hockey = pair.hockey_stick(exact(level))
            theirs_now = (hockey, tails.p_above, tails.q_above)
            for mine, ball in zip(found, theirs_now, strict=True):
                assert mine.overlaps(ball)
                assert 2 * mine.rad() <= arb(10) ** -18 * abs(mine).upper()


def test_a_level_next_to_the_largest_loss_has_its_probability() -> None:
    text = "Composed([RandomizedResponse(epsilon='0.1'), RandomizedResponse(epsilon='0.2')])"
    (law,) = pairs(under(mechanism(text), "replace-one"))
    found = composed.answers(law, Fraction(3, 10) - Fraction(1, 10**41))
    with ctx.workprec(448):
        truth = [1 / (1 + (-arb(entry)).exp()) for entry in ("0.1", "0.2")]
        assert found.above_p.overlaps(truth[0] * truth[1])
    assert found.above_p.rad() < 1e-30
    assert 0 <= found.hockey_stick.upper() < 1e-29


def test_the_integral_has_the_normal_tails() -> None:
    """One Gaussian loss, against its closed form, at levels from the middle to 1e-300."""
    for epsilon in ("-1", "0", "1", "30"):
        with ctx.workprec(448):
            found = contour.invert(((Normal("0.8"), 1),), epsilon)
        with mp.workdps(60):
            mu, eps = mp.mpf("0.8"), mp.mpf(epsilon)
            p, q = mp.ncdf(mu / 2 - eps / mu), mp.ncdf(-mu / 2 - eps / mu)
            right = [mp.nstr(value, 50) for value in (p - mp.exp(eps) * q, p, q)]
        for mine, value in zip(found, right, strict=True):
            assert mine.overlaps(arb(value) * (1 + arb(0, 1e-45)))
            assert mine.rel_accuracy_bits() >= 38 / 0.302


@pytest.mark.slow
def test_a_cap_is_above_the_modulus_and_falls() -> None:
    """|M(c + it)| ≤ b(T) for t ≥ T, against the quadrature of mpmath."""
    mixture = Mixture((("0.7", "0"), ("0.3", "1.5")), True)
    for factor in (mixture, Mixture(mixture.parts, False)):
        for end in (2, 12):
            height = factor.estimate_cap(1.5, float(end))[1]
            with ctx.workprec(80):
                cap = factor.log_cap(arb(1.5), arb(end), height, 16).exp()
                assert cap <= factor.log_moment(arb(1.5), 16).exp()
            for stretch in (1, 1.5):
                power = 2.5 + 1j * end * stretch if factor.first else -1.5 - 1j * end * stretch
                with mp.workdps(20):
                    points = [mp.mpf(x) for x in range(-9, 14, 2)]
                    size = abs(mp.quad(lambda x, w=power: _integrand(x, w), points))
                assert float(size) <= float(cap.upper()) * (1 + 1e-10)


def _integrand(x: Any, power: Any) -> Any:
    ratio = mp.mpf("0.7") + mp.mpf("0.3") * mp.exp(mp.mpf("1.5") * x - mp.mpf("1.125"))
    return mp.npdf(x) * ratio**power


FACTORS: list[Factor] = [
    Normal("0.5"),
    LaplaceLoss("0.25"),
    Listed((("0.75", "0.25"), ("0.25", "0.75"))),
    discrete_normal(Fraction(4), 1),
    Mixture((("0.5", "0"), ("0.5", "1")), True),
    Mixture((("0.5", "0"), ("0.25", "1"), ("0.25", "2")), True),
    Mixture((("0.5", "0"), ("0.25", "1"), ("0.25", "2")), False),
]


@pytest.mark.parametrize("factor", FACTORS)
def test_moments_along_the_line_agree_at_any_precision(factor: Factor) -> None:
    """M(c + it) is enclosed, is real on the axis, and is largest there."""
    found = []
    for bits, digits in ((200, 50), (120, 20)):
        with ctx.workprec(bits):
            found.append(factor.along(arb(2), arb(0.75), 5, digits))
            assert found[-1][0].real.log().overlaps(factor.log_moment(arb(2), digits))
    for fine, coarse in zip(*found, strict=True):
        assert fine.overlaps(coarse)
        assert fine.real.rad() < 1e-15
        assert abs(fine) <= found[0][0].real.upper() * (1 + arb(10) ** -15)


@pytest.mark.parametrize("factor", FACTORS[:2] + FACTORS[4:])
def test_tails_are_those_of_the_moments(factor: Factor) -> None:
    """∫ c e^{cy} P(L > y) dy is M(c), by a sum over y that is as fine as it need be."""
    with ctx.workprec(80):
        step, total = arb(1) / 64, arb(0)
        for j in range(-64 * 12, 64 * 12):
            total += (j * step).exp() * factor.tails((j + arb(1) / 2) * step)[0]
        share = total * (step.exp() - 1) / factor.log_moment(arb(1), 20).exp()
    assert abs(float(share) - 1) < 1e-3


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (TRAINING.replace("Gaussian(standard_deviation", "Laplace(scale"), "add-remove"),
        (FIXED, "replace-one"),
        (COIN, "replace-one"),
    ],
)
def test_a_relation_has_to_fit(text: str, right: str) -> None:
    noise = mechanism(text)
    other = {"add-remove": "replace-one", "replace-one": "add-remove"}[right]
    assert fits(noise, right)
    assert not fits(noise, other)


STEP = PoissonSubsampled(Gaussian(standard_deviation="0.8"), "0.01")
PARTS = (("0.99", "0"), ("0.01", "1.25"))


def both(factors: Any, epsilon: str) -> tuple[arb, arb]:
    found = enclose(tuple(factors), epsilon).hockey_stick
    return found.lower(), found.upper()


CASES: list[tuple[Any, Mechanism, str, float]] = [
    ([(Mixture(PARTS, True), 1)], STEP, "0.5", 2e-3),
    ([(Mixture(PARTS, True), 2)], Composed(STEP, 2), "7", 1e-2),
    ([(Mixture(PARTS, True), 4)], Composed(STEP, 4), "1", 4e-3),
    ([(Normal("1"), 3)], Composed(Gaussian(standard_deviation=1), 3), "2", 2e-3),
    ([(LaplaceLoss("1"), 3)], Composed(Laplace(scale=1), 3), "1", 3e-2),
]


LONG = (0, 1, 2, 3)


@pytest.mark.parametrize(
    "case", [pytest.param(i, marks=[pytest.mark.slow] * (i in LONG)) for i in range(len(CASES))]
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
    assert low <= arb(str(true.upper))
    assert arb(str(true.lower)) <= high
    assert high - low < arb(width) * high


@pytest.mark.slow
def test_what_is_not_for_a_grid() -> None:
    coin = (("0.75", "0.25"), ("0.25", "0.75"))
    low, high = both([(Listed(coin), 3), (Normal("1"), 1)], "1")
    assert 0 < low < high
    for factors, epsilon in (
        ([(Normal("1"), 9)], "1"),
        ([(Normal("1"), 2)], "100"),
        ([(Listed(coin, "0.125"), 2)], "1"),
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


@pytest.mark.parametrize("digits", [36, 39, 45, 90])
def test_a_sum_just_above_epsilon_counts(digits: int) -> None:
    """The largest of three losses is rare: twice the second, with ε just below it, has the mass."""
    rare, rarer = Fraction(1, 2**200), Fraction(1, 2**300)
    above = (1 + rare - 2 * rarer) / 3
    p = [rare, 1 - rare - above, above]
    q = [rarer, p[1] / 2, 2 * above]
    law = {"law": "finite", "p": p, "q": q}
    with mp.workdps(120):
        scale = 10**100
        epsilon = Fraction(int(mp.floor(mp.log(4) * scale)), scale) - Fraction(1, 10**digits)
        least = Fraction(4, 9) * Fraction(1, 10**digits)
        found = composed.answers(
            {"law": "product", "factors": [law], "counts": [Fraction(2)]}, epsilon
        )
    assert arb(str(float(least * Fraction(99, 100)))) <= found.hockey_stick.upper()
    assert found.hockey_stick.upper() <= arb("1e-35")
