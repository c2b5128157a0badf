"""Sources of randomness: the operating system's secure generator, or a predictable generator.

Exact samplers (`dpassay.accountant.release.sampling`) use uniform integers only; `SECURE` draws
these from `os.urandom`. A NumPy generator makes a test or a simulation repeatable, but anyone who
knows its seed, or sees enough of its output, can remove the noise.
"""

from __future__ import annotations

import math
import os
from typing import Any, Final, TypeAlias, final

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.errors import expected

Randomness: TypeAlias = "np.random.Generator | SecureIntegers"
_WIDTHS: Final = ((4, 1), (24, 4), (64, 8))
"""(bits, bytes): a bound of at most `bits` bits is drawn from words of `bytes` bytes. At most 1/16,
1/256 and 1/2 of the words are rejected and drawn again."""


@final
class SecureIntegers:
    """Uniform integers from `os.urandom` (on Linux getrandom(2), a ChaCha20 stream in the kernel).

    The object holds no key, no buffer and no state, so nothing can be read from this process,
    copied by a fork, or repeated. Its only method is the one of `numpy.random.Generator` that exact
    samplers use; any attempt to draw a real number fails.
    """

    __slots__ = ()

    def integers(
        self,
        low: int,
        high: int,
        size: int | tuple[int, ...] | None = None,
        dtype: Any = None,
    ) -> Any:
        """Draw uniform integers in low..high − 1, int64 or `dtype`; a Python int without `size`.

        A word x of w bits is kept if x < ⌊2^w/n⌋·n with n = high − low, and gives x mod n. This is
        exactly uniform, since each remainder has ⌊2^w/n⌋ words.

        Raises InvalidInputError unless low < high and the values fit the type.
        """
        bound, kind = high - low, np.int64 if dtype is None else dtype
        largest = 1 << 64 if size is None else int(np.iinfo(kind).max) + 1
        if not 0 < bound <= 1 << 64 or high > largest:
            raise expected("high", high, f"in {low + 1}..{min(low + (1 << 64), largest)}")
        count = 1 if size is None else math.prod(size) if isinstance(size, tuple) else size
        drawn = _below(bound, count)
        if size is None:
            return low + int(drawn[0])
        values = drawn.astype(kind, copy=False)
        return (values + low if low else values).reshape(size)


SECURE: Final = SecureIntegers()
"""The default source of randomness of every release."""


def _below(bound: int, count: int) -> Array:
    """Return `count` uniform integers in 0..bound − 1, unsigned."""
    bits = (bound - 1).bit_length()
    width = next(width for most, width in _WIDTHS if bits <= most)
    kept = np.empty(0, dtype=f"u{width}")
    while len(kept) < count:
        words = np.frombuffer(os.urandom(width * (count - len(kept))), dtype=f"u{width}")
        if bound == 1 << bits:
            words = words >> (8 * width - bits) if bits else np.zeros_like(words)
        else:
            highest = (1 << 8 * width) // bound * bound  # < 2^(8·width): bound is no power of two
            fine = words < highest
            words = (words if fine.all() else words[fine]) % words.dtype.type(bound)
        kept = words if not len(kept) else np.concatenate([kept, words])
    return kept
