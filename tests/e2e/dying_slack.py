"""Delivers what is due into a local Slack, and kills itself at a step that it is told.

Steps are before and after each transaction and each call of Slack. Run as a program: `python -m tests.e2e.dying_slack
DATABASE API_BASE_URL STEP`; STEP 0 never dies, and prints how many steps there were.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from bot.cards.outcome import decided
from bot.clock import SystemClock
from bot.platforms.slack.adapter import SlackPlatform
from bot.platforms.slack.calls import Calls
from bot.platforms.slack.pace import Pace
from bot.service.outbox import Outbox
from bot.settings.model import SlackSettings
from bot.store.store import Store
from tests.bot.platforms.scenarios import AT, card
from tests.e2e.dying_bot import Fate
from tests.peers.slack_state import APP_TOKEN, BOT_TOKEN


async def main(database: Path, api_base_url: str, dies_at: int) -> None:
    """Deliver everything, decide one card, and deliver that."""
    fate = Fate(dies_at)
    settings = SlackSettings.model_validate(
        {"bot_token": BOT_TOKEN, "app_token": APP_TOKEN, "api_base_url": api_base_url.rstrip("/")}
    )
    calls = Calls(settings)
    _watch_over_calls(calls, fate)
    store = await Store.open(f"sqlite:///{database}", SystemClock())
    _watch_over_store(store, fate)
    platform = SlackPlatform(
        calls, lambda number: store.read(lambda reader: reader.conversation(number)), Pace(0.0), pace_seconds=0.0
    )
    outbox = Outbox(store, platform, SystemClock())
    while await outbox.round():
        pass
    await store.write(lambda unit: unit.show(1, "plan:1", decided(card("The plan", asks=True), "Approved by Ada"), AT))
    while await outbox.round():
        pass
    await store.close()
    await calls.close()
    print(fate.count)


def _watch_over_calls(calls: Calls, fate: Fate) -> None:
    call, upload = calls.call, calls.upload

    async def watched(method: str, **body: object) -> dict[str, object]:
        fate.step()
        answer = await call(method, **body)
        fate.step()
        return answer

    calls.call = watched  # type: ignore[method-assign]
    calls.upload = lambda url, content: fate.around(upload, url, content)  # type: ignore[method-assign]


def _watch_over_store(store: Store, fate: Fate) -> None:
    write = store.write
    store.write = lambda work: fate.around(write, work)  # type: ignore[method-assign]


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
