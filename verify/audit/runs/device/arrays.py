"""Namespaces of the array API with a source of random words.

On a processor the words come from numpy's generators, seeded by block, whatever namespace computes
with them: numpy and PyTorch count the same runs. On a graphics card they come from PyTorch's own
counter-based generator (Philox), with another key for every block and side. Either way the words
of a block are a function of the seed and of the block, never of who draws it.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from dpassay.accountant.errors import InvalidInputError

Array: TypeAlias = Any
"""An array of the namespace of a device."""
Namespace: TypeAlias = Any
Words: TypeAlias = Callable[[int], Array]
"""A source of independent uniform words of 64 bits, as signed integers: the next so many."""

_MODULES = {
    "numpy": "numpy",
    "array_api_strict": "array_api_strict",
    "torch": "array_api_compat.torch",
}
_SHORT = {"cpu": "numpy", "cuda": "torch:cuda", "torch": "torch:cpu"}
_WORD = 64
"""Bits of a random word."""
_ODD = 0x9E3779B97F4A7C15
"""An odd multiplier: other blocks, other keys."""
_REMEDY = "pip install -c constraints.txt -e '.[device]'"


@final
@dataclass(frozen=True)
class Device:
    """Where runs are drawn: a namespace, and for PyTorch one of its devices."""

    namespace: str
    place: str = ""

    @staticmethod
    def read(text: str) -> Device:
        """Read numpy (or cpu), torch:cpu (or torch), torch:cuda (or cuda), torch:cuda:1.

        Raises InvalidInputError where it is none of them, or where the library or the graphics
        card is missing.
        """
        namespace, _, place = _SHORT.get(text, text).partition(":")
        if namespace not in _MODULES or (bool(place) != (namespace == "torch")):
            raise InvalidInputError(
                f"Expected device={text!r} to be numpy (or cpu), torch:cpu or torch:cuda (or cuda)."
            )
        for module in (*_MODULES[namespace].split(".")[:1], namespace):
            if importlib.util.find_spec(module) is None:
                raise InvalidInputError(
                    f"device={text!r} needs {module}, of the extra 'device'. Install it, in the "
                    f"clone: {_REMEDY}; or name device='numpy'."
                )
        if namespace == "torch":
            _require_place(text, place)
        return Device(namespace, place)

    def __str__(self) -> str:
        """Return the notation that `read` reads."""
        return f"{self.namespace}:{self.place}" if self.place else self.namespace

    @property
    def is_accelerator(self) -> bool:
        """Whether random words are drawn by the device itself."""
        return self.place not in ("", "cpu")

    @property
    def xp(self) -> Namespace:
        """The namespace."""
        return importlib.import_module(_MODULES[self.namespace])

    @property
    def description(self) -> str:
        """What draws the runs, as a result names it."""
        if self.namespace != "torch":
            return f"numpy {np.__version__}"
        torch = importlib.import_module("torch")
        card = f" on {torch.cuda.get_device_name(self.place)}" if self.is_accelerator else ""
        return f"PyTorch {torch.__version__}{card}"

    def array(self, values: Any) -> Array:
        """Return numpy values as an array of the device."""
        if self.namespace == "numpy":
            return np.asarray(values)
        if self.namespace == "torch":
            return self.xp.asarray(np.ascontiguousarray(values), device=self.place)
        return self.xp.asarray(np.asarray(values))

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Let one block be the work of one thread: workers share the cores, not threads within."""
        if self.namespace != "torch" or self.is_accelerator:
            yield
            return
        torch = importlib.import_module("torch")
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def words(self, seed: int, key: tuple[int, ...]) -> Words:
        """Return the source of words of one block and side."""
        if self.is_accelerator:
            torch = importlib.import_module("torch")
            generator: Any = torch.Generator(device=self.place)
            generator.manual_seed(accelerator_key(seed, key))

            def own(count: int) -> Array:
                fresh = torch.empty(count, dtype=torch.int64, device=self.place)
                return fresh.random_(-(1 << (_WORD - 1)), None, generator=generator)

            return own
        bits = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=key)))
        return lambda count: self.array(
            bits.integers(0, 1 << _WORD, count, dtype=np.uint64).view(np.int64)
        )


def accelerator_key(seed: int, key: tuple[int, ...]) -> int:
    """Return the key of a block: different for every index and side of one seed and stage.

    A hash of the seed and the stage, plus an odd multiple of 2·index + side, modulo 2⁶⁴.
    """
    *stage, index, side = key
    base = np.random.SeedSequence(seed, spawn_key=tuple(stage)).generate_state(1, np.uint64)[0]
    mixed = (int(base) + _ODD * (2 * index + side)) % (1 << _WORD)
    return mixed if mixed < 1 << (_WORD - 1) else mixed - (1 << _WORD)


@functools.cache
def _require_place(text: str, place: str) -> None:
    torch = importlib.import_module("torch")
    kind, _, index = place.partition(":")
    if kind == "cpu" and not index:
        return
    if kind != "cuda" or (index and not index.isdecimal()):
        raise InvalidInputError(
            f"Expected device={text!r} to be torch:cpu, torch:cuda or torch:cuda:0, 1, …"
        )
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(index or 0) >= count:
        raise InvalidInputError(
            f"device={text!r}: PyTorch {torch.__version__} sees {count} graphics cards. Install a "
            "build of PyTorch with CUDA and a driver, or name device='torch:cpu' or 'numpy'."
        )
