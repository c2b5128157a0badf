"""The mechanisms: one law per file."""

from __future__ import annotations

from accountant.covariances import Diagonal, Exchangeable, Isotropic, Matrix
from accountant.mechanisms.binary_tree import BinaryTree
from accountant.mechanisms.bounded_count_noise import BoundedCountNoise
from accountant.mechanisms.bridged_tree import BridgedTree
from accountant.mechanisms.composed import Composed
from accountant.mechanisms.correlated import CorrelatedGaussian
from accountant.mechanisms.count_ellipse import CountEllipse
from accountant.mechanisms.delannoy_counter import DelannoyCounter
from accountant.mechanisms.discrete_correlated import DiscreteCorrelatedGaussian
from accountant.mechanisms.discrete_gaussian import DiscreteGaussian
from accountant.mechanisms.discrete_kary_tree import DiscreteKaryTree
from accountant.mechanisms.discrete_laplace import DiscreteLaplace
from accountant.mechanisms.disjoint_groups import DisjointGroupsGaussian
from accountant.mechanisms.elliptical import EllipticalGaussian
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.general_gaussian import GeneralGaussian
from accountant.mechanisms.guaranteed import Guaranteed
from accountant.mechanisms.honaker_tree import HonakerTree
from accountant.mechanisms.integer_noise import IntegerNoise
from accountant.mechanisms.kary_tree import KaryTree
from accountant.mechanisms.known_size import KnownSizeGaussian
from accountant.mechanisms.laplace import Laplace
from accountant.mechanisms.laplace_vector import LaplaceVector
from accountant.mechanisms.matrix_variate import MatrixVariateGaussian
from accountant.mechanisms.mixture_of_gaussians import MixtureOfGaussians
from accountant.mechanisms.optimal_ellipse import OptimalEllipse
from accountant.mechanisms.randomized_response import RandomizedResponse
from accountant.mechanisms.rank_one_gaussian import RankOneGaussian
from accountant.mechanisms.sampled_without_replacement import SampledWithoutReplacement
from accountant.mechanisms.smooth_binary import SmoothBinary
from accountant.mechanisms.square_root_factorization import SquareRootFactorization
from accountant.mechanisms.staircase import Staircase
from accountant.mechanisms.subsampled import PoissonSubsampled
from accountant.mechanisms.tabulated import Tabulated
from accountant.mechanisms.truncated_geometric import TruncatedGeometric
from accountant.spaces import Box, DisjointGroups, FiniteSet, L2Ball, SparseBox

__all__ = [
    "BinaryTree",
    "BoundedCountNoise",
    "Box",
    "BridgedTree",
    "Composed",
    "CorrelatedGaussian",
    "CountEllipse",
    "DelannoyCounter",
    "Diagonal",
    "DiscreteCorrelatedGaussian",
    "DiscreteGaussian",
    "DiscreteKaryTree",
    "DiscreteLaplace",
    "DisjointGroups",
    "DisjointGroupsGaussian",
    "EllipticalGaussian",
    "Exchangeable",
    "FiniteSet",
    "Gaussian",
    "GeneralGaussian",
    "Guaranteed",
    "HonakerTree",
    "IntegerNoise",
    "Isotropic",
    "KaryTree",
    "KnownSizeGaussian",
    "L2Ball",
    "Laplace",
    "LaplaceVector",
    "Matrix",
    "MatrixVariateGaussian",
    "MixtureOfGaussians",
    "OptimalEllipse",
    "PoissonSubsampled",
    "RandomizedResponse",
    "RankOneGaussian",
    "SampledWithoutReplacement",
    "SmoothBinary",
    "SparseBox",
    "SquareRootFactorization",
    "Staircase",
    "Tabulated",
    "TruncatedGeometric",
]

DESCRIPTIONS: dict[str, type] = {name: globals()[name] for name in __all__}
"""Everything that the notation can name."""
