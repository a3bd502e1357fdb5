"""How far a run is: as a plan with its task, which clients draw with its state, and in lines."""

from __future__ import annotations

from bot.cards.card import Meter
from bot.platforms.slack import limits
from bot.platforms.slack.escape import EMPTY, Part
from bot.platforms.slack.rich import line, rich, words
from bot.platforms.slack.room import Room

_BAR = 20
_TOLD = 600  # characters


def progress_plan(meter: Meter, room: Room) -> list[Part]:
    """A plan of one task, edited in place."""
    task: Part = {
        "type": "task_card",
        "task_id": "run",
        "title": room.take_single(meter.phase, limits.TASK).strip() or EMPTY,
        "status": "complete" if meter.percent >= 100 else "in_progress",
    }
    title = room.take_single(_share(meter), limits.TASK) or EMPTY
    if details := room.take("\n".join(_details(meter)), _TOLD):
        task["details"] = rich(line(words(details)))
    return [{"type": "plan", "title": title, "tasks": [task]}]


def progress_lines(meter: Meter, room: Room) -> list[str]:
    """The same in words."""
    told = [f"{_share(meter)}: {meter.phase}", *_details(meter)]
    return [room.take_single("\n".join(told), 2 * _TOLD)]


def _share(meter: Meter) -> str:
    return f"{meter.percent:.0f} % of the run"


def _details(meter: Meter) -> list[str]:
    full = round(meter.percent / 100 * _BAR)
    bar = f"{'█' * full}{'░' * (_BAR - full)} {meter.detail}".rstrip()
    return [bar, *([f"No news {meter.stale}"] if meter.stale else [])]
