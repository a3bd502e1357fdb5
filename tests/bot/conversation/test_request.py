"""What a request becomes when people change it."""

from __future__ import annotations

from bot.conversation.changes import touched
from bot.conversation.reached import Stop
from bot.conversation.request import Changes, Request

REQUEST = Request(model="Qwen/Qwen3-8B", revision="abc123", runner="local")


def test_an_empty_revision_takes_it_back() -> None:
    changes = Changes(revision="")
    assert not changes.nothing
    assert changes.flat() == {"revision": None}
    after = REQUEST.changed(changes)
    assert after == REQUEST.model_copy(update={"revision": None})
    assert touched(REQUEST, after) is Stop.ANALYSIS


def test_an_absent_revision_is_left_as_it_is() -> None:
    assert REQUEST.changed(Changes(runner="mi300")).revision == "abc123"
    assert Changes().flat() == {}


def test_where_there_is_none_taking_it_back_changes_nothing() -> None:
    bare = Request(model="Qwen/Qwen3-8B")
    assert bare.changed(Changes(revision="")) == bare


def test_another_model_may_come_without_any() -> None:
    assert REQUEST.changed(Changes(model="Qwen/Qwen3-4B", revision="")).revision is None
    assert REQUEST.changed(Changes(model="Qwen/Qwen3-4B")).revision is None
