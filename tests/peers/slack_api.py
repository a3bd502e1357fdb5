"""Slack's Web API over a workspace: one method of the class for each of the API's that the bot uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.peers.slack_state import (
    APP_TOKEN,
    BOT_ID,
    BOT_TOKEN,
    BOT_USER,
    SCOPES,
    TEAM,
    Message,
    Refused,
    View,
    Whispered,
    Workspace,
)

Body = dict[str, Any]

_NEEDS = {
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "chat.delete": "chat:write",
    "chat.postEphemeral": "chat:write",
    "conversations.replies": "channels:history",
    "conversations.history": "channels:history",
    "conversations.join": "channels:join",
    "conversations.open": "im:write",
    "users.info": "users:read",
    "files.getUploadURLExternal": "files:write",
    "files.completeUploadExternal": "files:write",
}
_MOST_BLOCKS, _MOST_TEXT = 50, 4_000


class SlackApi:
    """Answers calls. `origin` is where this server listens."""

    def __init__(self, workspace: Workspace, origin: str) -> None:
        self.workspace = workspace
        self.scopes = set(SCOPES)
        self.sockets: set[str] = set()
        self._origin = origin
        self._methods: dict[str, Callable[[Body], Body]] = {
            "auth.test": self._auth_test,
            "apps.connections.open": self._open_socket,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "chat.delete": self._delete,
            "chat.postEphemeral": self._whisper,
            "chat.getPermalink": self._permalink,
            "conversations.replies": self._replies,
            "conversations.history": self._history,
            "conversations.info": self._info,
            "conversations.join": self._join,
            "conversations.open": self._open_direct,
            "users.info": self._person,
            "views.open": self._view_open,
            "views.update": self._view_update,
            "views.publish": self._home,
            "files.getUploadURLExternal": self._upload_address,
            "files.completeUploadExternal": self._upload_done,
        }

    def answer(self, method: str, token: str, body: Body) -> Body:
        """What Slack says to a call. Raises Refused."""
        if token != (APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN):
            raise Refused("invalid_auth")
        handler = self._methods.get(method)
        if handler is None:
            raise Refused("unknown_method")
        needed = _NEEDS.get(method)
        if needed is not None and needed not in self.scopes:
            raise Refused("missing_scope", needed=needed, provided=",".join(sorted(self.scopes)))
        return handler(body)

    def _auth_test(self, body: Body) -> Body:
        assert not body
        return {
            "url": "https://home.slack.test/",
            "team": "Home",
            "user": "ptq",
            "team_id": TEAM,
            "user_id": BOT_USER,
            "bot_id": BOT_ID,
            "is_enterprise_install": False,
        }

    def _open_socket(self, body: Body) -> Body:
        assert not body
        ticket = f"ticket-{self.workspace.number()}"
        self.sockets.add(ticket)
        return {"url": f"{self._origin.replace('http', 'ws', 1)}/link?ticket={ticket}"}

    def _post(self, body: Body) -> Body:
        _check_message(body)
        channel = self.workspace.writable(body["channel"])
        message = self.workspace.add(
            channel,
            BOT_USER,
            body.get("text", ""),
            body.get("thread_ts", ""),
            blocks=body.get("blocks") or [],
            metadata=body.get("metadata"),
        )
        return {"channel": channel.id, "ts": message.ts, "message": message.as_json()}

    def _update(self, body: Body) -> Body:
        _check_message(body)
        channel = self.workspace.writable(body["channel"])
        message = self.workspace.at(channel, body["ts"])
        if message is None:
            raise Refused("message_not_found")
        if not message.by_bot:
            raise Refused("cant_update_message")
        message.text, message.blocks = body.get("text", ""), body.get("blocks") or []
        return {"channel": channel.id, "ts": message.ts, "message": message.as_json()}

    def _delete(self, body: Body) -> Body:
        self.workspace.remove(body["channel"], body["ts"])
        return {"channel": body["channel"], "ts": body["ts"]}

    def _whisper(self, body: Body) -> Body:
        _check_message(body)
        channel = self.workspace.writable(body["channel"])
        if body["user"] not in channel.members:
            raise Refused("user_not_in_channel")
        said = Whispered(channel.id, body["user"], body["text"], body.get("thread_ts", ""))
        self.workspace.whispers.append(said)
        return {"message_ts": f"{1_700_000_000 + self.workspace.number()}.000000"}

    def _permalink(self, body: Body) -> Body:
        channel = self.workspace.channel(body["channel"])
        if self.workspace.at(channel, body["message_ts"]) is None:
            raise Refused("message_not_found")
        link = f"https://home.slack.test/archives/{channel.id}/p{body['message_ts'].replace('.', '')}"
        return {"permalink": link, "channel": channel.id}

    def _replies(self, body: Body) -> Body:
        self.workspace.channel(body["channel"])
        return _page(self.workspace.thread(body["channel"], body["ts"]), body)

    def _history(self, body: Body) -> Body:
        there = self.workspace.channel(body["channel"])
        if BOT_USER not in there.members:
            raise Refused("not_in_channel")
        roots = [message for message in there.messages if message.thread in ("", message.ts)]
        return _page(roots[::-1], body)

    def _info(self, body: Body) -> Body:
        return {"channel": self.workspace.channel(body["channel"]).as_json()}

    def _join(self, body: Body) -> Body:
        channel = self.workspace.channel(body["channel"])
        if channel.archived:
            raise Refused("is_archived")
        if channel.private or channel.person:
            raise Refused("method_not_supported_for_channel_type")
        channel.members.add(BOT_USER)
        return {"channel": channel.as_json()}

    def _open_direct(self, body: Body) -> Body:
        return {"channel": {"id": self.workspace.direct(body["users"]).id}}

    def _person(self, body: Body) -> Body:
        name = self.workspace.people.get(body["user"])
        if name is None:
            raise Refused("user_not_found")
        profile = {"display_name": name.capitalize(), "real_name": name}
        return {"user": {"id": body["user"], "team_id": TEAM, "name": name, "real_name": name, "profile": profile}}

    def _view_open(self, body: Body) -> Body:
        user = self.workspace.used(body["trigger_id"])
        view = View(f"V0{self.workspace.number()}", user, body["view"])
        self.workspace.views[view.id] = view
        return {"view": view.as_json()}

    def _view_update(self, body: Body) -> Body:
        view = self.workspace.views.get(body.get("view_id", ""))
        if view is None:
            raise Refused("not_found")
        if body.get("hash") not in (None, view.as_json()["hash"]):
            raise Refused("hash_conflict")
        view.view, view.version = body["view"], view.version + 1
        return {"view": view.as_json()}

    def _home(self, body: Body) -> Body:
        self.workspace.homes[body["user_id"]] = body["view"]
        return {"view": body["view"]}

    def _upload_address(self, body: Body) -> Body:
        name = f"F0{self.workspace.number()}"
        self.workspace.files[name] = {"id": name, "name": body["filename"], "size": int(body["length"])}
        return {"upload_url": f"{self._origin}/upload/{name}", "file_id": name}

    def _upload_done(self, body: Body) -> Body:
        done = []
        for told in body["files"]:
            file = self.workspace.files.get(told["id"])
            if file is None or len(self.workspace.contents.get(told["id"], b"")) != file["size"]:
                raise Refused("file_not_found")
            file["title"] = told.get("title") or file["name"]
            done.append(file)
        if body.get("channel_id"):
            channel = self.workspace.writable(body["channel_id"])
            self.workspace.add(channel, BOT_USER, "", body.get("thread_ts", ""), files=done)
        return {"files": done}


def _check_message(body: Body) -> None:
    """The limits that Slack refuses by."""
    if len(body.get("blocks") or []) > _MOST_BLOCKS:
        raise Refused("invalid_blocks")
    if not (body.get("text") or body.get("blocks")):
        raise Refused("no_text")
    if len(body.get("text") or "") > _MOST_TEXT:
        raise Refused("msg_too_long")


def _page(messages: list[Message], body: Body) -> Body:
    """So many messages from a cursor on."""
    most, start = int(body.get("limit") or 100), int(body.get("cursor") or 0)
    metadata = str(body.get("include_all_metadata", "")).lower() in {"1", "true"}
    shown = [message.as_json(metadata) for message in messages[start : start + most]]
    more = start + most < len(messages)
    return {
        "messages": shown,
        "has_more": more,
        "response_metadata": {"next_cursor": str(start + most) if more else ""},
    }
