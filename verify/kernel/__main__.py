"""The command `dpassay-check`: check certificates without the toolkit that wrote them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from .check import BYTES, SECONDS, Checked, Outcome, check_file, trust
from .schema import MOST_BYTES, json_schema
from .theorem import quoted, safe

_DESCRIPTION = """\
Check certificates of differential privacy. Prints the theorem that was proved, in the kernel's own
words, after one of

  VALID        the theorem was proved
  CONDITIONAL  nothing is wrong; what the theorem rests on besides comes first
  INVALID      a field is wrong, and is named
"""
_EPILOG = "exit codes: 0 VALID, 1 INVALID, 2 no certificate, 3 CONDITIONAL"


def read(path: str) -> bytes:
    """Return the content of a regular file, or of the standard input for `-`, up to the limit."""
    if path == "-":
        return sys.stdin.buffer.read(MOST_BYTES + 1)
    if not Path(path).is_file():
        raise OSError("it is no regular file. Name a file, or - for a pipe")
    with Path(path).open("rb") as file:
        return file.read(MOST_BYTES + 1)


def shown(found: Checked, place: str) -> Iterator[str]:
    """Yield the lines that are printed about one certificate."""
    yield str(found)
    for name, value in found.numbers.items():
        yield f"  {safe(name)}: {safe(value)}"
    if found.lemmas:
        yield f"  lemmas: {', '.join(found.lemmas)}"
    yield f"  certificate{place} called {quoted(found.name)}, {found.seconds:.2f} s"


def main(arguments: Sequence[str] | None = None) -> int:
    """Check files; return the exit code of the worst certificate."""
    parser = argparse.ArgumentParser(
        "dpassay-check",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="a file of certificates, or - for a pipe")
    add("--trust", action="store_true", help="print what a VALID rests on")
    add("--schema", action="store_true", help="print the JSON Schema of certificates")
    add("--json", action="store_true", help="print JSON")
    add("--quiet", action="store_true", help="print nothing: the exit code says it")
    options = parser.parse_args(arguments)
    out = sys.stdout.write
    if options.schema:
        out(json.dumps(json_schema(), indent=1) + "\n")
        return 0
    if not options.files:
        if options.trust:
            out(trust() + "\n")
            return 0
        parser.error("name a file of certificates, or - for a pipe")
    contents = []
    for path in options.files:
        try:
            contents.append((path, read(path)))
        except OSError as error:
            parser.error(f"cannot read {safe(path)}: {error.strerror or error}")
    results: list[tuple[str, Checked]] = []
    for path, content in contents:
        for found in check_file(content, seconds=SECONDS, memory=BYTES):
            if found.no_certificate:
                parser.error(f"{safe(path)} {safe(found.no_certificate)}")
            results.append((path, found))
            place = f" of {safe(path)}" if len(contents) > 1 else ""
            if not (options.json or options.quiet):
                out("\n".join(shown(found, place)) + "\n")
                sys.stdout.flush()
    if options.json:
        entries = [{"file": safe(path), **found.to_json()} for path, found in results]
        out(json.dumps({"schema_version": 1, "certificates": entries}, indent=1) + "\n")
    elif options.trust and not options.quiet:
        out("\n" + trust({row for _, found in results for row in found.lemmas}) + "\n")
    return Outcome.worst(found.outcome for _, found in results).exit_code


if __name__ == "__main__":
    raise SystemExit(main())
