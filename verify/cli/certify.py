"""`dpassay certify`: write a certificate as a file that Coq checks."""

from __future__ import annotations

import argparse
import re

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.cli.shell import Command, ExitCode, note, require_folders

_DESCRIPTION = """\
Write the theorem of a certificate, with its proof, as a file for the proof assistant Coq. The
kernel checks the certificate first. The file stands alone; Coq needs the library coq-interval.
"""
_EPILOG = """\
examples:
  dpassay verify "Gaussian(3) is (1, 1e-5)-DP" --certificate claim.json
  dpassay certify claim.json --coq claim.v
  coqc claim.v
"""
_OPTIONS = """\
certificate CERTIFICATE  a file with one certificate, or - for a pipe
--coq FILE !  write this file
"""


def run(options: argparse.Namespace) -> int:
    """Check the certificate, and write the file."""
    from dpassay.verifier.cli.check import read
    from dpassay.verifier.coq import written
    from dpassay.verifier.processes import check_all

    require_folders(options.coq)
    if not re.fullmatch(r"[A-Za-z]\w*\.v", options.coq.name, re.ASCII):
        raise InvalidInputError(
            f"Coq takes no file called {options.coq.name!a}. Use letters, digits and _: claim.v."
        )
    entries = read(options.certificate)
    if len(entries) > 1:
        raise InvalidInputError(f"Expected one certificate in a file, not {len(entries)}.")
    (found,) = check_all(entries)
    options.coq.write_text(written(entries[0], found), "utf-8")
    note(f"wrote {options.coq}; check it: coqc {options.coq}")
    return ExitCode.DONE


COMMAND = Command("certify", "write a certificate for Coq", _DESCRIPTION, _EPILOG, _OPTIONS, run)
