"""The command `dpassay-check`: check certificates without the toolkit that wrote them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import suppress

from .check import BYTES, SECONDS, Checked, Outcome, check, trust
from .numbers import Wrong
from .schema import content, json_schema, read
from .theorem import safe

_DESCRIPTION = """Check certificates of differential privacy. Prints the theorem, in the words of
the kernel, after VALID where it was proved, CONDITIONAL where it rests on something besides, which
comes first, or INVALID with the field that is wrong. A certificate may take 60 s of processor time,
the program 1 GB of memory: it ends where it needs more, and has called nothing VALID."""
_EPILOG = "exit codes: 0 VALID, 1 INVALID, 2 no certificate, 3 CONDITIONAL"


def _limit(certificates: int) -> None:
    """Let the system end this process where it takes too much."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS * (certificates + 1), -1))
        resource.setrlimit(resource.RLIMIT_AS, (2 * BYTES, -1))


def main(arguments: Sequence[str] | None = None) -> int:
    """Check files; return the exit code of the worst certificate."""
    parser = argparse.ArgumentParser("dpassay-check", description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="a file of certificates, or - for a pipe")
    add("--trust", action="store_true", help="print what a VALID rests on (that of FILE)")
    add("--schema", action="store_true", help="print the JSON Schema of certificates")
    add("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    if options.schema or (options.trust and not options.files):
        print(json.dumps(json_schema()) if options.schema else trust())
        return 0
    if not options.files:
        parser.error("name a file of certificates, or - for a pipe")
    _limit(1)
    results: list[tuple[str, Checked]] = []
    for path in options.files:
        try:
            certificates = read(content(path))
        except (OSError, Wrong) as error:
            why = getattr(error, "strerror", 0) or error
            parser.error(f"cannot read {safe(path)}: {safe(why)}")
        _limit(len(results) + len(certificates))
        for certificate in certificates:
            results.append((path, check(certificate)))
            if not options.json:
                place = f" of {safe(path)}" if len(options.files) > 1 else ""
                print(results[-1][1].report(place), flush=True)
    if options.json:
        entries = [{"file": safe(path), **found.to_json()} for path, found in results]
        print(json.dumps({"schema_version": 1, "certificates": entries}, indent=1))
    elif options.trust:
        print("\n" + trust([found for _, found in results]))
    return Outcome.worst(found.outcome for _, found in results).exit_code


if __name__ == "__main__":
    raise SystemExit(main())
