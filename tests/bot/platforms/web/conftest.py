"""One browser for each file of tests, and the story's page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from bot.platforms.web import Live
from tests.bot.platforms.web import story
from tests.bot.platforms.web.desk import Desk
from tests.bot.platforms.web.served import Served, serve
from tests.peers.chromium import open_browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for all tests; each opens windows of its own."""
    with open_browser() as browser:
        yield browser


@pytest.fixture
def desk() -> Desk:
    """The story."""
    return Desk(Live())


@pytest.fixture
def threads(desk: Desk) -> dict[str, int]:
    """Its threads by name."""
    return story.tell(desk)


@pytest.fixture
def served(desk: Desk, threads: dict[str, int]) -> Iterator[Served]:
    """Its page."""
    assert threads
    with serve(desk) as served:
        yield served
