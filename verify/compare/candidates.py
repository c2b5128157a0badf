"""A budget, the mechanisms that can release a workload with it, and why others cannot."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, ROUND_UP, Context
from enum import Enum
from fractions import Fraction
from functools import partial, singledispatch
from typing import Any, NamedTuple, TypeAlias, TypeVar, final

from flint import arb

from dpassay.accountant.budget.calibrate import calibrate
from dpassay.accountant.budget.target import EpsilonDelta, Mu, Rho, Target
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import Integer, Probability, Relation, probability
from dpassay.accountant.counting.counters import LinearCounter
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
from dpassay.accountant.mechanisms import (
    BoundedCountNoise,
    Composed,
    CorrelatedGaussian,
    CountEllipse,
    DisjointGroupsGaussian,
    EllipticalGaussian,
    ExponentialMechanism,
    Gaussian,
    GeneralGaussian,
    KaryTree,
    Laplace,
    LaplaceVector,
    Logistic,
    MatrixMechanism,
    MatrixVariateGaussian,
    OneSidedGaussian,
    OptimalEllipse,
    OptimalGroups,
    PermuteAndFlip,
    PoissonSubsampled,
    RankOneGaussian,
    ReportNoisyMax,
    Tuned,
)
from dpassay.accountant.mechanisms.additive.laplace import optimal_gamma
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.numbers.solve import bracket, root
from dpassay.accountant.pairs.rank_one import theorem_5_sigma_star
from dpassay.accountant.questions import profile
from dpassay.accountant.training import dpsgd_noise
from dpassay.verifier.claims import Claim, guarantee
from dpassay.verifier.expression import LONGEST


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
    def is_one_release(self) -> bool:
        """Whether the workload is released once, from all records."""
        return self.releases == 1 and not self.is_sampled

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


class Scheme(NamedTuple):
    """A way to make the batches of a training run."""

    name: str
    relation: str
    """What neighbours are."""
    why: str
    loader: str = ""
    """What the training program must have."""
    sampling: str = ""
    """Its name in `dpassay training`; empty if it has none there."""


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
    scheme: Scheme | None = None
    """How batches are made, if it is a way to train."""


@final
@dataclass(frozen=True)
class LeftOut:
    """A candidate that does not apply."""

    name: str
    reason: str


Found: TypeAlias = Iterator[Candidate | LeftOut]


def _where(fits: object, candidate: Candidate, reason: str) -> Candidate | LeftOut:
    """Return a candidate if it fits, else the reason why it does not."""
    return candidate if fits else LeftOut(candidate.name, reason)


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
    mechanism: Mechanism, budget: Budget, layout: Layout, *, copies: int = 1, **known: Any
) -> Calibrated:
    """Return a mechanism with the noise that it has, and what is known of its kind."""
    release = mechanism if copies == 1 else Composed(mechanism, copies)
    return Calibrated(mechanism, budget.whole(release), layout, **known)


def _digits(count: int, rounding: str, value: object) -> str:
    """Round a number to some digits, up or down."""
    found = enclose(value)  # type: ignore[arg-type]  # a number, or a function that returns a ball
    end = found.upper if rounding == ROUND_UP else found.lower
    return str(Context(prec=count, rounding=rounding).plus(end))


# --- By how much one person changes the answers of a workload -------------------------------------

Image = tuple[Fraction, Sequence[Fraction]]
"""The vector √square·entries."""


def moved(workload: Counts | GroupedCounts, budget: Budget) -> int:
    """Return how many counts change by 1 at once.

    Under add/remove the ones of a record. Under replace-one those of two records, which in dense
    counts can be no more than all of them, and in groups may lie in two groups.
    """
    ones = workload.sparsity if isinstance(workload, Counts) else workload.dimension
    both = min(2 * ones, workload.answers)
    return ones if budget.adjacency is Adjacency.ADD_REMOVE else both


def images(workload: LinearQueries) -> list[Image]:
    """Return W v for the vertices v of the space, those that are not 0."""
    from dpassay.lp.shapes import vertices

    found: list[Image] = []
    for vertex in vertices(workload.space):
        image = [_dot(row, vertex.entries) for row in workload.matrix]
        if any(image):
            found.append((vertex.square, image))
    return found


def sensitivity(order: int, workload: Workload, budget: Budget) -> ExactReal | None:
    """Return the largest ℓ1 or ℓ2 norm of a change, or a bound of it; None without one.

    Laplace noise of one scale on every answer is no worse for a change of ℓ1 norm T than for one
    answer that moves by T: with f_t the trade-off function of Lap(t) and Lap(0), moving the
    coordinates one after the other gives at least f_s(1 − f_t) (group privacy), and for a location
    family of log-concave density, F(F⁻¹(1 − α) − t), that is f_{s+t}.
    """
    match workload:
        case Count(sensitivity=most):
            return ExactReal.of_rational(most)
        case Counts() | GroupedCounts():
            return _of_ones(order, moved(workload, budget))
        case BoundedSum(bounds=bounds):
            return _norm(order, bounds)
        case VectorSum():
            return _implied(order, workload)
        case MatrixRelease(l2_sensitivity=norm):
            return norm if order == 2 else None
        case PrefixSums(steps=steps):
            return _of_ones(order, steps)
        case LinearQueries():
            return max(_norm(order, image, square=square) for square, image in images(workload))
    return None


def _implied(order: int, workload: VectorSum) -> ExactReal:
    """Return the least bound that the given norms imply.

    ‖v‖₁ is at most √d‖v‖₂ and d‖v‖_∞; ‖v‖₂ is at most ‖v‖₁, √d‖v‖_∞ and √(‖v‖₁‖v‖_∞).
    """
    l1, l2, most = workload.l1_sensitivity, workload.l2_sensitivity, workload.linf_sensitivity
    d = workload.dimension
    if order == 1:
        bounds = [l1, l2 and l2 * _of_ones(2, d), most and most * _of_ones(1, d)]
    else:
        product = (l1 * most).rational if l1 and most else None
        both = None if product is None else ExactReal.of_root(product)
        bounds = [l1, l2, most and most * _of_ones(2, d), both]
    return min(bound for bound in bounds if bound)


def _of_ones(order: int, count: int) -> ExactReal:
    """Return the norm of a vector of ones."""
    return ExactReal.of_rational(count) if order == 1 else ExactReal.of_root(Fraction(count))


def _norm(order: int, entries: Iterable[Fraction], square: Fraction = Fraction(1)) -> ExactReal:
    """Return the norm of the vector √square·entries."""
    if order == 1:
        size = sum(map(abs, entries), start=Fraction(0))
        return ExactReal.of_root(square) * ExactReal.of_rational(size)
    return ExactReal.of_root(square * sum((y * y for y in entries), start=Fraction(0)))


def _dot(row: Iterable[Fraction], other: Iterable[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(row, other, strict=True)), start=Fraction(0))


# --- Choosing one of several candidates: mechanisms, and how far from the best the choice may be

_EPSILON_DIGITS = 12
"""Digits to which an ε is rounded down."""
_WIDTH = Fraction(1, 10**14)
"""Relative width of a regret that is searched."""


def _of_scores(workload: Selection, budget: Budget) -> Found:
    """Yield the mechanisms that choose by scores."""
    for name, kind, noise, chooses, by in (
        (
            "exponential mechanism",
            ExponentialMechanism,
            "Logistic",
            "chooses in proportion to the exponential of the score",
            "Gumbel",
        ),
        (
            "permute-and-flip",
            PermuteAndFlip,
            "Laplace",
            "goes through candidates in random order and takes one by a flip",
            "exponential",
        ),
    ):
        why = f"{chooses}: the report of noisy maximum with {by} noise"
        yield Candidate(name, why, partial(_choice, workload=workload, kind=kind, noise=noise))


def _choice(
    budget: Budget,
    *,
    workload: Selection,
    kind: type[ExponentialMechanism | PermuteAndFlip],
    noise: str,
) -> Calibrated:
    """Calibrate a choice: for several releases, or a budget in divergences, through its noise.

    The profile of one release is that of logistic noise, or of Laplace noise, at distance ε.
    Whatever the scores, its pair is dominated by that of the noise, and so are compositions and
    samples of it. Of permute-and-flip no divergence is known exactly.
    """
    is_exact = kind is ExponentialMechanism or budget.epsilon_delta is not None
    if budget.is_one_release and is_exact:
        size, monotone = workload.sensitivity, workload.monotone
        return calibrated(kind.__name__, budget, Layout.EACH, sensitivity=size, monotone=monotone)
    found = calibrated(noise, budget, Layout.EACH)
    assert isinstance(found.mechanism, Laplace | Logistic)
    inverse = (ExactReal.of_rational(1) / found.mechanism.scale).ball
    epsilon = _digits(_EPSILON_DIGITS, ROUND_FLOOR, inverse)
    mechanism = kind(epsilon, workload.sensitivity, workload.monotone)
    return replace(found, mechanism=mechanism, argument="epsilon")


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
    """Enclose the least t ≥ 0 at which an increasing probability is at least p."""

    def missed(t: ExactReal) -> arb:
        return p.ball() - taken(t.ball())

    if not missed(ExactReal.of_rational(0)) > 0:
        return Interval.of_exact(0)
    return root(missed, bracket(missed, Fraction(1), floor=Fraction(0)), relative_width=_WIDTH)


# --- The noise of a training run by how its batches are made, each with its own neighbours --------

_SCHEMES = (
    Scheme(
        "Poisson batches",
        "add-remove",
        "every step takes each record independently; neighbours: one record added or removed",
        "Poisson loader",
        "poisson",
    ),
    Scheme(
        "random allocation",
        "add-remove",
        "every record is in one step of each epoch, chosen by itself; neighbours: one record added "
        "or removed",
        "random steps",
        "random-allocation",
    ),
    Scheme(
        "batches without replacement",
        "replace-one",
        "every step draws a new subset of one size; neighbours: one record replaced",
        "fresh batches",
        "without-replacement",
    ),
    Scheme(
        "each record once an epoch",
        "zero-out",
        "shuffled or fixed batches: no gain by sampling is proved; neighbours differ in a record "
        "whose gradient is 0 in one of them",
        "any loader",
    ),
)
"""Every way to make batches of which a guarantee is proved."""


def _schemes(workload: Training, budget: Budget) -> Found:
    """Yield the ways to train: of one run by its batches, of several by which ones are seen."""
    if not budget.is_one_release:
        raise NotApplicableError(
            "Training states its own steps and batches: leave releases and sampling_prob out."
        )
    schemes: Sequence[Scheme] = _SCHEMES
    if workload.runs > 1:
        every = "Poisson batches; every run may be examined, and any of them released"
        best = (
            f"Poisson batches; the number of runs is geometric, {workload.runs} on average, "
            "and only the run with the best score is examined"
        )
        schemes = (
            Scheme(f"all {workload.runs} runs", "add-remove", every),
            Scheme("the best of a random number of runs", "add-remove", best),
        )
    for scheme in schemes:
        name = f"{scheme.name} ({scheme.relation})"
        make = partial(_trained, workload=workload, scheme=scheme)
        yield Candidate(name, scheme.why, make, scheme=scheme)
    if workload.runs > 1:
        yield LeftOut("other batches", "several runs are offered with Poisson batches only")


def _trained(budget: Budget, *, workload: Training, scheme: Scheme) -> Calibrated:
    """Find the noise of a way to train."""
    if scheme.relation == "zero-out":  # an epoch is one Gaussian release of what a record adds
        together = replace(budget, releases=workload.epochs, adjacency=Adjacency.ADD_REMOVE)
        found = calibrated("Gaussian", together, Layout.EACH)
        return replace(found, adjacency=Adjacency.ADD_REMOVE)
    if scheme.name.startswith("the best"):
        return _best_of(budget, workload)
    return _of_batches(budget, workload, scheme.sampling or "poisson", scheme.relation)


def _of_batches(budget: Budget, workload: Training, sampling: str, relation: str) -> Calibrated:
    """Find the noise of sampled batches, of all runs together."""
    spent, one = budget.epsilon_delta, workload.runs == 1
    if spent is None:
        raise NotApplicableError(
            "The noise of sampled batches is calibrated to (epsilon, delta) only."
        )
    run = dpsgd_noise(
        spent.epsilon,
        workload.batch_size,
        workload.dataset_size,
        delta=spent.delta,
        epochs=workload.epochs if one else None,
        steps=None if one else workload.runs * _steps(workload),
        sampling=sampling,
    )
    return _of_noise(Gaussian(run.noise_multiplier), run.mechanism, Adjacency.read(relation))


def _of_noise(noise: Gaussian, whole: Mechanism, relation: Adjacency | None) -> Calibrated:
    argument = "standard_deviation"
    return Calibrated(noise, whole, Layout.EACH, argument=argument, adjacency=relation)


def _steps(workload: Training) -> int:
    """Return the steps of one run."""
    return -(-workload.epochs * workload.dataset_size // workload.batch_size)


_CLOSE, _TRIES = 0.98, 10
"""The least share of ε that the best of several runs uses, and the most amounts of noise tried."""
_USUAL_SLOPE = -1.5
"""The slope of ln ε against ln σ that is assumed first."""


def _best_of(budget: Budget, workload: Training) -> Calibrated:
    """Find the noise if the best of several runs is released, starting from that of one run."""
    single = _of_batches(budget, replace(workload, runs=1), "poisson", "add-remove")
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
            return _of_noise(noise, whole, Adjacency.ADD_REMOVE)
        if attempt:
            slope = min((over - before[1]) / (place - before[0]), _USUAL_SLOPE / 3)
        before = place, over
        place -= (over - math.log(_CLOSE) / 2) / slope
    raise NotApplicableError(f"No noise was found in {_TRIES} steps: its epsilon is {found}.")


# --- The least integer noise for one count, by linear programs ------------------------------------

_SUPPORTS = 4
"""Supports that are tried, each twice as long: longer laws gain nothing, or take too long."""
_COSTS = {
    "variance": ("optimal integer noise", "variance"),
    "absolute": ("optimal integer noise, for E|Z|", "mean absolute error"),
    "error": ("optimal integer noise, for P(Z = 0)", "P(Z ≠ 0)"),
}
"""Name of the candidate and what is least, by the objective of the program."""


def _integer_programs(workload: Count, budget: Budget) -> Found:
    """Yield the integer laws of least error, or why there are none."""
    spent, why_not = budget.epsilon_delta, ""
    if spent is None or spent.delta.sign == 0 or spent.delta.rational is None:
        why_not = "(epsilon, delta)-DP with a rational delta > 0"
    elif not budget.is_one_release:
        why_not = "one release; composition is not linear in the law"
    elif spent.epsilon.sign < 0:
        why_not = "epsilon >= 0"
    for objective, (name, least) in _COSTS.items():
        why = f"the integer law of least {least}, by a linear program with a certificate"
        make = partial(_integer_noise, objective=objective, sensitivity=workload.sensitivity)
        reason = f"the linear program is about {why_not}"
        yield _where(not why_not, Candidate(name, why, make), reason)


def _integer_noise(budget: Budget, *, objective: str, sensitivity: int) -> Calibrated:
    """Solve the linear program on supports that double until a longer one gains nothing."""
    from dpassay.lp.integer_noise import IntegerNoiseProblem, optimal_integer_noise

    spent = budget.epsilon_delta
    assert spent is not None
    # about where a geometric law has fallen to δ
    reach = 1.2 + math.log(1 / float(spent.delta)) / max(float(spent.epsilon), 1e-3)
    support = max(2, math.ceil(sensitivity * reach))
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
    beyond = "" if solution.every_support else f" of support at most {solution.problem.support}"
    bound = solution.value if objective == "variance" else None
    kind = f"integer noise{beyond}"
    return fixed(solution.mechanism, budget, Layout.EACH, bound=bound, bound_for=kind)


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
    variance, rows = largest.square * _unit(budget)[0], workload.matrix
    covariance = Matrix([[variance * _dot(row, other) for other in rows] for row in rows])
    return fixed(GeneralGaussian(covariance, _space(moves)), budget, Layout.JOINT)


def _shape(budget: Budget, *, moves: Sequence[Image]) -> Calibrated:
    """Scale the covariance of least variance to the budget."""
    from dpassay.lp.shapes import GaussianShapeProblem, optimal_gaussian_shape

    space = _space(moves)
    solution = optimal_gaussian_shape(GaussianShapeProblem(space))
    factor, least = _unit(budget)
    unit = solution.mechanism.covariance.matrix()
    covariance = Matrix([[entry * factor for entry in row] for row in unit])
    bound = Interval.of_exact(least * Fraction(solution.value.lower) / len(unit))
    kind = "Gaussian noise, on average over the answers"
    mechanism = GeneralGaussian(covariance, space)
    return fixed(mechanism, budget, Layout.JOINT, bound=bound, bound_for=kind)


_PUBLISHED_DIGITS = 12
"""Digits to which the noise of a published method is rounded up."""
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
"""Name of a candidate → its mechanism in the notation, and why it fits."""
_ELLIPSE, _CORRELATED = "count ellipse (Joseph, Yu)", "correlated Gaussian (Lebeda)"


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
    s, spent = workload.sensitivity, budget.epsilon_delta
    yield from _gaussian(workload, budget)
    yield _known("Laplace", Layout.EACH, l1_sensitivity=s)
    yield _known("discrete Laplace", Layout.EACH, sensitivity=s)
    yield _known("discrete Gaussian", Layout.EACH, sensitivity=s)
    if spent is None or not budget.is_one_release or spent.epsilon.sign <= 0:
        yield LeftOut("staircase", "it is offered for one release with a given epsilon")
    else:
        gamma = optimal_gamma(spent.epsilon, "variance", relative_width=Fraction(1, 10**10))
        rounded = str(Context(prec=8).plus(gamma.lower))
        yield _known("staircase", Layout.EACH, gamma=rounded, sensitivity=s)
    yield from _integer_programs(workload, budget)
    yield LeftOut(
        "bounded count noise (Sadeghi et al.)",
        "a budget does not determine its eta and support; name it as a candidate to have it judged",
    )


@_of.register
def _(workload: Counts, budget: Budget) -> Found:
    d, k = workload.dimension, workload.sparsity
    yield from _gaussian(workload, budget)
    yield from _on_counts(moved(workload, budget), budget)
    if budget.adjacency is not Adjacency.ADD_REMOVE:
        reason = "its exact shape is for add/remove; under replace-one the differences are signed"
        yield from (LeftOut(name, reason) for name in ("optimal ellipse", _ELLIPSE))
    else:
        yield _known("optimal ellipse", dimension=d, sparsity=k)
        ellipse = _known(_ELLIPSE, dimension=d, sparsity=k)
        yield _where(2 * k <= d, ellipse, "its family ends at sparsity = dimension/2")
    yield _where(
        k == d,
        _known(_CORRELATED, dimension=d),
        f"it is for dense records (sparsity = dimension); here at most {k} of {d} are ones",
    )
    if k == d:
        yield _known("correlated Gaussian, size withheld", dimension=d, release_size=False)
    yield from _rank_one(workload, budget)


@_of.register
def _(workload: GroupedCounts, budget: Budget) -> Found:
    m, d = workload.groups, workload.dimension
    yield from _gaussian(workload, budget)
    yield from _on_counts(moved(workload, budget), budget)
    yield _known("disjoint groups (Lebeda)", groups=m, dimension=d)
    yield _known("optimal groups", groups=m, counts=d)


@_of.register
def _(workload: BoundedSum, budget: Budget) -> Found:
    bounds = [str(bound) for bound in workload.bounds]
    yield from _gaussian(workload, budget)
    yield _known("elliptical Gaussian (Poulsen)", sensitivities=bounds)
    yield _where(
        not workload.signed and budget.adjacency is Adjacency.ADD_REMOVE,
        _known("one-sided Gaussian", bounds=bounds),
        "it is for add/remove and records without negative entries",
    )
    yield _known("Laplace", kind="LaplaceVector", shifts=bounds)
    yield from _rank_one(workload, budget)


@_of.register
def _(workload: VectorSum, budget: Budget) -> Found:
    yield from _gaussian(workload, budget)
    yield _known("Laplace", Layout.EACH, l1_sensitivity=sensitivity(1, workload, budget))
    yield from _rank_one(workload, budget)
    if workload.linf_sensitivity is None:
        yield LeftOut("elliptical Gaussian (Poulsen)", "it needs a bound for each coordinate")


@_of.register
def _(workload: MatrixRelease, budget: Budget) -> Found:
    yield from _gaussian(workload, budget)
    yield from _rank_one(workload, budget)
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

    try:
        found = best_counter(n, budget.target)
    except InvalidInputError:  # a target of another kind
        return
    best: dict[tuple[type, bool], LinearCounter] = {}
    for counter in (found.mechanism, *(other for other, _ in found.others)):
        if not isinstance(counter, KaryTree):  # that is above
            best.setdefault((type(counter), counter.mu is None), counter)
    for (kind, laplace), counter in best.items():
        bound_for = f"factorisation with {found.bound_law} noise, averaged over the steps,"
        bound = found.bound if laplace == (found.bound_law == "Laplace") else None
        yield Candidate(
            re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).lower()
            + ("" if laplace else ", Gaussian noise"),
            (kind.__doc__ or "").partition("\n")[0].rstrip(".").lower(),
            partial(fixed, counter, layout=Layout.STREAM, bound=bound, bound_for=bound_for),
        )


@_of.register
def _(workload: LinearQueries, budget: Budget) -> Found:
    yield from _gaussian(workload, budget)
    yield _known("Laplace", Layout.EACH, l1_sensitivity=sensitivity(1, workload, budget))
    moves = images(workload)
    yield Candidate(
        "Gaussian on the data vector",
        "independent Gaussian noise on x itself; the answers follow, and agree with each other",
        partial(_on_the_data, workload=workload, moves=moves),
    )
    shape = Candidate(
        "optimal Gaussian shape",
        "the covariance of least total variance for this sensitivity space, by a semidefinite "
        "program with a proved bound",
        partial(_shape, moves=moves),
    )
    yield _where(
        (rank := _rank_of(moves)) == workload.answers,
        shape,
        f"the answers move in {rank} dimensions only of {workload.answers}; the program is for "
        "linearly independent answers",
    )


def _gaussian(workload: Workload, budget: Budget) -> Found:
    """Yield Gaussian noise on every answer, calibrated and by the classic formula."""
    l2, spent = sensitivity(2, workload, budget), budget.epsilon_delta
    assert l2 is not None
    yield _known("Gaussian", Layout.EACH, l2_sensitivity=l2)
    if spent is None or spent.delta.sign == 0 or spent.epsilon.sign <= 0:
        return
    name = "Gaussian, classic formula"
    if not budget.is_one_release:
        yield LeftOut(name, "the formula is for one release")
        return

    def deviation() -> arb:
        logarithm = (2 * (arb("1.25") / spent.delta.ball()).log()).sqrt()
        return l2.ball() * logarithm / spent.epsilon.ball()

    noise = Gaussian(_digits(_PUBLISHED_DIGITS, ROUND_UP, deviation), l2)
    why = "standard deviation sqrt(2 ln(1.25/delta))/epsilon, stated for epsilon < 1"
    yield Candidate(name, why, partial(fixed, noise, layout=Layout.EACH), as_published=True)


def _rank_one(workload: Workload, budget: Budget) -> Found:
    """Yield rank-one noise as its paper prescribes it."""
    name, dimension = "R1SMG (Ji, Li) as published", workload.answers
    l2, spent = sensitivity(2, workload, budget), budget.epsilon_delta
    assert l2 is not None
    if dimension <= 2:
        yield LeftOut(name, "rank-one Gaussian noise is defined for more than two dimensions")
    elif spent is None or spent.delta.sign == 0 or spent.epsilon.sign <= 0:
        yield LeftOut(name, "its noise is stated for (epsilon, delta)-DP")
    elif not budget.is_one_release:
        yield LeftOut(name, "its noise is stated for one release")
    else:

        def sigma_star() -> arb:
            target = spent.epsilon.ball(), spent.delta.ball()
            return theorem_5_sigma_star(*target, dimension, l2.ball())

        noise = RankOneGaussian(dimension, _digits(_PUBLISHED_DIGITS, ROUND_UP, sigma_star), l2)
        why = "one normal number along a random direction, with the variance of its Theorem 5"
        yield Candidate(name, why, partial(fixed, noise, layout=Layout.JOINT), as_published=True)


def _on_counts(moved: int, budget: Budget) -> Found:
    """Yield scalar noise for every count, where `moved` counts change by 1."""
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


def _best_arity(steps: int, *, subtraction: bool) -> int:
    """Return the k of least mean squared error at ε = 1: the error scales with 1/ε²."""

    def error(k: int) -> Any:
        tree = KaryTree(steps, k, 1, subtraction=subtraction)
        return enclose(tree.mean_squared_error, relative_width=Fraction(1, 10**12)).upper

    return min(range(2, min(_ARITIES, max(2, steps)) + 1), key=error)


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
    make = partial(fixed, mechanism, layout=layout, copies=copies)
    return Candidate(str(mechanism), "as given", make, as_published=True)


def _copies(mechanism: Mechanism, workload: Workload, budget: Budget) -> int:
    """Return how many answers move at once, each by the sensitivity of a scalar mechanism."""
    match mechanism:
        case Gaussian() | RankOneGaussian() | MatrixVariateGaussian():
            if mechanism.dimension > 1:
                _require(mechanism, dimension=workload.answers)
            wanted = sensitivity(2, workload, budget)
            _require_at_least(mechanism, "l2_sensitivity", mechanism.l2_sensitivity, wanted)
        case Laplace():
            own, wanted = mechanism.l1_sensitivity, sensitivity(1, workload, budget)
            if isinstance(workload, Counts | GroupedCounts) and own == ExactReal.of_rational(1):
                return moved(workload, budget)
            _require_at_least(mechanism, "l1_sensitivity", own, wanted)
        case BoundedCountNoise():
            return _scalar_copies(mechanism, 1, workload, budget)
        case CorrelatedGaussian() | OptimalEllipse() | CountEllipse():
            _require_counts(mechanism, _require_kind(Counts, workload, mechanism), budget)
        case DisjointGroupsGaussian() | OptimalGroups():
            groups = _require_kind(GroupedCounts, workload, mechanism)
            each = "counts" if isinstance(mechanism, OptimalGroups) else "dimension"
            _require(mechanism, groups=groups.groups, **{each: groups.dimension})
        case EllipticalGaussian(sensitivities=given):
            _require_bounds(mechanism, "sensitivities", given, workload)
        case LaplaceVector(shifts=given):
            _require_bounds(mechanism, "shifts", given, workload)
        case OneSidedGaussian(bounds=given):
            if not isinstance(workload, BoundedSum) or workload.signed:
                raise NotApplicableError("OneSidedGaussian releases BoundedSum(…, signed=False).")
            _require_bounds(mechanism, "bounds", given, workload)
        case GeneralGaussian():
            _require(mechanism, dimension=workload.answers)
        case LinearCounter() | MatrixMechanism():
            _require(mechanism, steps=_require_kind(PrefixSums, workload, mechanism).steps)
        case ExponentialMechanism() | PermuteAndFlip() | ReportNoisyMax():
            if not isinstance(workload, Selection):
                raise NotApplicableError(
                    f"{type(mechanism).__name__} chooses by scores, not {workload!r}."
                )
            if isinstance(mechanism, ReportNoisyMax):
                _require(mechanism, candidates=workload.candidates)
            _require_at_least(mechanism, "sensitivity", mechanism.sensitivity, workload.sensitivity)
            if not workload.monotone:
                _require(mechanism, monotone=False)
        case _:
            noise: Any = mechanism
            if noise.dimension > 1 or getattr(noise, "sensitivity", None) is None:
                raise NotApplicableError(
                    f"It is not known how {type(mechanism).__name__} would release {workload!r}. "
                    "Name a mechanism that adds noise to the answers."
                )
            mechanism.variances()  # refuses noise that depends on the answer
            return _scalar_copies(mechanism, noise.sensitivity, workload, budget)
    return 1


def _scalar_copies(
    mechanism: Mechanism, own: ExactReal | int, workload: Workload, budget: Budget
) -> int:
    """Return how many counts one record moves, if noise is added to each."""
    if isinstance(workload, Count):
        wanted = ExactReal.of_rational(workload.sensitivity)
        _require_at_least(mechanism, "sensitivity", exact(own), wanted)
        return 1
    if isinstance(workload, Counts | GroupedCounts):
        return moved(workload, budget)
    raise NotApplicableError(f"{type(mechanism).__name__} is noise for counts, not {workload!r}.")


def _require_kind(kind: type[W], workload: Workload, mechanism: Mechanism) -> W:
    """Return the workload, which must be of the only kind that a mechanism releases."""
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
    _require(mechanism, dimension=workload.dimension)
    if sparsity < workload.sparsity:
        raise InvalidInputError(
            f"{mechanism!r} is for at most {sparsity} ones in a record; the workload has "
            f"sparsity={workload.sparsity}."
        )


def _require_bounds(
    mechanism: Mechanism, name: str, given: Sequence[ExactReal], workload: Workload
) -> None:
    bounds = _require_kind(BoundedSum, workload, mechanism).bounds
    _require(mechanism, dimension=len(bounds))
    for index, (own, bound) in enumerate(zip(given, bounds, strict=True)):
        _require_at_least(mechanism, f"{name}[{index}]", own, ExactReal.of_rational(bound))


def _require(mechanism: Mechanism, **wanted: object) -> None:
    for name, value in wanted.items():
        own = getattr(mechanism, name)
        if own != value:
            raise InvalidInputError(
                f"Expected {name}={value} of {type(mechanism).__name__}, as the workload has, "
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
