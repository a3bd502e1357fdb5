"""The runs that wait: in which order they start, whether they may, and when that will be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from runner.errors import Broken, Conflict
from runner.runs.entry import Entry
from runner.runs.folder import RunFolder, write_durably
from schemas.api import QueueMode
from schemas.base import Document
from schemas.runs import QueuePriority

QUEUE_FILE = "queue.json"
PRIORITY_FILE = "priority.json"
_RANKS: Final[dict[QueuePriority, int]] = {"high": 0, "normal": 1, "low": 2}


class QueueStanding(Document):
    """queue.json: whether runs may come and start, and who said so."""

    mode: QueueMode = "open"
    by: str = ""
    at: datetime | None = None
    reason: str = ""

    @property
    def sentence(self) -> str:
        """Why no run starts, or none is taken."""
        doing = {"open": "opened", "paused": "paused", "draining": "drains"}[self.mode]
        because = f" {self.reason.strip()}" if self.reason.strip() else ""
        return f"{self.by} {doing} this runner's queue.{because}"


class Ranked(Document):
    """priority.json: the place that somebody gave a run."""

    priority: QueuePriority
    by: str
    at: datetime


class Queue:
    """Whether runs may come and start. It lasts: a queue that was paused is paused after a restart."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.standing = QueueStanding()

    def recover(self) -> None:
        """Read how the queue stands. Raises Broken where that is damaged: nobody knows then whether runs may start."""
        try:
            self.standing = QueueStanding.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, ValidationError) as error:
            raise Broken(
                "queue_unreadable",
                f"Whether runs may start cannot be read from {self._path}: {error}.",
                "Correct the file, or remove it to open the queue.",
            ) from None

    def change(self, standing: QueueStanding) -> None:
        """Open, pause or drain. Raises Broken where that cannot be written; nothing changes then."""
        try:
            write_durably(self._path, standing.model_dump_json(indent=1).encode() + b"\n")
        except OSError as error:
            hint = "Free disk space, or look at the disk."
            raise Broken("queue_not_written", f"{self._path} cannot be written: {error}.", hint) from error
        self.standing = standing

    def admit(self) -> None:
        """Raises Conflict where no run is taken any more."""
        if self.standing.mode == "draining":
            hint = "Take another runner, or wait until it is opened again."
            raise Conflict("draining", f"This runner takes no new runs: {self.standing.sentence}", hint)


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Those that wait, as they will start: by priority, and within one by arrival."""
    return sorted(
        (entry for entry in entries if entry.waits), key=lambda entry: (_RANKS[entry.run.priority], entry.number)
    )


def read_priority(folder: RunFolder) -> QueuePriority:
    """The priority that the run of this folder was given; normal where nobody did, or where that is damaged."""
    try:
        ranked = folder.read_as(PRIORITY_FILE, Ranked)
    except Broken:
        return "normal"
    return ranked.priority if ranked else "normal"


def expected_starts(
    now: datetime, waiting: Sequence[Entry], active: Iterable[Entry], gpus: int, cpu_runs: int
) -> dict[str, datetime]:
    """When the turn of each may come, by run; without those for which nothing tells.

    Runs on GPUs and runs on the CPU stand in lanes of their own. In each they start in their order, none before the one
    ahead of it, each as soon as enough of the others are expected to have ended.
    """
    at_work = list(active)
    on_gpus = [entry for entry in at_work if entry.gpus]
    on_cpu = [entry for entry in at_work if not entry.gpus]
    starts = _starts(now, [e for e in waiting if e.gpus], [(e, e.gpus) for e in on_gpus], gpus)
    return starts | _starts(now, [e for e in waiting if not e.gpus], [(e, 1) for e in on_cpu], cpu_runs)


def _starts(
    now: datetime, waiting: Sequence[Entry], active: Sequence[tuple[Entry, int]], places: int
) -> dict[str, datetime]:
    free: list[datetime | None] = [_end(now, entry) for entry, taken in active for _ in range(taken)]
    free += [now] * (places - len(free))
    starts: dict[str, datetime] = {}
    earliest = now
    for entry in waiting:
        wanted = max(entry.gpus, 1)
        free.sort(key=lambda at: (at is None, at or now))
        taken, free = free[:wanted], free[wanted:]
        known = [at for at in taken if at is not None]
        if len(known) < wanted:
            break  # and so for all that stand behind it
        earliest = max(earliest, *known)
        starts[entry.run.id] = earliest
        end = earliest + timedelta(seconds=entry.usual_seconds) if entry.usual_seconds is not None else None
        free += [end] * wanted
    return starts


def _end(now: datetime, entry: Entry) -> datetime | None:
    if entry.usual_seconds is None:
        return None
    return max(now, (entry.run.started_at or now) + timedelta(seconds=entry.usual_seconds))
