"""Locks of compilations: those of the dead are removed, those of the living stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runner.host.kernel_cache import kernel_cache, remove_left_locks
from tests.waiting import wait_until

_HOLD = "import os, sys; os.open(sys.argv[1], os.O_CREAT | os.O_EXCL); print('held', flush=True); sys.stdin.read()"


def _lock(cache: Path, *parts: str) -> Path:
    path = cache.joinpath(*parts, "lock")
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.parametrize("parts", [("py311_cpu", "kernels"), ("kernels",)])
def test_a_lock_is_removed_when_its_holder_was_killed(parts: tuple[str, ...], tmp_path: Path) -> None:
    lock = _lock(tmp_path, *parts)
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert remove_left_locks(tmp_path) == []
        holder.kill()
        wait_until(lambda: holder.poll() is not None)
        assert remove_left_locks(tmp_path) == [lock]
    assert not lock.exists()
    assert remove_left_locks(tmp_path) == []


def test_nothing_else_is_touched(tmp_path: Path) -> None:
    kept = tmp_path / "py311_cpu" / "kernels" / "kernels.so"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"x")
    (tmp_path / "lock").write_text("not torch's")
    (tmp_path / "py311_cpu" / "folder" / "lock").mkdir(parents=True)
    assert remove_left_locks(tmp_path) == []
    assert remove_left_locks(tmp_path / "absent") == []
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "folder",
        "kernels",
        "kernels.so",
        "lock",
        "lock",
        "py311_cpu",
    ]


def test_the_cache_is_where_torch_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert kernel_cache() == Path("/cache/torch_extensions")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert kernel_cache() == Path.home() / ".cache" / "torch_extensions"
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", "/extensions")
    assert kernel_cache() == Path("/extensions")
