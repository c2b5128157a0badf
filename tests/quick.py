"""Which cases of a table the default suite runs; the run of what is slow has the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def quick(cases: Iterable[Any], *places: int) -> list[Any]:
    """Return the cases of a parametrisation, those at other places marked as slow."""
    return [
        case
        if place in places or hasattr(case, "marks")
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for place, case in enumerate(cases)
    ]
