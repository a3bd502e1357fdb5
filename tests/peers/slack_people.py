"""What people do in Slack, as payloads of events, interactions and commands."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

from tests.peers.slack_state import APP_ID, BOT_ID, BOT_USER, CHANNEL, TEAM, Channel, Message, Workspace

Kind = Literal["events_api", "interactive", "slash_commands"]


@dataclass(frozen=True)
class Delivery:
    """One thing that Slack hands to the app."""

    kind: Kind
    payload: dict[str, Any]


class People:
    """Makes deliveries. `origin` is where response addresses lead."""

    def __init__(self, workspace: Workspace, origin: str) -> None:
        self._workspace = workspace
        self._origin = origin

    def event(self, event: dict[str, Any], team: str = TEAM) -> Delivery:
        """An event of the Events API."""
        payload = {
            "type": "event_callback",
            "team_id": team,
            "api_app_id": APP_ID,
            "event": event,
            "event_id": f"Ev0{self._workspace.number()}",
            "event_time": int(time.time()),
            "authorizations": [{"team_id": team, "user_id": BOT_USER, "is_bot": True}],
        }
        return Delivery("events_api", payload)

    def says(
        self, user: str, text: str, channel: str = CHANNEL, thread: str = "", team: str = TEAM
    ) -> tuple[Message, list[Delivery]]:
        """Words, which come once for each event that the app is subscribed to."""
        there = self._workspace.channel(channel)
        message = self._workspace.add(there, user, text, thread)
        event = {
            "type": "message",
            "user": user,
            "text": text,
            "ts": message.ts,
            "team": team,
            "user_team": team,
            "channel": there.id,
            "event_ts": message.ts,
            "channel_type": "im" if there.person else "group" if there.private else "channel",
        }
        if message.thread:
            root = self._workspace.at(there, message.thread)
            event |= {"thread_ts": message.thread, "parent_user_id": root.user if root is not None else ""}
        deliveries = [self.event(event)] if BOT_USER in there.members else []
        if f"<@{BOT_USER}>" in text and not there.person:
            mention = {name: value for name, value in event.items() if name not in ("channel_type", "parent_user_id")}
            deliveries.append(self.event(mention | {"type": "app_mention"}))
        return message, deliveries

    def clicks(self, user: str, message: Message, label: str, team: str = TEAM) -> Delivery:
        """A button of a message as it is shown now."""
        return self.presses(user, message, button_of(message, label), team)

    def presses(self, user: str, message: Message, button: dict[str, Any], team: str = TEAM) -> Delivery:
        """A button that the message may not have any more."""
        body = self._interaction("block_actions", user, team) | {
            "container": {"type": "message", "message_ts": message.ts, "channel_id": message.channel},
            "channel": {"id": message.channel, "name": "quant"},
            "message": message.as_json(),
            "actions": [button | {"block_id": "b", "type": "button", "action_ts": f"{time.time():.6f}"}],
        }
        if message.thread:
            body["container"]["thread_ts"] = message.thread
        return Delivery("interactive", body)

    def submits(self, user: str, view: str, values: dict[str, Any]) -> Delivery:
        """A modal; `values` as Slack has them: block to action to state."""
        there = self._workspace.views[view]
        return Delivery(
            "interactive",
            self._interaction("view_submission", user) | {"view": there.as_json() | {"state": {"values": values}}},
        )

    def changes(self, user: str, view: str, block: str, action: dict[str, Any], values: dict[str, Any]) -> Delivery:
        """A field of a modal that tells of its change."""
        there = self._workspace.views[view]
        body = self._interaction("block_actions", user) | {
            "container": {"type": "view", "view_id": view},
            "view": there.as_json() | {"state": {"values": values}},
            "actions": [action | {"block_id": block, "action_ts": f"{time.time():.6f}"}],
        }
        del body["response_url"]
        return Delivery("interactive", body)

    def commands(self, user: str, text: str, channel: str = CHANNEL, command: str = "/quantize") -> Delivery:
        """A slash command."""
        interaction = self._interaction("command", user)
        return Delivery(
            "slash_commands",
            {
                "command": command,
                "text": text,
                "user_id": user,
                "user_name": self._workspace.people[user],
                "channel_id": channel,
                "channel_name": "quant",
                "team_id": TEAM,
                "api_app_id": APP_ID,
                "trigger_id": interaction["trigger_id"],
                "response_url": interaction["response_url"],
                "is_enterprise_install": "false",
            },
        )

    def opens_home(self, user: str) -> Delivery:
        """The app's home."""
        return self.event({"type": "app_home_opened", "user": user, "channel": f"D0{user}", "tab": "home"})

    def _interaction(self, kind: str, user: str, team: str = TEAM) -> dict[str, Any]:
        return {
            "type": kind,
            "team": {"id": TEAM, "domain": "home"},
            "user": {"id": user, "username": self._workspace.people.get(user, user), "team_id": team},
            "api_app_id": APP_ID,
            "trigger_id": self._workspace.trigger(user),
            "response_url": f"{self._origin}/response/{self._workspace.number()}",
        }


def buttons_of(message: Message) -> list[dict[str, Any]]:
    """The buttons of a message, in order."""
    return [
        element
        for block in message.blocks
        if block["type"] == "actions"
        for element in block["elements"]
        if element["type"] == "button"
    ]


def button_of(message: Message, label: str) -> dict[str, Any]:
    """The button with this label."""
    return next(button for button in buttons_of(message) if button["text"]["text"] == label)


def filled(view: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What a form's inputs hold before anybody touches them, as Slack sends it: block to action to state."""
    return {
        block["block_id"]: {block["element"]["action_id"]: _state(block["element"])}
        for block in view["blocks"]
        if block["type"] == "input"
    }


def typed(values: dict[str, dict[str, Any]], name: str, **state: Any) -> dict[str, dict[str, Any]]:
    """The same, with another state of one input."""
    return {
        block: {action: held | state if name in (block, action) else held for action, held in inputs.items()}
        for block, inputs in values.items()
    }


def _state(element: dict[str, Any]) -> dict[str, Any]:
    match element["type"]:
        case "static_select":
            held = {"selected_option": element.get("initial_option")}
        case "multi_static_select" | "checkboxes":
            held = {"selected_options": element.get("initial_options", [])}
        case _:
            held = {"value": element.get("initial_value")}
    return {"type": element["type"], **held}


def words_of(node: Any) -> str:
    """All that a person reads in blocks, as it is shown: pieces of one paragraph stand side by side."""
    match node:
        case {"type": "user", "user_id": user}:
            return f"@{user}"
        case {"type": "rich_text_section" | "rich_text_preformatted" | "rich_text_quote", "elements": elements}:
            return "".join(words_of(element) for element in elements)
        case dict():
            shown = ("text", "title", "details", "output", "elements", "tasks", "rows", "fields", "label")
            return "\n".join(words_of(node[name]) for name in shown if name in node)
        case list():
            return "\n".join(words_of(one) for one in node)
        case str():
            return node
        case _:
            return ""


def thread_of(channel: Channel, root: str) -> list[Message]:
    """What hangs beneath a root."""
    return [message for message in channel.messages if message.thread == root]


__all__ = ["BOT_ID", "Delivery", "People", "button_of", "buttons_of", "thread_of", "words_of"]
