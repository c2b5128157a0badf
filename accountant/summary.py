"""`profile`: several questions about one mechanism, as in the command `dpassay profile`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias, final

from dpassay.accountant import ask, notation
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.asking import Drawable
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import NotApplicableError, UndecidedError, expected, forgiving
from dpassay.accountant.numbers.exact import Number, in_short
from dpassay.accountant.numbers.interval import Interval

Numbers: TypeAlias = Any
"""A number, or a list or array of numbers."""
Value: TypeAlias = "Interval | list[Interval] | dict[str, Interval]"
"""An enclosure, one per coordinate, or several by name."""


@final
@dataclass(frozen=True, slots=True)
class Question:
    """A question: an argument of `profile`, and an option of the command."""

    name: str
    function: str = ""
    """Module and function in `dpassay.accountant.questions` that answer it."""
    key: str = ""
    """The name of the answer; by default that of the question."""
    place: str = ""
    """The name of the number that it is asked at; by default that of the question."""

    def __post_init__(self) -> None:
        """Set the default of `key`."""
        object.__setattr__(self, "key", self.key or self.name)

    def at(self, argument: Number) -> str:
        """Return text such as "at epsilon 1"; "" if the question takes no number."""
        said = argument if isinstance(argument, str) else in_short(argument)
        return f"at {(self.place or self.name).replace('_', '-')} {said}" if said else ""

    def ask(self, mechanism: Mechanism, *at: Number, usual: bool = False, **options: Any) -> Value:
        """Call the function with those of the options that it has as parameters.

        A question for μ returns the exact μ. If there is none and the question was asked
        explicitly (not `usual`), it returns the least μ for which the mechanism is μ-GDP.
        """
        module, _, name = self.function.partition(".")
        function = getattr(import_module(f"dpassay.accountant.questions.{module}"), name)
        known = inspect.signature(function).parameters
        numbers = sum(each.kind is each.POSITIONAL_OR_KEYWORD for each in known.values()) - 1
        if numbers and not at:  # an empty text
            raise expected(self.name, "", "to be a number")
        if not numbers and at:
            raise expected(self.name, at[0], "to be True or False", "It takes no number.")
        words = {name: value for name, value in options.items() if name in known}
        words = words if "adjacency" in known else {}
        try:
            value: Value = function(mechanism, *at, **words)
        except NotApplicableError:
            if self.name != "mu" or usual:
                raise
            return {"best_upper": ask.mu(mechanism, **words)}
        return value


QUESTIONS = (
    Question("epsilon", "profile.delta", "delta"),
    Question("delta", "profile.epsilon", "epsilon"),
    Question("alpha", "tradeoff.beta", "beta"),
    Question("tpr_at_fpr", "tradeoff.power", "true_positive_rate"),
    Question("membership", "attack.membership", place="prior"),
    Question("posterior", "attack.posterior", place="prior"),
    Question("reconstruction", "attack.reconstruction", place="baseline"),
    Question("order", "guarantees.renyi", "renyi"),
    Question("total_variation", "guarantees.total_variation"),
    Question("mu", "guarantees.mu"),
    Question("rho", "guarantees.rho"),
    Question("loss_cdf", "guarantees.loss_cdf"),
    Question("mse", "accuracy.mean_squared_error"),
    Question("mean_absolute_error", "accuracy.mean_absolute_error"),
    Question("quantile", "accuracy.quantile"),
    Question("absolute_quantile", "accuracy.absolute_quantile"),
    Question("variance", "accuracy.variance"),
)
USUAL = {
    "epsilon": ("0", "0.1", "0.5", "1", "2", "4", "8"),
    "delta": ("1e-3", "1e-5", "1e-6", "1e-9"),
    **dict.fromkeys(("mu", "rho", "mse"), ("",)),
}
"""The questions, and the numbers they are asked at, if the caller names none."""


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """One enclosure, with the question that it answers."""

    name: str
    """A key of `dpassay profile --json`: "delta", "epsilon", "beta", …."""
    at: str
    """Text such as "at epsilon 1"; "" if the question takes no number."""
    value: Interval


@final
@dataclass(frozen=True, slots=True, repr=False)
class Profile(Drawable):
    """Answers about one mechanism. `profile["delta"]` is the list of the enclosures of δ."""

    mechanism: Mechanism
    adjacency: Adjacency | None
    answers: tuple[Answer, ...]

    def __getitem__(self, name: str) -> list[Interval]:
        """Return the enclosures with this name, in the order of the questions."""
        found = [answer.value for answer in self.answers if answer.name == name]
        if not found:
            known = ", ".join(dict.fromkeys(answer.name for answer in self.answers))
            raise KeyError(f"{name!r} was not asked for. Known: {known}.")
        return found

    def __str__(self) -> str:
        """Return the notation of the mechanism and one line per answer."""
        rows = [(answer.name, answer.at, str(answer.value)) for answer in self.answers]
        first, second = (max((len(row[i]) for row in rows), default=0) for i in (0, 1))
        lines = [f"  {name:{first}}  {at:{second}}  {value}" for name, at, value in rows]
        relation = f"  ({self.adjacency.value})" if self.adjacency else ""
        return "\n".join([f"{self.mechanism!r}{relation}", *lines])

    def __repr__(self) -> str:
        """Return the mechanism and the number of answers."""
        return f"<Profile of {self.mechanism!r}: {len(self.answers)} answers; print it to see them>"

    def _repr_html_(self) -> str:
        """Return an HTML table, for notebooks."""
        from dpassay.accountant.core import asking

        rows = [["answer", "at", "value"]]
        rows += [[answer.name, answer.at, str(answer.value)] for answer in self.answers]
        return asking.describe_html(self.mechanism) + asking.table(rows)

    def to_records(self) -> list[dict[str, Any]]:
        """Return one row per answer, with the keys name, at, value, lower and upper.

        `value` is a float, or None if the enclosure is too wide to determine a digit.
        """
        return [
            {
                "name": answer.name,
                "at": answer.at,
                "value": float(answer.value) if answer.value.digits else None,
                **answer.value.to_dict(),
            }
            for answer in self.answers
        ]

    def to_pandas(self) -> Any:
        """Return `to_records` as a pandas DataFrame."""
        from dpassay.accountant.core.asking import frame

        return frame(self.to_records())

    def to_dict(self) -> dict[str, Any]:
        """Return the mechanism, the adjacency and the answers as plain data."""
        return {
            "mechanism": repr(self.mechanism),
            "adjacency": self.adjacency.value if self.adjacency else None,
            "answers": [
                {"name": answer.name, "at": answer.at, **answer.value.to_dict()}
                for answer in self.answers
            ],
        }


@forgiving
def profile(
    mechanism: Mechanism | str,
    *,
    epsilon: Numbers = None,
    delta: Numbers = None,
    alpha: Numbers = None,
    tpr_at_fpr: Numbers = None,
    membership: Numbers = None,
    posterior: Numbers = None,
    reconstruction: Numbers = None,
    order: Numbers = None,
    total_variation: bool = False,
    mu: bool = False,
    rho: bool = False,
    loss_cdf: Numbers = None,
    mse: bool = False,
    mean_absolute_error: bool = False,
    quantile: Numbers = None,
    absolute_quantile: Numbers = None,
    variance: bool = False,
    adjacency: Adjacency | str | None = None,
) -> Profile:
    """Answer several questions about one release of a mechanism, each with an enclosure.

    Parameters
    ----------
    mechanism
        A mechanism, or its notation.
    epsilon, delta, alpha, tpr_at_fpr, order
        Numbers or lists of numbers at which to enclose δ(ε), ε(δ), the trade-off function β(α), the
        largest true positive rate of an attack at a given false positive rate, and the Rényi
        divergence.
    membership, posterior
        Prior probabilities at which to enclose the success of membership inference and the
        posterior probability (`dpassay.accountant.questions.attack`).
    reconstruction
        Baseline probabilities at which to enclose the success of a reconstruction attack.
    total_variation, mu, rho, mse, mean_absolute_error, variance
        Whether to enclose the total variation distance δ(0), the least μ of Gaussian DP, the least
        ρ of zCDP, the mean squared error, the mean absolute error, and the variances.
    loss_cdf
        Privacy losses ℓ at which to enclose the least P(L ≤ ℓ) over the worst pairs.
    quantile, absolute_quantile
        Levels at which to enclose quantiles of the noise and of its absolute value.
    adjacency
        The neighbouring relation; required if an answer depends on it.

    Returns
    -------
    Profile
        The answers. Without a question these are δ, ε, μ, ρ and the mean squared error, as far as
        the mechanism has them.

    Examples
    --------
    >>> found = profile("Gaussian(1)", epsilon=[1, 2])
    >>> [f"{value:.3g}" for value in found["delta"]]
    ['0.127', '0.0209']
    """
    about, relation = notation.read_mechanism(mechanism), Adjacency.read(adjacency)
    given: dict[str, Any] = {
        "epsilon": epsilon, "delta": delta, "alpha": alpha, "tpr_at_fpr": tpr_at_fpr,
        "membership": membership, "posterior": posterior, "reconstruction": reconstruction,
        "order": order, "total_variation": total_variation, "mu": mu, "rho": rho,
        "loss_cdf": loss_cdf, "mse": mse, "mean_absolute_error": mean_absolute_error,
        "quantile": quantile, "absolute_quantile": absolute_quantile, "variance": variance,
    }  # fmt: skip
    asked = {name: _listed(at) for name, at in given.items() if at is not None and at is not False}
    answers: list[Answer] = []
    for question in QUESTIONS:
        for at in (asked or USUAL).get(question.name, ()):
            place = () if at == "" else (at,)
            try:
                value = question.ask(about, *place, usual=not asked, adjacency=relation)
            except (NotApplicableError, UndecidedError):
                if asked:
                    raise
                continue
            if isinstance(value, dict):
                value = [*value.values()]
            every = value if isinstance(value, list) else [value]
            answers += [Answer(question.key, question.at(at), each) for each in every]
    return Profile(about, relation, tuple(answers))


def _listed(value: Any) -> list[Number]:
    if value is True:
        return [""]
    return list(value) if ask.is_many(value) else [value]
