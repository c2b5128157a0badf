"""The corpus of reported values: each is judged, and the page of findings prints what is found."""

from __future__ import annotations

import functools
import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpassay.accountant.numbers.interval import Interval, few
from dpassay.accountant.questions import profile
from dpassay.verifier.foreign import events
from tests.peers.test_tables import event_of

ROOT = Path(__file__).parents[3]
CORPUS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("corpus.json").read_text(encoding="utf-8")
)
PAGE = (ROOT / "docs/field.md").read_text(encoding="utf-8")


@functools.lru_cache
def exact_epsilon(event: str, delta: str) -> Interval:
    """Enclose ε narrowly enough for every reported value."""
    mechanism = events.mechanism_of(event_of(json.loads(event)))
    return profile.epsilon(
        mechanism, delta, adjacency="add-remove", relative_width=Fraction(1, 10**8)
    )


def judged(report: dict[str, Any]) -> bool:
    """Whether a reported ε is an upper bound."""
    true = exact_epsilon(json.dumps(report["event"]), report["delta"])
    said = Fraction(report["epsilon"])
    assert said >= Fraction(true.upper) or said < Fraction(true.lower), report["id"]
    return said >= Fraction(true.upper)


@pytest.mark.slow
def test_the_corpus_and_its_page() -> None:
    refuted = {report["id"] for report in CORPUS if not judged(report)}
    assert (len(CORPUS), len(refuted)) == (95, 15)
    assert "has 95 values" in PAGE
    assert "15 are too small" in PAGE
    assert sum("opacus-gdp" in name for name in refuted) == 9
    assert sum("prv-estimate" in name for name in refuted) == 1
    assert all(name.endswith("1e-12") for name in refuted if "/pld-" in name)


def test_every_value_of_the_page_is_in_the_corpus() -> None:
    """A cell is the reported ε, its excess, and bold where it is too small."""
    section = PAGE[PAGE.index("## Reported training runs") : PAGE.index("- `opacus-gdp`")]
    cells = re.findall(r"(\*\*)?([\d.]+) \(([-+][\d.e+-]+)\)", section)
    printed = {(value, excess, bool(bold)) for bold, value, excess in cells}
    expected = set()
    for report in CORPUS:
        true = exact_epsilon(json.dumps(report["event"]), report["delta"])
        excess = float(Fraction(report["epsilon"]) / Fraction(true.upper) - 1)
        said = float(report["epsilon"])
        expected.add((f"{said:.5g}", few(excess, 2, sign="+"), excess < 0))
    assert printed
    assert printed <= expected
