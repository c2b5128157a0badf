"""All mechanisms, each imported on first use.

The stub `__init__.pyi` lists every public name and its module, one per line. Type checkers and this
file read it. To add a mechanism, write its class and add a line to the stub.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

_LINE = re.compile(r"^from (\S+) import (?:\(\s*)?(\w+) as \2\b", re.MULTILINE)
_LISTED = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOME = {name: module for module, name in _LINE.findall(_LISTED)}

__all__ = sorted(_HOME)  # noqa: PLE0605  # a list


def __getattr__(name: str) -> Any:
    """Import a public name on first access, and cache it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


class _Descriptions(Mapping[str, type]):
    """A mapping from names to classes, each imported on lookup."""

    def __getitem__(self, name: str) -> type:
        if name not in _HOME:
            raise KeyError(name)
        kind: type = globals()[name] if name in globals() else __getattr__(name)
        return kind

    def __contains__(self, name: object) -> bool:
        return name in _HOME

    def __iter__(self) -> Iterator[str]:
        return iter(__all__)

    def __len__(self) -> int:
        return len(__all__)


DESCRIPTIONS: Mapping[str, type] = _Descriptions()
"""All classes that the notation can name."""
