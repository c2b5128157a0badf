"""Enclosed integrals of a density between points, in the units of its text.

∫ f beyond x is a sum of integrals over panels and a bound on the tail beyond the last one, which
`Decay` proves. flint integrates each panel; it is rigorous for integrands that are analytic near
the panel, and bisects where they are not. Panels end at the ends of pieces and at distances that
double, so the number of panels of a heavy tail is proportional to the number of its digits. An
irrational kink is known by two bounds; the integral between these is at most their distance times
the largest value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import final

from flint import acb, arb

from dpassay.accountant.core.arrays import np
from dpassay.accountant.density.balls import real
from dpassay.accountant.density.pieces import Piece, Pieces, pieces, steepest, turned
from dpassay.accountant.density.ranges import Ranges, number_ends
from dpassay.accountant.density.tail import Decay, Tail, TailError, nearer
from dpassay.accountant.density.text import read
from dpassay.accountant.density.tree import Node, centres, mirrored, ordered
from dpassay.accountant.errors import InvalidInputError, UndecidedError
from dpassay.accountant.numbers.interval import START_PRECISION, ball
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.solve import fraction, power_of_two

_MOST_PANELS = 4096
"""Most doubling panels of one tail; 2^4096 is beyond every exponent that can be written."""
_MOST_BITS = 512
"""Precision above which questions are refused at once; an answer would take minutes."""
_FARTHEST = 1 << 100
"""Distance beyond which a tail is bounded rather than integrated; flint would bisect endlessly."""
_NOTHING = -(1 << 64)
"""Binary exponent below which a tail is bounded rather than integrated: an integral of e^{−V} loses
as many bits as V has."""
_USUAL_BITS = 73
"""Bits at flint's first precision: those of a relative width of 1e-14, which sweeps over shifts
need, plus 24 that a difference of masses loses. Fewer make sweeps wider, more cost time."""
_FIRST_BITS = 64
"""Bits at which the integral of a new density is first tested for being finite."""
_CLOSEST = 64
"""Halvings of a panel towards its ends when the size of an integral is estimated."""
_SPARE = 32
"""Bits beyond those requested; without any, flint bisects until it is stopped."""
_STEEP = 256
"""If the slope of ln f times the width of a panel exceeds this, only its beginning matters."""
_FEW_LOST = 12
"""Bits that an integrand may lose without extra precision; usual densities exceed 2^−4096."""
_EVALUATIONS = 300
"""Most evaluations of an integrand per bit of precision, thirty times those of smooth densities.
An integral that needs more stays wide: these take seconds, more would take minutes."""
_KEPT = 512
"""Most cached values of each kind."""


@final
class Law:
    """A density f on the reals, not normalised."""

    def __init__(self, tree: Node, found: Pieces, argument: str) -> None:
        self.tree, self.pieces, self._argument = tree, found, argument
        self._panels: dict[tuple[Fraction, Fraction, int], arb] = {}
        self._decays: dict[tuple[Fraction, int], Decay] = {}
        self._uppers: dict[tuple[Fraction, int], arb] = {}

    @cached_property
    def mirrored(self) -> Law:
        """The law of −X."""
        other = Law(mirrored(self.tree), self.pieces.mirrored(), self._argument)
        other.__dict__["mirrored"] = self
        return other

    @cached_property
    def axis(self) -> Fraction | None:
        """The c with f(2c − x) = f(x), proved by comparing terms; None if this proves no symmetry.

        A reflection that preserves f permutes its kinks and the polynomials in it.
        """
        places = [each for part in self.pieces.parts for each in centres(part.tree)]
        places += [end for place in self.pieces.breaks for end in (place.low, place.high)]
        if not places:
            return None
        middle = (min(places) + max(places)) / 2
        parts, others = self.pieces.parts, self.pieces.parts[::-1]
        same = all(
            (a.low, a.high) == (turned(b.high, middle), turned(b.low, middle))
            and ordered(a.tree) == ordered(mirrored(b.tree, middle))
            for a, b in zip(parts, others, strict=True)
        )
        return middle if same else None

    @property
    def is_symmetric(self) -> bool:
        """Whether f(−x) = f(x), proved by comparing terms."""
        return self.axis == 0

    @cached_property
    def power_of_tail(self) -> Fraction | None:
        """The p for which f/x^p has positive bounds on both sides as x → ∞, else None."""
        if self.pieces.right is None:
            return None
        try:
            form = Tail(self.pieces.right.start).product(self.pieces.parts[-1].tree)
        except TailError:
            return None
        return None if form.exponent or not form.size > 0 else form.power

    @cached_property
    def steepest(self) -> Fraction | None:
        """The supremum of −(ln f)′ if it is exactly the limit at +∞, else None."""
        return steepest(self.pieces)

    @cached_property
    def centre(self) -> Fraction:
        """A point between the tails: 0, or the point of the support's hull nearest to 0."""
        low, high = self.support
        point = Fraction(0)
        if low is not None and low > point:
            point = low
        return high if high is not None and high < point else point

    @cached_property
    def support(self) -> tuple[Fraction | None, Fraction | None]:
        """The outermost ends of the pieces where f is not 0; None for an infinite end."""
        charged = [part for part in self.pieces.parts if not part.is_zero]
        low, high = charged[0].low, charged[-1].high
        return None if low is None else low.low, None if high is None else high.high

    def total(self) -> arb:
        """Return ∫ f."""
        return self.above(self.centre) + self.mirrored.above(-self.centre)

    def mass(self, low: Fraction | None, high: Fraction | None) -> arb:
        """Return ∫ f between two points, from integrals over the tails on their side."""
        centre = self.centre
        if low is not None and high is not None and low >= high:
            return arb(0)
        if low is not None and low >= centre:
            return self.above(low) - (arb(0) if high is None else self.above(high))
        if high is not None and high <= centre:
            return self.mirrored.mass(-high, None if low is None else -low)
        left = self.mirrored.mass(-centre, None if low is None else -low)
        return left + self.mass(centre, high)

    def at_most(self, low: Fraction | None, high: Fraction | None) -> arb:
        """Return an upper bound on ∫ f, from the width, a bound on a tail, or the integral."""
        bounds: list[arb | None] = []
        if low is not None and high is not None:
            bounds.append((ball(high - low) * self.largest(low, high)).upper())
        if low is not None:
            bounds.append(self.beyond(low))
        if high is not None:
            bounds.append(self.mirrored.beyond(-high))
        known = [bound.upper() for bound in bounds if bound is not None and bound.is_finite()]
        return min(known) if known else self.mass(low, high).upper()

    def largest(self, low: Fraction, high: Fraction) -> arb:
        """Return an upper bound on f between two points; NaN if none is found."""
        most = arb(0)
        for part in self.pieces.parts:
            if part.is_zero or (part.low is not None and part.low.low >= high):
                continue
            if part.high is not None and part.high.high <= low:
                continue
            a = low if part.low is None else max(low, part.low.low)
            b = high if part.high is None else min(high, part.high.high)
            most = most.max(real(part.tree, ball(a).union(ball(b))))
        return most.upper()

    def above(self, x: Fraction) -> arb:
        """Return ∫ f from x to ∞, for x at or right of the centre."""
        key = (x, goal())
        if key not in self._uppers:
            if len(self._uppers) > _KEPT:
                self._uppers.clear()
            self._uppers[key] = self._above(x)
        return self._uppers[key]

    def _above(self, x: Fraction) -> arb:
        first = self.next_end(x)
        if first is None:
            return arb(0)
        far = self.beyond(x)
        if far is not None and (x - self.centre > _FARTHEST or far.upper() < _nothing()):
            return far
        if not self._is_end(x):
            return self.panel(x, first) + self.above(first)
        whole, low = arb(0), x
        for _ in range(_MOST_PANELS):
            with ctx.workprec(ctx.prec + _SPARE):
                rest = self.beyond(low)
            if rest is not None and (
                2 * rest.rad() <= (whole + rest).lower() * negligible() or rest.upper() < _nothing()
            ):
                return whole + rest
            high = self.next_end(low)
            if high is None:  # f is 0 beyond
                return whole
            whole += self.panel(low, high)
            low = high
        raise UndecidedError("The mass of a tail was not enclosed.")

    def beyond(self, x: Fraction) -> arb | None:
        """Return ∫ f from x to ∞ if x lies where a decay of f is proved, else None."""
        tail = self.decay_from(x)
        if tail is None:
            return None
        at = ball(x)
        value = real(self.pieces.parts[-1].log, at).exp()
        most = tail.below(at)
        return value * tail.above(at).union(most) if most.is_finite() else None

    def decay_from(self, x: Fraction) -> Decay | None:
        """Return the decay of f from x on, or None if none is proved."""
        known = self.pieces.right
        if known is None or x < known.start:
            return None
        key = x, ctx.prec
        if key not in self._decays:
            self._decays[key] = nearer(self.pieces.parts[-1].slope, x, known)
        return self._decays[key]

    def next_end(self, x: Fraction) -> Fraction | None:
        """Return where a panel that starts at x ends: at a piece's end or a doubled distance."""
        last = self.support[1]
        if last is not None and x >= last:
            return None
        distance = x - self.centre
        step = Fraction(1)
        while step <= distance:
            step *= 2
        ends = [self.centre + step, *self._ends]
        return min(end for end in ends if end > x)

    def _is_end(self, x: Fraction) -> bool:
        distance = x - self.centre
        doubled = distance.numerator & (distance.numerator - 1) == 0 and distance.denominator == 1
        return doubled or x in self._ends

    @cached_property
    def _ends(self) -> list[Fraction]:
        return sorted({end for place in self.pieces.breaks for end in (place.low, place.high)})

    def panel(self, low: Fraction, high: Fraction) -> arb:
        """Return ∫ f between two points within one piece or one kink."""
        key = (low, high, goal())
        if key not in self._panels:
            if len(self._panels) > _KEPT:
                self._panels.clear()
            self._panels[key] = self._integral(low, high)
        return self._panels[key]

    def _integral(self, low: Fraction, high: Fraction) -> arb:
        part = self.part(low, high)
        if part is None:  # between the bounds of a kink
            ends = np.array([number_ends(low)[0]]), np.array([number_ends(high)[1]])
            most = [
                arb(Ranges(*ends, each.known)(each.tree)[1][0])
                for each in self.pieces.parts
                if (each.low is None or each.low.low < high)
                and (each.high is None or each.high.high > low)
            ]
            found = ball(high - low) * arb(0).union(sum(most, start=arb(0)))
        elif part.is_zero:
            return arb(0)
        else:
            near = _steep_end(part, low, high)
            found = integral(part.integrand, low, near)
            if near < high:
                rest = ball(high - near) * real(part.log, ball(near)).exp()
                found += arb(0).union(rest.upper())
        if not found.is_finite():
            raise InvalidInputError(
                f"{self._argument} was not integrated between x = {float(low):.6g} and "
                f"{float(high):.6g}: it has to be bounded there. Cut it off by min(…, a number)."
            )
        return found

    def part(self, low: Fraction, high: Fraction) -> Piece | None:
        """Return the piece between two points; None between the bounds of a kink."""
        for part in self.pieces.parts:
            starts = part.low is None or part.low.high <= low
            if starts and (part.high is None or high <= part.high.low):
                return part
        return None


def _steep_end(part: Piece, low: Fraction, high: Fraction) -> Fraction:
    """Return a point beyond which a falling f contributes nothing to ∫ f, or the panel's end.

    For e^{−x^100} near x = 1.9, flint would bisect until it finds such points itself.
    """
    width, slope = high - low, -real(part.slope, ball(low))
    if not slope * ball(width) > _STEEP:
        return high
    cells = np.array([number_ends(low)[0]]), np.array([number_ends(high)[1]])
    if not Ranges(*cells, part.known)(part.slope)[1][0] <= 0:
        return high
    step = power_of_two(1 / fraction(slope.mid()))
    enough = arb(2).log() * goal() + (slope * ball(width)).log()
    start = real(part.log, ball(low))
    while step < width:
        if start - real(part.log, ball(low + step)) > enough:
            return low + step
        step *= 2
    return high


def integral(
    f: Callable[[acb, bool], acb],
    low: Fraction | arb,
    high: Fraction | arb,
    added_to: arb | None = None,
    share: arb | None = None,
) -> arb:
    """Return ∫ f between two points, to about the requested bits, or to a given relative accuracy.

    The accuracy is relative to an estimate of ∫ |f| from some values of |f|, several of them close
    to the ends, where the whole integral of a steep f lies. An absolute tolerance of 0 would make
    flint bisect endlessly next to a zero of f. If `added_to`, to which the integral is added, is
    larger, the accuracy is relative to `added_to`. An integrand e^{−V} loses as many bits as V has;
    the precision is raised by these.
    """
    share = negligible() if share is None else share
    a = _point(low)
    size = _size(f, a, _point(high) - a)
    size = size if added_to is None else size.max(abs(added_to).mid())
    lost = int(size.man_exp()[1]).bit_length() if size.is_finite() else 0
    spare = _SPARE if ctx.prec > START_PRECISION else 0  # the first precision has bits to spare
    with ctx.workprec(ctx.prec + spare + max(lost - _FEW_LOST, 0)):
        return acb.integral(
            f,
            acb(_point(low)),
            acb(_point(high)),
            rel_tol=share,
            abs_tol=size * share,
            eval_limit=_EVALUATIONS * ctx.prec,
        ).real


def _point(x: Fraction | arb) -> arb:
    return x if isinstance(x, arb) else ball(x)


def _size(f: Callable[[acb, bool], acb], a: arb, width: arb) -> arb:
    """Estimate ∫ |f| from values in the middle and close to the ends."""
    steps = [(width * i / 8, width) for i in range(1, 8)]
    for step in (width / 2**n for n in range(4, _CLOSEST, 4)):
        steps += [(step, step), (width - step, step)]
    values = [(abs(f(acb(a + step), False).real), reach) for step, reach in steps]
    known = [(value * reach).mid() for value, reach in values if value.is_finite()]
    return functools.reduce(lambda x, y: x.max(y), known, arb(0))


def goal() -> int:
    """Return the bits to which masses and integrals are computed.

    At the first precision these suffice for usual answers, even if a difference of masses loses
    some. Raises UndecidedError above the largest precision.
    """
    if ctx.prec > _MOST_BITS:
        raise UndecidedError(
            "This number of a density that is a formula is not known to so many digits. Ask for a "
            "larger relative_width."
        )
    return ctx.prec if ctx.prec > START_PRECISION else min(ctx.prec, _USUAL_BITS)


def negligible() -> arb:
    """Return the relative size below which a remainder is not resolved further."""
    return arb(2) ** -goal()


def _nothing() -> arb:
    return arb(2) ** _NOTHING


@functools.lru_cache(maxsize=_KEPT)
def law(text: str, argument: str) -> Law:
    """Return the law of a text; raise InvalidInputError if it is not a density."""
    return law_of(read(text, argument), argument)


@functools.lru_cache(maxsize=_KEPT)
def law_of(tree: Node, argument: str) -> Law:
    """Return the law of a parsed formula; raise InvalidInputError if it is not a density."""
    found = Law(tree, pieces(tree, argument), argument)
    with ctx.workprec(_FIRST_BITS):
        if not found.total().is_finite():
            raise InvalidInputError(f"{argument} has no finite integral.")
    return found
