"""Numbers in [0, 1] from a stream of bytes, one on a line, in blocks of what is there."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import final

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.errors import InvalidInputError, expected

_CHUNK = 1 << 18
"""Bytes that are read at once."""
_LONGEST_LINE = 4096
"""Characters of a line: a longer one holds no number."""
_NUMBER = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NEWLINE, _ZERO = 10, 48


@final
class Items:
    """The numbers of a stream.

    Parameters
    ----------
    stream
        It is read as far as it has something, without waiting for more.
    """

    def __init__(self, stream: io.BufferedIOBase) -> None:
        self._stream = stream
        self._line = 0

    def blocks(self) -> Iterator[NDArray[np.float64]]:
        """Yield blocks of numbers; a bad line raises after all before it have been yielded.

        Raises InvalidInputError, naming the line, for what is no number or not in [0, 1].
        """
        rest = b""
        while chunk := self._read():
            whole, newline, tail = chunk.rpartition(b"\n")
            if not newline:
                rest += chunk
            else:
                yield from self._numbers(rest + whole + newline)
                rest = tail
            if len(rest) > _LONGEST_LINE:
                raise InvalidInputError(
                    f"Line {self._line + 1}: expected a number in [0, 1], not a line of more than "
                    f"{_LONGEST_LINE} characters. Write one number per line."
                )
        if rest:
            yield from self._numbers(rest + b"\n")

    def _read(self) -> bytes:
        return self._stream.read1(_CHUNK)

    def _numbers(self, text: bytes) -> Iterator[NDArray[np.float64]]:
        """Yield the numbers of whole lines, those before a bad line first."""
        digits = np.frombuffer(text, dtype=np.uint8)
        if len(digits) % 2 == 0:
            bits = digits[::2] ^ _ZERO  # 0 and 1 for the characters "0" and "1"
            if bool((digits[1::2] == _NEWLINE).all()) and bool((bits <= 1).all()):
                self._line += len(bits)
                yield bits.astype(np.float64)
                return
        found: list[float] = []
        error: InvalidInputError | None = None
        for line in text[:-1].split(b"\n"):
            number = _number(line.strip())
            if number is None or not 0 <= number <= 1:
                error = self._error(line, number)
                break
            found.append(number)
            self._line += 1
        if found:
            yield np.array(found) + 0.0  # no negative zero
        if error is not None:
            raise error

    def _error(self, line: bytes, number: float | None) -> InvalidInputError:
        where = f"Line {self._line + 1}"
        shown = line.strip().decode("utf-8", "backslashreplace")
        if number is None:
            bad = expected("item", shown, "to be a number in [0, 1]", "Write one per line.")
        else:
            bad = expected("item", shown, "in [0, 1]", "Divide by the largest possible value.")
        return InvalidInputError(f"{where}: {bad} Everything before this line is counted.")


def _number(text: bytes) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None
