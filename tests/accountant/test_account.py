"""Running accounts: exact where noise is fixed, filters where it is not, files that survive."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay import Account, BudgetError
from dpassay.accountant.numbers.exact import ExactReal

OPENED: list[Callable[[Any], Account]] = [
    Account.load,
    lambda file: Account(epsilon=1, delta="1e-5", file=file),
]
SAMPLE = "PoissonSubsampled(Gaussian(1), 0.01)"


class TestFilter:
    def test_remaining_is_the_largest_count_of_the_exact_profile(self) -> None:
        account = Account(epsilon=3, delta="1e-5", adjacency="add-remove")
        account.spend(SAMPLE, 100)
        account.spend("Laplace(20)", 5)
        left = account.remaining(SAMPLE)
        assert account.can_spend(SAMPLE, left)
        assert not account.can_spend(SAMPLE, left + 1)
        for count, keeps in ((left, True), (left + 1, False)):
            whole = f"Composed([Composed({SAMPLE}, {100 + count}), Composed(Laplace(20), 5)])"
            delta = dpassay.delta(whole, 3, adjacency="add-remove", relative_width="1e-6")
            assert (delta < Fraction(1, 10**5)) is keeps

    def test_what_exceeds_the_budget_is_refused_and_not_spent(self) -> None:
        account = Account(epsilon=1, delta="1e-5")
        account.spend("Gaussian(20)", 10)
        with pytest.raises(BudgetError, match="nothing was spent"):
            account.spend("Gaussian(1)")
        assert len(account) == 1
        account.spend("Gaussian(20)", 18)
        assert account.remaining("Gaussian(20)") == 0
        assert account.epsilon("1e-5") <= 1

    @pytest.mark.parametrize("adaptive", [False, True])
    def test_a_budget_may_be_met_exactly(self, adaptive: bool) -> None:
        pure = Account(epsilon=1, adaptive=adaptive)
        pure.spend("Laplace(10)", 9)
        assert pure.remaining("Laplace(10)") == 1
        pure.spend("Laplace(10)")
        assert pure.epsilon(0).overlaps(dpassay.epsilon("Laplace(1)", 0))
        assert not pure.can_spend("Laplace(1000000)")
        assert Account(rho="0.5", adaptive=adaptive).remaining("Gaussian(10)") == 100
        assert Account(mu=1, adaptive=adaptive).remaining("Gaussian(10)") == 100
        assert Account(epsilon="sqrt(2)", adaptive=adaptive).can_spend("Laplace('sqrt(1/2)')")

    def test_an_adaptive_account_never_allows_more_and_promises_its_budget(self) -> None:
        kinds = {"Gaussian(20)": None, SAMPLE: 10, "Laplace(30)": None, "Gaussian(30)": 60}
        given: dict[str, Any] = {"epsilon": "1.5", "delta": "1e-5", "adjacency": "add-remove"}
        for kind, order in kinds.items():
            chosen, fixed = Account(**given, adaptive=True, order=order), Account(**given)
            count = chosen.remaining(kind)
            assert 0 < count <= fixed.remaining(kind)
            chosen.spend(kind, count)
            assert not chosen.can_spend(kind)
            assert chosen.epsilon("1e-5").upper <= Fraction(3, 2)
            whole = f"Composed({kind}, {count})"
            assert dpassay.delta(whole, "1.5", adjacency="add-remove") < Fraction(1, 10**5)
            assert chosen.delta(1) >= dpassay.delta(whole, 1, adjacency="add-remove")

    def test_what_has_no_finite_sum_is_refused_by_an_adaptive_account(self) -> None:
        account = Account(epsilon=1, delta="1e-5", adaptive=True)
        with pytest.raises(dpassay.NotApplicableError, match="divergence"):
            account.spend("Guaranteed('0.1', '1e-6')")
        assert Account(epsilon=1, delta="1e-5").can_spend("Guaranteed('0.1', '1e-6')")

    def test_without_a_budget_nothing_is_refused(self) -> None:
        account = Account()
        assert account.epsilon("1e-5") == 0 == account.delta(1)
        account.spend("Gaussian(1)", 1000)
        whole = dpassay.epsilon("Composed(Gaussian(1), 1000)", "1e-5")
        assert account.epsilon("1e-5") == whole
        with pytest.raises(dpassay.NotApplicableError, match="budget"):
            account.remaining("Gaussian(1)")

    def test_with_nothing_spent_questions_are_checked_as_ever(self) -> None:
        for account in (Account(), Account(epsilon=1, delta="1e-5")):
            for delta in (2, -1, float("nan"), None, "x"):
                with pytest.raises(dpassay.InvalidInputError, match="delta"):
                    account.epsilon(delta)  # type: ignore[arg-type]
            assert account.delta(-1).overlaps(dpassay.delta("Guaranteed(0, 0)", -1))

    def test_no_more_than_a_stated_number_is_counted(self) -> None:
        for release in ("Guaranteed(0, 0)", "Laplace(1e30)", "Gaussian(1e7)"):
            for adaptive in (False, True):
                account = Account(epsilon=1, delta="1e-5", adaptive=adaptive)
                assert account.remaining(release) == 10**12

    def test_a_relation_that_is_needed_is_asked_for_before_anything_is_spent(self) -> None:
        account = Account(epsilon=1, delta="1e-5")
        with pytest.raises(dpassay.AdjacencyError):
            account.spend(SAMPLE)
        assert len(account) == 0


class TestFile:
    def test_it_goes_on_where_it_was(self, tmp_path: Path) -> None:
        file = tmp_path / "budget.jsonl"
        with Account(epsilon=1, delta="1e-5", adjacency="add-remove", file=file) as first:
            first.spend(SAMPLE, 7, name="a\u202e")
            first.spend("Gaussian(50)")
        with Account.load(file) as second:
            assert second.history == first.history
            assert second.remaining(SAMPLE) == first.remaining(SAMPLE)
            assert "a\u202e" in second
            assert "\u202e" not in str(second)
            with pytest.raises(dpassay.InvalidInputError, match="spent before"):
                second.spend(SAMPLE, name="a\u202e")
            with pytest.raises(dpassay.InvalidInputError, match="already open"):
                Account.load(file)
        with pytest.raises(dpassay.InvalidInputError, match="another account"):
            Account(epsilon=2, delta="1e-5", adjacency="add-remove", file=file)

    @pytest.mark.parametrize(
        "foreign",
        [
            b"my notes\nwithout an end",
            b"my notes",
            b"a,b\n1,2\n3,4",
            bytes(range(256)) * 4,
            b"\0" * 1000,
            b"\n",
            b"{",
            b'{"format": "dpassay accoun',
            b'{"format": "dpassay account 2", "budget": null}\n',
            b'{"a": 1}',
            b"[" * 100_000,
            b'{"a":' * 100_000 + b"\n",
        ],
    )
    def test_a_file_that_is_no_account_is_left_alone(self, tmp_path: Path, foreign: bytes) -> None:
        file, link = tmp_path / "budget.jsonl", tmp_path / "link"
        file.write_bytes(foreign)
        link.symlink_to(file)
        for path in (file, link):
            for opened in OPENED:
                with pytest.raises(dpassay.InvalidInputError, match="not an account file") as said:
                    opened(path)
                assert "\n" not in str(said.value)
        assert file.read_bytes() == foreign

    def test_what_is_no_file_is_refused(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo")
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        wrong = ["fifo", "loop", ".", "none/budget.jsonl", "\0", "\ud800", "x" * 300]
        for path in [*(tmp_path / name for name in wrong), "/dev/null", "/dev/zero", "", 3, True]:
            for opened in OPENED:
                with pytest.raises(dpassay.InvalidInputError, match="to be readable and writable"):
                    opened(path)
        with pytest.raises(dpassay.InvalidInputError, match="No such file"):
            Account.load(tmp_path / "none")
        assert not (tmp_path / "none").exists()

    @pytest.mark.parametrize(
        ("place", "value"),
        [
            ("budget", 3),
            ("budget", {"kind": [], "numbers": []}),
            ("budget", {"kind": "Mu", "numbers": [1]}),
            ("budget", {"kind": "Mu", "numbers": ["1", "2"]}),
            ("budget", {"kind": "Mu", "numbers": ["9**9**9"]}),
            ("budget", {"kind": "Mu", "numbers": ["1"], "more": 1}),
            ("budget", {"kind": "EpsilonDelta", "numbers": ["0", "0"]}),
            ("adjacency", ["add-remove"]),
            ("adjacency", "\x1b[2K" * 10_000),
            ("adaptive", 1),
            ("order", {}),
            ("order", 10**400),
            ("extra", "x"),
            ("mechanism", ["Gaussian(50)"]),
            ("mechanism", "(" * 5000),
            ("mechanism", "Gaussian(\x1b[2K)"),
            ("count", 1.0),
            ("count", True),
            ("count", 10**400),
            ("name", 5),
            ("name", {"a": {"b": []}}),
        ],
    )
    def test_a_file_with_checksums_that_fit_is_not_trusted(
        self, tmp_path: Path, place: str, value: object
    ) -> None:
        file = tmp_path / "budget.jsonl"
        with Account(epsilon=1, delta="1e-5", file=file) as account:
            account.spend("Gaussian(50)")
        head, entry = map(json.loads, file.read_text().splitlines())
        (entry if place in entry else head)[place] = value
        lines, before = [], ""
        for body in (head, entry):
            del body["check"]
            text = before + json.dumps(body, sort_keys=True)
            before = hashlib.sha256(text.encode()).hexdigest()[:32]
            lines.append(json.dumps({**body, "check": before}, ensure_ascii=False).encode() + b"\n")
        file.write_bytes(b"".join(lines))
        for opened in OPENED:
            with pytest.raises(dpassay.InvalidInputError) as said:
                opened(file)
            assert str(said.value).isprintable()
            assert len(str(said.value)) < 500
        assert file.read_bytes() == b"".join(lines)

    def test_an_entry_whose_line_end_was_stripped_stays_spent(self, tmp_path: Path) -> None:
        file = tmp_path / "budget.jsonl"
        with Account(epsilon=1, delta="1e-5", file=file) as account:
            account.spend("Gaussian(50)")
        whole = file.read_bytes()
        file.write_bytes(whole.rstrip())
        with Account.load(file) as account:
            assert len(account) == 1
        assert file.read_bytes() == whole

    def test_what_cannot_be_recorded_is_not_spent(self, tmp_path: Path) -> None:
        file = tmp_path / "budget.jsonl"
        with Account(epsilon=1, delta="1e-5", file=file) as account:
            whole = file.read_bytes()
            for name in ("\ud800", b"x", 5):
                with pytest.raises(dpassay.InvalidInputError, match="name"):
                    account.spend("Gaussian(50)", name=name)  # type: ignore[arg-type]
            stored = pickle.dumps(account)
            for copied in (copy.copy(account), copy.deepcopy(account), pickle.loads(stored)):
                with pytest.raises(dpassay.InvalidInputError, match="is a copy"):
                    copied.spend("Gaussian(50)")
            assert (file.read_bytes(), len(account)) == (whole, 0)
        with pytest.raises(dpassay.InvalidInputError, match="was closed"):
            account.spend("Gaussian(50)")
        assert (file.read_bytes(), len(account)) == (whole, 0)

    def test_a_file_that_is_moved_or_changed_takes_no_entries(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with Account(file="budget.jsonl") as account:
            monkeypatch.chdir("/")
            account.spend("Gaussian(50)")
            file = tmp_path / "budget.jsonl"
            whole = file.read_bytes()
            file.write_bytes(whole + b"more")
            with pytest.raises(dpassay.InvalidInputError, match="changed it"):
                account.spend("Gaussian(50)")
            assert file.read_bytes() == whole + b"more"
            file.rename(tmp_path / "moved")
            with pytest.raises(dpassay.InvalidInputError, match="Nothing was spent"):
                account.spend("Gaussian(50)")
        assert len(account) == 1

    def test_what_was_written_in_part_is_cut_off_and_all_else_is_damage(
        self, tmp_path: Path
    ) -> None:
        file = tmp_path / "budget.jsonl"
        with Account(epsilon=1, delta="1e-5", file=file) as account:
            for _ in range(3):
                account.spend("Gaussian(50)")
        whole = file.read_bytes()
        file.write_bytes(whole[:-3])
        with Account.load(file) as account:
            assert len(account) == 2
            account.spend("Gaussian(50)")
        assert file.read_bytes() == whole
        lines = whole.splitlines(keepends=True)
        for damaged in (
            lines[:1] + lines[2:],
            [*lines, lines[-1]],
            [lines[0], lines[1].replace(b'"count": 1', b'"count": 0'), *lines[2:]],
            [lines[0], b"{}\n"],
            [lines[0], b"[" * 100_000 + b"\n"],
        ):
            file.write_bytes(b"".join(damaged))
            with pytest.raises(dpassay.InvalidInputError, match="damaged in line"):
                Account.load(file)
        for head in (b"", b"{}\n", b"null\n", b'{"format": "dpassay account 1", "budget": 3}\n'):
            file.write_bytes(head)
            with pytest.raises(dpassay.InvalidInputError, match="not an account file"):
                Account.load(file)

    def test_a_forked_process_does_not_spend(self, tmp_path: Path) -> None:
        with Account(file=tmp_path / "budget.jsonl") as account:
            child = os.fork()
            if not child:
                try:
                    account.spend("Gaussian(1)")
                except dpassay.InvalidInputError:
                    os._exit(7)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

    def test_processes_killed_while_spending_lose_nothing_and_spend_nothing_twice(
        self, tmp_path: Path
    ) -> None:
        """Fifty children, one after the other, each killed at a random time while it spends."""
        file, chance = tmp_path / "budget.jsonl", random.Random(46)
        code = (
            "import sys, os, dpassay\n"
            "open_ = lambda: dpassay.Account(file=sys.argv[1])\n"
            "with open_() as account: account.spend('Gaussian(9)', name=str(len(account)))\n"
            "while True:\n"
            "    child = os.fork()\n"
            "    if child:\n"
            "        os.waitpid(child, 0)\n"
            "        os.write(1, b'|\\n')\n"
            "        if not sys.stdin.readline(): break\n"
            "        continue\n"
            "    os.write(1, b'%d\\n' % os.getpid())\n"
            "    account = open_()\n"
            "    while True:\n"
            "        name = str(len(account))\n"
            "        account.spend('Gaussian(9)', name=name)\n"
            "        os.write(1, name.encode() + b'\\n')\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code, str(file)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as parent:  # fmt: skip
            assert parent.stdin is not None
            assert parent.stdout is not None
            said, pid = [0], 0
            for _ in range(50):
                pid = int(parent.stdout.readline())
                said += [int(parent.stdout.readline()) for _ in range(chance.randrange(1, 6))]
                os.kill(pid, signal.SIGKILL)
                while (line := parent.stdout.readline()) != "|\n":
                    said.append(int(line))
                parent.stdin.write("\n")
                parent.stdin.flush()
            os.kill(int(parent.stdout.readline()), signal.SIGKILL)
            parent.stdin.close()
            parent.wait(timeout=60)
        with Account.load(file) as account:
            names = [int(entry.name or -1) for entry in account]
        assert names == list(range(len(names)))
        assert said == sorted(set(said)), "nothing was spent twice"
        assert set(said) <= set(names), "nothing that was announced is lost"
        assert len(names) >= 51

    def test_a_full_disk_leaves_the_file_as_it_was(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "budget.jsonl"
        with Account(file=file) as account:
            before, write = file.read_bytes(), os.write
            monkeypatch.setattr(os, "write", lambda where, data: write(where, data[:5]))
            with pytest.raises(dpassay.InvalidInputError, match="no space"):
                account.spend("Gaussian(1)")
            monkeypatch.undo()
            assert (file.read_bytes(), len(account)) == (before, 0)
            account.spend("Gaussian(1)")
        assert json.loads(file.read_bytes().splitlines()[-1])["count"] == 1


def test_an_account_is_copied_printed_and_drawn() -> None:
    account = Account(epsilon=1, delta="1e-5")
    for sigma in (50, 60, 70):
        account.spend(f"Gaussian({sigma})")
    for copied in (copy.copy(account), pickle.loads(pickle.dumps(account))):
        assert copied.history == account.history
        assert copied.epsilon("1e-5") == account.epsilon("1e-5")
        copied.spend("Gaussian(80)")
        assert (len(account), len(copied)) == (3, 4)
    assert "Gaussian(standard_deviation=70)" in str(account)
    assert "<table>" in account._repr_html_()
    axes = dpassay.plot(account).axes[0]
    drawn = np.asarray(axes.lines[0].get_ydata())[-1]
    assert drawn == pytest.approx(float(account.epsilon("1e-5")), rel=1e-9, abs=0)


def test_gaussian_releases_of_any_scale_are_answered_as_their_composition() -> None:
    """Also among other releases, with sensitivities that are roots, and for every budget."""
    releases = [
        ("Gaussian(20)", 3),
        ("Laplace(30)", 2),
        ("Gaussian(standard_deviation='sqrt(700)', l2_sensitivity='sqrt(2)')", 1),
        ("Gaussian(20)", 1),
        ("Composed(Gaussian(31), 2)", 2),
    ]
    account = Account(epsilon=3, delta="1e-5", adjacency="add-remove")
    for release, count in releases:
        account.spend(release, count)
        whole = account.mechanism
        assert whole is not None
        asked = {"adjacency": "add-remove"}
        assert account.epsilon("1e-6") == dpassay.epsilon(whole, "1e-6", **asked)
        assert account.delta("1/2") == dpassay.delta(whole, "1/2", **asked)
    assert [entry.count for entry in account.history] == [count for _, count in releases]
    more = account.remaining("Gaussian(25)")
    kept, passed = (f"Composed([{whole!r}, Composed(Gaussian(25), {n})])" for n in (more, more + 1))
    assert dpassay.delta(kept, 3, **asked).upper <= 1e-5 < dpassay.delta(passed, 3, **asked).lower


def test_a_thousand_steps_with_changing_noise() -> None:
    account = Account(epsilon=2, delta="1e-6")
    for step in range(1000):
        account.spend(f"Gaussian({100 + step})")
    total = sum((Fraction(1, (100 + step) ** 2) for step in range(1000)), Fraction(0))
    exact = dpassay.epsilon(dpassay.Gaussian(ExactReal.of_root(1 / total)), "1e-6")
    assert account.epsilon("1e-6").overlaps(exact)
