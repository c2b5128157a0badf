"""What can go wrong, and the one place where error messages are built."""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar, ParamSpec, Protocol, TypeVar

from dpassay.accountant.aliases import NAMES, translated

_MOST_NAMES = 40
"""Names that a message lists: more hide the right one."""

Answer = TypeVar("Answer")
Parameters = ParamSpec("Parameters")


_HIDDEN = re.compile(r"[^\n -~]")
"""What may need an escape: all else is shown as it is."""


def printable(text: object) -> str:
    r"""Return a text without what a terminal or a page would obey, except line ends.

    Control characters, marks of direction and lone surrogates are written as escapes.

    >>> printable("REFUTED\r\x1b[2KHOLDS")
    'REFUTED\\r\\x1b[2KHOLDS'
    """
    return _HIDDEN.sub(_escaped, str(text))


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def one_line(text: object) -> str:
    """Return a text that stands on one line and is printable."""
    return printable(" ".join(str(text).split()))


class DpassayError(Exception):
    """Base class of every error that this package raises on purpose."""

    def __str__(self) -> str:
        """Return the message; what it quotes of a file is made printable."""
        return printable(super().__str__())


class InvalidInputError(DpassayError, ValueError):
    """An argument, a claim or a file is invalid."""


class AdjacencyError(InvalidInputError):
    """The neighbouring relation is missing, unknown, or does not fit the mechanism."""


class NotApplicableError(DpassayError):
    """The question has no answer for this mechanism (not: none was found)."""


class Enclosure(Protocol):
    """What an error says of an interval (`dpassay.accountant.numbers.interval.Interval`)."""

    @property
    def lower(self) -> Decimal:
        """The lower end."""

    @property
    def upper(self) -> Decimal:
        """The upper end."""

    @property
    def relative_width(self) -> Fraction | None:
        """The width, relative to the smaller end."""


class UndecidedError(DpassayError):
    """A question is not decided, or its answer not as narrow as requested."""

    def __init__(
        self, message: str = "", *, reached: float = math.inf, interval: Enclosure | None = None
    ) -> None:
        super().__init__(message)
        self.reached = reached
        """The relative width that was reached, +∞ where none is known."""
        self.interval = interval
        """The best enclosure that was found, where one is known."""

    def say_interval(self, found: Enclosure, name: str = "") -> None:
        """Add an enclosure that was reached, of a number with a name, with its width."""
        self.interval, width = found, found.relative_width
        own = math.inf if width is None else float(width)
        self.reached = min(self.reached, own)
        size = "" if width is None else f", of relative width {own:.1e}"
        words = f"Reached {name} in" if name else "Reached"
        reached = "" if words in str(self) else f" {words} {found}{size}."
        self.args = (f"{self}{reached} Omit relative_width to get what was reached.",)


class BetweenError(UndecidedError):
    """A number is enclosed by two bounds that no precision brings together."""

    def __init__(self, what: str, interval: Enclosure) -> None:
        self.lower, self.upper = interval.lower, interval.upper
        width = interval.relative_width
        super().__init__(
            f"Reached {what} in [{self.lower}, {self.upper}]: some neighbours attain one end, and "
            "the other end bounds all of them. No pair of neighbours is worst everywhere, and the "
            "exact value is not known. Ask for a larger relative_width.",
            reached=math.inf if width is None else float(width),
            interval=interval,
        )


class NeitherTrueNorFalse:
    """A result with several outcomes: `if result:` would pass for the worst of them.

    A class names in `compare` the attribute to use instead.
    """

    __slots__ = ()
    compare: ClassVar[str]

    def __bool__(self) -> bool:
        """Raise InvalidInputError: `assert verify(…)` must not pass for a refuted claim."""
        name = type(self).__name__
        raise InvalidInputError(f"{name} is neither true nor false: compare {self.compare}.")


def require_type(argument: str, value: object, kind: type) -> None:
    """Raise InvalidInputError unless a value is an object of a class that the caller makes."""
    if not isinstance(value, kind):
        remedy = f"Make one: dpassay.{kind.__name__}(...)."
        raise expected(argument, value, f"to be a {kind.__name__}", remedy)


def expected(argument: str, value: object, requirement: str, remedy: str = "") -> InvalidInputError:
    """Build the error "Expected argument=value requirement. Remedy." and return it.

    Examples
    --------
    >>> print(expected("scale", -1, "> 0", "The scale of the noise is a positive number."))
    Expected scale=-1 > 0. The scale of the noise is a positive number.
    """
    try:
        shown = repr(value) if isinstance(value, str) else " ".join(str(value).split())
    except ValueError:  # Python prints no integer of more than 4300 digits
        shown = f"<{type(value).__name__} of thousands of digits>"
    return InvalidInputError(
        f"Expected {argument}={shortened(shown)} {requirement}.{' ' * bool(remedy)}{remedy}"
    )


def shortened(text: str) -> str:
    """Return a text that fits a line: its beginning and its length where it is longer."""
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text)} characters)"


def no_mechanism(argument: str, value: object, remedy: str) -> InvalidInputError:
    """Build the error for what is no mechanism; an answer may have one."""
    kind = type(value).__name__
    if hasattr(value, "mechanism"):
        return InvalidInputError(
            f"Expected {argument} to be a mechanism, not {kind}: take its .mechanism."
        )
    return expected(argument, value, f"to be a mechanism, not {kind}", remedy)


_OTHER_WORDS = {
    "sigma": ("standard_deviation", "sigma_star", "parameter", "noise_multiplier"),
    "σ": ("standard_deviation", "sigma_star", "parameter", "noise_multiplier"),
    "scale": ("standard_deviation",),
    "noise": ("noise_multiplier",),
    "std": ("standard_deviation",),
    "stddev": ("standard_deviation",),
    "noise_multiplier": ("standard_deviation",),
    "variance": ("parameter", "standard_deviation"),
    "b": ("scale",),
    "λ": ("scale",),
    "eps": ("epsilon", "claim"),
    "epsilon": ("claim", "approximate"),
    "zcdp": ("rho",),
    "rho": ("zcdp",),
    "gdp": ("mu", "gaussian-dp"),
    "dp": ("approximate-dp",),
    "rdp": ("renyi", "order", "renyi-dp"),
    "renyi": ("order",),
    "alpha": ("order",),
    "fdp": ("beta", "tradeoff"),
    "tradeoff": ("beta",),
    "q": ("sampling_prob", "batch_size"),
    "sampling_prob": ("batch_size",),
    "rate": ("sampling_prob",),
    "sample_rate": ("sampling_prob", "batch_size"),
    "sampling_rate": ("sampling_prob", "batch_size"),
    "sampling_probability": ("sampling_prob", "batch_size"),
    "steps": ("count",),
    "rng": ("seed",),
    "random_state": ("seed",),
    "n": ("users", "count", "dataset_size", "steps", "Gaussian"),
    "count": ("selected",),
    "t": ("steps", "count"),
    "sensitivity": ("l2_sensitivity", "l1_sensitivity", "sensitivity", "set"),
    "data_size": ("dataset_size",),
    "sample_size": ("dataset_size",),
    "clip": ("l2_sensitivity",),
    "confidence": ("significance",),
    "pair": ("pairs",),
    "batch": ("batch_size",),
    "size": ("dataset_size",),
    "cells": ("bins",),
    "add": ("add-remove",),
    "unbounded": ("add-remove",),
    "bounded": ("replace-one",),
    "change-one": ("replace-one",),
    "substitute": ("replace-one",),
    "swap": ("replace-one",),
    "normal": ("Gaussian",),
    "geom": ("DiscreteLaplace",),
    "geometric": ("DiscreteLaplace",),
    "geometricmechanism": ("DiscreteLaplace",),
    "gaussianmechanism": ("Gaussian",),
    "laplacemechanism": ("Laplace",),
    "exponential": ("ExponentialMechanism",),
    "subsampled": ("PoissonSubsampled",),
    "subsampledgaussian": ("PoissonSubsampled",),
    "sampledgaussian": ("PoissonSubsampled",),
    "rr": ("RandomizedResponse",),
    "krr": ("RandomizedResponse",),
    "sparsevector": ("AboveThreshold",),
    "svt": ("AboveThreshold",),
    "topk": ("Composed", "ExponentialMechanism", "Selection"),
    "noisymax": ("ReportNoisyMax",),
    "dpftrl": ("MatrixMechanism",),
    "dp_ftrl": ("MatrixMechanism",),
    "privacyengine": ("dpsgd",),
    "dpsgd": ("PoissonSubsampled",),
    "dp-sgd": ("dpsgd", "PoissonSubsampled"),
    "dp_sgd": ("dpsgd", "PoissonSubsampled"),
    "compute_epsilon": ("epsilon",),
    "target_epsilon": ("epsilon",),
    "target_delta": ("delta",),
    "k": ("selected", "candidates", "count", "sparsity"),
    "f": ("flip",),
    "sum": ("BoundedSum",),
    "sums": ("BoundedSum",),
    "stream": ("PrefixSums",),
    "runningsum": ("PrefixSums",),
    "cumulativesums": ("PrefixSums",),
    "continualcounting": ("PrefixSums",),
    "l0": ("sparsity",),
    "l0_sensitivity": ("sparsity",),
    "contributions": ("sparsity",),
    "max_contributions": ("sparsity",),
    "treeaggregation": ("BinaryTree",),
    "r1smg": ("RankOneGaussian",),
    "composition": ("Composed",),
    "product": ("Composed",),
    "neighbors": ("neighbours", "adjacency"),
    "neighbours": ("adjacency",),
    "adjacency": ("neighbours",),
    "neighboring_relation": ("neighbours", "adjacency"),
    "opacus": ("dpsgd",),
    "privacy_loss": ("loss_cdf",),
}
"""What others call an argument, a value or a mechanism, with the names that it may have here."""
_OTHERWISE = {
    **dict.fromkeys(
        ("accumulation", "accumulation_steps", "gradient_accumulation_steps"),
        ("batch_size", "Leave it out: the batch of a step is all records that share its noise."),
    ),
    **dict.fromkeys(
        ("microbatches", "num_microbatches"),
        (
            "batch_size",
            "Leave it out where each has one record. An average of several, clipped as one, may "
            "move by twice the norm: halve the noise multiplier.",
        ),
    ),
    **dict.fromkeys(
        ("fixed", "fixed-size", "uniform"),
        (
            "without-replacement",
            "Did you mean 'without-replacement' (a batch drawn anew in every step) or 'shuffle' "
            "(batches cut from a new order in every epoch)?",
        ),
    ),
    **dict.fromkeys(
        ("max_grad_norm", "l2_norm_clip", "clipping_norm", "clip_norm", "clip"),
        ("noise_multiplier", "Leave it out: the noise multiplier is noise over clipping norm."),
    ),
    **dict.fromkeys(
        ("orders", "alphas", "accountant"),
        ("noise_multiplier", "Leave it out: no accountant is chosen, the answer is proved."),
    ),
    **dict.fromkeys(
        ("sparsity", "l0", "l0_sensitivity", "contributions", "max_contributions"),
        ("bins", "A record is in one bin. One person in several: Counts(dimension=…, sparsity=…)."),
    ),
    **dict.fromkeys(
        ("studentt", "student", "student_t", "students_t", "tdistribution"),
        ("AdditiveNoise", 'Write its density: AdditiveNoise("(1 + x**2/3)**(-2)") has 3 degrees.'),
    ),
    **dict.fromkeys(
        ("prob", "p", "probability", "p_truth", "truth_probability"),
        ("categories", "Give epsilon: with the truth reported 3 times in 4 it is 'log(3)'."),
    ),
    "cauchy": ("AdditiveNoise", 'Write its density: AdditiveNoise("1/(1 + x**2)").'),
    "noise_multiplier": (
        "epochs",
        "Training() is a workload, to compare noise for. The ε of a run: dpassay training, or "
        "dpassay.dpsgd(…).",
    ),
    "gumbel": (
        "ReportNoisyMax",
        'The noise is named in quotes: ReportNoisyMax("Gumbel", scale=2, candidates=10).',
    ),
}
"""What others write differently: a name that is known there, and what to do."""
_RATE = "the sampling probability times the dataset's size"
_OTHER_NUMBERS = {
    ("sigma", "parameter"): "the square of sigma",
    ("noise_multiplier", "standard_deviation"): "the noise multiplier times the sensitivity",
    ("variance", "standard_deviation"): "the square root of the variance",
    ("confidence", "significance"): "1 minus the confidence",
    ("sampling_prob", "batch_size"): _RATE,
    ("q", "batch_size"): _RATE,
    ("sample_rate", "batch_size"): _RATE,
    ("sampling_rate", "batch_size"): _RATE,
    ("sampling_probability", "batch_size"): _RATE,
    ("sensitivity", "set"): "as in --set l2_sensitivity=2",
}
"""What is not the same number under another name."""


def suggestion(unknown: str, known: Iterable[str], *, listed: bool = True) -> str:
    """Return 'Did you mean X?' for a name that is another elsewhere, or is misspelt.

    Else it returns the list of known names, which is left out where the message has it already.

    >>> suggestion("sigma", ["standard_deviation", "l2_sensitivity"])
    "Did you mean 'standard_deviation'?"
    """
    known = list(known)
    for name in _OTHER_WORDS.get(unknown.lower(), ()):
        if name in known:
            number = _OTHER_NUMBERS.get((unknown.lower(), name))
            return f"Did you mean {name!r}{f', {number}' if number else ''}?"
    if (name := NAMES.get(unknown.lower().replace("_", ""), "")) in known:
        return f"Did you mean {name!r}?"
    beside, why = _OTHERWISE.get(unknown.lower(), ("", ""))
    if beside in known:
        return why
    near = difflib.get_close_matches(unknown, known, n=1, cutoff=0.5)
    if not near:  # the same comparison without regard to case
        folded = {name.casefold(): name for name in known}
        near = [folded[n] for n in difflib.get_close_matches(unknown.casefold(), folded, n=1)]
    if near:
        return f"Did you mean {near[0]!r}?"
    if not listed:
        return ""
    shown = sorted(known)[:_MOST_NAMES]
    rest = len(known) - len(shown)
    return f"Known: {', '.join(shown)}{f' and {rest} more' if rest else ''}."


def no_attribute(thing: object, name: str, remedy: str = "") -> AttributeError:
    """Return the error for a name that an object has not, with a near one where there is one."""
    if not remedy and not name.startswith("_"):
        remedy = suggestion(name, (each for each in dir(thing) if each[0] != "_"), listed=False)
    text = f"{type(thing).__name__} has no {name!r}.{f' {remedy}' if remedy else ''}"
    return AttributeError(text, name=name)  # without obj: Python adds no suggestion of its own


_USAGE = {
    "verify": 'verify("Gaussian(1)", epsilon=1, delta="1e-5")',
    "certify": 'certify("Gaussian(1)", epsilon=1, delta="1e-5")',
    "compare": 'compare("Count()", epsilon=1, delta="1e-6")',
    "optimal_count_noise": "optimal_count_noise(CountNoiseProblem(epsilon=1, eta=…, support=5))",
    "optimal_integer_noise": 'optimal_integer_noise(IntegerNoiseProblem("variance", 20, epsilon=1, '
    'delta="1e-6"))',
    "optimal_free_noise": 'optimal_free_noise(IntegerNoiseProblem("variance", 1, epsilon=1, '
    'delta="1e-6"))',
    "calibrate": 'calibrate("Gaussian", epsilon=1, delta="1e-5")',
    "dpsgd": "dpsgd(noise_multiplier, batch_size, dataset_size, epochs=…, delta=…)",
    "dpsgd_noise": "dpsgd_noise(epsilon, batch_size, dataset_size, epochs=…, delta=…)",
    "audit": "audit(mechanism, epsilon=1, pair=(dataset, neighbour))",
    "audit_until_refuted": "audit_until_refuted(mechanism, epsilon=1, pair=(dataset, neighbour))",
    "assert_private": "assert_private(mechanism, epsilon=1, pair=(dataset, neighbour))",
    "audit_samples": "audit_samples(first, second, epsilon=1)",
    "training_schemes": "training_schemes(batch_size, dataset_size, epochs=…, delta=…, "
    "noise_multiplier=…)",
}
"""How a function is called that needs more than what has no default."""
_ELSEWHERE = {("dpsgd", "epsilon"): "dpsgd_noise", ("dpsgd_noise", "noise_multiplier"): "dpsgd"}
"""The function that is likely meant, by function and unknown argument."""


def misused(
    name: str,
    signature: inspect.Signature,
    named: dict[str, Any],
    problem: str,
    elsewhere: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> InvalidInputError:
    """Return the error for arguments that do not fit, with what to write.

    `elsewhere` names the function that is likely meant, by function and unknown argument.
    """
    known = list(signature.parameters)
    required = [
        f"{p.name}=…" if p.kind is p.KEYWORD_ONLY else p.name
        for p in signature.parameters.values()
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    ]
    usual = _USAGE.get(name) or (required and f"{name}({', '.join(required)})")
    usage = f"Write {usual}." if usual else ""
    unknown = next((argument for argument in named if argument not in known), None)
    if unknown is None:
        return InvalidInputError(f"{name}(): {problem}. {usage}".strip())
    if other := elsewhere.get((name, unknown)):
        return InvalidInputError(
            f"{name}() has no argument {unknown!r}. Did you mean dpassay.{other}?"
        )
    hint = suggestion(unknown, known)
    return InvalidInputError(f"{name}() has no argument {unknown!r}. {hint} {usage}".strip())


def forgiving(function: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """Return the function; the error of a wrong call names the right arguments."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def called(*positional: Parameters.args, **named: Parameters.kwargs) -> Answer:
        known = signature.parameters.keys()
        own = named if named.keys() <= known else translated(named, known, len(positional))
        try:
            bound = signature.bind(*positional, **own)
        except TypeError as error:
            raise misused(function.__name__, signature, own, str(error), _ELSEWHERE) from None
        return function(*bound.args, **bound.kwargs)

    return called
