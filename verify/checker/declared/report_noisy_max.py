"""Report noisy max: the largest of k scores with independent noise.

With Gumbel noise it is the exponential mechanism: the maximum of u_i + G_i is at i with probability
e^{u_i}/Σ e^{u_j}. With exponential noise it is permute-and-flip (Ding, Kifer, Steinke, Wang, Xiao
and Zhang 2021). A score moves against another by at most t units of the noise.

Let F be the distribution function of Y − X, X the largest of s and Y that of k − s noises of equal
scores. The event that one of s candidates is reported has a probability of at most F(a + t),
against F(a), for some a. The accountant proves this of Gaussian noise (dispersive order, Efron's
theorem and Jensen's inequality, in `dpassay.accountant.pairs.gaussian_maxima`); for two candidates,
Y − X the difference of two noises, it is immediate. With Laplace noise it is a lower bound for
more. An upper one has laws in the place of X and Y of which the density is at most a concave
function of the distribution function p, that of any noisy maximum below it: the sum of e^y − 1 or
1, whichever is less, over y_i with sum −ln p, times p. It is least at p of the lines through the
points where all y_i are 0 or ln 2: 2^{−j} + (j − 1)p, and sp for s candidates. F is here an
integral by Arb's own quadrature, where the accountant adds up a trapezoidal rule, or a sum of
exponentials. f is log-concave, so that f(a + t)/f(a) falls with a: the best a lies between two
numbers where f(a + t) − e^ε f(a) has different signs.

With discrete Laplace noise a is an integer. A product of polynomials gives all masses of Y − X at
once: beyond N on either side the noises have at most k q^N. Of any scores a step of one costs no
more than a step of that noise, whose trade-off function is that of randomised response, again and
again: so that noise moved by t bounds all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import accumulate, pairwise
from typing import Any

from flint import acb, arb, arb_poly

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.arithmetic import largest
from dpassay.verifier.checker.declared.law import (
    ALL,
    NONE,
    DeclaredLaw,
    Pair,
    two_candidates,
    unknown,
)
from dpassay.verifier.checker.notation import Argument, Noise, integer, name_of, positive, switch
from dpassay.verifier.checker.reals import (
    FewDigitsError,
    Real,
    UnknownError,
    apply,
    ball,
    exp,
    sqrt,
)

_MOST_CANDIDATES = 12
"""More take minutes."""
_BITS, _FAR = 60, 16
"""Of an integral, and how far it goes beyond the last place of the maximum."""
_STEP, _REACH, _FARTHEST, _HALVINGS = 0.1, 12.0, 600.0, 60
"""Of a sum in floats, and of the search for the best a."""
_FEW = ((1, 7), (1, 5), (1, 4), (1, 3), (1, 2), (2, 4), (2, 3), (2, 2), (3, 3))
"""Sizes of sets of equal scores that are tried, in both orders."""
_LINES, _EACH = 8, 6
"""Lines of which the least is above all densities, and candidates for each size of a set."""
_SUM_BITS = 80
"""Of a sum of discrete noise: what is beyond its last term is less than its power of 2."""
_MOST_TERMS = 6000
"""Of it: more take minutes."""
_CUTS = 8
"""Parts of a move in which a score may stand behind."""
_TIED = 1e-9
"""Share of the largest value by which an equal one may be smaller: the first of them is taken."""
_PLACES = 60
"""Digits of a distance and a loss: that these differ counts, however little it is."""
_ASIDE = (2e-13, 1e-9, 1e-5)
"""How far on both sides of that the best a is shown to lie."""


def _pair(noise: Noise) -> Pair:
    """Return the pair: scores move against each other by 2Δ, or Δ where they are monotone."""
    moved = noise["sensitivity"] * (1 if noise["monotone"] else 2)
    t = moved / noise["scale"]
    if noise["noise"] == "DiscreteLaplace" and getattr(noise["sensitivity"], "denominator", 0) != 1:
        raise ValueError("discrete noise of a sensitivity that is no integer")
    match noise["noise"]:
        case "Gumbel":
            return {"law": "bounded-range", "length": t}
        case "Exponential":
            return {"law": "noisy-maximum", "distance": t}
        case "DiscreteLaplace":
            return _discrete_pair(noise, moved)
        case "Laplace":
            return laplace_pair(int(noise["candidates"]), t)
    return {
        "law": "noisy-maxima",
        "candidates": noise["candidates"],
        "gaussian": True,
        "distance": t,
    }


def laplace_pair(candidates: int, t: Any) -> Pair:
    """Return that of two candidates, or what lies between some equal scores and all scores."""
    most = {"law": "unequal-maxima", "candidates": Fraction(candidates), "distance": t}
    return _of_equal_scores({"law": "laplace-maxima", "distance": t}, candidates, most)


def _discrete_pair(noise: Noise, moved: Any) -> Pair:
    """Return the same of integer scores. The first of equal ones wins: a level is any integer."""
    one = {"law": "discrete-maxima", "distance": moved / noise["scale"], "shift": moved}
    return _of_equal_scores(one, int(noise["candidates"]), moved_noise(one))


def _of_equal_scores(one: Pair, candidates: int, most: Pair) -> Pair:
    tried = [size for few in _FEW for size in dict.fromkeys((few, few[::-1]))]
    sizes = [size for size in tried if sum(size) <= candidates] or [(1, 1)]
    sets = [{**one, "candidates": Fraction(s), "others": Fraction(r)} for s, r in sizes]
    return {"law": "between", "factors": [*sets, most]} if len(sets) > 1 else sets[0]


def moved_noise(pair: Pair) -> Pair:
    """Return the discrete Laplace noise of one score that is moved."""
    scale = pair["shift"] / pair["distance"]
    return {"law": "discrete-laplace", "scale": scale, "shift": pair["shift"]}


def _all_scores(k: int, t: Any) -> Pair:
    """Return what all noisy scores against their mean allow: half of them are moved by t."""
    return {"law": "gaussian", "mu": t * sqrt(Fraction(k // 2 * (k - k // 2), k))}


def _normal(k: int, s: int, a: arb) -> tuple[arb, arb]:
    """Return F(a) and f(a): integrals over where X is."""
    root, m = arb(2).sqrt(), k - s
    low, high = -_FAR - abs(a).upper(), _FAR + abs(a).upper()
    tolerance = arb(2) ** -_BITS

    def cdf(x: acb) -> acb:
        return (-x / root).erfc() / 2

    def density(x: acb) -> acb:
        return (-x * x / 2).exp() / (2 * acb.pi()).sqrt()

    def weight(x: acb) -> acb:
        return s * density(x) * cdf(x) ** (s - 1)

    def integral(function: Callable[[acb], acb]) -> arb:
        return acb.integral(
            lambda x, _: function(x), low, high, rel_tol=tolerance, abs_tol=tolerance**2
        ).real

    beyond = arb(0).union((arb(_FAR) / root).erfc() * k * k)
    mass = integral(lambda x: weight(x) * cdf(x + a) ** m)
    slope = integral(lambda x: weight(x) * m * density(x + a) * cdf(x + a) ** (m - 1))
    return mass + beyond, slope + beyond


def _laplace(k: int, s: int, a: arb) -> tuple[arb, arb]:
    """Return F(a) and f(a): products of sums of exponentials between 0 and −a, and beyond both."""
    half, near = arb("0.5"), arb(-a.mid())

    def law(n: int, right: bool) -> list[tuple[arb, int]]:
        """Return the distribution function of the largest of n noises on one side of 0."""
        if not right:
            return [(half**n, n)]
        return [(math.comb(n, i) * (-half) ** i, -i) for i in range(n + 1)]

    def primitive(x: arb | None, rate: int) -> arb:
        if x is None:
            return arb(0)
        return (rate * x).exp() / rate if rate else x

    mass, slope = arb(0), arb(0)
    cuts = sorted([arb(0), near], key=float)
    for low, high in pairwise([None, *cuts, None]):
        behind = low is not None and float(low) >= 0, low is not None and low >= near
        other = law(k - s, behind[1])
        for c, rate in law(s, behind[0]):
            for d, also in other:
                whole = rate + also
                ends = primitive(high, whole) - primitive(low, whole)
                each = rate * c * d * (also * a).exp() * ends
                mass, slope = mass + each, slope + also * each
    off = arb(0, 4 * k * k * a.rad()) * (-abs(a)).exp()  # of where the second formula changes
    return mass + off, slope + off


@lru_cache(maxsize=64)
def _pieces(n: int, precision: int) -> list[tuple[arb, arb, arb, arb, int]]:
    """Return where the distribution function p is u + v e^{λx}, or u + vx for λ = 0: (…, u, v, λ).

    Its derivative is each line h + λp in turn, h = 2^{−λ−1}, up to where it crosses the next one.
    """
    found = [(arb(0), arb.pos_inf(), arb(1), arb("-0.5"), -1)]
    high, p = arb(0), arb("0.5")
    for rate in range(min(n, _LINES) - 1):
        h, last = arb(2) ** -(rate + 1), n > _LINES and rate == _LINES - 2
        below = arb(0) if last else p / 2
        if rate == 0:
            low, u, v = high - (p - below) / h, p - h * high, h
        else:
            u = -h / rate
            low = high - ((p - u) / (below - u)).log() / rate
            v = (p - u) * (-rate * high).exp()
        found.append((low, high, u, v, rate))
        high, p = low, below
    if n <= _LINES:
        found.append((arb.neg_inf(), high, arb(0), p * (-n * high).exp(), n))
    else:
        found.append((arb.neg_inf(), high, arb(0), arb(0), 0))
    return found


def _unequal(k: int, s: int, a: arb) -> tuple[arb, arb]:
    """Return the same for the laws of which all maxima of any scores are less spread."""

    def primitive(x: arb, rate: int, linear: bool) -> arb:
        if not x.is_finite():
            return arb(0)
        if not rate:
            return x * x / 2 if linear else x
        return (rate * x).exp() * ((x - arb(1) / rate) if linear else 1) / rate

    mass, slope = arb(0), arb(0)
    for low, high, _, v, rate in _pieces(s, ctx.prec):
        for start, end, u, w, also in _pieces(k - s, ctx.prec):
            left, right = low.max(start - a), high.min(end - a)
            if left >= right:
                continue
            density = v * (rate or 1)

            def over(
                power: int, linear: bool = False, ends: tuple[arb, arb] = (left, right)
            ) -> arb:
                return primitive(ends[1], power, linear) - primitive(ends[0], power, linear)

            mass += density * u * over(rate)
            if also:
                moved = density * w * (also * a).exp() * over(rate + also)
                mass, slope = mass + moved, slope + also * moved
            elif w:
                mass += density * w * (over(rate, linear=True) + a * over(rate))
                slope += density * w * over(rate)
    return mass, slope


_LAWS = {"noisy-maxima": _normal, "laplace-maxima": _laplace, "unequal-maxima": _unequal}


def _log_slope(law: str, k: int, s: int, a: arb) -> arb:
    """Return about ln f(a), or no finite number: the sum over normal laws is in floats."""
    if law != "noisy-maxima":
        return arb(_LAWS[law](k, s, a)[1].mid().log())
    found, y, half = 0.0, -_REACH, float(a) / 2
    while y < _REACH:  # about -a/2, where the product of both densities is e^{-a^2/4}/(2 pi)
        one, other = (math.erfc(-(y + side) / math.sqrt(2)) / 2 for side in (-half, half))
        found += math.exp(-y * y) * one ** (s - 1) * other ** (k - s - 1)
        y += _STEP
    return arb(arb(found).log() - a * a / 4)


@lru_cache(maxsize=64)
def _near(law: str, k: int, s: int, distance: str, epsilon: str) -> float:
    """Return about the a with f(a + t) = e^ε f(a), or the end of where it is looked for."""
    t, level = arb(distance), arb(epsilon)
    rare = t * t / (t - abs(level)) if law != "noisy-maxima" else t  # |a|e^a is about F there
    low, high = -float((_REACH + rare).min(_FARTHEST + t)), _REACH
    for _ in range(_HALVINGS):
        a = (low + high) / 2
        above = _log_slope(law, k, s, a + t) > level + _log_slope(law, k, s, arb(a))
        low, high = (a, high) if above else (low, a)
    return low


def _best(pair: Pair, s: int, epsilon: Any) -> tuple[arb, arb, arb, bool]:
    """Return F(a + t), F(a), the largest F(a + t) − e^ε F(a), and whether a is known to be best.

    As a function of F(a) that is concave, with the slope f(a + t)/f(a) − e^ε: it is at most its
    tangent, at the lower end or wherever a is. F(a + t) bounds it too where lower ones are better.
    """
    t, factor, k = ball(pair["distance"]), ball(exp(epsilon)), int(pair["candidates"])
    law = _LAWS[pair["law"]]
    k = 2 * s if law is _unequal and k > _EACH else k + int(pair.get("others", 0))
    asked = (str(x.mid().str(_PLACES, radius=False)) for x in (t, ball(epsilon)))
    near = _near(pair["law"], k, s, *asked)
    for aside in _ASIDE:
        ends = [arb(near - aside), arb(near + aside)]
        (q, q_low), (q_end, q_high) = (law(k, s, a) for a in ends)
        (p, p_low), (p_end, p_high) = (law(k, s, a + t) for a in ends)
        value, rise = p - factor * q, p_low / q_low - factor
        if p_low >= factor * q_low and p_high <= factor * q_high:
            above = value + rise * (q_end - q)
            return p.union(p_end), q.union(q_end), value.union(above), True
    above = value + (rise * (1 - q)).max(-rise * q)
    if not above.is_finite():
        raise FewDigitsError("a level of the difference of two maxima")
    above = above.upper().min(p.upper() if rise < 0 else arb(1))
    return p, q, value.lower().max(arb(0)).union(above), False


def _sizes(pair: Pair) -> range:
    k = int(pair["candidates"])
    if "others" in pair:
        return range(k, k + 1)
    if pair["law"] == "unequal-maxima":
        most = min(k - 1, _LINES + 1)
        return range(1 if k <= _EACH else most, most + 1)
    if k > _MOST_CANDIDATES:
        raise UnknownError(f"the noisy maximum of {k} candidates")
    return range(1, k)


def _hockey_stick(pair: Pair, epsilon: Any) -> Any:
    if pair["law"] != "noisy-maxima" and not -pair["distance"] < epsilon < pair["distance"]:
        return Fraction(0) if epsilon > 0 else 1 - exp(epsilon)
    with ctx.workprec(128):
        return largest([Real(_best(pair, s, epsilon)[2]) for s in _sizes(pair)])


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    found = [_best(pair, s, epsilon) for s in _sizes(pair)]
    if not all(sure for *_, sure in found):
        raise FewDigitsError("a level of the difference of two maxima")
    most = reduce(arb.max, [value.mid() for _, _, value, _ in found])
    least = most - abs(most) * _TIED
    return next((Real(p), Real(q)) for p, q, value, _ in found if value.mid() >= least)


def _ends(pair: Pair) -> tuple[list[Pair], Pair]:
    """Return two candidates, and that of all scores: only what differs from their mean matters."""
    k, t = int(pair["candidates"]), pair["distance"]
    tails = two_candidates(lambda x: apply("Phi", -x / sqrt(Fraction(2))), t)
    return tails, _all_scores(k, t)


def _laplace_ends(pair: Pair) -> tuple[list[Pair], Pair]:
    """Return two candidates, and the noise of one score.

    Moving by s costs a Laplace density at most e^s: as for permute-and-flip, the chance p of a set
    of candidates has p' <= min(p, 1 - p). Of two Laplace noises the difference has the density
    (1 + |x|)e^{−|x|}/4.
    """
    t = pair["distance"]
    return two_candidates(lambda x: (2 + x) * exp(-x) / 4, t), {"law": "laplace", "distance": t}


REPORT_NOISY_MAX = DeclaredLaw(
    mechanism="ReportNoisyMax",
    arguments={
        "noise": Argument(
            name_of(("Laplace", "Gaussian", "Exponential", "Gumbel", "DiscreteLaplace"))
        ),
        "scale": Argument(positive),
        "candidates": Argument(integer(2)),
        "sensitivity": Argument(positive, Fraction(1)),
        "monotone": Argument(switch, False),
    },
    name="noisy-maxima",
    parameters=("candidates", "gaussian", "distance"),
    pair=_pair,
    tails=_tails,
    hockey_stick=_hockey_stick,
    largest_loss=lambda pair: Real(arb.pos_inf()),
    only_alone=True,
    ends=_ends,
)

UNEQUAL_MAXIMA = DeclaredLaw(
    name="unequal-maxima",
    parameters=("candidates", "distance"),
    tails=unknown("one pair of a noisy maximum"),
    hockey_stick=_hockey_stick,
    largest_loss=lambda pair: pair["distance"],
    only_alone=True,
    ends=_laplace_ends,
)
"""What any scores of several candidates can do at most."""

LAPLACE_MAXIMA = DeclaredLaw(
    name="laplace-maxima",
    parameters=("candidates", "others", "distance"),
    tails=_tails,
    hockey_stick=_hockey_stick,
    largest_loss=lambda pair: pair["distance"],
    only_alone=True,
    ends=_laplace_ends,
)
"""A candidate wins by exceeding a number, whatever that is, which moves by at most t."""


@lru_cache(maxsize=64)
def _levels(s: int, r: int, rate: str, precision: int) -> tuple[list[arb], int, arb]:
    """Return F at the levels from −2N on, where 0 stands in this list, and what is beyond N."""
    step, bits = arb(rate), _SUM_BITS + precision // 2
    if not bits < step * _MOST_TERMS:
        raise UnknownError("the maximum of discrete noise of so large a scale")
    terms = math.ceil(bits * math.log(2) / float(step)) + 1
    q = (-step).exp()
    cdf = [
        (step * x).exp() / (1 + q) if x < 0 else 1 - (-step * (x + 1)).exp() / (1 + q)
        for x in range(-terms - 1, terms + 1)
    ]
    first, second = ([y**n - x**n for x, y in pairwise(cdf)] for n in (s, r))
    gap = arb_poly(first[::-1]) * arb_poly(second)
    return list(accumulate(gap.coeffs())), 2 * terms, (s + r) * q**terms


def _chances(pair: Pair) -> tuple[list[arb], list[arb], int, arb]:
    """Return F(a + t) and F(a) for levels a, where 0 stands in the lists, and what is beyond."""
    if pair["shift"] > _MOST_TERMS:
        raise UnknownError("the maximum of discrete noise that is moved so far")
    rate = str(ball(pair["distance"] / pair["shift"]).str(ctx.prec))
    found, zero, beyond = _levels(int(pair["candidates"]), int(pair["others"]), rate, ctx.prec)
    t, around = int(pair["shift"]), arb(0).union(beyond)
    found = [x + around for x in found]
    none, all_of_it = [around] * t, [1 - around] * t
    return found + all_of_it, none + found, zero + t, beyond


def _discrete_hockey_stick(pair: Pair, epsilon: Any) -> Any:
    """Return the largest F(a + t) - e^eps F(a); beyond all levels it is about 0, or 1 - e^eps."""
    if not -pair["distance"] < epsilon < pair["distance"]:
        return Fraction(0) if epsilon > 0 else 1 - exp(epsilon)
    (p, q, _, beyond), factor = _chances(pair), ball(exp(epsilon))
    best = reduce(arb.max, (x - factor * y for x, y in zip(p, q, strict=True)))
    return Real(best.union(best.max(2 * beyond).max(1 - factor * (1 - 2 * beyond))))


def _discrete_tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    """Return F(a + t) and F(a) of the best level; of all that may be it, where several may."""
    if not -pair["distance"] < epsilon < pair["distance"]:
        return NONE if epsilon > 0 else ALL
    (p, q, _, _), factor = _chances(pair), ball(exp(epsilon))
    values = [x - factor * y for x, y in zip(p, q, strict=True)]
    best = reduce(arb.max, values)
    tied = [level for level, value in enumerate(values) if not value < best]
    return tuple(Real(reduce(arb.union, [side[i] for i in tied])) for side in (p, q))  # type: ignore[return-value]  # two


def _discrete_ends(pair: Pair) -> tuple[list[Pair], Pair]:
    """Return some levels of two candidates, and the noise moved by t."""
    two = {**pair, "candidates": Fraction(1), "others": Fraction(1)}
    (above, here, zero, _), t = _chances(two), int(pair["shift"])
    found: list[Pair] = []
    for a in sorted({-(i * t) // _CUTS for i in range(_CUTS + 1)}):
        p, q = Real(above[zero + a]), Real(here[zero + a])
        found.append({"law": "finite", "p": [p, 1 - p], "q": [q, 1 - q]})
    return found, moved_noise(pair)


DISCRETE_MAXIMA = DeclaredLaw(
    name="discrete-maxima",
    parameters=("candidates", "others", "distance", "shift"),
    tails=_discrete_tails,
    largest_loss=lambda pair: pair["distance"],
    only_alone=True,
    hockey_stick=_discrete_hockey_stick,
    ends=_discrete_ends,
)
