"""`dpassay stream`: private prefix sums of a stream, from stdin to stdout."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import itertools
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TextIO, cast, final

from dpassay.accountant.core.arrays import NDArray, np
from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.verifier.cli.shell import Command, ExitCode, note
from dpassay.verifier.terminal import Line

if TYPE_CHECKING:
    from dpassay.accountant.core.mechanism import Mechanism
    from dpassay.accountant.core.randomness import Randomness
    from dpassay.accountant.counting.streams import Saved, StreamCounter


# --- Numbers in [0, 1] from a stream of bytes, one on a line, in blocks of what is there ----------

_CHUNK = 1 << 18
"""Bytes that are read at once."""
_LONGEST_LINE = 4096
"""Characters of a line: a longer one holds no number."""
_NUMBER = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def _blocks(stream: io.BufferedIOBase) -> Iterator[NDArray[np.float64]]:
    """Yield blocks of numbers; a bad line raises after all before it have been yielded.

    The stream is read as far as it has something, without waiting for more.

    Raises InvalidInputError, naming the line, for what is no number or not in [0, 1].
    """
    rest, before = b"", 0
    while chunk := stream.read1(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from _numbers(lines, before)
        before += len(lines)
        if len(rest) > _LONGEST_LINE:
            raise InvalidInputError(
                f"Line {before + 1}: expected a number in [0, 1], not a line of more than "
                f"{_LONGEST_LINE} characters. Write one number per line."
            )
    if rest:
        yield from _numbers([rest], before)


def _numbers(lines: Iterable[bytes], before: int) -> Iterator[NDArray[np.float64]]:
    """Yield the numbers of lines after the first `before`; those before a bad line come first."""
    found: list[float] = []
    error: InvalidInputError | None = None
    for line in lines:
        text = line.strip()
        number = float(text) if _NUMBER.fullmatch(text) else None
        if number is None or not 0 <= number <= 1:
            shown = text.decode("utf-8", "backslashreplace")
            if number is None:
                bad = expected("item", shown, "to be a number in [0, 1]", "Write one per line.")
            else:
                bad = expected("item", shown, "in [0, 1]", "Divide by the largest possible value.")
            where = f"Line {before + len(found) + 1}"
            error = InvalidInputError(f"{where}: {bad} Everything before this line is counted.")
            break
        found.append(number)
    if found:
        yield np.array(found) + 0.0  # no negative zero
    if error is not None:
        raise error


_DESCRIPTION = """\
Read numbers in [0, 1] from stdin, one per line, and print after each the private estimate of the
sum so far. A slow source is followed line by line, a file is read in blocks; memory is constant.
Noise comes from the operating system's secure generator, and outputs are exactly rounded multiples
of one power of two. The whole output is epsilon-DP (or (epsilon, delta)-DP) for streams that differ
in one number; a note says so. With --epsilon and --steps the best known mechanism is used, or the
best of its kind if --mechanism is a name alone.
"""
_EPILOG = """\
With --state, give the same stream again after an interruption. Numbers that were already counted
are compared with a digest and not counted twice. The output continues where it stopped (a note
gives the number); outputs that may already be printed are repeated exactly, never with other
noise. A state file holds noise: keep it secret, do not copy it, and delete it and FILE.lock when
the stream ends.

With --insecure-seed nothing is private: the first line of the output says so.

examples:
  dpassay stream --epsilon 1 --steps 1000000 < bits > counts
  dpassay stream --epsilon 1 --delta 1e-6 --steps 1000000 --contributions 3 < bits > counts
  dpassay stream --mechanism "KaryTree(steps=1000000, arity=19, epsilon=1)" < bits > counts
  dpassay stream --epsilon 1 --steps 99 --json --insecure-seed 7 < bits
  dpassay stream --mechanism "KaryTree(steps=999, arity=19, epsilon=1)" --state s < bits >> counts
"""
_OPTIONS = """\
--mechanism MECHANISM  a counter or its name (default: the best)
--epsilon E  the budget, if MECHANISM has none
--delta D  the delta of the budget (default 0)
--steps N  largest length of the stream
--contributions C  numbers that one person contributes at most (default 1)
--state FILE  continue after interruptions
--insecure-seed N :int  draw noise from a seed: for tests
"""
_HINTS = {
    "--seed": "--seed is --insecure-seed now: whoever knows it can take the noise away",
    "--lattice": "Leave it out: every output is on the lattice",
}


def run(options: argparse.Namespace) -> int:
    """Read, count and print until the end of stdin."""
    from dpassay.accountant.counting.streams import Saved, StateFile

    if options.insecure_seed is not None and options.insecure_seed < 0:
        raise expected("insecure-seed", options.insecure_seed, "≥ 0")
    mechanism = _mechanism(options)
    with contextlib.ExitStack() as stack:
        state = None if options.state is None else stack.enter_context(StateFile(options.state))
        saved = None if state is None else state.load()
        insecure = _insecure(options)
        counter = _counter(mechanism, saved, options, insecure)
        output = _Output(sys.stdout, as_json=options.json, quiet=options.quiet)
        output.head(insecure)
        if not options.quiet and not insecure:
            note(_promise(counter, options))
        digest = hashlib.blake2b(digest_size=32)
        blocks = _blocks(cast("io.BufferedIOBase", sys.stdin.buffer))
        if saved is not None:
            blocks = _known(blocks, saved, digest)
            if not options.quiet and saved.counted:
                note(
                    f"{saved.counted} numbers are counted already; the output goes on with number "
                    f"{saved.delivered + 1}"
                )
            output.write(saved.delivered, saved.outputs)

        def commit(delivered: int, outputs: NDArray[np.float64]) -> None:
            """Save the counter before its outputs are printed: those after the delivered ones."""
            if state is not None:
                record = counter.record()
                state.commit(Saved(record, digest.hexdigest(), delivered, outputs, insecure))

        bad: InvalidInputError | None = None
        try:
            _count(blocks, counter, digest, commit, output)
        except InvalidInputError as error:  # a bad line: all before it are out
            bad = error
        commit(counter.counted, np.empty(0))
        if bad is not None:
            raise bad
        output.close(counter.counted, counter.mechanism.steps)
    return ExitCode.DONE


def _mechanism(options: argparse.Namespace) -> Mechanism:
    """Return the mechanism that is written out, or the best for the budget."""
    from dpassay.accountant import notation
    from dpassay.accountant.budget.target import EpsilonDelta
    from dpassay.accountant.core.validate import integer
    from dpassay.accountant.counting.best_counter import best_counter, named_counter
    from dpassay.accountant.numbers.exact import exact

    text: str | None = options.mechanism
    given = [
        f"--{name}"
        for name in ("epsilon", "delta", "steps", "contributions")
        if getattr(options, name) is not None
    ]
    if text is not None and "(" in text:
        if given:
            raise InvalidInputError(
                f"Expected {given[0]} only without a whole mechanism: {text!r} is complete. Give "
                "its name alone, or no budget."
            )
        return notation.parse(text)  # what is not for streams, `counter_of` refuses
    if options.epsilon is None or options.steps is None:
        raise InvalidInputError(
            "Expected --epsilon and --steps, or a whole --mechanism. For example: "
            "--epsilon 1 --steps 1000000."
        )
    steps = integer("steps", options.steps, least=1)
    times = integer("contributions", options.contributions or 1, least=1)
    epsilon, delta = exact(options.epsilon, "epsilon"), exact(options.delta or 0, "delta")
    if epsilon.sign <= 0:
        raise expected("epsilon", options.epsilon, "> 0", "Give a positive number.")
    target = EpsilonDelta(epsilon, delta)
    if text is not None:
        return named_counter(text, steps, target, contributions=times)
    found = best_counter(steps, target, contributions=times)
    if not options.quiet:
        note(f"{found.mechanism!r}: mean squared error {found.error}. {found.reason}")
    return found.mechanism


def _insecure(options: argparse.Namespace) -> tuple[str, ...]:
    """Return why this output is not private, in words."""
    seed = options.insecure_seed
    return () if seed is None else (f"--insecure-seed {seed}: the seed tells the noise",)


def _counter(
    mechanism: Mechanism,
    saved: Saved | None,
    options: argparse.Namespace,
    insecure: tuple[str, ...],
) -> StreamCounter:
    """Return the counter; a continued stream draws from another place of a given seed."""
    from dpassay.accountant.core.randomness import SECURE
    from dpassay.accountant.counting.streams import continued, counter_of

    counted = 0 if saved is None else saved.counted
    rng: Randomness = SECURE
    if insecure:
        rng = np.random.default_rng([options.insecure_seed, counted])
    if saved is None:
        return counter_of(mechanism, rng=rng)
    counter = continued(saved.record, rng=rng)
    if counter.mechanism != mechanism:
        raise InvalidInputError(
            f"The state file is that of {counter.mechanism!r}, not of {mechanism!r}. Continue "
            "with the mechanism that the stream began with."
        )
    if saved.insecure != insecure:
        given = [
            ", ".join(entry.partition(":")[0] for entry in each)
            for each in (saved.insecure, insecure)
        ]
        raise InvalidInputError(
            f"The stream of the state file began with {given[0] or 'no insecure option'}, not with "
            f"{given[1] or 'none'}. Continue with the options that it began with."
        )
    return counter


def _promise(counter: StreamCounter, options: argparse.Namespace) -> str:
    """Say which privacy the whole output has, first in the words of a budget that was given."""
    from dpassay.accountant.counting.counters import LinearCounter
    from dpassay.accountant.numbers.exact import exact, in_short

    mechanism = counter.mechanism
    mu = mechanism.mu if isinstance(mechanism, LinearCounter) else None
    kind = f"{mechanism.epsilon}-DP" if mu is None else f"{mu}-GDP"
    if options.delta is not None and exact(options.delta, "delta").sign > 0:
        kind = f"({in_short(options.epsilon)}, {in_short(options.delta)})-DP ({kind})"
    times = getattr(mechanism, "contributions", 1)
    number = "one number" if times == 1 else f"the {times} numbers of one person"
    return f"the whole output is {kind} for streams that differ in {number}"


def _known(
    blocks: Iterator[NDArray[np.float64]], saved: Saved, digest: hashlib.blake2b
) -> Iterator[NDArray[np.float64]]:
    """Compare what was counted with the digest, and return the blocks after it.

    All of it is compared before anything is released.
    """
    missing = saved.counted
    rest: NDArray[np.float64] | None = None
    while missing:
        block = next(blocks, None)
        if block is None:
            raise InvalidInputError(
                f"Expected the stream from its beginning, with the {saved.counted} numbers that "
                f"the state file has counted; this one ends after {saved.counted - missing}."
            )
        known, rest = block[:missing], block[missing:]
        digest.update(known.tobytes())
        missing -= len(known)
    if digest.hexdigest() != saved.digest:
        raise InvalidInputError(
            f"The first {saved.counted} numbers are not those that the state file has counted. "
            "Another stream with the same noise would reveal their difference. Give the "
            "same stream from its beginning, or begin without the state file."
        )
    return itertools.chain(() if rest is None or not len(rest) else (rest,), blocks)


def _count(
    blocks: Iterator[NDArray[np.float64]],
    counter: StreamCounter,
    digest: hashlib.blake2b,
    commit: Callable[[int, NDArray[np.float64]], None],
    output: _Output,
) -> None:
    """Count and release block after block, each only after it is committed."""
    steps = counter.mechanism.steps
    for block in blocks:
        before = counter.counted
        served = block[: steps - before]
        if len(served):
            digest.update(served.tobytes())
            estimates = counter.extend(served)
            commit(before, estimates)
            output.write(before, estimates)
        if len(served) < len(block):
            raise InvalidInputError(
                f"Line {steps + 1}: expected at most {steps} numbers. The mechanism was built for "
                f"steps={steps}, and all of them were published; build it for more before the "
                "stream begins."
            )


@final
class _Output:
    """Prints estimates at once, and progress on stderr."""

    def __init__(self, stream: TextIO, *, as_json: bool, quiet: bool) -> None:
        self._stream, self._json, self._quiet = stream, as_json, quiet
        self._began = time.monotonic()
        self._line = Line(sys.stderr, silent=quiet)

    def head(self, insecure: tuple[str, ...]) -> None:
        """Say first of all that the output is not private: a line that is no estimate."""
        if not insecure:
            return
        line = json.dumps({"insecure": insecure}) if self._json else "; ".join(insecure)
        self._stream.write((line if self._json else f"# NOT PRIVATE: {line}") + "\n")
        self._stream.flush()

    def write(self, before: int, estimates: NDArray[np.float64]) -> None:
        """Print the estimates after the first `before`, and flush them."""
        if not len(estimates):
            return
        numbers = estimates.tolist()
        if self._json:
            lines = [
                json.dumps({"step": step, "estimate": number})
                for step, number in enumerate(numbers, before + 1)
            ]
        else:
            lines = list(map(repr, numbers))
        self._stream.write("\n".join(lines) + "\n")
        self._stream.flush()
        self._line.say(f"{before + len(numbers)} numbers counted")

    def close(self, counted: int, steps: int) -> None:
        """Say what was done."""
        self._line.close()
        if not self._quiet:
            note(f"{counted} of {steps} numbers counted, {time.monotonic() - self._began:.1f} s")


COMMAND = Command(
    "stream",
    "private prefix sums of a stream",
    _DESCRIPTION,
    _EPILOG,
    _OPTIONS,
    run,
    quiet="no progress and no notes",
    hints=_HINTS,
)
