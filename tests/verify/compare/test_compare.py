"""Comparisons: budgets kept, exact errors, another accountant's calibrations."""

from __future__ import annotations

import io
import json
import math
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import laplace

import dpassay
from dpassay.accountant.budget.calibrate import calibrate
from dpassay.accountant.budget.target import EpsilonDelta, Mu
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.counting.best_counter import best_counter
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.geometry.spaces import Box
from dpassay.accountant.geometry.workload import (
    BoundedSum,
    Count,
    Counts,
    GroupedCounts,
    Histogram,
    LinearQueries,
    Mean,
    PrefixSums,
    Quantile,
    Selection,
    Training,
    VectorSum,
)
from dpassay.accountant.mechanisms import (
    BoundedCountNoise,
    DiscreteLaplace,
    EllipticalGaussian,
    ExponentialMechanism,
    KaryTree,
    Laplace,
    LaplaceThreshold,
    OptimalGroups,
    PartitionSelection,
    PermuteAndFlip,
    RankOneGaussian,
)
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile
from dpassay.verifier.claims import ApproximateDP
from dpassay.verifier.compare import Budget, Comparison, Row, compare, output
from dpassay.verifier.compare.candidates import candidates_for
from dpassay.verifier.compare.output import best_lines, headline, noise, release_code, table
from dpassay.verifier.kernel import Outcome, check
from dpassay.verifier.verdict import Verdict
from tests.quick import slow

APPROXIMATE = EpsilonDelta(1, "1e-6")


def row(found: Comparison, name: str) -> Row:
    (one,) = (entry for entry in found.rows if entry.candidate.name == name)
    return one


def value(found: Comparison, name: str, measure: str = "variance") -> Interval:
    known = row(found, name).value(measure)
    assert known is not None
    return known


@pytest.fixture(scope="module")
def one_count() -> Comparison:
    return compare(Budget(APPROXIMATE), Count())


def test_every_row_keeps_the_budget_and_says_so(one_count: Comparison) -> None:
    for entry in one_count.rows:
        assert entry.verdict is Verdict.HOLDS
        assert entry.certificate is not None
        true = profile.delta(entry.found.whole, 1, adjacency="add-remove")
        assert true.upper <= Decimal("1e-6")


def test_the_best_by_variance_is_proved_to_be_the_best(one_count: Comparison) -> None:
    names = {entry.candidate.name for entry in one_count.best("variance")}
    assert "optimal integer noise" in names
    found = row(one_count, "optimal integer noise").found
    assert found.bound is not None
    reached = value(one_count, "optimal integer noise")
    assert found.bound.lower <= reached.upper <= value(one_count, "discrete Laplace").lower


def test_the_first_metric_ranks(one_count: Comparison) -> None:
    found = compare(Budget(APPROXIMATE), Count(), metrics=["p-exact"])
    exact = [float(v.lower) for e in found.rows for v in [e.value("p-exact")] if v]
    assert exact == sorted(exact, reverse=True)
    variances = [float(v.lower) for e in one_count.rows for v in [e.value("variance")] if v]
    assert variances == sorted(variances)


def test_what_is_left_out_has_a_reason(one_count: Comparison) -> None:
    pure = compare(Budget(EpsilonDelta(1)), Count())
    left = {entry.name: entry.reason for entry in pure.left_out}
    assert "unbounded" in left["Gaussian"]
    assert "delta > 0" in left["optimal integer noise"]
    laplace = row(pure, "Laplace").found.mechanism
    assert laplace == Laplace(scale=1)
    assert {e.candidate.name for e in pure.best("variance")} == {"discrete Laplace"}


@pytest.mark.parametrize(("epsilon", "delta"), [("0.001", "1e-9"), slow("0.01", "1e-6")])
def test_a_program_that_is_too_large_leaves_the_other_candidates(epsilon: str, delta: str) -> None:
    found = compare(
        Budget(EpsilonDelta(epsilon, delta)),
        Count(),
        only=["discrete Laplace", "optimal integer noise"],
    )
    left = {entry.name: entry.reason for entry in found.left_out}
    assert "optimal integer noise" in left
    assert "too large" in left["optimal integer noise"]
    (best,) = found.best("variance")
    assert best.candidate.name == "discrete Laplace"


def test_releases_share_the_budget() -> None:
    budget = Budget(APPROXIMATE, releases=16)
    found = compare(budget, Count(), only=["Gaussian", "Laplace"])
    one = compare(Budget(APPROXIMATE), Count(), only=["Gaussian"])
    sixteen = value(found, "Gaussian").ball()
    assert abs(float(sixteen / (16 * value(one, "Gaussian").ball())) - 1) < 1e-10
    for entry in found.rows:
        assert profile.delta(entry.found.whole, 1, adjacency="add-remove").upper <= Decimal("1e-6")
    names = {entry.name for entry in found.left_out}
    assert "optimal integer noise" in names


def test_correlated_noise_wins_for_dense_counts() -> None:
    found = compare(Budget(Mu(1)), Counts(50, 50), metrics=["variance"])
    (best,) = found.best("variance")
    assert best.candidate.name == "optimal ellipse"
    size = value(found, "correlated Gaussian (Lebeda)")
    assert value(found, "optimal ellipse").lower < size.upper < value(found, "Gaussian").lower
    assert abs(float(size.lower) - (math.sqrt(50) + 1) ** 2 / 4) < 1e-9


@pytest.mark.slow
def test_the_rank_one_mechanism_is_struck_out_with_its_true_delta() -> None:
    workload = VectorSum(100, l2_sensitivity=1)
    usual = compare(Budget(APPROXIMATE), workload)
    assert not any(entry.candidate.as_published for entry in usual.rows)
    assert "R1SMG (Ji, Li) as published" in {entry.name for entry in usual.left_out}
    found = compare(Budget(APPROXIMATE), workload, published=True)
    published = row(found, "R1SMG (Ji, Li) as published")
    assert isinstance(published.found.mechanism, RankOneGaussian)
    assert published.verdict is Verdict.REFUTED
    assert published.why.startswith("struck out")
    assert published not in found.best("variance")
    assert found.rows[-1] is published
    assert published.finding is not None
    assert Decimal(published.finding.true["delta"]["lower"]) > Decimal("0.1")


def test_skewed_bounds_are_served_by_elliptical_noise() -> None:
    bounds = [1, 1, 1, 2, 4, 8]
    found = compare(Budget(Mu("0.5")), BoundedSum(bounds), only=["aussian"])
    (best,) = found.best("variance")
    assert isinstance(best.found.mechanism, EllipticalGaussian)
    mean = value(found, best.candidate.name)
    assert abs(float(mean.lower) - sum(bounds) ** 2 / 0.25 / 6) < 1e-9


@pytest.mark.parametrize("adjacency", Adjacency)
def test_groups_are_served_by_the_noise_of_least_variance(adjacency: Adjacency) -> None:
    found = compare(Budget(Mu(1), adjacency), GroupedCounts(4, 8), metrics=["variance"])
    (best,) = found.best("variance")
    assert isinstance(best.found.mechanism, OptimalGroups)
    if adjacency is Adjacency.REPLACE_ONE:
        assert value(found, "optimal groups").overlaps(Interval.of_exact(Fraction(43, 5)))


def test_a_stream_is_served_by_the_best_counter_that_is_known() -> None:
    found = compare(Budget(EpsilonDelta(1)), PrefixSums(1000), metrics=["variance"])
    (best,) = found.best("variance")
    known = best_counter(1000, 1)
    assert best.found.mechanism == known.mechanism
    assert best.found.bound == known.bound
    assert "no factorisation with Laplace noise, averaged over the steps" in str(found)
    trees = [e.found.mechanism for e in found.rows if isinstance(e.found.mechanism, KaryTree)]
    (tree,) = (tree for tree in trees if tree.subtraction)
    for k in range(2, 30):
        assert k == tree.arity or KaryTree(1000, k, 1).mean_squared_error() >= (
            tree.mean_squared_error().lower()
        )


@pytest.mark.slow
def test_a_stream_under_an_approximate_budget() -> None:
    found = compare(Budget(APPROXIMATE), PrefixSums(50), metrics=["variance"])
    names = {entry.candidate.name for entry in found.rows}
    assert "square root factorization, Gaussian noise" in names
    for entry in found.rows:
        assert entry.verdict is Verdict.HOLDS, entry.candidate.name
        assert "/" not in repr(entry.found.mechanism)  # noise in decimals
    advised = repr(found.rows[0].found.mechanism)
    assert release_code(found) == f'dpassay stream --mechanism "{advised}" < numbers'


@pytest.mark.slow
def test_the_noise_of_a_training_run_comes_with_its_batches() -> None:
    only = ["Poisson", "each record"]
    found = compare(Budget(APPROXIMATE), Training(10, 100, 1), only=only)
    assert release_code(found) == ""  # what one line releases has no batches
    assert headline(found).startswith("Use Poisson batches (add-remove) with `Gaussian(")
    assert "run       dpassay training --noise-multiplier" in str(found)
    assert "not ranked: each record once an epoch (zero-out): other neighbours" in str(found)
    found = compare(Budget(APPROXIMATE), Counts(9, 2), only=["discrete Laplace"])
    assert "` on every answer: typical error" in headline(found)


def test_what_is_unknown_of_others_does_not_make_a_candidate_the_best() -> None:
    asked = ["mean-absolute-error", "p-exact"]
    found = compare(Budget(APPROXIMATE), PrefixSums(64), metrics=asked)
    naive = row(found, "Laplace on every prefix sum")
    assert naive.value("mean-absolute-error") is not None
    assert found.best("mean-absolute-error") == found.best("p-exact") == ()
    assert found.ranked_by.name == "rmse"
    assert found.rows[-1] is naive
    assert "BridgedTree" in headline(found)
    assert any("unknown for bridged tree" in line for line in best_lines(found))


def test_the_first_line_says_what_to_use(one_count: Comparison) -> None:
    """The law of 33 masses that is 0.007 % better is not worth its length."""
    discrete = row(one_count, "discrete Laplace").found.mechanism
    assert headline(one_count) == (
        f"Use `{discrete!r}`: typical error ±1.4; proved (1, 1e-6)-DP; "
        "next best (staircase) 2.1 % worse"
    )
    assert best_lines(one_count)[0] == (
        "discrete Laplace: advised, as it is within 2 % of the best (optimal integer noise) and "
        "the usual libraries have it"
    )
    assert noise(row(one_count, "Gaussian").found) == "σ = 4.2247"


def test_rows_alike_to_all_digits_shown_are_one_line(one_count: Comparison) -> None:
    names = [entry[0] for entry in table(one_count)]
    assert "optimal integer noise, for E|Z|" not in names
    assert any("the same to 5 digits as" in line for line in best_lines(one_count))


@pytest.mark.slow
def test_linear_queries_get_the_optimal_shape() -> None:
    matrix = [[1, 1, 0], [0, 1, 1], [1, 1, 1]]
    workload = LinearQueries(matrix, Box([1, 1, 1]))
    found = compare(Budget(Mu(1)), workload, metrics=["variance"])
    shape = row(found, "optimal Gaussian shape")
    reached = value(found, "optimal Gaussian shape")
    assert shape.found.bound is not None
    assert shape.found.bound.lower <= reached.upper
    unit = calibrate("Gaussian", Mu(1)).least  # exactly 1: the bound is that of the shape alone
    assert unit.lower <= 1
    assert shape.found.bound.lower <= reached.lower
    for name in ("Gaussian", "Gaussian on the data vector"):
        assert reached.upper <= value(found, name).upper
    # ℓ2 of W v at v = (1, 1, 1): (2, 2, 3)
    assert abs(float(value(found, "Gaussian").lower) - 17) < 1e-9


def test_named_mechanisms_are_judged_with_the_noise_that_they_have() -> None:
    given = [Laplace(scale=1), DiscreteLaplace(scale="0.9"), BoundedCountNoise(1, "0.5", 4)]
    found = compare(Budget(APPROXIMATE), Count(), candidates=given, only=["Laplace"])
    verdicts = [row(found, repr(mechanism)).verdict for mechanism in given]
    assert verdicts == [Verdict.HOLDS, Verdict.REFUTED, Verdict.REFUTED]


def test_workloads_have_a_notation() -> None:
    from dpassay.accountant.notation import parse_description

    for workload in (
        Count(3),
        Counts(10, 2),
        VectorSum(3, l1_sensitivity="1/2", linf_sensitivity="sqrt(2)"),
        LinearQueries([[1, "1/3"]], Box([1, 1])),
    ):
        assert parse_description(repr(workload)) == workload


def test_all_candidates_of_all_workloads_can_be_listed() -> None:
    for adjacency in Adjacency:
        for workload in (Counts(10, 3), GroupedCounts(2, 3), PrefixSums(7), Count()):
            entries, left = candidates_for(workload, Budget(APPROXIMATE, adjacency))
            assert entries
            assert all(entry.reason for entry in left)


def test_an_interruption_keeps_what_was_judged() -> None:
    seen: list[str] = []

    def interrupt(name: str) -> None:
        seen.append(name)
        if len(seen) == 3:
            raise KeyboardInterrupt

    found = compare(Budget(APPROXIMATE), Count(), progress=interrupt)
    assert not found.complete
    assert {entry.candidate.name for entry in found.rows} == set(seen[:2])
    assert found.to_json()["complete"] is False
    assert str(found).startswith("Interrupted; best so far: `")


# Comparisons on a terminal of 80 or 120 columns, and workloads.


ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def found() -> Comparison:
    return dpassay.compare(
        "VectorSum(dimension=50, l2_sensitivity=1)", epsilon=1, delta="1e-6", published=True
    )


def shown(found: Comparison) -> str:
    terminal = Terminal()
    output.show(found, output.best_lines(found), terminal)
    return terminal.getvalue()


@pytest.mark.parametrize("columns", [slow(60), 80, 120])
def test_it_fits_and_keeps_every_row(
    found: Comparison, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    lines = ESCAPE.sub("", shown(found)).splitlines()
    code = [line for line in lines if line.startswith("release ")]
    assert code[0].endswith(").release(answers)")  # in one piece, to be copied
    assert max(len(line.rstrip()) for line in lines if line not in code) <= columns
    text = "\n".join(lines)
    assert text.startswith("Use `Gaussian(")
    for row in found.rows:
        assert row.candidate.name.split()[0] in text


def test_what_is_not_private_is_struck_out(
    found: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    struck = [line for line in shown(found).splitlines() if "\x1b[2;9m" in line]
    assert [ESCAPE.sub("", line).split()[0] for line in struck] == ["R1SMG", "elliptical"]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in shown(found)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_histogram_is_counts_of_which_a_person_has_one(adjacency: str) -> None:
    answers = [
        dpassay.compare(workload, epsilon=1, adjacency=adjacency)
        for workload in ("Histogram(bins=7)", "Counts(dimension=7, sparsity=1)")
    ]
    histogram, counts = ([row.found.mechanism for row in found.rows] for found in answers)
    assert histogram == counts
    assert repr(answers[0].workload) == "Histogram(bins=7)"
    # A replaced person leaves one bin and enters another.
    most = 2 if adjacency == "replace-one" else 1
    assert histogram[0] == dpassay.parse(f"DiscreteLaplace(scale={most})")


def test_a_mean_moves_by_its_range_over_its_records() -> None:
    assert Mean(-5, 15, 1000).plain(Adjacency.REPLACE_ONE) == BoundedSum([Fraction(1, 50)])
    found = dpassay.compare("Mean(-5, 15, 1000)", epsilon=2, adjacency="replace-one")
    (row,) = found.rows
    variance = row.value("variance")
    assert variance is not None
    assert Fraction(2, 100**2) in variance  # Laplace noise of scale 1/100
    assert variance.digits > 12
    assert Histogram(3).plain(Adjacency.ADD_REMOVE) == Counts(3, 1)


@pytest.mark.parametrize(
    "schemes",
    [
        ["Poisson", "once", "random"],
        pytest.param(["Poisson", "once", "without"], marks=pytest.mark.slow),
    ],
)
def test_a_training_run_names_the_noise_of_each_scheme(schemes: list[str]) -> None:
    found = dpassay.compare("Training(100, 1000, 2)", epsilon=2, delta="1e-5", only=schemes)
    assert len(found.rows) == len(schemes)
    noise = {row.candidate.name.split()[0]: row for row in found.rows}
    run = dpassay.dpsgd_noise(2, 100, 1000, epochs=2, delta="1e-5")
    assert getattr(noise["Poisson"].found.mechanism, "standard_deviation", 0) == (
        run.noise_multiplier
    )
    once = dpassay.calibrate("Gaussian", epsilon=2, delta="1e-5", count=2)
    assert noise["each"].found.mechanism == once.mechanism
    assert all(row.is_private for row in found.rows)
    relations = {
        name: None if row.finding is None else row.finding.adjacency for name, row in noise.items()
    }
    assert relations.pop("batches", "replace-one") == "replace-one"
    assert relations.pop("random", "add-remove") == "add-remove"
    assert relations == {"Poisson": "add-remove", "each": "add-remove"}


# Comparisons of what is chosen by scores, and of counts by keys that come from the data.


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("candidates", [2, 3, 50])
def test_no_scores_are_farther_from_the_best(candidates: int, monotone: bool) -> None:
    asked = f"Selection({candidates}, 2, {monotone})"
    found = dpassay.compare(asked, epsilon=1, delta="1e-6", metrics=["regret:0.9"])
    (row,) = (row for row in found.rows if row.candidate.name == "exponential mechanism")
    mechanism, limit = row.found.mechanism, row.value("regret:0.9")
    assert isinstance(mechanism, ExponentialMechanism)
    assert limit is not None

    def beyond(scores: list[float], distance: float) -> float:
        chances = [float(p.mid()) for p in mechanism.probabilities(scores)]
        return sum(p for p, u in zip(chances, scores, strict=True) if u <= -distance)

    t = float(limit)
    assert beyond([0.0] + [-t] * (candidates - 1), t) == pytest.approx(0.1, rel=1e-12, abs=0)
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores = -rng.exponential(t, candidates - 1)
        assert beyond([0.0, *scores], t) <= 0.1 * (1 + 1e-12)


def test_a_quantile_is_a_choice_by_ranks() -> None:
    added, replaced = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
    assert Quantile(9, "3/4").plain(added) == Selection(9, "3/4")
    assert Quantile(9, "1/5").plain(added) == Selection(9, "4/5")
    assert Quantile(9, "1/5").plain(replaced) == Selection(9, 1)


@pytest.mark.parametrize("budget", [slow({"rho": "0.1"}), {"epsilon": 1, "delta": "1e-6"}])
def test_several_choices_are_at_most_those_of_noise(budget: dict[str, Any]) -> None:
    rows = dpassay.compare("Selection(10)", **budget, releases=4).rows
    assert len(rows) == 2
    for row in rows:
        mechanism = row.found.mechanism
        assert row.is_private
        assert isinstance(mechanism, ExponentialMechanism | PermuteAndFlip)
        kind = "Logistic" if isinstance(mechanism, ExponentialMechanism) else "Laplace"
        noise = dpassay.calibrate(kind, **budget, count=4)
        assert isinstance(noise.mechanism, dpassay.Logistic | dpassay.Laplace)
        scale = float(noise.mechanism.scale)
        assert float(mechanism.epsilon) == pytest.approx(1 / scale, rel=1e-10, abs=0)
        assert float(mechanism.epsilon) <= 1 / scale
        assert row.found.whole == noise.whole


@pytest.mark.parametrize(
    "mechanism",
    [
        "PartitionSelection(epsilon='1/3', delta='0.2')",
        slow("PartitionSelection(epsilon=1, delta='1e-6')"),
        "Guaranteed(epsilon='1/3', delta='0.2')",
    ],
)
def test_what_a_mechanism_is_made_for_is_met_with_equality(mechanism: str, tmp_path: Path) -> None:
    made = dpassay.parse(mechanism)
    assert isinstance(made, (PartitionSelection, dpassay.Guaranteed))

    def judged(delta: object) -> tuple[Verdict, Outcome]:
        claim = ApproximateDP(
            id="own",
            source="test",
            statement="Its own.",
            mechanism=mechanism,
            adjacency="add-remove",
            epsilon=str(made.epsilon),
            delta=str(delta),
        )
        finding, certificate = dpassay.certify(claim)
        path = tmp_path / "c.json"
        path.write_text(json.dumps(certificate))
        return finding.verdict, check(json.loads(path.read_text())).outcome

    assert judged(made.delta) == (Verdict.HOLDS, Outcome.VALID)
    less = Fraction(made.delta.rational or 0) * (1 - Fraction(1, 10**30))
    assert judged(less) == (Verdict.REFUTED, Outcome.VALID)


def test_released_keys_reach_the_threshold() -> None:
    mechanism = LaplaceThreshold(scale=2, threshold=10)
    counts = np.array([0, 1, 12, 500])
    shown = mechanism.release(counts, 4000, rng=np.random.default_rng(7))
    assert shown.shape == (4000, 4)
    assert (shown[:, 0] == -1).all()
    assert ((shown == -1) | (shown >= 10)).all()
    # 4000 runs: at a false-alarm rate of 1e-6 a share is within 4.9 standard errors.
    for column, count in enumerate(counts[1:], start=1):
        chance = laplace.sf((10 - count) / 2)
        share = (shown[:, column] >= 0).mean()
        assert abs(share - chance) <= 4.9 * math.sqrt(chance * (1 - chance) / 4000) + 1e-3
    with pytest.raises(InvalidInputError, match="≥ 0"):
        mechanism.release([-1.0])


def test_all_of_several_runs_are_one_run_that_is_longer() -> None:
    several, longer = (
        dpassay.compare(text, epsilon=2, delta="1e-5", only=[row])
        for text, row in (
            ("Training(100, 100, 2, runs=3)", "all 3 runs"),
            ("Training(100, 100, 6)", "Poisson"),
        )
    )
    assert several.rows[0].found.mechanism == longer.rows[0].found.mechanism


@pytest.mark.slow
def test_the_best_of_a_random_number_of_runs_costs_less_than_all() -> None:
    found = dpassay.compare("Training(100, 100, 10, runs=5)", epsilon=2, delta="1e-5")
    best, every = found.rows
    assert best.is_private
    assert every.is_private
    spent = dpassay.epsilon(best.found.whole, "1e-5", adjacency="add-remove", relative_width=1)
    assert 0.98 * 2 <= spent.upper <= 2
    one = dpassay.compare("Training(100, 100, 10)", epsilon=2, delta="1e-5", only=["Poisson"])
    rows = *one.rows, best, every
    noises = [float(getattr(row.found.mechanism, "standard_deviation", 0)) for row in rows]
    assert noises == sorted(noises)
