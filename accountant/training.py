"""The privacy of DP-SGD from the settings of a training run.

A run adds N(0, (noise_multiplier · C)²) noise to the sum of gradients that are clipped to norm C,
in every step; all is in units of C. What a step sees of the data is the sampling, and each
sampling comes with its own neighbouring relation:

* "poisson": every record is in a batch with probability q = batch_size/dataset_size, independently
  of all else; neighbours by add-remove. One step is `PoissonSubsampled(Gaussian(noise_multiplier),
  q)`; with `group=k` neighbours differ in k records, of which Binomial(k, q) are in a batch, and a
  step is a `MixtureOfGaussians`. Its pair is worst for adaptively chosen steps too.
* "without-replacement": every batch is a uniform subset of batch_size records, drawn anew;
  neighbours by replace-one. Replacing a clipped gradient moves the sum by at most 2C, so a step is
  `SampledWithoutReplacement(Gaussian(noise_multiplier, l2_sensitivity=2), …)`.

Other samplings are refused: what is proved of one is no guarantee for another (shuffled batches
can leak more than Poisson batches; see Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha and Zhang,
2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from accountant import ask
from accountant.budget.calibrate import calibrate
from accountant.budget.target import EpsilonDelta
from accountant.core.adjacency import Adjacency
from accountant.core.mechanism import Mechanism
from accountant.core.validate import integer, probability
from accountant.errors import (
    InvalidInputError,
    NotApplicableError,
    UndecidedError,
    expected,
    forgiving,
    suggestion,
)
from accountant.mechanisms.additive.gaussian import Gaussian
from accountant.mechanisms.additive.mixture_of_gaussians import MixtureOfGaussians
from accountant.mechanisms.wrappers.composed import Composed
from accountant.mechanisms.wrappers.sampled_without_replacement import SampledWithoutReplacement
from accountant.mechanisms.wrappers.subsampled import PoissonSubsampled
from accountant.numbers.exact import ExactReal, Number, exact, floats_in_short
from accountant.numbers.interval import Interval

_AIM = 0.995
"""Share of the budget that the next run aims at."""
_CLOSE = 0.99
"""Share of the budget that is used at least: a closer one takes more runs."""
_MOST_RUNS = 12
"""Runs that are tried: about five are needed, and each takes seconds."""
_USUAL_SLOPE = -1.5
"""Of ln ε against ln σ, where only one run is known."""
SAMPLINGS = ("poisson", "without-replacement")
_REFUSED = ("random-allocation", "shuffle", "truncated-poisson")
_CLIPPED = "Each record's gradient is clipped to norm C; the noise is N(0, (noise_multiplier·C)²)."


@final
@dataclass(frozen=True, slots=True, repr=False)
class Training:
    """The privacy of a training run, and what it rests on."""

    noise_multiplier: ExactReal
    epsilon: Interval
    """Encloses ε(δ) of the whole run."""
    delta: Number
    adjacency: Adjacency
    sampling: str
    assumptions: tuple[str, ...]
    """What the training loop must do for this to be its guarantee."""
    steps: int
    sampling_prob: Fraction
    mechanism: Mechanism
    """All steps together."""

    def __str__(self) -> str:
        """Return the answer, and below it what it rests on."""
        head = (
            f"epsilon = {self.epsilon} at delta = {self.delta}, "
            f"with noise_multiplier = {floats_in_short(str(self.noise_multiplier))}\n"
            f"adjacency: {self.adjacency.value}; sampling: {self.sampling}, "
            f"{float(self.sampling_prob):.6g} of the records in each of {self.steps} steps"
        )
        return "\n".join([head, "if", *(f"  - {text}" for text in self.assumptions)])

    def __repr__(self) -> str:
        """Return the answer in one line."""
        return (
            f"<Training: epsilon {self.epsilon} at delta {self.delta}, {self.adjacency.value}, "
            f"{self.sampling} sampling, {self.steps} steps>"
        )

    def _repr_html_(self) -> str:
        """Return the answer with its assumptions, for notebooks."""
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "noise_multiplier": str(self.noise_multiplier),
            "epsilon": self.epsilon.to_dict(),
            "delta": str(self.delta),
            "adjacency": self.adjacency.value,
            "sampling": self.sampling,
            "assumptions": list(self.assumptions),
            "steps": self.steps,
            "mechanism": repr(self.mechanism),
        }


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
) -> Training:
    """Enclose the ε at δ of a DP-SGD run.

    Parameters
    ----------
    noise_multiplier
        Standard deviation of the noise on the sum of gradients, in units of the clipping norm.
    batch_size, dataset_size
        Records in a batch (on average, for Poisson sampling) and in the dataset.
    delta
        δ in [0, 1].
    epochs, steps
        How long the run is: one of the two. Epochs are epochs · dataset_size/batch_size steps,
        rounded up.
    sampling
        "poisson" (neighbours by add-remove) or "without-replacement" (by replace-one).
    group
        How many records a person has: neighbours differ in all of them. Poisson sampling only.

    Raises
    ------
    InvalidInputError
        For settings out of range, or a sampling that is unknown.
    NotApplicableError
        For a sampling of which no guarantee is proved here.

    Examples
    --------
    >>> run = dpsgd(noise_multiplier="1.1", batch_size=256, dataset_size=60000, epochs=30,
    ...             delta="1e-5")
    >>> f"{run.epsilon:.4g}"
    '1.636'
    """
    batch = integer("batch_size", batch_size, least=1)
    size = integer("dataset_size", dataset_size, least=1)
    people = integer("group", group, least=1)
    if batch > size:
        raise expected("batch_size", batch, f"≤ dataset_size={size}")
    sigma, most = exact(noise_multiplier, "noise_multiplier"), probability("delta", delta)
    if sigma.sign <= 0:
        raise expected("noise_multiplier", noise_multiplier, "> 0", "Without noise nothing holds.")
    share = Fraction(batch, size)
    count, how_long = _steps(epochs, steps, share)
    release, relation, assumptions = _step(sampling, sigma, batch, size, people)
    whole = release if count == 1 else Composed(release, count)
    return Training(
        noise_multiplier=sigma,
        epsilon=ask.epsilon(whole, most, adjacency=relation),
        delta=delta,
        adjacency=relation,
        sampling=sampling,
        assumptions=(*assumptions, _CLIPPED, how_long, "Only the noisy sums are released."),
        steps=count,
        sampling_prob=share,
        mechanism=whole,
    )


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
) -> Training:
    """Find a noise multiplier with which ε(δ) of a DP-SGD run is at most `epsilon`.

    With Poisson sampling it is the least one, rounded up at twelve digits (or at fewer, where fewer
    are known soon). For groups, and without replacement, where ε is known between two bounds, it is
    one with which the upper bound is at most `epsilon` and not below `_CLOSE` of it: this takes
    half a minute.

    Parameters, errors and the answer are those of `dpsgd`.

    Examples
    --------
    >>> run = dpsgd_noise(3, batch_size=256, dataset_size=60000, epochs=30, delta="1e-5")
    >>> print(run.noise_multiplier)
    0.817603254606
    """
    batch = integer("batch_size", batch_size, least=1)
    size = integer("dataset_size", dataset_size, least=1)
    budget, most = exact(epsilon, "epsilon"), probability("delta", delta)
    if budget.sign <= 0:
        raise expected("epsilon", epsilon, "> 0", "Give the ε that the whole run may have.")
    count, _ = _steps(epochs, steps, Fraction(batch, size))

    def run(sigma: Number) -> Training:
        return dpsgd(
            sigma,
            batch,
            size,
            delta=delta,
            epochs=epochs,
            steps=steps,
            sampling=sampling,
            group=group,
        )

    if most.sign == 0:
        raise expected("delta", delta, "> 0", "At delta = 0 no Gaussian noise is enough.")
    if sampling != "poisson" or group != 1:
        return _between(run, float(budget.ball().mid()))
    found = calibrate(
        Gaussian,
        EpsilonDelta(budget, most),
        adjacency=Adjacency.ADD_REMOVE,
        count=count,
        sampling_prob=Fraction(batch, size),
    )
    return run(getattr(found.mechanism, found.argument))


def _between(run: Callable[[Number], Training], budget: float) -> Training:
    """Return a run whose upper bound of ε is at most the budget, and hardly less.

    Of two runs on both sides the next one is on the line through them, of ln ε against ln σ.
    """
    low, high = None, None  # with more ε than the budget, and with less
    tried, aim = run(1), _AIM * budget
    for _ in range(_MOST_RUNS):
        upper = float(tried.epsilon.upper)
        if upper <= budget:
            high = tried if high is None or tried.noise_multiplier < high.noise_multiplier else high
            if upper >= _CLOSE * budget:
                break
        elif low is None or tried.noise_multiplier > low.noise_multiplier:
            low = tried
        known = [each for each in (low, high) if each is not None]
        x, y = (
            [math.log(float(each.noise_multiplier)) for each in known],
            [math.log(float(each.epsilon.upper)) for each in known],
        )
        slope = (y[1] - y[0]) / (x[1] - x[0]) if len(known) == 2 else _USUAL_SLOPE
        tried = run(f"{math.exp(x[-1] + (math.log(aim) - y[-1]) / slope):.4g}")
    if high is None:
        raise UndecidedError(
            f"Found no noise multiplier up to {low and low.noise_multiplier} with epsilon at most "
            f"{budget:g}. Ask dpsgd with one of your own."
        )
    return high


def _steps(epochs: Number | None, steps: int | None, share: Fraction) -> tuple[int, str]:
    """Return how many steps there are, and where the number comes from."""
    if (epochs is None) == (steps is None):
        raise InvalidInputError("Expected one of epochs=… and steps=….")
    if steps is not None:
        count = integer("steps", steps, least=1)
        return count, f"The run has {count} steps."
    number = exact(epochs, "epochs")  # type: ignore[arg-type]  # it is the one that is given
    if number.rational is None or number.rational <= 0:
        raise expected("epochs", epochs, "to be a positive rational number")
    count = math.ceil(number.rational / share)
    return count, f"{number} epochs are {count} steps (rounded up)."


def _step(
    sampling: str, sigma: ExactReal, batch: int, size: int, group: int
) -> tuple[Mechanism, Adjacency, list[str]]:
    """Return one step, the relation, and what the sampling assumes."""
    records = "one record is" if group == 1 else f"{group} records are"
    if sampling == "poisson":
        return (
            _poisson(sigma, Fraction(batch, size), group),
            Adjacency.ADD_REMOVE,
            [
                f"Every step takes each record with probability {batch}/{size}, independently: "
                "batches differ in size, and none is cut or filled up.",
                f"Neighbours: {records} added or removed.",
            ],
        )
    if sampling == "without-replacement":
        if group != 1:
            raise NotApplicableError(
                f"group={group} is answered for sampling='poisson' only. Leave group out."
            )
        return (
            SampledWithoutReplacement(Gaussian(sigma, 2), batch, size),
            Adjacency.REPLACE_ONE,
            [
                f"Every step draws {batch} of the {size} records, all subsets equally likely, "
                "independently of the steps before.",
                "Neighbours: one record is replaced by another, which moves a sum by up to 2C.",
            ],
        )
    if sampling in _REFUSED:
        raise NotApplicableError(
            f"No guarantee is proved here for sampling={sampling!r}, and that of Poisson batches "
            "is none for it. Where every record is in one batch of each epoch, an epoch is no "
            "worse than one Gaussian release, for neighbours of which one has a record's gradient "
            "set to 0: ask for Composed(Gaussian(noise_multiplier), count=epochs)."
        )
    known = [*SAMPLINGS, *_REFUSED]
    raise InvalidInputError(
        f"Expected sampling to be {SAMPLINGS[0]!r} or {SAMPLINGS[1]!r}, not {sampling!r}. "
        f"{suggestion(str(sampling), known)}"
    )


def _poisson(sigma: ExactReal, share: Fraction, group: int) -> Mechanism:
    """Return one step in which a person's `group` records are each taken with probability q."""
    if group == 1:
        return PoissonSubsampled(Gaussian(sigma), ExactReal.of_rational(share))
    law = [
        math.comb(group, taken) * share**taken * (1 - share) ** (group - taken)
        for taken in range(group + 1)
    ]
    return MixtureOfGaussians(sigma, list(range(group + 1)), law)
