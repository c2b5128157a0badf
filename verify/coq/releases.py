"""(ε, δ)-DP of one release as a theorem of Coq: real noise, finite tables, randomized response."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flint import arb, fmpq

from dpassay.verifier.coq import terms
from dpassay.verifier.coq.terms import (
    EXACT,
    RATIONAL,
    UncoveredError,
    fraction,
    listed,
    number,
    read,
    real,
    value,
)
from dpassay.verifier.kernel import numbers
from dpassay.verifier.kernel.notation import Noise, parse
from dpassay.verifier.kernel.numbers import ball

BITS = 600
"""Of the balls by which an event is chosen."""
_INTERVAL = "interval with (i_prec 120)"
_SMALL = f"first [lra | {_INTERVAL}]"
"""What proves simple comparisons; with a precision Coq needs no axioms about machine floats."""
_VARIABLES = ("where", "for_all", "let", "assume")


def written(theorem: Mapping[str, Any], _: Mapping[str, Any]) -> tuple[Sequence[str], str]:
    """Return the chapters that a theorem needs, and the theorem with its proof."""
    if any(theorem[key] for key in _VARIABLES) or theorem["verdict"] not in ("HOLDS", "REFUTED"):
        raise UncoveredError("statements with variables")
    noise = parse(theorem["mechanism"])
    name = noise.name if isinstance(noise, Noise) else ""
    epsilon, delta = theorem["epsilon"], theorem.get("delta", "0")
    holds = theorem["verdict"] == "HOLDS"
    if name in DENSITIES:
        return ("densities",), _additive(noise, epsilon, delta, holds=holds)
    if name == "RandomizedResponse":
        return ("tables",), _response(noise, epsilon, delta, holds=holds)
    if name in _TABLES:
        return ("tables",), _table(noise, epsilon, delta, holds=holds)
    raise UncoveredError(f"the mechanism {name or 'in this notation'}")


def _theorem(statement: str, steps: Sequence[str], *, holds: bool) -> str:
    """Return a theorem with its proof, whose first step is followed by one step for each goal."""
    name, sign = ("holds", "") if holds else ("refuted", "~ ")
    first, *goals = steps
    lines = [f"Theorem {name} :", f"  {sign}{statement}.", "Proof.", f"  apply ({first})."]
    lines += [f"  - {goal}." for goal in goals]
    return "\n".join([*lines, "Qed.", "", f"Print Assumptions {name}.", ""])


# --- real noise ---------------------------------------------------------------------------------
def _logistic_cut(epsilon: arb, shift: arb) -> arb:
    ratio = ((epsilon - shift) / 2).exp()
    return ((ratio * shift.exp() - 1) / (1 - ratio)).log()


DENSITIES: Mapping[str, tuple[Callable[[arb, arb], arb], Callable[[arb], arb]]] = {
    "Gaussian": (lambda e, d: e / d + d / 2, lambda x: (x / arb(2).sqrt()).erfc() / 2),
    "Laplace": (lambda e, d: (e + d) / 2, lambda x: (1 - x.sgn() * (1 - (-abs(x)).exp())) / 2),
    "Logistic": (_logistic_cut, lambda x: 1 / (1 + x.exp())),
}
"""Noise → where the loss is ε between noise of scale 1 and that moved by d, and its upper tail."""


def _additive(noise: Noise, epsilon: str, delta: str, *, holds: bool) -> str:
    scale, shift = noise.arguments.values()
    law = noise.name.lower()
    e, d, s, b = (real(read(text)) for text in (epsilon, delta, shift, scale))
    statement = f"dp (within {s}) ordered (release ({law} {b})) {e} {d}"
    if holds:
        with numbers.precision(BITS):
            if law != "laplace" or value(shift) / value(scale) > value(epsilon):
                raise UncoveredError(f"HOLDS of {noise.name} noise with this epsilon")
        steps = ["laplace_dp", _SMALL, _SMALL]
        return _theorem(statement, [*steps, f"first [{_SMALL} | field_simplify; lra]"], holds=True)
    with numbers.precision(BITS):
        event, p, q, bits = _event(
            noise.name, *(ball(value(t)) for t in (scale, shift, epsilon, delta))
        )
    ends = listed([f"({number(event[0])}, {number(event[1])})"])
    fuel = 100 + 20 * (bits - 60)
    integral = f"unfold release, {law}. integral with (i_prec {bits}, i_fuel {fuel})"
    steps = [f"refutes {s} 0 {ends} {number(p)} {number(q)}", f"apply within_self. {_SMALL}"]
    steps += ["simpl. repeat split; lra", integral, integral, f"interval with (i_prec {bits})"]
    return _theorem(statement, steps, holds=False)


def _event(
    name: str, scale: arb, shift: arb, epsilon: arb, delta: arb
) -> tuple[tuple[fmpq, fmpq], fmpq, fmpq, int]:
    """Return an interval [a, b] and decimals p < P[a, b], q > Q[a, b] with p − e^ε q > δ.

    They need no proof: they are rounded from balls, with room, and the bits are those for Coq.
    """
    cut, above = DENSITIES[name]
    power = epsilon.exp()
    first = cut(epsilon, shift / scale) * scale

    def masses(a: arb, b: arb) -> tuple[arb, arb]:
        p, q = (above((a - m) / scale) - above((b - m) / scale) for m in (shift, arb(0)))
        return p, q

    def gain(p: arb, q: arb) -> arb:
        return p - power * q - delta

    most = gain(*(above((first - m) / scale) for m in (shift, arb(0))))
    unit = int(float(scale.log() / arb(10).log()) // 1)
    for digits in range(2, 40) if most > 0 else ():
        a = terms.rounded(first, max(0, digits - unit))
        for width in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256):
            b = a + terms.rounded(width * scale, max(0, 2 - unit), up=True)
            p, q = masses(ball(a), ball(b))
            room = gain(p, q)
            if room > most / 2:
                places = terms.least_bits(room / power) * 3 // 10 + 3
                low = terms.rounded(p - room / 4, places)
                high = terms.rounded(q + room / (4 * power), places, up=True)
                return (a, b), low, high, max(60, 50 + terms.least_bits(room / p))
    raise UncoveredError("a refutation by so little")


# --- finite laws --------------------------------------------------------------------------------
def _response(noise: Noise, epsilon: str, delta: str, *, holds: bool) -> str:
    own, e, d = (real(read(text)) for text in (noise["epsilon"], epsilon, delta))
    k = number(terms.rational(noise["categories"], "a number of categories"))
    statement = f"dp (categories {k}) (@NoDup Z) (probability (response {own} {k})) {e} {d}"
    if holds:
        last = f"first [unfold Rdiv; rewrite Rminus_diag_eq by reflexivity; lra | {_INTERVAL}]"
        return _theorem(statement, ["response_dp", _SMALL, "lia", _SMALL, _SMALL, last], holds=True)
    p, q = (f"({mass} / (exp {own} + IZR {k} - 1))" for mass in (f"exp {own}", "1"))
    same = "right. unfold probability, response. simpl. ring"
    steps = [f"refutes 0%Z 1%Z [0%Z] {p} {q}", "unfold categories. lia"]
    steps += ["repeat constructor; simpl; lia", same, same, _INTERVAL]
    return _theorem(statement, steps, holds=False)


_TABLES = ("Tabulated", "Channel", "IntegerNoise")
Masses = Mapping[int, fmpq]


def _masses(entries: Any) -> list[fmpq]:
    return [terms.rational(text, "a mass") for text in entries]


def _table(noise: Noise, epsilon: str, delta: str, *, holds: bool) -> str:
    """Return the theorem about a table, or about integer noise."""
    claimed = terms.rational(delta, "a delta")
    if noise.name == "IntegerNoise":
        law, low = (
            _masses(noise["probabilities"]),
            int(terms.rational(noise["lowest"], "a number").p),
        )
        most = int(terms.rational(noise["sensitivity"], "a sensitivity").p)
        given = f"Definition low : Z := ({low})%Z.\nDefinition law : list Q := {terms.row(law)}."
        laws, neighbours, masses = "is_law law", f"(apart {most})", "(noise low law)"
        lemma, near = f"noise_dp low law {most}", "unfold apart. lia"
        rows = {x: dict(enumerate(law, start=low + x)) for x in range(-most, most + 1)}
        pairs = [(x, 0) for x in rows if x]
    else:
        table, pairs = _rows(noise)
        text = listed(f"({x}, {y})" for x, y in pairs)
        given = f"Definition rows : list (list Q) := {listed(map(terms.row, table))}."
        given += f"\nDefinition pairs : list (Z * Z) := {text}%Z."
        laws, neighbours, masses = "forallb is_law rows", "(listed pairs)", "(table rows)"
        lemma, near = f"table_dp rows pairs {len(table[0])}", "unfold listed, pairs. simpl. tauto"
        rows = {x: dict(enumerate(row)) for x, row in enumerate(table)}
    given += f"\nLemma laws : {laws} = true.\nProof. {EXACT}. Qed.\n\n"
    e, d = real(read(epsilon)), number(claimed)
    statement = f"dp {neighbours} (@NoDup Z) (probability (rational {masses})) {e} {d}"
    exact = fraction(claimed)

    def best(power: fmpq) -> tuple[fmpq, int, int]:
        return max((_excess(rows[x], rows[y], power), x, y) for x, y in pairs)

    if holds:
        power, tactic = terms.power(epsilon, above=False, good=lambda e: best(e)[0] <= claimed)
        steps = [f"{lemma} {fraction(power)} {exact}", RATIONAL, tactic, EXACT]
        return given + _theorem(statement, steps, holds=True)
    power, tactic = terms.power(epsilon, above=True, good=lambda e: best(e)[0] > claimed)
    _, x, y = best(power)
    event = listed(f"({z})" for z, p in rows[x].items() if p > power * rows[y].get(z, fmpq(0)))
    first = f"table_refuted _ _ ({x}) ({y}) {event}%Z {fraction(power)} {exact}"
    steps = [first, RATIONAL, near, EXACT, tactic, EXACT, EXACT]
    return given + _theorem(statement, steps, holds=False)


def _rows(noise: Noise) -> tuple[list[list[fmpq]], list[tuple[int, int]]]:
    """Return the rows of a table, and its neighbours in both orders."""
    if noise.name == "Tabulated":
        return [_masses(noise["p"]), _masses(noise["q"])], [(0, 1), (1, 0)]
    table = [_masses(row) for row in noise["matrix"]]
    pairs = [(i, j) for i in range(len(table)) for j in range(i)]
    if noise["neighbours"] != "None":
        given = noise["neighbours"]
        numbered = (int(terms.rational(i, "a row").p) for pair in given for i in pair)
        pairs = [*zip(numbered, numbered, strict=True)]
    return table, sorted({(i, j) for pair in pairs for i, j in (pair, pair[::-1])})


def _excess(p: Masses, q: Masses, power: fmpq) -> fmpq:
    """Return Σ max(0, p(z) − e q(z))."""
    return sum((max(fmpq(0), mass - power * q.get(z, fmpq(0))) for z, mass in p.items()), fmpq(0))
