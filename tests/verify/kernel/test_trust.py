"""What a VALID rests on is pinned: a change of the trusted lines or lemmas is seen in review."""

from __future__ import annotations

from pathlib import Path

from dpassay.verifier.kernel import trust

PINNED = Path(__file__).parents[1] / "trust.txt"


def test_what_is_trusted_is_what_was_reviewed() -> None:
    """After a change: `dpassay check --trust > tests/verify/trust.txt`, and read the difference."""
    assert trust().splitlines() == PINNED.read_text("utf-8").splitlines()
