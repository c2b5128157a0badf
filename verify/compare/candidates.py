"""Which mechanisms can release a workload, and why the others cannot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import ROUND_UP, Context
from fractions import Fraction
from functools import partial, singledispatch

from flint import arb

from dpassay.accountant.budget.target import Mu, ProfileBelow
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.counting.counters import LinearCounter
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.geometry.workload import (
    BoundedSum,
    Count,
    Counts,
    GroupedCounts,
    KeyedCounts,
    LinearQueries,
    MatrixRelease,
    PrefixSums,
    Selection,
    Training,
    VectorSum,
    Workload,
)
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.additive.laplace import optimal_gamma
from dpassay.accountant.mechanisms.shapes.general_gaussian import RankOneGaussian
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import enclose
from dpassay.accountant.pairs.rank_one import theorem_5_sigma_star
from dpassay.verifier.compare import keys, selections
from dpassay.verifier.compare.budget import Budget
from dpassay.verifier.compare.candidate import Candidate, Layout, LeftOut, calibrated, fixed
from dpassay.verifier.compare.integer_programs import integer_programs
from dpassay.verifier.compare.queries import on_the_data, rank_of, shape
from dpassay.verifier.compare.sensitivity import images, l1_sensitivity, l2_sensitivity, moved

EACH, JOINT, STREAM = Layout.EACH, Layout.JOINT, Layout.STREAM
_PUBLISHED_DIGITS = 12
"""Digits of noise that a published method is given, rounded up."""
_UNEQUAL_IS_SLOW = ("discrete Laplace", "discrete Gaussian", "staircase")
_ARITIES = 60
"""Largest arity of a tree that is compared: the best ones have fewer."""

Found = Iterator[Candidate | LeftOut]


def candidates_for(workload: Workload, budget: Budget) -> tuple[list[Candidate], list[LeftOut]]:
    """Return what can release a workload, and what is left out with the reason."""
    entries = [_suited(entry, budget) for entry in _of(workload, budget)]
    return (
        [entry for entry in entries if isinstance(entry, Candidate)],
        [entry for entry in entries if isinstance(entry, LeftOut)],
    )


def _suited(entry: Candidate | LeftOut, budget: Budget) -> Candidate | LeftOut:
    """Leave out what has no fast exact law when releases have unequal noise."""
    if budget.schedule and entry.name in _UNEQUAL_IS_SLOW:
        return LeftOut(
            entry.name, "its releases of unequal noise have no exact law that is fast to search"
        )
    return entry


@singledispatch
def _of(workload: Workload, budget: Budget) -> Found:
    raise NotApplicableError(f"No candidate is known for {type(workload).__name__}.")


@_of.register
def _(workload: Count, budget: Budget) -> Found:
    s = workload.sensitivity
    yield from _gaussian(EACH, ExactReal.of_rational(s), budget)
    yield Candidate(
        "Laplace",
        "density e^(-|x|/b)/2b, the classic choice for pure DP",
        partial(calibrated, "Laplace", layout=EACH, l1_sensitivity=s),
    )
    yield Candidate(
        "discrete Laplace",
        "integer noise; the geometric mechanism, optimal for pure DP and integer loss",
        partial(calibrated, "DiscreteLaplace", layout=EACH, sensitivity=s),
    )
    yield Candidate(
        "discrete Gaussian",
        "integer noise with the tails of the Gaussian",
        partial(calibrated, "DiscreteGaussian", layout=EACH, sensitivity=s),
    )
    yield from _staircase(workload, budget)
    yield from integer_programs(workload, budget)
    yield LeftOut(
        "bounded count noise (Sadeghi et al.)",
        "a budget does not determine its eta and support; name it as a candidate to have it judged",
    )


@_of.register
def _(workload: Counts, budget: Budget) -> Found:
    d, k = workload.dimension, workload.sparsity
    yield from _gaussian(EACH, l2_sensitivity(workload, budget), budget)
    yield from _independent(moved(workload, budget), budget)
    if budget.adjacency is not Adjacency.ADD_REMOVE:
        reason = "its exact shape is for add/remove; under replace-one the differences are signed"
        yield LeftOut("optimal ellipse", reason)
        yield LeftOut("count ellipse (Joseph, Yu)", reason)
    else:
        yield Candidate(
            "optimal ellipse",
            "the Gaussian noise of least variance for counts with at most k ones, correlated",
            partial(calibrated, "OptimalEllipse", dimension=d, sparsity=k),
        )
        if 2 * k > d:
            reason = "its family ends at sparsity = dimension/2"
            yield LeftOut("count ellipse (Joseph, Yu)", reason)
        else:
            yield Candidate(
                "count ellipse (Joseph, Yu)",
                "Gaussian noise from the smallest ellipse of their family",
                partial(calibrated, "CountEllipse", dimension=d, sparsity=k),
            )
    if k == d:
        yield Candidate(
            "correlated Gaussian (Lebeda)",
            "a shared and an independent part; the noisy number of records is released too",
            partial(calibrated, "CorrelatedGaussian", dimension=d),
        )
        yield Candidate(
            "correlated Gaussian, size withheld",
            "the same without its size: at most as much privacy loss",
            partial(calibrated, "CorrelatedGaussian", dimension=d, release_size=False),
        )
    else:
        yield LeftOut(
            "correlated Gaussian (Lebeda)",
            f"it is for dense records (sparsity = dimension); here at most {k} of {d} are ones",
        )
    yield from _rank_one(d, l2_sensitivity(workload, budget), budget)


@_of.register
def _(workload: GroupedCounts, budget: Budget) -> Found:
    m, d = workload.groups, workload.dimension
    yield from _gaussian(EACH, l2_sensitivity(workload, budget), budget)
    yield from _independent(moved(workload, budget), budget)
    yield Candidate(
        "disjoint groups (Lebeda)",
        "correlated noise inside each group; the sizes of the groups are released too",
        partial(calibrated, "DisjointGroupsGaussian", groups=m, dimension=d),
    )
    yield Candidate(
        "optimal groups",
        "the Gaussian noise of least variance for such counts, without the sizes of the groups",
        partial(calibrated, "OptimalGroups", groups=m, counts=d),
    )


@_of.register
def _(workload: BoundedSum, budget: Budget) -> Found:
    bounds = workload.bounds
    yield from _gaussian(EACH, l2_sensitivity(workload, budget), budget)
    yield Candidate(
        "elliptical Gaussian (Poulsen)",
        "independent noise of variance in proportion to the bound: least total variance of all "
        "Gaussian noise",
        partial(calibrated, "EllipticalGaussian", sensitivities=[str(b) for b in bounds]),
    )
    one_sided = "one-sided Gaussian"
    if not workload.signed and budget.adjacency is Adjacency.ADD_REMOVE:
        yield Candidate(
            one_sided,
            "a shared and an independent part; the noisy number of records is released too",
            partial(calibrated, "OneSidedGaussian", bounds=[str(b) for b in bounds]),
        )
    else:
        yield LeftOut(one_sided, "it is for add/remove and records without negative entries")
    yield Candidate(
        "Laplace",
        "one scale for all coordinates",
        partial(calibrated, "LaplaceVector", shifts=[str(b) for b in bounds]),
    )
    yield from _rank_one(len(bounds), l2_sensitivity(workload, budget), budget)


@_of.register
def _(workload: VectorSum, budget: Budget) -> Found:
    d = workload.dimension
    l2 = l2_sensitivity(workload, budget)
    yield from _gaussian(EACH, l2, budget)
    yield Candidate(
        "Laplace",
        "calibrated as if one coordinate moved by the whole l1 sensitivity, which bounds the rest",
        partial(
            calibrated, "Laplace", layout=EACH, l1_sensitivity=l1_sensitivity(workload, budget)
        ),
    )
    yield from _rank_one(d, l2, budget)
    if workload.linf_sensitivity is None:
        yield LeftOut("elliptical Gaussian (Poulsen)", "it needs a bound for each coordinate")


@_of.register
def _(workload: MatrixRelease, budget: Budget) -> Found:
    yield from _gaussian(EACH, workload.l2_sensitivity, budget)
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
    yield Candidate(
        "Laplace on every prefix sum",
        "fresh noise each time; a change of one input moves up to n outputs",
        partial(calibrated, "Laplace", layout=EACH, l1_sensitivity=n),
    )
    for subtraction, name in ((True, "k-ary tree with subtraction"), (False, "k-ary tree")):
        k = _best_arity(n, subtraction=subtraction)
        yield Candidate(
            f"{name}, k = {k}",
            f"Andersson, Pagh and Torkamani; k = {k} has the least error for {n} steps",
            partial(
                calibrated,
                "KaryTree",
                layout=STREAM,
                steps=n,
                arity=k,
                subtraction=subtraction,
            ),
        )
    yield Candidate(
        "binary tree",
        "the k-ary tree with k = 2, without subtraction",
        partial(calibrated, "KaryTree", layout=STREAM, steps=n, arity=2, subtraction=False),
    )
    if budget.total_releases > 1:
        yield LeftOut("other counters", "they are offered for one stream at a time")
        return
    from dpassay.accountant.counting.best_counter import best_counter

    try:
        found = best_counter(n, budget.target)
    except InvalidInputError:  # a target of another kind
        return
    best: dict[tuple[type, bool], LinearCounter] = {}
    for counter in (found.mechanism, *(other for other, _ in found.others)):
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
                layout=STREAM,
                bound=found.bound if bounded else None,
                bound_for=f"factorisation with {found.bound_law} noise, averaged over the steps,",
            ),
        )


@_of.register
def _(workload: Training, budget: Budget) -> Found:
    from dpassay.verifier.compare.schemes import schemes

    yield from schemes(workload, budget)


_of.register(KeyedCounts, keys.candidates)
_of.register(Selection, selections.candidates)


@_of.register
def _(workload: LinearQueries, budget: Budget) -> Found:
    yield from _gaussian(EACH, l2_sensitivity(workload, budget), budget)
    yield Candidate(
        "Laplace",
        "calibrated to the l1 sensitivity of the answers",
        partial(
            calibrated, "Laplace", layout=EACH, l1_sensitivity=l1_sensitivity(workload, budget)
        ),
    )
    moves = images(workload)
    yield Candidate(
        "Gaussian on the data vector",
        "independent Gaussian noise on x itself; the answers follow, and agree with each other",
        partial(on_the_data, workload=workload, moves=moves),
    )
    name, rank = "optimal Gaussian shape", rank_of(moves)
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
        partial(shape, moves=moves),
    )


def _gaussian(layout: Layout, l2: ExactReal, budget: Budget) -> Found:
    yield Candidate(
        "Gaussian",
        "independent Gaussian noise, calibrated exactly",
        partial(calibrated, "Gaussian", layout=layout, l2_sensitivity=l2),
    )
    spent = budget.epsilon_delta
    if spent is None or spent.delta.sign == 0 or spent.epsilon.sign <= 0:
        return
    if budget.total_releases > 1 or budget.is_sampled:
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
    if moved * budget.total_releases > 1 and isinstance(budget.target, (Mu, ProfileBelow)):
        reason = (
            "several counts with this noise are no Gaussian mechanism: their whole profile would "
            "have to be searched at every amount of noise. Name one to have it judged"
        )
        for name in ("Laplace", "discrete Laplace", "discrete Gaussian"):
            yield LeftOut(name, reason)
        return
    if budget.is_sampled and moved > 1:
        reason = "no exact law is known for a subsample of several counts with Laplace noise"
        yield LeftOut("Laplace", reason)
        return
    laws = (
        ("Laplace", "Laplace", "independent noise on every count"),
        ("discrete Laplace", "DiscreteLaplace", "independent integer noise on every count"),
        ("discrete Gaussian", "DiscreteGaussian", "independent integer noise on every count"),
    )
    for name, kind, why in laws:
        yield Candidate(name, why, partial(calibrated, kind, layout=EACH, copies=moved))


def _staircase(workload: Count, budget: Budget) -> Found:
    spent = budget.epsilon_delta
    if spent is None or budget.total_releases > 1 or budget.is_sampled or spent.epsilon.sign <= 0:
        yield LeftOut("staircase", "it is offered for one release with a given epsilon")
        return
    gamma = optimal_gamma(spent.epsilon, "variance", relative_width=Fraction(1, 10**10))
    rounded = str(Context(prec=8).plus(gamma.lower))
    yield Candidate(
        "staircase",
        "the density of least variance for pure DP (Geng and Viswanath), gamma rounded",
        partial(
            calibrated, "Staircase", layout=EACH, gamma=rounded, sensitivity=workload.sensitivity
        ),
    )


def _rank_one(dimension: int, l2: ExactReal, budget: Budget) -> Found:
    name = "R1SMG (Ji, Li) as published"
    spent = budget.epsilon_delta
    if dimension <= 2:
        yield LeftOut(name, "rank-one Gaussian noise is defined for more than two dimensions")
    elif spent is None or spent.delta.sign == 0 or spent.epsilon.sign <= 0:
        yield LeftOut(name, "its noise is stated for (epsilon, delta)-DP")
    elif budget.total_releases > 1 or budget.is_sampled:
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
            partial(fixed, noise, layout=JOINT),
            as_published=True,
        )


def _published(value: object) -> str:
    """Return a published amount of noise, rounded up to some digits."""
    found = enclose(value)  # type: ignore[arg-type]
    return str(Context(prec=_PUBLISHED_DIGITS, rounding=ROUND_UP).plus(found.upper))


def _best_arity(steps: int, *, subtraction: bool) -> int:
    """Return the k of least mean squared error at ε = 1: the error scales with 1/ε²."""
    from dpassay.accountant.counting.counters import KaryTree

    arities = range(2, min(_ARITIES, max(2, steps)) + 1)
    errors = {
        k: enclose(
            KaryTree(steps, k, 1, subtraction=subtraction).mean_squared_error,
            relative_width=Fraction(1, 10**12),
        ).upper
        for k in arities
    }
    return min(errors, key=lambda k: (errors[k], k))
