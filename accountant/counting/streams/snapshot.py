"""A handed-over state of a counter, which is continued once."""

from __future__ import annotations

from typing import Any, final

from accountant.errors import NotApplicableError


@final
class Snapshot:
    """Where a counter stood. It is handed over, not copied: it can be restored once.

    Two continuations would use the same noise for two different prefixes, and their difference
    would show the inputs.
    """

    def __init__(self, record: dict[str, Any]) -> None:
        self._record: dict[str, Any] | None = record

    def take(self) -> dict[str, Any]:
        """Return the record, the first time."""
        if self._record is None:
            raise NotApplicableError(
                "This snapshot has been restored already. A second continuation would use the same "
                "noise for two different prefixes; take a new snapshot of the first one."
            )
        record, self._record = self._record, None
        return record
