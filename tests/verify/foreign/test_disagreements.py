"""The corpus: what libraries report of the same releases, decided."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from verify import document
from verify.exact import verify

PAGE = Path(__file__).resolve().parents[3] / "docs" / "interoperation.md"


def test_every_reported_value_is_decided_as_the_page_says() -> None:
    text = (resources.files("verify.foreign") / "disagreements.toml").read_text("utf-8")
    found = {claim.id: verify(claim).verdict.value for claim in document.read_text(text).claims}
    rows = re.findall(r"^\| `([^`]+)` \|.*\| (\w+) \| [^|]*\|$", PAGE.read_text("utf-8"), re.M)
    assert found == dict(rows)
    assert "UNDECIDED" not in found.values()
