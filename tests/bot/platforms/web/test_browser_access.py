"""The page for every reader: by keyboard, on a phone, in the dark, with a screen reader."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from bot.conversation.state import Checkpoint
from bot.platforms.contract import Clicked, Said
from tests.bot.conversation import samples as talk
from tests.bot.platforms.web import story
from tests.bot.platforms.web.desk import refuses
from tests.bot.platforms.web.poison import POISON, filled_desk
from tests.bot.platforms.web.served import Served, serve, window

pytestmark = pytest.mark.web

# Contrast of every text with what lies behind it, as WCAG 2 computes it; gives back what is too faint.
FAINT = """() => {
  const parse = (colour) => (colour.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const luminance = ([r, g, b]) => {
    const part = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(e).backgroundColor);
      if (a > 0.99) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility({ visibilityProperty: true })) continue;
    if (element.closest(".away, .skip, option, [aria-disabled]")) continue;
    const style = getComputedStyle(element);
    const [a, b] = [luminance(parse(style.color)), luminance(ground(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && +style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) faint.push(`${ratio.toFixed(2)} ${walker.currentNode.data.trim().slice(0, 40)}`);
  }
  return faint;
}"""
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def all_paths(threads: dict[str, int]) -> list[str]:
    """Every page of the story."""
    own = [f"/threads/{number}" for number in threads.values()]
    return ["/", "/?show=waiting", "/runs", "/runs?text=nothing", "/help", f"/threads/{threads['plan']}/edit", *own]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(
    chromium: Browser, served: Served, threads: dict[str, int], scheme: Any
) -> None:
    story.refused_click(served.desk, threads["plan"], talk.ADA)
    threads = threads | served.do(lambda: story.endings(served.desk))
    with window(chromium, served, color_scheme=scheme) as page:
        grounds = set()
        for path in all_paths(threads):
            page.goto(path)
            for details in page.locator("details").all():
                details.evaluate("element => element.open = true")
            assert page.evaluate(FAINT) == [], path
            grounds.add(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))
        assert grounds == {"rgb(245, 246, 248)" if scheme == "light" else "rgb(16, 20, 25)"}


@pytest.mark.parametrize("width", [320, 360, 768])
def test_no_page_is_wider_than_a_phone(chromium: Browser, served: Served, threads: dict[str, int], width: int) -> None:
    with window(chromium, served, viewport={"width": width, "height": 740}) as page:
        for path in all_paths(threads):
            page.goto(path)
            for details in page.locator("details").all():
                details.evaluate("element => element.open = true")
            assert page.evaluate(OVERFLOW) == 0, path


@pytest.mark.parametrize("number", range(len(POISON)))
def test_hostile_text_breaks_no_page_on_a_phone(chromium: Browser, number: int) -> None:
    with serve(filled_desk(POISON[number])) as served:
        with window(chromium, served, viewport={"width": 360, "height": 740}) as page:
            page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
            for path in ("/", "/runs", "/threads/1/edit"):
                page.goto(path)
                assert page.evaluate(OVERFLOW) == 0, path
        # Its pictures are not there, which a browser complains about.
        context = chromium.new_context(base_url=served.address, viewport={"width": 360, "height": 740})
        page = context.new_page()
        page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
        page.goto("/threads/1")
        assert page.evaluate(OVERFLOW) == 0
        context.close()


def test_everything_is_reached_by_keyboard(chromium: Browser, served: Served, threads: dict[str, int]) -> None:
    with window(chromium, served) as page:
        for path in ("/", "/runs", f"/threads/{threads['command']}", f"/threads/{threads['plan']}/edit"):
            page.goto(path)
            wanted = page.evaluate(
                """() => [...document.querySelectorAll("a, button, input, select, textarea, summary")]
                  .filter((e) => e.checkVisibility() && e.type !== "hidden").length"""
            )
            reached = set()
            for _ in range(wanted + 10):
                page.keyboard.press("Tab")
                place = page.evaluate(
                    """() => { const e = document.activeElement;
                      if (!e.matches("a, button, input, select, textarea, summary")) return null;
                      const seen = getComputedStyle(e).outlineStyle !== "none";
                      return [[...document.querySelectorAll("*")].indexOf(e), seen]; }"""
                )
                if place is not None:
                    assert place[1], f"{path}: the focus cannot be seen"
                    reached.add(place[0])
            assert len(reached) >= wanted, path


def test_the_way_to_the_content_is_short(chromium: Browser, served: Served) -> None:
    with window(chromium, served) as page:
        page.goto("/runs")
        page.keyboard.press("Tab")
        skip = page.get_by_role("link", name="Skip to the content")
        expect(skip).to_be_focused()
        expect(skip).to_be_in_viewport()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        expect(page.get_by_label("Search")).to_be_focused()


def test_headings_are_in_order_and_fields_have_names(
    chromium: Browser, served: Served, threads: dict[str, int]
) -> None:
    with window(chromium, served) as page:
        for path in all_paths(threads):
            page.goto(path)
            levels = page.evaluate("() => [...document.querySelectorAll('h1, h2, h3, h4')].map((e) => +e.tagName[1])")
            assert levels[0] == 1
            assert levels.count(1) == 1
            assert all(after <= before + 1 for before, after in pairwise(levels)), (path, levels)
            nameless = page.evaluate(
                """() => [...document.querySelectorAll("input:not([type=hidden]), select, textarea")]
                  .filter((e) => !e.labels.length && !e.ariaLabel).map((e) => e.outerHTML)"""
            )
            assert nameless == []
            assert page.locator("main").count() == 1


def test_a_run_begins_by_keyboard_alone(chromium: Browser, served: Served, threads: dict[str, int]) -> None:
    desk, number = served.desk, threads["command"]
    before = len(desk.events)
    with window(chromium, served) as page:
        page.goto(f"/threads/{number}")
        page.get_by_role("button", name="Run it").focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("This starts the run")
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        assert len(desk.events) == before
        expect(page.get_by_role("button", name="Run it")).to_be_focused()
        page.keyboard.press("Enter")
        expect(dialog).to_be_visible()
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(r"told="))
        clicked = desk.last.event.what
        assert isinstance(clicked, Clicked)
        assert clicked.action.checkpoint is Checkpoint.COMMAND
        assert len(desk.events) == before + 1


def test_enter_sends_and_slash_leads_to_the_field(chromium: Browser, served: Served, threads: dict[str, int]) -> None:
    served.desk.answer = refuses("Only Bob may decide.")
    with window(chromium, served) as page:
        page.goto(f"/threads/{threads['plan']}")
        page.keyboard.press("/")
        page.keyboard.type("first")
        page.keyboard.press("Shift+Enter")
        page.keyboard.type("second / third")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(r"told="))
        assert served.desk.last.event.what == Said(text="first\nsecond / third", asked=talk.PLAN.digest)
        expect(page.locator("#told")).to_contain_text("Only Bob may decide.")
        expect(page.get_by_label("Answer in your own words")).to_have_value("")
        page.goto(f"/threads/{threads['plan']}")
        expect(page.get_by_label("Answer in your own words")).to_have_value("")


def test_times_are_the_readers_own(chromium: Browser, served: Served, threads: dict[str, int]) -> None:
    with window(chromium, served) as page:
        page.goto(f"/threads/{threads['plan']}")
        shown = page.locator(".thread-head time")
        expect(shown).to_have_text("2 Mar 2026, 20:50")
        expect(shown).to_have_attribute("title", "2026-03-02 11:50 UTC")
        outcome = page.locator(".outcome time").first
        expect(outcome).to_have_text("2 Mar 2026, 20:50")
