"""Facts about single numbers, through the public face: closed forms, limits, agreements, words.

A row may use the names that the row before it set with `:=`.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay.accountant.budget.allotment import most_releases
from tests.near import narrow
from tests.tables import rows

FACTS: list[list[str]] = rows(Path(__file__).with_name("facts.txt"))
NAMES: dict[str, Any] = {name: getattr(dpassay, name) for name in dpassay.__all__}  # type: ignore[attr-defined]
NAMES |= {"Decimal": Decimal, "Fraction": Fraction, "inf": math.inf, "isclose": math.isclose}
NAMES |= {"most_releases": most_releases, "narrow": narrow, "np": np}
NAMES |= {
    "NOISE": dpassay.Gaussian("1.1"),
    "WIDE": dpassay.Interval(Decimal("0.0512"), Decimal("0.0559")),
}


def chains() -> list[Any]:
    """Return rows that belong together: each, and those after it whose reason begins with …"""
    found = []
    for place, (_, why) in enumerate(FACTS):
        if not why.startswith("…"):
            more = takewhile(lambda row: row[1].startswith("…"), FACTS[place + 1 :])
            found.append(pytest.param([FACTS[place], *more], id=why))
    return found


@pytest.mark.parametrize("facts", chains())
def test_it_is_so(facts: list[list[str]]) -> None:
    names = dict(NAMES)
    for fact, why in facts:
        assert eval(fact, names), why
