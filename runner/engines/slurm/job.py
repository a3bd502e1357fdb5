"""What is known of a run's job: what was written down before Slurm was asked, and what Slurm says of it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pydantic import Field

from runner.engines.engine import Written

JOB_FILE: Final = "job.json"
FORMAT: Final = "%i|%T|%V|%r|%k"
"""Of squeue: number, state, time of submission, why it waits, and the comment, which is last: it may hold anything."""
_COMMENT: Final = re.compile(r"ptq:(?P<token>[0-9a-f]{32})")
_WAITING: Final = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
_AT_WORK: Final = frozenset(
    {"RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
)


class Asked(Written):
    """job.json: that Slurm is asked to take this run, written before it is. The token is in the job's comment.

    A number alone does not name a job for good: a controller that falls right after it took one forgets it, and gives
    its number to the next.
    """

    token: str = Field(pattern=r"^[0-9a-f]{32}$")
    at: float = Field(description="Seconds since 1970.")
    number: int | None = Field(None, description="As Slurm answered; none where the daemon fell before it did.")
    forgotten: int = Field(0, description="How many jobs of this run Slurm forgot before this one.")

    @property
    def comment(self) -> str:
        """What the job carries."""
        return f"ptq:{self.token}"

    @property
    def output(self) -> str:
        """The file in the run's folder in which its job, once it is on a node, says what it has to say."""
        return f"job-{self.token[:8]}.log"

    @property
    def name(self) -> str:
        """What people call it."""
        return f"Slurm job {self.number}" if self.number is not None else "Its Slurm job"


def new_token() -> str:
    """What no other job carries."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class Job:
    """A job as the controller knows it."""

    number: int
    state: str
    submitted: str
    reason: str
    token: str

    @property
    def waits(self) -> bool:
        """Whether nothing of it was started."""
        return self.state in _WAITING

    @property
    def at_work(self) -> bool:
        """Whether it has a node."""
        return self.state in _AT_WORK

    @property
    def ended(self) -> bool:
        """Whether nothing more comes of it."""
        return not (self.waits or self.at_work)

    @property
    def why(self) -> str:
        """Why it waits or how it ended, in a sentence."""
        reason = "" if self.reason in ("", "None", "(null)") else f" ({self.reason})"
        return f"{self.state.lower().replace('_', ' ')}{reason}"


def read_jobs(lines: Iterable[str]) -> dict[str, Job]:
    """The jobs of this program among those that squeue listed, by token; of two the one that was submitted last."""
    jobs: dict[str, Job] = {}
    for line in lines:
        number, *rest = line.strip().split("|", 4)
        if len(rest) != 4 or not number.isascii() or not number.isdecimal():
            continue  # a part of a job array, say: none of ours
        state, submitted, reason, comment = rest
        if found := _COMMENT.fullmatch(comment.strip()):
            job = Job(int(number), state, submitted, reason, found["token"])
            known = jobs.get(job.token)
            if known is None or (known.submitted, known.number) <= (job.submitted, job.number):
                jobs[job.token] = job
    return jobs
