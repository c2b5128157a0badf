"""Streaming forms of mechanisms for continual counting: one input in, one estimate out."""

from __future__ import annotations

from accountant.streams.counters import Counter, continued, counter_of
from accountant.streams.parallel import ParallelCounter
from accountant.streams.snapshot import Snapshot
from accountant.streams.state_file import Saved, StateFile
from accountant.streams.stream_counter import StreamCounter
from accountant.streams.tree_counter import TreeCounter
from accountant.streams.unbounded import UnboundedCounter

__all__ = [
    "Counter",
    "ParallelCounter",
    "Saved",
    "Snapshot",
    "StateFile",
    "StreamCounter",
    "TreeCounter",
    "UnboundedCounter",
    "continued",
    "counter_of",
]
