"""Losses as lists of values with their masses, where almost all of the mass is on few values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from flint import arb

from accountant.composition.losses.finite import finite
from accountant.composition.subsampling import SubsampledPair
from accountant.core.pair import Pair
from accountant.numbers.exact import ExactReal
from accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from accountant.pairs.finite import FinitePair
from accountant.pairs.theta import theta, upper_tail

MAX_VALUES = 1 << 12
"""Most values of one loss that are listed."""


@final
@dataclass(frozen=True)
class Listed:
    """The outcomes of a pair on which it has a finite loss, and what lies elsewhere."""

    losses: list[arb]
    p: list[arb]
    infinity: arb
    """P(L = ∞)."""
    negative: arb
    """Q(L = −∞)."""
    missing_p: arb
    """At least the mass under P of the outcomes that are not listed; 0 where all are."""
    missing_q: arb


def listed(pair: Pair, log_missing: float) -> Listed | None:
    """List the loss of a pair, at flint's current precision, missing at most e^log_missing.

    None where it has a density, or too many values.
    """
    small = finite(pair)
    if small is not None:
        return _of_finite(small)
    if isinstance(pair, DiscreteGaussianPair):
        return _of_discrete_gaussian(pair, log_missing)
    if isinstance(pair, SubsampledPair):
        inner = listed(pair.inner, log_missing)
        return None if inner is None else _mixed(inner, pair.sampling_prob.ball(), pair.mixed_first)
    return None


def _of_finite(pair: FinitePair) -> Listed | None:
    p, q = pair.source.masses(pair.index)
    known = pair.source.exact_losses(pair.index)
    if len(p) > MAX_VALUES:
        return None
    if pair.flipped:
        p, q = q, p
        known = [None if loss is None else -loss for loss in known]
    found = Listed([], [], arb(0), arb(0), arb(0), arb(0))
    infinity, negative = arb(0), arb(0)
    for a, b, loss in zip(p, q, known, strict=True):
        if b.is_zero():
            infinity += a
        elif a.is_zero():
            negative += b
        else:
            found.p.append(a)
            found.losses.append((a / b).log() if loss is None else loss.ball())
    return Listed(found.losses, found.p, infinity, negative, arb(0), arb(0))


def _of_discrete_gaussian(pair: DiscreteGaussianPair, log_missing: float) -> Listed | None:
    """List z from −R to R + s: the loss (2zs − s²)/2v."""
    v, s = pair.parameter, pair.shift
    reach = math.isqrt(math.ceil(2 * float(v) * (2 - log_missing))) + 1
    if 2 * reach + s > MAX_VALUES:
        return None
    normaliser = theta(v)
    losses, p = [], []
    for z in range(-reach, reach + s + 1):
        exponent = ExactReal.of_rational(-((z - s) ** 2)) / v / ExactReal.of_rational(2)
        p.append(exponent.ball().exp() / normaliser)
        losses.append(
            (ExactReal.of_rational(2 * z * s - s * s) / v / ExactReal.of_rational(2)).ball()
        )
    inner, outer = upper_tail(v, reach + 1), upper_tail(v, reach + s + 1)
    missing = (inner + outer).upper()  # P and Q are mirror images
    return Listed(losses, p, arb(0), arb(0), missing, missing)


def _mixed(inner: Listed, share: arb, mixed_first: bool) -> Listed:
    """Mix Q into P or P into Q, outcome by outcome."""
    rest = 1 - share
    q = [p * (-loss).exp() for p, loss in zip(inner.p, inner.losses, strict=True)]
    if mixed_first:
        p = [rest * b + share * a for a, b in zip(inner.p, q, strict=True)]
        losses = [(share * loss.expm1()).log1p() for loss in inner.losses]
        if not inner.negative.is_zero():
            p.append(rest * inner.negative)
            losses.append(rest.log())
        missing = rest * inner.missing_q + share * inner.missing_p
        return Listed(losses, p, share * inner.infinity, arb(0), missing.upper(), inner.missing_q)
    p, losses = list(inner.p), [-(share * (-loss).expm1()).log1p() for loss in inner.losses]
    if not inner.infinity.is_zero():
        p.append(inner.infinity)
        losses.append(-rest.log())
    missing = rest * inner.missing_p + share * inner.missing_q
    return Listed(losses, p, arb(0), share * inner.negative, inner.missing_p, missing.upper())
