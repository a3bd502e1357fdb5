"""The page in a real browser: live, with and without a script, and against other sites."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from bot.cards.card import Card, Meter, Text, Tone
from bot.conversation.state import Checkpoint
from bot.platforms.contract import Clicked, Edited, Said
from bot.platforms.web import Live
from bot.platforms.web.standing import sayable
from tests.bot.conversation import samples as talk
from tests.bot.platforms.web import story
from tests.bot.platforms.web.desk import Desk, later
from tests.bot.platforms.web.served import Served, serve, window
from tests.waiting import wait_until

pytestmark = pytest.mark.web


def test_news_arrive_and_leave_what_is_being_written_alone(
    chromium: Browser, served: Served, threads: dict[str, int]
) -> None:
    number = threads["command"]
    with window(chromium, served, viewport={"width": 1000, "height": 700}) as page:
        page.goto(f"/threads/{number}")
        reply = page.get_by_label("Answer in your own words")
        reply.click()
        page.keyboard.type("half a thou")
        page.get_by_text("What it said").first.click()
        reply.focus()
        untouched = page.locator("#entries > li").first.element_handle()
        served.do(lambda: _run_begins(served.desk, number))
        expect(page.get_by_role("heading", name="Quantizing Qwen3-8B to fp8")).to_be_visible()
        expect(page.get_by_role("button", name="Run it")).to_have_count(0)
        expect(page).to_have_title(re.compile("Running · #"))
        expect(page.locator("#steps [aria-current=step]")).to_contain_text("Run")
        page.keyboard.type("ght")
        expect(reply).to_have_value("half a thought")
        expect(reply).to_be_focused()
        assert page.locator("details[open]").count() == 1
        assert untouched.evaluate("element => element.isConnected")
        expect(page.locator("#news")).to_contain_text("Quantizing Qwen3-8B to fp8")


def _run_begins(desk: Desk, number: int) -> None:
    desk.go(number, talk.submitting(), story.yes(Checkpoint.COMMAND), story.DOCUMENTS)
    desk.go(number, talk.running(run=story.run()), None, story.DOCUMENTS)


def test_progress_is_drawn_again_and_the_last_state_always_arrives(
    chromium: Browser, served: Served, threads: dict[str, int]
) -> None:
    number = threads["running"]
    with window(chromium, served) as page:
        page.goto(f"/threads/{number}")
        bar = page.get_by_role("progressbar")
        expect(bar).to_have_attribute("value", "42.0")
        for percent in range(43, 98):
            served.do(lambda percent=percent: _progress(served.desk, number, percent))  # type: ignore[misc]
        expect(bar).to_have_attribute("value", "97.0")


def _progress(desk: Desk, number: int, percent: float) -> None:
    meter = Meter(phase="calibrating", percent=percent)
    desk.show(number, "run:4", Card(title="Quantizing", tone=Tone.WORKING, body=(meter,), alternative="Quantizing"))
    desk.live.changed(number)


def test_a_pressed_key_never_lands_on_another_button(
    chromium: Browser, served: Served, threads: dict[str, int]
) -> None:
    number = threads["plan"]
    with window(chromium, served) as page:
        page.goto(f"/threads/{number}")
        page.get_by_role("button", name="Approve").focus()
        served.do(lambda: served.desk.go(number, talk.planning(), story.yes(Checkpoint.PLAN), story.DOCUMENTS))
        expect(page.get_by_role("button", name="Approve")).to_have_count(0)
        assert page.evaluate("() => document.activeElement.matches('button, a, input')") is False


def test_a_lost_connection_is_said_and_words_survive_it(chromium: Browser, desk: Desk, threads: dict[str, int]) -> None:
    number = threads["plan"]
    context = chromium.new_context()
    page = context.new_page()
    page.set_default_timeout(15_000)
    with serve(desk) as served:
        port = int(served.address.rpartition(":")[2])
        page.goto(f"{served.address}/threads/{number}")
        page.get_by_label("Answer in your own words").fill("not sent yet")
        banner = page.locator("#connection")
        expect(banner).to_be_hidden()
        wait_until(lambda: served.do(lambda: desk.live.followers))
    expect(banner).to_be_visible()
    expect(banner).to_contain_text("Not live since")
    desk.live = Live()
    desk.go(number, talk.planning(), story.yes(Checkpoint.PLAN), story.DOCUMENTS)
    with serve(desk, port):
        expect(banner).to_be_hidden()
        expect(page.get_by_role("heading", name="Making a plan")).to_be_visible()
        expect(page.get_by_label("Answer in your own words")).to_have_value("not sent yet")
    context.close()


def test_a_page_that_nobody_looks_at_holds_no_connection(
    chromium: Browser, served: Served, threads: dict[str, int]
) -> None:
    number = threads["plan"]
    hide = """hidden => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    with window(chromium, served) as page:
        page.goto(f"/threads/{number}")
        wait_until(lambda: served.do(lambda: served.desk.live.followers) == 1)
        page.evaluate(hide, True)
        wait_until(lambda: _leaves(served, number))
        served.do(lambda: served.desk.go(number, talk.planning(), story.yes(Checkpoint.PLAN), story.DOCUMENTS))
        page.evaluate(hide, False)
        expect(page.get_by_role("heading", name="Making a plan")).to_be_visible()


def _leaves(served: Served, number: int) -> bool:
    # A server learns that somebody left when it next speaks.
    served.do(lambda: served.desk.live.changed(number))
    return served.do(lambda: served.desk.live.followers) == 0


def test_the_list_is_live(chromium: Browser, served: Served, threads: dict[str, int]) -> None:
    with window(chromium, served) as page:
        page.goto("/")
        page.get_by_role("textbox", name="What shall be quantized?").fill("quantize so")
        line = page.locator(f"a[href='/threads/{threads['plan']}']")
        expect(line).to_contain_text("Confirm or change the plan")
        expect(page.get_by_role("link", name="Waiting for me 4")).to_be_visible()
        served.do(lambda: served.desk.go(threads["plan"], talk.planning(), None, story.DOCUMENTS))
        expect(line).to_contain_text("Making the plan")
        expect(page.get_by_role("link", name="Waiting for me 3")).to_be_visible()
        expect(page.get_by_role("textbox", name="What shall be quantized?")).to_have_value("quantize so")


def test_the_examples_of_a_reply_follow_the_thread(chromium: Browser, served: Served, threads: dict[str, int]) -> None:
    number = threads["plan"]
    with window(chromium, served) as page:
        page.goto(f"/threads/{number}")
        reply = page.get_by_label("Answer in your own words")
        for state in (talk.reviewing_plan(), talk.preparing(), talk.reviewing_command(), talk.running(), talk.failed()):
            served.do(lambda state=state: served.desk.go(number, state, None, story.DOCUMENTS))  # type: ignore[misc]
            expect(reply).to_have_attribute("placeholder", " · ".join(sayable(state)))
        cancelled = talk.running(cancelled_by=talk.ADA)
        served.do(lambda: served.desk.go(number, cancelled, None, story.DOCUMENTS))
        expect(reply).to_have_attribute("placeholder", "")


def test_presses_that_come_to_nothing_are_told_once_while_the_page_is_open(
    chromium: Browser, served: Served, threads: dict[str, int]
) -> None:
    number = threads["plan"]
    with window(chromium, served) as page:
        page.goto(f"/threads/{number}")
        for said in ("pressed Approve", "pressed Approve 2 times", "pressed Approve 3 times"):
            served.do(lambda: story.refused_click(served.desk, number, talk.ADA))
            served.do(lambda: served.desk.live.changed(number))
            expect(page.locator(".did")).to_have_text([said])


def test_a_double_click_is_one_event(chromium: Browser, served: Served, threads: dict[str, int]) -> None:
    before = len(served.desk.events)
    with window(chromium, served) as page:
        page.goto(f"/threads/{threads['plan']}")
        page.get_by_role("button", name="Approve").dblclick()
        page.wait_for_url(re.compile(r"told="))
    assert len(served.desk.events) == before + 1


def test_what_is_being_written_survives_a_press_of_a_button(
    chromium: Browser, served: Served, threads: dict[str, int]
) -> None:
    with window(chromium, served) as page:
        page.goto(f"/threads/{threads['plan']}")
        page.get_by_label("Answer in your own words").fill("and another thing")
        page.get_by_role("button", name="Approve").click()
        page.wait_for_url(re.compile(r"told="))
        expect(page.get_by_label("Answer in your own words")).to_have_value("and another thing")
        page.goto(f"/threads/{threads['command']}")
        expect(page.get_by_label("Answer in your own words")).to_have_value("")


def test_everything_works_without_a_script(chromium: Browser, served: Served, threads: dict[str, int]) -> None:
    desk = served.desk
    with window(chromium, served, java_script_enabled=False) as page:
        page.goto(f"/threads/{threads['command']}")
        page.get_by_role("button", name="Run it").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("This starts the run")
        page.get_by_role("button", name="Run it").click()
        page.wait_for_url(re.compile(r"told="))
        assert isinstance(desk.last.event.what, Clicked)
        expect(page.get_by_role("button", name="Copy")).to_have_count(0)
        page.goto(f"/threads/{threads['plan']}")
        page.get_by_role("link", name="Edit").click()
        page.get_by_label("Scheme", exact=True).select_option("int4_wo_128")
        page.get_by_label("awq").check()
        page.get_by_label("none", exact=True).uncheck()
        page.get_by_role("button", name="Send the changes").click()
        page.wait_for_url(re.compile(r"told="))
        edited = desk.last.event.what
        assert isinstance(edited, Edited)
        assert edited.changes.flat() == {"global_scheme": "int4_wo_128", "algorithm": "awq"}
        page.get_by_label("Answer in your own words").fill("thank you")
        page.get_by_role("button", name="Send", exact=True).click()
        page.wait_for_url(re.compile(r"told="))
        assert desk.last.event.what == Said(text="thank you", asked=talk.PLAN.digest)
        page.goto("/")
        page.get_by_role("link", name="to mxfp4").click()
        page.get_by_role("button", name="Ask").click()
        page.wait_for_url(re.compile(r"told="))
        assert desk.last.event.what == Said(text="quantize Qwen/Qwen3-30B-A3B to mxfp4 and exclude lm_head")


def test_none_excludes_the_others(chromium: Browser, served: Served, threads: dict[str, int]) -> None:
    with window(chromium, served) as page:
        page.goto(f"/threads/{threads['plan']}/edit")
        page.get_by_label("awq").check()
        expect(page.get_by_label("none", exact=True)).not_to_be_checked()
        page.get_by_label(re.compile(r"^gptq\b")).check()
        expect(page.get_by_label("awq")).to_be_checked()
        page.get_by_label("none", exact=True).check()
        expect(page.get_by_label("awq")).not_to_be_checked()


def test_the_command_is_copied_letter_by_letter(chromium: Browser, served: Served, threads: dict[str, int]) -> None:
    command = " ".join(story.MANIFEST.argv)
    granted = {"permissions": ["clipboard-read", "clipboard-write"]}
    with window(chromium, served, **granted) as page:
        page.goto(f"/threads/{threads['command']}")
        page.get_by_role("button", name="Copy").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("() => navigator.clipboard.readText()") == command
        selected = page.evaluate(
            """() => { getSelection().selectAllChildren(document.querySelector(".command pre code"));
                       return getSelection().toString(); }"""
        )
        assert selected == command


def test_a_link_from_another_site_finds_who_is_signed_in(
    chromium: Browser, desk: Desk, threads: dict[str, int]
) -> None:
    token = "a-token-of-some-length"
    with serve(desk, tokens={"ada": token}) as served, serve(Desk()) as elsewhere:
        context = chromium.new_context()
        page = context.new_page()
        page.goto(f"{served.address}/threads/{threads['plan']}")
        page.get_by_label("Token").fill(token)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Qwen3-8B")
        # localhost is another site than 127.0.0.1.
        page.goto(elsewhere.address.replace("127.0.0.1", "localhost") + "/help")
        page.evaluate(
            """target => { const a = document.createElement("a"); a.href = target; a.textContent = "over there";
                           document.querySelector("main").prepend(a); }""",
            f"{served.address}/threads/{threads['plan']}",
        )
        page.get_by_text("over there").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Qwen3-8B")
        context.close()


def test_a_form_of_another_site_does_nothing(chromium: Browser, served: Served, threads: dict[str, int]) -> None:
    before = len(served.desk.events)
    action = f"{served.address}/threads/{threads['plan']}/act"
    fields = {"key": "a-key-of-a-form", "action": f"ptq:cancel:{threads['plan']}:::0", "confirmed": "yes"}
    inputs = "".join(f'<input name="{name}" value="{value}">' for name, value in fields.items())
    context = chromium.new_context()
    page = context.new_page()
    page.route(
        "http://evil.example/",
        lambda route: route.fulfill(
            body=f'<form method="post" action="{action}">{inputs}<button>Win</button></form>', content_type="text/html"
        ),
    )
    page.goto("http://evil.example/")
    page.get_by_text("Win").click()
    expect(page.get_by_role("alert")).to_contain_text("another site")
    context.close()
    assert len(served.desk.events) == before


def test_a_long_thread_stays_quick(chromium: Browser, desk: Desk) -> None:
    number = desk.begin(talk.running())
    for step in range(400):
        body = (Text(text=f"card number {step} " + "word " * 80),)
        desk.show(number, f"plan:{step + 10}", Card(title=f"Card {step}", tone=Tone.GOOD, body=body, alternative="x"))
        desk.said(number, talk.BOB, f"words number {step}", at=later(step))
    with serve(desk) as served, window(chromium, served) as page:
        page.goto(f"/threads/{number}")
        first = page.locator("#entries > li").nth(5).element_handle()
        served.do(lambda: _progress(desk, number, 77.0))
        expect(page.get_by_role("progressbar").last).to_have_attribute("value", "77.0")
        assert first.evaluate("element => element.isConnected")
