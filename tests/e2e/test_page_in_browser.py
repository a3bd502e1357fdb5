"""The whole conversation in a real browser, against a real bot and a real runner: request, edit, run, accept."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from bot.conversation.state import Ended, Ending
from tests.e2e.bot_host import running_pair
from tests.peers import interpreter
from tests.peers.chromium import open_browser

pytestmark = pytest.mark.web

_SECONDS = 20_000  # milliseconds, as the browser counts


def test_a_person_quantizes_a_model_in_the_browser(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with running_pair(tmp_path) as pair, open_browser() as browser:
        interpreter.tell(pair.host.engine, wait_for=str(go))
        page = browser.new_page()
        page.set_default_timeout(_SECONDS)
        problems: list[str] = []
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"http://127.0.0.1:{pair.port}/")
        page.get_by_role("textbox", name="What shall be quantized?").fill(
            "quantize tiny to int8, no kv cache, dataset text.txt, 4 samples, sequence length 32"
        )
        page.get_by_role("button", name="Ask").click()

        # The card is drawn again when the engine's list of layers arrives; a yes to the first one would come too late.
        expect(page.locator("#entries")).to_contain_text("exact: the engine's own")
        page.get_by_role("button", name="Approve").click()  # the analysis
        expect(page.locator("#entries")).to_contain_text("Approved by Ada")
        page.get_by_role("link", name="Edit").click()  # the plan
        page.get_by_label("Scheme", exact=True).select_option("fp8")
        page.get_by_role("button", name="Send the changes").click()
        expect(page.locator("#entries")).to_contain_text("Changed by Ada")
        page.get_by_role("button", name="Approve").click()  # the plan as it was changed
        page.get_by_role("button", name="Run it").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        assert pair.host.starts() == 0, "a dialog is no yes"
        dialog.get_by_role("button", name="Run it").click()

        expect(page.get_by_role("progressbar")).to_be_visible(timeout=_SECONDS)
        reply = page.get_by_role("textbox", name="Answer in your own words")
        reply.fill("half a sentence that nobody may los")
        go.touch()
        accept = page.get_by_role("button", name="Accept")
        expect(accept).to_be_visible(timeout=_SECONDS)
        assert reply.input_value() == "half a sentence that nobody may los"
        accept.click()
        expect(page.locator("#entries")).to_contain_text("Accepted by Ada")

        state = pair.state(1)
        assert isinstance(state, Ended)
        assert state.ending is Ending.ACCEPTED
        assert state.plan is not None
        assert state.plan.scheme == "fp8"
        assert pair.host.starts() == 1
        assert not problems
