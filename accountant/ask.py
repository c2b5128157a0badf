"""The questions of `dpassay` (`delta`, `epsilon`, `beta`, …), with lenient arguments.

Each function wraps one of `dpassay.accountant.questions` and accepts more: the mechanism may be
text in the notation, and the number (ε, δ, α, an order, …) may be a list or an array, for which a
list of answers (`Results`) is returned. Names that other libraries use are translated, and the
error for a wrong call says which arguments are right.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from dpassay.accountant.aliases import translated
from dpassay.accountant.core.asking import Results
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import misused, within_floats
from dpassay.accountant.notation import read_mechanism
from dpassay.accountant.numbers.exact import Number
from dpassay.accountant.numbers.interval import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray


Answer = TypeVar("Answer")
One_co = TypeVar("One_co", covariant=True)
"""The answer of a question that takes no list."""
_HOME = {
    "profile": ("delta", "delta_complement", "epsilon", "log_delta"),
    "tradeoff": ("beta", "power"),
    "attack": ("membership", "posterior", "reconstruction"),
    "least_mu": ("mu",),
    "guarantees": ("loss_cdf", "loss_survival", "renyi", "rho", "total_variation"),
    "accuracy": (
        "absolute_quantile",
        "covariance",
        "maximum_quantile",
        "mean_absolute_error",
        "mean_squared_error",
        "probability_exact",
        "quantile",
        "variance",
    ),
    "estimate": (
        "estimate_beta",
        "estimate_delta",
        "estimate_epsilon",
        "estimate_log_delta",
        "estimate_log_loss_cdf",
        "estimate_log_loss_survival",
        "estimate_power",
        "estimate_slope",
    ),
}
__all__ = [name for names in _HOME.values() for name in names]
"""All questions; each is imported on first use."""
_ASKED_AT = frozenset({"epsilon", "delta", "alpha", "order", "loss", "level", "prior", "baseline"})
"""Second parameters that accept a list; the question is answered for each entry separately."""
_ELSEWHERE = {
    ("delta", "delta"): "epsilon(mechanism, delta=…)",
    ("delta", "alpha"): "beta(mechanism, alpha=…)",
    ("epsilon", "epsilon"): "delta(mechanism, epsilon=…)",
}
"""Maps (question, unknown argument) to the call that was probably intended."""


class Question(Protocol[One_co]):
    """A question about a mechanism."""

    def __call__(self, mechanism: Mechanism | str, /, *at: Any, **options: Any) -> One_co: ...


class AtEpsilon(Protocol[Answer]):
    """A question at one ε, or at a list of them."""

    @overload
    def __call__(self, mechanism: Mechanism | str, epsilon: Number, **options: Any) -> Answer: ...

    @overload
    def __call__(
        self, mechanism: Mechanism | str, epsilon: Sequence[Number] | NDArray[Any], **options: Any
    ) -> Results[Answer]: ...


class AtDelta(Protocol[Answer]):
    """A question at one δ, or at a list of them."""

    @overload
    def __call__(self, mechanism: Mechanism | str, delta: Number = 0, **options: Any) -> Answer: ...

    @overload
    def __call__(
        self, mechanism: Mechanism | str, delta: Sequence[Number] | NDArray[Any], **options: Any
    ) -> Results[Answer]: ...


class AtAlpha(Protocol[Answer]):
    """A question at one α, or at a list of them."""

    @overload
    def __call__(self, mechanism: Mechanism | str, alpha: Number, **options: Any) -> Answer: ...

    @overload
    def __call__(
        self, mechanism: Mechanism | str, alpha: Sequence[Number] | NDArray[Any], **options: Any
    ) -> Results[Answer]: ...


class AtPrior(Protocol[Answer]):
    """A question at one prior, or at a list of them."""

    @overload
    def __call__(self, mechanism: Mechanism | str, prior: Number, **options: Any) -> Answer: ...

    @overload
    def __call__(
        self, mechanism: Mechanism | str, prior: Sequence[Number] | NDArray[Any], **options: Any
    ) -> Results[Answer]: ...


class AtBaseline(Protocol[Answer]):
    """A question at one baseline, or at a list of them."""

    @overload
    def __call__(self, mechanism: Mechanism | str, baseline: Number, **options: Any) -> Answer: ...

    @overload
    def __call__(
        self, mechanism: Mechanism | str, baseline: Sequence[Number] | NDArray[Any], **options: Any
    ) -> Results[Answer]: ...


class AtOrder(Protocol[Answer]):
    """A question at one order, or at a list of them."""

    @overload
    def __call__(self, mechanism: Mechanism | str, order: Number, **options: Any) -> Answer: ...

    @overload
    def __call__(
        self, mechanism: Mechanism | str, order: Sequence[Number] | NDArray[Any], **options: Any
    ) -> Results[Answer]: ...


class AtLoss(Protocol[Answer]):
    """A question at one privacy loss, or at a list of them."""

    @overload
    def __call__(self, mechanism: Mechanism | str, loss: Number, **options: Any) -> Answer: ...

    @overload
    def __call__(
        self, mechanism: Mechanism | str, loss: Sequence[Number] | NDArray[Any], **options: Any
    ) -> Results[Answer]: ...


def is_many(value: object) -> bool:
    """Whether an argument is an iterable of numbers, not a single number, text or `Interval`."""
    if isinstance(value, (str, bytes, Interval)) or not isinstance(value, Iterable):
        return False
    return getattr(value, "ndim", 1) != 0  # a 0-dimensional array is a single number


def question(ask: Callable[..., Answer]) -> Question[Answer]:
    """Wrap a question so that it also accepts text for the mechanism and lists of numbers."""
    signature = inspect.signature(ask)
    second = list(signature.parameters)[1:2]
    vectorised = ask.__name__.startswith("estimate")  # handles arrays itself
    many = second[0] if second and second[0] in _ASKED_AT and not vectorised else None

    @functools.wraps(ask)
    def asked(*positional: Any, **named: Any) -> Any:
        if not named.keys() <= signature.parameters.keys():
            named = translated(named, signature.parameters.keys(), len(positional))
        try:
            bound = signature.bind(*positional, **named)
        except TypeError as error:
            raise misused(ask.__name__, signature, named, str(error), _ELSEWHERE) from None
        given = bound.arguments
        given["mechanism"] = read_mechanism(given["mechanism"])
        if many is None or not is_many(given.get(many)):
            with within_floats():
                found: Any = ask(*bound.args, **bound.kwargs)
            is_plain = isinstance(found, list) and not isinstance(found[0], list)
            return Results(found) if is_plain else found
        at = list(given[many])
        return Results((asked(**{**given, many: _plain(entry)}) for entry in at), many, at)

    return asked


def _plain(value: Any) -> Any:
    """Convert a NumPy scalar to a Python number; return anything else unchanged."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value


if TYPE_CHECKING:
    delta: AtEpsilon[Interval]
    delta_complement: AtEpsilon[Interval]
    epsilon: AtDelta[Interval]
    log_delta: AtEpsilon[Interval]
    beta: AtAlpha[Interval]
    power: AtAlpha[Interval]
    membership: AtPrior[Interval]
    posterior: AtPrior[Interval]
    reconstruction: AtBaseline[Interval]
    loss_cdf: AtLoss[Interval]
    loss_survival: AtLoss[Interval]
    mu: Question[Interval]
    renyi: AtOrder[Interval]
    rho: Question[Interval]
    total_variation: Question[Interval]
    absolute_quantile: Question[Interval]
    maximum_quantile: Question[Interval]
    mean_absolute_error: Question[Interval]
    probability_exact: Question[Interval]
    quantile: Question[Interval]
    mean_squared_error: Question[Interval]
    variance: Question[Results[Interval]]
    covariance: Question[list[list[Interval]]]
    estimate_beta: Question[Any]
    estimate_delta: Question[Any]
    estimate_epsilon: Question[Any]
    estimate_log_delta: Question[Any]
    estimate_log_loss_cdf: Question[Any]
    estimate_log_loss_survival: Question[Any]
    estimate_power: Question[Any]
    estimate_slope: Question[Any]


def __getattr__(name: str) -> Any:
    """Import a question on first use: some need NumPy, whose import takes a second."""
    for home, names in _HOME.items():
        if name in names:
            module = importlib.import_module(f"dpassay.accountant.questions.{home}")
            globals()[name] = asked = question(getattr(module, name))
            return asked
    raise AttributeError(f"module 'dpassay.accountant.ask' has no attribute {name!r}")
