"""The names of `dpassay`, for type checkers; a test holds this list and the table together."""

from accountant.accuracy import absolute_quantile as absolute_quantile
from accountant.accuracy import maximum_quantile as maximum_quantile
from accountant.accuracy import mean_absolute_error as mean_absolute_error
from accountant.accuracy import probability_exact as probability_exact
from accountant.adjacency import Adjacency as Adjacency
from accountant.adjacency import Direction as Direction
from accountant.calibrate import Calibration as Calibration
from accountant.calibrate import EpsilonDelta as EpsilonDelta
from accountant.calibrate import Mu as Mu
from accountant.calibrate import ProfileBelow as ProfileBelow
from accountant.calibrate import Rho as Rho
from accountant.calibrate import calibrate as calibrate
from accountant.errors import AdjacencyError as AdjacencyError
from accountant.errors import DpassayError as DpassayError
from accountant.errors import InvalidInputError as InvalidInputError
from accountant.errors import NotApplicableError as NotApplicableError
from accountant.errors import UndecidedError as UndecidedError
from accountant.guarantees import loss_cdf as loss_cdf
from accountant.guarantees import loss_survival as loss_survival
from accountant.guarantees import mu as mu
from accountant.guarantees import renyi as renyi
from accountant.guarantees import rho as rho
from accountant.guarantees import total_variation as total_variation
from accountant.interval import Interval as Interval
from accountant.mechanisms import *
from accountant.notation import parse as parse
from accountant.number import exact as exact
from accountant.profile import delta as delta
from accountant.profile import delta_complement as delta_complement
from accountant.profile import epsilon as epsilon
from accountant.profile import log_delta as log_delta
from accountant.tradeoff import beta as beta
from accountant.tradeoff import power as power
from accountant.utility import covariance as covariance
from accountant.utility import mean_squared_error as mean_squared_error
from accountant.utility import quantile as quantile
from accountant.utility import variance as variance
from accountant.workload import BoundedSum as BoundedSum
from accountant.workload import Count as Count
from accountant.workload import Counts as Counts
from accountant.workload import GroupedCounts as GroupedCounts
from accountant.workload import LinearQueries as LinearQueries
from accountant.workload import MatrixRelease as MatrixRelease
from accountant.workload import PrefixSums as PrefixSums
from accountant.workload import VectorSum as VectorSum
from verify.certificate import certify as certify
from verify.claims import ApproximateDP as ApproximateDP
from verify.claims import GaussianDP as GaussianDP
from verify.claims import Limit as Limit
from verify.claims import Minimiser as Minimiser
from verify.claims import Monotone as Monotone
from verify.claims import Optimality as Optimality
from verify.claims import Pending as Pending
from verify.claims import PrintedNumber as PrintedNumber
from verify.claims import ProfileBound as ProfileBound
from verify.claims import PureDP as PureDP
from verify.claims import Relation as Relation
from verify.claims import RenyiDP as RenyiDP
from verify.claims import TradeoffBound as TradeoffBound
from verify.claims import ZeroConcentratedDP as ZeroConcentratedDP
from verify.compare import Budget as Budget
from verify.compare import compare as compare
from verify.compare import sweep as sweep
from verify.document import read_file as read_file
from verify.document import read_paper as read_paper
from verify.exact import verify as verify
from verify.verdict import Finding as Finding
from verify.verdict import Rigour as Rigour
from verify.verdict import Verdict as Verdict

__version__: str

def main() -> int: ...
