"""Optional extras that some figures need."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from dpassay.accountant.errors import NotApplicableError

EXTRAS = {"torch": "casestudies", "sklearn": "audit", "threadpoolctl": "audit"}
"""The extra that brings each module."""


def require(needs: Mapping[str, tuple[str, ...]]) -> None:
    """Do nothing if all modules are there that some figures, by their names, need.

    Raises
    ------
    NotApplicableError
        If one is missing; the message has the command that installs it.
    """
    missing = {
        figure: [name for name in modules if find_spec(name) is None]
        for figure, modules in needs.items()
    }
    lacking = [figure for figure, modules in missing.items() if modules]
    if lacking:
        extras = sorted({EXTRAS[name] for modules in missing.values() for name in modules})
        raise NotApplicableError(
            f"{', '.join(lacking)}: install what they need with pip install "
            f"'dpassay[{','.join(extras)}]' (in a clone, pip install '.[{','.join(extras)}]'), or "
            "name other figures with --only."
        )
