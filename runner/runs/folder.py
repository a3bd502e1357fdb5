"""A run's folder: the truth about the run. Making it is the once-only step of a submission; reading changes nothing.

Who writes what is said at the top of `supervisor`. The daemon puts further documents of its own beside those.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from runner.engines.engine import (
    Begun,
    Cancel,
    CancelledBeforeStart,
    Child,
    EndedOrphans,
    Exit,
    Exited,
    Lost,
    NotBegun,
    Observed,
    Running,
    Unreadable,
)
from runner.errors import BadRequest, Broken, Conflict, NotHere, Refused
from runner.intake.reading import opened, read_fully
from runner.runs import supervisor
from runner.runs.processes import Process, another_boot, end_tree, find_named, find_supervisor, mark_of, wake_and_signal
from runner.runs.supervisor import RECORDS, sync_folder, write_durably

__all__ = ["Launch", "RunFolder", "lock_is_held", "new_mark", "observe", "write_durably"]

LAUNCH, CANCEL, LOCK = "launch.json", "cancel.json", "lock"
BEGUN, CHILD, EXIT = "begun.json", "child.json", "exit.json"
UNFINISHED = ".new-"

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_Model = TypeVar("_Model", bound=BaseModel)


class Launch(BaseModel):
    """launch.json: what the supervisor starts. The environment is not in it, because secrets never lie on disk."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    argv: list[str] = Field(min_length=1)
    cwd: str
    mark: str = Field(min_length=1, description="Told to every process of the run; see new_mark.")
    log: str = "log"
    grace_seconds: float = Field(10.0, ge=0, description="Between asking a process to end and killing it.")
    time_limit_seconds: float | None = Field(None, gt=0)
    log_limit_bytes: int | None = Field(
        None, ge=65536, description="Disk space of the log; above it the middle is cut out and reads as NUL bytes."
    )
    watched: list[str] = Field(
        [], description="Folders on whose disks the reserve must stay free, beside the run's own. They need not exist."
    )
    disk_reserve_bytes: int = Field(0, ge=0, description="Free space that the run must leave there; 0: no reserve.")
    memory_limit_bytes: int | None = Field(None, ge=1, description="Main memory of all its processes together.")
    variables: list[str] = Field(
        [], description="Names of the only variables that the command gets, where a scheduler adds its own; empty: all."
    )
    mask_variable: str = Field(
        "",
        description="The one variable that shows it its GPUs, where a scheduler set several; empty: none is touched.",
    )

    def as_bytes(self) -> bytes:
        """The file's content."""
        return self.model_dump_json(indent=1).encode() + b"\n"


def new_mark(run_id: str) -> str:
    """A mark that no other run has, also none of the same id."""
    return f"{run_id}:{secrets.token_hex(16)}"


def lock_is_held(path: Path) -> bool:
    """Whether a supervisor holds this lock file. Raises OSError where that cannot be found out.

    It is taken shared for the instant between two system calls. A supervisor that starts in that instant notices that
    the holder is only a reader, and tries again. So this works on network file systems too, where /proc/locks tells
    nothing of other hosts, and any tool such as flock(1) sees the same.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @property
    def run_id(self) -> str:
        """The run's id, which is the folder's name."""
        return self.path.name

    @property
    def log_path(self) -> Path:
        """The command's output, written by the command itself."""
        return self.path / "log"

    @property
    def supervisor(self) -> Path:
        """The supervisor's program, a folder that Python executes."""
        return Path(supervisor.__file__).parent

    @classmethod
    def create(cls, root: Path, run_id: str, documents: Mapping[str, bytes]) -> RunFolder:
        """The folder of this id. One that exists already is returned as it is: nothing in it is overwritten.

        It comes into being with all documents at once or not at all, also when the power fails. Raises BadRequest for
        names that are no plain file names, and Broken when the disk does not take it.
        """
        for name in (run_id, *documents):
            if not _NAME.fullmatch(name):
                raise BadRequest("name_not_plain", f"{name!r} cannot be the name of a run or of one of its files.")
        path = root.absolute() / run_id
        try:
            root.mkdir(parents=True, exist_ok=True)
            if not path.is_dir():
                _make(path, documents)
            sync_folder(root)  # also where another made it: what is returned must last
        except OSError as error:
            hint = "Free disk space, or correct state_dir."
            raise Broken("folder_not_made", f"The folder of run {run_id} cannot be made: {error}.", hint) from error
        return cls(path)

    @classmethod
    def all(cls, root: Path) -> list[RunFolder]:
        """Every finished folder below the root, by name. Raises Broken when the root cannot be read."""
        try:
            return [
                cls(path) for path in sorted(root.absolute().iterdir()) if _NAME.fullmatch(path.name) and path.is_dir()
            ]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Broken("runs_unreadable", f"The run folders in {root} cannot be read: {error}.") from error

    @staticmethod
    def clean_up(root: Path, *, older_than_seconds: float = 3600.0, now: float | None = None) -> int:
        """Remove what a crash left unfinished in `create`; how many. `now` is in seconds since 1970.

        Only what is older is removed: another process may be making a folder at this moment. Raises OSError.
        """
        before = (time.time() if now is None else now) - older_than_seconds
        unfinished = [path for path in root.glob(f"{UNFINISHED}*") if path.stat().st_mtime < before]
        for path in unfinished:
            shutil.rmtree(path)
        return len(unfinished)

    def write(self, name: str, data: bytes) -> None:
        """Put a document of the daemon in place durably. Raises Broken."""
        try:
            write_durably(self.path / name, data)
        except OSError as error:
            hint = "Free disk space, or look at the disk."
            raise Broken(
                "document_not_written", f"{name} of run {self.run_id} cannot be written: {error}.", hint
            ) from error

    def read(self, name: str) -> bytes:
        """A document of this folder. Raises NotHere when it is missing, and Broken when it cannot be read."""
        data = self.read_if_there(name)
        if data is None:
            raise NotHere("no_such_document", f"Run {self.run_id} has no {name}.")
        return data

    def read_if_there(self, name: str) -> bytes | None:
        """A document of this folder; None when it is missing. Raises Broken when it is there but cannot be read."""
        try:
            # The run could have put a pipe or a link in its place: nobody waits for those.
            with opened(self.path / name, follow_links=False) as (descriptor, size):
                return read_fully(descriptor, size, 0)
        except NotHere:
            return None
        except (OSError, Refused) as error:
            raise self._damaged(name, str(error)) from error

    def read_as(self, name: str, model: type[_Model]) -> _Model | None:
        """A JSON document of this folder; None when it is missing. Raises Broken when it is there but damaged."""
        data = self.read_if_there(name)
        try:
            return None if data is None else model.model_validate_json(data)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise self._damaged(name, f"{where}: {first['msg']}".removeprefix(": ")) from error

    def has_begun(self) -> bool:
        """Whether a supervisor took this run, now or at any time before. Also where that cannot be found out.

        Any trace counts, because any may be missing: somebody tidied up, or a backup brought back half a folder. Only a
        supervisor that began writes a record, so a free lock after a record was missed needs a second look for it.
        """
        try:
            return self.has_records() or lock_is_held(self.path / LOCK) or self.has_records()
        except OSError:
            return True

    def has_records(self) -> bool:
        """Whether a supervisor left begun.json, child.json or exit.json: then the run has begun."""
        return any(os.path.lexists(self.path / name) for name in RECORDS)

    def observe(self) -> Observed:
        """What became of the run: lock held, it runs; else exit.json, it ended; else any other record, it is lost.

        Records are looked for *before* the lock, and the lock before exit.json. A supervisor has its lock from before
        it writes begun.json until after exit.json: a lock that is free in between means that it is gone, or that
        somebody removed the file. Therefore nothing is called lost while the recorded supervisor lives.
        """
        try:
            begun = self.has_records()
            if lock_is_held(self.path / LOCK):
                return self._running()
            if begun:
                return self._without_lock()
            if self.has_records():  # it began after the first look
                return self.observe()
            if self.cancel_asked():
                return CancelledBeforeStart(self._if_readable(CANCEL, Cancel))
            if not self.path.is_dir():
                return Unreadable(f"The folder {self.path} is not there.")
        except (OSError, Broken) as error:
            return Unreadable(str(error))
        return NotBegun()

    def _running(self) -> Running:
        return Running(cancelling=self.cancel_asked(), child=self._if_readable(CHILD, Child))

    def _without_lock(self) -> Observed:
        told = self.read_as(EXIT, Exit)
        if told is None and self.living_supervisor() is not None:
            return self._running()
        told = told or self.read_as(EXIT, Exit)  # it may have ended between the two looks
        if told is None:
            begun = self._if_readable(BEGUN, Begun)
            return Lost(begun, self._if_readable(CHILD, Child), rebooted=begun is not None and another_boot(begun))
        if told.cancelled and told.exit_code is None and told.could_not_start is None:
            return CancelledBeforeStart(self._if_readable(CANCEL, Cancel))
        return Exited(told)

    def living_supervisor(self) -> Process | None:
        """The supervisor of this run, if it lives on this host, by whatever record of it can be read. Raises OSError.

        Its command line is the last resort. Without any record there is none: it did not begin, or began to.
        """
        if (begun := self._if_readable(BEGUN, Begun)) is not None:
            return find_named(begun)
        child = self._if_readable(CHILD, Child)
        if child is not None and child.supervisor is not None:
            return find_named(child.supervisor)
        return find_supervisor(self.path) if self.has_records() else None

    def supervisor_pid(self) -> int | None:
        """The process of this run's supervisor, if it lives on this host and can be told."""
        try:
            process = self.living_supervisor()
        except (OSError, Broken):
            return None
        return process.pid if process is not None else None

    def holds(self, name: str) -> bool:
        """Whether a document of this name is there, be it readable or not."""
        return os.path.lexists(self.path / name)

    def remove(self, name: str) -> None:
        """Remove a document of the daemon. Raises Broken."""
        try:
            (self.path / name).unlink(missing_ok=True)
            sync_folder(self.path)
        except OSError as error:
            hint = "Look at the disk."
            raise Broken(
                "document_not_removed", f"{name} of run {self.run_id} cannot be removed: {error}.", hint
            ) from error

    def cancel_asked(self) -> bool:
        """Whether somebody asked for the end of this run."""
        return os.path.lexists(self.path / CANCEL)

    def ask_cancel(self, by: str, reason: str, at: str) -> str:
        """Ask for the end of this run: leave cancel.json, of which the first counts, and signal the supervisor.

        The signal reaches one that somebody stopped, and works on a full disk. `at` is ISO 8601. What could not be done
        of it, in a sentence; empty when all could. Raises Broken when neither could be done.
        """
        try:
            if not self.cancel_asked():
                request = json.dumps({"by": by, "at": at, "reason": reason}, indent=1)
                self.write(CANCEL, request.encode("ascii") + b"\n")
        except Broken as error:
            if not self.signal_supervisor():
                raise
            return f"{error.message} Its supervisor was asked by a signal instead, so who cancelled it is not recorded."
        self.signal_supervisor()
        return ""

    def signal_supervisor(self) -> bool:
        """Wake this run's supervisor and tell it to end the run (CONT, then TERM); whether it is here to hear it."""
        try:
            process = self.living_supervisor()
            return process is not None and wake_and_signal(process, signal.SIGTERM)
        except OSError:
            return False  # it belongs to another user, or this host is short of descriptors; cancel.json is left to it

    def end_orphans(self, grace_seconds: float = 5.0) -> EndedOrphans:
        """End what a lost run left on this host, as far as that can be done. Blocks: call it in a thread.

        They are known by the mark (launch.json, child.json, the child's environment), by the recorded child, and by
        their output going to the run's log. Raises Conflict when the run is not lost, and nothing else.
        """
        state = self.observe()
        if not isinstance(state, Lost):
            raise Conflict("run_not_lost", f"Run {self.run_id} is not lost: {type(state).__name__}.")
        launch, child = self._if_readable(LAUNCH, Launch), state.child
        try:
            marks = {launch.mark if launch else "", child.mark if child else "", mark_of(child) if child else ""} - {""}
            done = end_tree(marks, child, log=self.log_path, grace_seconds=grace_seconds)
        except OSError as error:
            why = f"The processes of this host cannot be listed: {error}."
            return EndedOrphans(0, (), f"{why} Look with ps for processes of run {self.run_id}, and end them by hand.")
        doubts = []
        left = tuple(process.pid for process in done.left)
        if left:
            doubts.append(
                f"Processes {', '.join(map(str, left))} cannot be ended and may hold its GPU: end them by hand, or"
                " restart the host."
            )
        if not marks:
            doubts.append(
                "launch.json and child.json do not tell its mark, so more of its processes may run: look for them with"
                " ps, and end them by hand."
            )
        return EndedOrphans(len(done.ended), left, " ".join(doubts))

    def _if_readable(self, name: str, model: type[_Model]) -> _Model | None:
        """A document that only adds to what is known anyway: damaged is as good as missing."""
        try:
            return self.read_as(name, model)
        except Broken:
            return None

    def _damaged(self, name: str, why: str) -> Broken:
        return Broken(
            "document_damaged", f"{name} of run {self.run_id} cannot be read: {why}.", f"Look at {self.path / name}."
        )


def observe(folder: RunFolder) -> Observed:
    """What became of the run of this folder."""
    return folder.observe()


def _make(path: Path, documents: Mapping[str, bytes]) -> None:
    """Make the folder beside its place and rename it there. When another is quicker, its folder counts."""
    unfinished = path.with_name(f"{UNFINISHED}{path.name}-{secrets.token_hex(8)}")
    unfinished.mkdir(mode=0o700)
    try:
        for name, data in documents.items():
            write_durably(unfinished / name, data)
        sync_folder(unfinished)
        unfinished.rename(path)  # fails when there is a folder with anything in it
    except OSError:
        shutil.rmtree(unfinished, ignore_errors=True)
        if not path.is_dir():
            raise
