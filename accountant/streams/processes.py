"""Which process makes the noise of which mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accountant.errors import expected
from accountant.mechanisms.bridged_tree import BridgedTree
from accountant.mechanisms.delannoy_counter import DelannoyCounter
from accountant.streams.bridge_noise import BridgeNoise
from accountant.streams.chain_noise import ChainNoise

if TYPE_CHECKING:
    import numpy as np

    from accountant.mechanisms.linear_counter import LinearCounter
    from accountant.streams.noise import NoiseProcess


def process(mechanism: LinearCounter, rng: np.random.Generator) -> NoiseProcess:
    """Return the noise process of a mechanism, at its beginning."""
    if isinstance(mechanism, BridgedTree):
        return BridgeNoise(mechanism, rng)
    if isinstance(mechanism, DelannoyCounter):
        return ChainNoise(mechanism, rng)
    raise expected("mechanism", mechanism, "to count a stream")
