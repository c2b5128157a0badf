"""Least noise as a theorem of Coq: no law has less, by the multipliers, and one law has so much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flint import fmpq

from dpassay.verifier.coq import terms
from dpassay.verifier.coq.terms import EXACT, RATIONAL, UncoveredError, fraction, listed, number
from dpassay.verifier.kernel.numbers import rational

Data = Mapping[str, Any]
ZERO = fmpq(0)
MOST_COUNTS = 200
"""Of one theorem; each has its law."""
COSTS = {"variance": "square", "absolute": "absolute", "error": "error"}
"""Objective → its name in the chapter."""
Test = tuple[tuple[int, int], fmpq, dict[int, fmpq]]
"""Two true answers, the largest weight, and the weights of outputs."""


def integer_noise(theorem: Data, witness: Data) -> tuple[Sequence[str], str]:
    """Return the chapters and the theorem: the least cost, or the least δ, of integer noise."""
    if theorem["monotone"]:
        raise UncoveredError("noise that has to fall")
    size, most, objective = theorem["support"], theorem["sensitivity"], theorem["objective"]
    eta = None if theorem["error_free"] is None else rational(theorem["error_free"])
    low, high = map(rational, witness["ratio"])
    law = [*map(rational, witness["law"])]
    tests, numbers = _dual(theorem, witness, high)
    lower, upper = rational(theorem["lower"]), rational(theorem["upper"])
    allowed = upper if theorem["delta"] is None else rational(theorem["delta"])

    e, above, below = _power(theorem, low, high)
    name = COSTS.get(objective, "(fun _ => 0%Q)" if objective == "delta" else "costs")
    given = f"Definition law : list Q := {terms.row(law)}.\n"
    given += f"Definition tests : list test :=\n  {listed(map(_test, tests))}.\n"
    if name == "costs":
        masses = terms.row([ZERO, *map(rational, theorem["costs"])])
        given += f"Definition costs (z : Z) : Q := at_ 0 {masses} (Z.abs z).\n"
    given += f"Lemma law_sums : is_law law = true.\nProof. {EXACT}. Qed.\n\n"
    at_zero = "" if eta is None else f"p 0%Z = {number(eta)}"
    private = f"dp (apart {most}) (@NoDup Z) (probability (added p)) {e}"
    dual = f"tests {number(eta or ZERO)} {number(lower)} p {e}"
    if objective == "delta":
        scope, delta, bound = "p delta, 0 <= delta ->", "delta", f"{number(lower)} <= delta"
        lemma = f"noise_least_delta {size} {most} {fraction(high)} {numbers} {dual} delta"
        found = f"{private} {number(upper)}"
    else:
        scope, delta = "p,", number(allowed)
        bound = f"{number(lower)} <= expected {size} {name} p"
        lemma = f"noise_least_cost {size} {most} {fraction(high)} {name} {numbers} {dual} {delta}"
        found = f"{private} {delta} /\\ expected {size} {name} p <= {number(upper)}"
    own = [f"    {at_zero} ->"] if at_zero else []
    lines = [f"Theorem optimal :\n  (forall {scope} law_on {size} p ->", *own]
    lines += [f"    {private} {delta} -> {bound}) /\\", f"  (exists p, law_on {size} p /\\"]
    lines += [f"    {at_zero} /\\"] if at_zero else []
    lines += [f"    {found}).", "Proof.", "  split."]
    lines += ["  - intros.", f"    apply ({lemma}); try assumption."]
    lines += [f"    + {step}." for step in (above, EXACT, RATIONAL, RATIONAL, "tauto")]
    lines += [f"  - exists (fun z => Q2R (at_ (- Z.of_nat {size}) law z))."]
    lines += [f"    split; [apply (noise_law {size}); [reflexivity|apply law_sums]|]."]
    lines += [f"    split; [{RATIONAL}|]."] if at_zero else []
    terms_ = f"(- Z.of_nat {size}) law {most} {fraction(low)} {fraction(allowed)}"
    proofs = f"refine (noise_dp {terms_} _ _ _ _ _); [{RATIONAL}|{below}|{EXACT}]"
    if objective == "delta":
        lines += [f"    {proofs}."]
    else:
        lines += [f"    split; [{proofs}|]."]
        lines += [f"    rewrite noise_expected. apply (rational_le _ {fraction(upper)})."]
        lines += [f"    + {RATIONAL}.", f"    + {EXACT}."]
    lines += ["Qed.", "", "Print Assumptions optimal.", ""]
    return ("tables", "optima"), given + "\n".join(lines)


def _dual(theorem: Data, witness: Data, high: fmpq) -> tuple[list[Test], str]:
    """Return the tests, and three numbers: what no place is below, what 0 has more, all weights."""
    size, eta = theorem["support"], theorem["error_free"]
    tests = _both_ways([[*map(rational, test)] for test in witness["tests"]], size)
    values = {z: _cost(theorem, abs(z)) for z in range(-size, size + 1)}
    for (x, y), _, weights in tests:
        for o, w in weights.items():
            for place, change in ((o - x, w), (o - y, -high * w)):
                if place in values:
                    values[place] += change
    least = min(value for z, value in values.items() if z or eta is None)
    more = ZERO if eta is None else values[0] - least
    total = sum((top for _, top, _ in tests), ZERO)
    return tests, " ".join(map(fraction, (least, more, total)))


def _both_ways(tests: Sequence[Sequence[fmpq]], size: int) -> list[Test]:
    """Return half of each test of 0 against s, and half of its mirror image, of 0 against −s."""
    found: list[Test] = []
    for shift, entries in enumerate(tests, start=1):
        for sign in (1, -1):
            weights = {sign * (i - size): w / 2 for i, w in enumerate(entries) if w}
            if weights:
                found.append(((0, sign * shift), max(weights.values()), weights))
    return found


def _test(test: Test) -> str:
    (x, y), top, weights = test
    pairs = listed(f"(({o})%Z, {fraction(w)})" for o, w in weights.items())
    return f"Test ({x}) ({y}) {fraction(top)} {pairs}"


def _cost(theorem: Data, z: int) -> fmpq:
    """Return what an error of size z costs."""
    if not z or theorem["objective"] == "delta":
        return ZERO
    if theorem["objective"] == "cost":
        return rational(theorem["costs"][z - 1])
    return fmpq(z ** {"variance": 2, "absolute": 1, "error": 0}[theorem["objective"]])


def _power(theorem: Data, low: fmpq, high: fmpq) -> tuple[str, str, str]:
    """Return ε, and the tactics that prove e^ε ≤ high and low ≤ e^ε."""
    if theorem["ratio"] is not None:
        power = rational(theorem["ratio"])
        exact = f"rewrite exp_ln; {RATIONAL}"
        return f"(ln {number(power)})", exact, exact
    text = theorem["epsilon"]
    bits = 64 + int(max(low.q, high.q)).bit_length()
    tactic = terms.of_power(text, bits)
    return terms.real(terms.read(text)), tactic, tactic


# --- count noise --------------------------------------------------------------------------------
def count_noise(theorem: Data, witness: Data) -> tuple[Sequence[str], str]:
    """Return the chapters and the theorem: the least δ of unbiased noise on counts."""
    size, eta, last = theorem["support"], rational(theorem["eta"]), theorem["max_count"]
    begin = size if last is None else theorem["min_count"]
    if last is not None and last - begin >= MOST_COUNTS:
        raise UncoveredError(f"count noise of more than {MOST_COUNTS} counts")
    low, high = map(rational, witness["ratio"])
    lower, upper = rational(theorem["lower"]), rational(theorem["upper"])
    one = theorem["objective"] == "singular"
    tests = _of_flows(witness["flows"], one=one)
    mult = listed(_multipliers(witness, begin, last))
    e, above, below = _power(theorem, low, high)
    key, event = "own" if last else f"(shared {begin})", "single" if one else "any"
    ends = f"{begin} {'None' if last is None else f'(Some {last}%Z)'}"
    given = (
        f"Definition laws : list (Z * (Z * list Q)) :=\n  {listed(map(_law, witness['laws']))}%Z.\n"
    )
    given += f"Definition tests : list test :=\n  {listed(map(_test, tests))}.\n"
    given += f"Definition mult : list (Z * (Q * Q)) := {mult}.\n"
    count = 1 if last is None else last - begin + 1
    given += f"Definition keys : list Z := range {begin} {count}.\n\n"
    every = f"(forall k, In k keys -> count_law {size} {number(eta)} k (p k))"
    private = f"dp (next {ends}) {event} (probability (of_key {key} p)) {e}"
    flag, exact = str(one).lower(), fraction(eta)
    dual = f"{flag} {key} {ends} {size} keys {fraction(high)} {exact} {fraction(lower)} mult tests"
    inside = "intros x [from to]; unfold keys; " + (
        "simpl; auto" if last is None else "apply in_range; unfold own; lia"
    )
    constant = "reflexivity" if last is None else "discriminate"
    lines = [
        "Theorem optimal :",
        f"  (forall p delta, 0 <= delta -> {every} ->",
        f"    {private} delta -> {number(lower)} <= delta) /\\",
        f"  (exists p, {every} /\\",
        f"    {private} {number(upper)}).",
        "Proof.",
        "  assert (forall k, In k keys -> (0 <= k)%Z) as least_key.",
        "  { intros k is_key. apply in_map_iff in is_key. destruct is_key as [i [<- _]]. lia. }",
        "  split.",
        "  - intros p delta positive_ all private.",
        f"    apply (count_least {dual} {number(eta)} _ p {e} delta); try assumption; try lia.",
        f"    + {RATIONAL}.",
        f"    + {RATIONAL}.",
        f"    + {above}.",
        f"    + {EXACT}.",
        "    + apply NoDup_range.",
        f"    + {inside}.",
        "  - exists (fun k => masses (law_of laws k)). split.",
        f"    + intros k is_key. apply (count_law_of {size} {exact}).",
        f"      * {RATIONAL}.",
        "      * now apply least_key.",
        "      * lia.",
        f"      * revert k is_key. apply (forallb_forall (fun k => law_check {size} {exact} k",
        f"          (law_of laws k))). {EXACT}.",
        f"    + apply (count_dp {flag} {key} {ends} {fraction(low)} {fraction(upper)} laws).",
        f"      * {RATIONAL}.",
        f"      * {below}.",
        f"      * {EXACT}.",
        f"      * {constant}.",
    ]
    lines += ["Qed.", "", "Print Assumptions optimal.", ""]
    return ("tables", "optima", "counts"), given + "\n".join(lines)


def _law(entry: Data) -> str:
    last = entry["first"] if entry["last"] is None else entry["last"]
    masses = terms.row([*map(rational, entry["probabilities"])])
    return f"(({last}), (({entry['lowest']}), {masses}))"


def _of_flows(flows: Sequence[Data], *, one: bool) -> list[Test]:
    """Return the multipliers as tests: one for each output, or one for each pair of counts."""
    found: dict[Any, dict[int, fmpq]] = {}
    for index, entry in enumerate(flows):
        pair, output = (entry["count"], entry["other"]), entry["count"] + entry["noise"]
        weights = found.setdefault((pair, index if one else None), {})
        weights[output] = weights.get(output, ZERO) + rational(entry["flow"])
    return [(pair, max(weights.values()), weights) for (pair, _), weights in found.items()]


def _multipliers(witness: Data, begin: int, last: int | None) -> list[str]:
    """Return those of mass and mean, by the key of the law, which is 0 in a certificate of one."""
    mass, mean = ({int(k): rational(x) for k, x in witness[n].items()} for n in ("mass", "mean"))
    return [
        f"(({begin if last is None else k})%Z, ({fraction(mass.get(k, ZERO))}, "
        f"{fraction(mean.get(k, ZERO))}))"
        for k in sorted({*mass, *mean})
    ]
