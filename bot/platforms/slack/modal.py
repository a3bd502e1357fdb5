"""The modals: the edit form, the one that stands there until it is known, and the one that takes a request. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.cards.card import Block as CardBlock
from bot.cards.form import Form, FormErrors, read_form
from bot.cards.form_data import FormField
from bot.cards.form_reading import Sent
from bot.conversation.request import Changes
from bot.platforms.slack import limits
from bot.platforms.slack.blocks import in_rich_blocks
from bot.platforms.slack.escape import Part, cut, plain, single
from bot.platforms.slack.form_fields import (
    BLOCK_ID,
    SIZES,
    Size,
    fingerprint,
    in_words_of,
    input_block,
    sent_of,
)
from bot.platforms.slack.room import Room
from bot.platforms.slack.suiting import suited

EDIT, LOADING, REQUEST, TOLD = "ptq-edit", "ptq-loading", "ptq-request", "ptq-told"
"""The callback_id of each modal."""

NOTHING_CHANGED = "Nothing was changed, so nothing was sent."

_PREVIEW, _PREVIEW_BLOCKS = 2_000, 8
_TEXT = "ptq-request-text"


@dataclass(frozen=True)
class Submission:
    """What an edit form holds as it is sent, or when a choice in it is made.

    `digest` is that of the card from which it was opened, `values` what each shown field holds, `was` the fingerprints
    of what it was filled with, and `blocks` where each field stands.
    """

    conversation: int
    digest: str
    channel: str
    thread: str
    values: Mapping[str, Sent]
    was: Mapping[str, str]
    blocks: Mapping[str, str]


def edit_view(
    form: Form,
    *,
    sent: Submission | None = None,
    preview: Sequence[CardBlock] = (),
    problem: str = "",
    channel: str = "",
    thread: str = "",
) -> Part:
    """The edit form, filled with what applies now.

    `sent` is what a person did in it so far, which lies over that. `preview` are blocks of a card that tell what would
    come of it (size, findings); `problem` a sentence that stands above all. `channel` and `thread` are handed back with
    what is sent.
    """
    was = {field.name: _filled(field) for field in form.fields}
    if sent is not None and sent.digest == form.digest:
        was |= sent.was
    channel, thread = (sent.channel, sent.thread) if sent and not channel else (channel, thread)
    shown = suited([_overlaid(form, field, sent) for field in form.fields])
    carried = {"c": form.conversation, "d": form.digest[:64], "ch": channel[:100], "th": thread[:100]}
    view: Part = {
        "type": "modal",
        "callback_id": EDIT,
        "title": plain(form.title, limits.VIEW_TITLE),
        "submit": plain("Send", limits.VIEW_TITLE),
        "close": plain("Close", limits.VIEW_TITLE),
        "private_metadata": _metadata(carried, was),
    }
    for size in SIZES:
        view["blocks"] = _blocks(shown, preview, problem, size)
        if len(json.dumps(view)) <= limits.VIEW_BYTES:
            break
    return view


def loading_view() -> Part:
    """Stands there until the form is known: it is opened at once, and replaced."""
    return _told_view("Edit", "One moment: what can be changed is being read from the runner.", LOADING)


def told_view(title: str, text: str) -> Part:
    """A modal that says one thing, such as why there is nothing to edit."""
    return _told_view(title, text, TOLD)


def request_view(text: str = "", *, channel: str = "") -> Part:
    """Asks for a request in words. `channel` is where its thread will open."""
    element: Part = {"type": "plain_text_input", "multiline": True, "max_length": limits.INPUT, "action_id": _TEXT}
    if shown := cut(text.strip(), limits.INPUT):
        element["initial_value"] = shown
    hint = "Such as: meta-llama/Llama-3.1-8B to fp8 with kv cache fp8, output llama-fp8"
    block = {
        "type": "input",
        "block_id": _TEXT,
        "label": plain("Which model shall be quantized, and how?", limits.LABEL),
        "element": element,
        "hint": plain(hint, limits.HINT),
    }
    return {
        "type": "modal",
        "callback_id": REQUEST,
        "title": plain("Quantize a model", limits.VIEW_TITLE),
        "submit": plain("Ask", limits.VIEW_TITLE),
        "close": plain("Close", limits.VIEW_TITLE),
        "private_metadata": _metadata({"ch": channel[:100]}, {}),
        "blocks": [block],
    }


def read_request(view: Mapping[str, Any]) -> tuple[str, str]:
    """The words of a sent request, and the channel in which its thread opens."""
    state = _states(view).get(_TEXT, {}).get(_TEXT, {})
    return str(state.get("value") or "").strip(), str(_read_metadata(view).get("ch") or "")


def read_submission(view: Mapping[str, Any]) -> Submission | None:
    """What an edit form holds, from a view of a submission or of a choice; None for a view that is not ours."""
    carried = _read_metadata(view)
    number, was = carried.get("c"), carried.get("w")
    if view.get("callback_id") != EDIT or not isinstance(number, int) or not isinstance(was, dict):
        return None
    values: dict[str, Sent] = {}
    blocks: dict[str, str] = {}
    for block_id, inputs in _states(view).items():
        found = BLOCK_ID.fullmatch(block_id)
        if found is None:
            continue
        for state in inputs.values():
            values[found["name"]], blocks[found["name"]] = sent_of(state), block_id
    return Submission(
        conversation=number,
        digest=str(carried.get("d") or ""),
        channel=str(carried.get("ch") or ""),
        thread=str(carried.get("th") or ""),
        values=values,
        was={str(name): str(value) for name, value in was.items()},
        blocks=blocks,
    )


def changes_of(form: Form, sent: Submission) -> Changes | FormErrors:
    """What a person changed in the form as it was opened, or what was not understood.

    Compared with what the form was filled with then, not with what applies now: somebody else may have changed that.
    """
    return read_form(form, _touched(form, sent))


def errors_answer(sent: Submission, errors: Mapping[str, str]) -> Part:
    """The answer that shows each sentence at its field. What has no field on show stands at the first one."""
    first = next(iter(sent.blocks.values()), "ptq-form-none")
    told: dict[str, str] = {}
    for name, sentence in errors.items():
        block = sent.blocks.get(name, first)
        told[block] = cut(
            f"{told[block]} {single(sentence)}" if block in told else single(sentence), limits.FIELD_ERROR
        )
    return {"response_action": "errors", "errors": told}


def problem_answer(sent: Submission, sentence: str) -> Part:
    """The answer that shows a sentence which belongs to no field, such as that nothing was changed."""
    return errors_answer(sent, {"": sentence})


def _touched(form: Form, sent: Submission) -> dict[str, Sent]:
    told = {
        field.name: in_words_of(field, sent.values[field.name]) for field in form.fields if field.name in sent.values
    }
    return {name: value for name, value in told.items() if _as_filled(form, name, value) != sent.was.get(name)}


def _as_filled(form: Form, name: str, value: Sent) -> str:
    """The fingerprint that the field would have had, were it filled with what was sent."""
    field = form.field(name)
    typed_lines = field is not None and field.kind == "list" and isinstance(value, str)
    return fingerprint(str(value).split("\n") if typed_lines else value)


def _filled(field: FormField) -> str:
    return fingerprint(field.value)


def _overlaid(form: Form, field: FormField, sent: Submission | None) -> FormField:
    """The field with what a person did in it."""
    touched = _touched(form, sent) if sent is not None else {}
    if field.name not in touched:
        return field
    value = touched[field.name]
    if field.kind == "list":
        return field.model_copy(update={"value": tuple(value.split("\n") if isinstance(value, str) else value)})
    return field.model_copy(update={"value": value if isinstance(value, str) else next(iter(value), "")})


def _blocks(fields: Sequence[FormField], preview: Sequence[CardBlock], problem: str, size: Size) -> list[Part]:
    blocks: list[Part] = [{"type": "section", "text": plain(problem, limits.HINT)}] if problem.strip() else []
    room = Room(_PREVIEW, _PREVIEW_BLOCKS, tables=0)
    for block in preview[:_PREVIEW_BLOCKS]:
        blocks += in_rich_blocks(block, room)
    blocks += [{"type": "divider"}] if blocks else []
    section = None
    for field in fields:
        heads = [] if field.section == section else [{"type": "header", "text": plain(field.section, limits.HEADER)}]
        if len(blocks) + len(heads) + 2 > limits.VIEW_BLOCKS:
            told = "There is more than fits in here: write in the thread what else shall be otherwise."
            return [*blocks, {"type": "section", "text": plain(told, limits.HINT)}]
        section = field.section
        blocks += [*heads, input_block(field, size)]
    return blocks


def _told_view(title: str, text: str, callback: str) -> Part:
    return {
        "type": "modal",
        "callback_id": callback,
        "title": plain(title, limits.VIEW_TITLE),
        "close": plain("Close", limits.VIEW_TITLE),
        "blocks": [{"type": "section", "text": plain(text, limits.SECTION)}],
    }


def _metadata(carried: Mapping[str, Any], was: Mapping[str, str]) -> str:
    """What a view carries. Fields beyond its room count as changed, whatever they hold: the form compares once more."""
    kept = dict(was)
    while len(text := json.dumps({**carried, "w": kept}, separators=(",", ":"))) > limits.METADATA:
        kept.popitem()
    return text


def _read_metadata(view: Mapping[str, Any]) -> dict[str, Any]:
    try:
        read = json.loads(view.get("private_metadata") or "{}")
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _states(view: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    values = (view.get("state") or {}).get("values")
    return values if isinstance(values, dict) else {}
