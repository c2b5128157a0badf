"""Optional extras that some figures need."""

from __future__ import annotations

from importlib.util import find_spec

from dpassay.accountant.errors import NotApplicableError

EXTRAS = {"torch": "casestudies", "sklearn": "audit"}
"""The extra that brings each module."""


def require(needs: tuple[str, ...], figure: str) -> None:
    """Do nothing if all modules are there.

    Raises
    ------
    NotApplicableError
        If one is missing; the message has the command that installs it.
    """
    missing = [name for name in needs if find_spec(name) is None]
    if missing:
        extra = EXTRAS[missing[0]]
        raise NotApplicableError(
            f"{figure} needs {' and '.join(missing)}, of the extra {extra!r}. "
            f"Install it, in the clone: pip install -c constraints.txt -e '.[{extra}]'."
        )
