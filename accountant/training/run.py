"""The privacy of a DP-SGD run from its settings, and the noise that a budget requires.

`dpassay.accountant.training.schemes` defines the sampling schemes and proves their bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from dpassay.accountant.budget.calibrate import calibrate
from dpassay.accountant.budget.target import EpsilonDelta
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.asking import Drawable
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import probability
from dpassay.accountant.errors import InvalidInputError, UndecidedError, expected, forgiving
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.numbers.exact import ExactReal, Number, exact, floats_in_short, in_short
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions.profile import at_least_zero
from dpassay.accountant.training.schemes import OWN, REPLACED, SCHEMES, TRUNCATED, Loop, scheme

_CLOSE, _CLOSEST = 0.99, 1 - 1e-7
"""Least fraction of the budget that the noise found may use; the second one where evaluating a run
takes less than a second."""
_MOST_RUNS = 12
"""Maximal number of evaluated runs; about five are needed."""
_USUAL_SLOPE = -1.5
"""Initial slope of ln ε against ln σ, used until two runs are known."""
_CLIPPED = "Each record's gradient is clipped to norm C; the noise is N(0, (noise_multiplier·C)²)."


@final
@dataclass(frozen=True, slots=True, repr=False)
class Training(Drawable):
    """The privacy of a training run, and the assumptions under which it holds."""

    noise_multiplier: ExactReal
    epsilon: Interval
    """Encloses ε(δ) of the whole run."""
    delta: Number
    adjacency: Adjacency
    """The relation under which the worst pairs of `mechanism` are taken."""
    neighbours: str
    """The relation that ε is for: "add-remove", "replace-one" or "zero-out" (in one of the two
    datasets the record's gradient is 0)."""
    sampling: str
    assumptions: tuple[str, ...]
    """Conditions on the training loop."""
    steps: int
    sampling_prob: Fraction
    mechanism: Mechanism
    """The composition of all steps; for shuffled and truncated batches, a mechanism whose δ(ε) is
    an upper bound."""
    ends: str = ""
    """What proves each end of ε, if the two ends have different proofs."""

    def __str__(self) -> str:
        """Return the answer and its assumptions."""
        head = (
            f"epsilon = {self.epsilon} at delta = {in_short(self.delta)}, "
            f"with noise_multiplier = {in_short(self.noise_multiplier)}\n"
            f"neighbours: {self.neighbours}; sampling: {self.sampling}, "
            f"{float(self.sampling_prob):.6g} of the records in "
            f"{'one step' if self.steps == 1 else f'each of {self.steps} steps'}"
        )
        lines = [head, self.ends] if self.ends else [head]
        lines += ["It holds if", *(f"  - {text}" for text in self.assumptions)]
        if self.sampling not in ("shuffle", TRUNCATED) and self.neighbours == self.adjacency.value:
            lines.append(floats_in_short(f"mechanism: {self.mechanism!r}"))
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Return the answer on one line."""
        return (
            f"<Training: epsilon {self.epsilon} at delta {in_short(self.delta)}, "
            f"{self.neighbours}, {self.sampling} sampling, {self.steps} steps>"
        )

    def __float__(self) -> float:
        """Return ε as a float, as `float(epsilon)` does."""
        return float(self.epsilon)

    def _repr_html_(self) -> str:
        """Return the answer with its assumptions, for notebooks."""
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "noise_multiplier": str(self.noise_multiplier),
            "epsilon": self.epsilon.to_dict(),
            "delta": in_short(self.delta),
            "adjacency": self.neighbours,
            "sampling": self.sampling,
            "assumptions": list(self.assumptions),
            "steps": self.steps,
            "ends": self.ends,
            "mechanism": str(self.mechanism),
        }


@final
@dataclass(frozen=True, slots=True, repr=False)
class Schemes(Drawable):
    """The same training run under every sampling scheme."""

    runs: tuple[Training, ...]
    settings: Mapping[str, Any]
    """The arguments of `dpsgd` other than the noise, the sampling and the length."""
    epochs: Fraction
    """Number of passes over the dataset."""

    @property
    def title(self) -> str:
        """The settings, on one line."""
        noises = {str(run.noise_multiplier) for run in self.runs}
        noise = f", noise multiplier {noises.pop()}" if len(noises) == 1 else ""
        batch, size, delta = (
            self.settings[name] for name in ("batch_size", "dataset_size", "delta")
        )
        return f"batches of {batch} of {size}{noise}, δ = {in_short(delta)}"

    def again(self, run: Training, epochs: Number) -> Training:
        """Return the answer for one of the runs with another number of epochs."""
        most = self.settings["truncated_batch_size"] if run.sampling == TRUNCATED else None
        options = {**self.settings, "truncated_batch_size": most, "sampling": run.sampling}
        return dpsgd(run.noise_multiplier, epochs=epochs, **options)

    def __str__(self) -> str:
        """Return a table, followed by the first assumption of each row."""
        rows = [("sampling", "noise multiplier", "epsilon", "neighbours")]
        rows += [
            (
                run.sampling,
                f"{float(run.noise_multiplier):.6g}",
                f"{run.epsilon:.4g}",
                run.neighbours,
            )
            for run in self.runs
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        lines += [f"{run.sampling}: {run.assumptions[0]}" for run in self.runs]
        return "\n".join(lines)

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"schemes": [run.to_dict() for run in self.runs]}


@forgiving
def dpsgd(
    noise_multiplier: Number,
    batch_size: int,
    dataset_size: int,
    *,
    delta: Number,
    epochs: Number | None = None,
    steps: int | None = None,
    sampling: str = "poisson",
    group: int = 1,
    truncated_batch_size: int | None = None,
    neighbours: str | None = None,
) -> Training:
    """Enclose ε(δ) of a DP-SGD run.

    Parameters
    ----------
    noise_multiplier
        Standard deviation of the noise added to the sum of gradients, in units of the clipping
        norm.
    batch_size, dataset_size
        Numbers of records in a batch (for Poisson sampling, the expected number) and in the
        dataset.
    delta
        δ in (0, 1).
    epochs, steps
        The length of the run; give one of the two. A run of `epochs` has
        ⌈epochs · dataset_size/batch_size⌉ steps.
    sampling
        How batches are formed. With add-remove neighbours: "poisson"; "truncated-poisson" (a batch
        of more than truncated_batch_size records is cut to this size); "random-allocation" (each
        record is in one random step of each epoch). With replace-one neighbours:
        "without-replacement"; "with-replacement" (each place of a batch takes a uniformly random
        record). With zero-out neighbours: "shuffle" (each epoch cuts a random order of the records
        into batches). If only bounds on ε are known, the answer says what proves each;
        `dpassay.accountant.training.schemes` has the proofs.
    group
        Number of records that a person contributes; neighbours differ in all of them. The answer is
        exact for Poisson sampling and an interval otherwise.
    truncated_batch_size
        Number of records kept, at random, of a larger batch. Truncated Poisson sampling only.
    neighbours
        "add-remove", "replace-one" or "zero-out" (in one of the two datasets the record's gradient
        is 0). None selects the relation listed under `sampling`. Under another relation the answer
        may be an interval.

    Raises
    ------
    InvalidInputError
        If a setting is out of range, or the sampling is unknown.

    Examples
    --------
    >>> run = dpsgd(noise_multiplier="1.1", batch_size=256, dataset_size=60000, epochs=30,
    ...             delta="1e-5")
    >>> f"{run.epsilon:.4g}"
    '1.636'
    """
    loop = Loop.of(batch_size, dataset_size, epochs, steps, group, most=truncated_batch_size)
    return _answer(noise_multiplier, loop, delta, sampling, neighbours)


def _answer(
    noise_multiplier: Number, loop: Loop, delta: Number, sampling: str, neighbours: str | None
) -> Training:
    sigma, most = exact(noise_multiplier, "noise_multiplier"), probability("delta", delta)
    if sigma.sign <= 0:
        raise expected(
            "noise_multiplier", noise_multiplier, "> 0", "Without noise there is no guarantee."
        )
    if most.rational == 1:
        raise expected("delta", delta, "< 1", "Every mechanism is (ε, 1)-DP, at any ε.")
    if most.sign == 0:
        raise expected("delta", delta, "> 0", "At delta = 0 no Gaussian noise has a finite ε.")
    found = scheme(sampling, sigma, loop, neighbours)
    epsilon, ends = found.epsilon(most)
    return Training(
        noise_multiplier=sigma,
        epsilon=at_least_zero(epsilon),
        delta=delta,
        adjacency=found.adjacency,
        neighbours=neighbours or OWN[sampling],
        sampling=sampling,
        assumptions=(*found.assumptions, _CLIPPED, "Only the noisy sums are released."),
        steps=found.steps,
        sampling_prob=found.share,
        mechanism=found.mechanism,
        ends=ends,
    )


training = dpsgd
"""Another name of `dpsgd`: that of its command."""


@forgiving
def dpsgd_noise(
    epsilon: Number,
    batch_size: int,
    dataset_size: int,
    *,
    delta: Number,
    epochs: Number | None = None,
    steps: int | None = None,
    sampling: str = "poisson",
    group: int = 1,
    truncated_batch_size: int | None = None,
    neighbours: str | None = None,
) -> Training:
    """Find a noise multiplier for which ε(δ) of a DP-SGD run is at most `epsilon`.

    For Poisson sampling this is the least noise multiplier, rounded up to twelve digits (fewer if
    that would take long). For shuffled batches it is the least one whose upper bound of ε is at
    most `epsilon`. For random allocation ε is within a relative 1e-7 of `epsilon`. In all other
    cases the upper bound of ε lies between 99% and 100% of `epsilon`; this takes up to 30 seconds.

    The other parameters, the errors and the result are those of `dpsgd`.

    Examples
    --------
    >>> run = dpsgd_noise(3, batch_size=256, dataset_size=60000, epochs=30, delta="1e-5")
    >>> print(run.noise_multiplier)
    0.817603254606
    """
    loop = Loop.of(batch_size, dataset_size, epochs, steps, group, most=truncated_batch_size)
    budget, most = exact(epsilon, "epsilon"), probability("delta", delta)
    if budget.sign <= 0:
        raise expected("epsilon", epsilon, "> 0", "Give the ε that the whole run may have.")
    if most.sign == 0:
        raise expected("delta", delta, "> 0", "At delta = 0 no Gaussian noise has a finite ε.")
    scheme(sampling, exact(1), loop, neighbours)  # refuse an unknown sampling before the search

    def run(sigma: Number) -> Training:
        return _answer(sigma, loop, delta, sampling, neighbours)

    sampled, allocated = sampling != "shuffle", sampling == "random-allocation"
    found = calibrate(
        Gaussian,
        EpsilonDelta(budget, most),
        adjacency=Adjacency.ADD_REMOVE,
        count=1 if allocated else loop.steps if sampled else loop.whole_epochs[1],
        sampling_prob=loop.share if sampled and not allocated else 1,
    )
    least = getattr(found.mechanism, found.argument)
    aim = float(budget.ball().mid())
    own = neighbours in {None, OWN[sampling]}
    if own and loop.group == 1 and sampling in {"poisson", "shuffle"}:
        return run(least)
    start = loop.group * (_near(float(least), loop) if allocated else float(least))
    if sampling in {"without-replacement", REPLACED} or not own:
        start *= 2  # replacing a record moves a sum by up to 2C
    return _between(run, start, aim, _CLOSEST if own and allocated and loop.group == 1 else _CLOSE)


@forgiving
def training_schemes(
    batch_size: int,
    dataset_size: int,
    *,
    delta: Number,
    noise_multiplier: Number | None = None,
    epsilon: Number | None = None,
    epochs: Number | None = None,
    steps: int | None = None,
    group: int = 1,
    truncated_batch_size: int | None = None,
) -> Schemes:
    """Return `dpsgd`, or `dpsgd_noise` if `epsilon` is given, for every sampling scheme.

    Truncated Poisson sampling is included if `truncated_batch_size` is given.

    Examples
    --------
    >>> table = training_schemes(10, 100, noise_multiplier=2, epochs=1, delta="1e-5")
    >>> [run.sampling for run in table.runs]
    ['poisson', 'random-allocation', 'shuffle', 'without-replacement', 'with-replacement']
    """
    if (noise_multiplier is None) == (epsilon is None):
        raise InvalidInputError("Expected one of noise_multiplier=… and epsilon=….")
    ask = dpsgd if epsilon is None else dpsgd_noise
    given: Any = noise_multiplier if epsilon is None else epsilon
    loop = Loop.of(batch_size, dataset_size, epochs, steps, group, most=truncated_batch_size)
    settings: dict[str, Any] = {
        "batch_size": batch_size,
        "dataset_size": dataset_size,
        "delta": delta,
        "group": group,
        "truncated_batch_size": truncated_batch_size,
    }
    runs = []
    for sampling in SCHEMES:
        limit = truncated_batch_size if sampling == TRUNCATED else None
        if sampling != TRUNCATED or limit is not None:
            asked = {**settings, "truncated_batch_size": limit, "sampling": sampling}
            runs.append(ask(given, epochs=epochs, steps=steps, **asked))
    return Schemes(tuple(runs), settings, loop.steps * loop.share)


def _near(least: float, loop: Loop) -> float:
    """Estimate the noise multiplier of random allocation from that of one Gaussian release.

    It equates χ² divergences: a Gaussian release of large σ has about 1/σ², and E epochs of random
    allocation to t steps have about E(e^{1/σ²} − 1)/t.
    """
    epochs, steps = loop.whole_epochs[1], loop.full_batches
    return 1 / math.sqrt(math.log1p(steps / (epochs * least**2)))


def _between(
    run: Callable[[Number], Training], start: float, budget: float, close: float
) -> Training:
    """Return a run whose upper bound of ε is between close·budget and budget.

    The search starts at σ = start and takes secant steps in (ln σ, ln ε); it bisects where a step
    leaves the bracket.
    """
    digits = math.ceil(-math.log10(1 - close)) + 2
    aim = math.log((1 + close) / 2 * budget)
    low, high = -math.inf, math.inf  # ln σ with more ε than the budget, and with less
    best, tried, slope, last = None, run(f"{start:.4g}"), _USUAL_SLOPE, None
    for _ in range(_MOST_RUNS):
        upper = float(tried.epsilon.upper)
        x, y = math.log(float(tried.noise_multiplier)), math.log(upper)
        if upper <= budget:
            high, best = min(x, high), tried if x < high else best
            if upper >= close * budget:
                break
        else:
            low = max(x, low)
        if last is not None and x != last[0] and (y - last[1]) / (x - last[0]) < 0:
            slope = (y - last[1]) / (x - last[0])
        last = x, y
        following = x + (aim - y) / slope
        if not low < following < high:
            following = (low + high) / 2
        tried = run(f"{math.exp(following):.{digits}g}")
    if best is None:
        raise UndecidedError(
            f"Found no noise multiplier up to {math.exp(low):.4g} with epsilon at most "
            f"{budget:g}. Choose a noise multiplier and ask dpsgd for its epsilon."
        )
    return best
