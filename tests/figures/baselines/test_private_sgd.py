"""DP-SGD and R1SMG-SGD: clipped gradients, noise, steps, and accounting."""

from __future__ import annotations

import numpy as np
import pytest

from dpassay.figures.baselines import private_sgd
from dpassay.figures.data import Images
from dpassay.figures.less_is_more import learning


def rng() -> np.random.Generator:
    return np.random.default_rng(10)


def some(count: int, pixels: int = 4) -> tuple[np.ndarray, np.ndarray]:
    generator = rng()
    images = generator.integers(0, 256, (count, pixels)).astype(np.uint8)
    return images, generator.integers(0, 3, count)


def loss(parameters: np.ndarray, image: np.ndarray, label: int) -> float:
    scores = np.append(image / 255, 1) @ parameters.reshape(-1, 3)
    return float(np.log(np.exp(scores).sum()) - scores[label])


def test_a_gradient_is_that_of_the_loss() -> None:
    model = private_sgd.Softmax(4, 3)
    parameters = rng().normal(size=15)
    images, labels = some(1)
    found = model.clipped_sum(parameters, images, labels, None)
    step = 1e-6
    for place in range(15):
        move = np.eye(15)[place] * step
        after, before = (loss(parameters + s * move, images[0], labels[0]) for s in (1, -1))
        assert found[place] == pytest.approx((after - before) / (2 * step), abs=1e-8)


@pytest.mark.parametrize("clip", [0.1, 1.0, 100.0])
def test_the_clipped_sum_is_that_of_single_clipped_gradients(clip: float) -> None:
    model = private_sgd.Softmax(4, 3)
    parameters = rng().normal(size=15)
    images, labels = some(20)
    singles = [
        model.clipped_sum(parameters, images[i : i + 1], labels[i : i + 1], None) for i in range(20)
    ]
    expected = sum(g * min(1, clip / float(np.linalg.norm(g))) for g in singles)
    found = model.clipped_sum(parameters, images, labels, clip)
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-14)


def separable() -> Images:
    labels = np.arange(400) % 3
    images = np.zeros((400, 3), np.uint8)
    images[np.arange(400), labels] = 200
    return Images(images, labels, images[:90], labels[:90], "toy")


def test_training_learns_without_noise_and_does_not_under_much() -> None:
    found = {
        name: private_sgd.train(
            private_sgd.Softmax(3, 3), separable(), noise=noise, sampling_prob=0.1, epochs=3,
            rate=1.0, clip=clip, rng=rng(),
        )
        for name, noise, clip in (
            ("none", private_sgd.no_noise, None),
            ("clipped", private_sgd.no_noise, 1.0),
            ("gaussian", private_sgd.gaussian(0.5), 1.0),
            ("rank one", private_sgd.rank_one(1e12), 1.0),
        )
    }  # fmt: skip
    for name in ("none", "clipped", "gaussian"):
        assert [epoch.number for epoch in found[name]] == [1, 2, 3]
        assert found[name][-1].test == 1
    assert found["rank one"][-1].test < 0.9


def test_the_exact_epsilon_lies_below_the_printed_one() -> None:
    """dp_accounting's privacy loss distribution (interval 1e-4), from above: 1.636146."""
    found = learning.exact_epsilon("1.1", 7031)
    assert 1.6360 < found <= 1.636146
