"""OpenDP measurements: what their privacy map says, as a claim about the law that they sample.

OpenDP keeps how a measurement was made (`__opendp_dict__`, which its serialisation uses); from it
the law is recognised. Noise on floats is sampled on a fine lattice in OpenDP and is taken for the
ideal one here. Where the law is not recognised, the claim is PENDING, or about a mechanism that is
named. The map is asked, never trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, expected
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.additive.integers import DiscreteGaussian, DiscreteLaplace
from dpassay.accountant.mechanisms.additive.laplace import Laplace
from dpassay.accountant.mechanisms.selection.candidates import ExponentialMechanism, PermuteAndFlip
from dpassay.accountant.mechanisms.selection.thresholds import (
    DiscreteLaplaceThreshold,
    GaussianThreshold,
    LaplaceThreshold,
)
from dpassay.accountant.mechanisms.wrappers.channel import Tabulated
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.verifier.claims import Claim, Pending, guarantee
from dpassay.verifier.foreign.events import attribute, number

_SAME_LAW = ("make_zCDP_to_approxDP", "make_pureDP_to_zCDP", "make_fix_delta", "make_approximate")
_MADE = "__opendp_dict__"
_DISTANCES = 3
"""In how many ways OpenDP says how far counts of keys move."""


def is_measurement(thing: object) -> bool:
    """Whether a thing has a privacy map and says what its output measures."""
    return callable(getattr(thing, "map", None)) and hasattr(thing, "output_measure")


def mechanism_of(measurement: object, d_in: object = 1) -> Mechanism:
    """Return the law of a measurement for inputs at distance d_in.

    Raises NotApplicableError where it is not recognised.
    """
    made = getattr(measurement, _MADE, None)
    if not isinstance(made, Mapping):
        raise NotApplicableError(
            "The measurement does not say how it was made. Name its law: mechanism=…"
        )
    kind, given = str(made["__function__"]), made["__kwargs__"]
    if kind in _SAME_LAW:
        return mechanism_of(given["measurement"], d_in)
    match kind:
        case "make_laplace" | "make_gaussian" | "make_geometric":
            return _noise(kind, given, _distance(d_in))
        case "make_randomized_response_bool":
            return _response(2, given["prob"], d_in)
        case "make_randomized_response":
            return _response(len(given["categories"]), given["prob"], d_in)
        case "make_noisy_max" | "make_report_noisy_max_gumbel":
            return _selection(given, d_in)
        case "make_laplace_threshold" | "make_gaussian_threshold":
            return _threshold(kind, given, d_in)
        case "make_composition" | "make_sequential_composition":
            return Composed(tuple(mechanism_of(each, d_in) for each in given["measurements"]))
        case "make_chain_mt":
            moved = given["transformation0"].map(d_in)
            return mechanism_of(given["measurement1"], moved)
    raise NotApplicableError(f"The law of {kind} is not recognised. Name it: mechanism=…")


def claim(
    measurement: object,
    d_in: object = 1,
    *,
    delta: object = None,
    mechanism: Mechanism | None = None,
    name: str = "opendp",
) -> Claim:
    """Return what the privacy map says at d_in, as a claim.

    `delta` is where an ε is claimed of a map that gives a whole profile. `mechanism` is the law at
    distance d_in, where it is not recognised.
    """
    said = _claimed(measurement, d_in, delta)
    shared: dict[str, Any] = {"id": name, "source": f"map({d_in})", "statement": _text(said)}
    if mechanism is None:
        try:
            mechanism = mechanism_of(measurement, d_in)
        except NotApplicableError as error:
            return Pending(needs="proof", reason=str(error), **shared)
    if isinstance(mechanism, (DiscreteLaplaceThreshold, GaussianThreshold, LaplaceThreshold)):
        shared["adjacency"] = Adjacency.ADD_REMOVE.value  # of users, each of whom holds some keys
    return guarantee(said, mechanism=str(mechanism), **shared)


def _claimed(measurement: object, d_in: object, delta: object) -> dict[str, str]:
    ask = attribute(measurement, "map")
    assert callable(ask)
    measure, value = str(attribute(measurement, "output_measure")), ask(d_in)
    match measure:
        case "MaxDivergence":
            return {"epsilon": str(number("epsilon", value))}
        case "ZeroConcentratedDivergence":
            return {"rho": str(number("rho", value))}
        case "Approximate(MaxDivergence)":
            return {
                "epsilon": str(number("epsilon", value[0])),
                "delta": str(number("delta", value[1])),
            }
        case "SmoothedMaxDivergence":
            if delta is None:
                raise InvalidInputError(
                    "Expected delta=…, as in delta='1e-5': the map gives a whole privacy profile."
                )
            d = number("delta", delta)
            return {"epsilon": str(number("epsilon", value.epsilon(float(d)))), "delta": str(d)}
    raise NotApplicableError(f"No claim is known for the output measure {measure}.")


def _text(said: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in said.items()) + ", says the privacy map."


def _distance(d_in: object) -> ExactReal:
    found = number("d_in", d_in)
    if found.sign <= 0:
        raise expected("d_in", d_in, "> 0")
    return found


def _noise(kind: str, given: Mapping[str, Any], distance: ExactReal) -> Mechanism:
    """Return the noise: on integers where the domain has them, which must then be scalar."""
    scale = number("scale", given["scale"])
    domain, gaussian = str(given["input_domain"]), kind == "make_gaussian"
    if "T=f" in domain:
        return Gaussian(scale, distance) if gaussian else Laplace(scale, distance)
    if "VectorDomain" in domain:
        raise NotApplicableError(
            "Which change of several integers is worst is not known. Name the law: mechanism=…"
        )
    whole = distance.rational
    if whole is None or whole.denominator != 1:
        raise expected("d_in", distance, "to be an integer, as the data are")
    if gaussian:
        return DiscreteGaussian(ExactReal.of_rational(scale.square), int(whole))
    if given.get("bounds") is not None:
        raise NotApplicableError(
            "Truncated geometric noise is not recognised. Name its law: mechanism=…"
        )
    return DiscreteLaplace(scale, int(whole))


def _selection(given: Mapping[str, Any], d_in: object) -> Mechanism:
    """Return the choice of the largest noisy score, of any number of candidates.

    OpenDP adds exponential noise under pure DP, which is permute-and-flip, and Gumbel noise, the
    exponential mechanism, under zCDP. With noise of scale b the latter chooses in proportion to
    e^{u/b}: so ε/(2Δ) = 1/b, or ε/Δ = 1/b where all scores move in one direction.
    """
    distance, scale = _distance(d_in), number("scale", given["scale"])
    monotone = "monotonic" in str(given["input_metric"])
    epsilon = distance / scale * ExactReal.of_rational(1 if monotone else 2)
    pure = str(given.get("output_measure", "")) == "MaxDivergence"
    choose = PermuteAndFlip if pure else ExponentialMechanism
    return choose(epsilon, distance, monotone=monotone)


def _threshold(kind: str, given: Mapping[str, Any], d_in: object) -> Mechanism:
    """Return noisy counts of keys that reach a threshold; d_in is (keys, l1 or l2, each count)."""
    if not isinstance(d_in, (tuple, list)) or len(d_in) != _DISTANCES:
        raise expected("d_in", d_in, "to be (l0, l1, linf) or (l0, l2, linf) of the counts")
    keys, whole, each = (_distance(part) for part in d_in)
    gaussian = kind == "make_gaussian_threshold"
    if keys.rational is None or keys.rational.denominator != 1:
        raise expected("d_in[0]", keys, "to be an integer, a number of keys")
    most = each * (ExactReal.of_root(keys.rational) if gaussian else keys)
    if whole < most:
        raise NotApplicableError(
            "The law is known where every count of a user may move by linf. Name it: mechanism=…"
        )
    scale, threshold = number("scale", given["scale"]), number("threshold", given["threshold"])
    partitions = int(keys.rational)
    if "T=f" in str(given["input_domain"]).partition("value_domain")[2]:
        noisy = GaussianThreshold if gaussian else LaplaceThreshold
        return noisy(scale, threshold, partitions, each)
    if gaussian:
        raise NotApplicableError("Discrete Gaussian noise and a threshold: name the law.")
    return DiscreteLaplaceThreshold(scale, threshold, partitions, each)


def _response(categories: int, prob: object, d_in: object) -> Mechanism:
    """Return the laws of a report that is true with probability `prob`."""
    true = number("prob", prob).rational
    if true is None:
        raise expected("prob", prob, "to be rational")
    if _distance(d_in) != ExactReal.of_rational(1):
        raise expected("d_in", d_in, "to be 1: one answer changes")
    other = (1 - true) / (categories - 1)
    rest = (categories - 2) * other
    return Tabulated([true, rest, other], [other, rest, true])
