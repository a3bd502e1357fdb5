"""The list of all threads, and its filters."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.conversation.person import Place
from bot.conversation.state import Ending
from bot.store.records import HistoryQuery, HistoryRow
from tests.bot.conversation import samples as talk
from tests.bot.platforms.web import story
from tests.bot.platforms.web.browser import Browser
from tests.bot.platforms.web.desk import Desk, later


@pytest.fixture
def desk() -> Desk:
    """An empty one."""
    return Desk()


@pytest.fixture
def browser(desk: Desk) -> Browser:
    """Ada's, on this machine."""
    return Browser(desk)


def row(number: int, **changes: object) -> HistoryRow:
    """A row of the list."""
    blank = HistoryRow(
        id=number,
        place=Place(platform="slack", channel="C1", thread=str(number)),
        requester=talk.BOB,
        model=f"model-{number}",
        scheme="fp8",
        runner="local",
        state="running",
        created_at=later(0),
        changed_at=later(0),
        run=None,
        output_dir=None,
        size_bytes=None,
        original_size_bytes=None,
        perplexity=None,
        original_perplexity=None,
    )
    return replace(blank, **changes)  # type: ignore[arg-type]


def test_runs_are_told_with_their_numbers(browser: Browser, desk: Desk) -> None:
    desk.rows = [
        row(
            5,
            state="accepted",
            size_bytes=9_441_000_000,
            original_size_bytes=16_381_000_000,
            perplexity=9.811,
            original_perplexity=9.733,
        )
    ]
    text = browser.get("/runs").page.one("tbody").text
    for shown in ("#5", "model-5", "fp8", "Bob", "Slack", "9.4 GB of 16.4 GB", "9.811 +0.8 %", "local", "Accepted"):
        assert shown in text


def test_runs_go_on_page_by_page(browser: Browser, desk: Desk) -> None:
    desk.rows = [row(number) for number in range(120, 0, -1)]
    seen: list[str] = []
    path = "/runs?model=model"
    for _ in range(10):
        page = browser.get(path).page
        seen += [one.text for one in page.all("td", **{"data-name": "Thread"})]
        older = page.all("a", rel="next")
        if not older:
            break
        path = older[0].attributes["href"]
        assert "model=model" in path
    assert seen == [f"#{number}" for number in range(120, 0, -1)]
    assert page.one("a", href="/runs?model=model").text == "Newest"


def test_an_exact_page_of_runs_has_no_next(browser: Browser, desk: Desk) -> None:
    desk.rows = [row(number) for number in range(50, 0, -1)]
    assert not browser.get("/runs").page.all("a", rel="next")


def test_filters_become_a_query_and_stay_in_the_form(browser: Browser, desk: Desk) -> None:
    asked = "text=a+b&model=Qwen&scheme=fp8&person=Ada&state=failed&since=2026-01-01&until=2026-01-31&before=77"
    page = browser.get(f"/runs?{asked}").page
    assert desk.asked == [
        HistoryQuery(
            text="a b",
            model="Qwen",
            scheme="fp8",
            person="Ada",
            state="failed",
            since=datetime(2026, 1, 1, tzinfo=UTC),
            until=datetime(2026, 2, 1, tzinfo=UTC),
            before=77,
            limit=51,
        )
    ]
    fields = page.fields(page.form("/runs"))
    assert fields == {
        "text": "a b",
        "model": "Qwen",
        "scheme": "fp8",
        "person": "Ada",
        "state": "failed",
        "since": "2026-01-01",
        "until": "2026-01-31",
    }


@pytest.mark.parametrize(
    "query",
    [
        *("since=yesterday", "until=2026-13-01", "since=0000-01-01", "until=9999-12-31", "before=x", "before=-1"),
        *("state=bogus", "state=ended", "state=%3Cscript%3E", "unknown=1", "stat=open", "text=" + "x" * 201),
        *("before=99999999999999999999", "since=2026-02-01&until=2026-01-01", "since=%00", "before=²"),
    ],
)
def test_a_filter_that_means_nothing_is_answered_in_a_sentence(browser: Browser, desk: Desk, query: str) -> None:
    answer = browser.get(f"/runs?{query}")
    assert answer.status == 400
    assert answer.page.one("p", role="alert").text.endswith(".")
    assert not desk.asked


@pytest.mark.parametrize("query", ["text=" + "x" * 200, "model=%00", "text=%ff", "scheme=bogus", "person=%3Cb%3E"])
def test_words_that_nothing_has_find_nothing(browser: Browser, desk: Desk, query: str) -> None:
    desk.begin(talk.running())
    desk.rows = []
    answer = browser.get(f"/runs?{query}")
    assert answer.status == 200
    assert "Nothing fits these filters." in answer.text
    assert len(desk.asked) == 1


@pytest.mark.parametrize("state", ["bogus", "ended", "run", "\u202eopen"])
def test_a_state_that_there_is_not_is_answered_with_those_that_there_are(browser: Browser, state: str) -> None:
    page = browser.get(f"/runs?state={state}").page
    said = page.one("p", role="alert").text
    assert said.startswith("There is no state ")
    offered = [one.attributes["value"] for one in page.all("option") if one.attributes["value"]]
    assert said.partition("There are: ")[2] == ", ".join(offered) + "."


def test_every_state_that_is_offered_is_taken(browser: Browser, desk: Desk) -> None:
    offered = [one.attributes["value"] for one in browser.get("/runs").page.all("option")]
    assert {*Ending, *talk.all_states(), "open", ""} - {"ended"} == set(offered)
    for state in [*offered, "RUNNING", " accepted "]:
        page = (
            browser.get(
                "/runs",
            ).page
            if not state
            else browser.get(f"/runs?state={state}").page
        )
        chosen = [one.attributes["value"] for one in page.all("option", selected="")]
        assert chosen == ([state.strip().lower()] if state else [])
        assert desk.asked[-1].state == state.strip().lower()


def test_the_list_of_all_threads_says_what_its_lines_are(browser: Browser, desk: Desk) -> None:
    story.tell(desk)
    page = browser.get("/runs").page
    assert page.one("h1").text == "All threads"
    assert page.one("a", **{"aria-current": "page"}).text == "All threads"
    assert "Earlier runs of a thread are told in the thread itself." in page.one("p", class_="about").text
    assert len(page.all("tr")) == 1 + len(desk.conversations)
