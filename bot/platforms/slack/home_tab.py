"""The app's home, drawn when somebody opens it."""

from __future__ import annotations

from bot.conversation.person import Person
from bot.errors import StoreError
from bot.platforms.slack.adapter import NAME
from bot.platforms.slack.commands import about
from bot.platforms.slack.desk import Desk
from bot.platforms.slack.home import HomeRow, home_view
from bot.platforms.slack.links import thread_link
from bot.store.records import HistoryQuery, HistoryRow

_ROWS = 50


class HomeTab:
    """Publishes the home of one person."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show(self, user: str) -> None:
        """Raises PlatformError."""
        desk = self._desk
        person = Person(id=f"{NAME}:{user}", name=user)
        try:
            open_ones = await desk.library.history(HistoryQuery(state="open", limit=_ROWS))
            all_of_them = await desk.library.history(HistoryQuery(limit=_ROWS))
            waiting = [self._row(row) for row in open_ones if desk.library.may_decide(person, row)]
            runs = [self._row(row) for row in all_of_them if row.run is not None]
            problem = ""
        except StoreError as error:
            waiting, runs, problem = [], [], error.sentence()
        queues = desk.library.queues()
        as_of = desk.clock.now().strftime("%Y-%m-%d %H:%M UTC")
        view = home_view(waiting, queues, runs, problem=problem, as_of=as_of)
        await desk.calls.call("views.publish", user_id=user, view=view)

    def _row(self, row: HistoryRow) -> HomeRow:
        return HomeRow(title=f"{row.id}. {row.model}", detail=about(row), url=thread_link(self._desk.me, row.place))
