from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import DESCRIPTIONS
from tests.scripts import script

DOCS = Path(__file__).resolve().parent.parent / "docs"
SLOW = {
    "AdditiveNoise",
    "MixtureOfGaussians",
    "RandomAllocation",
    "RankOneGaussian",
    "SampledWithoutReplacement",
    "Tuned",
}
"""More than three seconds each."""
NAMES = [name for name, kind in DESCRIPTIONS.items() if issubclass(kind, Mechanism)]


@pytest.fixture(scope="module")
def table() -> Any:
    return script("docs/make_capabilities.py")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in NAMES]
)
def test_what_a_mechanism_lacks_is_listed_with_its_reason(table: Any, name: str) -> None:
    """Close the gap, or explain it in `NOT_YET` of docs/make_capabilities.py."""
    assert table.lacks(table.examples()[name]).keys() == table.expected_gaps(name)


def test_the_page_has_a_row_for_every_mechanism(table: Any) -> None:
    text = (DOCS / "capabilities.md").read_text(encoding="utf-8")
    missing = [name for name in NAMES if f"|{name}|" not in text]
    assert not missing, "run python docs/make_capabilities.py"
    assert all(reason in text for reasons in table.NOT_YET.values() for reason in reasons.values())
