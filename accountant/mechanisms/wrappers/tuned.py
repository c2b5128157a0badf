"""Private selection of the best of several runs, such as hyperparameter tuning."""

from __future__ import annotations

from typing import Any

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase, only_bounded
from dpassay.accountant.core.validate import Read, declared
from dpassay.accountant.errors import NotApplicableError, expected
from dpassay.accountant.mechanisms.wrappers.composed import OneMechanism
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.pairs.tuned import Runs, TunedPair

_MOST = 1000
"""Limit on the mean number of runs and on the shape: larger powers lose too much precision."""
_LAWS = ("poisson", "fixed")


def _runs(name: str, value: Number) -> ExactReal:
    """Return the mean number of runs as an exact number, or raise InvalidInputError."""
    mean = exact(value, name)
    if mean.sign <= 0 or mean > ExactReal.of_rational(_MOST):
        raise expected(name, value, f"in (0, {_MOST}]", "Give the mean number of runs.")
    return mean


def _shape(name: str, value: Number | str) -> ExactReal | str:
    """Return the name of a law, or the shape η of a truncated negative binomial distribution."""
    if isinstance(value, str) and value.lower() in _LAWS:
        return value.lower()
    remedy = "1 is geometric, 0 logarithmic."
    allowed = f"to be {', '.join(map(repr, _LAWS))} or a number in (-1, {_MOST}]"
    try:
        number = exact(value, name)
    except ValueError:
        raise expected(name, value, allowed, remedy) from None
    if not ExactReal.of_rational(-1) < number <= ExactReal.of_rational(_MOST):
        raise expected(name, value, allowed, remedy)
    return number


@declared
class Tuned(Mechanism):
    """Run a mechanism a random number of times, and release the run with the best score.

    Parameters
    ----------
    mechanism
        One run. Hyperparameters may be drawn anew for each run, independently and from the same
        law; the guarantee must hold for every value of them.
    runs
        E K, the mean number of runs.
    shape
        The law of K with this mean. A number η > −1 is a truncated negative binomial law with K ≥ 1
        (Papernot and Steinke 2022, Definition 1): η = 1, the default, is geometric (Liu and Talwar
        2019) and η = 0 logarithmic. "poisson" is a Poisson law; nothing is released if K = 0.
        "fixed" is K = `runs`.

    Notes
    -----
    K is drawn first and kept secret, and only the best run is released. The score is any function
    of a run. It may be an accuracy on private records if the guarantee of the run covers it.

    δ(ε) is the supremum over all scores. It is enclosed between the value of one score and a bound
    for all scores (`dpassay.accountant.pairs.tuned` has the proof). The worst score ranks outcomes
    of middle loss lowest; how those of higher and of lower loss interleave depends on ε.
    """

    example = "Tuned(mechanism=Gaussian(standard_deviation=4), runs=10)"
    no_variance = (
        "Tuned has no variance: its error depends on the score. Ask for that of the mechanism."
    )

    mechanism: OneMechanism = OneMechanism()
    runs: Read[ExactReal, Number] = Read(_runs)
    shape: Read[ExactReal | str, Any] = Read(_shape, 1)

    def __post_init__(self) -> None:
        one = ExactReal.of_rational(1)
        whole = self.runs.rational
        if self.shape == "fixed" and (whole is None or whole.denominator != 1):
            raise expected("runs", self.runs, "to be an integer where shape='fixed'")
        if self.shape != "poisson" and self.runs < one:
            raise expected("runs", self.runs, "≥ 1", "Only shape='poisson' may have no run.")

    @property
    def only_alone(self) -> str:
        """Why it cannot be composed or sampled."""
        return (
            "of the best of several runs only bounds of delta are known, which do not compose. "
            "Tune a composition: Tuned(Composed(…), runs=…)."
        )

    @property
    def _law(self) -> Runs | None:
        """The law of K, None if K = 1 with certainty."""
        once = self.runs == ExactReal.of_rational(1) and self.shape != "poisson"
        return None if once else Runs(self.runs, self.shape)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pairs of one run, transformed by the selection.

        Raises NotApplicableError if no dominating pair of one run is known, or only bounds of it.
        """
        case, law = self.mechanism.worst_case(adjacency), self._law
        if law is None:
            return case
        if case.enveloped or any(only_bounded(pair) for pair in case.pairs(None)):
            raise NotApplicableError(
                f"Which neighbours are worst for one run of {self.mechanism!r} depends on the "
                f"question. Ask about Tuned(Guaranteed(epsilon=…, delta=…), …) for an upper bound."
            )
        remove, add = (
            tuple(TunedPair(pair, law) for pair in pairs) for pairs in (case.remove, case.add)
        )
        return WorstCase(
            remove,
            add,
            "For any two neighbours one run is a randomised function of the dominating pair. The "
            "worst score ranks outcomes of middle loss lowest; bounds enclose its profile.",
        )

    @property
    def dimension(self) -> int:
        """The number of coordinates of one run."""
        return self.mechanism.dimension

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the best of the runs on the answer 0; the score is the first coordinate."""
        zero = np.zeros(self.dimension) if self.dimension > 1 else 0.0
        return self.outputs(zero, size, rng=rng)

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the best of the runs; the score is the output or its first coordinate.

        Raises NotApplicableError if K = 0 is possible.
        """
        law = self._law
        if law is None:
            return self.mechanism.outputs(answer, size, rng=rng)
        if law.never() > 0:
            raise NotApplicableError(
                "With some probability there is no run, and nothing is released: "
                "sample runs of the mechanism, and select."
            )
        counts = law.draw(size, rng)
        drawn = self.mechanism.outputs(answer, int(counts.sum()), rng=rng)
        scores = drawn if drawn.ndim == 1 else drawn[:, 0]
        order = np.lexsort((scores, np.repeat(np.arange(size), counts)))
        found: Array = drawn[order[np.cumsum(counts) - 1]]
        return found

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return the worst answers of one run; the worst score depends on ε."""
        return self.mechanism.worst_answers()
