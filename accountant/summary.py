"""`profile`: several questions about one mechanism, in the words of the command line."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from dpassay.accountant import ask
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.asking import Drawable
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import NotApplicableError, UndecidedError, forgiving
from dpassay.accountant.numbers.exact import Number, in_short
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import guarantees

Numbers: TypeAlias = Any
"""One number, or a list or an array of them."""
_AT = {"membership": "prior", "posterior": "prior", "reconstruction": "baseline"}
"""What a question is asked at, where that is not its argument's name."""
_EPSILONS = ("0", "0.1", "0.5", "1", "2", "4", "8")
_DELTAS = ("1e-3", "1e-5", "1e-6", "1e-9")


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """One question and its answer."""

    name: str
    """What is answered, by the keys of `dpassay profile --json`: "delta", "epsilon", "beta", …."""
    at: str
    """Such as "at epsilon 1"; empty where there is no argument."""
    value: Interval


@final
@dataclass(frozen=True, slots=True, repr=False)
class Profile(Drawable):
    """What was asked about a mechanism. `profile["delta"]` is the list of its δ."""

    mechanism: Mechanism
    adjacency: Adjacency | None
    answers: tuple[Answer, ...]

    def __getitem__(self, name: str) -> list[Interval]:
        """Return the answers of a name, in the order of the questions."""
        found = [answer.value for answer in self.answers if answer.name == name]
        if not found:
            known = ", ".join(dict.fromkeys(answer.name for answer in self.answers))
            raise KeyError(f"{name!r} was not asked for. Known: {known}.")
        return found

    def __str__(self) -> str:
        """Return one line for each answer."""
        rows = [(answer.name, answer.at, str(answer.value)) for answer in self.answers]
        first, second = (max((len(row[i]) for row in rows), default=0) for i in (0, 1))
        lines = [f"  {name:{first}}  {at:{second}}  {value}" for name, at, value in rows]
        relation = f"  ({self.adjacency.value})" if self.adjacency else ""
        return "\n".join([f"{self.mechanism!r}{relation}", *lines])

    def __repr__(self) -> str:
        """Return the mechanism and how much is known of it."""
        return f"<Profile of {self.mechanism!r}: {len(self.answers)} answers; print it to see them>"

    def _repr_html_(self) -> str:
        """Return a table, for notebooks."""
        from dpassay.accountant.core import asking

        rows = [["answer", "at", "value"]]
        rows += [[answer.name, answer.at, str(answer.value)] for answer in self.answers]
        return asking.describe_html(self.mechanism) + asking.table(rows)

    def to_records(self) -> list[dict[str, Any]]:
        """Return one row for each answer: its name, where it was asked, a float, and both ends.

        The float is None where no digit is certain.
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
        """Return the rows of `to_records` as a pandas DataFrame."""
        from dpassay.accountant.core.asking import frame

        return frame(self.to_records())

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: a list of answers, each with both ends."""
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
    variance: bool = False,
    mse: bool = False,
    adjacency: Adjacency | str | None = None,
) -> Profile:
    """Answer several questions about one release of a mechanism, each with an enclosure.

    Parameters
    ----------
    mechanism
        A mechanism, or its notation.
    epsilon, delta, alpha, tpr_at_fpr, order
        Where to ask for δ(ε), ε(δ), β(α), the largest true positive rate of an attack at a false
        positive rate, and the Rényi divergence: numbers, or lists of them.
    membership, posterior, reconstruction
        What an attacker gains (`dpassay.accountant.questions.attack`): at priors, at priors, at
        baselines.
    total_variation, mu, rho, variance, mse
        Whether to ask for δ(0), the least μ, the least ρ of zCDP, the variances, the mean squared
        error.
    adjacency
        The neighbouring relation, required where the answers depend on it.

    Returns
    -------
    Profile
        The answers; without a question, those that apply of a usual set.

    Examples
    --------
    >>> found = profile("Gaussian(1)", epsilon=[1, 2])
    >>> [f"{value:.3g}" for value in found["delta"]]
    ['0.127', '0.0209']
    """
    about, relation = ask.read_mechanism(mechanism), Adjacency.read(adjacency)
    given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "alpha": alpha, "order": order}
    given |= {"tpr_at_fpr": tpr_at_fpr, "membership": membership}
    given |= {"posterior": posterior, "reconstruction": reconstruction}
    numbers: dict[str, Any] = {
        name: _listed(value) for name, value in given.items() if value is not None
    }
    wanted = {"mu": mu, "rho": rho, "variance": variance, "mse": mse}
    wanted["total_variation"] = total_variation
    usual = not numbers and not any(wanted.values())
    if usual:
        numbers = {"epsilon": _EPSILONS, "delta": _DELTAS}
        wanted = dict.fromkeys(("mu", "rho", "mse"), True)
    answers: list[Answer] = []
    for found in _asked(about, relation, numbers, wanted, usual=usual):
        try:
            answers += found()
        except (NotApplicableError, UndecidedError):
            if not usual:
                raise
    return Profile(about, relation, tuple(answers))


def _listed(value: Any) -> list[Number]:
    return list(value) if ask.is_many(value) else [value]


def _asked(
    about: Mechanism,
    relation: Adjacency | None,
    numbers: dict[str, Any],
    wanted: dict[str, bool],
    *,
    usual: bool,
) -> Iterator[Callable[[], list[Answer]]]:
    """Yield the questions, to be asked one by one; the usual μ is an exact one."""
    named: dict[str, tuple[str, Callable[..., Interval]]] = {
        "epsilon": ("delta", ask.delta),
        "delta": ("epsilon", ask.epsilon),
        "alpha": ("beta", ask.beta),
        "tpr_at_fpr": ("true_positive_rate", ask.power),
        "membership": ("membership", ask.membership),
        "posterior": ("posterior", ask.posterior),
        "reconstruction": ("reconstruction", ask.reconstruction),
        "order": ("renyi", ask.renyi),
    }
    for argument, values in numbers.items():
        answered, ask_at = named[argument]
        for value in values:
            yield functools.partial(
                lambda name, at, answer: [Answer(name, at, answer())],
                answered,
                f"at {_AT.get(argument, argument).replace('_', '-')} "
                f"{value if isinstance(value, str) else in_short(value)}",
                functools.partial(ask_at, about, value, adjacency=relation),
            )
    if wanted.get("total_variation"):
        yield lambda: [
            Answer("total_variation", "", ask.total_variation(about, adjacency=relation))
        ]
    if wanted.get("mu"):
        least = guarantees.mu if usual else ask.mu
        yield lambda: [Answer("mu", "", least(about, adjacency=relation))]
    if wanted.get("rho"):
        yield lambda: [Answer("rho", "", ask.rho(about, adjacency=relation))]
    if wanted.get("mse"):
        yield lambda: [Answer("mse", "", ask.mean_squared_error(about))]
    if wanted.get("variance"):
        yield lambda: [Answer("variance", "", value) for value in ask.variance(about)]
