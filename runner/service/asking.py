"""The checkpoints at a terminal: what is asked, which words count as yes, and the approval that comes of it."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from runner.clock import Clock
from runner.errors import Refused
from runner.service.terminal import plain
from schemas.api import Approval, ApprovedCheckpoint

# The words of the published workflow. At the command only an explicit yes to running counts.
_AGREEMENT = {"ok", "okay", "confirm", "confirmed", "looks good", "continue", "yes"}
_YES_TO_RUNNING = {"yes", "run it", "go", "execute"}
_NO = {"no", "n", "stop", "cancel", "quit"}

Answer = Literal["yes", "no", "unclear"]


@dataclass(frozen=True)
class Question:
    """One checkpoint."""

    checkpoint: ApprovedCheckpoint | Literal["result"]
    text: str
    words: frozenset[str]


ANALYSIS = Question("analysis", "Checkpoint 1: is this analysis right?", frozenset(_AGREEMENT))
PLAN = Question("plan", "Checkpoint 2: is this the plan?", frozenset(_AGREEMENT))
COMMAND = Question("command", "Checkpoint 3: shall I run this exact command?", frozenset(_YES_TO_RUNNING))
RESULT = Question("result", "Checkpoint 4: do you accept this result?", frozenset(_AGREEMENT | {"accept"}))


def read_answer(question: Question, said: str) -> Answer:
    """What somebody's words mean at a checkpoint; whatever is neither a yes nor a no is unclear."""
    words = " ".join(said.casefold().split()).rstrip(".!")
    return "yes" if words in question.words else "no" if words in _NO else "unclear"


def ask(question: Question, listen: Callable[[str], str | None]) -> None:
    """Ask until the answer is clear. Raises Refused for a no, and when nobody is there to answer."""
    choices = ", ".join(sorted(question.words))
    prompt = f"{question.text} ({choices}; or no)"
    while True:
        said = listen(prompt)
        match "no" if said is None else read_answer(question, said):
            case "yes":
                return
            case "no":
                raise Refused(
                    "not_approved",
                    f"Stopped at the checkpoint of the {question.checkpoint}: it was not approved.",
                    "Nothing of this step was done; go back to the step that you want to change.",
                )
            case _:
                prompt = f"That is neither a yes nor a no. {question.text} ({choices}; or no)"


def approved(question: Question, digest: str, listen: Callable[[str], str | None], clock: Clock) -> Approval:
    """Ask, and return the approval of whoever sits at this terminal. Raises Refused for a no."""
    if question.checkpoint == "result":
        raise ValueError("a result is accepted, not approved")
    ask(question, listen)
    return Approval(checkpoint=question.checkpoint, digest=digest, by=who(), at=clock.now(), where="terminal")


def who() -> str:
    """Whoever sits at this terminal. Always text that an approval may carry, whatever LOGNAME says."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as containers have them
        user = f"uid {os.getuid()}"
    return plain(f"{user[:100]}@{socket.gethostname()}")[:200]
