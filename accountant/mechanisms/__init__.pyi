"""The public names, one line each: `__init__.py` reads them from here."""

from collections.abc import Mapping

from accountant.counting.strategies import BufferedToeplitz as BufferedToeplitz
from accountant.geometry.covariances import Diagonal as Diagonal
from accountant.geometry.covariances import Exchangeable as Exchangeable
from accountant.geometry.covariances import Isotropic as Isotropic
from accountant.geometry.covariances import Matrix as Matrix
from accountant.geometry.spaces import Box as Box
from accountant.geometry.spaces import DisjointGroups as DisjointGroups
from accountant.geometry.spaces import FiniteSet as FiniteSet
from accountant.geometry.spaces import L2Ball as L2Ball
from accountant.geometry.spaces import SparseBox as SparseBox
from accountant.mechanisms.additive.additive_noise import AdditiveNoise as AdditiveNoise
from accountant.mechanisms.additive.discrete_gaussian import DiscreteGaussian as DiscreteGaussian
from accountant.mechanisms.additive.discrete_laplace import DiscreteLaplace as DiscreteLaplace
from accountant.mechanisms.additive.gaussian import Gaussian as Gaussian
from accountant.mechanisms.additive.integer_noise import IntegerNoise as IntegerNoise
from accountant.mechanisms.additive.k_norm import KNorm as KNorm
from accountant.mechanisms.additive.laplace import Laplace as Laplace
from accountant.mechanisms.additive.laplace_vector import LaplaceVector as LaplaceVector
from accountant.mechanisms.additive.logistic import Logistic as Logistic
from accountant.mechanisms.additive.mixture_of_gaussians import (
    MixtureOfGaussians as MixtureOfGaussians,
)
from accountant.mechanisms.additive.skellam import Skellam as Skellam
from accountant.mechanisms.additive.staircase import Staircase as Staircase
from accountant.mechanisms.additive.truncated_geometric import (
    TruncatedGeometric as TruncatedGeometric,
)
from accountant.mechanisms.additive.truncated_laplace import TruncatedLaplace as TruncatedLaplace
from accountant.mechanisms.counting.bounded_count_noise import (
    BoundedCountNoise as BoundedCountNoise,
)
from accountant.mechanisms.counting.bridged_tree import BridgedTree as BridgedTree
from accountant.mechanisms.counting.delannoy_counter import DelannoyCounter as DelannoyCounter
from accountant.mechanisms.counting.honaker_tree import HonakerTree as HonakerTree
from accountant.mechanisms.counting.kary_tree import BinaryTree as BinaryTree
from accountant.mechanisms.counting.kary_tree import DiscreteKaryTree as DiscreteKaryTree
from accountant.mechanisms.counting.kary_tree import KaryTree as KaryTree
from accountant.mechanisms.counting.matrix_mechanism import MatrixMechanism as MatrixMechanism
from accountant.mechanisms.counting.normalized_square_root import (
    NormalizedSquareRoot as NormalizedSquareRoot,
)
from accountant.mechanisms.counting.smooth_binary import SmoothBinary as SmoothBinary
from accountant.mechanisms.counting.square_root_factorization import (
    SquareRootFactorization as SquareRootFactorization,
)
from accountant.mechanisms.selection.above_threshold import AboveThreshold as AboveThreshold
from accountant.mechanisms.selection.exponential import (
    ExponentialMechanism as ExponentialMechanism,
)
from accountant.mechanisms.selection.partition_selection import (
    PartitionSelection as PartitionSelection,
)
from accountant.mechanisms.selection.permute_and_flip import PermuteAndFlip as PermuteAndFlip
from accountant.mechanisms.selection.propose_test_release import (
    ProposeTestRelease as ProposeTestRelease,
)
from accountant.mechanisms.selection.report_noisy_max import ReportNoisyMax as ReportNoisyMax
from accountant.mechanisms.selection.threshold import GaussianThreshold as GaussianThreshold
from accountant.mechanisms.selection.threshold import LaplaceThreshold as LaplaceThreshold
from accountant.mechanisms.selection.top_selections import TopSelections as TopSelections
from accountant.mechanisms.shapes.correlated import CorrelatedGaussian as CorrelatedGaussian
from accountant.mechanisms.shapes.discrete_correlated import (
    DiscreteCorrelatedGaussian as DiscreteCorrelatedGaussian,
)
from accountant.mechanisms.shapes.disjoint_groups import (
    DisjointGroupsGaussian as DisjointGroupsGaussian,
)
from accountant.mechanisms.shapes.ellipses import CountEllipse as CountEllipse
from accountant.mechanisms.shapes.ellipses import OptimalEllipse as OptimalEllipse
from accountant.mechanisms.shapes.elliptical import EllipticalGaussian as EllipticalGaussian
from accountant.mechanisms.shapes.general_gaussian import GeneralGaussian as GeneralGaussian
from accountant.mechanisms.shapes.known_size import KnownSizeGaussian as KnownSizeGaussian
from accountant.mechanisms.shapes.matrix_variate import (
    MatrixVariateGaussian as MatrixVariateGaussian,
)
from accountant.mechanisms.shapes.one_sided import OneSidedGaussian as OneSidedGaussian
from accountant.mechanisms.shapes.optimal_groups import OptimalGroups as OptimalGroups
from accountant.mechanisms.shapes.rank_one_gaussian import RankOneGaussian as RankOneGaussian
from accountant.mechanisms.wrappers.channel import Channel as Channel
from accountant.mechanisms.wrappers.composed import Composed as Composed
from accountant.mechanisms.wrappers.guaranteed import Guaranteed as Guaranteed
from accountant.mechanisms.wrappers.local import HadamardResponse as HadamardResponse
from accountant.mechanisms.wrappers.local import LocalHashing as LocalHashing
from accountant.mechanisms.wrappers.local import Rappor as Rappor
from accountant.mechanisms.wrappers.local import SubsetSelection as SubsetSelection
from accountant.mechanisms.wrappers.local import UnaryEncoding as UnaryEncoding
from accountant.mechanisms.wrappers.random_allocation import RandomAllocation as RandomAllocation
from accountant.mechanisms.wrappers.randomized_response import (
    RandomizedResponse as RandomizedResponse,
)
from accountant.mechanisms.wrappers.sampled_without_replacement import (
    SampledWithoutReplacement as SampledWithoutReplacement,
)
from accountant.mechanisms.wrappers.shuffled import Shuffled as Shuffled
from accountant.mechanisms.wrappers.subsampled import PoissonSubsampled as PoissonSubsampled
from accountant.mechanisms.wrappers.tabulated import Tabulated as Tabulated

DESCRIPTIONS: Mapping[str, type]
