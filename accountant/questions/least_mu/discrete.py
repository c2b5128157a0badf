"""The least μ of discrete Gaussian noise: the largest of finitely many tests, and a bound beyond.

Z has the law P(Z = z) ∝ f(z) = e^{−z²/2v}, θ = Σ f(z), and T(k) = P(Z ≥ k) = Φ̄(t(k)) for k ≥ 1,
t(k) = −t(1 − k) for k ≤ 0. Moved by s, the test {Z ≥ k} needs

    μ_k = t(k) − t(k − s) = μ_{s + 1 − k}.

The least μ is the supremum over k, for between the tests the power is piecewise linear in the
level, and Φ(μ − z_α) is concave. For real x ≥ 1 let T(x) = f(x) S(x)/θ, S(x) = Σ_{j≥0} w_j,
w_j = e^{−(2xj + j²)/2v}, be continued, and κ_n be the cumulants of j under the weights w_j. Then
κ_n' = −κ_{n+1}/v; with λ = φ/Φ̄ the hazard, and h = −T'/T,

    t' = h/λ(t),   h = (x + κ₁)/v,   h' = (1 − κ₂/v)/v,   h'' = κ₃/v³,   λ' = λ(λ − t),
    t''/t' = A = h'/h − (λ − t) t',
    A' = h''/h − (h'/h)² − ((λ' − 1) t'² + (λ − t) t' A),   t'''/t' = A² + A'.

The moments of j fall in x, λ − t falls in t and λ' rises (Sampford 1953): their values at the ends
of a piece bound these on all of it, so that Taylor's formula bounds μ_k over many k at once.

*Beyond X.* Φ̄(u) ≥ φ(u)/(u + 1/u), so that t(x) ≥ u where u² = x²/v − g ≥ 1 and
g = 2 max(1/2, ln(√(2π) S(X)/θ) + ln(y + 1/y)) at y = x/√v ≥ 1. As λ(t) > t and κ₁ falls,

    t'(x) √v ≤ (1 + κ₁(X)/x)/√(1 − g v/x²)   for x ≥ X,

which falls: (c + ln(y + 1/y))/y² does where c + ln(y + 1/y) ≥ 1/2. So μ_k tends to s/√v.

*Much noise.* The value z drawn with weights e^{−(z − y)²/2r²} about y from N(c, v − r²) has the law
of Z + c but for factors in (1 ± τ)^{±1}, τ = 2 Σ e^{−2π²r²k²}: the weights have the sum
√(2πr²)(1 ± τ), and so has θ its own (Peikert 2010, Theorem 3.1). A test of the one is as good as
one of normal laws at distance s/√(v − r²), and factors e^{±κ} of both tails move a score by at most
κ/λ(−κ) ≤ 3κ/2 where κ ≤ 1/10: μ ≤ s/√(v − r²) + 3κ.

*Sums.* The law of a sum of n such variables is that of one with the parameter nv but for factors in
((1 + τ)/(1 − τ))^{±(n − 1)} (`accountant.pairs.discrete_gaussian_product`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple, final

from flint import arb

from accountant.errors import UndecidedError
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball
from accountant.numbers.precision import ctx
from accountant.numbers.theta import theta, upper_tail
from accountant.pairs.discrete_gaussian_product import log_spread
from accountant.questions.least_mu.curve import hazard, score

_MAX_PIECES = 4000
"""Pieces of a range that are bounded until a refusal."""
_MUCH = 50_000
"""A parameter above which sums have too many terms, for as many pieces."""
_MOST_TERMS = 100_000
"""Terms of a tail that are summed."""
_FARTHEST = 100
"""Doublings."""
_NEAREST = Fraction(1, 10)
"""The largest logarithm of a factor of probabilities that is allowed for."""


def of_sum(parameter: ExactReal, shift: int, count: int, width: Fraction) -> arb | None:
    """Enclose that of the sum of `count` such variables, each of them moved; None where v is small.

    As `least_mu` does.
    """
    spread = log_spread(parameter, count)
    if not spread <= ball(_NEAREST):
        return None
    together = ExactReal.of_rational(count) * parameter
    found = least_mu(together, count * shift, width / 2)
    if not 3 * spread <= found * ball(width) / 8:
        return None
    return found + arb(0, (3 * spread).upper())


def least_mu(parameter: ExactReal, shift: int, width: Fraction) -> arb:
    """Enclose the least μ of noise with a parameter v, moved by a shift, to a relative width.

    Where that takes too many pieces, or values, the ball is wider.

    Raises
    ------
    UndecidedError
        If then nothing is known, with the largest μ_k that was met.
    """
    return _Search(parameter, shift).enclose(1 + ball(width) / 2)


class _Slopes(NamedTuple):
    """t', A and A' somewhere, or over a piece."""

    first: arb
    a: arb
    b: arb

    @property
    def second(self) -> arb:
        """Return t''."""
        return self.first * self.a

    @property
    def third(self) -> arb:
        """Return t'''."""
        return self.first * (self.a**2 + self.b)


@final
class Beyond:
    """The scores t(x) for large x."""

    def __init__(self, parameter: ExactReal) -> None:
        self._v, self._theta = parameter.ball(), theta(parameter)
        self._root = self._v.sqrt()

    def steepest(self, x: int, *, least: int = 1) -> arb:
        """Bound t' from x on, with g of at least `least` ≥ 1; +∞ where that fails."""
        y = x / self._root
        total, mean, _, _ = moments(self._v, x)
        constant = ((2 * arb.pi()).sqrt() * total / self._theta).log()
        g = 2 * (constant + (y + 1 / y).log()).max(arb(least) / 2)
        if not (y >= 1 and y * y - g >= 1):
            return arb.pos_inf()
        return (1 + mean / x) / (1 - g / (y * y)).sqrt() / self._root


@final
class _Search:
    """The largest μ_k that was met, and proofs that no other is much larger."""

    def __init__(self, parameter: ExactReal, shift: int) -> None:
        self._exact, self._v, self._shift = parameter, parameter.ball(), shift
        self._scores: dict[int, arb] = {}
        self._moments: dict[int, tuple[arb, ...]] = {}
        self._best = arb(0)

    def enclose(self, stretch: arb) -> arb:
        """Return the ball between what some test needs and what is proved to be enough."""
        first = self._shift // 2 + 1
        for k in self._marks(first):
            self._meet(k)
        most = self._smooth()
        if most <= self._best * stretch:
            return self._best.union(self._best * stretch)
        pieces = [] if self._v > _MUCH else self._pieces(first, self._end(stretch))
        for _ in range(_MAX_PIECES if pieces else 0):
            low, high = pieces.pop()
            if not self._bounded(low, high, self._best * stretch):
                middle = (low + high) // 2
                pieces += [(low, middle), (middle + 1, high)]
            if not pieces:
                return self._best.union(self._best * stretch)
        if not most.is_finite():
            raise UndecidedError(
                f"The least mu is at least {float(self._best.lower()):.12g}; that it is not more "
                f"was not proved within {_MAX_PIECES} pieces. Ask for a larger relative_width."
            )
        return self._best.union(most)

    def _pieces(self, first: int, end: int) -> list[tuple[int, int]]:
        """Return pieces of the k, on either side of the shift."""
        inside = min(end, self._shift)
        pieces = [(first, inside)] if first <= inside else []
        if end > self._shift:
            pieces.append((max(first, self._shift + 1), end))
        return pieces

    def _smooth(self) -> arb:
        """Bound all μ_k by those of normal laws, for the best r² ≤ v/4 among 1, 2, 3 and 4."""
        found = arb.pos_inf()
        for square in range(1, 5):
            q = (-2 * arb.pi() ** 2 * square).exp()
            tau = 2 * q / (1 - q)
            kappa = tau.log1p() - (-tau).log1p()
            if self._v >= 4 * square:
                found = found.min(self._shift / (self._v - square).sqrt() + 3 * kappa)
        return found

    def _marks(self, first: int) -> list[int]:
        """Return some k, up to where discrete steps are as large as the noise."""
        far = 4 * int(float(self._v.upper())) + 4 * self._shift + 8
        return [first + int(far * (i / 24) ** 3) for i in range(25)]

    def _meet(self, k: int) -> arb:
        """Return μ_k, which is the best one where it is larger than all before."""
        found = self._score(k) - self._score(k - self._shift)
        self._best = self._best.max(found)
        return found

    def _end(self, stretch: arb) -> int:
        """Return a k from which on no test needs more than `stretch` times what some test does."""
        beyond, x = Beyond(self._exact), max(1, int(float(self._v.sqrt().upper())))
        for _ in range(_FARTHEST):
            if self._shift * beyond.steepest(x) <= self._best * stretch:
                return x + self._shift
            x += x // 4 + 1
            self._meet(x + self._shift)
        raise UndecidedError("The least mu was not told from that of small levels.")

    def _bounded(self, low: int, high: int, goal: arb) -> bool:
        """Whether μ_k ≤ goal is proved for low ≤ k ≤ high, after the middle one was met."""
        middle, s = (low + high) // 2, self._shift
        value = self._meet(middle)
        if low == high:
            return True  # it is among those that were met
        below = middle - s
        if low > s:
            slope = self._slopes(middle, middle).first - self._slopes(below, below).first
            bend = s * self._slopes(low - s, high).third
        else:  # μ_k = t(k) + t(s + 1 − k)
            slope = self._slopes(middle, middle).first - self._slopes(1 - below, 1 - below).first
            bend = self._slopes(low, high).second + self._slopes(s + 1 - high, s + 1 - low).second
        return all(
            value + slope * (k - middle) + bend.max(arb(0)) * (k - middle) ** 2 / 2 <= goal
            for k in (low, high)
        )

    def _score(self, k: int) -> arb:
        """Return t(k)."""
        if k <= 0:
            return -self._score(1 - k)
        if k not in self._scores:
            self._scores[k] = score(upper_tail(self._exact, k))
        return self._scores[k]

    def _slopes(self, low: int, high: int) -> _Slopes:
        """Return what holds on all of [low, high], low ≥ 1."""
        v = self._v
        (_, *a), (_, *b) = self._at(low), self._at(high)
        m1, m2, m3 = (one.union(other) for one, other in zip(a, b, strict=True))
        second, third = m2 - m1**2, m3 - 3 * m1 * m2 + 2 * m1**3
        h0 = (arb(low).union(arb(high)) + m1) / v
        h1, h2 = (1 - second / v) / v, third / v**3
        ends = [self._score(low), self._score(high)]
        hazards = [hazard(t) for t in ends]
        rest = [rate - t for rate, t in zip(hazards, ends, strict=True)]
        rise = [rate * less - 1 for rate, less in zip(hazards, rest, strict=True)]
        less = rest[0].union(rest[1])
        first = h0 / hazards[0].union(hazards[1])
        own = h1 / h0
        bend = own - less * first
        turn = h2 / h0 - own**2 - (rise[0].union(rise[1]) * first**2 + less * first * bend)
        return _Slopes(first, bend, turn)

    def _at(self, x: int) -> tuple[arb, ...]:
        """Return S(x), and the first three moments of j."""
        if x not in self._moments:
            self._moments[x] = moments(self._v, x)
        return self._moments[x]


def moments(v: arb, x: int) -> tuple[arb, ...]:
    """Return S and E[j], E[j²], E[j³] under the weights w_j.

    Once (1 + 1/j)³ w_{j+1}/w_j < 1, which falls, what is left out is a geometric series at most.
    """
    ratio, fall = (-(2 * x + 1) / (2 * v)).exp(), (-1 / v).exp()
    sums = [arb(1), arb(0), arb(0), arb(0)]
    weight, j = ratio, 1
    while j < _MOST_TERMS:
        term = weight
        for power in range(4):
            sums[power] += term
            term *= j
        ratio *= fall
        most = ratio * ((1 + arb(1) / j) ** 3)
        weight *= ratio
        j += 1
        if j**3 * weight < arb(2) ** -ctx.prec and most < 1:
            rest = arb(0).union(j**3 * weight / (1 - most))
            total, *others = (value + rest for value in sums)
            return total, *(value / total for value in others)
    raise UndecidedError(f"Sums of more than {_MOST_TERMS} terms are not formed.")
