"""The μ of every Gaussian mechanism, from its covariance and what neighbours differ by.

The release moves by w under N(0, Σ), so that μ² is the largest w'Σ⁻¹w (`spaces`). A one-to-one
linear map of the outputs changes nothing. The form is convex in the record, so that records with
entries in [0, 1] are worst with entries 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dpassay.verifier.checker.arithmetic import largest, total
from dpassay.verifier.checker.mechanisms.ellipse import (
    Ellipse,
    ellipse,
    optimal,
    worst_difference,
    worst_record,
)
from dpassay.verifier.checker.mechanisms.matrices import allocated, squared_sensitivity
from dpassay.verifier.checker.mechanisms.spaces import largest_square, least_variance
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import FewDigitsError, UnknownError, ball, sqrt


def gaussian_mu(noise: Noise) -> Any:
    """Return μ under the relation that is noted; the argument mu itself where that is it."""
    return GAUSSIAN[noise.name](noise, replaced=noise.adjacency == "replace-one")


def _scaled(mu: Any, square: Any) -> Any:
    """Return μ√square, without rounding where it is rational or the square is 1."""
    if square == 1:
        return mu
    if isinstance(mu, Fraction) and isinstance(square, Fraction):
        return sqrt(mu * mu * square)
    return mu * sqrt(square)


def _matrix_variate(noise: Noise) -> Any:
    """Return Δ/√(λ(Σ) λ(Ψ)), λ the least eigenvalue.

    A difference D has tr(Ψ⁻¹D'Σ⁻¹D) = ‖Σ^{−1/2} D Ψ^{−1/2}‖² ≤ ‖D‖²/(λ(Σ) λ(Ψ)): multiplying by
    Σ^{−1/2} makes no column longer than by 1/√λ(Σ), and by Ψ^{−1/2} no row. D = Δuv' along the two
    eigenvectors has equality, and every D of norm Δ occurs.
    """
    eigenvalues = [least_variance(noise[f"{side}_covariance"]) for side in ("row", "column")]
    square = noise["l2_sensitivity"] * noise["l2_sensitivity"] / math.prod(eigenvalues)
    return sqrt(square)


def _correlated(noise: Noise, *, replaced: bool) -> Any:
    """Return (μ'/μ)² of f_i + η + z_i with 4μ² Var η = A, 4μ² Var z = B, and the size + 2η.

    With B = d + C², A = B/C². Given the noisy size S, f_i + η + z_i − S/2 = f_i − n/2 + z_i is
    free of η: so what is released is as good as these and S, all independent, of variances
    B/(4μ²) and A/μ². A record v moves them by v − ½ and 1: in units of μ²,
    4‖v − ½‖²/B + 1/A = d/B + C²/B = 1 for entries 0 and 1. A replacement moves the former by
    w = v − v' in [−1, 1]^d and S not at all: 4‖w‖²/B ≤ 4d/B.

    Without S the covariance of the counts is (B·I + A·11')/(4μ²), with the inverse
    (4μ²/B)(I − 11'A/(B + dA)) and A/(B + dA) = 1/(C² + d) = 1/B: w has 4(‖w‖² − (Σw)²/B)/B. A
    record with j ones has 4j(B − j)/B², which rises up to j = B/2 and falls beyond: one of the
    integers next to B/2, or d. A replacement with entries ±1 everywhere, of sum t, has
    4(d − t²/B)/B, largest for t = d mod 2.
    """
    d = int(noise["dimension"])
    if noise["release_size"] and not replaced:
        return Fraction(1)
    b = _embedding(noise)
    if noise["release_size"]:
        return 4 * d / b
    if replaced:
        return 4 * d / b - 4 * (d % 2) / (b * b)
    near = _half(b)
    ones = {min(d, max(0, j)) for j in range(near - 1, near + 3)}
    return largest([4 * j * (b - j) / (b * b) for j in ones])


def one_sided_parts(noise: Noise) -> tuple[Any, list[Any]]:
    """Return μ² Var η and the μ² Var z_j: S/|Δ| and Δ_j S/4, with S = ΣΔ_j + |Δ|."""
    bounds = noise["bounds"]
    norm = sqrt(total([bound * bound for bound in bounds]))
    scale = total(bounds) + norm
    return scale / norm, [bound * scale / 4 for bound in bounds]


def _one_sided(noise: Noise) -> Any:
    """Return μ' when a record is replaced, of the number n + η and sums f_j + Δ_j η/2 + z_j.

    The number and f_j − Δ_j n/2 + z_j are as good, and independent. A record x in the box moves
    these by 1 and x_j − Δ_j/2: at every corner |Δ|/S + Σ Δ_j²/(Δ_j S) = 1 in units of μ². A
    replacement moves the latter only, by up to Δ_j: 4 Σ Δ_j²/(Δ_j S) = 4 ΣΔ_j/S.
    """
    _, own = one_sided_parts(noise)
    square = total([bound * bound / each for bound, each in zip(noise["bounds"], own, strict=True)])
    return _scaled(noise["mu"], square)


def _embedding(noise: Noise) -> Any:
    """Return B = d + C², C² = √d where it is left out."""
    d = noise["dimension"]
    return d + (sqrt(d) if noise["c"] is None else noise["c"] * noise["c"])


def _half(b: Any) -> int:
    """Return an integer within 1 of B/2."""
    half = ball(b) / 2
    whole = half.mid().floor().unique_fmpz() if half.rad() < 1 else None
    if whole is None:
        raise FewDigitsError
    return int(whole)


def _known_size(noise: Noise, *, replaced: bool) -> Any:
    """Return √(μ² + μ₀²), μ for a public ñ, and 2μ for a replacement.

    What is released is as good as f − n/2 with independent noise of variance d/(4μ²), and ñ with
    1/μ₀². A record moves the former by v − ½, ‖v − ½‖² ≤ d/4, and ñ by 1. A replacement leaves ñ,
    and moves the former by at most ‖v − v'‖² = d.
    """
    if replaced:
        return 2 * noise["mu"]
    if noise["size_mu"] is None:
        return noise["mu"]
    return sqrt(noise["mu"] * noise["mu"] + noise["size_mu"] * noise["size_mu"])


def _disjoint_groups(noise: Noise) -> Any:
    """Return (μ'/μ)² for the relation asked for, else the one that the noise is made for.

    Row by row, given the size n_j + 2η_j, the counts are f_jk − n_j/2 + z_jk. A record in a row
    moves these by v − ½ and the size by 1: A = d/(4 Var z) + 1/(4 Var η) at entries 0 and 1. A
    replacement within a row moves them by at most d in square: d/Var z; from a row to another one
    by A in each; to a record of zeros by A.
    """
    d, groups = noise["dimension"], noise["groups"]
    shared, own = group_parts(noise)
    alone = d / (4 * own) + 1 / (4 * shared)
    if (noise.adjacency or noise["adjacency"]) == "add-remove":
        return alone
    return max(d / own, alone * min(2, groups))


def group_parts(noise: Noise) -> tuple[Any, Any]:
    """Return μ² Var η and μ² Var z of a group, for the relation that the noise is made for."""
    d = noise["dimension"]
    if noise["adjacency"] == "add-remove":
        return (1 + sqrt(d)) / 4, (d + sqrt(d)) / 4
    return Fraction(4 if noise["as_printed"] else 1), d


def optimal_groups(noise: Noise) -> tuple[Any, Any, Any]:
    """Return the eigenvalues of Σ: on (1, …, 1), on other sums of groups, and inside groups.

    Under replace-one a difference inside a group, of d entries ±1 and sum t, has the norm
    d/γ + t²(g − 1/(dγ)), g = (1/α + (m − 1)/β)/(md); one between groups, of j and −k ones,
    (j + k)/γ + (j² + k²)(g − 1/(dγ)) − 2jk(g − 1/(dβ)).

    α = 2d/(m + 1), β = 2d, γ = d has g = 1/d²: the former are 1, the latter 1 − (1 − j/d)(1 − k/d).
    For odd d > 1 and (m + 1)² > 4(d + 1), γ = d/(1 + h) and α = γ/√(d + 1), where h solves
    g = (1 + h)/d² − h. With p = d − j and q = d − k the norms are 1 + h(1 − t²), t² ≥ 1, and
    1 + h(p + q)/d − (1 + 2h)pq/d² − h(p − q)². The excess is not positive where q = 0, as p ≤ p²d;
    for p, q ≥ 1 since p + q ≤ 2pq and 2hd ≤ 1 + 2h, as h < (m + 1)/(2m(d² − 1)) ≤ 1/(2(d − 1)).
    """
    m, d = int(noise["groups"]), int(noise["counts"])
    if noise["adjacency"] == "add-remove":  # blocks: only one group moves
        found = optimal(d, d)
        return found.along, found.along, found.across
    if d % 2 == 0 or d == 1 or (m + 1) ** 2 <= 4 * (d + 1):
        return Fraction(2 * d, m + 1), Fraction(2 * d), Fraction(d)
    root, apart = sqrt(Fraction(d + 1)), m * (d * d - 1)
    inside = (root + apart) * (d / (apart + Fraction(m + 1, 2)))
    return inside / root, Fraction(2 * d), inside


def _optimal_groups(noise: Noise) -> Any:
    """Return (μ'/μ)²: 1 for the relation that the noise is made for, see `optimal_groups`."""
    m, d = int(noise["groups"]), int(noise["counts"])
    along, between, inside = optimal_groups(noise)
    if noise.adjacency in (None, noise["adjacency"]):
        return Fraction(1)
    if noise["adjacency"] == "add-remove":  # within a group, or a record in each of two
        return max(worst_difference(Ellipse(d, along, inside), d), Fraction(min(2, m)))
    mean = (1 / along + (m - 1) / between) / m
    return worst_record(Ellipse(d, 1 / mean, inside), d)


def correlated_parts(noise: Noise) -> tuple[Any, Any]:
    """Return A and B, which over μ² are the variances of the size and of the embedding."""
    b = _embedding(noise)
    return b / (b - noise["dimension"]), b


def _ellipse(noise: Noise, *, replaced: bool) -> Any:
    found, k = ellipse(noise), int(noise["sparsity"])
    worst = worst_difference(found, k) if replaced else worst_record(found, k)
    return _scaled(noise["mu"], worst)


def _matrix(noise: Noise) -> Any:
    if allocated(noise):
        raise UnknownError("the mu of a random allocation")
    return _scaled(1 / noise["noise_multiplier"], squared_sensitivity(noise))


GAUSSIAN: dict[str, Callable[..., Any]] = {
    "CorrelatedGaussian": lambda n, replaced: _scaled(n["mu"], _correlated(n, replaced=replaced)),
    "CountEllipse": _ellipse,
    "DisjointGroupsGaussian": lambda n, replaced: _scaled(n["mu"], _disjoint_groups(n)),
    # Σ Δ_j²/σ_j² at the corners of the box, σ_j² = Δ_j ΣΔ_i/μ²: it is μ²
    "EllipticalGaussian": lambda n, replaced: n["mu"],
    "Gaussian": lambda n, replaced: n["l2_sensitivity"] / n["standard_deviation"],
    "GeneralGaussian": lambda n, replaced: sqrt(largest_square(n["space"], n["covariance"])),
    "KnownSizeGaussian": _known_size,
    "MatrixMechanism": lambda n, replaced: _matrix(n),
    "MatrixVariateGaussian": lambda n, replaced: _matrix_variate(n),
    "OneSidedGaussian": lambda n, replaced: _one_sided(n) if replaced else n["mu"],
    "OptimalEllipse": _ellipse,
    "OptimalGroups": lambda n, replaced: _scaled(n["mu"], _optimal_groups(n)),
}
"""Mechanisms whose worst pair is N(μ, 1) against N(0, 1), and their μ."""
