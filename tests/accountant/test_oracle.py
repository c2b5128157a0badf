"""The frozen answers of `benchmarks/oracle.json` are still those of the accountant."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.notation import parse
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import guarantees, profile, tradeoff
from tests.near import narrow

FROZEN = Path(__file__).parents[2] / "benchmarks" / "oracle.json"
ANSWERED = [entry for entry in json.loads(FROZEN.read_text("utf-8")) if "refused" not in entry]
FAST = 0.1
"""Seconds that a question took which the default suite asks again."""
BETWEEN = "1e-12"
"""A level of which slow answers are left out: those at 1e-6 and at 1e-50 are compared."""
SIX_DIGITS = Fraction(1, 10**6)
"""Relative width that products without a closed form have at the least."""
ASK: dict[str, Any] = {
    "delta": profile.delta,
    "epsilon": profile.epsilon,
    "beta": tradeoff.beta,
    "renyi": guarantees.renyi,
}


def name(entry: dict[str, Any]) -> str:
    return "{question} {mechanism} {at}".format_map(entry)


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(entry, marks=[pytest.mark.slow] * (entry["seconds"] > FAST), id=name(entry))
        for entry in ANSWERED
        if entry["seconds"] <= FAST or entry["at"] != BETWEEN
    ],
)
def test_answers_are_the_frozen_ones(entry: dict[str, Any]) -> None:
    """Compare an answer with the frozen one, at its width or with six digits at the least."""
    width = Fraction(entry["width"])
    ask = partial(
        ASK[entry["question"]],
        parse(entry["mechanism"]),
        entry["at"],
        adjacency=entry["adjacency"] or None,
    )
    try:
        found = ask(relative_width=width)
    except UndecidedError:
        width = SIX_DIGITS
        found = ask(relative_width=width)
    assert found.overlaps(Interval(Decimal(entry["lower"]), Decimal(entry["upper"])))
    assert narrow(found, width)
