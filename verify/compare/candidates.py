"""A budget, the mechanisms that can release a workload with it, and why others cannot."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, ROUND_UP, Context
from enum import Enum
from fractions import Fraction
from functools import partial, singledispatch
from typing import Any, TypeAlias, TypeVar, final

from flint import arb

from dpassay.accountant.budget.calibrate import calibrate
from dpassay.accountant.budget.target import EpsilonDelta, Mu, Rho, Target
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import Integer, Probability, Relation, probability
from dpassay.accountant.counting.count_noise import BoundedCountNoise
from dpassay.accountant.counting.counters import KaryTree, LinearCounter
from dpassay.accountant.counting.matrix import MatrixMechanism
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, expected
from dpassay.accountant.geometry.ellipse import Isotropic, Matrix
from dpassay.accountant.geometry.spaces import FiniteSet
from dpassay.accountant.geometry.workload import (
    BoundedSum,
    Count,
    Counts,
    GroupedCounts,
    LinearQueries,
    MatrixRelease,
    PrefixSums,
    Selection,
    Training,
    VectorSum,
    Workload,
)
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.additive.laplace import Laplace, Logistic, optimal_gamma
from dpassay.accountant.mechanisms.additive.laplace_vector import LaplaceVector
from dpassay.accountant.mechanisms.selection.candidates import (
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
)
from dpassay.accountant.mechanisms.shapes.correlated import (
    CorrelatedGaussian,
    DisjointGroupsGaussian,
    OneSidedGaussian,
)
from dpassay.accountant.mechanisms.shapes.ellipses import (
    CountEllipse,
    EllipticalGaussian,
    OptimalEllipse,
    OptimalGroups,
)
from dpassay.accountant.mechanisms.shapes.general_gaussian import (
    GeneralGaussian,
    MatrixVariateGaussian,
    RankOneGaussian,
)
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.sampling import PoissonSubsampled
from dpassay.accountant.mechanisms.wrappers.tuned import Tuned
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.numbers.solve import bracket, root
from dpassay.accountant.pairs.rank_one import theorem_5_sigma_star
from dpassay.accountant.questions import profile
from dpassay.accountant.training import dpsgd_noise
from dpassay.verifier.claims import Claim, guarantee
from dpassay.verifier.expression import LONGEST

# --- What may be spent: a guarantee for all releases together -------------------------------------


@final
@dataclass(frozen=True)
class Budget:
    """A guarantee, the neighbouring relation that it is about, and how many releases share it.

    Parameters
    ----------
    target
        `EpsilonDelta`, `Mu` or `Rho`.
    adjacency
        The neighbouring relation. The sensitivities of the workload are for this relation.
    releases
        How often the whole workload is released, each time with fresh noise; the guarantee is
        for all of them together.
    sampling_prob
        The probability that a person takes part in a release, independently of others.
    """

    target: Target
    adjacency: Relation = Relation("add-remove")
    releases: Integer = Integer(1, least=1)
    sampling_prob: Probability = Probability(1)

    def __post_init__(self) -> None:
        target = self.target
        if not isinstance(target, Target):
            raise expected("target", target, "to be a target", "Write epsilon=1, delta=1e-5.")
        if objection := self.target.objection():
            raise InvalidInputError(objection)
        if self.sampling_prob.sign == 0:
            raise InvalidInputError(
                "Expected sampling_prob=0 > 0. With 0 nobody's data is used; leave the query out."
            )
        if self.is_sampled and self.adjacency is not Adjacency.ADD_REMOVE:
            raise InvalidInputError(
                f"Expected adjacency='add-remove' with sampling_prob={self.sampling_prob}, not "
                f"{self.adjacency.value!r}: the exact laws of Poisson subsampling are for it."
            )

    @property
    def is_sampled(self) -> bool:
        """Whether a person may be left out of a release."""
        return self.sampling_prob.rational != 1

    @property
    def epsilon_delta(self) -> EpsilonDelta | None:
        """The target, where it is (ε, δ)-DP."""
        return self.target if isinstance(self.target, EpsilonDelta) else None

    def whole(self, release: Mechanism) -> Mechanism:
        """Return all releases together."""
        one = PoissonSubsampled(release, self.sampling_prob) if self.is_sampled else release
        return one if self.releases == 1 else Composed(one, self.releases)

    def claim(
        self, whole: Mechanism, name: str, adjacency: Adjacency | None = None
    ) -> Claim | None:
        """Return the claim that a mechanism keeps to the budget; None for a profile.

        It is for the budget's neighbouring relation unless another is given.
        """
        kinds = {EpsilonDelta: ("epsilon", "delta"), Mu: ("mu",), Rho: ("rho",)}
        names = kinds.get(type(self.target))
        if names is None:
            return None
        return guarantee(
            {part: getattr(self.target, part) for part in names},
            id=name,
            source="comparison",
            mechanism=str(whole),
            adjacency=(adjacency or self.adjacency).value,
        )

    def __str__(self) -> str:
        relation = self.adjacency.value
        several = f", {self.releases} releases together" if self.releases > 1 else ""
        part = f", each with a {self.sampling_prob} sample" if self.is_sampled else ""
        return f"{self.target} under {relation}{several}{part}"

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "target": str(self.target),
            "adjacency": self.adjacency.value,
            "releases": self.releases,
            "sampling_prob": str(self.sampling_prob),
        }


class Layout(Enum):
    """How the law of a mechanism becomes the noise of the answers."""

    EACH = "each"
    """Every answer has its own independent noise with the scalar law."""
    JOINT = "joint"
    """The first coordinates are the noise of the answers; more may follow, such as a size."""
    STREAM = "stream"
    """Coordinate t is the noise of the t-th prefix sum."""


@final
@dataclass(frozen=True)
class Calibrated:
    """A mechanism with the noise that a budget asks for."""

    mechanism: Mechanism
    """The law of one release: of each answer, or of all, as the layout says."""
    whole: Mechanism
    """What the budget is about: a mechanism as private as all releases together."""
    layout: Layout
    least: Interval | None = None
    """Encloses the noise argument at which the noise is least; None where it is not calibrated."""
    argument: str = ""
    adjacency: Adjacency | None = None
    """The neighbouring relation of its guarantee, where that is not the budget's."""
    bound: Interval | None = None
    """A proved lower bound of the variance of any mechanism of the kind `bound_for`."""
    bound_for: str = ""

    def answer_columns(self, workload: Workload) -> list[int]:
        """Return which coordinates of the mechanism are the answers; others are released too."""
        if isinstance(self.mechanism, DisjointGroupsGaussian):
            row = self.mechanism.dimension + 1
            return [g * row + j for g in range(self.mechanism.groups) for j in range(row - 1)]
        return list(range(workload.answers))


@final
@dataclass(frozen=True)
class Candidate:
    """A named way to release the workload."""

    name: str
    why: str
    """What the law is and why it fits, in one line."""
    make: Callable[[Budget], Calibrated] = field(repr=False)
    as_published: bool = False
    """Whether its noise is a published formula rather than calibrated."""


@final
@dataclass(frozen=True)
class LeftOut:
    """A candidate that does not apply."""

    name: str
    reason: str


def calibrated(
    kind: str, budget: Budget, layout: Layout = Layout.JOINT, *, copies: int = 1, **fixed: Any
) -> Calibrated:
    """Calibrate a mechanism to a budget.

    Parameters
    ----------
    copies
        How many answers, each with its own noise of a scalar law, change by its sensitivity at
        once: one release is then as private as so many releases of the scalar mechanism.
    """
    found = calibrate(
        kind,
        budget.target,
        adjacency=budget.adjacency,
        count=budget.releases * copies,
        sampling_prob=budget.sampling_prob,
        **fixed,
    )
    return Calibrated(found.mechanism, found.whole, layout, found.least, found.argument)


def fixed(
    mechanism: Mechanism,
    budget: Budget,
    layout: Layout,
    *,
    copies: int = 1,
    bound: Interval | None = None,
    bound_for: str = "",
) -> Calibrated:
    """Return a mechanism with the noise that it has, and what is known of its kind."""
    release = mechanism if copies == 1 else Composed(mechanism, copies)
    return Calibrated(mechanism, budget.whole(release), layout, bound=bound, bound_for=bound_for)


Image = tuple[Fraction, Sequence[Fraction]]
"""The vector √square·entries."""


def moved(workload: Counts | GroupedCounts, budget: Budget) -> int:
    """Return how many counts change by 1 at once.

    Under add/remove the ones of a record. Under replace-one those of two records, which in dense
    counts can be no more than all of them, and in groups may lie in two groups.
    """
    if isinstance(workload, Counts):
        ones = workload.sparsity
        both = min(2 * ones, workload.dimension)
    else:
        ones, both = workload.dimension, min(2 * workload.dimension, workload.answers)
    return ones if budget.adjacency is Adjacency.ADD_REMOVE else both


def images(workload: LinearQueries) -> list[Image]:
    """Return W v for the vertices v of the space, those that are not 0."""
    from dpassay.lp.shapes import vertices

    found: list[Image] = []
    for vertex in vertices(workload.space):
        image = [
            sum((w * x for w, x in zip(row, vertex.entries, strict=True)), start=Fraction(0))
            for row in workload.matrix
        ]
        if any(image):
            found.append((vertex.square, image))
    return found


def l2_sensitivity(workload: Workload, budget: Budget) -> ExactReal:
    """Return the largest ℓ2 norm of a change, or the least bound of it that follows."""
    match workload:
        case Count(sensitivity=sensitivity):
            return ExactReal.of_rational(sensitivity)
        case Counts() | GroupedCounts():
            return ExactReal.of_root(Fraction(moved(workload, budget)))
        case BoundedSum(bounds=bounds):
            return ExactReal.of_root(_total(b * b for b in bounds))
        case VectorSum():
            return _l2_bound(workload)
        case MatrixRelease(l2_sensitivity=norm):
            return norm
        case PrefixSums(steps=steps):
            return ExactReal.of_root(Fraction(steps))
        case LinearQueries():
            found = images(workload)
            return ExactReal.of_root(max(square * _total(y * y for y in i) for square, i in found))
    raise TypeError(type(workload).__name__)


def l1_sensitivity(workload: Workload, budget: Budget) -> ExactReal | None:
    """Return the largest ℓ1 norm of a change, or the least bound that follows; None without one.

    Laplace noise of one scale on every answer is no worse for a change of ℓ1 norm T than for one
    answer that moves by T: with f_t the trade-off function of Lap(t) and Lap(0), moving the
    coordinates one after the other gives at least f_s(1 − f_t) (group privacy), and for a location
    family of log-concave density, F(F⁻¹(1 − α) − t), that is f_{s+t}.
    """
    match workload:
        case Count(sensitivity=sensitivity):
            return ExactReal.of_rational(sensitivity)
        case Counts() | GroupedCounts():
            return ExactReal.of_rational(moved(workload, budget))
        case BoundedSum(bounds=bounds):
            return ExactReal.of_rational(_total(bounds))
        case VectorSum():
            return _l1_bound(workload)
        case PrefixSums(steps=steps):
            return ExactReal.of_rational(steps)
        case LinearQueries():
            return max(
                ExactReal.of_root(square) * ExactReal.of_rational(_total(abs(y) for y in image))
                for square, image in images(workload)
            )
    return None


def _l2_bound(workload: VectorSum) -> ExactReal:
    """Return the least of ‖v‖₁, ‖v‖₂, √d‖v‖_∞ and √(‖v‖₁‖v‖_∞)."""
    bounds = [workload.l1_sensitivity, workload.l2_sensitivity]
    if workload.linf_sensitivity is not None:
        bounds.append(workload.linf_sensitivity * ExactReal.of_root(Fraction(workload.dimension)))
        if workload.l1_sensitivity is not None:
            product = workload.l1_sensitivity * workload.linf_sensitivity
            if product.rational is not None:
                bounds.append(ExactReal.of_root(product.rational))
    return min(bound for bound in bounds if bound is not None)


def _l1_bound(workload: VectorSum) -> ExactReal:
    """Return the least of ‖v‖₁, √d‖v‖₂ and d‖v‖_∞."""
    bounds = [workload.l1_sensitivity]
    if workload.l2_sensitivity is not None:
        bounds.append(workload.l2_sensitivity * ExactReal.of_root(Fraction(workload.dimension)))
    if workload.linf_sensitivity is not None:
        bounds.append(workload.linf_sensitivity * ExactReal.of_rational(workload.dimension))
    return min(bound for bound in bounds if bound is not None)


def _total(values: object) -> Fraction:
    return sum(values, start=Fraction(0))  # type: ignore[call-overload,no-any-return]


Found: TypeAlias = Iterator[Candidate | LeftOut]

# --- Choosing one of several candidates: mechanisms, and how far from the best the choice may be

_DIGITS = 12
"""Digits of an ε, rounded down."""
_WIDTH = Fraction(1, 10**14)
"""Relative width of a regret that is searched."""


def _of_scores(workload: Selection, budget: Budget) -> Found:
    """Yield the mechanisms that choose by scores."""
    why = "chooses in proportion to the exponential of the score: the report of noisy maximum with "
    make = partial(_calibrated, workload=workload)
    yield Candidate(
        "exponential mechanism",
        f"{why}Gumbel noise",
        partial(make, kind=ExponentialMechanism, noise="Logistic"),
    )
    why = "goes through candidates in random order and takes one by a flip: the report of noisy "
    yield Candidate(
        "permute-and-flip",
        f"{why}maximum with exponential noise",
        partial(make, kind=PermuteAndFlip, noise="Laplace"),
    )


def _calibrated(
    budget: Budget,
    *,
    workload: Selection,
    kind: type[ExponentialMechanism | PermuteAndFlip],
    noise: str,
) -> Calibrated:
    """Calibrate a choice; several releases, and a budget in divergences, through its noise.

    The profile of one release is that of logistic noise, or of Laplace noise, at distance ε.
    Whatever the scores, its pair is dominated by that of the noise, and so are compositions and
    samples of it. Of permute-and-flip no divergence is known exactly.
    """
    exact = kind is ExponentialMechanism or budget.epsilon_delta is not None
    if budget.releases == 1 and not budget.is_sampled and exact:
        return calibrated(
            kind.__name__,
            budget,
            Layout.EACH,
            sensitivity=workload.sensitivity,
            monotone=workload.monotone,
        )
    found = calibrated(noise, budget, Layout.EACH)
    assert isinstance(found.mechanism, Laplace | Logistic)
    inverse = enclose((ExactReal.of_rational(1) / found.mechanism.scale).ball)
    epsilon = Context(prec=_DIGITS, rounding=ROUND_FLOOR).plus(inverse.lower)
    mechanism = kind(epsilon, workload.sensitivity, workload.monotone)
    return Calibrated(mechanism, found.whole, Layout.EACH, found.least, "epsilon")


def regret(found: Calibrated, workload: Workload, level: str) -> Interval:
    """Enclose the least t such that the choice is within t of the best score with a probability.

    For the worst scores: P(the score is t or more below the best) is largest where all candidates
    but one are at t. To lower a score from less than t below the best to t makes it more probable
    that one of those at t or below is chosen, and so does raising one from below t to t. With
    q = e^{−at} for a = ε/(2Δ), or ε/Δ for monotone scores, the best of k is then chosen with
    probability 1/(1 + (k − 1)q) by the exponential mechanism. Permute-and-flip takes it where all
    candidates before it are refused: (1/k) Σ_{j<k} (1 − q)^j = (1 − (1 − q)^k)/(kq).

    With independent noises ReportNoisyMax takes it with the chance that one noise and t exceed the
    largest of k − 1 others.

    Raises NotApplicableError for a mechanism that is not about scores.
    """
    mechanism, p = found.mechanism, probability("level", level)
    if isinstance(mechanism, ReportNoisyMax):
        mechanism = mechanism.same() or mechanism
    if not (
        isinstance(mechanism, ExponentialMechanism | PermuteAndFlip | ReportNoisyMax)
        and isinstance(workload, Selection)
    ):
        raise NotApplicableError(f"{type(mechanism).__name__} chooses by no scores.")
    count = workload.candidates
    if isinstance(mechanism, ReportNoisyMax):
        return _distance(mechanism.chance_of_best, p) * enclose(mechanism.scale.ball)
    unit = mechanism.sensitivity / mechanism.epsilon
    unit = unit if mechanism.monotone else unit * ExactReal.of_rational(2)
    if isinstance(mechanism, ExponentialMechanism):

        def distance() -> arb:
            chance = p.ball()
            log: arb = ((count - 1) * chance / (1 - chance)).log()
            return log.max(arb(0)) * unit.ball()

        return enclose(distance)

    def taken(t: arb) -> arb:
        q = (-t).exp()
        return arb(1) / count if t.is_zero() else -(count * (-q).log1p()).expm1() / (count * q)

    return _distance(taken, p) * enclose(unit.ball)


def _distance(taken: Callable[[arb], arb], p: ExactReal) -> Interval:
    """Enclose the least t ≥ 0 at which a rising probability is p, or more."""

    def missed(t: ExactReal) -> arb:
        return p.ball() - taken(t.ball())

    if not missed(ExactReal.of_rational(0)) > 0:
        return Interval.of_exact(0)
    return root(missed, bracket(missed, Fraction(1), floor=Fraction(0)), relative_width=_WIDTH)


# --- The noise of a training run by how its batches are made, each with its own neighbours --------

_NOISE = "standard_deviation"
_SCHEMES = {
    "Poisson batches (add-remove)": (
        "every step takes each record independently; neighbours: one record added or removed",
        "poisson",
    ),
    "random allocation (add-remove)": (
        "every record is in one step of each epoch, chosen by itself; neighbours: one record added "
        "or removed",
        "random-allocation",
    ),
    "batches without replacement (replace-one)": (
        "every step draws a new subset of one size; neighbours: one record replaced",
        "without-replacement",
    ),
}
"""Every way to sample batches of which a guarantee is proved."""


def _schemes(workload: Training, budget: Budget) -> Found:
    """Yield every way to make batches of which a guarantee is proved."""
    if budget.releases > 1 or budget.is_sampled:
        raise NotApplicableError(
            "Training states its own steps and batches: leave releases and sampling_prob out."
        )
    if workload.runs > 1:
        yield Candidate(
            f"all {workload.runs} runs (add-remove)",
            "Poisson batches; every run may be examined, and any of them released",
            partial(
                _searched, workload=workload, sampling="poisson", adjacency=Adjacency.ADD_REMOVE
            ),
        )
        yield Candidate(
            "the best of a random number of runs (add-remove)",
            f"Poisson batches; the number of runs is geometric, {workload.runs} on average, "
            "and only the run with the best score is examined",
            partial(_best_of, workload=workload),
        )
        yield LeftOut("other batches", "several runs are offered with Poisson batches only")
        return
    for name, (why, sampling) in _SCHEMES.items():
        replaced = sampling == "without-replacement"
        adjacency = Adjacency.REPLACE_ONE if replaced else Adjacency.ADD_REMOVE
        make = partial(_searched, workload=workload, sampling=sampling, adjacency=adjacency)
        yield Candidate(name, why, make)
    yield Candidate(
        "each record once an epoch (zero-out)",
        "shuffled or fixed batches: no gain by sampling is proved; neighbours differ in a record "
        "whose gradient is 0 in one of them",
        partial(_once, epochs=workload.epochs),
    )


def _searched(
    budget: Budget, *, workload: Training, sampling: str, adjacency: Adjacency
) -> Calibrated:
    """Find the noise of sampled batches."""
    spent = budget.epsilon_delta
    if spent is None:
        raise NotApplicableError(
            "The noise of sampled batches is calibrated to (epsilon, delta) only."
        )
    run = dpsgd_noise(
        spent.epsilon,
        workload.batch_size,
        workload.dataset_size,
        delta=spent.delta,
        epochs=workload.epochs if workload.runs == 1 else None,
        steps=None if workload.runs == 1 else workload.runs * _steps(workload),
        sampling=sampling,
    )
    noise = Gaussian(run.noise_multiplier)
    return Calibrated(noise, run.mechanism, Layout.EACH, argument=_NOISE, adjacency=adjacency)


def _steps(workload: Training) -> int:
    """Return the steps of one run."""
    return -(-workload.epochs * workload.dataset_size // workload.batch_size)


_CLOSE, _TRIES = 0.98, 10
"""The share of ε that the best of several runs uses at least, and amounts of noise tried: four."""
_USUAL_SLOPE = -1.5
"""Of ln ε against ln σ, where one amount of noise is known."""


def _best_of(budget: Budget, *, workload: Training) -> Calibrated:
    """Find the noise of runs of which the best one is released, from that of a single run on."""
    one = replace(workload, runs=1)
    single = _searched(budget, workload=one, sampling="poisson", adjacency=Adjacency.ADD_REMOVE)
    spent, place = budget.epsilon_delta, float(single.mechanism.variances()[0].log()) / 2
    assert spent is not None
    before, slope = (0.0, 0.0), _USUAL_SLOPE
    aim, share = float(spent.epsilon), Fraction(workload.batch_size, workload.dataset_size)
    for attempt in range(_TRIES):
        noise = Gaussian(str(Context(prec=6, rounding=ROUND_UP).create_decimal(math.exp(place))))
        run = Composed(PoissonSubsampled(noise, share), _steps(workload))
        whole = Tuned(run, workload.runs)
        found = profile.epsilon(
            whole, spent.delta, adjacency=Adjacency.ADD_REMOVE, relative_width=1
        )
        over = math.log(float(found.upper) / aim)
        if math.log(_CLOSE) <= over <= 0:
            return Calibrated(
                noise, whole, Layout.EACH, argument=_NOISE, adjacency=Adjacency.ADD_REMOVE
            )
        if attempt:
            slope = min((over - before[1]) / (place - before[0]), _USUAL_SLOPE / 3)
        before = place, over
        place -= (over - math.log(_CLOSE) / 2) / slope
    raise NotApplicableError(f"No noise was found in {_TRIES} steps: its epsilon is {found}.")


def _once(budget: Budget, *, epochs: int) -> Calibrated:
    """Find the noise with which an epoch is one Gaussian release of what a record adds."""
    together = replace(budget, releases=epochs, adjacency=Adjacency.ADD_REMOVE)
    return replace(calibrated("Gaussian", together, Layout.EACH), adjacency=Adjacency.ADD_REMOVE)


# --- The least integer noise for one count, by linear programs ------------------------------------

_SUPPORTS = 4
"""Doublings of a support: longer laws gain nothing, or take too long."""


def _integer_programs(workload: Count, budget: Budget) -> Found:
    """Yield the integer laws of least error, or why there are none."""
    names = {
        "variance": "optimal integer noise",
        "absolute": "optimal integer noise, for E|Z|",
        "error": "optimal integer noise, for P(Z = 0)",
    }
    spent = budget.epsilon_delta
    why_not = ""
    if spent is None or spent.delta.sign == 0 or spent.delta.rational is None:
        why_not = "the linear program is about (epsilon, delta)-DP with a rational delta > 0"
    elif budget.releases > 1 or budget.is_sampled:
        why_not = "the linear program is about one release; composition is not linear in the law"
    elif spent.epsilon.sign < 0:
        why_not = "the linear program is about epsilon >= 0"
    for objective, name in names.items():
        if why_not:
            yield LeftOut(name, why_not)
        else:
            yield Candidate(
                name,
                f"the integer law of least {_COSTS[objective]}, by a linear program with a "
                "certificate",
                partial(_integer_noise, objective=objective, sensitivity=workload.sensitivity),
            )


_COSTS = {"variance": "variance", "absolute": "mean absolute error", "error": "P(Z ≠ 0)"}


def _integer_noise(budget: Budget, *, objective: str, sensitivity: int) -> Calibrated:
    """Solve the linear program on supports that double until a longer one gains nothing."""
    from dpassay.lp.integer_noise import IntegerNoiseProblem, optimal_integer_noise

    spent = budget.epsilon_delta
    assert spent is not None
    support = _first_support(spent.epsilon, spent.delta, sensitivity)
    for _ in range(_SUPPORTS):
        try:
            problem = IntegerNoiseProblem(
                objective=objective,
                support=support,
                epsilon=spent.epsilon,
                delta=spent.delta.rational,
                sensitivity=sensitivity,
            )
        except InvalidInputError as error:
            raise NotApplicableError(f"Its linear program is too large here: {error}") from error
        solution = optimal_integer_noise(problem)
        if len(repr(solution.mechanism)) > LONGEST:
            raise NotApplicableError(
                "Its law is too large for a claim: its probabilities, as exact fractions, have "
                f"more than {LONGEST} characters."
            )
        if solution.every_support:
            break
        support *= 2
    bounded = objective == "variance"
    return Calibrated(
        solution.mechanism,
        budget.whole(solution.mechanism),
        Layout.EACH,
        bound=solution.value if bounded else None,
        bound_for=(
            "integer noise"
            if solution.every_support
            else f"integer noise of support at most {solution.problem.support}"
        ),
    )


def _first_support(epsilon: ExactReal, delta: ExactReal, sensitivity: int) -> int:
    """Return about where a geometric law has fallen to δ."""
    size = max(float(epsilon), 1e-3)
    return max(2, math.ceil(sensitivity * (1.2 + math.log(1 / float(delta)) / size)))


# --- Gaussian noise for linear queries: on the data vector, and of the best shape -----------------


def _rank_of(moves: Sequence[Image]) -> int:
    """Return in how many dimensions the answers move."""
    from flint import fmpq, fmpq_mat

    rows = [[fmpq(y.numerator, y.denominator) for y in image] for _, image in moves]
    return int(fmpq_mat(rows).rref()[1])


def _space(moves: Sequence[Image]) -> FiniteSet:
    return FiniteSet(
        [
            [ExactReal.of_root(square) * ExactReal.of_rational(y) for y in image]
            for square, image in moves
        ]
    )


def _unit(budget: Budget) -> tuple[Fraction, Fraction]:
    """Return σ² of Gaussian noise at ℓ2 sensitivity 1: enough for the budget, and a lower bound."""
    found = calibrated("Gaussian", budget)
    assert isinstance(found.mechanism, Gaussian)
    assert found.least is not None
    return found.mechanism.standard_deviation.square, Fraction(found.least.lower) ** 2


def _on_the_data(budget: Budget, *, workload: LinearQueries, moves: Sequence[Image]) -> Calibrated:
    """Return W z for z ~ N(0, σ²I) on the data vector."""
    largest = workload.space.largest_norm(Isotropic(workload.space.dimension, 1)).exact
    if largest is None:
        raise NotApplicableError("The largest difference of the data vector has no exact norm.")
    variance = largest.square * _unit(budget)[0]
    rows = workload.matrix
    products = [
        [
            variance * sum((a * b for a, b in zip(r, s, strict=True)), start=Fraction(0))
            for s in rows
        ]
        for r in rows
    ]
    mechanism = GeneralGaussian(Matrix(products), _space(moves))
    return Calibrated(mechanism, budget.whole(mechanism), Layout.JOINT)


def _shape(budget: Budget, *, moves: Sequence[Image]) -> Calibrated:
    """Scale the covariance of least variance to the budget."""
    from dpassay.lp.shapes import GaussianShapeProblem, optimal_gaussian_shape

    space = _space(moves)
    solution = optimal_gaussian_shape(GaussianShapeProblem(space))
    factor, least = _unit(budget)
    unit = solution.mechanism.covariance.matrix()
    mechanism = GeneralGaussian(Matrix([[entry * factor for entry in row] for row in unit]), space)
    bound = Interval.of_exact(least * Fraction(solution.value.lower) / len(unit))
    return Calibrated(
        mechanism,
        budget.whole(mechanism),
        Layout.JOINT,
        bound=bound,
        bound_for="Gaussian noise, on average over the answers",
    )


_PUBLISHED_DIGITS = 12
"""Digits of noise that a published method is given, rounded up."""
_ARITIES = 60
"""Largest arity of a tree that is compared: the best ones have fewer."""
_KNOWN = {
    "Gaussian": ("Gaussian", "independent Gaussian noise, calibrated exactly"),
    "Laplace": (
        "Laplace",
        "independent Laplace noise of one scale, the classic choice for pure DP",
    ),
    "discrete Laplace": (
        "DiscreteLaplace",
        "integer noise; the geometric mechanism, optimal for pure DP and integer loss",
    ),
    "discrete Gaussian": ("DiscreteGaussian", "integer noise with the tails of the Gaussian"),
    "staircase": (
        "Staircase",
        "the density of least variance for pure DP (Geng and Viswanath), gamma rounded",
    ),
    "optimal ellipse": (
        "OptimalEllipse",
        "the Gaussian noise of least variance for counts with at most k ones, correlated",
    ),
    "count ellipse (Joseph, Yu)": (
        "CountEllipse",
        "Gaussian noise from the smallest ellipse of their family",
    ),
    "correlated Gaussian (Lebeda)": (
        "CorrelatedGaussian",
        "a shared and an independent part; the noisy number of records is released too",
    ),
    "correlated Gaussian, size withheld": (
        "CorrelatedGaussian",
        "the same without its size: at most as much privacy loss",
    ),
    "disjoint groups (Lebeda)": (
        "DisjointGroupsGaussian",
        "correlated noise inside each group; the sizes of the groups are released too",
    ),
    "optimal groups": (
        "OptimalGroups",
        "the Gaussian noise of least variance for such counts, without the sizes of the groups",
    ),
    "elliptical Gaussian (Poulsen)": (
        "EllipticalGaussian",
        "independent noise of variance in proportion to the bound: least total variance of all "
        "Gaussian noise",
    ),
    "one-sided Gaussian": (
        "OneSidedGaussian",
        "a shared and an independent part; the noisy number of records is released too",
    ),
    "Laplace on every prefix sum": (
        "Laplace",
        "fresh noise each time; a change of one input moves up to n outputs",
    ),
    "binary tree": ("KaryTree", "the k-ary tree with k = 2, without subtraction"),
}
"""What is calibrated by its name in the notation, and why it fits."""


def _known(name: str, layout: Layout = Layout.JOINT, *, kind: str = "", **fixed: Any) -> Candidate:
    """Return a candidate of the table; `kind` for another law under the same name."""
    own, why = _KNOWN[name]
    return Candidate(name, why, partial(calibrated, kind or own, layout=layout, **fixed))


def candidates_for(workload: Workload, budget: Budget) -> tuple[list[Candidate], list[LeftOut]]:
    """Return what can release a workload, and what is left out with the reason."""
    entries = list(_of(workload, budget))
    return (
        [entry for entry in entries if isinstance(entry, Candidate)],
        [entry for entry in entries if isinstance(entry, LeftOut)],
    )


@singledispatch
def _of(workload: Workload, budget: Budget) -> Found:
    raise NotApplicableError(f"No candidate is known for {type(workload).__name__}.")


_of.register(Training, _schemes)
_of.register(Selection, _of_scores)


@_of.register
def _(workload: Count, budget: Budget) -> Found:
    s = workload.sensitivity
    yield from _gaussian(Layout.EACH, ExactReal.of_rational(s), budget)
    yield _known("Laplace", Layout.EACH, l1_sensitivity=s)
    yield _known("discrete Laplace", Layout.EACH, sensitivity=s)
    yield _known("discrete Gaussian", Layout.EACH, sensitivity=s)
    yield from _staircase(workload, budget)
    yield from _integer_programs(workload, budget)
    yield LeftOut(
        "bounded count noise (Sadeghi et al.)",
        "a budget does not determine its eta and support; name it as a candidate to have it judged",
    )


@_of.register
def _(workload: Counts, budget: Budget) -> Found:
    d, k = workload.dimension, workload.sparsity
    yield from _gaussian(Layout.EACH, l2_sensitivity(workload, budget), budget)
    yield from _independent(moved(workload, budget), budget)
    ellipse = "count ellipse (Joseph, Yu)"
    if budget.adjacency is not Adjacency.ADD_REMOVE:
        reason = "its exact shape is for add/remove; under replace-one the differences are signed"
        yield LeftOut("optimal ellipse", reason)
        yield LeftOut(ellipse, reason)
    else:
        yield _known("optimal ellipse", dimension=d, sparsity=k)
        if 2 * k > d:
            yield LeftOut(ellipse, "its family ends at sparsity = dimension/2")
        else:
            yield _known(ellipse, dimension=d, sparsity=k)
    if k == d:
        yield _known("correlated Gaussian (Lebeda)", dimension=d)
        yield _known("correlated Gaussian, size withheld", dimension=d, release_size=False)
    else:
        yield LeftOut(
            "correlated Gaussian (Lebeda)",
            f"it is for dense records (sparsity = dimension); here at most {k} of {d} are ones",
        )
    yield from _rank_one(d, l2_sensitivity(workload, budget), budget)


@_of.register
def _(workload: GroupedCounts, budget: Budget) -> Found:
    m, d = workload.groups, workload.dimension
    yield from _gaussian(Layout.EACH, l2_sensitivity(workload, budget), budget)
    yield from _independent(moved(workload, budget), budget)
    yield _known("disjoint groups (Lebeda)", groups=m, dimension=d)
    yield _known("optimal groups", groups=m, counts=d)


@_of.register
def _(workload: BoundedSum, budget: Budget) -> Found:
    bounds, l2 = [str(bound) for bound in workload.bounds], l2_sensitivity(workload, budget)
    yield from _gaussian(Layout.EACH, l2, budget)
    yield _known("elliptical Gaussian (Poulsen)", sensitivities=bounds)
    if not workload.signed and budget.adjacency is Adjacency.ADD_REMOVE:
        yield _known("one-sided Gaussian", bounds=bounds)
    else:
        reason = "it is for add/remove and records without negative entries"
        yield LeftOut("one-sided Gaussian", reason)
    yield _known("Laplace", kind="LaplaceVector", shifts=bounds)
    yield from _rank_one(len(bounds), l2, budget)


@_of.register
def _(workload: VectorSum, budget: Budget) -> Found:
    l1, l2 = l1_sensitivity(workload, budget), l2_sensitivity(workload, budget)
    yield from _gaussian(Layout.EACH, l2, budget)
    yield _known("Laplace", Layout.EACH, l1_sensitivity=l1)
    yield from _rank_one(workload.dimension, l2, budget)
    if workload.linf_sensitivity is None:
        yield LeftOut("elliptical Gaussian (Poulsen)", "it needs a bound for each coordinate")


@_of.register
def _(workload: MatrixRelease, budget: Budget) -> Found:
    yield from _gaussian(Layout.EACH, workload.l2_sensitivity, budget)
    yield from _rank_one(workload.answers, workload.l2_sensitivity, budget)
    yield LeftOut(
        "matrix-variate Gaussian",
        "with the Frobenius norm as the only bound, equal covariances are best: that is the "
        "Gaussian. Name it with its covariances as a candidate to have it judged",
    )
    yield LeftOut("Laplace", "no l1 bound is given")


@_of.register
def _(workload: PrefixSums, budget: Budget) -> Found:
    n = workload.steps
    if budget.is_sampled:
        yield LeftOut("k-ary tree", "a stream is not subsampled")
        return
    yield _known("Laplace on every prefix sum", Layout.EACH, l1_sensitivity=n)
    for subtraction, name in ((True, "k-ary tree with subtraction"), (False, "k-ary tree")):
        k = _best_arity(n, subtraction=subtraction)
        arguments: Any = {"steps": n, "arity": k, "subtraction": subtraction}
        yield Candidate(
            f"{name}, k = {k}",
            f"Andersson, Pagh and Torkamani; k = {k} has the least error for {n} steps",
            partial(calibrated, "KaryTree", layout=Layout.STREAM, **arguments),
        )
    yield _known("binary tree", Layout.STREAM, steps=n, arity=2, subtraction=False)
    if budget.releases > 1:
        yield LeftOut("other counters", "they are offered for one stream at a time")
        return
    from dpassay.accountant.counting.best_counter import best_counter
    from dpassay.accountant.counting.counters import KaryTree

    try:
        found = best_counter(n, budget.target)
    except InvalidInputError:  # a target of another kind
        return
    best: dict[tuple[type, bool], LinearCounter] = {}
    for counter in (found.mechanism, *(other for other, _ in found.others)):
        if not isinstance(counter, KaryTree):  # that is above
            best.setdefault((type(counter), counter.mu is None), counter)
    for (_, laplace), counter in best.items():
        bounded = laplace == (found.bound_law == "Laplace")
        yield Candidate(
            re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(counter).__name__).lower()
            + ("" if counter.mu is None else ", Gaussian noise"),
            (type(counter).__doc__ or "").partition("\n")[0].rstrip(".").lower(),
            partial(
                fixed,
                counter,
                layout=Layout.STREAM,
                bound=found.bound if bounded else None,
                bound_for=f"factorisation with {found.bound_law} noise, averaged over the steps,",
            ),
        )


@_of.register
def _(workload: LinearQueries, budget: Budget) -> Found:
    yield from _gaussian(Layout.EACH, l2_sensitivity(workload, budget), budget)
    yield _known("Laplace", Layout.EACH, l1_sensitivity=l1_sensitivity(workload, budget))
    moves = images(workload)
    yield Candidate(
        "Gaussian on the data vector",
        "independent Gaussian noise on x itself; the answers follow, and agree with each other",
        partial(_on_the_data, workload=workload, moves=moves),
    )
    name, rank = "optimal Gaussian shape", _rank_of(moves)
    if rank < workload.answers:
        yield LeftOut(
            name,
            f"the answers move in {rank} dimensions only of {workload.answers}; the program is "
            "for linearly independent answers",
        )
        return
    yield Candidate(
        name,
        "the covariance of least total variance for this sensitivity space, by a semidefinite "
        "program with a proved bound",
        partial(_shape, moves=moves),
    )


def _gaussian(layout: Layout, l2: ExactReal, budget: Budget) -> Found:
    yield _known("Gaussian", layout, l2_sensitivity=l2)
    spent = budget.epsilon_delta
    if spent is None or spent.delta.sign == 0 or spent.epsilon.sign <= 0:
        return
    if budget.releases > 1 or budget.is_sampled:
        yield LeftOut("Gaussian, classic formula", "the formula is for one release")
        return

    def deviation() -> arb:
        logarithm = (2 * (arb("1.25") / spent.delta.ball()).log()).sqrt()
        return l2.ball() * logarithm / spent.epsilon.ball()

    noise = Gaussian(standard_deviation=_published(deviation), l2_sensitivity=l2)
    yield Candidate(
        "Gaussian, classic formula",
        "standard deviation sqrt(2 ln(1.25/delta))/epsilon, stated for epsilon < 1",
        partial(fixed, noise, layout=layout),
        as_published=True,
    )


def _independent(moved: int, budget: Budget) -> Found:
    """Yield scalar laws put on every count, of which `moved` change by 1."""
    names = ("Laplace", "discrete Laplace", "discrete Gaussian")
    if moved * budget.releases > 1 and isinstance(budget.target, Mu):
        reason = (
            "several counts with this noise are no Gaussian mechanism: their whole profile would "
            "have to be searched at every amount of noise. Name one to have it judged"
        )
        yield from (LeftOut(name, reason) for name in names)
    elif budget.is_sampled and moved > 1:
        reason = "no exact law is known for a subsample of several counts with Laplace noise"
        yield LeftOut("Laplace", reason)
    else:
        yield from (_known(name, Layout.EACH, copies=moved) for name in names)


def _staircase(workload: Count, budget: Budget) -> Found:
    spent = budget.epsilon_delta
    if spent is None or budget.releases > 1 or budget.is_sampled or spent.epsilon.sign <= 0:
        yield LeftOut("staircase", "it is offered for one release with a given epsilon")
        return
    gamma = optimal_gamma(spent.epsilon, "variance", relative_width=Fraction(1, 10**10))
    rounded = str(Context(prec=8).plus(gamma.lower))
    yield _known("staircase", Layout.EACH, gamma=rounded, sensitivity=workload.sensitivity)


def _rank_one(dimension: int, l2: ExactReal, budget: Budget) -> Found:
    name = "R1SMG (Ji, Li) as published"
    spent = budget.epsilon_delta
    if dimension <= 2:
        yield LeftOut(name, "rank-one Gaussian noise is defined for more than two dimensions")
    elif spent is None or spent.delta.sign == 0 or spent.epsilon.sign <= 0:
        yield LeftOut(name, "its noise is stated for (epsilon, delta)-DP")
    elif budget.releases > 1 or budget.is_sampled:
        yield LeftOut(name, "its noise is stated for one release")
    else:

        def sigma_star() -> arb:
            return theorem_5_sigma_star(
                spent.epsilon.ball(), spent.delta.ball(), dimension, l2.ball()
            )

        noise = RankOneGaussian(dimension, _published(sigma_star), l2)
        yield Candidate(
            name,
            "one normal number along a random direction, with the variance of its Theorem 5",
            partial(fixed, noise, layout=Layout.JOINT),
            as_published=True,
        )


def _published(value: object) -> str:
    """Return a published amount of noise, rounded up to some digits."""
    found = enclose(value)  # type: ignore[arg-type]
    return str(Context(prec=_PUBLISHED_DIGITS, rounding=ROUND_UP).plus(found.upper))


def _best_arity(steps: int, *, subtraction: bool) -> int:
    """Return the k of least mean squared error at ε = 1: the error scales with 1/ε²."""
    arities = range(2, min(_ARITIES, max(2, steps)) + 1)
    errors = {
        k: enclose(
            KaryTree(steps, k, 1, subtraction=subtraction).mean_squared_error,
            relative_width=Fraction(1, 10**12),
        ).upper
        for k in arities
    }
    return min(errors, key=lambda k: (errors[k], k))


# --- Mechanisms that a user names: do they fit the workload? --------------------------------------

W = TypeVar("W", bound=Workload)


def named(mechanism: Mechanism, workload: Workload, budget: Budget) -> Candidate:
    """Return a mechanism that the user named, to be judged with the noise that it has.

    Raises
    ------
    InvalidInputError
        If its dimension or sensitivity is not that of the workload.
    NotApplicableError
        If it is not known how the mechanism would release the workload.
    """
    copies = _copies(mechanism, workload, budget)
    layout = Layout.EACH if mechanism.dimension == 1 else Layout.JOINT
    if isinstance(workload, PrefixSums) and mechanism.dimension > 1:
        layout = Layout.STREAM
    return Candidate(
        str(mechanism),
        "as given",
        partial(fixed, mechanism, layout=layout, copies=copies),
        as_published=True,
    )


def _copies(mechanism: Mechanism, workload: Workload, budget: Budget) -> int:
    """Return how many answers move at once, each by the sensitivity of a scalar mechanism."""
    match mechanism:
        case Gaussian() | RankOneGaussian() | MatrixVariateGaussian():
            if mechanism.dimension > 1:
                _require(mechanism, "dimension", mechanism.dimension, workload.answers)
            wanted = l2_sensitivity(workload, budget)
            _require_at_least(mechanism, "l2_sensitivity", mechanism.l2_sensitivity, wanted)
        case Laplace():
            own, known = mechanism.l1_sensitivity, l1_sensitivity(workload, budget)
            if isinstance(workload, (Counts, GroupedCounts)) and own == ExactReal.of_rational(1):
                return moved(workload, budget)
            _require_at_least(mechanism, "l1_sensitivity", own, known)
        case BoundedCountNoise():
            return _scalar_copies(mechanism, ExactReal.of_rational(1), workload, budget)
        case CorrelatedGaussian() | OptimalEllipse() | CountEllipse():
            _require_counts(mechanism, _as(Counts, workload, mechanism), budget)
        case DisjointGroupsGaussian() | OptimalGroups():
            groups = _as(GroupedCounts, workload, mechanism)
            each = mechanism.counts if isinstance(mechanism, OptimalGroups) else mechanism.dimension
            sizes = (groups.groups, groups.dimension)
            _require(mechanism, "(groups, dimension)", (mechanism.groups, each), sizes)
        case EllipticalGaussian(sensitivities=given):
            _require_bounds(mechanism, "sensitivities", given, workload)
        case LaplaceVector(shifts=given):
            _require_bounds(mechanism, "shifts", given, workload)
        case OneSidedGaussian(bounds=given):
            if not isinstance(workload, BoundedSum) or workload.signed:
                raise NotApplicableError("OneSidedGaussian releases BoundedSum(…, signed=False).")
            _require_bounds(mechanism, "bounds", given, workload)
        case GeneralGaussian():
            _require(mechanism, "dimension", mechanism.dimension, workload.answers)
        case LinearCounter() | MatrixMechanism():
            steps = _as(PrefixSums, workload, mechanism).steps
            _require(mechanism, "steps", mechanism.steps, steps)
        case ExponentialMechanism() | PermuteAndFlip() | ReportNoisyMax():
            if not isinstance(workload, Selection):
                raise NotApplicableError(
                    f"{type(mechanism).__name__} chooses by scores, not {workload!r}."
                )
            if isinstance(mechanism, ReportNoisyMax):
                _require(mechanism, "candidates", mechanism.candidates, workload.candidates)
            _require_at_least(mechanism, "sensitivity", mechanism.sensitivity, workload.sensitivity)
            if mechanism.monotone and not workload.monotone:
                _require(mechanism, "monotone", mechanism.monotone, workload.monotone)
        case _:
            return _noise_copies(mechanism, workload, budget)
    return 1


def _noise_copies(mechanism: Mechanism, workload: Workload, budget: Budget) -> int:
    """Return the same for other scalar noise that has a sensitivity."""
    sensitivity = getattr(mechanism, "sensitivity", None)
    if mechanism.dimension > 1 or sensitivity is None:
        raise NotApplicableError(
            f"It is not known how {type(mechanism).__name__} would release {workload!r}. "
            "Name a mechanism that adds noise to the answers."
        )
    mechanism.variances()  # refuses noise that depends on the answer
    return _scalar_copies(mechanism, exact(sensitivity), workload, budget)


def _scalar_copies(
    mechanism: Mechanism, sensitivity: ExactReal, workload: Workload, budget: Budget
) -> int:
    """Return the counts that one record moves, where noise is added to each."""
    if isinstance(workload, Count):
        wanted = ExactReal.of_rational(workload.sensitivity)
        _require_at_least(mechanism, "sensitivity", sensitivity, wanted)
        return 1
    if isinstance(workload, (Counts, GroupedCounts)):
        return moved(workload, budget)
    raise NotApplicableError(f"{type(mechanism).__name__} is noise for counts, not {workload!r}.")


def _as(kind: type[W], workload: Workload, mechanism: Mechanism) -> W:
    """Return a workload of the only kind that a mechanism releases."""
    if not isinstance(workload, kind):
        raise NotApplicableError(
            f"{type(mechanism).__name__} releases {kind.__name__}, not {workload!r}."
        )
    return workload


def _require_counts(
    mechanism: CorrelatedGaussian | OptimalEllipse | CountEllipse, workload: Counts, budget: Budget
) -> None:
    sparsity = mechanism.dimension
    if not isinstance(mechanism, CorrelatedGaussian):
        sparsity = mechanism.sparsity
        if budget.adjacency is not Adjacency.ADD_REMOVE:
            raise NotApplicableError(f"{type(mechanism).__name__} is for adjacency='add-remove'.")
    _require(mechanism, "dimension", mechanism.dimension, workload.dimension)
    if sparsity < workload.sparsity:
        raise InvalidInputError(
            f"{mechanism!r} is for at most {sparsity} ones in a record; the workload has "
            f"sparsity={workload.sparsity}."
        )


def _require_bounds(
    mechanism: Mechanism, name: str, given: Sequence[ExactReal], workload: Workload
) -> None:
    bounds = _as(BoundedSum, workload, mechanism).bounds
    _require(mechanism, f"len({name})", len(given), len(bounds))
    for index, (own, bound) in enumerate(zip(given, bounds, strict=True)):
        _require_at_least(mechanism, f"{name}[{index}]", own, ExactReal.of_rational(bound))


def _require(mechanism: Mechanism, name: str, own: object, wanted: object) -> None:
    if own != wanted:
        raise InvalidInputError(
            f"Expected {name}={wanted} of {type(mechanism).__name__}, as the workload has, "
            f"not {own}."
        )


def _require_at_least(
    mechanism: Mechanism, name: str, own: ExactReal, wanted: ExactReal | None
) -> None:
    if wanted is None:
        raise NotApplicableError(
            f"The workload has no exact {name}, which {type(mechanism).__name__} needs."
        )
    if own < wanted:
        raise InvalidInputError(
            f"Expected {name} ≥ {wanted} of {type(mechanism).__name__}: one person can change the "
            f"answers of this workload by that much. It is {own}."
        )
