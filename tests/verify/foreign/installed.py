"""Libraries of others: skipped where they are not installed, required where CI installs them."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import pytest


def library(name: str) -> Any:
    """Return a module; skip the test without it, unless DPASSAY_PEERS lists its library."""
    if name.partition(".")[0] in os.environ.get("DPASSAY_PEERS", "").split():
        return import_module(name)
    return pytest.importorskip(name)
