"""Claims about compositions: the checker finds their numbers again, and what is false in them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from mpmath import iv, mp

from accountant.notation import parse
from accountant.numbers.exact import exact
from tests.quick import quick
from verify import checker, document, seal
from verify.certificate import certify
from verify.checker.arithmetic import interval_digits
from verify.checker.compositions import circle, composed, contour
from verify.checker.compositions.mixtures import Mixture
from verify.checker.compositions.moments import DiscreteNormal, Factor, Laplace, Listed, Normal
from verify.checker.facts import mechanism
from verify.checker.mechanisms import fits, pairs, under

Data = dict[str, Any]


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
MIXED = (
    f"Composed(mechanism=[{times(step('1.1', '0.01'), 500)}, {times(step('0.9', '0.002'), 3000)}, "
    "Gaussian(standard_deviation=5)])"
)
COIN = times("RandomizedResponse(epsilon='0.1', categories=3)", 200)
INTEGERS = times("DiscreteGaussian(parameter=25)", 100)
GEOMETRIC = times("DiscreteLaplace(scale=10)", 1000)
FIXED = (
    "SampledWithoutReplacement(mechanism=Gaussian(standard_deviation=2), sample_size=10, "
    "population=1000)"
)
MANY = times("Laplace(scale=10)", 40)
LONG = times("Laplace(scale=10)", 1000)
SAMPLED = times(
    "PoissonSubsampled(mechanism=DiscreteLaplace(scale=3, sensitivity=2), sampling_prob='0.1')", 12
)
CONFIRMED = {
    "training": (claim(TRAINING, "2", "1e-5"), "HOLDS"),
    "training, refuted": (claim(TRAINING, "1.5", "1e-5"), "REFUTED"),
    "short, small delta": (claim(SHORT, "6", "1e-7"), "HOLDS"),
    "different releases": (claim(MIXED, "2", "1e-4"), "HOLDS"),
    "different releases, refuted": (claim(MIXED, "0.5", "1e-5"), "REFUTED"),
    "one step": (claim(step("1.1", "256/60000"), "1", "2.1e-13"), "HOLDS"),
    "replaced record": (claim(step("2", "0.1"), "0.3", "0.001", "replace-one"), "HOLDS"),
    "replaced record, refuted": (claim(step("2", "0.1"), "0", "0.03", "replace-one"), "REFUTED"),
    "sample of fixed size": (claim(FIXED, "0.1", "0.01", "replace-one"), "HOLDS"),
    "three answers": (claim(COIN, "4", "0.001", "replace-one"), "HOLDS"),
    "three answers, refuted": (claim(COIN, "1", "0.001", "replace-one"), "REFUTED"),
    "discrete Gaussian": (claim(INTEGERS, "5", "0.1"), "HOLDS"),
    "geometric": (claim(GEOMETRIC, "5", "0.1"), "REFUTED"),
    "Laplace": (claim(MANY, "3", "0.02"), "HOLDS"),
    "Laplace, often": (claim(LONG, "20", "1e-6"), "HOLDS"),
    "sampled lists": (claim(SAMPLED, "1", "0.01"), "HOLDS"),
    "Rényi": (
        f'kind = "renyi-dp"\nmechanism = "{TRAINING}"\norder = "8"\nepsilon = "2"\n'
        'adjacency = "add-remove"',
        "HOLDS",
    ),
    "expression": (
        'kind = "relation"\nclaim = "delta(Composed(mechanism=RandomizedResponse(epsilon=\'0.1\'), '
        'count=100), 1) <= exp(-2)"',
        "HOLDS",
    ),
}

TAKES_LONG: tuple[str, ...] = ("different releases", "different releases, refuted")


@cache
def _certified(name: str) -> str:
    text, verdict = CONFIRMED[name]
    read = document.read_text(f'schema_version = 1\n[[claims]]\nid = "c"\nstatement = "c"\n{text}')
    finding, data = certify(read.claims[0])
    assert finding.verdict.value == verdict, finding.reason
    return json.dumps(data)


def certified(name: str) -> Data:
    return dict(json.loads(_certified(name)))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in TAKES_LONG)) for name in CONFIRMED],
)
def test_a_composition_is_confirmed(name: str) -> None:
    checked = checker.check(certified(name))
    assert checked.problems == []
    assert checked.taken_as_given == []


def _everywhere(old: str, new: str) -> Callable[[Data], Data]:
    """Replace a text wherever it stands: a certificate that is consistent, and false."""

    def change(data: Data) -> Data:
        text = json.dumps(data)
        assert old in text
        return dict(json.loads(text.replace(old, new)))

    return change


def _in_claim(**changes: str) -> Callable[[Data], Data]:
    def change(data: Data) -> Data:
        changed = copy.deepcopy(data)
        changed["claim"] |= changes
        changed["claimed"] |= {key: changes[key] for key in changes if key in changed["claimed"]}
        for fact in changed["facts"] if "epsilon" in changes else []:
            fact["epsilon"] = changes["epsilon"]
        return changed

    return change


def _verdict(data: Data) -> Data:
    return {**data, "verdict": "REFUTED", "conclusion": "p - exp(epsilon)*q > delta"}


def _direction(data: Data) -> Data:
    """Claim the same value for both directions."""
    changed = copy.deepcopy(data)
    changed["facts"][1]["value"] = changed["facts"][0]["value"]
    return changed


def _value(digit: int) -> Callable[[Data], Data]:
    """Raise both ends of the first value by one unit of a digit."""

    def change(data: Data) -> Data:
        changed = copy.deepcopy(data)
        value = changed["facts"][0]["value"]
        for end in value:
            with mp.workdps(60):
                number = mp.mpf(value[end]) * (1 + mp.mpf(10) ** -digit)
                value[end] = mp.nstr(number, 45, strip_zeros=False).replace("e", "E")
        return changed

    return change


AGAIN = ("training", "different releases")
"""Certificates that take a second or more to check: a few forgeries in the default suite."""
TAMPERED: list[tuple[str, Callable[[Data], Data]]] = [
    ("training", _in_claim(delta="2.4e-7")),
    ("training", _in_claim(epsilon="1.9")),
    ("training", _everywhere("count=7032", "count=7033")),
    ("training", _everywhere("[7032]", "[7033]")),
    ("training", _everywhere("1.1", "1.2")),
    ("training", _everywhere("8/1875", "9/1875")),
    ("training", _everywhere("0.9090909090", "0.9090909091")),
    ("training", _verdict),
    ("training", _direction),
    ("training", _in_claim(adjacency="replace-one")),
    ("training", _value(4)),
    ("different releases", _everywhere("count=3000", "count=2999")),
    ("training", _everywhere('\\"mixture\\": \\"P\\"', '\\"mixture\\": \\"Q\\"')),
    ("different releases", _value(4)),
    ("one step", _everywhere("8/1875", "8/1876")),
    ("replaced record", _in_claim(adjacency="add-remove")),
    ("replaced record", _everywhere("1/10", "1/11")),
    ("replaced record", _everywhere("-0.5", "-0.6")),
    ("replaced record", _value(30)),
    ("one step", _in_claim(adjacency="replace-one")),
    ("sample of fixed size", _in_claim(adjacency="add-remove")),
    ("three answers", _everywhere("categories=3", "categories=4")),
    ("three answers", _in_claim(adjacency="add-remove")),
    ("three answers", _value(4)),
    ("discrete Gaussian", _everywhere("parameter=25", "parameter=26")),
    ("Laplace, often", _everywhere("count=1000", "count=1001")),
    ("Laplace, often", _value(10)),
    ("Laplace", _value(4)),
    ("sampled lists", _everywhere("count=12", "count=13")),
    ("sampled lists", _value(4)),
    ("Rényi", _value(30)),
    ("expression", _value(12)),
    ("expression", _everywhere("count=100", "count=110")),
]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param(*each, marks=[pytest.mark.slow] * (each[0] in AGAIN and place > 2))
        for place, each in enumerate(TAMPERED)
    ],
)
def test_what_is_changed_and_sealed_again_is_found(
    name: str, change: Callable[[Data], Data]
) -> None:
    changed = change({key: value for key, value in certified(name).items() if key != "seal"})
    checked = checker.check({**changed, "seal": seal.seal(changed)})
    assert not checked.valid, checked


@pytest.mark.parametrize("delta", ["0.001", "3.1e-19"])
def test_what_is_not_recomputed_is_said(delta: str) -> None:
    """Chernoff's bound of 1.2e-17 decides the first of two claims."""
    inside = times("Laplace(scale=1)", 150)
    read = document.read_text(
        'schema_version = 1\n[[claims]]\nid = "c"\nstatement = "c"\n' + claim(inside, "130", delta)
    )
    finding, data = certify(read.claims[0])
    assert finding.verdict.value == "HOLDS", finding.reason
    assert data is not None
    checked = checker.check(data)
    assert checked.problems == []
    said = ["facts[0].value: too long to recompute, but at most 1.2067e-17"]
    if delta != "0.001":
        said.append("value <= delta, which no number of digits decides")
    assert checked.taken_as_given == said


@pytest.mark.slow
def test_replaced_records_of_several_samples_are_derived_and_their_value_is_taken() -> None:
    inside = times(step("2", "0.1"), 3)
    text = claim(inside, "0.3", "0.001", "replace-one")
    read = document.read_text(f'schema_version = 1\n[[claims]]\nid = "c"\nstatement = "c"\n{text}')
    _, data = certify(read.claims[0])
    assert data is not None
    checked = checker.check(data)
    assert checked.problems == []
    assert checked.taken_as_given == ["the law of this mixture"]
    changed = _everywhere("1/10", "1/5")({key: data[key] for key in data if key != "seal"})
    assert not checker.check({**changed, "seal": seal.seal(changed)}).valid


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
@pytest.mark.parametrize("first", [True, False])
def test_the_integral_has_the_tails_of_one_mixture(first: bool) -> None:
    """Three normal laws against one: {L > ε} is the half-line from where the ratio is e^{±ε}."""
    weights = (Fraction(1, 10), Fraction(3, 10), Fraction(6, 10))
    means = (Fraction(0), Fraction(1, 4), Fraction(1, 2))
    mixture = Mixture(tuple(zip(weights, means, strict=True)), first)
    epsilon, sign = (Fraction(1, 4), 1) if first else (Fraction(1, 20), -1)
    with mp.workdps(60), interval_digits(60):
        found = contour.invert(((mixture, 1),), epsilon)

        def ratio(x: Any) -> Any:
            return sum(w * mp.exp(mp.mpf(m) * x - mp.mpf(m) ** 2 / 2) for w, m in mixture.parts)

        cut = mp.findroot(lambda x: ratio(x) - mp.exp(sign * epsilon), 1)
        mixed = mp.fsum(w * mp.ncdf(sign * (mp.mpf(m) - cut)) for w, m in mixture.parts)
        plain = mp.ncdf(-sign * cut)
        p, q = (mixed, plain) if first else (plain, mixed)
        for mine, right in (
            (found.above_p, p),
            (found.above_q, q),
            (found.hockey_stick, p - mp.exp(epsilon) * q),
        ):
            assert mp.mpf(mine.a) <= right <= mp.mpf(mine.b)
            assert mp.mpf(mine.delta.b) <= right * mp.mpf(10) ** -35


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
        Laplace(Fraction(1, 3)),
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


def test_a_lattice_is_found_where_there_is_one() -> None:
    def two(ratio: Fraction) -> Listed:
        return Listed(((ratio, 1 - ratio), (1 - ratio, ratio)))

    with mp.workdps(100):
        assert circle.lattice(((two(Fraction(2, 3)), 3), (two(Fraction(4, 5)), 1))) is not None
        assert circle.lattice(((two(Fraction(2, 3)), 3), (two(Fraction(3, 5)), 1))) is None


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


def test_chernoff_is_above() -> None:
    with mp.workdps(60), interval_digits(60):
        normal = ((Normal(Fraction(1)), 3),)
        above = contour.bounded(normal, Fraction(4)).hockey_stick
        inside = contour.invert(normal, Fraction(4)).hockey_stick
        assert above.a == 0
        assert inside.b <= above.b <= inside.b * 100
        assert isinstance(above, iv.mpf)
