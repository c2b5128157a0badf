"""Audits of rows and scores that are there already."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import dpassay
from dpassay.accountant.errors import InvalidInputError
from dpassay.figures import audit as picture
from dpassay.verifier.audit import audit_samples, audit_scores
from dpassay.verifier.audit.guarantees import Outcome
from dpassay.verifier.cli import main
from dpassay.verifier.kernel import Outcome as Checked
from dpassay.verifier.kernel import check

FALSE_ALARM = 1e-6


def geometric(epsilon: float, centre: int, size: int, rng: np.random.Generator) -> np.ndarray:
    first, second = (rng.geometric(-math.expm1(-epsilon), size) for _ in range(2))
    return np.asarray(centre + first - second)


@pytest.mark.parametrize("sizes", [(20_000, 20_000), (30_000, 8_000)])
def test_a_false_claim_is_refuted_and_a_true_one_is_not(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    p, q = (geometric(1.0, i, size, rng) for i, size in enumerate(sizes))
    found = audit_samples(p, q, "0.7", seed=1, significance=FALSE_ALARM)
    assert found.refuted
    assert 0.7 < found.epsilon <= 1
    assert audit_samples(p, q, 1, seed=1, significance=FALSE_ALARM).outcome is Outcome.NOT_REFUTED
    assert "new runs" not in found.advice
    assert "cannot be repeated" in found.advice
    # what the kernel cannot see is that the rows are runs
    assert check(found.certificate()).outcome is Checked.CONDITIONAL


@pytest.mark.slow
def test_the_level_under_the_worst_private_mechanism() -> None:
    # Binary randomised response at the claim. More accusations than the quantile of Bin(400, 5 %)
    # have probability 1e-6.
    rng, epsilon, audits, accused = np.random.default_rng(9), 1.0, 400, 0
    true = 1 / (1 + math.exp(-epsilon))
    for index in range(audits):
        p, q = rng.random(300) < true, rng.random(300) < 1 - true
        accused += audit_samples(p.astype(int), q.astype(int), epsilon, seed=index).refuted
    assert accused <= stats.binom.isf(FALSE_ALARM, audits, 0.05)


def test_scores_of_a_canary_bound_epsilon_below_the_truth() -> None:
    rng = np.random.default_rng(2)
    found = audit_scores(rng.normal(1, 1, 4000), rng.normal(0, 1, 3000), delta=0.01, seed=1)
    assert found.verdict is None  # nothing is claimed
    mu, epsilon = 1.0, found.epsilon
    delta = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(
        -mu / 2 - epsilon / mu
    )
    assert epsilon > 1
    assert delta >= 0.01  # ε(0.01) of N(1, 1) against N(0, 1) is larger than the bound
    assert audit_scores(rng.normal(0, 1, 400), rng.normal(0, 1, 400), seed=1).epsilon < 0.5
    assert audit_scores(
        rng.normal(1, 1, 4000), rng.normal(0, 1, 4000), {"mu": "0.5"}, seed=1
    ).refuted


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([7], [7]),  # one rare answer on each side, in the same run: 1 in 1000
        ([7, 8], [500]),  # two rare answers in a row: 1 in 500
        ([], [500, 501]),
    ],
)
def test_rare_answers_meet_by_chance(first: list[int], second: list[int]) -> None:
    """The t law of rank correlations, with p = 0 and 5e-64, holds for no such ties."""
    sides = np.zeros((2, 1000), dtype=int)
    sides[0, first], sides[1, second] = 1, 1
    assert not audit_samples(sides[0], sides[1], 1, seed=1).refuted


@pytest.mark.parametrize("unit", ["0.1", "0.01", "votes", "scaled"])
def test_rounded_outputs_repeat_as_they_should(unit: str) -> None:
    """Two decimals, averages of votes, noise of a lattice times a constant: no copies."""
    rng = np.random.default_rng(11)
    exact = rng.laplace(size=(2, 3000, 2))
    first, second = {
        "0.1": np.round(exact, 1),
        "0.01": np.round(exact, 2),
        "votes": np.round(7 * exact) / 7,
        "scaled": 1000 + math.pi * np.round(exact),
    }[unit]
    assert not audit_samples(first, second, 3, seed=1).refuted


@pytest.mark.slow
def test_honest_samples_with_many_ties_are_not_refused() -> None:
    rng = np.random.default_rng(10)
    for rare in (0.5, 0.1, 0.01, 0.003):
        for _ in range(8):
            first, second = rng.random((2, 500, 40)) < rare
            audit_samples(first, second, 1, seed=1)


RNG = np.random.default_rng(8)
GOOD = RNG.normal(size=2000)
WORDS = RNG.choice(["yes", "no"], 2000)
RECORDED = RNG.normal(size=300)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (RNG.choice(RECORDED, 5000), RNG.choice(RECORDED, 5000), "once, .* give its index"),
        (np.sort(GOOD), GOOD, "depend on the rows before"),
        (np.cumsum(GOOD), GOOD, "depend on the rows before"),
        (GOOD, GOOD, "2000 rows of first are .* give its index"),
        (GOOD.reshape(-1, 2), GOOD.reshape(-1, 2)[::-1], "1000 rows of first are rows of second"),
        (GOOD < 0, GOOD >= 0, "first and of second are correlated .* the same seed"),
        (GOOD < 2, GOOD < 2.1, "first and of second are correlated .* the same seed"),
        (GOOD, GOOD + 1, "first and of second are correlated .* the same seed"),
        (np.sort(GOOD) < 2, GOOD < 2, "depend on the rows before"),
        (GOOD[:10], GOOD, "at least 20 rows of first, not 10"),
        (GOOD, [], "at least 20 rows of second, not 0"),
        (3, GOOD, "first to be an array or a list of outputs, one for each run, not int"),
        (np.array(3.0), GOOD, "first to be an array or a list .* not float"),
        (GOOD, "q.npy", "second to be an array or a list .* not str"),
        (GOOD, dict.fromkeys(GOOD), "second to be an array or a list .* not dict"),
        (GOOD, (x for x in GOOD), "second to be an array or a list .* not generator"),
        (WORDS, GOOD, "those of first are texts, those of second are numbers"),
        (GOOD.tolist(), WORDS.tolist(), "those of first are numbers, those of second are texts"),
        ([str(x) for x in GOOD], GOOD, "those of first are texts, those of second are numbers"),
        (WORDS.astype(object), GOOD.astype(object), "are texts, those of second are numbers"),
        (GOOD < 0, GOOD, "are truth values, those of second are numbers"),
        (GOOD + 1j, GOOD, "are complex numbers, those of second are numbers"),
        (GOOD.reshape(-1, 2), GOOD.reshape(-1, 4), "lists of 2 numbers, .* lists of 4 numbers"),
        (GOOD.reshape(-1, 2), GOOD, "first are lists of 2 numbers, those of second are numbers"),
        (
            GOOD[:1800].reshape(-1, 2, 3),
            GOOD[:1800].reshape(-1, 3, 2),
            "lists of 2 lists of 3 numbers, .* lists of 3 lists of 2 numbers",
        ),
        ([object()] * 50, [object()] * 50, "numbers, texts or lists of them, not <object"),
        ([1.0] * 50, [1.0] * 60, "All rows of both sides are 1: .* Give more runs"),
        (np.full((50, 2), math.nan), np.full((50, 2), math.nan), "All rows .* are the same"),
    ],
)
def test_bad_rows_are_one_clear_line(first: object, second: object, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        audit_samples(first, second, 1)


@pytest.mark.parametrize(
    ("included", "excluded", "words"),
    [
        ([1.0] * 50, [1.0] * 50, "All scores are 1"),
        (GOOD + 1j, GOOD, "included to be numbers"),
        (GOOD, [], "at least 20 rows of excluded, not 0"),
        ([math.nan] * 50, [1.0] * 50, "50 of 50 scores of included are NaN"),
        (["x"] * 50, [1.0] * 50, "included to be numbers"),
        ([[1.0, 2.0]] * 50, [1.0] * 50, "a list of numbers"),
        (GOOD[:25], GOOD[25:50], r"only with \d+ runs or more on each side"),
    ],
)
def test_bad_scores_are_one_clear_line(included: object, excluded: object, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        audit_scores(included, excluded, (5, "1e-5"))


def test_one_output_has_one_form() -> None:
    """Arrays of objects hold what they hold, and a truth value of numpy is one of Python."""
    rng = np.random.default_rng(5)
    rows = [rng.normal(size=500) for _ in range(2)]
    plain = audit_samples(rows[0], rows[1], 1, seed=1)
    objects = audit_samples(rows[0].astype(object), rows[1], 1, seed=1)
    assert (objects.p_value, objects.rule.digest()) == (plain.p_value, plain.rule.digest())
    coins = rng.random((2, 500)) < 0.5
    mixed = audit_samples(coins[0].tolist(), list(coins[1]), 1, seed=1, significance=FALSE_ALARM)
    assert not mixed.refuted


def test_the_number_of_rows_that_is_asked_for_is_enough() -> None:
    scores = RNG.normal(size=(2, 1000))
    with pytest.raises(InvalidInputError, match=r"only with \d+ runs or more on each side") as said:
        audit_scores(scores[0, :24], scores[1, :24], 4)
    needed = int(re.findall(r"with (\d+) runs", str(said.value))[-1])
    with pytest.raises(InvalidInputError, match="only with"):
        audit_scores(scores[0, : needed - 1], scores[1, : needed - 1], 4)
    audit_scores(scores[0, :needed], scores[1, :needed], 4, seed=1)


def test_clipped_outputs_repeat_without_being_copies() -> None:
    rng = np.random.default_rng(3)
    first, second = (np.clip(rng.normal(size=3000), -1 / 3, 1 / 3) for _ in range(2))
    assert not audit_samples(first, second, 1, seed=1, significance=FALSE_ALARM).refuted


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    code = main([str(word) for word in words])
    return code, "".join(capsys.readouterr())


def test_the_command_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    p, q = geometric(1.0, 1, 9000, rng), geometric(1.0, 0, 9000, rng)
    np.save(tmp_path / "p.npy", p)
    np.savetxt(tmp_path / "q.csv", q, fmt="%d")
    files = tmp_path / "p.npy", tmp_path / "q.csv"
    evidence = tmp_path / "evidence.json"
    code, text = run(
        capsys, "audit-samples", *files, "--claim", "0.5", "--seed", 1, "--certificate", evidence
    )
    assert code == 1
    assert text.startswith("REFUTED  (0.5, 0)-DP of p.npy and q.csv")
    assert run(capsys, "check", evidence)[0] == 3  # CONDITIONAL: that the rows are runs
    assert run(capsys, "audit-samples", *files, "--claim", "1", "--seed", 1, "--quiet") == (0, "")
    code, text = run(capsys, "audit-scores", *files, "--seed", 1, "--json")
    assert code == 0  # nothing was claimed
    assert 0.5 < json.loads(text)["epsilon_lower_bound"] < 1
    text = run(capsys, "audit-scores", *files, "--seed", 1)[1]
    assert "REFUTED" not in text
    assert "epsilon(1e-5) ≥ 0." in text
    bracketed = run(capsys, "audit-scores", *files, "--seed", 1, "--claim", "(0.5, 1e-5)-DP")
    assert bracketed[0] == 1
    assert bracketed[1].startswith("REFUTED  (0.5, 1e-5)-DP")
    coins = rng.random(900) < 0.5
    np.save(tmp_path / "scores.npy", np.where(coins, 2.0, 0.0))
    np.savez(tmp_path / "coins.npz", coins)
    canaries = tmp_path / "scores.npy", tmp_path / "coins.npz"
    assert run(capsys, "audit-one-run", *canaries, "--claim", "2", "--guesses", "500")[0] == 1
    evidence = tmp_path / "one-run.json"
    run(capsys, "audit-one-run", *canaries, "--claim", "2", "--certificate", evidence)
    code, said = run(capsys, "check", evidence)
    assert code == 3
    assert "guesses right" in said
    assert run(capsys, "audit-one-run", "--plan", 1, 2) == (0, "60\n")


def test_the_picture_of_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert callable(dpassay.plot)  # whoever asks for pictures has imported what draws
    rng = np.random.default_rng(1)
    found = audit_scores(rng.normal(1, 1, 1500), rng.normal(0, 1, 1500), {"mu": "0.5"}, seed=1)
    table = picture.compute(found)
    alphas = np.linspace(0, 1, 11)
    seen, certified, claimed = (
        np.interp(alphas, *line) for line in (table.estimated, table.certified, table.claimed)
    )
    truth = stats.norm.cdf(stats.norm.isf(alphas) - 1)
    assert (certified >= truth - 1e-12).all()
    assert (certified[1:-1] >= seen[1:-1]).all()
    # the claim is a polygon below 0.5-GDP, never above it
    allowed = stats.norm.cdf(stats.norm.isf(alphas) - 0.5)
    assert (claimed <= allowed + 1e-3).all()
    assert (claimed >= allowed - 0.02).all()
    np.save(tmp_path / "in.npy", rng.normal(1, 1, 500))
    np.save(tmp_path / "out.npy", rng.normal(0, 1, 500))
    files = tmp_path / "in.npy", tmp_path / "out.npy"
    code, text = run(capsys, "audit-scores", *files, "--plot", tmp_path / "roc.png")
    assert (code, "wrote " in text) == (0, True)
    assert (tmp_path / "roc.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["audit-samples", "a.npy", "a.npy", "--claim", "1"], "a.npy"),
        (["audit-samples", "a.xls", "a.csv", "--claim", "1"], ".npy, .npz, .csv or .txt"),
        (["audit-samples", "text.csv", "text.csv", "--claim", "1"], "expected numbers, one run a"),
        (
            ["audit-samples", "pickle.npy", "pickle.npy", "--claim", "1"],
            "expected an array of numbers",
        ),
        (
            ["audit-samples", "words.npy", "n.csv", "--claim", "1"],
            "those of words.npy are texts, those of n.csv are numbers",
        ),
        (["audit-samples", "wide.npy", "n.csv", "--claim", "1"], "wide.npy are lists of 2 numbers"),
        (["audit-samples", "empty.csv", "n.csv", "--claim", "1"], "rows of empty.csv, not 0"),
        (["audit-samples", "ragged.csv", "n.csv", "--claim", "1"], "ragged.csv: expected numbers"),
        (["audit-scores", "nan.npy", "n.csv"], "50 of 50 scores of included are NaN"),
        (["audit-scores", "one.npy", "one.npy"], "All scores are 1"),
        (["audit-scores", "n.csv", "n.csv", "--plot", "roc.gif"], "roc.gif to end in .png, .pdf"),
        (["audit-one-run", "one.npy", "one.npy"], "All 50 scores are 1"),
        (["audit-one-run", "few.npy", "few.npy"], "2 canaries are too few"),
        (["audit-one-run"], "--plan EPSILON TRUTH"),
        (["audit-one-run", "n.csv", "n.csv", "--guesses", "x"], "whole numbers"),
        (["audit-scores", "n.csv", "n.csv", "--confidence", "95"], "confidence=95"),
    ],
)
def test_bad_files_are_one_clear_line(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.csv").write_text("one\ntwo\n")
    Path("n.csv").write_text("".join(f"{i % 7}\n" for i in range(100)))
    Path("empty.csv").write_text("")
    Path("ragged.csv").write_text("1\n1,2\n" * 50)
    np.save("words.npy", np.array(["yes", "no"] * 50))
    np.save("wide.npy", np.ones((50, 2)))
    np.save("nan.npy", np.full(50, math.nan))
    np.save("one.npy", np.ones(50))
    np.save("few.npy", np.arange(2))
    np.save("pickle.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    code, text = run(capsys, *words)
    assert code == 2
    assert message in text
    assert len(text.strip().splitlines()) == 1


def test_negative_zero_is_an_output_of_its_own() -> None:
    signs = np.random.default_rng(1).random(400) < 0.5
    found = audit_samples(np.where(signs, 0.0, -0.0), np.zeros(300), 1, seed=1)
    assert found.refuted
    assert "-0.0" in found.rule.event()["description"]


def test_delta_is_asked_for_at_epsilons_from_0_on() -> None:
    rng = np.random.default_rng(1)
    found = audit_samples(rng.normal(2, 1, 200), rng.normal(size=200), seed=1)
    assert found.delta("1/2") >= found.delta(1) > found.delta(10**6) == 0
    for epsilon in (-1, math.nan):
        with pytest.raises(InvalidInputError, match="Expected epsilon="):
            found.delta(epsilon)


def test_masked_entries_are_refused() -> None:
    rng = np.random.default_rng(1)
    rows = np.ma.masked_less(rng.normal(size=100), 0.0)
    with pytest.raises(InvalidInputError, match="without masked entries"):
        audit_samples(rows, rng.normal(size=100), 1)
