"""Streaming forms of mechanisms for continual counting: one input in, one estimate out."""

from __future__ import annotations

from dpassay.accountant.counting.streams.state_file import Saved, StateFile
from dpassay.accountant.counting.streams.stream_counter import (
    Snapshot,
    StreamCounter,
    continued,
    counter_of,
)

__all__ = [
    "Saved",
    "Snapshot",
    "StateFile",
    "StreamCounter",
    "continued",
    "counter_of",
]
