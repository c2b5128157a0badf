"""M of a random allocation: moments of W = (1/t) Σ_j X_j, X = e^{μZ − μ²/2}, on a vertical line.

W is dP/dQ under Q, so that M(z) is E W^{1+z} for the mixture as P, E W^{−z} for the mixture as Q:
E W^{n−y} or its conjugate, with y = b + iτ, τ ≥ 0, for n with 2 ≤ b < 3. With
φ(λ) = E W^n e^{−λW}, turned to λ = ie^u,

    I(τ) = ∫ e^{uy} φ(ie^u) du = e^{−iπy/2} Γ(y) E W^{n−y}.

*Fall.* ln W is μΣZ_j/t and something independent of it: with v = μ²/t, |E W^{n−y}| is at most
e^{−vτ²/2} E W^{n−b}. So |I(τ)| ≤ √(2π) |y|^{b−1/2} e^{1/(6b)} e^{−vτ²/2} E W^{n−b} (DLMF 5.6.9),
and e^{−π|τ|} times that for τ < 0.

*Step.* The sum over u = kh is Σ_m I(τ + mR), R = 2π/h. For τ ≤ T < R, as (m + 1)^κ ≤ 2^{mκ} with
κ = b − 1/2, the terms m ≠ 0 are at most √(2π) e^{1/(6b)} (b + R)^κ E W^{n−b} Σ_m (p^m + q^m),
p = 2^κ e^{−vR²/2}, q = 2^κ e^{−π(R−T)}.

*Start.* |φ| ≤ E W^n: up to u₀ = k₀h the sum is at most h E W^n e^{bu₀}/(1 − e^{−bh}). From there on
φ(ir) is Σ_{j<J} (−ir)^j E W^{n+j}/j! up to r^J E W^{n+J}/J!, as long as that is small.

*End.* Moving all Z_j by −iη, ω = μη in (0, π/2], gives |φ(ir)| ≤ e^{tη²/2} E W^n e^{−ρW} with
ρ = r sin ω, and W^n e^{−ρW} ≤ (κ/eρ)^κ W^{n−κ}: from u₁ = k₁h on the sum is at most
h e^{tη²/2} (κ/(e sin ω))^κ E W^{n−κ} e^{−(κ−b)u₁}/(1 − e^{−(κ−b)h}).

*φ* is n! [x^n] Ψ(x)^t with Ψ(x) = Σ_k x^k/k! E (X/t)^k e^{−irX/t}, cut off after x^n. These are
trapezoidal sums on the line Im z = −a, 2aμ < π, of step γ: between Im z = 0 and −2a the integrand
is at most m_k |n(z − kμ)|, m_k = E (X/t)^k, n the normal density, so that the error is at most
m_k (e^{2a²} + 1)/(e^{2πa/γ} − 1) (Trefethen and Weideman 2014, Theorem 5.1), and beyond −Jγ and
Jγ + nμ at most m_k e^{a²/2} erfc(Jγ/√2). γ is a multiple of h/μ: then re^{μx} are powers of e^h.

*Bounds.* E W^j = j! [x^j] (Σ_k m_k x^k/k!)^t for whole j; ln E W^a is convex in a, so that chords
bound it. As W ≥ e^{μΣZ_j/t − μ²/2} (inequality of the means), E W^{−r} ≤ e^{rμ²/2 + r²v/2}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, final

from flint import acb, acb_mat, acb_poly, acb_series, arb, arb_series

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.compositions.losses import Factor

_LEAST_POWER = 2
"""The least b: the larger it is, the shorter the start, and the more n and what cancels."""
_FARTHEST = 3.0
"""The largest line c: n grows with it, a smaller one costs more nodes."""
_MOST_ORDER = 64
"""Largest whole a of E W^a: beyond it only estimates are asked for, and the end of a period."""
_BITS = 512
"""Bits of moments, and of bounds."""
_MOST_INTEGRAL = 12.0
"""Largest c at which E W^{−c} is bounded by its integral."""
_MOST_TABLE = 1_000_000
"""Products that such a bound takes at most: about a second."""
_BOUND_DIGITS = 12
"""Digits of the bound of E W^{−c}."""
_GUARD = 40
"""Bits of all sums beyond those that are wanted: rounding, and what powers lose."""
_TALLEST = 3.0
"""The largest a: e^{2a²} is lost there."""
_INSIDE = 0.99
"""Share of the widest strip that is used."""
_ANGLES = tuple(math.pi / 2 * _INSIDE * 2.0 ** (-i / 2) for i in range(60))
"""Angles ω that are tried."""
_POWERS = tuple(2.0 ** (i / 2) for i in range(5, 30))
"""The κ that are tried, above every n."""
_BLOCK = 1 << 16
"""Terms of a matrix product at a time."""
_TERM = 0.15
"""What a term of a matrix product takes, in products of complex integers."""
_NARROW, _WIDE = 0.1, (-30.0, 22.0)
"""Step and ends of an estimate of E W^{−c}, in u."""


class _Sums(NamedTuple):
    """What the search in floats has chosen: nothing that is proved rests on it."""

    n: int
    points: int
    """2π/(h · the step of the contour)."""
    first: int
    near: int
    last: int
    """k₀, where the powers of r end, and k₁."""
    order: int
    """J."""
    power: float
    turn: float
    """κ and ω of the end."""
    high: float
    stride: int
    """a, and γμ/h."""
    reach: int
    """J."""
    bits: int

    @property
    def width(self) -> int:
        """Terms of ψ."""
        return 2 * self.reach + 1


@final
@dataclass(frozen=True)
class Allocation(Factor):
    """The loss of (1/t) Σ_j N(μe_j, I) against N(0, I); the mixture is P, else Q."""

    mu: str
    steps: int
    first: bool

    farthest = _FARTHEST

    @property
    def highest(self) -> float:  # type: ignore[override]  # that of a class elsewhere
        """Return the largest c at which M is bounded well and soon."""
        return _MOST_ORDER - 1.0 if self.first else _MOST_INTEGRAL

    @property
    def _fall(self) -> float:
        return float(arb(self.mu)) ** 2 / self.steps

    def estimate(self, line: float) -> float:
        """Return ln M(c): by a parabola through whole orders, or by a sum."""
        if not self.first:
            terms = [line * u + log for u, log in _transform(float(arb(self.mu)), self.steps)]
            most = max(terms)
            whole = _NARROW * sum(math.exp(term - most) for term in terms)
            whole += math.exp(terms[0] - most) * (1 / line - _NARROW / 2)  # ψ is 1 before
            return most + math.log(whole) - math.lgamma(line)
        logs = _log_moments(self.mu, self.steps)
        middle = min(max(round(1 + line), 1), _MOST_ORDER - 1)
        low, at, high = (float(logs[middle + i]) for i in (-1, 0, 1))
        d = 1 + line - middle
        return at + d * (high - low) / 2 + d * d * (high - 2 * at + low) / 2

    def close(self, line: arb) -> bool:
        """Whether the bound is M(c): at whole orders up to 64 of the mixture as P."""
        return self.first and line.is_integer() and bool(line < _MOST_ORDER)

    def log_moment(self, line: arb, digits: float) -> arb:
        """Bound ln M(c) from above: see *Bounds*."""
        return _log_moment(self, str(line.str(30)) if line.rad() else float(line))

    def estimate_cap(self, line: float, end: float) -> tuple[float, float]:
        """Return the bound below."""
        return self.estimate(line) - self._fall * end**2 / 2, 0.0

    def log_cap(self, line: arb, end: arb, height: float, digits: float) -> arb:
        """Bound ln |M(c + it)|: see *Fall*."""
        return self.log_moment(line, digits) - arb(self.mu) ** 2 / self.steps * end**2 / 2

    def closing(self, line: arb, end: arb, height: float, log_cap: arb) -> arb:
        """Return 1/(vT²)."""
        return self.steps / (arb(self.mu) * end) ** 2

    def cost(self, line: float, end: float, digits: float) -> float:
        """Return that of a transform."""
        return 20

    def table(self, line: float, step: float, nodes: int, digits: float) -> float:
        """Return the terms of the matrix product."""
        sums = self._sums(line, step, nodes, digits)
        return _TERM * (sums.last - sums.near) * (sums.width + sums.n) * (sums.n + 1)

    def _sums(self, line: float, step: float, nodes: int, digits: float) -> _Sums:
        mu, t, v, top = float(arb(self.mu)), self.steps, self._fall, step * nodes
        n = max(math.ceil(_LEAST_POWER + line + 1 if self.first else _LEAST_POWER - line), 0)
        b = n - 1 - line if self.first else n + line
        wanted = digits * math.log(10) + 3
        moment = float(_log_moments(self.mu, t)[n])
        rate = max(math.sqrt(2 * wanted / v), top + wanted / math.pi)
        far = wanted + b * math.log(b + 2 * rate)
        rate = max(math.sqrt(2 * far / v), top + far / math.pi)
        end, power, turn = min(
            (
                (
                    t * (w / mu) ** 2 / 2
                    + k * (math.log(k / math.sin(w)) - 1)
                    + (k - n) * (mu * mu + (k - n) * v) / 2
                    + wanted
                    - math.log(b)
                )
                / (k - b),
                k,
                w,
            )
            for k in _POWERS
            for w in _ANGLES
            if k > b + 1
        )
        high = min(_INSIDE * math.pi / (2 * mu), _TALLEST)
        fall = wanted + math.log(t) + moment + b * max(end, 0.0) + 2 * high**2 + 5
        widest = 2 * math.pi * high / fall * mu
        points = math.ceil(max(rate, 2 * math.pi / widest) / step)
        h = 2 * math.pi / (points * step)
        stride = max(1, math.floor(widest / h))
        first = math.floor(-(wanted + max(moment, 0.0) + 1) / b / h)
        logs = _log_moments(self.mu, t)
        near, order = max(
            ((math.lgamma(j + 1) - fall - float(logs[n + j])) / j, j)
            for j in range(1, _MOST_ORDER - n)
        )
        last = math.ceil(end / h)
        return _Sums(
            n,
            points,
            first,
            min(max(math.floor(near / h), first), last),
            last,
            order,
            power,
            turn,
            high,
            stride,
            math.ceil(math.sqrt(2 * fall) * mu / (stride * h)),
            math.ceil(fall / math.log(2)) + _GUARD,
        )

    def along(self, line: arb, step: arb, nodes: int, digits: float) -> list[acb]:
        """Enclose M along the line by one discrete transform."""
        chosen = self._sums(float(line), float(step), nodes, digits)
        with ctx.workprec(max(chosen.bits, ctx.prec)):
            found = _along(self, chosen, line, step, nodes)
        return [acb(value.real, -value.imag) for value in found] if self.first else found


def _along(of: Allocation, sums: _Sums, c: arb, step: arb, nodes: int) -> list[acb]:
    """Return E W^{n−y} for τ = j · step."""
    n, t, mu = sums.n, of.steps, arb(of.mu)
    b = n - 1 - c if of.first else n + c
    h = 2 * arb.pi() / (sums.points * step)
    folded = [acb(0)] * sums.points
    factorial = math.factorial(n)
    with ctx.workcap(n + 1):
        for k, psi in enumerate(_series(mu, t, h, sums), sums.near + 1):
            folded[k % sums.points] += h * factorial * (h * k * b).exp() * (psi**t)[n]
    for k, value in enumerate(_powers(of, h, sums), sums.first + 1):
        folded[k % sums.points] += h * (h * k * b).exp() * value
    whole = acb.dft(folded, inverse=True)
    error = _error(of, sums, b, h, nodes * step).upper()
    doubtful = acb(arb(0, error), arb(0, error))
    found = []
    for j in range(nodes + 1):
        y = acb(b, j * step)
        value = whole[j] * sums.points + doubtful
        found.append(value * (acb(0, arb.pi() / 2) * y).exp() * y.rgamma())
    return found


def _error(of: Allocation, sums: _Sums, b: arb, h: arb, top: arb) -> arb:
    """Return the bounds of *Step*, *Start* and *End*, for τ ≤ T."""
    n, t, mu = sums.n, of.steps, arb(of.mu)
    v, rate, half = mu * mu / t, 2 * arb.pi() / h, b - arb(1) / 2
    moment = _moments(of.mu, t)[n]
    scale = (2 * arb.pi()).sqrt() * (1 / (6 * b)).exp() * (b + rate) ** half
    scale *= _log_bound(of.mu, t, n - b).exp()
    p = arb(2) ** half * (-v * rate * rate / 2).exp()
    q = arb(2) ** half * (-arb.pi() * (rate - top)).exp()
    if not (p < 1 and q < 1):
        return arb.pos_inf()
    error: arb = scale * (p / (1 - p) + q / (1 - q))
    error += h * moment * (b * sums.first * h).exp() / (1 - (-b * h).exp())
    k, w = arb(sums.power), arb(sums.turn)
    log = t * (w / mu) ** 2 / 2 + k * ((k / w.sin()).log() - 1) + _log_bound(of.mu, t, n - k)
    falls = k - b
    return error + h * (log - falls * sums.last * h).exp() / (1 - (-falls * h).exp())


def _powers(of: Allocation, h: arb, sums: _Sums) -> list[acb]:
    """Return φ at u = kh, first < k ≤ near."""
    listed = _moments(of.mu, of.steps)[sums.n :]
    turns = (1, acb(0, -1), -1, acb(0, 1))
    each = [turns[j % 4] * listed[j] / math.factorial(j) for j in range(sums.order)]
    polynomial, rest = acb_poly(each), listed[sums.order] / math.factorial(sums.order)
    found = []
    for k in range(sums.first + 1, sums.near + 1):
        r = (h * k).exp()
        error = (rest * r**sums.order).upper()
        found.append(polynomial(acb(r)) + acb(arb(0, error), arb(0, error)))
    return found


def _series(mu: arb, t: int, h: arb, sums: _Sums) -> list[acb_series]:
    """Return Ψ at u = kh, near < k ≤ last."""
    n, a, stride, reach = sums.n, arb(sums.high), sums.stride, sums.reach
    step = stride * h / mu
    more = math.ceil(float((n * mu / step).upper()))
    scale, weights = step / (2 * arb.pi()).sqrt(), []
    for x in (acb(step * j, -a) for j in range(-reach, reach + more + 1)):
        weight, ratio = scale * (-x * x / 2).exp(), (mu * x - mu * mu / 2).exp() / t
        weights.append([weight * ratio**k / math.factorial(k) for k in range(n + 1)])
    columns = acb_mat(weights)
    turned = -acb(0, arb.pi() / 2 - mu * a).exp() * (-mu * mu / 2).exp() / t
    low = sums.near + 1 - reach * stride
    high = sums.last + (reach + more) * stride
    each = [(turned * (h * k).exp()).exp() for k in range(low, high + 1)]
    error = ((2 * a * a).exp() + 1) / (2 * arb.pi() * a / step).expm1()
    error += (a * a / 2).exp() * (step * reach / arb(2).sqrt()).erfc()
    doubtful = []
    for k in range(n + 1):
        most = (error * (k * (k - 1) * mu * mu / 2).exp() / arb(t) ** k).upper()
        most /= math.factorial(k)
        doubtful.append(acb(arb(0, most.upper()), arb(0, most.upper())))
    width, found = 2 * reach + more + 1, []
    span, height = (width - 1) * stride + 1, max(1, _BLOCK // width)
    length = sums.last - sums.near
    for top in range(0, length, height):
        ends = range(top, min(top + height, length))
        values = acb_mat([each[i : i + span : stride] for i in ends]) * columns
        for i in range(len(ends)):
            terms = [values[i, k] + doubt for k, doubt in enumerate(doubtful)]
            found.append(acb_series(terms, prec=n + 1))
    return found


@lru_cache(maxsize=64)
def _moments(mu: str, t: int) -> list[arb]:
    """Return E W^j for whole j."""
    length = _MOST_ORDER + 1
    with ctx.workprec(_BITS), ctx.workcap(length):
        square = arb(mu) ** 2
        terms = [
            (k * (k - 1) * square / 2).exp() / arb(t) ** k / math.factorial(k)
            for k in range(length)
        ]
        whole = arb_series(terms, prec=length) ** t
        return [whole[j] * math.factorial(j) for j in range(length)]


@lru_cache(maxsize=64)
def _log_moments(mu: str, t: int) -> list[arb]:
    with ctx.workprec(_BITS):
        return [moment.log() for moment in _moments(mu, t)]


@lru_cache(maxsize=256)
def _log_moment(of: Allocation, line: float | str) -> arb:
    with ctx.workprec(_BITS):
        c = arb(line)
        at = float(c), 1.0, 0, _BOUND_DIGITS
        bound = _log_bound(of.mu, of.steps, 1 + c if of.first else -c)
        if of.first or c > _MOST_INTEGRAL or of.table(*at) > _MOST_TABLE:
            return bound
    sums = of._sums(*at)
    with ctx.workprec(sums.bits):
        (found,) = _along(of, sums, c, arb(1), 0)
        return found.real.log() if found.real > 0 else bound


def _log_bound(mu: str, t: int, order: arb) -> arb:
    """Return a bound of ln E W^a: chords for a ≥ 0."""
    if not order >= 0:
        r, square = -order, arb(mu) ** 2
        return r * square / 2 + r * r * square / (2 * t)
    if order > _MOST_ORDER:  # W^a is convex: a mean of powers is no smaller than one of the mean
        return order * (order - 1) * arb(mu) ** 2 / 2
    whole = min(int(float(order.mid())), _MOST_ORDER - 1)
    logs: list[arb] = _log_moments(mu, t)
    found: arb = logs[whole] + (order - whole) * (logs[whole + 1] - logs[whole])
    if not 0 <= order - whole <= 1:  # the ball holds a whole number: a chord on either side
        found = found.max(logs[whole] + (order - whole) * (logs[whole] - logs[whole - 1]))
    return found


@lru_cache(maxsize=64)
def _transform(mu: float, t: int) -> list[tuple[float, float]]:
    """Estimate t ln E e^{−e^u X/t} for many u."""
    spots = [(i / 5, math.exp(mu * i / 5 - mu * mu / 2) / t) for i in range(-60, 61)]
    weights = [(math.exp(-x * x / 2) / (5 * math.sqrt(2 * math.pi)), ratio) for x, ratio in spots]
    found = []
    low, high = (round(end / _NARROW) for end in _WIDE)
    for i in range(low, high):
        u = i * _NARROW
        psi = sum(weight * math.exp(-math.exp(u) * ratio) for weight, ratio in weights)
        if psi <= 0:
            break
        found.append((u, t * math.log(psi)))
    return found
