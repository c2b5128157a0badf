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

from mpmath import mp

from verify.checker.compositions.moments import Factor, Row, spin

_HEIGHTS = (0.01, 0.03, 0.06, 0.1, 0.17, 0.25, 0.35, 0.5, 0.65, 0.8, 0.95)
"""Candidates for y, in units of π/(2μ)."""
_STRIPS = (0.2, 0.4, 0.6, 0.8, 0.9, 0.97)
"""Candidates for η, in units of π/μ."""
_LN10 = math.log(10)


@final
@dataclass(frozen=True)
class Mixture(Factor):
    """Weights and means ≥ 0, the first of them 0; the mixture is P, else Q."""

    parts: tuple[tuple[Any, Any], ...]
    first: bool

    def _power(self, line: Any) -> Any:
        return 1 + line if self.first else -line

    @property
    def _mu(self) -> float:
        return float(self.parts[-1][1])

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
            strip = min(share * math.pi / self._mu, math.sqrt(2 * digits * _LN10))
            fall = digits * _LN10 + 2 + self._log_kappa(power, strip) + strip**2 / 2
            found.append((2 * math.pi / (fall / strip + end * self._mu), strip))
        return max(found)

    def _range(self, power: float, digits: float) -> tuple[float, float]:
        """Return where the tails of φ r^p are near 10^{−digits}."""
        mu, fall = self._mu, digits * _LN10 + 2
        if power < 0:
            reach = math.sqrt(2 * (fall + power * math.log(float(self.parts[0][0]))))
            return -reach, max(reach, 2 * mu)
        grown = (power**2 - power) * mu**2 / 2 - self.estimate(power - 1 if self.first else 0)
        right = power * mu + math.sqrt(2 * (fall + max(grown, 0)))
        return -math.sqrt(2 * fall), max(right, 2 * mu)

    # Bounds.

    def _ratio(self, x: Any) -> Any:
        exact = [(mp.mpf(w), mp.mpf(m)) for w, m in self.parts]
        return mp.fsum(w * mp.exp(m * x - m**2 / 2) for w, m in exact)

    def _grid(self, power: Any, spacing: Any, digits: float) -> tuple[range, Any]:
        """Return the nodes, in units of d, and a bound of what lies outside of them.

        Beyond μ, r ≤ e^{μx − μ²/2}; below 0, r ≤ 1; everywhere, r ≥ w_0. Φ(−x) ≤ e^{−x²/2}/2.
        """
        low, high = self._range(float(power), digits)
        nodes = range(math.floor(low / float(spacing)) - 1, math.ceil(high / float(spacing)) + 2)
        left, right = -(nodes[0]) * spacing, nodes[-1] * spacing
        if power < 0:
            worst = mp.mpf(self.parts[0][0]) ** power / 2
            return nodes, worst * (mp.exp(-(left**2) / 2) + mp.exp(-(right**2) / 2))
        mu = mp.mpf(self.parts[-1][1])
        over = right - power * mu
        if over < 0 or right < mu:
            raise ValueError("the nodes end before the tail")
        grown = mp.exp((power**2 - power) * mu**2 / 2 - over**2 / 2)
        return nodes, (mp.exp(-(left**2) / 2) + grown) / 2

    def _strip_error(self, power: Any, end: Any, spacing: Any, strip: Any) -> Any:
        """Return the error of a trapezoidal sum of φ r^w, relative to G(p)."""
        mu, eta = mp.mpf(self.parts[-1][1]), mp.mpf(strip)
        kappa = mp.cos(mu * eta / 2) ** min(power, 0)
        grown = mp.exp(eta**2 / 2 + abs(end) * mu * eta)
        return 2 * kappa * grown / mp.expm1(2 * mp.pi * eta / spacing)

    def split(self, line: Any) -> tuple[Any, Any]:
        """Return no C: no atom is needed."""
        return mp.zero, mp.inf

    def log_moment(self, line: Any, digits: float) -> Any:
        """Bound ln G(p) by its trapezoidal sum: G(1 − error) ≤ sum + tails."""
        return self._log_moment(self._power(line), digits)

    def _log_moment(self, power: Any, digits: float) -> Any:
        chosen, strip = self._spacing(float(power), 0.0, digits)
        spacing = mp.mpf(chosen)
        nodes, outside = self._grid(power, spacing, digits)
        total = mp.fsum(_density(j * spacing) * self._ratio(j * spacing) ** power for j in nodes)
        error = self._strip_error(power, 0, spacing, strip)
        return mp.log((spacing * total + outside) / (1 - error))

    def log_cap(self, line: Any, end: Any, height: float, digits: float) -> Any:
        """Bound ln |G(p + it)|, t ≥ T, on the line x + iy."""
        power, mu, y = self._power(line), mp.mpf(self.parts[-1][1]), mp.mpf(height)
        widest = max(height, math.pi / 2 / self._mu * (1 - 1e-9) - height)
        strip = min(widest, math.sqrt(2 * digits * _LN10))
        fall = digits * _LN10 + strip**2 / 2 + self._log_kappa(float(power), height + strip)
        spacing = mp.mpf(2 * math.pi * strip / (fall + 2))
        nodes, outside = self._grid(power, spacing, digits)
        total = mp.zero
        for j in nodes:
            ratio = self._ratio(mp.mpc(j * spacing, y))
            size, angle = mp.fabs(ratio), mp.arg(ratio)
            total += _density(j * spacing) * size**power * mp.exp(-end * angle)
        widened = mp.cos(mu * (y + strip) / 2) ** min(power, 0)
        error = 2 * widened * mp.exp(mp.mpf(strip) ** 2 / 2 + self._log_moment(power, digits))
        error /= mp.expm1(2 * mp.pi * strip / spacing)
        outside *= mp.cos(mu * y / 2) ** min(power, 0)
        return y**2 / 2 + mp.log(spacing * total + outside + error)

    def closing(self, line: Any, end: Any, height: float, log_cap: Any) -> Any:
        """Return 1 + ln of how far beyond T the bound C/t falls below that of `log_cap`."""
        power, y = self._power(line), mp.mpf(height)
        weight, mu = map(mp.mpf, self.parts[-1])
        least = mp.mpf(self.parts[0][0])
        log_far = y**2 / 2 - 1 + mu**2 - mp.log(weight * mp.sin(mu * y))
        if power >= 0:
            log_far += self._log_moment(power + 1, 10)
        else:
            log_far += power * mp.log(mp.cos(mu * y / 2))
            log_far += max((1 + power) * mp.log(least), mp.log(2))
        return 1 + max(log_far - log_cap - mp.log(end), 0)

    def along(self, line: Any, step: Any, nodes: int, digits: float) -> Row:
        """Sum φ r^p r^{±inh} over x."""
        power = self._power(line)
        end = step * nodes
        chosen, strip = self._spacing(float(power), float(end), digits)
        spacing = mp.mpf(chosen)
        xs, outside = self._grid(power, spacing, digits)
        logs = [mp.log(self._ratio(j * spacing)) for j in xs]
        weights = [
            spacing * _density(j * spacing) * mp.exp(power * log)
            for j, log in zip(xs, logs, strict=True)
        ]
        top, sign = mp.fsum(weights), 1 if self.first else -1
        angles = [sign * step * log for log in logs]
        ratios, error = spin([weight / top for weight in weights], angles, nodes)
        error += self._strip_error(power, end, spacing, strip) + outside / top
        return Row(top, ratios, 2 * error)


def _density(x: Any) -> Any:
    return mp.exp(-(x**2) / 2) / mp.sqrt(2 * mp.pi)


@lru_cache(maxsize=4096)
def _float_terms(
    mixture: Mixture, line: float, height: float
) -> tuple[float, list[tuple[float, float]]]:
    """Return the terms of e^{y²/2} d Σ φ |r(x + iy)|^p in floats, scaled, with the angles of r."""
    power = 1 + line if mixture.first else -line
    parts = [(float(w), float(m)) for w, m in mixture.parts]
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
