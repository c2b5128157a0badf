"""Histories in the form of Opacus."""

from __future__ import annotations

import pytest

from accountant.errors import InvalidInputError
from accountant.mechanisms import Composed, Gaussian, PoissonSubsampled
from accountant.questions import profile
from verify.exact import verify
from verify.foreign import as_mechanism, opacus
from verify.verdict import Verdict


class Accountant:
    """What there is of an accountant of Opacus: a history, and an ε."""

    def __init__(self, history: list[tuple[float, float, int]], epsilon: float) -> None:
        self.history = history
        self._epsilon = epsilon

    def get_epsilon(self, delta: float) -> float:
        return self._epsilon


def test_a_history_is_a_composition() -> None:
    sampled = PoissonSubsampled(Gaussian("1.5"), "0.25")
    assert opacus.mechanism_of([(1.5, 0.25, 10)]) == Composed(sampled, 10)
    assert opacus.mechanism_of([(1.5, 0.25, 1)]) == sampled
    assert opacus.mechanism_of([(2.0, 1.0, 10), (1.5, 0.25, 3)]) == Composed(
        (Composed(Gaussian(2), 10), Composed(sampled, 3))
    )
    assert as_mechanism([(2.0, 1.0, 1)]) == Gaussian(2)
    assert str(profile.delta(opacus.mechanism_of([]), 0)) == "0"


def test_the_accountants_own_epsilon_is_a_claim() -> None:
    for said, verdict in ((9.9, Verdict.REFUTED), (10.1, Verdict.HOLDS)):
        claim = opacus.claim(Accountant([(5.0, 1.0, 100)], said), 1e-5)
        assert verify(claim).verdict is verdict
    claim = opacus.claim([(5.0, 1.0, 100)], 1e-5, 9.9)
    assert verify(claim).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ("1.0", "to be a list"),
        ([(1.0, 0.5)], r"history\[0\]"),
        ([(1.0, 0.5, 10), (1.0, 0.5, -1)], r"history\[1\] steps"),
        ([(1.0, 0.5, 1.5)], "to be an integer"),
        ([(1.0, 1.5, 1)], "sampling_prob"),
        ([(0.0, 0.5, 1)], "standard_deviation"),
    ],
)
def test_wrong_histories_are_named(history: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        opacus.mechanism_of(history)
