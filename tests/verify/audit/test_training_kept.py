"""Training runs that are interrupted: what is drawn is kept, and nothing else is taken for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from accountant.errors import InvalidInputError
from tests.quick import quick
from verify.audit import AuditResult, MechanismError, audit, features

SAMPLES = 200_000
PAIRS = [(0.0, 1.0), (0.0, 2.0)]


class Noisy:
    """Laplace noise that counts its runs, and fails at one of its calls."""

    def __init__(self, fails_at: float = np.inf, error: type[BaseException] = ValueError) -> None:
        self.fails_at, self.error = fails_at, error
        self.calls = self.runs = 0

    def sample(self, dataset: float, size: int, rng: Generator) -> Any:
        self.calls += 1
        if self.calls == self.fails_at:
            raise self.error("no more")
        self.runs += size
        return dataset + rng.laplace(0, 1, size)


def run(mechanism: Any, path: Path | None, seed: int | None = 3) -> AuditResult:
    return audit(
        mechanism, 1, pairs=PAIRS, samples=SAMPLES, seed=seed, checkpoint=path,
        proposers=(features.plain,),
    )  # fmt: skip


def same(first: AuditResult, second: AuditResult) -> bool:
    return {**first.to_json(), "seconds": 0} == {**second.to_json(), "seconds": 0}


@pytest.mark.parametrize("fails_at", quick([21, 100, 200], 0))
def test_training_that_is_killed_goes_on_where_it_was(fails_at: int, tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    whole = Noisy()
    expected = run(whole, None)
    killed, resumed = Noisy(fails_at, KeyboardInterrupt), Noisy()
    with pytest.raises(KeyboardInterrupt):
        run(killed, path)
    assert same(run(resumed, path), expected)
    # Done again, to learn the form of an output and whether runs follow the rng.
    probing = 16 * len(PAIRS) * 2 + 3 * 64 * len(PAIRS)
    assert killed.runs + resumed.runs <= whole.runs + probing


@pytest.mark.slow
@pytest.mark.parametrize("leaking", quick([0, 5], 0))
def test_the_pair_that_promises_most_gets_most_training(leaking: int, tmp_path: Path) -> None:
    """Of eight pairs, half of the runs for all, half of the rest for two, what is left for one."""

    def mechanism(dataset: float, size: int, rng: Generator) -> Any:
        return (2.0 if dataset == leaking else 0.0) + rng.laplace(0, 1, size)

    path = tmp_path / "kept.json"
    pairs = [(float(i), -1.0) for i in range(8)]
    found = audit(
        mechanism, 1, pairs=pairs, samples=SAMPLES, seed=3, checkpoint=path,
        proposers=(features.plain,),
    )  # fmt: skip
    assert found.pair == pairs[leaking]
    runs = [0] * 8
    for kept in tmp_path.glob("kept.json.training-*"):
        index = int(kept.name.split("-")[1].split(".")[0])
        with np.load(kept) as data:
            assert len(data["first"]) == len(data["second"])
            runs[index] += len(data["first"])
    parts = sorted(count / found.training for count in runs)
    assert np.allclose(parts, [1 / 16] * 6 + [3 / 16, 7 / 16], rtol=0.01, atol=0)
    assert runs[leaking] == max(runs)


def test_a_seed_that_nobody_named_is_kept_from_the_first_training_run(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    with pytest.raises(KeyboardInterrupt):
        run(Noisy(30, KeyboardInterrupt), path, seed=None)
    resumed = Noisy()
    found = run(resumed, path, seed=None)
    whole = Noisy()
    assert same(found, run(whole, None, seed=found.seed))
    assert resumed.calls < whole.calls - 15


def test_a_file_that_was_cut_short_is_drawn_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    expected = run(Noisy(), path)
    path.unlink()
    for kept in tmp_path.glob("kept.json.training-*"):
        kept.write_bytes(kept.read_bytes()[:200])
    assert same(run(Noisy(), path), expected)


def test_a_mechanism_that_fails_in_training_says_what_is_kept(tmp_path: Path) -> None:
    def audited(path: Path | None) -> AuditResult:
        return audit(Noisy(30), 1, pairs=PAIRS[:1], samples=SAMPLES, seed=3, checkpoint=path)

    path = tmp_path / "kept.json"
    with pytest.raises(MechanismError, match=rf"\d+ training runs .* are beside {path}; the same"):
        audited(path)
    with pytest.raises(MechanismError, match=r"\d+ training runs .* were discarded \(name a check"):
        audited(None)


def test_counts_of_one_event_are_not_continued_with_another(tmp_path: Path) -> None:
    """A mechanism with a generator of its own trains to other events each time."""

    class Careless(Noisy):
        def sample(self, dataset: float, size: int, rng: Generator) -> Any:
            return super().sample(dataset, size, np.random.default_rng())

    path = tmp_path / "kept.json"
    with pytest.raises(KeyboardInterrupt):
        run(Careless(290, KeyboardInterrupt), path)
    for kept in tmp_path.glob("kept.json.training-*"):
        kept.unlink()
    with pytest.raises(InvalidInputError, match="another event"):
        run(Careless(), path)
