"""What libraries report of the same releases, decided as the page says."""

from __future__ import annotations

import re
from pathlib import Path

from verify.document import read_paper
from verify.exact import verify

PAGE = Path(__file__).resolve().parents[3] / "docs" / "interoperation.md"


def test_every_reported_value_is_decided_as_the_page_says() -> None:
    rows = dict(
        re.findall(r"^\| `([^`]+)` \|.*\| (\w+) \| [^|]*\|$", PAGE.read_text("utf-8"), re.M)
    )
    claims = [claim for claim in read_paper("field").claims if claim.id in rows]
    assert {claim.id: verify(claim).verdict.value for claim in claims} == rows
    assert len(rows) >= 19
