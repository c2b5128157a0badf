"""Counters on a lattice: the rounded real outputs, whatever the bits of the inputs were."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from scipy import stats

from accountant.errors import InvalidInputError, NotApplicableError
from accountant.mechanisms import BinaryTree, BridgedTree, HonakerTree, SquareRootFactorization
from accountant.mechanisms.linear_counter import LinearCounter
from accountant.streams import StreamCounter, counter_of, exact_noise
from accountant.streams.exact_noise import PRECISION, ExactSource, Rounding, packed, unpacked
from accountant.streams.noise import NoiseSource
from accountant.streams.processes import process
from tests.accountant.streams.test_stream_counter import MECHANISMS
from verify.audit import audit, bits, one_lattice

LARGER = [m for m in MECHANISMS if m.steps > 1]


class Kept(ExactSource):  # type: ignore[misc]  # final for readers, not for a test that listens
    """Balls that are remembered."""

    def __init__(self, mechanism: LinearCounter, rng: np.random.Generator) -> None:
        super().__init__(mechanism, rng)
        self.drawn: list[arb] = []

    def one(self) -> arb:
        self.drawn.append(super().one())
        return self.drawn[-1]

    def many(self, count: int) -> list[arb]:
        found = super().many(count)
        self.drawn += found if count != 1024 else []
        return found


class Again(NoiseSource):
    """The same variables as doubles."""

    def __init__(self, mechanism: LinearCounter, values: list[float]) -> None:
        super().__init__(mechanism, np.random.default_rng(0))
        self._values = values

    def one(self) -> float:
        return self._values.pop(0)

    def draw(self, count: int) -> Any:
        return np.array([self.one() for _ in range(count)])


@pytest.mark.parametrize("mechanism", LARGER, ids=repr)
def test_balls_follow_the_doubles(mechanism: LinearCounter) -> None:
    """The doubles' L z, which other tests compare with L; n steps lose at most some n²·2^−53."""
    with ctx.workprec(PRECISION):
        kept = Kept(mechanism, np.random.default_rng(1))
        exact = process(mechanism, kept)
        balls = [exact.one() for _ in range(mechanism.steps)]
        radius = max(float(ball.rad()) for ball in balls)
    values = [float(ball.mid()) for ball in kept.drawn]
    floats = process(mechanism, Again(mechanism, values))
    found = np.array([float(floats.one()) for _ in range(mechanism.steps)])
    largest = max(map(abs, (float(ball.mid()) for ball in kept.drawn)))
    error = 4 * mechanism.steps**2 * largest * 2.0**-53
    assert np.abs(found - [float(ball.mid()) for ball in balls]).max() <= error
    assert radius < 2.0**-380 * float(mechanism.scale)


@pytest.mark.parametrize("mechanism", LARGER, ids=repr)
def test_outputs_are_rounded_sums(mechanism: LinearCounter) -> None:
    """Equal noise and other inputs: the outputs differ by exact sums of rounded inputs."""
    inputs = np.random.default_rng(3).random(mechanism.steps)
    first, second = (
        counter_of(mechanism, rng=np.random.default_rng(2), lattice=True).extend(stream)
        for stream in (inputs, np.zeros(mechanism.steps))
    )
    grid = Rounding(mechanism).step
    assert all(Fraction(y) % grid == 0 for y in [*first.tolist(), *second.tolist()])
    rounded = np.cumsum([round(Fraction(x) / grid) * grid for x in inputs.tolist()])
    assert [
        Fraction(y) - Fraction(z) for y, z in zip(first.tolist(), second.tolist(), strict=True)
    ] == (rounded.tolist())
    kept = process(mechanism, ExactSource(mechanism, np.random.default_rng(2)))
    with ctx.workprec(PRECISION):
        for y in second.tolist():
            assert abs(kept.one() - arb(y)) <= arb(float(grid)) / 2


@pytest.mark.parametrize("kind", [{"epsilon": 1}, {"mu": 1}])
def test_the_law_of_a_variable(kind: dict[str, int]) -> None:
    """Within the margin of Dvoretzky, Kiefer and Wolfowitz at 1e-6."""
    mechanism = BinaryTree(1, **kind)
    source = ExactSource(mechanism, np.random.default_rng(4))
    values = [float(ball.mid()) for ball in source.many(20_000)]
    law = stats.norm if "mu" in kind else stats.laplace
    margin = math.sqrt(math.log(2e6) / (2 * len(values)))
    assert stats.kstest(values, law(0, float(mechanism.scale)).cdf).statistic < margin


def test_balls_hold_their_digits() -> None:
    """416 digits and more of every variate, and as many of the scale √2·…/μ."""
    mechanism = HonakerTree(6, mu=1)
    scale = float(mechanism.scale)
    for ball in ExactSource(mechanism, np.random.default_rng(5)).many(50):
        assert 0 < float(ball.rad()) < scale * 2.0**-415


def test_no_channel_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bit auditor finds nothing, and every output is on one lattice; doubles are found."""
    monkeypatch.setattr(exact_noise, "_BUFFERED", 8)
    mechanism = HonakerTree(7, mu=1)

    def release(dataset: list[float], rng: np.random.Generator, *, lattice: bool) -> Any:
        return counter_of(mechanism, rng=rng, lattice=lattice).extend(dataset)

    pair = ([0.1] * 7, [1.0, *[0.1] * 6])
    refuted = {}
    for lattice in (True, False):
        found = audit(
            lambda dataset, rng, lattice=lattice: release(dataset, rng, lattice=lattice),
            mechanism,
            pairs=[pair],
            samples=1500,
            significance=1e-6,
            seed=6,
            proposers=(bits.propose,),
        )
        refuted[lattice] = found.refuted
    assert refuted == {True: False, False: True}
    finding = one_lattice(
        lambda dataset, rng: release(dataset, rng, lattice=True), list(pair), runs=100, seed=7
    )
    assert finding.certified
    assert finding.steps == (str(Rounding(mechanism).step),) * 7


def _middles(value: Any) -> Any:
    """Return a record without the radii, which a copy may round up."""
    if isinstance(value, dict):
        return {key: _middles(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_middles(entry) for entry in value]
    return value.split(":")[:2] if isinstance(value, str) and value.count(":") == 3 else value


@pytest.mark.parametrize("mechanism", LARGER, ids=repr)
def test_snapshots_go_on_with_the_same_balls(mechanism: LinearCounter) -> None:
    whole = counter_of(mechanism, rng=np.random.default_rng(8), lattice=True)
    part = StreamCounter(mechanism, rng=np.random.default_rng(8), lattice=True)
    half = mechanism.steps // 2
    inputs = np.random.default_rng(9).random(mechanism.steps)
    expected_ = whole.extend(inputs)
    assert (part.extend(inputs[:half]) == expected_[:half]).all()
    record = part.record()
    assert json.loads(json.dumps(record)) == record
    assert record["lattice"] is True
    again = StreamCounter.of_record(record, rng=np.random.default_rng(10))
    assert _middles(again.record()) == _middles(record)
    assert again.step == part.step
    rest = again.extend(inputs[half:])
    assert all(Fraction(y) % Rounding(mechanism).step == 0 for y in rest.tolist())
    with pytest.raises(InvalidInputError, match="sum"):
        StreamCounter.of_record({**record, "sum": -1}, rng=np.random.default_rng(10))
    with pytest.raises(InvalidInputError, match="to be a ball"):
        StreamCounter.of_record(
            {**record, "noise": {key: ["x"] for key in record["noise"]}},
            rng=np.random.default_rng(10),
        )


def test_what_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """(1 + e^100)·12·n·2^−320: far below any δ; e^ε where the mechanism's ε is larger."""
    rng = np.random.default_rng(11)
    long = StreamCounter(BridgedTree(10**9, [10**3] * 3, epsilon=1), rng=rng, lattice=True)
    with ctx.workprec(128):
        wanted = (1 + arb(100).exp()) * 12 * 10**9 * arb(2) ** -320
        assert abs(float(long.extra_delta.upper) / float(wanted) - 1) < 1e-9
    assert float(long.extra_delta.upper) < 1e-42
    large = StreamCounter(BinaryTree(4, epsilon=150), rng=rng, lattice=True)
    assert float(large.extra_delta.upper) > float(long.extra_delta.upper)
    with pytest.raises(NotApplicableError, match="lattice=True"):
        StreamCounter(BinaryTree(4, epsilon=1), rng=rng).extra_delta  # noqa: B018
    monkeypatch.setattr(exact_noise, "_GROUPS", 5)
    with pytest.raises(NotApplicableError, match="not known to 2"):
        StreamCounter(BinaryTree(4, epsilon=1), rng=rng, lattice=True).update(1)


def test_large_noise_and_records() -> None:
    """More than 2^53 steps are rounded to a double; texts of balls are exact."""
    counter = StreamCounter(
        BinaryTree(3, epsilon="1e-9"), rng=np.random.default_rng(12), lattice=True
    )
    assert counter.step == 1 or counter.step is not None
    assert np.isfinite(counter.extend([1, 1, 1])).all()
    with pytest.raises(InvalidInputError, match="scale of the noise"):
        StreamCounter(BinaryTree(3, epsilon="1e-300"), rng=np.random.default_rng(1), lattice=True)
    ball = arb((3, -2), (5, -400))
    text = packed({"a": [ball, 1.5], "b": 2})
    assert text["a"][0].startswith("3:-2:")
    assert (text["a"][1], text["b"]) == (1.5, 2)
    back = unpacked(text)["a"][0]
    assert back.mid() == arb(0.75)
    assert ball.rad() <= back.rad() <= ball.rad() * (1 + arb(2) ** -20)


def test_the_square_root_is_a_product_of_polynomials() -> None:
    mechanism = SquareRootFactorization(40, mu=1)
    counter = StreamCounter(mechanism, rng=np.random.default_rng(13), lattice=True)
    assert len(counter.record()["noise"]["ahead"]) == 40  # also before the first output
    source = Kept(mechanism, np.random.default_rng(14))
    with ctx.workprec(PRECISION):
        noise = process(mechanism, source)
        found = [noise.one() for _ in range(40)]
        left = mechanism.factorisation()[0]
        for row, value in zip(left, found, strict=True):
            terms = (source.number(c) * z for c, z in zip(row, source.drawn, strict=True))
            assert abs(value - sum(terms, start=arb(0))) <= arb(2) ** -380
