"""One field of the edit form as an input block, and what was sent of it as the form reads it.

Slack hands texts and values back with & < > written as entities in some places, so no value that has one, is empty or
too long goes there as it is: a name of it goes, which the form's own options tell apart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any

from bot.cards.form_data import FormField, Option
from bot.cards.form_reading import Sent
from bot.platforms.slack import limits
from bot.platforms.slack.escape import ELLIPSIS, Part, cut, length, plain

BLOCK_ID = re.compile(r"ptq-form-(?P<name>[a-z0-9_]+)(:[0-9a-f]{8})?")
"""The block_id of every field. Behind the colon stands what is offered: other offers are another block, which Slack
fills anew."""

ACTION_ID = re.compile(r"ptq-form-(?P<name>[a-z0-9_]+)")
"""The action_id of every field, as it comes in when a choice is made on which others depend."""

DISPATCHES = frozenset({"global_scheme", "kv_cache_scheme", "algorithm"})
"""Choices that are told at once, so that what depends on them is drawn again."""

_NAMED = "~"
_TYPED = re.compile("[&<>]")
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)


@dataclass(frozen=True)
class Size:
    """How much a view may say: the first that fits is taken."""

    options: int
    about: bool
    text: int
    hint: int


SIZES = (
    Size(limits.GROUPS * limits.OPTIONS, True, limits.INPUT, limits.HINT),
    Size(400, False, limits.INPUT, limits.HINT),
    Size(100, False, 1_000, limits.HINT),
    Size(40, False, 300, 100),
    Size(10, False, 60, 0),
)


def input_block(field: FormField, size: Size) -> Part:
    """The field, filled. One whose value is longer than Slack takes is told of instead, and stays as it is."""
    if field.kind != "toggle" and not field.options and not _typeable(_text(field), size):
        told = "it has more, or other letters, than can be changed here. Write in the thread what shall be otherwise."
        return {"type": "section", "text": plain(f"{cut(field.label, limits.LABEL)}: {told}", limits.HINT)}
    element, offered = _element(field, size)
    block: Part = {
        "type": "input",
        "block_id": f"ptq-form-{field.name}{f':{offered}' if offered else ''}"[: limits.BLOCK_ID],
        "label": plain(field.label, limits.LABEL),
        "element": {**element, "action_id": f"ptq-form-{field.name}"[: limits.ACTION_ID]},
        "optional": True,  # the form itself says what may not be empty, in its own words
    }
    if field.help.strip() and size.hint:
        block["hint"] = plain(field.help, size.hint)
    if field.name in DISPATCHES and field.options:
        block["dispatch_action"] = True
    return block


def _element(field: FormField, size: Size) -> tuple[Part, str]:
    """The input itself, and a fingerprint of what can be chosen in it."""
    if field.kind == "toggle":
        yes: Part = {"text": plain("Yes", limits.OPTION_TEXT), "value": "true"}
        chosen = {"initial_options": [yes]} if field.value == "true" else {}
        return {"type": "checkboxes", "options": [yes], **chosen}, ""
    if field.kind in ("select", "list") and field.options:
        return _choice(field, size)
    text = _text(field)
    if field.kind == "number" and field.whole and (not text or _fits(field, text)):
        bounds = {"min_value": field.least, "max_value": field.most}
        stated = {name: f"{bound:.0f}" for name, bound in bounds.items() if bound is not None}
        return {"type": "number_input", "is_decimal_allowed": False, **stated, **_initial(text)}, ""
    multiline = field.kind == "list"
    return {"type": "plain_text_input", "multiline": multiline, "max_length": limits.INPUT, **_initial(text)}, ""


def _typeable(text: str, size: Size) -> bool:
    return length(text) <= size.text and text.replace("\n", "").isprintable()


def _initial(text: str) -> dict[str, str]:
    return {"initial_value": text} if text else {}


def _fits(field: FormField, text: str) -> bool:
    if not _NUMBER.fullmatch(text):
        return False
    least, most = field.least, field.most
    return (least is None or int(text) >= least) and (most is None or int(text) <= most)


def _text(field: FormField) -> str:
    return "\n".join(field.value) if isinstance(field.value, tuple) else field.value


def _choice(field: FormField, size: Size) -> tuple[Part, str]:
    chosen = field.value if isinstance(field.value, tuple) else (field.value,)
    wanted = list(dict.fromkeys(map(option_value, chosen)))
    offered = _offered(field.options, set(wanted), size.options)
    drawn = {option_value(option.value): _option(option, size.about) for option in offered}
    initial = [drawn[value] for value in wanted if value in drawn]
    groups = _groups(offered, drawn)
    element: Part = {"type": "static_select" if field.kind == "select" else "multi_static_select"}
    if len(groups) == 1 and not offered[0].group and len(drawn) <= limits.OPTIONS:
        element["options"] = list(drawn.values())
    else:
        element["option_groups"] = groups
    if initial and field.kind == "select":
        element["initial_option"] = initial[0]
    elif initial:
        element["initial_options"] = initial
    return element, _fingerprint("\n".join(f"{option.group}\t{option.value}" for option in offered))


def _offered(options: Iterable[Option], chosen: set[str], most: int) -> list[Option]:
    """What can be chosen, each once. Where there is too much of it, what is chosen stays."""
    every = list({option_value(option.value): option for option in options}.values())
    if len(every) <= most:
        return every
    spare = most - sum(option_value(option.value) in chosen for option in every)
    kept = []
    for option in every:
        if option_value(option.value) in chosen:
            kept.append(option)
        elif spare > 0:
            spare -= 1
            kept.append(option)
    return kept


def _groups(offered: Iterable[Option], drawn: Mapping[str, Part]) -> list[Part]:
    """Options under their family; a family that is too large for one group goes on in the next."""
    families: dict[str, list[Part]] = {}
    for option in offered:
        families.setdefault(option.group, []).append(drawn[option_value(option.value)])
    groups = [
        {"label": plain(family or "General", limits.OPTION_TEXT), "options": options[start : start + limits.OPTIONS]}
        for family, options in families.items()
        for start in range(0, len(options), limits.OPTIONS)
    ]
    return groups[: limits.GROUPS]


def _option(option: Option, about: bool) -> Part:
    drawn: Part = {"text": plain(option.label, limits.OPTION_TEXT), "value": option_value(option.value)}
    if about and (told := _beyond(option)):
        drawn["description"] = plain(told, limits.OPTION_TEXT)
    return drawn


def _beyond(option: Option) -> str:
    """What is said about an option beyond its label, which begins with the same words."""
    said = option.label.partition(": ")[2].rstrip(ELLIPSIS).strip()
    if said and option.about.startswith(said):
        return option.about[len(said) :].partition(". ")[2].strip()
    return option.about.strip()


def option_value(value: str) -> str:
    """How a value stands in Slack's options."""
    fits = value and length(value) <= limits.OPTION_VALUE and value.isprintable() and not value.startswith(_NAMED)
    return value if fits and not _TYPED.search(value) else f"{_NAMED}{_fingerprint(value)}"


def in_words_of(field: FormField, sent: Sent) -> Sent:
    """What was sent, in the form's own values."""
    known = {option_value(option.value): option.value for option in field.options}
    return known.get(sent, sent) if isinstance(sent, str) else [known.get(one, one) for one in sent]


def fingerprint(value: str | Iterable[str]) -> str:
    """A short name of what a field is filled with. The order of a list and blanks around it do not count."""
    if isinstance(value, str):
        return _fingerprint(unescape(value).strip())
    return _fingerprint("\n".join(sorted({one for line in value if (one := unescape(line).strip())})))


def _fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def sent_of(state: Mapping[str, Any]) -> Sent:
    """What an input holds, as Slack tells it."""
    match state.get("type"):
        case "static_select":
            return str((state.get("selected_option") or {}).get("value") or "")
        case "checkboxes":
            return "true" if state.get("selected_options") else "false"
        case "multi_static_select":
            return [str(one.get("value") or "") for one in state.get("selected_options") or []]
        case _:
            return str(state.get("value") or "")
