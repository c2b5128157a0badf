"""Running accounts: exact where noise is fixed, filters where it is not, files that survive."""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay import Account, BudgetError
from dpassay.accountant.numbers.exact import ExactReal

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

    @pytest.mark.parametrize(
        ("given", "remedy"),
        [
            ({"epsilon": 1, "rho": 1}, "one budget"),
            ({"delta": "1e-5"}, "one budget"),
            ({"adaptive": True}, "fixed in advance"),
            ({"epsilon": -1, "delta": "0.9"}, "epsilon ≥ 0"),
            ({"budget": "1"}, "EpsilonDelta"),
            ({"epsilon": 1, "adaptive": 1}, "True or False"),
            ({"epsilon": 1, "order": 8}, "adaptive=True"),
            ({"epsilon": 1, "delta": "1e-9", "adaptive": True, "order": 2}, "larger one"),
        ],
    )
    def test_a_wrong_budget_is_answered_with_a_right_one(
        self, given: dict[str, object], remedy: str
    ) -> None:
        with pytest.raises(dpassay.InvalidInputError, match=remedy):
            Account(**given)  # type: ignore[arg-type]

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
            with pytest.raises(dpassay.InvalidInputError, match="open already"):
                Account.load(file)
        with pytest.raises(dpassay.InvalidInputError, match="another account"):
            Account(epsilon=2, delta="1e-5", adjacency="add-remove", file=file)

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
            with pytest.raises(dpassay.InvalidInputError, match="no file of an account"):
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
            with pytest.raises(OSError, match="no space"):
                account.spend("Gaussian(1)")
            monkeypatch.undo()
            assert (file.read_bytes(), len(account)) == (before, 0)
            account.spend("Gaussian(1)")
        assert json.loads(file.read_bytes().splitlines()[-1])["count"] == 1


def test_an_account_is_copied_printed_and_drawn(tmp_path: Path) -> None:
    account = Account(epsilon=1, delta="1e-5", file=tmp_path / "budget.jsonl")
    for sigma in (50, 60, 70):
        account.spend(f"Gaussian({sigma})")
    copy = pickle.loads(pickle.dumps(account))
    account.close()
    assert copy.history == account.history
    assert copy.epsilon("1e-5") == account.epsilon("1e-5")
    copy.spend("Gaussian(80)")
    assert (len(account), len(copy)) == (3, 4)
    assert "Gaussian(standard_deviation=70)" in str(account)
    assert "<table>" in account._repr_html_()
    axes = dpassay.plot(account).axes[0]
    drawn = np.asarray(axes.lines[0].get_ydata())[-1]
    assert drawn == pytest.approx(float(account.epsilon("1e-5")), rel=1e-9)


def test_a_thousand_steps_with_changing_noise() -> None:
    account = Account(epsilon=2, delta="1e-6")
    for step in range(1000):
        account.spend(f"Gaussian({100 + step})")
    total = sum((Fraction(1, (100 + step) ** 2) for step in range(1000)), Fraction(0))
    exact = dpassay.epsilon(dpassay.Gaussian(ExactReal.of_root(1 / total)), "1e-6")
    assert account.epsilon("1e-6").overlaps(exact)
