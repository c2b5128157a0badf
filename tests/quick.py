"""Which cases of a table the default suite runs; the run of what is slow has the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def slow(*case: Any) -> Any:
    """Return a case that is left to the run of slow tests."""
    return pytest.param(*case, marks=pytest.mark.slow)


def quick(cases: Iterable[Any], *places: int) -> list[Any]:
    """Return the cases of a parametrisation, those at other places marked as slow."""
    return [
        case
        if place in places or hasattr(case, "marks")
        else slow(*(case if isinstance(case, tuple) else (case,)))
        for place, case in enumerate(cases)
    ]
