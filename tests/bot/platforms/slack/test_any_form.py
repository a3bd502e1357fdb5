"""Whatever stands in a form, Slack takes its view, and reads from it what it was filled with."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.cards.form import FormErrors
from bot.platforms.slack import limits, modal
from bot.platforms.slack.escape import PING, Part, length
from bot.platforms.slack.home import HomeRow, home_view
from tests.bot.platforms.slack.anything import BLOCKS, FORMS, TEXT, HeldForm
from tests.bot.platforms.slack.oracle import needs_oracle, strings, view_faults
from tests.bot.platforms.slack.test_any_card import QUICK

PREVIEWS = st.lists(BLOCKS, max_size=3)
ROWS = st.lists(
    st.builds(HomeRow, title=TEXT, detail=TEXT, url=st.sampled_from(["", "https://acme.slack.com/archives/C1/p1"])),
    max_size=60,
)


def within_limits(view: Part) -> None:
    """What has to hold of any view."""
    assert len(view["blocks"]) <= limits.VIEW_BLOCKS
    assert len(json.dumps(view)) <= limits.VIEW_BYTES
    assert len(view.get("private_metadata", "")) <= limits.METADATA
    assert not any(PING in text for text in strings(view, "text", "title"))
    assert set(strings(view, "type")).isdisjoint({"mrkdwn", "broadcast", "usergroup", "channel", "emoji", "user"})
    blocks = [block["block_id"] for block in view["blocks"] if "block_id" in block]
    assert len(set(blocks)) == len(blocks)
    if view["type"] == "modal":
        assert 0 < length(view["title"]["text"]) <= limits.VIEW_TITLE


def as_sent(view: Part) -> Part:
    """The view as Slack sends it, when nothing in it was touched."""
    values: dict[str, Any] = {}
    for block in view["blocks"]:
        if block["type"] != "input":
            continue
        element = block["element"]
        state: Part = {"type": element["type"]}
        for begun, held in (
            ("initial_value", "value"),
            ("initial_option", "selected_option"),
            ("initial_options", "selected_options"),
        ):
            if begun in element:
                state[held] = element[begun]
        values[block["block_id"]] = {element["action_id"]: state}
    return {**view, "state": {"values": values}}


@needs_oracle
@settings(max_examples=40, deadline=None, phases=QUICK)
@given(held=FORMS, preview=PREVIEWS, problem=TEXT, channel=TEXT)
def test_every_edit_form_is_taken(held: HeldForm, preview: list[Any], problem: str, channel: str) -> None:
    view = modal.edit_view(held.form, preview=preview, problem=problem, channel=channel)
    within_limits(view)
    assert view_faults(view) == []


@settings(max_examples=40, deadline=None, phases=QUICK)
@given(held=FORMS)
def test_a_form_that_was_not_touched_changes_nothing(held: HeldForm) -> None:
    """Also where a field was too long to be shown whole."""
    view = modal.edit_view(held.form)
    sent = modal.read_submission(as_sent(view))
    assert sent is not None
    assert sent.conversation == held.form.conversation
    if len(sent.was) < len(held.form.fields):
        return  # more fields than a view can carry: what was shown is compared with what applies
    changes = modal.changes_of(held.form, sent)
    assert isinstance(changes, FormErrors) or changes.nothing


@needs_oracle
@settings(max_examples=30, deadline=None, phases=QUICK)
@given(text=TEXT, title=TEXT, told=TEXT)
def test_every_other_modal_is_taken(text: str, title: str, told: str) -> None:
    for view in (modal.request_view(text, channel=text), modal.told_view(title, told), modal.loading_view()):
        within_limits(view)
        assert view_faults(view) == []


@needs_oracle
@settings(max_examples=30, deadline=None, phases=QUICK)
@given(waiting=ROWS, queues=st.lists(TEXT, max_size=12), runs=ROWS, problem=TEXT)
def test_every_home_is_taken(waiting: list[HomeRow], queues: list[str], runs: list[HomeRow], problem: str) -> None:
    view = home_view(waiting, queues, runs, problem=problem, as_of="2026-01-01 10:00 UTC")
    within_limits(view)
    assert view_faults(view) == []
