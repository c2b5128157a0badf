"""M of a mixture of normal laws against N(0, 1), the loss of a subsampled Gaussian release.

With weights w_i and means μ_i ≥ 0, the ratio of the densities is r(x) = Σ w_i e^{μ_i x − μ_i²/2};

    G(w) = ∫ φ(x) r(x)^w dx;   M(z) = G(1 + z) for the mixture as P, G(−z) for the mixture as Q.

Let μ be the largest mean, |η| < π/μ, p = Re w, and κ(η) = 1 for p ≥ 0, cos(μη/2)^p for p < 0. The
terms of r(x + iη) have angles between 0 and μη, so that r(x) cos(μη/2) ≤ |r(x + iη)| ≤ r(x) and
|arg r(x + iη)| ≤ μ|η|. Three consequences:

- Trapezoidal sums of φ r^w of step d have an error of at most
  2 κ(η) e^{η²/2 + |Im w| μη} G(p)/(e^{2πη/d} − 1) (Trefethen and Weideman 2014, Theorem 5.1).
- On the line x + iy, 0 < μy < π/2, let r = ρ e^{ia}: a ≥ 0, and |G(p + it)| is at most
  e^{y²/2} ∫ φ ρ^p e^{−ta} dx, which decreases in t (for t of the other sign, move down). A
  trapezoidal sum computes it: the integrand is φ r(x + iy)^{(p + it)/2} r(x − iy)^{(p − it)/2}, at
  x + iη at most φ r^p κ(y + η) e^{η²/2} where η ≤ y, or where y + η ≤ π/(2μ), because arg r(x + iv)
  is odd in v, and increases as long as μv ≤ π/2.
- e^{−ta} ≤ 1/(eta) and a ≥ sin a ≥ w_m e^{μx − μ²/2} sin(μy)/r(x), m being the largest mean. So
  |G(p + it)| ≤ C/t with C = e^{y²/2 − 1 + μ²} κ(y) E/(w_m sin μy), where E ≥ E[r(x − μ)^{p + 1}]:
  G(p + 1) for p ≥ 0; for p = −c, 2 where c ≤ 1 and w_0^{1 − c} where c > 1, for r ≥ w_0, the
  weight of the mean 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

from flint import acb, arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.compositions.losses import LN10, Factor, Tails, power_sums
from dpassay.verifier.checker.reals import UnknownError
from dpassay.verifier.checker.special import phi

_HEIGHTS = (0.01, 0.03, 0.06, 0.1, 0.17, 0.25, 0.35, 0.5, 0.65, 0.8, 0.95)
"""Candidates for y, in units of π/(2μ)."""
_STRIPS = (0.2, 0.4, 0.6, 0.8, 0.9, 0.97)
"""Candidates for η, in units of π/μ."""
_MOST_STEPS = 2000
"""Of Newton's method, from where one part alone has the level."""


@final
@dataclass(frozen=True)
class Mixture(Factor):
    """Weights and means ≥ 0, the first of them 0; the mixture is P, else Q."""

    parts: tuple[tuple[str, str], ...]
    first: bool

    def exact(self) -> list[tuple[arb, arb]]:
        """Return the weights and the means."""
        return [(arb(weight), arb(mean)) for weight, mean in self.parts]

    def _power(self, line: Any) -> Any:
        return 1 + line if self.first else -line

    @property
    def _mu(self) -> float:
        return float(arb(self.parts[-1][1]))

    def _log_kappa(self, power: float, strip: float) -> float:
        return 0.0 if power >= 0 else power * math.log(math.cos(self._mu * strip / 2))

    # Estimates: they choose parameters, and no bound rests on them.

    def estimate(self, line: float) -> float:
        """Estimate ln G on the real line."""
        terms = _float_terms(self, line, 0.0)
        return terms[0] + math.log(sum(weight for weight, _ in terms[1]))

    def estimate_cap(self, line: float, end: float) -> tuple[float, float]:
        """Estimate the least bound over the candidates for y."""
        found = []
        for share in _HEIGHTS:
            height = share * math.pi / 2 / self._mu
            top, terms = _float_terms(self, line, height)
            total = sum(weight * math.exp(-end * angle) for weight, angle in terms)
            found.append((top + math.log(total) if total > 0 else math.inf, height))
        return min(found)

    def cost(self, line: float, end: float, digits: float) -> float:
        """Return the number of nodes in x."""
        power = self._power(line)
        spacing, _ = self._spacing(power, end, digits)
        low, high = self._range(power, digits)
        return (high - low) / spacing

    def _spacing(self, power: float, end: float, digits: float) -> tuple[float, float]:
        """Return d and η for an error near 10^{−digits} relative to G(p)."""
        found = []
        for share in _STRIPS:
            strip = min(share * math.pi / self._mu, math.sqrt(2 * digits * LN10))
            fall = digits * LN10 + 2 + self._log_kappa(power, strip) + strip**2 / 2
            found.append((2 * math.pi / (fall / strip + end * self._mu), strip))
        return max(found)

    def _range(self, power: float, digits: float) -> tuple[float, float]:
        """Return where the tails of φ r^p are near 10^{−digits}."""
        mu, fall = self._mu, digits * LN10 + 2
        if power < 0:
            least = math.log(float(arb(self.parts[0][0])))
            reach = math.sqrt(2 * (fall + power * least))
            return -reach, max(reach, 2 * mu)
        grown = (power**2 - power) * mu**2 / 2 - self.estimate(power - 1 if self.first else 0)
        right = power * mu + math.sqrt(2 * (fall + max(grown, 0)))
        return -math.sqrt(2 * fall), max(right, 2 * mu)

    # Bounds.

    def _ratio(self, x: Any) -> Any:
        return sum((w * (m * x - m**2 / 2).exp() for w, m in self.exact()), arb(0))

    def _nodes(self, power: arb, spacing: arb, digits: float) -> tuple[list[arb], arb]:
        """Return the nodes, and a bound of what lies outside of them.

        Beyond μ, r ≤ e^{μx − μ²/2}; below 0, r ≤ 1; everywhere, r ≥ w_0. Φ(−x) ≤ e^{−x²/2}/2.
        """
        low, high = self._range(float(power), digits)
        first, last = math.floor(low / float(spacing)) - 1, math.ceil(high / float(spacing)) + 1
        nodes = [j * spacing for j in range(first, last + 1)]
        left, right = -nodes[0], nodes[-1]
        if power < 0:
            worst = self.exact()[0][0] ** power / 2
            return nodes, worst * ((-(left**2) / 2).exp() + (-(right**2) / 2).exp())
        mu = self.exact()[-1][1]
        over = right - power * mu
        if not (over >= 0 and right >= mu):
            raise ValueError("the nodes end before the tail")
        grown = ((power**2 - power) * mu**2 / 2 - over**2 / 2).exp()
        return nodes, ((-(left**2) / 2).exp() + grown) / 2

    def _strip_error(self, power: arb, end: arb, spacing: arb, strip: arb) -> arb:
        """Return the error of a trapezoidal sum of φ r^w, relative to G(p)."""
        mu = self.exact()[-1][1]
        kappa = (mu * strip / 2).cos() ** power.min(arb(0))
        grown = (strip**2 / 2 + abs(end) * mu * strip).exp()
        return 2 * kappa * grown / (2 * arb.pi() * strip / spacing).expm1()

    def tails(self, level: arb) -> Tails:
        """Return the chances of half-lines of x, up to the point where r has a value."""
        above = (level if self.first else -level).exp()
        if above <= self.exact()[0][0]:  # the ratio is larger everywhere
            return (arb(1), arb(1)) if self.first else (arb(0), arb(0))
        x, sign = self._root(above), 1 if self.first else -1
        own = sum((w * phi(sign * (m - x)) for w, m in self.exact()), arb(0))
        return (own, phi(-x)) if self.first else (phi(x), own)

    def _root(self, level: arb) -> arb:
        """Enclose x with r(x) = level: Newton's method, and a look at both sides.

        r is convex and rises: from the right, where one part alone has the level, x falls.
        """
        parts = self.exact()
        (weight, mean), rest = parts[-1], level - parts[0][0]
        x = ((rest / weight).log() + mean**2 / 2) / mean
        if len(parts) == 2:
            return x
        for _ in range(_MOST_STEPS):
            x = x.mid()
            slope = sum((m * w * (m * x - m**2 / 2).exp() for w, m in parts), arb(0))
            move = ((self._ratio(x) - level) / slope).mid()
            x -= move
            if abs(move) <= (1 + abs(x)) * arb(2) ** (16 - ctx.prec // 2):
                around: arb = x + arb(0, (1 + abs(x)) * arb(2) ** (20 - ctx.prec // 2))
                if self._ratio(around.lower()) <= level <= self._ratio(around.upper()):
                    return around
        raise UnknownError("the tails of this mixture")

    def log_moment(self, line: arb, digits: float) -> arb:
        """Enclose ln G(p) by its trapezoidal sum, whose error is relative to G(p)."""
        return self._log_moment(self._power(line), digits)

    def _log_moment(self, power: arb, digits: float) -> arb:
        chosen, strip = self._spacing(float(power), 0.0, digits)
        spacing = arb(chosen)
        nodes, outside = self._nodes(power, spacing, digits)
        total = sum((_density(x) * self._ratio(x) ** power for x in nodes), arb(0))
        error = self._strip_error(power, arb(0), spacing, arb(strip))
        return arb(((spacing * total + arb(0).union(outside)) / (1 + _within(error))).log())

    def log_cap(self, line: arb, end: arb, height: float, digits: float) -> arb:
        """Bound ln |G(p + it)|, t ≥ T, on the line x + iy."""
        power, mu, y = self._power(line), self.exact()[-1][1], arb(height)
        widest = max(height, math.pi / 2 / self._mu * (1 - 1e-9) - height)
        strip = min(widest, math.sqrt(2 * digits * LN10))
        fall = digits * LN10 + strip**2 / 2 + self._log_kappa(float(power), height + strip)
        spacing = arb(2 * math.pi * strip / (fall + 2))
        nodes, outside = self._nodes(power, spacing, digits)
        total = arb(0)
        for x in nodes:
            log = self._ratio(acb(x, y)).log()
            total += _density(x) * (power * log.real - end * log.imag).exp()
        below = power.min(arb(0))
        widened = (mu * (y + strip) / 2).cos() ** below
        error = 2 * widened * (arb(strip) ** 2 / 2 + self._log_moment(power, digits)).exp()
        error /= (2 * arb.pi() * strip / spacing).expm1()
        outside *= (mu * y / 2).cos() ** below
        return arb(y**2 / 2 + (spacing * total + outside + error).log())

    def closing(self, line: arb, end: arb, height: float, log_cap: arb) -> arb:
        """Return 1 + ln of how far beyond T the bound C/t falls below that of `log_cap`."""
        power, y = self._power(line), arb(height)
        (least, _), *_, (weight, mu) = self.exact()
        log_far = y**2 / 2 - 1 + mu**2 - (weight * (mu * y).sin()).log()
        if power >= 0:
            log_far += self._log_moment(power + 1, 10)
        else:
            log_far += power * (mu * y / 2).cos().log()
            log_far += ((1 + power) * least.log()).max(arb(2).log())
        return 1 + (log_far - log_cap - end.log()).max(arb(0))

    def along(self, line: arb, step: arb, nodes: int, digits: float) -> list[acb]:
        """Sum φ r^p r^{±inh} over x."""
        power, end = self._power(line), step * nodes
        chosen, strip = self._spacing(float(power), float(end), digits)
        spacing = arb(chosen)
        xs, outside = self._nodes(power, spacing, digits)
        logs = [self._ratio(x).log() for x in xs]
        weights = [
            spacing * _density(x) * (power * log).exp() for x, log in zip(xs, logs, strict=True)
        ]
        sign = 1 if self.first else -1
        turns = [acb(0, sign * step * log).exp() for log in logs]
        top = self._log_moment(power, digits).exp()
        error = _within(top * self._strip_error(power, end, spacing, arb(strip)) + outside)
        return [value + acb(error, error) for value in power_sums(weights, turns, nodes + 1)]


def _within(size: arb) -> arb:
    """Return a ball around 0."""
    return arb(0, size.upper())


def _density(x: arb) -> arb:
    return (-(x**2) / 2).exp() / (2 * arb.pi()).sqrt()


@lru_cache(maxsize=4096)
def _float_terms(
    mixture: Mixture, line: float, height: float
) -> tuple[float, list[tuple[float, float]]]:
    """Return the terms of e^{y²/2} d Σ φ |r(x + iy)|^p in floats, scaled, with the angles of r."""
    power = 1 + line if mixture.first else -line
    parts = [(float(w), float(m)) for w, m in mixture.exact()]
    mu = parts[-1][1]
    spacing = min(0.3, 0.3 / mu)
    high = 12 + max(power, 0) * mu
    found = []
    for j in range(-math.ceil(12 / spacing), math.ceil(high / spacing) + 1):
        x = j * spacing
        peak = max(math.log(w) + m * x - m * m / 2 for w, m in parts if w)
        scaled = sum(
            complex(math.cos(m * height), math.sin(m * height))
            * w
            * math.exp(m * x - m * m / 2 - peak)
            for w, m in parts
        )
        size = peak + math.log(abs(scaled))
        angle = math.atan2(scaled.imag, scaled.real)
        found.append((power * size - x * x / 2, angle))
    top = max(log for log, _ in found)
    scale = top + height**2 / 2 + math.log(spacing / math.sqrt(2 * math.pi))
    return scale, [(math.exp(log - top), angle) for log, angle in found]
