"""Slack's own published types, which every message and view is held against where they are at hand."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bot.platforms.slack.escape import Part, length
from bot.platforms.slack.render import Message

ABSENT = "PTQ_ORACLES does not name a folder with the platforms' own descriptions"


@cache
def _checker() -> ModuleType | None:
    path = Path(os.environ.get("PTQ_ORACLES", "")) / "check_payloads.py"
    if not os.environ.get("PTQ_ORACLES") or not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location("check_payloads", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


needs_oracle = pytest.mark.skipif(_checker() is None, reason=ABSENT)


def faults(message: Message) -> list[Any]:
    """What Slack's types have against a message, in every call that may carry it."""
    checker = _checker()
    assert checker is not None
    body = {"channel": "C1", "text": message.text, "blocks": message.blocks}
    calls = (
        ("chat.postMessage", body),
        ("chat.update", {**body, "ts": "1.1"}),
        ("chat.postEphemeral", {**body, "user": "U1"}),
    )
    return [fault for method, sent in calls for fault in checker.check_slack(method, sent)]


def view_faults(view: Part) -> list[Any]:
    """The same of a view."""
    checker = _checker()
    assert checker is not None
    methods = ("views.publish",) if view["type"] == "home" else ("views.open", "views.update")
    return [fault for method in methods for fault in checker.check_slack(method, {"view": view, "trigger_id": "1"})]


def strings(node: Any, *keys: str) -> Iterator[str]:
    """Every string that stands under one of these keys."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name in keys and isinstance(value, str):
                yield value
            yield from strings(value, *keys)
    elif isinstance(node, list):
        for value in node:
            yield from strings(value, *keys)


def read(node: Any) -> str:
    """All that people read in blocks, one after the other."""
    return "".join(strings(node, "text", "title"))


def characters(message: Message) -> int:
    """Of a whole message: what its blocks show and what notifications say."""
    shown = strings(message.blocks, "text", "title", "user_id", "content", "label", "description", "placeholder")
    return sum(map(length, shown)) + length(message.text)


def blocks_of(node: Any, kind: str) -> list[Part]:
    """The blocks of one kind."""
    return [block for block in node if block["type"] == kind]
