"""Noise of a counter as balls, and outputs rounded to a lattice.

A process of `accountant.streams.processes` adds and divides what its source draws. Here the source
draws balls: hundreds of digits of an exact real variate (`accountant.lazy_reals`), of which the
further digits would be uniform and independent, so that the variate is anywhere in its ball. Ball
arithmetic then gives a ball around the real noise N of every output. A sum S of inputs that were
rounded to the lattice g·ℤ, g = 2^e, is released as S + g·⌊N/g + 1/2⌋: the rounded real output, a
function of it that looks at no input.

The rounding is that of the ball's middle, and that of N too unless the ball holds a tie, an odd
multiple of g/2. In units of g a ball has radius ϱ at most 2^−320 (this is checked), so N is then
within 2ϱ of a tie. N is a sum of independent normal or Laplace variables, its density f log-concave
and symmetric, and f ≤ 1/σ (Bobkov and Chistyakov, "On concentration functions of random
variables", 2015). Row t of L R = A says ‖L_t‖·‖R e₁‖ ≥ 1, so that σ ≥ b/Δ₂ ≥ g for noise
variables of scale b, and f ≤ 1. Outside the two ties next to 0 the density at a tie is at most its
average over the unit interval before it: P(N within 2ϱ of a tie) ≤ 4ϱ(1 + 2 max f) ≤ 12ϱ. Over n
outputs the law is within n·12ϱ of that of the rounded real mechanism in total variation.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, final

from flint import arb, fmpq, fmpz

from accountant.errors import NotApplicableError, expected
from accountant.interval import Interval
from accountant.lattice import RESOLUTION
from accountant.lazy_reals import WORD, laplace, normal
from accountant.precision import ctx
from accountant.streams.noise import NoiseSource

if TYPE_CHECKING:
    import numpy as np

    from accountant.mechanisms.linear_counter import LinearCounter

PRECISION: Final = 512
_BUFFERED: Final = 1024
_GROUPS: Final = 8
_RADIUS: Final = -320
_TIES: Final = 12
_LARGEST_EPSILON: Final = 100
_LARGEST_SENSITIVITY: Final = 2.0**RESOLUTION


@final
class ExactSource(NoiseSource):
    """Noise variables as balls of some 2^−416 of their scale, at `PRECISION`.

    Parameters
    ----------
    mechanism
        Tells the kind and the scale.
    rng
        Draws.
    """

    def __init__(self, mechanism: LinearCounter, rng: np.random.Generator) -> None:
        super().__init__(mechanism, rng)
        self._law = laplace if mechanism.mu is None else normal
        with ctx.workprec(PRECISION):
            self._unit = mechanism.scale.ball()
        self._balls: list[arb] = []

    def one(self) -> arb:
        """Draw one variable, from a buffer."""
        if not self._balls:
            self._balls = self.many(_BUFFERED)
        return self._balls.pop()

    def many(self, count: int) -> list[arb]:
        """Draw many."""
        drawn = self._law(count, rng=self._rng)
        words = self._rng.integers(0, 1 << WORD, (count, _GROUPS - 1)).tolist()
        found = []
        with ctx.workprec(PRECISION):
            for index, groups in enumerate(words):
                digits, places = drawn.digits(index)
                for group in groups:
                    digits, places = digits << WORD | group, places + WORD
                half = arb(2) ** (-places - 1)
                near = arb(fmpz(2 * digits + 1)) * half + arb(0, half)
                found.append(int(drawn.sign[index]) * near * self._unit)
        return found

    def number(self, value: Fraction) -> arb:
        """Return a constant as a ball."""
        with ctx.workprec(PRECISION):
            return arb(fmpq(value.numerator, value.denominator))


@final
class Rounding:
    """The lattice of a counter, and what it costs.

    The step is the power of two 2^−32 below the scale of a noise variable, at most 1.

    Parameters
    ----------
    mechanism
        Tells the scale, the steps and ε.
    """

    def __init__(self, mechanism: LinearCounter) -> None:
        scale = float(mechanism.scale)
        if not 2.0**-900 < scale < 2.0**900:
            raise expected("scale of the noise", scale, "between 2^-900 and 2^900")
        if float(mechanism.l2_sensitivity) > _LARGEST_SENSITIVITY:
            raise expected(
                "l2_sensitivity", float(mechanism.l2_sensitivity), f"≤ {_LARGEST_SENSITIVITY:g}"
            )
        self.exponent = min(0, math.frexp(scale)[1] - 1 - RESOLUTION)
        self._steps, self._epsilon = mechanism.steps, mechanism.epsilon

    @property
    def step(self) -> Fraction:
        """The distance between neighbours of the lattice."""
        return Fraction(2) ** self.exponent

    def input(self, x: float) -> int:
        """Return an input of [0, 1] in steps: the nearest integer, in [0, 1/step]."""
        return round(math.ldexp(x, -self.exponent))

    def noise(self, value: arb) -> int:
        """Return the noise of an output in steps.

        Raises NotApplicableError for a ball that is wider than `extra_delta` allows for.
        """
        scaled = value * arb(2) ** -self.exponent
        if not scaled.rad() <= arb(2) ** _RADIUS:
            raise NotApplicableError(
                "The noise of this output is not known to 2^-320 of a step. Release a stream of "
                "fewer steps, or a whole one at once with release()."
            )
        whole = (scaled.mid() + arb(0.5)).floor().unique_fmpz()
        assert whole is not None  # a midpoint is exact
        return int(whole)

    def output(self, whole: int) -> float:
        """Return so many steps as a double, the nearest one where there are more than 2^53."""
        return (
            math.ldexp(whole, self.exponent) if abs(whole) < 1 << 53 else float(whole * self.step)
        )

    @property
    def total_variation(self) -> arb:
        """How far the law of n outputs is from that of the rounded real mechanism: 12 n 2^−320."""
        return _TIES * self._steps * arb(2) ** _RADIUS

    @property
    def extra_delta(self) -> Interval:
        """What is added to δ(ε) for ε up to 100 (or the ε of the mechanism): (1 + e^ε)·distance."""
        epsilon = arb(_LARGEST_EPSILON)
        if self._epsilon is not None:
            epsilon = epsilon.max(self._epsilon.ball())
        return Interval.of_exact(0).hull(
            Interval.of_ball((1 + epsilon.exp()) * self.total_variation)
        )


def packed(value: Any) -> Any:
    """Return a record with every ball as text: middle and radius, each a mantissa and exponent.

    >>> packed({"values": [arb(0.75), 2.0]})
    {'values': ['3:-2:0:0', 2.0]}
    """
    if isinstance(value, dict):
        return {key: packed(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [packed(entry) for entry in value]
    if isinstance(value, arb):
        return ":".join(str(int(n)) for part in (value.mid(), value.rad()) for n in part.man_exp())
    return value


def unpacked(value: Any) -> Any:
    """Return a record with its balls again: the same middles, radii that may be rounded up.

    Raises InvalidInputError where a text is none.
    """
    if isinstance(value, dict):
        return {key: unpacked(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [unpacked(entry) for entry in value]
    if isinstance(value, str):
        try:
            middle, at, radius, of = map(int, value.split(":"))
        except ValueError:
            raise expected("a number of the record", value, "to be a ball") from None
        with ctx.workprec(PRECISION + 64):
            return arb((middle, at), (radius, of))
    return value
