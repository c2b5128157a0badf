"""The profile of two releases of a subsampled Gaussian mechanism, by one integral in mpmath."""

from __future__ import annotations

import mpmath
from mpmath import mp, mpf


def two_releases(sigma: str, q: str, epsilon: str, *, mixed_first: bool) -> mpf:
    """Integrate the profile of one release over the loss of another, with some 20 digits."""
    with mpmath.workdps(30):
        mu, share, eps = 1 / mpf(sigma), mpf(q), mpf(epsilon)
        far = mp.exp(eps if mixed_first else -eps)
        far = far / (1 - share) if mixed_first else far * (1 - share)
        odds = (far - 1 + share) / share if mixed_first else (1 / far - 1 + share) / share

        def w(x: mpf) -> mpf:
            return 1 - share + share * mp.exp(mu * x - mu * mu / 2)

        def one(e: mpf) -> mpf:
            z = mp.exp(e)
            edge = (z - 1 + share) / share if mixed_first else (1 / z - 1 + share) / share
            if edge <= 0:
                return 1 - z if mixed_first else mpf(0)
            x = mp.log(edge) / mu + mu / 2
            above = [mp.ncdf(-x), mp.ncdf(mu - x)]
            if mixed_first:
                return (1 - share) * above[0] + share * above[1] - z * above[0]
            below = [mp.ncdf(x), mp.ncdf(x - mu)]
            return below[0] - z * ((1 - share) * below[0] + share * below[1])

        def integrand(x: mpf) -> mpf:
            loss = mp.log(w(x))
            if mixed_first:
                return mp.npdf(x) * w(x) * one(eps - loss)
            return mp.npdf(x) * one(eps + loss)

        step = mpf(1) / 48
        if odds <= 0:
            return mp.fsum(integrand(step * j) for j in range(-48 * 16, 48 * 32)) * step
        flat = mp.log(odds) / mu + mu / 2  # all derivatives of the integrand vanish here
        nodes = [mp.exp(step * j) for j in range(-48 * 50, 48 * 4)]
        return mp.fsum((integrand(flat - u) + integrand(flat + u)) * u for u in nodes) * step
