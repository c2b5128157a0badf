"""The checker's two laws on a grid: few releases, against closed forms and the first program."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from mpmath import mp

from accountant.core.adjacency import Direction
from accountant.core.mechanism import Mechanism
from accountant.mechanisms import Composed, Gaussian, Laplace, PoissonSubsampled
from accountant.questions import profile
from verify import checker, document, seal
from verify.certificate import certify
from verify.checker.arithmetic import UnknownError
from verify.checker.compositions.grid import enclose
from verify.checker.compositions.mixtures import Mixture
from verify.checker.compositions.moments import DiscreteNormal, Listed, Normal
from verify.checker.compositions.moments import Laplace as LaplaceLoss

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
    text = (
        'schema_version = 1\n[[claims]]\nid = "c"\nstatement = "c"\nkind = "approximate-dp"\n'
        f'mechanism = "Composed(mechanism={GROUP}, count=2)"\nadjacency = "add-remove"\n'
        'epsilon = "0.8"\ndelta = "2e-5"'
    )
    finding, data = certify(document.read_text(text).claims[0])
    assert finding.verdict.value == "HOLDS"
    assert data is not None
    found = checker.check(data)
    assert found.valid
    assert found.taken_as_given == []
    assert any("digits" in said for said in found.recomputed)
    changed = {key: value for key, value in data.items() if key != "seal"}
    for fact in changed["facts"]:
        fact["value"] = {end: str(float(x) / 2) for end, x in fact["value"].items()}
    problems = checker.check({**changed, "seal": seal.seal(changed)}).problems
    assert any("does not enclose" in why for _, why in problems)
