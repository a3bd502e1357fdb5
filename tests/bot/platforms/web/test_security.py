"""Who may use the page, from where, and what it never does."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest

from bot.conversation.person import Person
from bot.errors import BadSetting
from bot.platforms.web import Access, access
from bot.platforms.web.guard import Attempts, safe_target
from bot.platforms.web.identity import SESSION_LIFE, host_name
from tests.bot.conversation import samples as talk
from tests.bot.platforms.web import story
from tests.bot.platforms.web.browser import HOME, Browser, Noon
from tests.bot.platforms.web.desk import Desk

ADAS, BOBS, OWNERS = "ada-0123456789abcdef", "bob-0123456789abcdef", "owner-0123456789abcdef"
KEY = "a-key-of-a-form"
POSTS = ["/requests", "/threads/1/reply", "/threads/1/act", "/threads/1/edit", "/login", "/logout"]
GETS = ["/", "/fragment", "/live", "/threads/1", "/threads/1/fragment", "/threads/1/live", "/threads/1/edit", "/runs"]
GETS += ["/help", "/threads/1/files/plan/1/a.json", "/threads/1/run/log", "/threads/1/run/files/a.json", "/nothing"]


def team(**more: Any) -> Access:
    """A page for a team."""
    return access("0.0.0.0", 8321, OWNERS, {"ada": ADAS, "bob": BOBS}, **more)


@pytest.fixture
def desk() -> Desk:
    """A thread."""
    desk = Desk()
    number = desk.begin(talk.reviewing_plan())
    desk.forms[number] = story.form(number, talk.reviewing_plan())
    return desk


@pytest.fixture
def browser(desk: Desk) -> Browser:
    """On this machine, without a token."""
    return Browser(desk)


@pytest.fixture
def stranger(desk: Desk) -> Browser:
    """Somebody elsewhere who has shown no token."""
    there = Browser(desk, team())
    there.client = ("10.1.2.3", 50_000)
    return there


def signed_in(desk: Desk, token: str = ADAS, access: Access | None = None, clock: Noon | None = None) -> Browser:
    """Somebody elsewhere who has."""
    there = Browser(desk, access or team(), clock)
    there.client = ("10.1.2.3", 50_000)
    assert there.post("/login", {"token": token, "next": "/"}).target == "/"
    return there


# --- Headers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/threads/1", "/nothing", "/static/page.css", "/health", "/login"])
def test_every_answer_forbids_what_pages_do_not_need(browser: Browser, path: str) -> None:
    answer = browser.get(path)  # the browser itself looks for all of the headers
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_pages_are_not_kept_by_browsers(browser: Browser) -> None:
    assert browser.get("/threads/1").headers["cache-control"] == "no-store"


# --- DNS rebinding ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8321", "127.0.0.1.evil.example:8321", "localhost.evil:8321", "", "10.0.0.1:8321"],
)
@pytest.mark.parametrize("path", GETS[:3])
def test_a_page_of_this_machine_answers_to_no_other_name(browser: Browser, path: str, host: str) -> None:
    answer = browser.get(path, {"Host": host})
    assert answer.status == 421
    assert "This page is not called" in answer.text
    assert "Qwen" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1:8321", "localhost:8321", "LOCALHOST", "[::1]:8321", "127.0.0.1"])
def test_it_answers_to_this_machines_names(browser: Browser, host: str) -> None:
    assert browser.get("/", {"Host": host}).status == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [("10.0.0.5:8321", 401), ("ptq.team.example", 401), ("evil.example", 421), ("[fe80::1]:8321", 401)],
)
def test_a_page_of_a_team_answers_to_addresses_and_its_names(desk: Desk, host: str, status: int) -> None:
    there = Browser(desk, team(names=["PTQ.team.example"]))
    assert there.get("/", {"Host": host}).status == status


@pytest.mark.parametrize(
    ("host", "name"),
    [("a:1", "a"), ("[::1]:1", "::1"), ("A.b.", "a.b"), ("a:b:c", ""), ("a:1:2", ""), ("[x", ""), ("", "")],
)
def test_a_host_header_has_one_name(host: str, name: str) -> None:
    assert host_name(host) == name


# --- Foreign forms ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://localhost:8321"},
        {"Origin": "http://127.0.0.1:8321.evil.example"},
        {"Origin": "ftp://127.0.0.1:8321"},
        {"Origin": "127.0.0.1:8321"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": HOME},
        {"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"},
    ],
)
@pytest.mark.parametrize("path", POSTS)
def test_a_form_of_another_site_is_not_taken(browser: Browser, desk: Desk, path: str, headers: dict[str, str]) -> None:
    fields = {"key": KEY, "text": "yes", "action": "ptq:approve:1:plan:0:0", "token": ADAS}
    answer = browser.post(path, fields, headers)
    assert answer.status == 403
    assert "another site" in answer.text
    assert not desk.events
    assert not answer.headers.get("set-cookie")


@pytest.mark.parametrize("headers", [{"Origin": HOME}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}])
def test_a_form_of_this_page_is_taken(browser: Browser, headers: dict[str, str]) -> None:
    assert browser.post("/requests", {"key": KEY, "text": "hello"}, headers).status == 303


# --- A page for this machine --------------------------------------------------------------------


@pytest.mark.parametrize("address", ["10.0.0.9", "192.168.1.1", "2001:db8::1"])
def test_without_a_token_only_this_machine_is_served(browser: Browser, address: str) -> None:
    browser.client = (address, 50_000)
    assert browser.get("/").status == 403
    assert browser.post("/requests", {"key": KEY, "text": "hello"}).status == 403


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_this_machine_is_served_by_any_of_its_addresses(browser: Browser, address: str) -> None:
    browser.client = (address, 50_000)
    assert browser.get("/").status == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.0.0.2"])
def test_no_token_is_needed_where_nobody_else_can_come(host: str) -> None:
    assert access(host, 8321, local="ada").local == Person(id="web:local", name="ada")


@pytest.mark.parametrize(
    ("host", "more"),
    [
        ("0.0.0.0", {}),
        ("::", {}),
        ("10.0.0.1", {}),
        ("ptq.example", {}),
        ("127.0.0.1", {"token": ""}),
        ("127.0.0.1", {"token": "  "}),
        ("127.0.0.1", {"people": {"ada": ""}}),
        ("127.0.0.1", {"token": "same", "people": {"ada": "same"}}),
        ("127.0.0.1", {"people": {"ada": "same", "bob": "same"}}),
        ("127.0.0.1", {"token": "a", "people": {"local": "b"}}),
    ],
)
def test_settings_that_would_let_anybody_in_are_refused(host: str, more: dict[str, Any]) -> None:
    with pytest.raises(BadSetting) as refused:
        access(host, 8321, **more)
    assert refused.value.hint.endswith(".")


# --- Tokens -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", GETS)
def test_who_has_shown_no_token_sees_nothing_but_the_sign_in(stranger: Browser, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status == 401
    assert answer.page.one("input", type="password").attributes["name"] == "token"
    assert "Qwen" not in answer.text
    assert not answer.page.all("nav")


@pytest.mark.parametrize("path", [path for path in POSTS if path != "/login"])
def test_who_has_shown_no_token_does_nothing(stranger: Browser, desk: Desk, path: str) -> None:
    answer = stranger.post(path, {"key": KEY, "text": "yes", "action": "ptq:approve:1:plan:0:0"})
    assert answer.status == 401
    assert not desk.events


def test_a_token_makes_its_person(desk: Desk) -> None:
    for token, person in ((ADAS, "web:ada"), (BOBS, "web:bob"), (OWNERS, "web:local")):
        there = signed_in(desk, token)
        assert there.post("/requests", {"key": KEY + person[4:], "text": f"hello from {person}"}).status == 303
        assert desk.last.event.person.id == person
        assert there.get("/").page.one("form", action="/logout")


@pytest.mark.parametrize("token", ["", "x", ADAS[:-1], ADAS + "x", ADAS.upper(), "ä" * 50, "x" * 100_000, "\x00"])
def test_another_token_is_nobodys(stranger: Browser, token: str) -> None:
    answer = stranger.post("/login", {"token": token, "next": "/runs"})
    assert answer.status == 401
    assert not answer.headers.get("set-cookie")
    assert answer.page.one("p", role="alert").text == "No person of this page has that token."
    assert answer.page.one("input", name="next").attributes["value"] == "/runs"
    assert len(token) < 5 or token not in answer.content.decode()


def test_signing_in_leads_to_what_was_wanted(stranger: Browser) -> None:
    page = stranger.get("/threads/1?told=3").page
    answer = stranger.submit(page, "/login", token=f" {ADAS} ")
    assert answer.target == "/threads/1?told=3"
    assert stranger.follow(answer).status == 200


def test_a_form_sent_too_late_leads_back_to_its_thread(stranger: Browser) -> None:
    page = stranger.post("/threads/1/reply", {"key": KEY, "text": "yes"}).page
    assert page.one("input", name="next").attributes["value"] == "/threads/1"


@pytest.mark.parametrize(
    "wanted",
    [
        *("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "\n/x", "/a b", "/ä"),
        *("/login", "/logout", "", "x", "/" + "x" * 3000, "/a\r\nSet-Cookie: x=1"),
    ],
)
def test_signing_in_never_leads_elsewhere(stranger: Browser, wanted: str) -> None:
    assert safe_target(wanted) == "/"
    assert stranger.post("/login", {"token": ADAS, "next": wanted}).target == "/"


def test_the_session_is_out_of_reach_of_scripts_and_other_sites(stranger: Browser) -> None:
    cookie = stranger.post("/login", {"token": ADAS}).headers["set-cookie"]
    assert cookie.startswith("ptq_session_8321=")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert ADAS not in cookie


def test_neither_token_nor_session_is_logged_or_shown(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    there = signed_in(desk)
    session = next(iter(there.cookies.jar)).value or ""
    desk.unreadable = ValueError("broken")
    shown = there.get("/").content.decode()
    there.post("/login", {"token": ADAS[:-1]})
    for secret in (ADAS, ADAS[:-1], session):
        assert secret not in caplog.text
        assert secret not in shown
    assert ADAS not in repr(team())


def test_a_link_from_elsewhere_finds_the_session_by_asking_once_more(desk: Desk) -> None:
    there = signed_in(desk)
    kept, there.cookies = there.cookies, type(there.cookies)()  # a browser sends no strict cookie with a foreign link
    page = there.get("/threads/1?told=3", {"Sec-Fetch-Site": "cross-site"}).page
    again = page.one("meta", **{"http-equiv": "refresh"}).attributes["content"].removeprefix("0;url=")
    assert again == "/login?next=%2Fthreads%2F1%3Ftold%3D3"
    there.cookies = kept
    assert there.get(again, {"Sec-Fetch-Site": "same-origin"}).target == "/threads/1?told=3"
    there.cookies = type(there.cookies)()
    assert not there.get(again, {"Sec-Fetch-Site": "same-origin"}).page.all("meta", **{"http-equiv": "refresh"})


def test_signing_out_ends_the_session_in_the_browser(desk: Desk) -> None:
    there = signed_in(desk)
    assert there.post("/logout", {}).target == "/login"
    assert there.get("/").status == 401


def test_a_session_ends_with_its_time(desk: Desk) -> None:
    clock = Noon()
    there = signed_in(desk, clock=clock)
    clock.at += SESSION_LIFE - timedelta(seconds=1)
    assert there.get("/").status == 200
    clock.at += timedelta(seconds=2)
    assert there.get("/").status == 401


def test_a_session_ends_with_its_token(desk: Desk) -> None:
    there = signed_in(desk)
    changed = Browser(desk, access("0.0.0.0", 8321, OWNERS, {"ada": "another-token", "bob": BOBS}))
    changed.cookies = there.cookies
    assert changed.get("/").status == 401


@pytest.mark.parametrize(
    "session",
    ["", "x", "1.2.3", "{now}.d2ViOmFkYQ.{zeros}", "{now}.d2ViOmFkYQ", "99999999999.d2ViOmFkYQ.{zeros}", "..", "a.b.c"],
)
def test_a_session_cannot_be_made_up(stranger: Browser, session: str) -> None:
    made_up = session.format(now=int(talk.NOON.timestamp()), zeros="0" * 64)
    stranger.cookies.set("ptq_session_8321", made_up)
    assert stranger.get("/").status == 401


def test_a_session_cannot_become_another_persons() -> None:
    access, now = team(), talk.NOON
    ada, bob = (access.person_of_token(token) for token in (ADAS, BOBS))
    assert ada is not None
    assert bob is not None
    begun, _, signature = access.session(ada, now).split(".")
    encoded = access.session(bob, now).split(".")[1]
    assert access.person_of_session(access.session(ada, now), now) == ada
    assert access.person_of_session(f"{begun}.{encoded}.{signature}", now) is None
    assert access.person_of_session(access.session(ada, now + timedelta(hours=1)), now) is None


def test_many_wrong_tokens_are_told_so_and_lock_nobody_out(desk: Desk) -> None:
    now = [0.0]
    there = Browser(desk, team(), monotonic=lambda: now[0])
    there.client = ("10.1.2.3", 1)
    statuses = [there.post("/login", {"token": f"guess {n}"}).status for n in range(12)]
    assert statuses == [401] * 10 + [429] * 2
    assert "Many wrong ones came from here" in there.post("/login", {"token": "guess"}).text
    assert there.post("/login", {"token": BOBS}).status == 303  # behind a proxy all share the address
    there.cookies.clear()
    assert there.post("/login", {"token": "guess"}).status == 429  # a right one in between forgives nothing
    other = there.client
    there.client = ("10.9.9.9", 1)
    assert there.post("/login", {"token": "x"}).status == 401
    there.client = other
    now[0] += 61
    assert there.post("/login", {"token": "x"}).status == 401


def test_right_tokens_are_never_counted(desk: Desk) -> None:
    there = Browser(desk, team(), monotonic=lambda: 0.0)
    for _ in range(30):
        there.cookies.clear()
        assert there.post("/login", {"token": ADAS}).status == 303
    there.cookies.clear()
    assert there.post("/login", {"token": "guess"}).status == 401


def test_guessing_from_everywhere_fills_no_memory() -> None:
    attempts = Attempts(lambda: 0.0, most=1, remembered=100)
    for number in range(1000):
        attempts.failed(f"10.0.{number // 250}.{number % 250}")
    assert len(attempts) == 100
    assert attempts.too_many("10.0.3.249")
    assert not attempts.too_many("10.0.0.0")


def test_tokens_work_on_this_machine_too(desk: Desk) -> None:
    there = Browser(desk, access("127.0.0.1", 8321, OWNERS, local="ada"))
    assert there.get("/").status == 401
    there.post("/login", {"token": OWNERS})
    assert "ada" in there.get("/").page.one("span", class_="me").text


def test_who_needs_no_token_is_not_asked_for_one(browser: Browser) -> None:
    assert browser.get("/login?next=/runs").target == "/runs"
    assert browser.post("/login", {"token": "x", "next": "/runs"}).target == "/runs"
