"""`dpassay doctor`: is this installation sound?"""

from __future__ import annotations

import argparse
import platform
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import final

from dpassay.verifier.cli.shell import Command, ExitCode, answer
from dpassay.verifier.terminal import columns

_DESCRIPTION = """\
List the installed versions and those that are too old, and compute a number in two ways:
python-flint's interval must be narrow and contain mpmath's value.
"""
_EPILOG = """\
example:
  dpassay doctor --json

exit code: 0 if everything needed is there and the self-tests pass, else 70
"""
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)>=(?P<least>[\d.]+)(?P<extra>; extra == .*)?")
_AGREE = 1e-13
"""Relative difference allowed to an integral that has fifteen digits."""
_DIGITS = 50
"""Digits to which an installation is compared with mpmath."""


@final
@dataclass(frozen=True)
class Examined:
    """One thing that was checked."""

    name: str
    found: str
    sound: bool = True


def run(options: argparse.Namespace) -> int:
    """Examine and print."""
    results = list(examine())
    sound = all(result.sound for result in results)
    rows = columns([("ok" if r.sound else "BAD", r.name, r.found) for r in results])
    last = "Everything that is needed works." if sound else "Reinstall what is marked BAD."
    data = {"schema_version": 1, "sound": sound, "examined": [*map(asdict, results)]}
    answer(options, data, f"{rows}\n\n{last}")
    return ExitCode.DONE if sound else ExitCode.INTERNAL


def examine() -> Iterator[Examined]:
    """Yield everything that is checked."""
    yield Examined("python", platform.python_version(), sys.version_info >= (3, 11))
    yield Examined("platform", platform.platform())
    yield from _libraries(["dpassay>=0", *_requirements()])
    yield _attempt("enclosure of erfc(10)", _enclosure)
    yield _attempt("two routes to a delta", _two_routes)
    yield Examined("terminal", _terminal())


def _requirements() -> list[str]:
    """Return what the installed package says that it needs; nothing where none is installed."""
    from importlib import metadata

    try:
        return metadata.requires("dpassay") or []
    except metadata.PackageNotFoundError:
        return []


def _libraries(requirements: Iterable[str]) -> Iterator[Examined]:
    """Yield the version of each library, which must not be below the lowest that works."""
    known: set[str] = set()
    for found in filter(None, map(_REQUIREMENT.fullmatch, requirements)):
        name, least, needed = found["name"], found["least"], not found["extra"]
        if name not in known:
            known.add(name)
            yield _version(name, least, needed=needed)


def _version(name: str, least: str, *, needed: bool) -> Examined:
    from importlib import metadata

    try:
        installed = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Examined(name, "not installed" if needed else "not installed (optional)", not needed)
    if _numbers(installed) < _numbers(least):
        return Examined(name, f"{installed}, which is below {least}", sound=not needed)
    return Examined(name, installed)


def _numbers(version: str) -> list[int]:
    """Return the numbers of a version, without zeros at the end: 1.10.0rc1 is [1, 10]."""
    leading = re.match(r"[\d.]*", version)
    numbers = [int(part) for part in leading[0].split(".") if part] if leading else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


def _attempt(name: str, test: Callable[[], tuple[str, bool]]) -> Examined:
    """Run a self-test; a library that cannot be imported is a result, too."""
    try:
        return Examined(name, *test())
    except ImportError as error:
        return Examined(name, str(error), sound=False)


def _enclosure() -> tuple[str, bool]:
    """Compare flint's ball for erfc(10), far in a tail, with mpmath."""
    import mpmath
    from flint import arb

    from dpassay.accountant.numbers.interval import RELATIVE_WIDTH, enclose

    interval = enclose(lambda: arb(10).erfc())
    with mpmath.workdps(_DIGITS):
        value = mpmath.erfc(10)
        inside = mpmath.mpf(str(interval.lower)) <= value <= mpmath.mpf(str(interval.upper))
    width = interval.relative_width
    if width is None:
        return f"{interval}, which is unbounded", False
    return f"{interval}, relative width {float(width):.1e}", inside and width <= RELATIVE_WIDTH


def _two_routes() -> tuple[str, bool]:
    """Compare δ(1) of Gaussian noise in balls with the integral of the densities in mpmath."""
    from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
    from dpassay.accountant.questions.profile import delta
    from dpassay.accountant.reference import Reference

    noise = Gaussian(standard_deviation=2)
    interval, other = delta(noise, 1), Reference.of(noise).delta(1)
    agree = abs(other / float(interval.lower) - 1) <= _AGREE
    return f"{interval} by balls and by quadrature", agree


def _terminal() -> str:
    import shutil

    kind = "terminal" if sys.stdout.isatty() else "no terminal (plain output)"
    return f"{kind}, {sys.stdout.encoding}, {shutil.get_terminal_size().columns} columns"


COMMAND = Command(
    "doctor",
    "is this installation sound?",
    _DESCRIPTION,
    _EPILOG,
    "",
    run,
    quiet="print nothing; the exit code is the answer",
)
