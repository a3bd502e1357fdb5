"""What people do on the page."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bot.cards.card import Action, ActionKind
from bot.conversation.person import Place
from bot.conversation.state import Checkpoint, State, asked_at
from bot.errors import StoreBusy, StoreFull
from bot.platforms.contract import Clicked, Said
from bot.store.records import Outcome, StoredEvent
from tests.bot.conversation import samples as talk
from tests.bot.platforms.web import story
from tests.bot.platforms.web.browser import Answer, Browser
from tests.bot.platforms.web.desk import Desk, refuses
from tests.waiting import until

KEY = "a-key-of-a-form"
ASKED = "quantize Qwen/Qwen3-8B to fp8"
FULL = StoreFull("store_full", "The disk is full.", "Make room.")


@pytest.fixture
def desk() -> Desk:
    """An empty one."""
    return Desk()


@pytest.fixture
def browser(desk: Desk) -> Browser:
    """Ada's, on this machine."""
    return Browser(desk)


def begins(desk: Desk) -> None:
    """Every request gets a thread from now on."""

    def answer(stored: StoredEvent) -> Outcome:
        number = desk.begin(talk.analysing(requester=stored.event.person))
        desk.events[stored.id] = replace(desk.events[stored.id], conversation=number)
        return Outcome(verdict="proceeded")

    desk.answer = answer


# --- A new request ------------------------------------------------------------------------------


def test_a_request_becomes_an_event_and_leads_to_its_thread(browser: Browser, desk: Desk) -> None:
    begins(desk)
    answer = browser.submit(browser.get("/").page, "/requests", text=f"  {ASKED}\r\n")
    assert answer.target == "/threads/1"
    event = desk.last.event
    assert event.what == Said(text=ASKED)
    assert event.person == talk.ADA
    assert event.place == Place(platform="web", channel="page")
    assert event.key.startswith("web:")


def test_a_refused_request_says_why_and_keeps_the_words(browser: Browser, desk: Desk) -> None:
    desk.answer = refuses("No model was found in this.")
    answer = browser.submit(browser.get("/").page, "/requests", text="hello <b>you</b>")
    page = browser.follow(answer).page
    assert page.one("div", id="told").text == "No model was found in this."
    assert page.one("textarea").text == "hello <b>you</b>"


def test_a_request_that_takes_long_is_said_to_be_recorded(browser: Browser, desk: Desk) -> None:
    desk.answer = lambda _: None
    answer = browser.submit(browser.get("/").page, "/requests", text=ASKED)
    assert "Recorded." in browser.follow(answer).page.one("div", id="told").text


def test_a_request_waits_for_its_thread_without_looking_again_and_again(desk: Desk) -> None:
    desk.answer = lambda _: None
    browser = Browser(desk, wait_seconds=30.0)
    looked: list[int] = []
    read = desk.event

    async def event(inbox: int) -> StoredEvent | None:
        looked.append(inbox)
        return await read(inbox)

    desk.event = event  # type: ignore[method-assign]

    async def go() -> Answer:
        sending = asyncio.create_task(browser.post_later("/requests", {"key": KEY, "text": ASKED}))
        await until(lambda: looked)
        number = desk.begin(talk.analysing())
        desk.settle(desk.last.id, Outcome(verdict="proceeded"), number)
        return await sending

    assert asyncio.run(go()).target == "/threads/1"
    assert len(looked) <= 2


def test_a_double_click_is_one_request(browser: Browser, desk: Desk) -> None:
    begins(desk)
    page = browser.get("/").page
    answers = {browser.submit(page, "/requests", text=ASKED).target for _ in range(3)}
    assert answers == {"/threads/1"}
    assert len(desk.events) == 1


def test_other_words_in_an_old_form_are_another_request(browser: Browser, desk: Desk) -> None:
    begins(desk)
    page = browser.get("/").page  # as a browser brings it back from its history
    assert browser.submit(page, "/requests", text=ASKED).target == "/threads/1"
    assert browser.submit(page, "/requests", text="quantize a/b to int8").target == "/threads/2"


@pytest.mark.parametrize("text", ["", "   ", "\r\n\t"])
def test_an_empty_request_asks_for_words(browser: Browser, desk: Desk, text: str) -> None:
    answer = browser.post("/requests", {"key": KEY, "text": text})
    assert answer.status == 422
    assert answer.page.one("div", id="told").text == "Say which model shall be quantized."
    assert not desk.events


def test_the_longest_text_is_taken_and_a_longer_one_kept_for_its_person(browser: Browser, desk: Desk) -> None:
    begins(desk)
    longest = "ü" * 100_000
    assert browser.post("/requests", {"key": KEY, "text": longest}).target == "/threads/1"
    answer = browser.post("/requests", {"key": KEY, "text": longest + "x"})
    assert answer.status == 413
    assert "100,000 characters" in answer.page.one("div", id="told").text
    assert answer.page.one("textarea").text == longest + "x"
    assert len(desk.events) == 1


def test_a_body_beyond_all_bounds_is_not_read_to_its_end(browser: Browser, desk: Desk) -> None:
    answer = browser.post("/requests", {"key": KEY, "text": "x" * 3_000_000})
    assert answer.status == 413
    assert answer.page.one("div", role="alert").text
    assert not desk.events


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"key=a-key-of-a-form&text=a", "text/plain"),
        (b"key=a-key-of-a-form&text=a", "multipart/form-data; boundary=x"),
        (b'{"text": "a"}', "application/json"),
        (b"key=a-key-of-a-form&text=\xff\xfe", "application/x-www-form-urlencoded"),
        (b"&".join(b"f%d=1" % n for n in range(1000)), "application/x-www-form-urlencoded"),
        (b"text=hello", "application/x-www-form-urlencoded"),
        (b"key=short&text=hello", "application/x-www-form-urlencoded"),
        (b"key=%3Cscript%3Ealert(1)&text=hello", "application/x-www-form-urlencoded"),
        (b"", "application/x-www-form-urlencoded"),
        (b"", ""),
    ],
)
@pytest.mark.parametrize("path", ["/requests", "/threads/1/reply", "/threads/1/act", "/threads/1/edit"])
def test_what_no_form_of_the_page_sends_is_refused_in_a_sentence(
    browser: Browser, desk: Desk, path: str, content: bytes, kind: str
) -> None:
    number = desk.begin(talk.reviewing_plan())
    desk.forms[number] = story.form(number, talk.reviewing_plan())
    headers = {"Origin": "http://127.0.0.1:8321", "Content-Type": kind}
    answer = asyncio.run(browser.ask("POST", path, content=content, headers=headers))
    assert answer.status == 400
    assert answer.page.one("div", role="alert").text.endswith(".")
    assert not desk.events


def test_text_that_is_no_text_is_shown_as_such(browser: Browser, desk: Desk) -> None:
    headers = {"Origin": "http://127.0.0.1:8321", "Content-Type": "application/x-www-form-urlencoded"}
    content = b"key=a-key-of-a-form&text=%ff%00a"
    answer = asyncio.run(browser.ask("POST", "/requests", content=content, headers=headers))
    assert answer.status == 303
    assert desk.last.event.what == Said(text="\ufffd\x00a")


def test_what_cannot_be_kept_is_said_not_to_be_recorded(browser: Browser, desk: Desk) -> None:
    desk.unwritable = FULL
    answer = browser.submit(browser.get("/").page, "/requests", text=ASKED)
    assert answer.status == 503
    assert "This was not recorded" in answer.page.one("div", role="alert").text
    assert answer.page.one("textarea").text == ASKED
    desk.unwritable = None
    begins(desk)
    assert browser.submit(answer.page, "/requests").target == "/threads/1"


def test_a_request_is_not_lost_when_only_reading_fails(browser: Browser, desk: Desk) -> None:
    desk.unreadable = StoreBusy("store_busy", "Locked.", "")
    assert browser.post("/requests", {"key": KEY, "text": ASKED}).target == f"/?told={desk.last.id}#told"


# --- Words in a thread --------------------------------------------------------------------------


def test_a_reply_goes_to_the_conversations_own_place(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.reviewing_plan(), story.SLACK)
    answer = browser.submit(browser.get(f"/threads/{number}").page, f"/threads/{number}/reply", text="looks good")
    assert answer.target == f"/threads/{number}?told={desk.last.id}#told"
    assert desk.last.event.place == story.SLACK
    assert desk.last.event.person == talk.ADA
    assert "looks good" in browser.follow(answer).text


def test_a_refused_reply_says_why(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.reviewing_plan(), story.SLACK)
    desk.answer = refuses("Only Bob may decide about this plan.")
    answer = browser.submit(browser.get(f"/threads/{number}").page, f"/threads/{number}/reply", text="ok")
    page = browser.follow(answer).page
    assert page.one("div", id="told").text == "Only Bob may decide about this plan."
    assert page.one("p", class_="bad")


def test_words_for_a_card_that_was_not_seen_are_not_sent(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.reviewing_plan())
    page = browser.get(f"/threads/{number}").page
    desk.go(number, talk.reviewing_command(), None, story.DOCUMENTS)
    answer = browser.submit(page, f"/threads/{number}/reply", text="yes")
    assert answer.status == 409
    assert not desk.events
    assert "The thread went on while you wrote." in answer.page.one("div", id="told").text
    assert answer.page.one("textarea").text == "yes"
    assert "Shall I run this exact command?" in answer.text
    assert browser.submit(answer.page, f"/threads/{number}/reply").status == 303


@pytest.mark.parametrize(
    ("state", "asked"),
    [(talk.reviewing_plan(), talk.PLAN.digest), (talk.planning(), "nothing")],
    ids=["a card asks", "nothing is asked"],
)
def test_words_say_what_the_page_asked_when_they_were_written(
    browser: Browser, desk: Desk, state: State, asked: str
) -> None:
    number = desk.begin(state)
    assert browser.submit(browser.get(f"/threads/{number}").page, f"/threads/{number}/reply", text="yes").status == 303
    assert desk.last.event.what == Said(text="yes", asked=asked)


def test_a_yes_to_the_command_is_none_to_its_result(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.reviewing_command())
    page = browser.get(f"/threads/{number}").page
    result = talk.reviewing_result()
    command, last = asked_at(talk.reviewing_command()), asked_at(result)
    assert command is not None
    assert last is not None
    assert command[1] == last[1]  # the digest alone does not tell them apart
    desk.go(number, result, None, story.DOCUMENTS)
    answer = browser.submit(page, f"/threads/{number}/reply", text="yes")
    assert answer.status == 409
    assert not desk.events


def test_a_double_reply_is_one_even_when_the_thread_went_on(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.reviewing_plan())
    page = browser.get(f"/threads/{number}").page
    first = browser.submit(page, f"/threads/{number}/reply", text="yes")
    desk.go(number, talk.reviewing_command(), None, story.DOCUMENTS)
    second = browser.submit(page, f"/threads/{number}/reply", text="yes")
    assert first.target == second.target
    assert len(desk.events) == 1


def test_words_wait_for_a_thread_that_is_not_open_yet(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.analysing(), Place(platform="slack", channel="C1"))
    answer = browser.post(f"/threads/{number}/reply", {"key": KEY, "text": "use int8", "asked": ""})
    assert answer.status == 409
    assert answer.page.one("textarea").text == "use int8"
    assert not desk.events

    async def go() -> Answer:
        patient = Browser(desk, wait_seconds=30.0)
        sending = asyncio.create_task(
            patient.post_later(f"/threads/{number}/reply", {"key": KEY, "text": "use int8", "asked": ""})
        )
        await until(lambda: desk.live.followers)
        opened = Place(platform="slack", channel="C1", thread="17")
        desk.conversations[number] = replace(desk.conversations[number], place=opened)
        desk.live.changed(number)
        return await sending

    assert asyncio.run(go()).status == 303
    assert desk.last.event.place.thread == "17"


@pytest.mark.parametrize(("text", "status"), [("", 422), ("x" * 100_001, 413)])
def test_a_reply_that_cannot_be_taken_keeps_its_words(browser: Browser, desk: Desk, text: str, status: int) -> None:
    number = desk.begin(talk.reviewing_plan())
    answer = browser.submit(browser.get(f"/threads/{number}").page, f"/threads/{number}/reply", text=text)
    assert answer.status == status
    assert answer.page.one("textarea").text == text
    assert answer.page.one("div", id="told").text
    assert not desk.events


def test_a_reply_that_cannot_be_kept_can_be_sent_again(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.reviewing_plan())
    desk.unwritable = FULL
    path = f"/threads/{number}/reply"
    answer = browser.submit(browser.get(f"/threads/{number}").page, path, text="looks good")
    assert (answer.status, answer.page.one("textarea").text) == (503, "looks good")
    desk.unwritable = None
    assert browser.submit(answer.page, path).status == 303


# --- Buttons ------------------------------------------------------------------------------------


def press(browser: Browser, number: int, label: str) -> Answer:
    """Press a button of a thread, as without a script."""
    page = browser.get(f"/threads/{number}").page
    (button,) = [one for one in page.all("button") if one.text == label]
    form = button.within("form")
    assert form is not None
    return browser.post(form.attributes["action"], page.fields(form))


def test_a_button_becomes_a_click(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.planning(), story.SLACK)
    desk.go(number, talk.reviewing_plan(), None, story.DOCUMENTS)
    answer = press(browser, number, "Approve")
    assert answer.target == f"/threads/{number}?told={desk.last.id}#told"
    assert desk.last.event.what == Clicked(
        action=Action(
            kind=ActionKind.APPROVE,
            conversation=number,
            checkpoint=Checkpoint.PLAN,
            digest=talk.PLAN.digest[:12],
            step=talk.reviewing_plan().step,
        )
    )
    assert desk.last.event.place == story.SLACK


def test_a_double_click_is_one_click_and_two_tabs_are_two(browser: Browser, desk: Desk) -> None:
    number = story.tell(desk)["plan"]
    before = len(desk.events)
    page = browser.get(f"/threads/{number}").page
    form = next(one for one in page.all("form") if "Approve" in one.text)
    for _ in range(3):
        assert browser.post(form.attributes["action"], page.fields(form)).status == 303
    assert len(desk.events) == before + 1
    press(browser, number, "Approve")
    assert len(desk.events) == before + 2


def test_a_run_is_asked_about_once_more(browser: Browser, desk: Desk) -> None:
    number = story.tell(desk)["command"]
    before = len(desk.events)
    asked = press(browser, number, "Run it")
    assert asked.status == 200
    assert len(desk.events) == before
    assert "This starts the run" in asked.page.one("h1").text
    assert "".join(asked.page.one("pre").pieces) == " ".join(story.MANIFEST.argv)
    assert browser.submit(asked.page, f"/threads/{number}/act").status == 303
    assert isinstance(desk.last.event.what, Clicked)
    assert desk.last.event.what.action.kind is ActionKind.APPROVE


def test_a_page_with_a_script_asks_in_place(browser: Browser, desk: Desk) -> None:
    number = story.tell(desk)["command"]
    page = browser.get(f"/threads/{number}").page
    form = next(one for one in page.all("form") if "Run it" in one.text)
    assert form.attributes["data-confirm"].startswith("This starts the run")
    assert browser.post(form.attributes["action"], page.fields(form) | {"confirmed": "yes"}).status == 303


def test_a_button_of_an_old_page_is_handed_over_and_its_answer_told(browser: Browser, desk: Desk) -> None:
    number = story.tell(desk)["command"]
    desk.answer = refuses("This card is outdated.")
    checkpoint = Checkpoint.COMMAND
    old = Action(kind=ActionKind.APPROVE, conversation=number, checkpoint=checkpoint, digest="0" * 12).encoded()
    answer = browser.post(f"/threads/{number}/act", {"key": KEY, "action": old})
    assert browser.follow(answer).page.one("div", id="told").text == "This card is outdated."


@pytest.mark.parametrize(
    "action",
    [
        *(
            "",
            "x",
            "ptq:approve:1",
            "ptq:approve:1:plan:0",
            "\x00",
            "ptq:approve:1:plan:0:x",
            "ptq:approve:1:plan:0:-1",
        ),
        *("ptq:destroy:1:plan:0:0", "ptq:approve:x:plan:0:0", "ptq:approve:1:moon:0:0", "ptq:approve:1:plan:0:0:0"),
        "ptq:approve:1:plan:0:-1",
    ],
)
def test_a_button_that_nobody_made_is_refused(browser: Browser, desk: Desk, action: str) -> None:
    number = desk.begin(talk.reviewing_plan())
    answer = browser.post(f"/threads/{number}/act", {"key": KEY, "action": action})
    assert answer.status == 400
    assert "This button is not one of this page." in answer.text
    assert not desk.events


def test_a_button_of_another_thread_is_refused(browser: Browser, desk: Desk) -> None:
    for _ in range(2):
        desk.begin(talk.reviewing_plan())
    answer = browser.post(
        "/threads/1/act", {"key": KEY, "action": Action(kind=ActionKind.CANCEL, conversation=2).encoded()}
    )
    assert answer.status == 400
    assert "another thread" in answer.text
    assert not desk.events


def test_an_edit_button_leads_to_the_form(browser: Browser, desk: Desk) -> None:
    number = story.tell(desk)["plan"]
    page = browser.get(f"/threads/{number}").page
    assert page.one("a", href=f"/threads/{number}/edit").text == "Edit"
    action = Action(kind=ActionKind.EDIT, conversation=number, checkpoint=Checkpoint.PLAN).encoded()
    answer = browser.post(f"/threads/{number}/act", {"key": KEY, "action": action})
    assert answer.target == f"/threads/{number}/edit"


def test_a_click_that_cannot_be_kept_can_be_made_again(browser: Browser, desk: Desk) -> None:
    number = story.tell(desk)["plan"]
    before = len(desk.events)
    desk.unwritable = FULL
    answer = press(browser, number, "Approve")
    assert answer.status == 503
    desk.unwritable = None
    assert browser.submit(answer.page, f"/threads/{number}/act").status == 303
    assert len(desk.events) == before + 1


@pytest.mark.parametrize("label", ["Approve", "Cancel"])
def test_every_button_of_a_thread_works_without_a_script(browser: Browser, desk: Desk, label: str) -> None:
    number = story.tell(desk)["plan"]
    answer = press(browser, number, label)
    if answer.status == 200:  # it asks first
        answer = browser.submit(answer.page, f"/threads/{number}/act")
    assert answer.status == 303
    assert isinstance(desk.last.event.what, Clicked)
    assert desk.last.event.what.action.kind is ActionKind[label.upper()]
