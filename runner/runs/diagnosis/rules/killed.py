"""The command was ended from outside."""

from __future__ import annotations

from runner.runs.diagnosis.rule import Told, Where, rules_of
from schemas.artifacts.report import FailureClass

RULES = rules_of(
    FailureClass.KILLED,
    Told(
        r"^(?:\S+: line \d+: +\d+ )?Killed(?: {2,}\S.*)?$",
        "The command was killed (SIGKILL); the usual reason is that the host ran out of memory.",
        "Look for the out-of-memory killer in the kernel's log; take fewer calibration samples or more memory.",
        where=Where.ANY_LINE,
    ),
    Told(
        r"^(?:\S+: line \d+: +\d+ )?Terminated(?: {2,}\S.*)?$|slurmstepd: error: .*CANCELLED"
        r"|DUE TO (?:TIME LIMIT|PREEMPTION)",
        "The command was asked to end (SIGTERM).",
        "Find out who stopped it before it is run again: a person, the scheduler, or a time limit.",
        where=Where.ANY_LINE,
    ),
    Told(
        r"^KeyboardInterrupt\b",
        "Somebody stopped the command (Control-C).",
        "Run it again when it was not meant.",
    ),
)
