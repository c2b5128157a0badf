from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpassay.accountant.counting.streams import Saved, StateFile, StreamCounter
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import KaryTree


def saved() -> Saved:
    counter = StreamCounter(KaryTree(100, 5, 1), rng=np.random.default_rng(0))
    counter.extend(np.ones(9))
    outputs = counter.extend(np.ones(4))
    return Saved(counter.record(), "abc", 9, outputs)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.state"


def test_what_is_committed_is_loaded_to_the_last_bit(path: Path) -> None:
    before = saved()
    with StateFile(path) as state:
        assert state.load() is None
        state.commit(before)
        after = state.load()
    assert after is not None
    assert after.record == before.record
    assert (after.digest, after.delivered, after.counted) == ("abc", 9, 13)
    assert after.outputs.tobytes() == before.outputs.tobytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.with_name("run.state.new").exists()


def test_only_one_run_at_a_time(path: Path) -> None:
    with (
        StateFile(path),
        pytest.raises(InvalidInputError, match="in use by another run"),
        StateFile(path),
    ):
        pass
    with StateFile(path):  # and the lock is given back
        pass


def test_every_changed_byte_is_noticed(path: Path) -> None:
    with StateFile(path) as state:
        state.commit(saved())
        content = path.read_bytes()
        for index in range(0, len(content), 7):
            changed = bytearray(content)
            changed[index] ^= 1
            path.write_bytes(changed)
            with pytest.raises(InvalidInputError, match=r"corrupted|has version"):
                state.load()
        for length in (0, 1, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:length])
            with pytest.raises(InvalidInputError, match="corrupted: it is not JSON"):
                state.load()


def rewritten(path: Path, change: dict[str, Any]) -> None:
    """Change the body and make the checksum fit: SHA-256 of its JSON with sorted keys."""
    data = json.loads(path.read_text())
    data["body"].update(change)
    data["body"] = {key: value for key, value in data["body"].items() if value is not None}
    body = json.dumps(data["body"], sort_keys=True)
    data["checksum"] = hashlib.sha256(body.encode()).hexdigest()
    path.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outputs": ""}, "numbers of inputs and outputs differ"),
        ({"outputs": "AAAA"}, "lacks a part"),
        ({"delivered": 8}, "numbers of inputs and outputs differ"),
        ({"record": None}, "lacks a part"),
    ],
)
def test_parts_that_do_not_fit(path: Path, change: dict[str, Any], message: str) -> None:
    with StateFile(path) as state:
        state.commit(saved())
        rewritten(path, change)
        with pytest.raises(InvalidInputError, match=message):
            state.load()


def test_other_files_are_refused(path: Path) -> None:
    path.touch(0o600)
    with StateFile(path) as state:
        for content in (b"[]", b'{"format": "other"}'):
            path.write_bytes(content)
            with pytest.raises(InvalidInputError, match="not a state of a stream"):
                state.load()
        path.write_bytes(b"\xff\xfe")
        with pytest.raises(InvalidInputError, match="it is not text"):
            state.load()
        path.write_text('{"format": "dpassay stream state", "version": 1}')
        with pytest.raises(InvalidInputError, match="has version 1; this program reads 2"):
            state.load()


def test_a_state_that_others_reach_is_refused(path: Path, tmp_path: Path) -> None:
    """Noise that another user has read, or could have written, protects nobody."""
    with StateFile(path) as state:
        state.commit(saved())
    lock = path.with_name("run.state.lock")
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    for file, mode in ((path, 0o640), (path, 0o604), (lock, 0o666)):
        file.chmod(mode)
        with pytest.raises(InvalidInputError, match="nobody else may read"), StateFile(path) as s:
            s.load()
        file.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(path)
    with StateFile(link) as state, pytest.raises(InvalidInputError, match="is a symbolic link"):
        state.load()
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(InvalidInputError, match="Anyone can write"), StateFile(folder / "state"):
        pass


def test_a_planted_file_is_not_written_through(path: Path, tmp_path: Path) -> None:
    """The new state is a fresh file, whatever lies where it is written first."""
    other = tmp_path / "other"
    other.write_text("mine")
    path.with_name("run.state.new").symlink_to(other)
    with StateFile(path) as state:
        state.commit(saved())
        assert state.load() is not None
    assert other.read_text() == "mine"
    assert not path.is_symlink()
    planted = path.with_name("run.state.lock")
    planted.unlink()
    planted.symlink_to(other)
    with pytest.raises(InvalidInputError, match="is a symbolic link"), StateFile(path):
        pass


def test_an_older_state_or_none_is_refused(path: Path) -> None:
    """Going on from there would release other noise for what is out."""
    with StateFile(path) as state:
        state.commit(saved())
        older = path.read_bytes()
        state.commit(saved())
        newer = path.read_bytes()
    path.write_bytes(older)
    with (
        StateFile(path) as state,
        pytest.raises(InvalidInputError, match="committed 1 times, its stream 2 times"),
    ):
        state.load()
    path.unlink()
    with StateFile(path) as state, pytest.raises(InvalidInputError, match="is missing"):
        state.load()
    path.touch(0o600)
    path.write_bytes(newer)
    with StateFile(path) as state:
        assert state.load() is not None
    # killed between the state and the count of its commits: the state is the newer one
    path.with_name("run.state.lock").write_text("1\n")
    with StateFile(path) as state:
        assert state.load() is not None
    path.with_name("run.state.lock").write_text("x")
    with pytest.raises(InvalidInputError, match="to hold a number"), StateFile(path):
        pass
