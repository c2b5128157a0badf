"""Which process makes the noise of which mechanism."""

from __future__ import annotations

from accountant.counting.streams.bridge_noise import BridgeNoise
from accountant.counting.streams.chain_noise import ChainNoise
from accountant.counting.streams.noise import NoiseProcess, NoiseSource
from accountant.counting.streams.square_root_noise import SquareRootNoise
from accountant.counting.streams.tree_noise import HonakerNoise, SmoothNoise, TreeNoise
from accountant.errors import expected
from accountant.mechanisms.counting.bridged_tree import BridgedTree
from accountant.mechanisms.counting.delannoy_counter import DelannoyCounter
from accountant.mechanisms.counting.honaker_tree import HonakerTree
from accountant.mechanisms.counting.kary_tree import DiscreteKaryTree, TreeCounter
from accountant.mechanisms.counting.linear_counter import LinearCounter
from accountant.mechanisms.counting.normalized_square_root import NormalizedSquareRoot
from accountant.mechanisms.counting.smooth_binary import SmoothBinary
from accountant.mechanisms.counting.square_root_factorization import SquareRootFactorization


def process(mechanism: LinearCounter | DiscreteKaryTree, source: NoiseSource) -> NoiseProcess:
    """Return the noise process of a mechanism, at its beginning."""
    match mechanism:
        case BridgedTree():
            return BridgeNoise(mechanism, source)
        case DelannoyCounter():
            return ChainNoise(mechanism, source)
        case HonakerTree():
            return HonakerNoise(mechanism, source)
        case SmoothBinary():
            return SmoothNoise(mechanism, source)
        case TreeCounter():
            return TreeNoise(mechanism.tree, source)
        case DiscreteKaryTree():
            return TreeNoise(mechanism.continuous.tree, source)
        case SquareRootFactorization() | NormalizedSquareRoot():
            return SquareRootNoise(mechanism, source)
    raise expected("mechanism", mechanism, "to count a stream")
