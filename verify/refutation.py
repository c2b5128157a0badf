"""A refutation for its reader: the event in the units of the release, a check, and a remedy.

A finding holds an event S = {L > ε} with both of its probabilities, which are proved. Here it is
said of two datasets and of published values, with a program of the standard library alone that
prints the same numbers in floats.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from dpassay.accountant import notation
from dpassay.accountant.errors import DpassayError
from dpassay.accountant.numbers.exact import exact, in_short
from dpassay.accountant.numbers.interval import Interval, enclose

if TYPE_CHECKING:
    from dpassay.verifier.verdict import Finding

_DIGITS = 15
"""Digits of a number in the program: a double holds no more."""
_LEAST = 1e-9
"""Below this probability `NormalDist.cdf` loses digits, and the program uses erfc."""
_FEW_DIGITS = 4
"""With fewer digits the true δ is only bounded, and the excess is that of the event."""
_BEYOND_FLOATS = (DpassayError, ArithmeticError, ValueError)
"""Errors of numbers that no float holds: the law alone then describes the event, without a
program."""
_TINY = 1e-290
"""Below this probability a double has few digits or none: there is no program."""
_CLEAR = 1e-9
"""A smaller difference, relative to P(S), is not left to floats: there is no program."""
_MOST_MASSES = 12
"""Outcomes that the program lists."""
_WIDTH = 72
"""Columns of the program."""
_REACH = 40
"""Noise on integers is summed up to so many standard deviations."""
_MOST_INTEGERS = 100_000
"""Integers that the program sums over, so that it ends at once."""
_ROUNDING = 1e-12
"""The relative distance of sums of masses in floats from the proved ones."""


@final
@dataclass(frozen=True)
class ByHand:
    """What a reader needs to check a refutation without this program."""

    datasets: str
    """The datasets of P and Q."""
    event: str
    p: Interval
    q: Interval
    inequality: str
    """What P(S) is, and what the claim allows."""
    program: tuple[str, ...]
    """Lines of Python that print P(S), Q(S) and what decides; empty where there is none."""


@final
@dataclass(frozen=True)
class _Event:
    """An event in the units of the release, and lines of Python that assign p and q."""

    datasets: str
    event: str
    lines: tuple[str, ...] = ()


def by_hand(finding: Finding) -> ByHand | None:
    """Return the refutation in the release's own units; None where the finding has no event."""
    witness = finding.witness
    if witness.get("fact") != "event":
        return None
    p, q = (Interval.of_json(witness[side]) for side in "pq")
    found, inequality, decides = None, "", ""
    with suppress(*_BEYOND_FLOATS):
        found = _described(witness, p, q)
    with suppress(*_BEYOND_FLOATS):
        inequality, decides = _inequality(finding, p, q)
    found = found or _Event(_NEIGHBOURS, str(witness["description"]))
    program: tuple[str, ...] = ()
    if found.lines and decides:
        program = _importing([*found.lines, f"print(p, q, {decides})"])
    return ByHand(found.datasets, found.event, p, q, inequality, program)


def _described(witness: Mapping[str, Any], p: Interval, q: Interval) -> _Event | None:
    """Describe the event in the units of the release; None where floats do not."""
    loss, small = float(exact(witness["loss_above"])), float(q)
    describe = _DESCRIPTIONS.get(str(witness["law"].get("law")))
    if describe is None or abs(loss) > _LARGEST_LOSS:
        return None
    found = describe(_mechanism(witness), witness["law"], loss, float(p), small)
    return found if found is None or small > _TINY else replace(found, lines=())


def _importing(lines: Sequence[str]) -> tuple[str, ...]:
    """Put the imports of a program before it."""
    text = "\n".join(lines)
    imports = {"math.": "import math", "NormalDist(": "from statistics import NormalDist"}
    return (*(line for used, line in imports.items() if used in text), *lines)


def _inequality(finding: Finding, p: Interval, q: Interval) -> tuple[str, str]:
    """Return the inequality that contradicts the claim, in numbers and (or empty) as Python."""
    claimed, loss = finding.claimed, exact(finding.witness["loss_above"])
    if "delta" in claimed:
        delta, true = exact(claimed["delta"]), finding.true.get("delta")
        excess = None if true is None else Interval.of_json(true)
        if excess is None or excess.digits < _FEW_DIGITS:
            excess = p - enclose(lambda: loss.ball().exp()) * q
        clear = float(excess) - float(delta) > _CLEAR * float(p)
        shown = f"P(S) - e^{in_short(loss)} Q(S) = {excess} > {in_short(delta)}"
        return shown, f'p - math.exp({_text(loss)}) * q, ">", {_text(delta)}' if clear else ""
    if "mu" in claimed:
        from dpassay.accountant.mechanisms import Gaussian
        from dpassay.accountant.questions.tradeoff import power

        mu = exact(claimed["mu"])
        most = power(Gaussian(1, mu), q.upper, relative_width="1e-12")
        clear = float(p) - float(most) > _CLEAR * float(p) and float(q) > _LEAST
        shown = f"P(S) = {p} > {most}, the most that {in_short(mu)}-GDP allows at Q(S)"
        allowed = f"NormalDist().cdf(NormalDist().inv_cdf(q) + {_text(mu)})"
        return shown, f'p, ">", {allowed}' if clear else ""
    return "", ""


def _mechanism(witness: Mapping[str, Any]) -> Any:
    """Return the mechanism of a finding; None where it is only described."""
    try:
        return notation.parse(str(witness.get("mechanism", "")))
    except DpassayError:
        return None


def _gaussian(mechanism: Any, law: Mapping[str, Any], loss: float, p: float, q: float) -> _Event:
    """Describe a half-space: the published value, or the mean of several, above a number."""
    from dpassay.accountant.mechanisms import Composed, Gaussian

    what, count, base = "published value", 1, mechanism
    if type(mechanism) is Composed and mechanism.count > 1:
        count, base = mechanism.count, mechanism.mechanism
        what = f"mean of the {count} published values"
    if type(base) is Gaussian:
        shift, sigma = float(base.l2_sensitivity), float(base.standard_deviation)
        datasets = _truth(_text(shift))
    else:
        shift, sigma, count = float(Interval.of_json(law["mu"])), 1.0, 1
        datasets = f"scaled to noise of standard deviation 1, {_truth(_text(shift))}"
        what = "release, along the difference of the true answers,"
    spread = sigma / math.sqrt(count)
    cut = spread**2 * loss / shift + shift / 2
    noise = _text(sigma) if count == 1 else f"{_text(sigma)} / math.sqrt({count})"
    lines = _normal_tails(cut, noise, (_text(shift), "0"), q)
    return _Event(datasets, f"the {what} is above {_text(cut)}", lines)


def _normal_tails(cut: float, noise: str, means: tuple[str, str], q: float) -> tuple[str, ...]:
    """Return the lines that assign both normal probabilities above a number."""
    each = f"for m in ({', '.join(means)})"
    if q > _LEAST:
        return (f"noise = NormalDist(0, {noise})", f"p, q = (noise.cdf(m - {_text(cut)}) {each})")
    return (
        f"unit = {noise} * math.sqrt(2)",
        f"p, q = (math.erfc(({_text(cut)} - m) / unit) / 2 {each})",
    )


def _sampled(
    mechanism: Any, law: Mapping[str, Any], loss: float, p: float, q: float
) -> _Event | None:
    """Describe a half-line of Gaussian noise on a Poisson sample."""
    from dpassay.accountant.mechanisms import Gaussian, PoissonSubsampled

    if type(mechanism) is not PoissonSubsampled or type(mechanism.mechanism) is not Gaussian:
        return None
    rate, base = float(mechanism.sampling_prob), mechanism.mechanism
    shift, sigma = float(base.l2_sensitivity), float(base.standard_deviation)
    if law.get("mixture") != "P" or not math.expm1(loss) + rate > 0 or q < _LEAST:
        return None
    cut = sigma**2 / shift * math.log1p(math.expm1(loss) / rate) + shift / 2
    tails = _normal_tails(cut, _text(sigma), (_text(shift), "0"), q)
    noise, last = (line.replace("p, q =", "a, q =") for line in tails)
    lines = (noise, last, f"p = {_text(rate)} * a + (1 - {_text(rate)}) * q")
    datasets = (
        f"Q: the record is absent, the true answer is 0; P: it is sampled with probability "
        f"{_text(rate)}, and adds {_text(shift)}"
    )
    return _Event(datasets, f"the published value is above {_text(cut)}", lines)


def _laplace(mechanism: Any, law: Mapping[str, Any], loss: float, p: float, q: float) -> _Event:
    from dpassay.accountant.mechanisms import Laplace

    own = type(mechanism) is Laplace
    shift, scale, datasets = _additive(mechanism, law, "l1_sensitivity", own=own)
    cut = (shift + scale * loss) / 2
    lines: tuple[str, ...] = ()
    if 0 <= cut <= shift:
        unit, at = _text(scale), _text(cut)
        lines = (
            f"p = 1 - math.exp(({at} - {_text(shift)}) / {unit}) / 2",
            f"q = math.exp(-{at} / {unit}) / 2",
        )
    return _Event(datasets, f"the published value is above {_text(cut)}", lines)


def _logistic(
    mechanism: Any, law: Mapping[str, Any], loss: float, p: float, q: float
) -> _Event | None:
    from dpassay.accountant.mechanisms import Logistic

    shift, scale, datasets = _additive(
        mechanism, law, "sensitivity", own=type(mechanism) is Logistic
    )
    length = shift / scale
    ratio = math.exp((loss - length) / 2)
    below = ratio * math.exp(length) - 1
    if not (below > 0 and ratio < 1):
        return None
    cut = -scale * math.log((1 - ratio) / below)
    each = f"for m in ({_text(shift)}, 0)"
    lines = (f"p, q = (1 / (1 + math.exp(({_text(cut)} - m) / {_text(scale)})) {each})",)
    return _Event(datasets, f"the published value is above {_text(cut)}", lines)


def _additive(
    mechanism: Any, law: Mapping[str, Any], sensitivity: str, *, own: bool
) -> tuple[float, float, str]:
    """Return the distance of the true answers, the scale of the noise, and both datasets."""
    if own:
        shift, scale = float(getattr(mechanism, sensitivity)), float(mechanism.scale)
        return shift, scale, _truth(_text(shift))
    shift = float(exact(law["distance"]))
    return shift, 1.0, f"in units of the noise, {_truth(_text(shift))}"


def _discrete_laplace(
    mechanism: Any, law: Mapping[str, Any], loss: float, p: float, q: float
) -> _Event | None:
    scale = float(exact(law["scale"]))
    return _integers(law, loss, f"-abs(z) / {_text(scale)}", scale, lambda z: -abs(z) / scale)


def _discrete_gaussian(
    mechanism: Any, law: Mapping[str, Any], loss: float, p: float, q: float
) -> _Event | None:
    double = 2 * float(exact(law["parameter"]))
    weight, size = f"-z * z / {_text(double)}", math.sqrt(double)
    return _integers(law, loss, weight, size, lambda z: -z * z / double)


def _integers(
    law: Mapping[str, Any], loss: float, weight: str, size: float, log_mass: Callable[[int], float]
) -> _Event | None:
    """Describe a half-line of integers; both laws are the same noise, one of them shifted."""
    shift = int(law["shift"])
    reach = math.ceil(_REACH * size) + shift + 1
    if reach > _MOST_INTEGERS:
        return None
    losses = ((z, log_mass(z - shift) - log_mass(z)) for z in range(-reach, reach + 1))
    cut = next((z for z, value in losses if value > loss + _ROUNDING * max(1, abs(loss))), None)
    if cut is None:
        return None
    lines = (
        f"w = {{z: math.exp({weight}) for z in range({-reach}, {reach + 1})}}",
        f"p, q = (sum(w[z] for z in w if z >= {cut} - m) / sum(w.values()) for m in ({shift}, 0))",
    )
    return _Event(_truth(str(shift)), f"the published value is at least {cut}", lines)


def _finite(
    mechanism: Any, law: Mapping[str, Any], loss: float, p: float, q: float
) -> _Event | None:
    """Describe the outcomes of a table, with their masses."""
    sides = [[_mass(mass) for mass in law[side]] for side in "pq"]
    rows = list(zip(law["outcomes"], *sides, strict=True))
    inside = [row for row in rows if row[1] > math.exp(loss) * row[2]]
    if not inside or len(inside) > _MOST_MASSES:
        return None
    sums = [math.fsum(row[side] for row in inside) for side in (1, 2)]
    if any(abs(a - b) > _ROUNDING * b for a, b in zip(sums, (p, q), strict=True)):
        return None
    shift = _shift(rows)
    names = ", ".join(str(row[0]) for row in inside)
    if shift is None:
        datasets, event = (
            _NEIGHBOURS,
            f"the output is {names}" if len(inside) == 1 else (f"the output is one of: {names}"),
        )
    else:
        datasets, event = _truth(str(shift)), f"the published value is in {{{names}}}"
    lines = [line for at, side in ((1, "p"), (2, "q")) for line in _sum(side, at, inside)]
    return _Event(datasets, event, tuple(lines))


def _sum(side: str, at: int, rows: Sequence[tuple[Any, float, float]]) -> list[str]:
    """Return the lines that add masses up, none longer than a terminal."""
    masses = ", ".join(_text(row[at]) for row in rows if row[at])
    return textwrap.wrap(
        f"{side} = math.fsum([{masses}])", _WIDTH, subsequent_indent="    ", break_long_words=False
    )


def _shift(rows: Sequence[tuple[Any, float, float]]) -> int | None:
    """Return by how much integers are larger under P, where that is the only difference."""
    if not all(type(outcome) is int for outcome, _, _ in rows):
        return None
    p, q = ({row[0]: row[at] for row in rows if row[at]} for at in (1, 2))
    shift = min(p) - min(q)
    return shift if p == {z + shift: mass for z, mass in q.items()} and shift > 0 else None


def _mass(value: str | Mapping[str, str]) -> float:
    return float(exact(value) if isinstance(value, str) else Interval.of_json(value))


def _truth(shift: str) -> str:
    return f"Q: the true answer is 0; P: a neighbour, whose true answer is {shift}"


def _text(value: object) -> str:
    """Print a number as Python reads it, to the digits of a double."""
    return f"{float(value):.{_DIGITS}g}"  # type: ignore[arg-type]  # what converts


_NEIGHBOURS = "P and Q: the release on two neighbouring datasets"
_LARGEST_LOSS = 700.0
"""A larger loss overflows `math.exp`."""
_DESCRIPTIONS: dict[str, Callable[[Any, Mapping[str, Any], float, float, float], _Event | None]] = {
    "gaussian": _gaussian,
    "subsampled": _sampled,
    "laplace": _laplace,
    "logistic": _logistic,
    "discrete-laplace": _discrete_laplace,
    "discrete-gaussian": _discrete_gaussian,
    "finite": _finite,
}
"""How an event is described, by the law of the pair."""


PROGRAM = "Check it without dpassay: this prints P(S), Q(S) and the inequality."
"""Stands above the lines of Python that check a refutation."""


def evidence(finding: Finding) -> str:
    """Return the event of a refutation and the program that checks it; empty without an event."""
    return "".join(f"{label}: {text}\n" for label, text in event(finding)) + program(finding)


def program(finding: Finding) -> str:
    """Return the lines of Python that check a refutation, to be copied; empty where none do."""
    found = by_hand(finding)
    if found is None or not found.program:
        return ""
    return "\n".join(["", PROGRAM, "", *found.program]) + "\n"


def event(finding: Finding) -> list[tuple[str, str]]:
    """Return the event of a refutation, with both of its probabilities."""
    found = by_hand(finding)
    if found is None:
        return []
    return [
        ("datasets", found.datasets),
        ("event S", found.event),
        ("P(S), Q(S)", f"{found.p}, {found.q}"),
        ("so", found.inequality),
    ]


# --- What would make a refuted claim true: more noise, a larger ε, the corrected statement --------

TYPED = ("command line", "Python")
"""The sources of claims that users type: for these the least noise is found too."""
_NOISE_DIGITS = 5
"""Digits of the noise, rounded to the side on which the claim is true."""
_WORDS = ("epsilon", "delta", "mu", "rho")


def needed_noise(finding: Finding) -> str:
    """Say with which noise a mechanism that a user typed has the guarantee; else empty."""
    from dpassay.accountant.budget.calibrate import calibrate
    from dpassay.accountant.budget.target import read_target

    if finding.source not in TYPED:
        return ""
    mechanism: Any = _mechanism(finding.witness)
    argument = getattr(mechanism, "noise_argument", None)
    if argument is None:
        return ""
    with suppress(DpassayError):
        kinds = [n for n in (argument, mechanism.gaussian_noise_argument) if n]
        argument = next((n for n in kinds if getattr(mechanism, n) is not None), argument)
        others = {
            name: getattr(mechanism, name)
            for name in notation.argument_names(type(mechanism).__name__)
            if name not in (*kinds, "adjacency") and getattr(mechanism, name) is not None
        }
        target = read_target({name: finding.claimed.get(name) for name in _WORDS})
        found = calibrate(
            type(mechanism), target, adjacency=finding.adjacency, digits=_NOISE_DIGITS, **others
        )
        # A counter of Gaussian noise may need more of it than of Laplace noise.
        made = next(n for n in kinds if getattr(found.mechanism, n) is not None)
        instead = "" if made == argument else f" in place of {argument}"
        sign = "≥" if mechanism.noise_grows else "≤"
        return f"needs {made} {sign} {getattr(found.mechanism, made)}{instead}"
    return ""


_FEWER_CASES = "leave out the case that is shown, and any other that fails"
_LESS = "add noise, or claim less"
"""For a claim about one mechanism."""
_OTHER = "change the statement: its only case refutes it"


def remedy(finding: Finding) -> str:
    """Return what would make a refuted claim true; empty for other verdicts."""
    if finding.verdict != "REFUTED":
        return ""
    parts = [needed_noise(finding), finding.true_from, finding.correction]
    if finding.source in TYPED or (finding.cases == 1 and "mechanism" in finding.witness):
        fallback = _LESS
    else:
        fallback = _FEWER_CASES if finding.cases > 1 else _OTHER
    return "; ".join(part for part in parts if part) or _value(finding) or fallback


def _value(finding: Finding) -> str:
    """Give the true value where a number was misprinted."""
    value = finding.true.get("value")
    return f"print {Interval.of_json(value)}" if isinstance(value, dict) else ""
