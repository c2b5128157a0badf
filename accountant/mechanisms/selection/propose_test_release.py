"""Propose a bound of the local sensitivity, test it, and release with noise for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Rational
from dpassay.accountant.errors import NotApplicableError, expected
from dpassay.accountant.mechanisms.additive.laplace import Laplace, LaplacePair
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.guaranteed import Guaranteed
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.pairs.finite import FiniteLaws, FinitePair
from dpassay.accountant.pairs.tested_release import TestedReleasePair, tail
from dpassay.accountant.release import sampling

_DIGITS = 15
"""Digits to which the chance of a wrong pass is rounded up for compositions."""
_FAR = 2**20
"""Answers of an unstable dataset, in units of the noise, that an audit tells apart."""


@declared
class ProposeTestRelease(Mechanism, FiniteLaws):
    """Release an answer with noise for a proposed sensitivity, if a noisy distance is at least τ.

    Propose-test-release (Dwork and Lei 2009; Vadhan 2017, section 3.2). The distance of a dataset
    is the least number of records to change until its local sensitivity exceeds Δ: an integer ≥ 0,
    which differs by at most 1 between neighbours. The noise is Laplace noise, of both.

    Parameters
    ----------
    test_scale
        s > 0, the scale of the noise of the distance.
    threshold
        τ > 0: the answer is released if the noisy distance is at least τ.
    scale
        b > 0, the scale of the noise of the answer.
    sensitivity
        Δ > 0, what was proposed.

    Notes
    -----
    Let π(n) be the chance of a pass at the distance n, and t = Δ/b. The pairs of neighbours are:

    - both at distance 0: answers may differ by any amount, and a pass shows whose it is, in the
      limit: (π(0), 1 − π(0), 0) against (0, 1 − π(0), π(0)). δ ≥ π(0) at every ε;
    - distances n and n + 1: the local sensitivity at n + 1 is at most Δ. So the answer moves by at
      most t (`dpassay.accountant.pairs.tested_release`), and less is post-processing of that noise;
    - both at n ≥ 1: a pass with chance π(n) and noise at distance t. H is convex, so it is at most
      that of the noise alone, which is the limit of large n.

    For n + 1 ≤ τ it is π(n) = e^{−1/s}π(n + 1), for n ≥ τ it is 1 − π(n + 1) = e^{−1/s}(1 − π(n)).
    In both ranges P and Q are affine functions of one number, so that H, a convex function of both,
    is largest at an end: n = 0, the last n with n + 1 ≤ τ, the first n ≥ τ, and large n. Between
    the ranges there is at most one n. Which end is worst depends on ε: a trade-off function in
    between may lie below those of both ends, but not below that of the largest H.
    """

    example = "ProposeTestRelease(test_scale=1, threshold=12, scale=1)"
    no_variance = "ProposeTestRelease may release nothing: it has no variance."
    noise_argument = "scale"

    test_scale: Rational = Rational(least=0, strict=True)
    threshold: Rational = Rational(least=0, strict=True)
    scale: Rational = Rational(least=0, strict=True)
    sensitivity: Rational = Rational(1, least=0, strict=True)

    @property
    def _distance(self) -> Fraction:
        """The move of the answer in units of its noise, t."""
        return self.sensitivity / self.scale

    def passes(self, distance: int) -> tuple[arb, arb]:
        """Return π(n) and 1 − π(n), each without cancellation."""
        return tail((self.threshold - distance) / self.test_scale)

    @property
    def dominated_by(self) -> Mechanism:
        """Noise on the distance and on the answer, and a mass for a wrong pass, rounded up."""
        wrong = Interval.of_ball(self.passes(0)[0], _DIGITS).upper
        most = min(ExactReal.of_rational(Fraction(wrong)), ExactReal.of_rational(1))
        both = Laplace(exact(self.test_scale)), Laplace(exact(self.scale), exact(self.sensitivity))
        return Composed((*both, Guaranteed(0, most)))

    def attained(self) -> tuple[Pair, ...]:
        """Return the pairs of unstable neighbours, and of very stable ones."""
        return FinitePair(self, 0), LaplacePair(exact(self._distance))

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pairs at the ends of both ranges, and between them."""
        bend = math.floor(self.threshold)
        places = sorted({n for n in (0, bend - 1, bend, math.ceil(self.threshold)) if n >= 0})
        step = 1 / self.test_scale
        tested = tuple(
            TestedReleasePair(self._distance, (self.threshold - n) * step, step, rises)
            for n in places
            for rises in (True, False)
        )
        pairs = (*self.attained(), *tested)
        return WorstCase(
            pairs,
            pairs,
            "Unstable neighbours may have answers far apart. Of the others a distance at an end of "
            "a range is worst, in which the laws are affine functions of one number.",
            enveloped=True,
        )

    def outcomes(self, index: int) -> Sequence[object]:
        """Name the answers of two unstable neighbours, and no answer."""
        return "near the first answer", "nothing", "near the other answer"

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return those of two unstable neighbours."""
        passes, fails = self.passes(0)
        return [passes, fails, arb(0)], [arb(0), fails, passes]

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return 0 where there is no answer."""
        return None, ExactReal.of_rational(0), None

    def is_mirrored(self, index: int) -> bool:
        """Whether the reverse pair has the same outcomes backwards: it has."""
        return True

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Return 1 and the answer with noise on a lattice, or 0 and 0 where the test fails.

        The test is drawn exactly: no rounding changes its probability.

        The value: the answer, and the distance of its dataset.
        """
        answer, distance = self._read(value)
        passed = sampling.indices_by_inversion(lambda: [self.passes(distance)[1]], times, rng=rng)
        sampler = self._noise.lattice_sampler()
        noisy = np.asarray(sampler.release(answer, times, rng=rng), float).reshape(times)
        found = np.stack([passed == 1, np.where(passed == 1, noisy, 0.0)], axis=-1).astype(float)
        return found

    def _read(self, value: Any) -> tuple[float, int]:
        try:
            answer, distance = (float(entry) for entry in value)
        except (TypeError, ValueError):
            answer, distance = 0.0, -1.0
        if distance < 0 or not distance.is_integer():
            raise expected("value", value, "to be an answer and a distance, an integer ≥ 0")
        return answer, int(distance)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of the answer."""
        return self._noise.sample(size, rng=rng)

    @property
    def _noise(self) -> Laplace:
        return Laplace(exact(self.scale), exact(self.sensitivity))

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return unstable neighbours, and those about the threshold, and stable ones."""
        move, n = float(self.sensitivity), max(0, math.floor(self.threshold) - 1)
        far = _FAR * float(self.scale)
        stable = n + math.ceil(_FAR * float(self.test_scale))
        return [((0.0, 0), (far, 0)), ((0.0, n), (move, n + 1)), ((0.0, stable), (move, stable))]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw releases: their last digits tell nothing of the answer."""
        return self.release(answer, size, rng=rng)

    def variances(self) -> list[arb]:
        """Raise NotApplicableError: no answer has no error."""
        raise NotApplicableError(
            "ProposeTestRelease may release nothing: it has no variance. That of a released "
            f"answer is the variance of {self._noise!r}."
        )
