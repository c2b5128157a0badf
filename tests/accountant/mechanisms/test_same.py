"""One law that has two names: every question has one answer, whichever of them it is asked by."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpassay.accountant.errors import DpassayError
from dpassay.accountant.notation import parse
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import accuracy, guarantees, profile, tradeoff
from dpassay.accountant.questions import accuracy as utility
from tests.tables import rows

LOGISTIC = "exp(-x)/(1+exp(-x))**2"
RAPPOR = "[['4/25', '1/25', '16/25', '4/25'], ['4/25', '16/25', '1/25', '4/25']]"
"""Two bits, each kept with probability 1 − f/2 = 4/5."""
RESPONSE = str(
    [["exp(1)/(exp(1)+2)" if i == j else "1/(exp(1)+2)" for j in range(3)] for i in range(3)]
)
NAMED = {"RAPPOR": RAPPOR, "LOGISTIC": LOGISTIC, "RESPONSE": RESPONSE}
RELATIONS = {"-": None, "law": None, "both": "add-remove", "one": "replace-one"}
SLOW = "LOGISTIC", "1/10'), 20)"
ROWS = [
    pytest.param(
        *(functools.reduce(lambda c, n: c.replace(n, NAMED[n]), NAMED, cell) for cell in row),
        marks=[pytest.mark.slow] * any(slow in row[1] for slow in SLOW),
    )
    for row in rows(Path(__file__).with_name("same.txt"))
]
OF_A_PAIR: list[tuple[Callable[..., Interval], str | None]] = [
    *((profile.delta, at) for at in ("-1", "0", "1/3", "5/2")),
    (profile.epsilon, "1e-3"),
    (profile.epsilon, "0"),
    (tradeoff.beta, "1/10"),
    (guarantees.renyi, "1"),
    (guarantees.renyi, "3"),
    (guarantees.rho, None),
]
OF_THE_NOISE: list[Callable[[Any], Any]] = [
    utility.mean_squared_error,
    accuracy.mean_absolute_error,
    lambda noise: utility.quantile(noise, "9/10"),
]


def answer(ask: Callable[..., Interval], *at: object, **relation: object) -> Interval | None:
    try:
        return ask(*at, **relation)
    except DpassayError:
        return None


@pytest.mark.parametrize(("relation", "one", "other"), ROWS, ids=lambda text: text[:40])
def test_one_law_has_one_answer(relation: str, one: str, other: str) -> None:
    both = parse(one), parse(other)
    for ask, at in OF_A_PAIR:
        if ask is guarantees.rho and "AdditiveNoise" in one:
            continue  # half a minute
        given = () if at is None else (at,)
        found = [answer(ask, each, *given, adjacency=RELATIONS[relation]) for each in both]
        if ask is profile.delta or (ask, at) == (profile.epsilon, "1e-3"):
            assert None not in found, (ask, at)
        if None not in found:
            assert found[0].overlaps(found[1]), (ask, at)  # type: ignore[union-attr, arg-type]
            for interval in found if ask is profile.delta else []:
                width = interval.relative_width  # type: ignore[union-attr]
                exact = interval.lower == interval.upper  # type: ignore[union-attr]
                most = Fraction(1, 10 ** (6 if "Composed" in one else 12))
                assert exact or (width is not None and width <= most), at
    for question in OF_THE_NOISE:
        noise = [answer(question, each) for each in both]
        if relation == "law" and None not in noise:
            assert noise[0].overlaps(noise[1]), question  # type: ignore[union-attr, arg-type]
