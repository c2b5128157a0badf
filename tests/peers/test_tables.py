"""Unit-test tables of dp-accounting and Opacus: reproduced, or decided.

Every row of every table is asked. It states parameters in the words of the library, what its test
expects, and within what tolerance. The whole enclosure is within the tolerance, or the row is in
decided.toml, which says why and names the test that proves it, by closed forms and mpmath alone.
"""

from __future__ import annotations

import itertools
import math
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from flint import arb
from mpmath import mp, mpf

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import DpassayError, UndecidedError
from dpassay.accountant.mechanisms import (
    Composed,
    Gaussian,
    Guaranteed,
    MixtureOfGaussians,
    PoissonSubsampled,
    Tabulated,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.pairs import invert
from dpassay.accountant.questions import guarantees, profile, tradeoff
from dpassay.accountant.questions.least_mu import mu as least_mu
from dpassay.verifier.ask import verify
from dpassay.verifier.foreign import events

# Rows of other libraries' unit tests, and whether an enclosure is what a row expects


Row: TypeAlias = dict[str, Any]
FOLDER = Path(__file__).parent
WIDTH = Fraction(1, 10**9)


@dataclass(frozen=True)
class Case:
    """One row of one table."""

    table: str
    test: str
    row: int
    quantity: str
    given: Row

    def __str__(self) -> str:
        """Name the row."""
        return f"{self.table}: {self.test}[{self.row}] {self.quantity}"


def event_of(data: Any) -> Any:
    """Return an object with the class name and the attributes that a JSON object names."""
    if isinstance(data, list):
        return [event_of(entry) for entry in data]
    if not isinstance(data, dict):
        return data
    members = {key: event_of(value) for key, value in data.items() if key != "type"}
    kind = data.get("type", "").removesuffix("DpEvent")
    return type(f"{kind}DpEvent", (), members)()


def cases() -> Iterator[Case]:
    """Read every table; decimals stay the texts that they are."""
    for path in sorted(FOLDER.glob("*.toml")):
        if path.stem == "decided":
            continue
        table = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=str)
        for row in table["cases"]:
            yield Case(path.stem, row["test"], row["row"], row["quantity"], row)


def tolerance(row: Row, expected: Any) -> Fraction:
    if "relative" in row:  # numpy.isclose adds 1e-8
        return Fraction(row["relative"]) * abs(Fraction(expected)) + Fraction(1, 10**8)
    return Fraction(row["tolerance"])


def near(row: Row, found: Interval, expected: Any, what: str = "") -> str | None:
    """Compare an enclosure, which must lie within the tolerance as a whole."""
    said = f"{what} is in [{found.lower}, {found.upper}], expected {expected}"
    if math.isinf(float(expected)):
        same = math.isinf(found.lower) and (found.lower > 0) == (float(expected) > 0)
        return None if same else said
    if not (found.lower.is_finite() and found.upper.is_finite()):
        return said
    middle, slack = Fraction(expected), tolerance(row, expected) + FLOAT
    least, most = middle - slack, middle + slack
    return None if least <= Fraction(found.lower) and Fraction(found.upper) <= most else said


FLOAT = Fraction(1, 10**14)  # a few roundings: what tests want to be equal in floats


def narrowest(row: Row, ask: Callable[[Fraction], Interval]) -> Interval:
    """Ask for half of the tolerance; what is refused says the best enclosure reached."""
    wanted = Fraction(1, 10**9)
    if row.get("tolerance") and row.get("expected"):
        share = Fraction(row["tolerance"]) / Fraction(row["expected"]) / 2
        wanted = max(wanted, min(Fraction(1, 4), share))
    try:
        return ask(wanted)
    except UndecidedError as refusal:
        if isinstance(refusal.interval, Interval):
            return refusal.interval
        raise


# Rows about events, compositions and conversions: what accountants of other libraries say


BOTH = Adjacency.ADD_REMOVE


def _event(row: Row) -> tuple[Mechanism, Adjacency]:
    relation = row.get("relation", "ADD_OR_REMOVE_ONE")
    read = event_of(row["event"])
    return events.mechanism_of(read, relation), events.neighbours(relation).adjacency


def _event_delta(row: Row) -> str | None:
    mechanism, relation = _event(row)
    found = narrowest(
        row,
        lambda width: profile.delta(mechanism, row["at"], adjacency=relation, relative_width=width),
    )
    return near(row, found, row["expected"], "delta")


def _event_epsilon(row: Row) -> str | None:
    mechanism, relation = _event(row)
    found = narrowest(
        row,
        lambda width: profile.epsilon(
            mechanism, row["at"], adjacency=relation, relative_width=width
        ),
    )
    zero = Interval.of_exact(0)
    if found.lower < 0:  # an accountant of theirs says no less than 0
        found = Interval(zero.lower, max(found.upper, zero.upper))
    return near(row, found, row["expected"], "epsilon")


def _event_power(row: Row) -> str | None:
    mechanism, relation = _event(row)
    return near(row, tradeoff.power(mechanism, row["at"], adjacency=relation), row["expected"])


def _event_mu(row: Row) -> str | None:
    mechanism, relation = _event(row)
    found = least_mu(mechanism, adjacency=relation)
    return near(row, found, row["expected"], "mu")


def _event_renyi(row: Row) -> str | None:
    mechanism, relation = _event(row)
    if math.isinf(float(row["at"])):
        pairs = mechanism.worst_case(relation).pairs(None)
        return near(row, enclose(lambda: invert.most([p.max_loss() for p in pairs])),
                     row["expected"])  # fmt: skip
    parts = Composed(mechanism).parts()
    values = [(_largest_renyi(part, relation, row["at"]), count) for part, count in parts]
    total = enclose(lambda: sum((n * value.ball() for value, n in values), start=arb(0)),
                    relative_width=WIDTH)  # fmt: skip
    return near(row, total, row["expected"], f"order {row['at']}")


def _largest_renyi(part: Mechanism, relation: Adjacency, order: Any) -> Interval:
    return guarantees.renyi(part, order, adjacency=relation, relative_width=WIDTH)


def _event_at_most(row: Row) -> str | None:
    mechanism, relation = _event(row)
    found = profile.epsilon(mechanism, row["at"], adjacency=relation, relative_width=WIDTH)
    return None if Fraction(found.upper) < Fraction(row["expected"]) else f"epsilon is {found}"


def _event_refused(row: Row) -> str | None:
    try:
        _event(row)
    except DpassayError:
        return None
    return "the event is accepted"


def _kairouz(row: Row, epsilon: Any) -> Interval:
    """Enclose the least ε of anything that is (ε, δ)-DP, composed (Kairouz, Oh, Viswanath 2015)."""
    whole = Composed(Guaranteed(epsilon, row["delta"]), row["count"])
    if exact(row["total_delta"]) == exact(1 - (1 - Fraction(str(row["delta"]))) ** row["count"]):
        return enclose(lambda: row["count"] * exact(epsilon).ball())
    return profile.epsilon(whole, row["total_delta"])


def _composition(row: Row) -> str | None:
    found = _kairouz(row, row["epsilon"])
    return near(row, found, row["expected"], "total epsilon")


def _share(row: Row) -> str | None:
    """The largest ε of each release is within the tolerance."""
    if math.isinf(float(row["expected"])):
        found = _kairouz(row, 0)
        return None if math.isinf(found.lower) else f"total epsilon {found} with releases of 0"
    middle, tolerance = Fraction(row["expected"]), Fraction(row["tolerance"])

    def total(epsilon: Fraction) -> Interval:
        return _kairouz(row, epsilon)

    low, high = total(middle - tolerance), total(middle + tolerance)
    target = Fraction(row["total_epsilon"])
    if Fraction(low.upper) <= target <= Fraction(high.lower):
        return None
    return f"the total is {low} to {high} within the tolerance, not {target}"


def _conversion(row: Row) -> str | None:
    """Compare max(0, D + ln(1 − 1/a) − ln(δ a)/(a − 1)) (Canonne, Kamath and Steinke 2020)."""
    a, most, delta = (exact(row[name]) for name in ("order", "divergence", "delta"))

    def value() -> arb:
        x = a.ball()
        log = (delta.ball() * x).log()
        return (most.ball() + (-1 / x).log1p() - log / (x - 1)).max(arb(0))

    return near(row, enclose(value), row["expected"], "epsilon")


def _noise_search(row: Row, epsilon: Callable[[Mechanism, Any], Interval]) -> str | None:
    """A search that ends within 0.01 of its target ε: that of its σ, ± the tolerance, is there.

    PRV's value may itself exceed the exact one by 0.02, twice its `eps_error`.
    """
    middle, tolerance = Fraction(row["noise"]), Fraction(row["tolerance"])
    low, high = (
        epsilon(
            Composed(PoissonSubsampled(Gaussian(noise), row["sampling_prob"]), row["count"]),
            row["delta"],
        )
        for noise in (middle + tolerance, middle - tolerance)
    )
    least, most = (Fraction(value) for value in row["epsilon"])
    inside = least <= Fraction(high.upper) and Fraction(low.lower) <= most
    return None if inside else f"epsilon is {low} to {high} within the tolerance"


def _exact_epsilon(whole: Mechanism, delta: Any) -> Interval:
    return profile.epsilon(whole, delta, adjacency=BOTH, relative_width=Fraction(1, 10**6))


QUESTIONS: dict[str, Callable[[Row], str | None]] = {
    "composition": _composition,
    "conversion": _conversion,
    "event-at-most": _event_at_most,
    "event-delta": _event_delta,
    "event-epsilon": _event_epsilon,
    "event-mu": _event_mu,
    "event-power": _event_power,
    "event-refused": _event_refused,
    "event-renyi": _event_renyi,
    "prv-noise": lambda row: _noise_search(row, _exact_epsilon),
    "share": _share,
}


# Unit-test tables of dp-accounting, prv-accountant and Opacus: reproduced, or decided


DECIDED: list[Row] = tomllib.loads((FOLDER / "decided.toml").read_text(encoding="utf-8"))["decided"]
SLOW = (
    "test_mixture_of_gaussians_basic",
    "test_poisson_subsampled_gaussian",
    "test_self_composed_subsampled_gaussian",
    "test_get_noise_multiplier_rdp_steps",
)
"""Few releases of a small q, laws without an exact engine and long sums are the slow ones."""


def _is_decided(case: Case) -> bool:
    return any(_names(entry, case) for entry in DECIDED)


def _names(entry: Row, case: Case) -> bool:
    if case.test not in entry["tests"] or case.row not in entry.get("rows", [case.row]):
        return False
    if case.quantity not in entry.get("quantity", [case.quantity]):
        return False
    if "where" not in entry:
        return True
    key, value = entry["where"].split(" = ")
    return str({**case.given, **case.given.get("law", {})}[key]) in {value, f"{value}.0"}


def _groups() -> Iterator[object]:
    rows = sorted(cases(), key=lambda case: (case.table, case.test))
    for (table, test), group in itertools.groupby(rows, key=lambda case: (case.table, case.test)):
        slow = [pytest.mark.slow] if test.endswith(SLOW) else []
        yield pytest.param(list(group), id=f"{table}:{test}", marks=slow)


@pytest.mark.parametrize("rows", list(_groups()))
def test_every_row_is_reproduced_or_decided(rows: list[Case]) -> None:
    wrong = []
    for case in rows:
        message = QUESTIONS[case.quantity](case.given) if not _is_decided(case) else None
        if message is not None:
            wrong.append(f"{case}: {message}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("entry", DECIDED, ids=lambda entry: entry["proof"])
def test_every_decision_is_about_rows_that_differ(entry: Row) -> None:
    """A decision whose row is reproduced after all is out of date."""
    named = [case for case in cases() if _names(entry, case)]
    assert named
    for case in named:
        if case.test.endswith(SLOW):
            continue
        try:
            message = QUESTIONS[case.quantity](case.given)
        except UndecidedError:
            message = "refused"
        assert message is not None, str(case)


# What is right where a table of another library differs: by closed forms and mpmath alone


def test_every_decision_names_its_proof() -> None:
    decided = tomllib.loads((FOLDER / "decided.toml").read_text(encoding="utf-8"))["decided"]
    proofs = {entry["proof"] for entry in decided}
    assert proofs <= set(vars(sys.modules[__name__]))


def test_the_ends_of_randomised_response_are_laws() -> None:
    truth = events.mechanism_of(_response(noise=0.0, buckets=3), "REPLACE_SPECIAL")
    # P = (1, 0, 0) against Q = (1/3, 1/3, 1/3): Q charges what P does not with 2/3
    assert Fraction(2, 3) in profile.delta(truth, 1, adjacency=BOTH)
    assert profile.epsilon(truth, "0.01", adjacency=BOTH).lower == math.inf
    one = events.mechanism_of(_response(noise=0.5, buckets=1), "REPLACE_ONE")
    assert str(profile.delta(one, 0)) == "0"


def _response(noise: float, buckets: int) -> object:
    made = {"noise_parameter": noise, "num_buckets": buckets}
    return type("RandomizedResponseDpEvent", (), made)()


def test_the_least_total_between_two_of_the_lattice() -> None:
    # KOV: H of 30 releases of (1, 0.001), by its sum over the number of losses of +1
    k, own = 30, mpf("0.001")
    with mp.workdps(30):
        odds = mp.e / (1 + mp.e)

        def delta(epsilon: mpf) -> mpf:
            inner = sum(
                mp.binomial(k, i) * odds**i * (1 - odds) ** (k - i)
                * max(0, 1 - mp.exp(epsilon - (2 * i - k)))
                for i in range(k + 1)
            )  # fmt: skip
            return 1 - (1 - own) ** k * (1 - inner)

        for total, at_most in (("0.06", 22), ("0.1", 20)):
            least = mp.findroot(lambda e, t=total: delta(e) - mpf(t), (at_most - 1.5, at_most))
            assert at_most - 2 < least < at_most
            found = profile.epsilon(Composed(Guaranteed(1, "0.001"), k), total)
            assert found.lower <= Decimal(mp.nstr(least, 25)) <= found.upper
            assert found.upper - found.lower < Decimal("1e-7")


def test_five_mixtures_on_a_contour() -> None:
    # δ(ε) = (1/2πi) ∫ M(z) e^{−zε}/(z(z + 1)) dz, M(z) = E_Q[(p/q)^{z+1}], both by trapezoidal sums
    x, step = np.arange(-14, 24, 0.02), 0.02
    z = 1.2 + 1j * np.arange(0, 60, step)

    def log_moment(shifts: list[float], weights: list[float]) -> np.ndarray:
        ratio = sum(w * np.exp(s * x - s * s / 2) for s, w in zip(shifts, weights, strict=True))
        bell = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * 0.02
        return np.log(np.exp(np.outer(z + 1, np.log(ratio))) @ bell)

    whole = 3 * log_moment([0, 1, 2], [0.2, 0.6, 0.2])
    whole += 2 * log_moment([0, 1, 1.5], [0.33, 0.34, 0.33])
    terms = np.exp(whole - z * 17.193115) / (z * (z + 1))
    terms[0] /= 2
    delta = float(terms.sum().real) * step / math.pi
    assert abs(delta - 9.999993566e-7) < 1e-15
    assert abs(delta - 1e-6) < 1e-12  # the tolerance of the library's test


@pytest.mark.slow
def test_five_mixtures() -> None:
    first = MixtureOfGaussians(1, [0, 1, 2], ["0.2", "0.6", "0.2"])
    second = MixtureOfGaussians(2, [0, 2, 3], ["0.33", "0.34", "0.33"])
    whole = Composed([Composed(first, 3), Composed(second, 2)])
    delta = profile.delta(whole, "17.193115", adjacency=BOTH, relative_width=Fraction(1, 1000))
    assert float(delta.lower) < 9.999993566e-7 < float(delta.upper)
    assert delta.upper - delta.lower < 1e-9


def test_a_sample_without_noise_has_the_delta_of_its_rate() -> None:
    # P = (0.9, 0.1) against Q = (1, 0): sup P(S) − e^ε Q(S) = 0.1; ADD: 1 − 0.9e^ε or 0
    bare = PoissonSubsampled(Tabulated([1, 0], [0, 1]), "0.1")
    assert Fraction(1, 10) in profile.delta(bare, 1, adjacency=BOTH)
    assert Fraction(1, 10) in profile.delta(bare, 50, adjacency=BOTH)


def test_delta_one_allows_everything() -> None:
    assert profile.epsilon(events.EVERYTHING, 1).upper <= 0  # every ε, the least is −∞
    assert str(profile.delta(events.EVERYTHING, 1000)) == "1"


def test_a_fractional_renyi_divergence_by_quadrature() -> None:
    with mp.workdps(30):
        q, sigma, order = mpf("0.01"), mpf("2.5"), mpf("1.5")

        def integrand(x: mpf) -> mpf:
            ratio = 1 - q + q * mp.exp((2 * x - 1) / (2 * sigma**2))
            return mp.npdf(x, 0, sigma) * ratio**order

        moment = mp.quad(integrand, [-mp.inf, -20, -5, 0, 5, 20, 40, mp.inf])
        total = 50 * mp.log(moment) / (order - 1)
    assert abs(float(total) / 6.70579741e-04 - 1) > 0.03  # what the library expects
    step = PoissonSubsampled(Gaussian("2.5"), "0.01")
    own = guarantees.renyi(step, "1.5", adjacency=BOTH, relative_width=Fraction(1, 10**12))
    assert abs(50 * float(own.lower) / float(total) - 1) < 1e-11


def test_the_upper_end_of_prv_is_no_estimate() -> None:
    # dp-accounting brackets the exact ε between its optimistic and its pessimistic distribution
    ends = []
    for pessimistic in (False, True):
        one = pld.from_gaussian_mechanism(
            1.5, sampling_prob=0.04, value_discretization_interval=1e-3,
            pessimistic_estimate=pessimistic, use_connect_dots=pessimistic,
        )  # fmt: skip
        ends.append(one.self_compose(2249).get_epsilon_for_delta(1e-5))
    assert ends[0] < 6.767044 < ends[1] < 6.777395712150674 - 0.009
    event = {
        "type": "SelfComposed",
        "count": 2249,
        "event": {
            "type": "PoissonSampled",
            "sampling_probability": "0.04",
            "event": {"type": "Gaussian", "noise_multiplier": "1.5"},
        },
    }
    claim = events.claim(event_of(event), "6.777395712150674", "1e-5")
    found = verify(claim)
    assert found.verdict.value == "HOLDS"
    assert mpmath.almosteq(float(found.true["epsilon"]["upper"]), 6.767044, abs_eps=1e-5)
