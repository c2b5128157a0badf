r"""White-box audits of one step of DP-SGD: the update of gradients that the auditor made up.

The claim: for any gradients g_1, …, g_k of a batch the update is

    (Σ_i g_i min(1, C/‖g_i‖) + σC N(0, I))/B,    fresh noise in every step, B fixed.

Batches are chosen so that each bug moves a statistic whose law under the claim is known exactly
(T is B times the update along one direction, n runs of each batch, d coordinates):

- *clipping*: one gradient of norm 1000 C. The mean of T is N(C, σ²C²/n); larger: refuted.
- *batch and microbatches*: k equal gradients of norm 1000 C for k = 2 and 5. The mean of T is
  N(kC, σ²C²/n). Too large: divided by the real size of the batch; too small: several gradients were
  clipped together. Two-sided.
- *noise*: no gradient at all. B² ‖update‖²/(σC)² summed over runs is χ²_{nd}; too small: refuted.
- *reuse*: half the mean square of differences of consecutive updates of one batch, over disjoint
  pairs, by the mean square of the updates without a gradient: Fisher's law with ⌊n/2⌋d and nd
  degrees of freedom, whatever σ is; too small, the noise is shared.
- *leak*: the scores T with and without one gradient of norm 1000 C go to `audit_scores` with the
  claim of 1/σ-GDP; its exact binomial test supposes nothing about the noise.

Each of these six p-values is tested at a sixth of the significance: a correct step is accused of
anything with probability at most that (union bound). An allowance for rounding of 1e-5 of each
mean and of each variance makes the tests no less valid.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from dpassay.accountant.errors import InvalidInputError, NeitherTrueNorFalse, expected
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.reading import few
from dpassay.verifier.audit.kinds.result import COMPARE, AuditResult, Outcome
from dpassay.verifier.audit.kinds.samples import audit_scores
from dpassay.verifier.audit.runs.blocks import generator

Floats: TypeAlias = NDArray[np.float64]
Step: TypeAlias = Callable[[Floats, np.random.Generator], Any]

_STEP = 903
"""The part of the seed that the runs of a step have to themselves."""
_TESTS = 6
"""Tests among which the significance is divided."""
_LARGE = 1000.0
"""Norm of the gradients over the clipping norm."""
_ROUNDING = 1e-5
"""Relative, of means and variances: single precision passes."""
_NOT_CENTRED = 1e-9
"""Chance at which updates of an empty batch are taken for more than noise."""
_FAR = 4.0
"""Standard deviations by which means and noise may miss a multiple: 6e-5 of them do by chance."""
_FEWEST = 40
"""Steps of a batch: the audit of the leak needs as many."""


@final
@dataclass(frozen=True)
class StepFinding(NeitherTrueNorFalse):
    """One test of a step."""

    compare: ClassVar[str] = ".refuted"
    name: str
    p_value: float
    refuted: bool
    said: str


@final
@dataclass(frozen=True, repr=False)
class StepResult(NeitherTrueNorFalse):
    """What the updates of one step tell."""

    compare: ClassVar[str] = COMPARE
    outcome: Outcome
    findings: tuple[StepFinding, ...]
    leak: AuditResult | None
    """The audit of the scores with and without a gradient; None where they repeat."""
    significance: float
    seed: int

    @property
    def refuted(self) -> bool:
        """Whether anything that is claimed of the step was refuted."""
        return self.outcome is Outcome.REFUTED

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "schema_version": 1,
            "verdict": self.outcome.value,
            "findings": [dataclasses.asdict(each) for each in self.findings],
            "leak": None if self.leak is None else self.leak.to_json(),
            "significance": self.significance,
            "seed": str(self.seed),
        }

    def __str__(self) -> str:
        """Return a line for each test."""
        lines = [
            f"{self.outcome.value}  one step of DP-SGD, at significance {few(self.significance)}"
        ]
        for each in self.findings:
            mark = "REFUTED" if each.refuted else "ok"
            lines.append(f"  {each.name:<10} {mark:<8} p = {few(each.p_value, 3)}  {each.said}")
        return "\n".join(lines)

    __repr__ = __str__


def audit_step(
    step: Step,
    *,
    clip: Number,
    noise_multiplier: Number,
    batch: float,
    dimension: int,
    runs: int = 1000,
    significance: float = 1e-6,
    seed: int | None = None,
) -> StepResult:
    """Audit one step of DP-SGD, given the gradients of a batch.

    Parameters
    ----------
    step
        `step(gradients, rng)`: gradients of shape (k, dimension), k from 0 on, give one update.
    clip, noise_multiplier
        C and σ: the noise has standard deviation σC in each coordinate of the sum.
    batch
        B, by which the noisy sum is divided; 1 where it is not.
    dimension
        Of a gradient: at least 1.
    runs
        Steps of each of four batches.
    significance
        The largest probability with which a correct step is accused of anything.
    seed
        Of the generators that the step is given; None draws one and reports it.

    Raises
    ------
    InvalidInputError
        If an argument is out of range, an update has another shape or is not finite, those of an
        empty batch are more than noise, or all updates are multiples of what they should be.
    """
    norm, sigma = exact(clip, "clip"), exact(noise_multiplier, "noise_multiplier")
    for name, number in (("clip", norm), ("noise_multiplier", sigma)):
        if number.sign <= 0:
            raise expected(name, str(number), "> 0")
    if not batch > 0:
        raise expected("batch", batch, "> 0")
    if dimension < 1:
        raise expected("dimension", dimension, "≥ 1")
    if runs < _FEWEST:
        raise expected("runs", runs, f"≥ {_FEWEST}", "The leak is tested on a part of them.")
    if not 0 < significance < 1:
        raise expected("significance", significance, "in (0, 1)")
    fixed = secrets.randbits(63) if seed is None else int(seed)
    c, spread = float(norm.ball()), float((norm * sigma).ball())
    each = _LARGE * c / np.sqrt(dimension)
    updates = {
        k: _updates(step, np.full((k, dimension), each), runs, fixed) * (batch / c)
        for k in (0, 1, 2, 5)
    }  # in units of the clipping norm
    _require_centred(updates[0])
    deviation, level = spread / c, significance / _TESTS
    along = {k: rows.sum(axis=1) / np.sqrt(dimension) for k, rows in updates.items()}
    excess = {k: float(scores.mean()) - k for k, scores in along.items()}
    z = {k: _beyond(off, k) / (deviation / np.sqrt(runs)) for k, off in excess.items()}
    squares = float((updates[0] ** 2).sum()) / deviation**2
    degrees = runs * dimension
    _require_unscaled(
        {k: off + k for k, off in excess.items()},
        float(np.sqrt(squares / degrees)),
        _FAR * deviation / np.sqrt(runs),
        _FAR / np.sqrt(2 * degrees),
    )
    pairs = updates[1][1 : runs // 2 * 2 : 2] - updates[1][0 : runs // 2 * 2 : 2]
    apart = float((pairs**2).mean()) / (2 * deviation**2 * squares / degrees) if squares else 1.0
    found = [
        ("clipping", float(special.ndtr(-z[1])), f"a large gradient adds {excess[1] + 1:.4g} clip"),
        *(
            (f"batch of {k}", float(2 * special.ndtr(-abs(z[k]))), f"adds {excess[k] + k:.4g} clip")
            for k in (2, 5)
        ),
        (
            "noise",
            float(stats.chi2.cdf(squares * (1 + _ROUNDING), degrees)),
            f"noise multiplier {deviation * np.sqrt(squares / degrees):.4g}, claimed {sigma}",
        ),
        (
            "reuse",
            float(stats.f.cdf(apart * (1 + _ROUNDING), pairs.size, degrees)) if squares else 1.0,
            f"steps differ by {np.sqrt(apart):.4g} of what fresh noise would",
        ),
    ]
    findings = [
        StepFinding(name, p, p <= level, said + _cause(name, p <= level, excess, batch))
        for name, p, said in found
    ]
    leak = None
    try:
        claim = {"mu": ExactReal.of_rational(1) / sigma}
        leak = audit_scores(along[1], along[0], claim, significance=level, seed=fixed)
    except InvalidInputError as error:
        findings.append(StepFinding("leak", 1.0, refuted=False, said=f"not tested: {error}"))
    else:
        said = f"epsilon({few(leak.point.delta)}) ≥ {leak.epsilon:.4g}, mu ≥ {leak.mu:.4g}"
        findings.append(StepFinding("leak", leak.p_value, leak.refuted, said))
    refuted = any(each.refuted for each in findings)
    outcome = Outcome.REFUTED if refuted else Outcome.NOT_REFUTED
    return StepResult(outcome, tuple(findings), leak, significance, fixed)


def _updates(step: Step, gradients: Floats, runs: int, seed: int) -> Floats:
    """Return the updates of one batch of gradients."""
    k, dimension = gradients.shape
    rows = []
    for run in range(runs):
        update = np.array(step(gradients.copy(), generator(seed, _STEP, k, run)), np.float64)
        if update.shape != (dimension,) or not np.isfinite(update).all():
            raise InvalidInputError(
                f"Expected {dimension} finite numbers from step for a batch of {k}, not an array "
                f"of shape {update.shape}. A batch of 0 has to be answered too: Poisson samples "
                "can be empty."
            )
        rows.append(update)
    return np.array(rows)


def _require_centred(empty: Floats) -> None:
    """Raise where the updates of an empty batch are no noise around 0: no test holds for others."""
    if (empty == empty[0]).all():  # noise that is used twice, which its own test says
        return
    with np.errstate(invalid="ignore", divide="ignore"):
        least = np.nanmin(stats.ttest_1samp(empty, 0.0).pvalue)
    if least * empty.shape[1] < _NOT_CENTRED:
        raise InvalidInputError(
            f"Expected updates of a batch of 0 to be noise around 0 (p = {least:.1g} that they "
            "are). Return the update alone, of a fresh state: not the weights, no momentum, no "
            "weight decay."
        )


def _require_unscaled(means: dict[int, float], noise: float, mean_off: float, off: float) -> None:
    """Raise where means and noise are the same multiple of what they should be: as private.

    `mean_off` and `off` are `_FAR` standard deviations of a mean and, relatively, of the noise.
    What has the right means is no multiple: too little noise.
    """
    times = float(np.copysign(noise, means[5]))
    alike = all(abs(means[k] - times * k) < noise * (mean_off + off * k) for k in (1, 2, 5))
    if alike and abs(times - 1) > off and abs(means[5] - 5) > noise * mean_off:
        raise InvalidInputError(
            f"The updates are {times:.3g} times what clip and batch say, their noise too. Return "
            "the noisy mean itself, or divide batch by that number: no learning rate, no sign."
        )


def _beyond(excess: float, k: int) -> float:
    """Return by how much a mean is off beyond rounding."""
    return float(np.sign(excess) * max(0.0, abs(excess) - _ROUNDING * k))


def _cause(name: str, refuted: bool, excess: dict[int, float], batch: float) -> str:
    """Return what the likely cause is of what was refuted."""
    if not refuted:
        return ""
    if name == "clipping":
        return ": divided by the real size of the batch?" * (
            abs(excess[1] + 1 - batch) < batch / 10
        ) or (": clipping forgotten?")
    if name.startswith("batch"):
        k = int(name.rsplit(" ", maxsplit=1)[1])
        if excess[k] < 0:
            return ": gradients are clipped together (microbatches)?"
        near = abs(excess[k] + k - batch) < batch / 10
        return ": divided by the real size of the batch?" * near
    return ""
