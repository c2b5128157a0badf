"""Counters on a lattice: the rounded real outputs, whatever the bits of the inputs were."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from scipy import stats

from dpassay.accountant.counting import square_root
from dpassay.accountant.counting.counters import LinearCounter
from dpassay.accountant.counting.noise import Rounding
from dpassay.accountant.counting.square_root import rounded_product
from dpassay.accountant.counting.streams import StreamCounter, continued, counter_of
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import BinaryTree, SquareRootFactorization
from dpassay.accountant.release.sampling import WORD, LazyReals, normal
from tests.accountant.counting.streams.test_stream_counter import MECHANISMS

LARGER = [m for m in MECHANISMS if m.steps > 1]


@pytest.mark.parametrize("mechanism", LARGER, ids=repr)
def test_outputs_are_rounded_sums(mechanism: LinearCounter) -> None:
    """Equal noise and other inputs: the outputs differ by exact sums of rounded inputs."""
    inputs = np.random.default_rng(3).random(mechanism.steps)
    first, second = (
        counter_of(mechanism, rng=np.random.default_rng(2)).extend(stream)
        for stream in (inputs, np.zeros(mechanism.steps))
    )
    grid = Rounding(mechanism).step
    assert all(Fraction(y) % grid == 0 for y in [*first.tolist(), *second.tolist()])
    rounded = np.cumsum([round(Fraction(x) / grid) * grid for x in inputs.tolist()])
    assert [
        Fraction(y) - Fraction(z) for y, z in zip(first.tolist(), second.tolist(), strict=True)
    ] == (rounded.tolist())


@pytest.mark.parametrize("kind", [{"epsilon": 1}, {"mu": 1}])
def test_the_law_of_a_variable(kind: dict[str, int]) -> None:
    """Within the margin of Dvoretzky, Kiefer and Wolfowitz at 1e-6, and 2^−33 for the rounding."""
    mechanism = BinaryTree(1, **kind)
    rounding = Rounding(mechanism)
    source = rounding.source(np.random.default_rng(4))
    drawn = [source.one() for _ in range(20_000)]
    values = [float(Fraction(int(z.p), int(z.q)) * rounding.step) for z in drawn]
    law = stats.norm if "mu" in kind else stats.laplace
    margin = math.sqrt(math.log(2e6) / (2 * len(values))) + 2.0**-32
    assert stats.kstest(values, law(0, float(mechanism.scale)).cdf).statistic < margin


@pytest.mark.parametrize("mechanism", LARGER, ids=repr)
def test_snapshots_go_on_with_the_same_noise(mechanism: LinearCounter) -> None:
    whole = counter_of(mechanism, rng=np.random.default_rng(8))
    part = StreamCounter(mechanism, rng=np.random.default_rng(8))
    half = mechanism.steps // 2
    inputs = np.random.default_rng(9).random(mechanism.steps)
    expected_ = whole.extend(inputs)
    assert (part.extend(inputs[:half]) == expected_[:half]).all()
    record = part.record()
    again = continued(record, rng=np.random.default_rng(10))
    assert again.record() == record
    assert again.step == part.step
    rest = again.extend(inputs[half:])
    if isinstance(mechanism, SquareRootFactorization):
        assert (rest == expected_[half:]).all()  # all noise was drawn before
    assert all(Fraction(y) % Rounding(mechanism).step == 0 for y in rest.tolist())
    with pytest.raises(InvalidInputError, match="sum"):
        continued({**record, "sum": -1}, rng=np.random.default_rng(10))
    with pytest.raises(InvalidInputError, match="to be a rational"):
        continued(
            {**record, "noise": {key: ["1/0"] for key in record["noise"]}},
            rng=np.random.default_rng(10),
        )


# ---------------------------------------------------------------- the square root


def directly(mechanism: LinearCounter, exponent: int, seed: int, groups: int) -> Any:
    """Return L z over the step as balls, with z drawn as the program draws it."""
    n, rng = mechanism.steps, np.random.default_rng(seed)
    drawn: LazyReals = normal(n, rng=rng)
    assert all(drawn.digits(index)[1] == WORD for index in range(n))
    numbers = [drawn.digits(index)[0] for index in range(n)]
    for _ in range(groups):
        further = rng.integers(0, 1 << WORD, n).tolist()
        numbers = [number << WORD | group for number, group in zip(numbers, further, strict=True)]
    half = arb(2) ** -(WORD * (groups + 1) + 1)
    z = [
        int(sign) * (arb(2 * number + 1) * half + arb(0, half))
        for sign, number in zip(drawn.sign, numbers, strict=True)
    ]
    scale = mechanism.scale.ball() / arb(2) ** exponent
    rows = mechanism.factorisation()[0]
    weights = [[arb(fmpq(c.numerator, c.denominator)) for c in row] for row in rows]
    return [
        scale * sum((c * x for c, x in zip(row, z, strict=True)), start=arb(0)) for row in weights
    ]


@pytest.mark.parametrize("kind", [{"mu": "1/3"}, {"mu": 1, "contributions": 2}])
@pytest.mark.parametrize(("exponent", "groups"), [(-30, 1), (-98, 2)])
def test_the_square_root_is_rounded_exactly(
    kind: dict[str, Any], exponent: int, groups: int
) -> None:
    """As ball arithmetic says; a finer lattice needs more digits than are drawn at first."""
    mechanism = SquareRootFactorization(40, **kind)
    found = rounded_product(mechanism, exponent, rng=np.random.default_rng(5))
    with ctx.workprec(400):
        for whole, ball in zip(found, directly(mechanism, exponent, 5, groups), strict=True):
            assert ball.rad() < arb(2) ** -2
            assert abs(ball - int(whole.p)) <= arb(0.5) + ball.rad()


def test_the_noise_of_the_square_root_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = StreamCounter(SquareRootFactorization(40, mu=1))
    assert len(counter.record()["noise"]["ahead"]) == 40  # also before the first output
    monkeypatch.setattr(square_root, "MOST_STREAMED", 39)
    with pytest.raises(InvalidInputError, match="at most 39 to stream the square root"):
        StreamCounter(SquareRootFactorization(40, mu=1))
