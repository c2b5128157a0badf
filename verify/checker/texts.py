"""What the texts and numbers of a certificate may be."""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

_TEXT = r"^(?![\s\S]*[0-9.][eE][+-]?[0-9_]{6})[\t\n -\"$-\[\]-~]*(?![\s\S])"
PLAIN = re.compile(_TEXT)
Text = Annotated[str, Meta(pattern=_TEXT, max_length=100_000)]
"""An expression or a number."""
Name = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}(?![\s\S])")]
"""A variable."""
Words = Annotated[str, Meta(max_length=20_000)]
"""Somebody's words."""
Whole = Annotated[int, Meta(ge=-(10**18), le=10**18)]
Count = Annotated[int, Meta(ge=0, le=10**18)]
Scalar: TypeAlias = Whole | Text
Grid = Annotated[list[Scalar], Meta(max_length=100_000)]
Share = Annotated[float, Meta(ge=0, le=1)]
Level = Annotated[float, Meta(gt=0, lt=1)]


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shared by everything here."""
