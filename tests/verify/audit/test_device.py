"""Laws drawn through the array API: the same runs on every device, of the mechanism's own law."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpassay.accountant import notation
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import (
    DiscreteLaplace,
    IntegerNoise,
    Laplace,
    PoissonSubsampled,
    RankOneGaussian,
)
from dpassay.verifier.audit import audit
from dpassay.verifier.audit.runs.device import Device, alias, law
from dpassay.verifier.audit.runs.laws import neighbours
from dpassay.verifier.checker.audits import audit_problems
from dpassay.verifier.cli import main
from tests.quick import quick

HAS_TORCH = find_spec("torch") is not None and find_spec("array_api_compat") is not None
DEVICES = ["numpy", "array_api_strict"] + ["torch:cpu"] * HAS_TORCH
OWN_WORDS = [Device("torch", "cpu:0")] * HAS_TORCH
"""A processor under the name of a graphics card: the words are PyTorch's own."""
if HAS_TORCH and import_module("torch").cuda.is_available():
    OWN_WORDS.append(Device("torch", "cuda"))
MECHANISMS = [
    "Laplace(scale=2)",
    "Gaussian(standard_deviation=3)",
    "DiscreteLaplace(scale=1.5)",
    "DiscreteGaussian(parameter=4)",
    "Staircase(epsilon=1, gamma=0.3)",
    "RandomizedResponse(epsilon=1)",
    "RandomizedResponse(epsilon=1, categories=5)",
    "TruncatedGeometric(scale=1, low=0, high=6)",
    "PoissonSubsampled(mechanism=Gaussian(standard_deviation=1), sampling_prob=0.3)",
    "PoissonSubsampled(mechanism=DiscreteLaplace(scale=1), sampling_prob=0.3)",
    "EllipticalGaussian(sensitivities=[1, 2, 3], mu=1)",
    'Tabulated(p=["1/2", "1/3", "1/6"], q=["1/6", "1/3", "1/2"])',
    'IntegerNoise(probabilities=["1/8", "3/4", "1/8"], lowest=-1)',
    "BoundedCountNoise(epsilon=1, eta=0.4, support=3)",
    "RankOneGaussian(dimension=5, sigma_star=4)",
]
FALSE_ALARM = 1e-6
"""Of each of the two statistical tests of this file, over all of its cases together."""


def edges_of(own: Any) -> Any:
    """Some places in the bulk of a law and in its tails."""
    cuts = np.unique(own.cuts())
    tails = np.minimum(own.upper(cuts), own.lower(cuts))
    inner = cuts[tails > 1e-4]
    return inner[np.linspace(0, len(inner) - 1, 12).astype(int)]


@pytest.mark.parametrize("device", [*map(Device.read, DEVICES), *OWN_WORDS], ids=str)
@pytest.mark.parametrize("text", MECHANISMS)
def test_devices_draw_the_law(text: str, device: Device) -> None:
    """Every tail is a binomial count of the law's probability: an exact two-sided test."""
    mechanism, size = notation.parse(text), 30_000
    for side, answer in enumerate(neighbours(mechanism)[-1]):
        own = law(mechanism, answer)
        drawn = own.draw(device.words(5, (1, 0, 0, side)), size, device)
        edges = edges_of(own)
        level = FALSE_ALARM / (len(edges) * 2 * len(MECHANISMS) * (len(DEVICES) + 1))
        for edge in edges:
            chance = float(own.upper(np.array([edge]))[0])
            count = int(device.xp.count_nonzero(drawn >= float(edge)))
            assert stats.binomtest(count, size, min(chance, 1.0)).pvalue > level


@pytest.mark.parametrize("text", quick(MECHANISMS, *range(1, 15, 3)))
def test_every_device_counts_the_same_runs(text: str, record_property: Any) -> None:
    """The words are numpy's: elementary functions differ by units in the last place only."""
    record_property("devices", ", ".join(DEVICES))  # PyTorch where the environment has it
    mechanism = notation.parse(text)
    found = [audit(mechanism, "0.3", samples=40_000, seed=2, device=name) for name in DEVICES]
    for other in found[1:]:
        assert other.counts == found[0].counts


@pytest.mark.parametrize("text", quick(MECHANISMS, *range(0, 15, 3)))
def test_true_claims_stand_and_false_ones_fall(text: str) -> None:
    mechanism = notation.parse(text)
    alpha = 1e-6
    true = audit(
        mechanism,
        mechanism,
        adjacency="add-remove" if isinstance(mechanism, PoissonSubsampled) else None,
        samples=200_000,
        seed=3,
        device="numpy",
        significance=alpha,
    )
    assert not true.refuted
    false = audit(mechanism, "0.2", samples=200_000, seed=3, device="numpy", significance=alpha)
    assert false.refuted
    assert audit_problems(json.loads(json.dumps(false.certificate(), default=str)))[0] == []


def test_rare_events_come_from_the_exact_law() -> None:
    """δ = 1e-5 with 4·10⁶ runs: few training runs would have seen the event."""
    ends = Fraction(1, 10**5)
    mechanism = IntegerNoise([ends, 1 - 2 * ends, ends], lowest=-1)
    result = audit(mechanism, (1, "1e-6"), samples=4_000_000, seed=4, device="numpy")
    assert result.refuted


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e5])
@pytest.mark.parametrize("position", [0.0, 1e-9, 0.3, 5.0, 30.0])
def test_half_lines_of_real_laws_have_their_probability(scale: float, position: float) -> None:
    """The value falls with U, so that the words of a half-line can be counted by halving."""
    grid, noise = 1 << 53, law(Laplace(scale=scale), 0).noise

    def reaches(uniform: int, sign_bit: int, edge: float) -> bool:
        return bool(noise.draw(FixedWord(uniform, sign_bit), 1, Device("numpy"))[0] >= edge)

    for edge in (position * scale, -position * scale):
        reached = 0
        for sign_bit in (0, 1):
            first = reaches(0, sign_bit, edge)
            low, high = 0, grid  # `first` at low; not at high, or beyond the grid
            while high - low > 1:
                middle = (low + high) // 2
                same = reaches(middle, sign_bit, edge) == first
                low, high = (middle, high) if same else (low, middle)
            reached += high if first else grid - high
        exact = Fraction(float(noise.upper(np.array([edge]))[0]))
        assert abs(Fraction(reached, 2 * grid) - exact) < law(Laplace(scale), 0).resolution


@pytest.mark.parametrize("dimension", [3, 4, 50, 7921])
@pytest.mark.parametrize("deviations", [1e-6, 0.003, 0.4, 5.0])
def test_entries_of_rank_one_noise_have_their_law(dimension: int, deviations: float) -> None:
    """P(z v ≥ x) = ∫ f(v) P(z ≥ x/v) dv over v > 0, f ∝ (1 − v²)^{(M−3)/2}, by mpmath."""
    drawn = law(RankOneGaussian(dimension, 1), np.zeros(dimension)).noise
    spread = 1 / mpmath.sqrt(dimension)
    x = float(deviations * spread)
    places = [0, *(k * spread for k in (0.01, 0.1, 0.5, 1, 2, 4, 8) if k * spread < 1), 1]
    weight = mpmath.beta(mpmath.mpf(1) / 2, mpmath.mpf(dimension - 1) / 2)
    exact = mpmath.quad(
        lambda v: 2 * (1 - v * v) ** (mpmath.mpf(dimension - 3) / 2) * mpmath.ncdf(-x / v) / weight,
        places,
    )
    found = drawn.upper(np.array([x, -x]))
    np.testing.assert_allclose(found, [float(exact), float(1 - exact)], rtol=1e-10, atol=0)


class FixedWord:
    """A source of one word, again and again."""

    def __init__(self, uniform: int, sign_bit: int) -> None:
        value = (uniform << 11) | sign_bit
        self.word = np.array([value - (1 << 64) if value >= 1 << 63 else value])

    def __call__(self, count: int) -> Any:
        return np.repeat(self.word, count)


def test_tables_have_their_weights_exactly() -> None:
    for table in (
        alias.rational([Fraction(1, 3), Fraction(1, 7), Fraction(11, 21)]),
        alias.discrete_laplace(DiscreteLaplace("3/2").scale),
        alias.rational([Fraction(1)]),
    ):
        assert sum(table.weights) == 1 << 64
        shift, cut, other = table._columns
        found = [0] * len(cut)
        for column, (height, index) in enumerate(zip(cut, other, strict=True)):
            found[column] += int(height)
            found[index] += (1 << shift) - int(height)
        assert tuple(found[: table.size]) == table.weights
        assert not any(found[table.size :])


@pytest.mark.parametrize("device", [Device.read("numpy"), *OWN_WORDS], ids=str)
def test_words_follow_from_the_block(device: Device) -> None:
    """And are independent of the next block's: equal bits are a fair coin, to five deviations."""
    assert device.is_accelerator == (device in OWN_WORDS)

    def drawn(key: tuple[int, ...]) -> Any:
        words = device.words(3, key)(50_000)
        return np.asarray(words.cpu() if device.is_accelerator else words)

    first, again = (drawn((1, 0, 4, 0)) for _ in range(2))
    assert (first == again).all()
    for key in ((1, 0, 4, 1), (1, 0, 5, 0), (1, 1, 4, 0)):
        equal = int(np.unpackbits((first ^ drawn(key)).view(np.uint8)).sum())
        assert abs(equal - 50_000 * 32) < 5 * math.sqrt(50_000 * 16)


class NoGraphicsCard:
    """Stands for a PyTorch that sees no graphics card."""

    __version__ = "2.0"

    class cuda:  # noqa: N801
        @staticmethod
        def is_available() -> bool:
            return False

        @staticmethod
        def device_count() -> int:
            return 0


@pytest.mark.parametrize("name", ["cuda", "torch:cuda", "torch:cuda:3"])
def test_a_missing_graphics_card_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib
    import importlib.util

    from dpassay.verifier.audit.runs.device import arrays

    arrays._require_place.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda module: module)
    monkeypatch.setattr(importlib, "import_module", lambda module: NoGraphicsCard)
    with pytest.raises(InvalidInputError, match=rf"{name}.*sees 0 graphics cards.*torch:cpu"):
        Device.read(name)
    arrays._require_place.cache_clear()


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda module: None)
    with pytest.raises(
        InvalidInputError, match=r"'torch:cpu' needs .*pip install .*'\.\[device\]'"
    ):
        Device.read("torch:cpu")


@pytest.mark.parametrize("name", ["", "gpu", "numpy:0", "torch:tpu", "cuda:0"])
def test_unknown_devices_are_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="device="):
        Device.read(name)


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (lambda dataset, rng: dataset, {"pairs": [(0, 1)]}, "mechanisms of this package only"),
    (
        notation.parse("KaryTree(steps=8, arity=2, epsilon=1)"),
        {},
        "a device draws .*Laplace.*Geometric. Every",
    ),
    (DiscreteLaplace(10**6), {}, "524288 integers"),
    (DiscreteLaplace(1), {"pairs": [(0, 0.5)]}, "whole number"),
    (Laplace(1), {"pairs": [(0, [1, 2])]}, "one finite number"),
    (notation.parse("RandomizedResponse(epsilon=1)"), {"pairs": [(0, 2)]}, "category, 0 to 1"),
]


@pytest.mark.parametrize(("mechanism", "arguments", "message"), REFUSED)
def test_what_no_device_draws_is_refused(
    mechanism: Mechanism, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        audit(mechanism, 1, samples=1000, seed=1, device="numpy", **arguments)


def test_the_command_line_has_devices(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["audit", "DiscreteLaplace(scale=1)", "--claim", "0.9", "--samples", "1e5"]
    assert main([*arguments, "--device", "numpy", "--confidence", "0.999999"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert f"drawn by numpy {np.__version__}" in shown
    assert "the probabilities of the event are those of the mechanism" in shown
    assert main([*arguments, "--device", "gpu"]) == 2
    assert "device='gpu'" in capsys.readouterr().err
    assert main([*arguments, "--device", "numpy", "--until-refuted"]) == 1
    assert "drawn by numpy" in capsys.readouterr().out
