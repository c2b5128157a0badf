"""The public names, one line each: `__init__.py` reads them from here."""

from collections.abc import Mapping

from dpassay.accountant.counting.count_noise import BoundedCountNoise as BoundedCountNoise
from dpassay.accountant.counting.counters import BinaryTree as BinaryTree
from dpassay.accountant.counting.counters import BridgedTree as BridgedTree
from dpassay.accountant.counting.counters import KaryTree as KaryTree
from dpassay.accountant.counting.matrix import BufferedToeplitz as BufferedToeplitz
from dpassay.accountant.counting.matrix import MatrixMechanism as MatrixMechanism
from dpassay.accountant.counting.square_root import (
    SquareRootFactorization as SquareRootFactorization,
)
from dpassay.accountant.geometry.ellipse import Diagonal as Diagonal
from dpassay.accountant.geometry.ellipse import Exchangeable as Exchangeable
from dpassay.accountant.geometry.ellipse import Isotropic as Isotropic
from dpassay.accountant.geometry.ellipse import Matrix as Matrix
from dpassay.accountant.geometry.spaces import Box as Box
from dpassay.accountant.geometry.spaces import DisjointGroups as DisjointGroups
from dpassay.accountant.geometry.spaces import FiniteSet as FiniteSet
from dpassay.accountant.geometry.spaces import L2Ball as L2Ball
from dpassay.accountant.geometry.spaces import SparseBox as SparseBox
from dpassay.accountant.mechanisms.additive.additive_noise import AdditiveNoise as AdditiveNoise
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian as Gaussian
from dpassay.accountant.mechanisms.additive.integers import DiscreteGaussian as DiscreteGaussian
from dpassay.accountant.mechanisms.additive.integers import DiscreteLaplace as DiscreteLaplace
from dpassay.accountant.mechanisms.additive.integers import IntegerNoise as IntegerNoise
from dpassay.accountant.mechanisms.additive.integers import Skellam as Skellam
from dpassay.accountant.mechanisms.additive.integers import TruncatedGeometric as TruncatedGeometric
from dpassay.accountant.mechanisms.additive.laplace import Laplace as Laplace
from dpassay.accountant.mechanisms.additive.laplace import Logistic as Logistic
from dpassay.accountant.mechanisms.additive.laplace import Staircase as Staircase
from dpassay.accountant.mechanisms.additive.laplace import TruncatedLaplace as TruncatedLaplace
from dpassay.accountant.mechanisms.additive.laplace_vector import LaplaceVector as LaplaceVector
from dpassay.accountant.mechanisms.selection.candidates import (
    ExponentialMechanism as ExponentialMechanism,
)
from dpassay.accountant.mechanisms.selection.candidates import PermuteAndFlip as PermuteAndFlip
from dpassay.accountant.mechanisms.selection.candidates import ReportNoisyMax as ReportNoisyMax
from dpassay.accountant.mechanisms.selection.quantile import PrivateQuantile as PrivateQuantile
from dpassay.accountant.mechanisms.selection.thresholds import AboveThreshold as AboveThreshold
from dpassay.accountant.mechanisms.selection.thresholds import (
    DiscreteLaplaceThreshold as DiscreteLaplaceThreshold,
)
from dpassay.accountant.mechanisms.selection.thresholds import (
    GaussianThreshold as GaussianThreshold,
)
from dpassay.accountant.mechanisms.selection.thresholds import LaplaceThreshold as LaplaceThreshold
from dpassay.accountant.mechanisms.selection.thresholds import (
    PartitionSelection as PartitionSelection,
)
from dpassay.accountant.mechanisms.shapes.correlated import CorrelatedGaussian as CorrelatedGaussian
from dpassay.accountant.mechanisms.shapes.correlated import (
    DiscreteCorrelatedGaussian as DiscreteCorrelatedGaussian,
)
from dpassay.accountant.mechanisms.shapes.correlated import (
    DisjointGroupsGaussian as DisjointGroupsGaussian,
)
from dpassay.accountant.mechanisms.shapes.correlated import KnownSizeGaussian as KnownSizeGaussian
from dpassay.accountant.mechanisms.shapes.correlated import OneSidedGaussian as OneSidedGaussian
from dpassay.accountant.mechanisms.shapes.ellipses import CountEllipse as CountEllipse
from dpassay.accountant.mechanisms.shapes.ellipses import EllipticalGaussian as EllipticalGaussian
from dpassay.accountant.mechanisms.shapes.ellipses import OptimalEllipse as OptimalEllipse
from dpassay.accountant.mechanisms.shapes.ellipses import OptimalGroups as OptimalGroups
from dpassay.accountant.mechanisms.shapes.general_gaussian import GeneralGaussian as GeneralGaussian
from dpassay.accountant.mechanisms.shapes.general_gaussian import (
    MatrixVariateGaussian as MatrixVariateGaussian,
)
from dpassay.accountant.mechanisms.shapes.general_gaussian import RankOneGaussian as RankOneGaussian
from dpassay.accountant.mechanisms.wrappers.among import ShuffledAmong as ShuffledAmong
from dpassay.accountant.mechanisms.wrappers.bounded import Bounded as Bounded
from dpassay.accountant.mechanisms.wrappers.channel import Channel as Channel
from dpassay.accountant.mechanisms.wrappers.channel import RandomizedResponse as RandomizedResponse
from dpassay.accountant.mechanisms.wrappers.channel import Rappor as Rappor
from dpassay.accountant.mechanisms.wrappers.channel import SubsetSelection as SubsetSelection
from dpassay.accountant.mechanisms.wrappers.channel import Tabulated as Tabulated
from dpassay.accountant.mechanisms.wrappers.channel import UnaryEncoding as UnaryEncoding
from dpassay.accountant.mechanisms.wrappers.composed import Composed as Composed
from dpassay.accountant.mechanisms.wrappers.composed import Guaranteed as Guaranteed
from dpassay.accountant.mechanisms.wrappers.sampling import MixtureOfGaussians as MixtureOfGaussians
from dpassay.accountant.mechanisms.wrappers.sampling import PoissonSubsampled as PoissonSubsampled
from dpassay.accountant.mechanisms.wrappers.sampling import RandomAllocation as RandomAllocation
from dpassay.accountant.mechanisms.wrappers.sampling import (
    SampledWithoutReplacement as SampledWithoutReplacement,
)
from dpassay.accountant.mechanisms.wrappers.sampling import Shuffled as Shuffled
from dpassay.accountant.mechanisms.wrappers.tuned import Tuned as Tuned

DESCRIPTIONS: Mapping[str, type]
