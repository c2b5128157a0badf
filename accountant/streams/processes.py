"""Which process makes the noise of which mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accountant.errors import expected
from accountant.mechanisms.binary_tree import BinaryTree
from accountant.mechanisms.bridged_tree import BridgedTree
from accountant.mechanisms.delannoy_counter import DelannoyCounter
from accountant.mechanisms.honaker_tree import HonakerTree
from accountant.mechanisms.smooth_binary import SmoothBinary
from accountant.mechanisms.square_root_factorization import SquareRootFactorization
from accountant.streams.bridge_noise import BridgeNoise
from accountant.streams.chain_noise import ChainNoise
from accountant.streams.honaker_noise import HonakerNoise
from accountant.streams.smooth_noise import SmoothNoise
from accountant.streams.square_root_noise import SquareRootNoise

if TYPE_CHECKING:
    from accountant.mechanisms.linear_counter import LinearCounter
    from accountant.streams.noise import NoiseProcess, NoiseSource


def process(mechanism: LinearCounter, source: NoiseSource) -> NoiseProcess:
    """Return the noise process of a mechanism, at its beginning."""
    match mechanism:
        case BridgedTree():
            return BridgeNoise(mechanism, source)
        case DelannoyCounter():
            return ChainNoise(mechanism, source)
        case HonakerTree():
            return HonakerNoise(mechanism, source)
        case SmoothBinary() | BinaryTree():
            return SmoothNoise(mechanism, source)
        case SquareRootFactorization():
            return SquareRootNoise(mechanism, source)
    raise expected("mechanism", mechanism, "to count a stream")
