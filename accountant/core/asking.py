"""Questions as methods, and composition as `*` and `+`, of whatever is a mechanism."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

QUESTIONS = (
    "epsilon",
    "delta",
    "beta",
    "power",
    "renyi",
    "mu",
    "rho",
    "variance",
    "total_variation",
    "profile",
    "verify",
)
"""The functions of `dpassay` that are also methods: `noise.epsilon(delta=…)`."""
_SHOWN = (*QUESTIONS, "release", "plot")
_INSTEAD = {
    "compose": "Write mechanism * 10, or mechanism + other.",
    "calibrate": 'Ask dpassay.calibrate("Gaussian", epsilon=…, delta=…).',
    "audit": "Ask dpassay.audit(mechanism, …).",
    "variances": "Ask .variance().",
    "get_epsilon": "Ask .epsilon(delta=…).",
    "get_delta": "Ask .delta(epsilon=…).",
    "rdp": "Ask .renyi(order).",
    "add_noise": "Write .release(value).",
    "randomise": "Write .release(value).",
    "randomize": "Write .release(value).",
}
"""What to write for a method that other libraries have."""


class Askable:
    """What `dpassay`'s questions are about.

    An argument of a mechanism hides the question of its name: `RandomizedResponse(2).epsilon` is 2.
    Ask `dpassay.epsilon(mechanism, delta=…)` there.
    """

    __slots__ = ()
    asker: ClassVar[Callable[[str], Any] | None] = None
    """Returns a public name of `dpassay`, which lends it: this floor answers nothing."""

    if TYPE_CHECKING:  # arguments of some mechanisms have these names
        epsilon: Any
        delta: Any
        beta: Any
        power: Any
        renyi: Any
        mu: Any
        rho: Any
        variance: Any
        total_variation: Any
        profile: Any
        verify: Any
    else:

        def __getattr__(self, name: str) -> Any:
            """Return a question about this mechanism, or say what to write."""
            if name in QUESTIONS and Askable.asker is not None:
                question = Askable.asker(name)
                return functools.update_wrapper(functools.partial(question, self), question)
            instead = _INSTEAD.get(name, "")
            space = " " * bool(instead)
            raise AttributeError(f"{type(self).__name__} has no {name!r}.{space}{instead}")

    def __dir__(self) -> list[str]:
        """Return the arguments, the questions and what releases; tools ask the class for more."""
        return sorted({*getattr(type(self), "__dataclass_fields__", ()), *_SHOWN})

    def __mul__(self, count: int) -> Any:
        """Return this mechanism, run `count` times on the same data."""
        return _public("Composed")(self, count)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        """Return both mechanisms, run on the same data; a sum of several is one list."""
        if not isinstance(other, Askable):
            return NotImplemented
        return _public("Composed")([*_parts(self), *_parts(other)])

    def __radd__(self, other: Any) -> Any:
        """Let `sum` begin with 0."""
        return self if type(other) is int and other == 0 else NotImplemented


def _public(name: str) -> Any:
    from dpassay.accountant.errors import NotApplicableError

    if Askable.asker is None:
        raise NotApplicableError("Nothing composes here. Write `import dpassay` first.")
    return Askable.asker(name)


def _parts(mechanism: Any) -> list[Any]:
    """Return the mechanisms of a composition of each once, or the mechanism alone."""
    is_sum = type(mechanism).__name__ == "Composed" and mechanism.count == 1
    parts = mechanism.mechanism if is_sum else mechanism
    return list(parts) if isinstance(parts, (list, tuple)) else [parts]
