"""Loading the quantized model again, in a fresh process under a supervisor of its own.

The check only reads, so it may be made again when it is lost; it never stands in for the approved command.
"""

from __future__ import annotations

import asyncio
import json
import math
import shutil
from collections.abc import Callable, Mapping, Sequence

from runner.engines.engine import Engine, Exited, Lost, Needs, NotBegun, Pending, Running, Unreadable
from runner.errors import NotHere, Refused, RunnerError
from runner.intake.reading import opened, read_fully
from runner.runs.evidence import ReloadOutcome
from runner.runs.folder import LAUNCH, Launch, RunFolder, new_mark
from runner.runs.reading import segments_of

CHECK_FOLDER = "check"
_LOOK_SECONDS = 0.2
_GRACE_SECONDS = 5.0
_LOG_BYTES = 4 << 20


async def reload_model(
    engine: Engine,
    run: RunFolder,
    argv: list[str],
    environment: Mapping[str, str],
    needs: Needs,
    unwanted: Callable[[], bool],
    keep_open: Sequence[int] = (),
) -> ReloadOutcome:
    """Run the check to its end, going on with one that an earlier daemon started.

    `unwanted` says to stop it; `keep_open` are the locks of its GPUs.
    """
    own = run.read_as(LAUNCH, Launch)
    launch = Launch(
        argv=argv,
        cwd=str(run.path / "work"),
        mark=new_mark(run.run_id),
        time_limit_seconds=needs.seconds,
        mask_variable=own.mask_variable if own else "",
        variables=sorted(environment) if own and own.variables else [],
    )
    while True:
        folder = await asyncio.to_thread(RunFolder.create, run.path, CHECK_FOLDER, {LAUNCH: launch.as_bytes()})
        match await engine.state(folder):
            case Exited(end):
                return await asyncio.to_thread(_read_outcome, folder, end.timed_out)
            case Running() | Pending():
                if unwanted():
                    await engine.cancel(folder, "the runner", "its run was cancelled")
                await engine.rest(folder, _LOOK_SECONDS)
            case NotBegun():
                try:
                    await engine.submit(folder, environment, needs=needs, keep_open=keep_open)
                except RunnerError as error:
                    return ReloadOutcome(None, f"The check could not be started: {error.message}")
            case Lost():
                await engine.end_orphans(folder, _GRACE_SECONDS)
                await asyncio.to_thread(shutil.rmtree, folder.path)
            case Unreadable(why):
                return ReloadOutcome(None, f"What became of the check cannot be read: {why}")
            case _:
                return ReloadOutcome(None, "The check was cancelled.")


def _read_outcome(folder: RunFolder, timed_out: bool) -> ReloadOutcome:
    """The last word of the check's log, which the model's own code may have written too: never raises for it."""
    try:
        with opened(folder.log_path, follow_links=False) as (descriptor, size):
            text = read_fully(descriptor, min(size, _LOG_BYTES), max(0, size - _LOG_BYTES))
    except NotHere:
        return ReloadOutcome(None, "The check left no log.")
    except Refused as error:
        return ReloadOutcome(None, f"The check left no log: {error.message}")
    except OSError as error:
        return ReloadOutcome(None, f"The log of the check cannot be read: {error.strerror}.")
    events = [event for event in map(_event, segments_of(text)) if event.get("ptq") in ("reload", "error")]
    if not events:
        return ReloadOutcome(None if timed_out else False, "It took too long." if timed_out else "It said nothing.")
    last = events[-1]
    if last["ptq"] == "error":
        return ReloadOutcome(False, f"{_text(last, 'type') or 'Error'}: {_text(last, 'message')}")
    ok, finite = last.get("ok"), last.get("logits_finite")
    return ReloadOutcome(
        ok if isinstance(ok, bool) else None,
        _text(last, "reason"),
        _seconds(last.get("seconds")),
        finite if isinstance(finite, bool) else None,
    )


def _text(event: dict[str, object], key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # JSON has numbers of any length
        return None


def _event(segment: str) -> dict[str, object]:
    try:
        data = json.loads(segment) if segment.startswith("{") else None
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
