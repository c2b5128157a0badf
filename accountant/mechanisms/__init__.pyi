"""The public names, one line each: `__init__.py` reads them from here."""

from collections.abc import Mapping

from dpassay.accountant.counting.strategies import BufferedToeplitz as BufferedToeplitz
from dpassay.accountant.geometry.covariances import Diagonal as Diagonal
from dpassay.accountant.geometry.covariances import Exchangeable as Exchangeable
from dpassay.accountant.geometry.covariances import Isotropic as Isotropic
from dpassay.accountant.geometry.covariances import Matrix as Matrix
from dpassay.accountant.geometry.spaces import Box as Box
from dpassay.accountant.geometry.spaces import DisjointGroups as DisjointGroups
from dpassay.accountant.geometry.spaces import FiniteSet as FiniteSet
from dpassay.accountant.geometry.spaces import L2Ball as L2Ball
from dpassay.accountant.geometry.spaces import SparseBox as SparseBox
from dpassay.accountant.mechanisms.additive.additive_noise import AdditiveNoise as AdditiveNoise
from dpassay.accountant.mechanisms.additive.discrete_gaussian import (
    DiscreteGaussian as DiscreteGaussian,
)
from dpassay.accountant.mechanisms.additive.discrete_laplace import (
    DiscreteLaplace as DiscreteLaplace,
)
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian as Gaussian
from dpassay.accountant.mechanisms.additive.integer_noise import IntegerNoise as IntegerNoise
from dpassay.accountant.mechanisms.additive.k_norm import KNorm as KNorm
from dpassay.accountant.mechanisms.additive.laplace import Laplace as Laplace
from dpassay.accountant.mechanisms.additive.laplace_vector import LaplaceVector as LaplaceVector
from dpassay.accountant.mechanisms.additive.logistic import Logistic as Logistic
from dpassay.accountant.mechanisms.additive.mixture_of_gaussians import (
    MixtureOfGaussians as MixtureOfGaussians,
)
from dpassay.accountant.mechanisms.additive.skellam import Skellam as Skellam
from dpassay.accountant.mechanisms.additive.staircase import Staircase as Staircase
from dpassay.accountant.mechanisms.additive.truncated_geometric import (
    TruncatedGeometric as TruncatedGeometric,
)
from dpassay.accountant.mechanisms.additive.truncated_laplace import (
    TruncatedLaplace as TruncatedLaplace,
)
from dpassay.accountant.mechanisms.counting.bounded_count_noise import (
    BoundedCountNoise as BoundedCountNoise,
)
from dpassay.accountant.mechanisms.counting.bridged_tree import BridgedTree as BridgedTree
from dpassay.accountant.mechanisms.counting.delannoy_counter import (
    DelannoyCounter as DelannoyCounter,
)
from dpassay.accountant.mechanisms.counting.honaker_tree import HonakerTree as HonakerTree
from dpassay.accountant.mechanisms.counting.kary_tree import BinaryTree as BinaryTree
from dpassay.accountant.mechanisms.counting.kary_tree import DiscreteKaryTree as DiscreteKaryTree
from dpassay.accountant.mechanisms.counting.kary_tree import KaryTree as KaryTree
from dpassay.accountant.mechanisms.counting.matrix_mechanism import (
    MatrixMechanism as MatrixMechanism,
)
from dpassay.accountant.mechanisms.counting.normalized_square_root import (
    NormalizedSquareRoot as NormalizedSquareRoot,
)
from dpassay.accountant.mechanisms.counting.smooth_binary import SmoothBinary as SmoothBinary
from dpassay.accountant.mechanisms.counting.square_root_factorization import (
    SquareRootFactorization as SquareRootFactorization,
)
from dpassay.accountant.mechanisms.selection.above_threshold import AboveThreshold as AboveThreshold
from dpassay.accountant.mechanisms.selection.exponential import (
    ExponentialMechanism as ExponentialMechanism,
)
from dpassay.accountant.mechanisms.selection.partition_selection import (
    PartitionSelection as PartitionSelection,
)
from dpassay.accountant.mechanisms.selection.permute_and_flip import (
    PermuteAndFlip as PermuteAndFlip,
)
from dpassay.accountant.mechanisms.selection.propose_test_release import (
    ProposeTestRelease as ProposeTestRelease,
)
from dpassay.accountant.mechanisms.selection.report_noisy_max import (
    ReportNoisyMax as ReportNoisyMax,
)
from dpassay.accountant.mechanisms.selection.threshold import (
    DiscreteLaplaceThreshold as DiscreteLaplaceThreshold,
)
from dpassay.accountant.mechanisms.selection.threshold import GaussianThreshold as GaussianThreshold
from dpassay.accountant.mechanisms.selection.threshold import LaplaceThreshold as LaplaceThreshold
from dpassay.accountant.mechanisms.selection.top_selections import TopSelections as TopSelections
from dpassay.accountant.mechanisms.shapes.correlated import CorrelatedGaussian as CorrelatedGaussian
from dpassay.accountant.mechanisms.shapes.discrete_correlated import (
    DiscreteCorrelatedGaussian as DiscreteCorrelatedGaussian,
)
from dpassay.accountant.mechanisms.shapes.disjoint_groups import (
    DisjointGroupsGaussian as DisjointGroupsGaussian,
)
from dpassay.accountant.mechanisms.shapes.ellipses import CountEllipse as CountEllipse
from dpassay.accountant.mechanisms.shapes.ellipses import OptimalEllipse as OptimalEllipse
from dpassay.accountant.mechanisms.shapes.elliptical import EllipticalGaussian as EllipticalGaussian
from dpassay.accountant.mechanisms.shapes.general_gaussian import GeneralGaussian as GeneralGaussian
from dpassay.accountant.mechanisms.shapes.known_size import KnownSizeGaussian as KnownSizeGaussian
from dpassay.accountant.mechanisms.shapes.matrix_variate import (
    MatrixVariateGaussian as MatrixVariateGaussian,
)
from dpassay.accountant.mechanisms.shapes.one_sided import OneSidedGaussian as OneSidedGaussian
from dpassay.accountant.mechanisms.shapes.optimal_groups import OptimalGroups as OptimalGroups
from dpassay.accountant.mechanisms.shapes.rank_one_gaussian import (
    RankOneGaussian as RankOneGaussian,
)
from dpassay.accountant.mechanisms.wrappers.channel import Channel as Channel
from dpassay.accountant.mechanisms.wrappers.composed import Composed as Composed
from dpassay.accountant.mechanisms.wrappers.guaranteed import Guaranteed as Guaranteed
from dpassay.accountant.mechanisms.wrappers.local import HadamardResponse as HadamardResponse
from dpassay.accountant.mechanisms.wrappers.local import LocalHashing as LocalHashing
from dpassay.accountant.mechanisms.wrappers.local import Rappor as Rappor
from dpassay.accountant.mechanisms.wrappers.local import SubsetSelection as SubsetSelection
from dpassay.accountant.mechanisms.wrappers.local import UnaryEncoding as UnaryEncoding
from dpassay.accountant.mechanisms.wrappers.random_allocation import (
    RandomAllocation as RandomAllocation,
)
from dpassay.accountant.mechanisms.wrappers.randomized_response import (
    RandomizedResponse as RandomizedResponse,
)
from dpassay.accountant.mechanisms.wrappers.sampled_without_replacement import (
    SampledWithoutReplacement as SampledWithoutReplacement,
)
from dpassay.accountant.mechanisms.wrappers.shuffled import Shuffled as Shuffled
from dpassay.accountant.mechanisms.wrappers.subsampled import PoissonSubsampled as PoissonSubsampled
from dpassay.accountant.mechanisms.wrappers.tabulated import Tabulated as Tabulated

DESCRIPTIONS: Mapping[str, type]
