"""The convolutional network of the case study, with a gradient per example by torch.func.

Two convolutions with ReLU and max-pooling and two dense layers: the network of TensorFlow
Privacy's tutorial, which has 26010 parameters for MNIST. torch is an optional extra and has its
own types, so it is imported as a plain object.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

_LAYERS = ((16, 8, 2), (32, 4, 2))
"""Filters, width and stride of each convolution; each is followed by max-pooling of width 2."""
_HIDDEN, _CLASSES = 32, 10


@final
class Network:
    """The network for images of some colours and side, as a model of `private_sgd`."""

    def __init__(self, colours: int, side: int) -> None:
        self._torch: Any = import_module("torch")
        self._shape = (colours, side, side)
        nn = self._torch.nn
        layers: list[Any] = [nn.ZeroPad2d(3)]
        before = colours
        for filters, width, stride in _LAYERS:
            layers += [nn.Conv2d(before, filters, width, stride), nn.ReLU(), nn.MaxPool2d(2, 1)]
            before = filters
        convolutions = nn.Sequential(*layers)
        flat = convolutions(self._torch.zeros(1, *self._shape)).numel()
        dense = [nn.Flatten(), nn.Linear(flat, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, _CLASSES)]
        self._network = nn.Sequential(convolutions, *dense)
        self._names = [name for name, _ in self._network.named_parameters()]
        self._sizes = [p.shape for p in self._network.parameters()]

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return sum(size.numel() for size in self._sizes)

    def start(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return normal weights of variance 2/(number of inputs), and biases of 0."""
        parts = []
        for size in self._sizes:
            inputs = int(np.prod(size[1:]))
            scale = (2 / inputs) ** 0.5 if len(size) > 1 else 0.0
            parts.append(scale * rng.standard_normal(size.numel()))
        return np.concatenate(parts)

    def clipped_sum(
        self,
        parameters: NDArray[np.float64],
        images: NDArray[np.uint8],
        labels: NDArray[np.int64],
        clip: float | None,
    ) -> NDArray[np.float64]:
        """Return the sum of the examples' gradients, each clipped to ℓ2 norm `clip`."""
        torch = self._torch
        functional = import_module("torch.func")

        def loss(values: dict[str, Any], image: Any, label: Any) -> Any:
            scores = functional.functional_call(self._network, values, (image[None],))
            return torch.nn.functional.cross_entropy(scores, label[None])

        each = functional.vmap(functional.grad(loss), in_dims=(None, 0, 0))
        found = each(self._named(parameters), self._inputs(images), torch.from_numpy(labels))
        rows = torch.cat([found[name].flatten(1) for name in self._names], dim=1)
        if clip is not None:
            norms = rows.norm(dim=1, keepdim=True)
            rows = rows * torch.clamp(clip / (norms + 1e-30), max=1)
        return np.asarray(rows.sum(dim=0).double().numpy())

    def predict(
        self, parameters: NDArray[np.float64], images: NDArray[np.uint8]
    ) -> NDArray[np.int64]:
        """Return the most probable classes."""
        functional = import_module("torch.func")
        with self._torch.no_grad():
            scores = functional.functional_call(
                self._network, self._named(parameters), (self._inputs(images),)
            )
        return np.asarray(scores.argmax(dim=1).numpy())

    def _named(self, parameters: NDArray[np.float64]) -> dict[str, Any]:
        parts = self._torch.from_numpy(parameters).float().split([s.numel() for s in self._sizes])
        return {
            name: part.reshape(size)
            for name, part, size in zip(self._names, parts, self._sizes, strict=True)
        }

    def _inputs(self, images: NDArray[np.uint8]) -> Any:
        return self._torch.from_numpy(images / np.float32(255)).reshape(-1, *self._shape)
