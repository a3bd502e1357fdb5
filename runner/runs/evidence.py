"""What is known of an ended run beside the files that it wrote."""

from __future__ import annotations

from dataclasses import dataclass

from runner.runs.tables import ExclusionTable, ReplacementTable
from schemas.artifacts.report import Measured


@dataclass(frozen=True)
class ReloadOutcome:
    """What came of loading the finished model again.

    `ok` is None when it was not tried or this host cannot do it; `reason` says why, or what went wrong. `seconds` is
    what it took; `logits_finite` whether one forward pass gave only finite numbers, None without such a pass.
    """

    ok: bool | None
    reason: str = ""
    seconds: float | None = None
    logits_finite: bool | None = None


@dataclass(frozen=True)
class Evidence:
    """What a run left behind: how it ended, what it measured, and what it printed.

    `exit_code` is -N when signal N ended the command, None when it is not known. `could_not_start` says why the command
    was never executed. `ended_by` is what made the supervisor end it: "time_limit", "disk_reserve", "memory_limit",
    or a cancel; `ended_because` says the same with numbers. `oom_killed` counts processes of the run that the kernel
    killed because its memory limit was reached. A perplexity that is
    infinite or not a number is one that was measured; None is one that was not. `last_lines` is the end of the log,
    oldest first, without terminal control sequences or with them.
    """

    exit_code: int | None = None
    could_not_start: str | None = None
    ended_by: str | None = None
    ended_because: str = ""
    oom_killed: int = 0
    original_perplexity: float | None = None
    quantized_perplexity: float | None = None
    evaluation_dataset: str = ""
    evaluated_tokens: int | None = None
    exclusions: ExclusionTable | None = None
    replacements: ReplacementTable | None = None
    reload: ReloadOutcome | None = None
    measured: Measured | None = None
    last_lines: tuple[str, ...] = ()
