"""The frozen answers of `benchmarks/oracle.json` are still those of the accountant."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accountant import guarantees, profile, tradeoff
from accountant.interval import Interval
from accountant.notation import parse

FROZEN = Path(__file__).parents[2] / "benchmarks" / "oracle.json"
ANSWERED = [entry for entry in json.loads(FROZEN.read_text("utf-8")) if "refused" not in entry]
FAST = 0.3
"""Seconds that a question took which the default suite asks again."""
ASK: dict[str, Any] = {
    "delta": profile.delta,
    "epsilon": profile.epsilon,
    "beta": tradeoff.beta,
    "renyi": guarantees.renyi,
}


def name(entry: dict[str, Any]) -> str:
    return "{question} {mechanism} {at}".format_map(entry)


def check(entry: dict[str, Any]) -> None:
    """Compare an answer, at the width that was reached, with the frozen one."""
    width = Fraction(entry["width"])
    found = ASK[entry["question"]](
        parse(entry["mechanism"]),
        entry["at"],
        adjacency=entry["adjacency"] or None,
        relative_width=width,
    )
    assert found.overlaps(Interval(Decimal(entry["lower"]), Decimal(entry["upper"])))
    assert found.relative_width is not None
    assert found.relative_width <= width


@pytest.mark.parametrize("entry", [e for e in ANSWERED if e["seconds"] <= FAST], ids=name)
def test_fast_answers_are_the_frozen_ones(entry: dict[str, Any]) -> None:
    check(entry)


@pytest.mark.slow
@pytest.mark.parametrize("entry", [e for e in ANSWERED if e["seconds"] > FAST], ids=name)
def test_slow_answers_are_the_frozen_ones(entry: dict[str, Any]) -> None:
    check(entry)
