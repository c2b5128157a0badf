"""`dpassay stream` on a text, and what it printed."""

from __future__ import annotations

import io
import sys

import pytest

from dpassay.verifier.cli import main


class Shell:
    """Runs the command, and keeps what it said on the error stream."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capsys = monkeypatch, capsys
        self.errors = ""

    def __call__(self, text: str, *options: str, mechanism: str = "", code: int = 0) -> list[str]:
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        named = ["--mechanism", mechanism] if mechanism else []
        assert main(["stream", *named, *options]) == code
        captured = self._capsys.readouterr()
        self.errors = captured.err
        return captured.out.splitlines()
