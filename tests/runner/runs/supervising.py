"""Real supervisors for tests: start them, look at what they leave, and let nothing of them survive a failed test."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from runner.engines.engine import Exited, Observed
from runner.runs import supervisor
from runner.runs.folder import Launch, RunFolder, new_mark
from runner.runs.processes import end_tree, read_process, send_signal
from tests.waiting import wait_until

PATH = {"PATH": os.environ.get("PATH", os.defpath)}


def python(code: str, *words: str) -> list[str]:
    """A command that runs this code in an interpreter that starts fast."""
    return [sys.executable, "-I", "-S", "-c", "import os, select, signal, sys\n" + code, *words]


WAIT_FOR_EVER = python("os.write(1, b'ready\\n')\nsignal.pause()")


class Host:
    """A folder of runs, and the supervisors that were started in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folders: dict[str, RunFolder] = {}  # by mark
        self.started: list[subprocess.Popen[bytes]] = []

    def folder(self, argv: Sequence[str], **launch: Any) -> RunFolder:
        """A new run that nobody has started."""
        name = f"run-{len(self.folders)}"
        what = Launch(argv=list(argv), **{"cwd": str(self.root), "mark": new_mark(name), "grace_seconds": 0.3} | launch)
        folder = RunFolder.create(self.root / "runs", name, {"launch.json": what.as_bytes()})
        self.folders[what.mark] = folder
        return folder

    def start(
        self,
        folder: RunFolder,
        env: Mapping[str, str] = PATH,
        before: Sequence[str] = (),
        script: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a supervisor; it is not waited for. `before` are words of a program that executes it."""
        words = [*before, sys.executable, "-I", "-S", str(script or folder.supervisor), str(folder.path)]
        with (folder.path / "supervisor.log").open("ab") as said:
            process = subprocess.Popen(words, env=dict(env), stdout=said, stderr=said, start_new_session=True)
        self.started.append(process)
        return process

    def changed_script(self, old: str, new: str) -> Path:
        """A supervisor in which one thing was replaced, to stop it at a moment that lasts no time."""
        changed = self.root / "supervisor"
        shutil.copytree(Path(supervisor.__file__).parent, changed, ignore=shutil.ignore_patterns("__pycache__"))
        (file,) = (file for file in changed.glob("*.py") if old in file.read_text())
        assert file.read_text().count(old) == 1
        file.write_text(file.read_text().replace(old, new))
        return changed

    def run(self, argv: Sequence[str], env: Mapping[str, str] = PATH, **launch: Any) -> RunFolder:
        """A run whose supervisor was started now."""
        folder = self.folder(argv, **launch)
        self.start(folder, env)
        return folder

    def ready(self, folder: RunFolder, lines: int = 1) -> list[str]:
        """Wait until the command has written so many lines."""
        return wait_until(lambda: _lines(folder, lines), 10, f"the log of {folder.path} has {lines} lines")

    def close(self) -> None:
        """End whatever is left."""
        for process in self.started:
            process.kill()
            process.wait()
        for folder in self.folders.values():
            left = folder.living_supervisor()
            if left is not None:  # another process started it
                send_signal(left, signal.SIGKILL)
        end_tree(list(self.folders), None, grace_seconds=0)


@contextmanager
def a_host(root: Path) -> Iterator[Host]:
    """A host that is cleaned up at the end."""
    host = Host(root)
    try:
        yield host
    finally:
        host.close()


def exit_of(folder: RunFolder, seconds: float = 15) -> Exited:
    """Wait for the end of a run that tells its outcome."""

    def ended() -> Observed | None:
        state = folder.observe()
        return state if isinstance(state, Exited) else None

    state = wait_until(ended, seconds, f"{folder.path} has an outcome")
    assert isinstance(state, Exited)
    return state


def written(folder: RunFolder, name: str) -> dict[str, Any]:
    """A document as the supervisor wrote it."""
    document = json.loads(folder.read(name))
    assert isinstance(document, dict)
    return document


def stopped(pid: int) -> bool:
    """Whether somebody stopped this process."""
    process = read_process(pid)
    return process is not None and process.state == "T"


@contextmanager
def a_small_disk(path: Path) -> Iterator[Path]:
    """A file system of its own that can be filled. Skips the test where none may be mounted."""
    path.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(path)], capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def fill(disk: Path) -> None:
    """Leave no byte free."""
    with suppress(OSError), (disk / "filling").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    assert os.statvfs(disk).f_bavail == 0


def gone(pid: int) -> bool:
    """Whether no such process runs code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def _lines(folder: RunFolder, count: int) -> list[str] | None:
    lines = folder.log_path.read_text().splitlines() if folder.log_path.exists() else []
    return lines if len(lines) >= count else None
