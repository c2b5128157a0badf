"""Write docs/capabilities.md: what can be done with every mechanism.

    python docs/make_capabilities.py

The table is made from a run: each capability is tried with the example that a mechanism declares.
What fails has to be named in `NOT_YET` with its reason; a test holds the table to a run.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dpassay.accountant import notation
from dpassay.accountant.budget.calibrate import EpsilonDelta
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import AdjacencyError, DpassayError, NotApplicableError
from dpassay.accountant.geometry.workload import (
    BoundedSum,
    Count,
    Counts,
    GroupedCounts,
    MatrixRelease,
    PrefixSums,
    VectorSum,
)
from dpassay.accountant.mechanisms import DESCRIPTIONS, Composed, PoissonSubsampled
from dpassay.accountant.questions import accuracy, profile
from dpassay.accountant.questions import accuracy as utility
from dpassay.accountant.questions.least_mu import bounds
from dpassay.verifier.claims import ApproximateDP
from dpassay.verifier.compare.candidates import Budget, named
from dpassay.verifier.kernel import Outcome, check
from dpassay.verifier.prover import decided as certify

PAGE = Path(__file__).resolve().parent / "capabilities.md"
WIDTH = Fraction(1, 10)
"""Relative width that is asked of a composition or a sample: whether there is an answer at all."""

Relation = Adjacency | None
Question = Callable[[Mechanism, Relation], object]


def relation(mechanism: Mechanism) -> Relation:
    """Return the first relation under which the mechanism has a worst pair; None where any is."""
    for adjacency in (None, *Adjacency):
        try:
            mechanism.worst_case(adjacency)
        except AdjacencyError:
            continue
        return adjacency
    raise NotApplicableError(f"{mechanism!r} has no worst pair.")


def _profile(mechanism: Mechanism, adjacency: Relation) -> object:
    return profile.delta(mechanism, "1/2", adjacency=adjacency, relative_width=WIDTH)


def _composition(mechanism: Mechanism, adjacency: Relation) -> object:
    twice = Composed(mechanism, 2)
    return profile.delta(twice, 1, adjacency=relation(twice), relative_width=WIDTH)


def _subsampling(mechanism: Mechanism, adjacency: Relation) -> object:
    sample = PoissonSubsampled(mechanism, "1/10")
    return profile.delta(sample, "1/50", adjacency=Adjacency.ADD_REMOVE, relative_width=WIDTH)


def _sampling(mechanism: Mechanism, adjacency: Relation) -> object:
    return mechanism.sample(2, rng=np.random.default_rng(1))


def _release(mechanism: Mechanism, adjacency: Relation) -> object:
    rng = np.random.default_rng(1)
    if not mechanism.adds_real_noise() and type(mechanism).releases is Mechanism.releases:
        return mechanism.lattice_sampler()
    size = max(mechanism.dimension, _outputs(mechanism))
    return mechanism.release(0 if size == 1 else np.zeros(size, int), rng=rng)


def _outputs(mechanism: Mechanism) -> int:
    try:
        return len(mechanism.variances())
    except DpassayError:
        return 1


def _accuracy(mechanism: Mechanism, adjacency: Relation) -> object:
    return utility.mean_squared_error(mechanism), accuracy.mean_absolute_error(mechanism)


def _kernel(mechanism: Mechanism, adjacency: Relation) -> object:
    claim = ApproximateDP(
        id="capabilities/delta",
        source="the table of capabilities",
        statement="a delta at an epsilon",
        mechanism=repr(mechanism),
        adjacency=adjacency.value if adjacency else None,
        epsilon="1/2",
        delta="1/10000",
    )
    _, certificate = certify(claim)
    if certificate is None or check(certificate).outcome is not Outcome.VALID:
        raise NotApplicableError("The kernel does not prove a claim about this mechanism.")
    return certificate


def _audit(mechanism: Mechanism, adjacency: Relation) -> object:
    found = mechanism.worst_answers()
    if not found:
        raise NotApplicableError("No neighbouring answers are listed that attain the worst pair.")
    return [mechanism.outputs(side, 2, rng=np.random.default_rng(1)) for side in found[0]]


def _compare(mechanism: Mechanism, adjacency: Relation) -> object:
    given: Any = mechanism
    d = mechanism.dimension
    budget = Budget(EpsilonDelta(1, "1e-6"), adjacency or Adjacency.ADD_REMOVE)
    workloads: list[Callable[[], Any]] = [
        Count,
        lambda: Counts(d, getattr(given, "sparsity", d)),
        lambda: BoundedSum(getattr(given, "sensitivities", None) or given.shifts),
        lambda: BoundedSum(given.bounds, signed=False),
        lambda: GroupedCounts(given.groups, getattr(given, "counts", d)),
        lambda: PrefixSums(given.steps),
        lambda: VectorSum(d, l2_sensitivity="1/1000"),
        lambda: MatrixRelease(
            given.row_covariance.dimension, given.column_covariance.dimension, "1/1000"
        ),
    ]
    for build in workloads:
        try:
            return named(mechanism, build(), budget)
        except (DpassayError, AttributeError, TypeError):
            continue
    raise NotApplicableError("No workload is known that it releases.")


def _least_mu(mechanism: Mechanism, adjacency: Relation) -> object:
    found = bounds(profile.worst_pairs(mechanism, adjacency, None), WIDTH)
    if not found.upper.is_finite():
        raise NotApplicableError("No mu is enough.")
    return found


CAPABILITIES: dict[str, Question] = {
    "profile": _profile,
    "composition": _composition,
    "subsampling": _subsampling,
    "sampling": _sampling,
    "exact release": _release,
    "accuracy": _accuracy,
    "kernel": _kernel,
    "audit": _audit,
    "compare": _compare,
    "least μ": _least_mu,
}

COUNTERS = (
    "BinaryTree",
    "BridgedTree",
    "SquareRootFactorization",
)

KEYS = ("DiscreteLaplaceThreshold", "GaussianThreshold", "LaplaceThreshold", "PartitionSelection")
"""Mechanisms that say which keys are released."""
CHOICES = ("ExponentialMechanism", "PermuteAndFlip", "ReportNoisyMax")
"""Mechanisms that choose by scores."""
REPORTS = ("Rappor", "SubsetSelection", "UnaryEncoding")
"""Mechanisms that report a set of categories."""
GROUPS = {
    "counters": COUNTERS,
    "thresholds on keys": KEYS,
    "selections": CHOICES,
    "reports of sets": REPORTS,
}
"""What the page calls these mechanisms together."""

NOT_YET: dict[str, dict[tuple[str, ...], str]] = {
    "kernel": {
        (
            "AboveThreshold",
            "DiscreteLaplaceThreshold",
            "PartitionSelection",
        ): "no row of its table of lemmas refutes a claim about this example",
        (
            "Bounded",
            "ShuffledAmong",
        ): "its laws are not in the table of lemmas: certificates are CONDITIONAL",
        ("Tuned",): "not yet: the proof of the worst score is a person's text",
    },
    "profile": {
        ("AboveThreshold",): "the largest loss exactly, and δ at other ε in wide bounds",
        ("ReportNoisyMax",): "exact for two candidates, in wide bounds for more",
    },
    "composition": {
        (
            "AboveThreshold",
            "ExponentialMechanism",
            "PartitionSelection",
            "PrivateQuantile",
            "ReportNoisyMax",
        ): "two ends: which neighbours are worst for all releases is not known",
        ("Shuffled",): "enclosed, more widely: which records of the others are worst may change",
        ("ShuffledAmong",): "enclosed, more widely: user 1 may change another way in each release",
        ("Bounded",): "resampled real noise: each loss is a search, too slow for sums; all else is",
        ("Tuned",): "never: δ alone is enclosed; tune a composition",
        ("RankOneGaussian",): "not composed: its losses have tails that no engine sums",
    },
    "subsampling": {
        (
            "AboveThreshold",
            "PrivateQuantile",
            *CHOICES,
            *KEYS,
        ): "not exactly: the message names what bounds it",
        (
            "Channel",
            "RandomizedResponse",
            *REPORTS,
        ): "never: it reports one record, and none is left out",
        ("Shuffled", "ShuffledAmong"): "never: the number of users is given, and none is left out",
        ("Bounded",): "not yet for resampled real noise",
        ("SampledWithoutReplacement",): "never: it is a sample itself, for replaced records",
        ("Tuned",): "never: δ alone is enclosed; tune a run on a sample",
    },
    "sampling": {("Guaranteed",): "never: a guarantee names no noise"},
    "exact release": {
        CHOICES: "of scores: `release([3, 1, 2])` selects exactly",
        ("Bounded",): "of integers, by integer noise; real noise is simulated (`outputs`)",
        ("PrivateQuantile", "Shuffled"): "of all records: `release([0, 1, …])` is exact",
        ("ShuffledAmong",): "never: the inputs of the others are given",
        ("MatrixVariateGaussian", "RankOneGaussian"): "not here: `sample` simulates",
        ("BoundedCountNoise",): "not yet: its law differs for counts below the support",
        ("AdditiveNoise",): "not yet: its inverse is no elementary function; `sample` simulates",
        ("TruncatedLaplace",): "not yet: its inverse has a parameter, and release wants none",
        (
            "MixtureOfGaussians",
            "PoissonSubsampled",
            "RandomAllocation",
            "SampledWithoutReplacement",
        ): ("never: records are chosen before the answer; release that with the mechanism itself"),
        ("Guaranteed", "Tabulated"): "never: it adds no noise to an answer",
        ("Tuned",): "never: run the mechanism so many times, and select",
    },
    "accuracy": {
        (*COUNTERS, "KaryTree"): "not yet: sums of Laplace noise; E[error²] is known",
        ("DiscreteCorrelatedGaussian",): "not yet: sums of two discrete laws; E[error²] is known",
        (
            "AboveThreshold",
            "Channel",
            "Guaranteed",
            "RandomizedResponse",
            "Shuffled",
            "ShuffledAmong",
            "Tabulated",
            *CHOICES,
        ): ("never: outputs are names"),
        KEYS: "never: keys are left out",
        ("Tuned",): "it depends on the score",
        ("PrivateQuantile",): "it depends on the data: `mean_rank_error(data)`",
        REPORTS: "never: a report is a set; `variance` is that of an estimated count",
        ("TruncatedGeometric",): "it depends on the count: `mean_squared_error_at`",
        ("Bounded",): "it depends on the true answer: simulate `outputs`",
    },
    "audit": {
        (
            *COUNTERS,
            "DisjointGroupsGaussian",
            "GeneralGaussian",
            "KnownSizeGaussian",
        ): ("not yet: name two answers with `pairs=`"),
        ("DiscreteCorrelatedGaussian", "MixtureOfGaussians", "SampledWithoutReplacement"): (
            "not yet: name two answers with `pairs=`"
        ),
        ("Guaranteed",): "never: there is no output",
    },
    "compare": {
        ("Composed", "PoissonSubsampled", "SampledWithoutReplacement", "MixtureOfGaussians"): (
            "give the budget `releases` and `sampling_prob` instead"
        ),
        ("RandomAllocation",): (
            "`Training` has it as a row; else a budget names Poisson sampling only"
        ),
        ("DiscreteCorrelatedGaussian", "KnownSizeGaussian"): (
            "not yet as a candidate that is named; `compare` offers it for `Counts`"
        ),
        (
            "AboveThreshold",
            "Channel",
            "Guaranteed",
            "RandomizedResponse",
            "Shuffled",
            "ShuffledAmong",
            "Tabulated",
            *CHOICES,
        ): ("never: it adds no noise to an answer"),
        KEYS: "never: it releases keys",
        REPORTS: "never: it reports one record; docs/local.md compares them",
        ("Bounded", "TruncatedGeometric"): "not yet: its error depends on the true answer",
        ("PrivateQuantile",): "not yet: `Quantile` has fixed candidates, and no range",
        ("Tuned",): "never: its error depends on the score",
    },
    "least μ": {
        ("AdditiveNoise", "Skellam", "Tuned"): ("not yet: no μ is known to be enough"),
        (
            *KEYS,
            "BoundedCountNoise",
            "Guaranteed",
            "IntegerNoise",
            "RankOneGaussian",
            "TruncatedLaplace",
        ): ("never: the loss is too large too often for any μ"),
    },
}
"""Why mechanisms lack a capability; what is not listed here has to work."""


def examples() -> dict[str, Mechanism]:
    """Return the declared example of every mechanism."""
    return {
        name: notation.parse(kind.example)
        for name, kind in DESCRIPTIONS.items()
        if issubclass(kind, Mechanism)
    }


def lacks(mechanism: Mechanism) -> dict[str, str]:
    """Return the capabilities that a mechanism lacks, with the refusal of each."""
    found = {}
    adjacency = relation(mechanism)
    for capability, ask in CAPABILITIES.items():
        try:
            ask(mechanism, adjacency)
        except DpassayError as refusal:
            found[capability] = str(refusal)
    return found


def expected_gaps(name: str) -> set[str]:
    """Return the capabilities that a mechanism is listed to lack."""
    return {
        capability
        for capability, reasons in NOT_YET.items()
        if any(name in names for names in reasons)
    }


def _grouped(names: tuple[str, ...]) -> list[str]:
    """Return names, with a group in place of its members."""
    whole = {group: found for group, found in GROUPS.items() if set(found) <= set(names)}
    members = {name for found in whole.values() for name in found}
    return [*whole, *(name for name in names if name not in members)]


def page() -> str:
    """Return the page, made from a run."""
    columns = list(CAPABILITIES)
    lines = [
        "# What can be done with every mechanism",
        "",
        "Made by `python docs/make_capabilities.py` from a run: each capability is tried with the "
        "example that the mechanism declares. A dash has its reason below the table.",
        "",
        f"|mechanism|{'|'.join(columns)}|",
        f"|---|{':-:|' * len(columns)}",
    ]
    for name, mechanism in examples().items():
        gaps = lacks(mechanism)
        if unexplained := set(gaps) ^ expected_gaps(name):
            raise SystemExit(f"{name}: bring NOT_YET up to date for {', '.join(unexplained)}")
        cells = ("–" if column in gaps else "✓" for column in columns)
        lines.append(f"|{name}|{'|'.join(cells)}|")
    lines += ["", "## Why not", ""]
    lines += [f"- {group.capitalize()}: {', '.join(names)}." for group, names in GROUPS.items()]
    lines.append("")
    for capability, reasons in NOT_YET.items():
        for names, reason in reasons.items():
            lines.append(f"- {capability}, {', '.join(_grouped(names))}: {reason}.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
