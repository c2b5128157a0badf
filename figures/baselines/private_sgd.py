"""Stochastic gradient descent with noisy sums of clipped gradients: DP-SGD and R1SMG-SGD.

Each step samples every record with probability q, clips the gradient of each record to ℓ2 norm C,
adds noise to the sum, divides by the expected batch size qn, and takes a gradient step (Abadi et
al. 2016). The noise of DP-SGD is N(0, σ²C² I); that of R1SMG-SGD is C√σ_*·z·v with z ~ N(0, 1) and
v uniform on the sphere (Ji and Li, Section 7.3). Adding or removing a record changes the sum by at
most C in ℓ2 norm.

Claimed guarantees. DP-SGD: the (ε, δ) of the moments accountant for E/q steps; the exact value is
that of Composed(PoissonSubsampled(Gaussian)). R1SMG-SGD: each step is (ε₀, δ₀)-DP by Theorem 5,
hence (qε₀, qδ₀)-DP with sampling, and all steps are (ε, δ)-DP by equation (16). The first two of
these statements are false.

For softmax regression, the gradient of a record with input x (with 1 appended) and residual
r = p − y is the outer product x r' of norm ‖x‖‖r‖, so clipping needs no per-record gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from dpassay.figures.data import Images

Noise = Callable[[int, np.random.Generator], NDArray[np.float64]]
"""Draws noise for a given number of parameters, at C = 1."""

_JUDGED = 5000
"""Number of images on which a model is evaluated after each epoch."""
_TINY = 1e-300
"""Lower bound on norms, which avoids division by 0."""


class Epoch(NamedTuple):
    """Accuracies after some epochs."""

    number: int
    train: float
    test: float


def no_noise(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return zeros."""
    del rng
    return np.zeros(size)


def gaussian(deviation: float) -> Noise:
    """Return the noise of DP-SGD with noise multiplier σ."""
    return lambda size, rng: deviation * rng.standard_normal(size)


def rank_one(sigma_star: float) -> Noise:
    """Return the noise of R1SMG-SGD."""

    def draw(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        direction = rng.standard_normal(size)
        length = math.sqrt(sigma_star) * rng.standard_normal()
        return np.asarray(direction * (length / np.linalg.norm(direction)))

    return draw


@final
@dataclass(frozen=True, slots=True)
class Softmax:
    """Softmax regression on centred pixels and a constant, starting from 0."""

    pixels: int
    classes: int = 10
    centre: float = 0.0

    def start(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the parameters before training, zeros."""
        del rng
        return np.zeros((self.pixels + 1) * self.classes)

    def clipped_sum(
        self,
        parameters: NDArray[np.float64],
        images: NDArray[np.uint8],
        labels: NDArray[np.int64],
        clip: float | None,
    ) -> NDArray[np.float64]:
        """Return the sum of the records' gradients, Σ x r' min(1, C/(‖x‖‖r‖))."""
        inputs = self._inputs(images)
        residuals = softmax(inputs @ parameters.reshape(-1, self.classes))
        residuals[np.arange(len(labels)), labels] -= 1
        if clip is not None:
            norms = np.linalg.norm(inputs, axis=1) * np.linalg.norm(residuals, axis=1)
            residuals *= np.minimum(1, clip / np.maximum(norms, _TINY))[:, np.newaxis]
        return np.asarray((inputs.T @ residuals).ravel())

    def predict(
        self, parameters: NDArray[np.float64], images: NDArray[np.uint8]
    ) -> NDArray[np.int64]:
        """Return the class of the largest score for each image."""
        scores = self._inputs(images) @ parameters.reshape(-1, self.classes)
        return np.asarray(scores.argmax(axis=1))

    def _inputs(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        return np.hstack([images / 255.0 - self.centre, np.ones((len(images), 1))])


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the softmax of each row."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def train(
    model: Softmax,
    data: Images,
    *,
    noise: Noise,
    sampling_prob: float,
    epochs: int,
    rate: float,
    clip: float | None,
    rng: np.random.Generator,
) -> list[Epoch]:
    """Train a model and return the accuracies after each epoch.

    Epoch E ends after ⌊E/q⌋ steps. Accuracies are those on the first 5000 training and test images.
    """
    count = len(data.train)
    parameters = model.start(rng)
    held = [
        (x[:_JUDGED], y[:_JUDGED])
        for x, y in ((data.train, data.train_labels), (data.test, data.test_labels))
    ]
    found, steps = [], 0
    for number in range(1, epochs + 1):
        while steps < math.floor(number / sampling_prob):
            steps += 1
            chosen = np.flatnonzero(rng.random(count) < sampling_prob)
            total = model.clipped_sum(
                parameters, data.train[chosen], data.train_labels[chosen], clip
            )
            if clip is not None:
                total = total + clip * noise(total.size, rng)
            parameters = parameters - rate / (sampling_prob * count) * total
        shares = [float((model.predict(parameters, x) == y).mean()) for x, y in held]
        found.append(Epoch(number, *shares))
    return found
