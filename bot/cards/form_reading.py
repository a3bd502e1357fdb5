"""A sent edit form: only what differs from how it was filled, or a sentence for each field that was not understood."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from pydantic import JsonValue, ValidationError

from bot.cards.form_data import NONE, Form, FormErrors, FormField
from bot.cards.texts import line, some
from bot.conversation.request import Changes

Sent = str | list[str]
Parsed = str | bool | int | float | list[str] | dict[str, str] | None

_LONGEST = 4096  # characters of one value, as of a path
_MOST_LINES = 1000
_LONGEST_NUMBER = 30
_YES = frozenset({"true", "on", "yes", "1"})
_PLAIN = frozenset({"model", "revision", "runner", "output_dir"})
_CALIBRATION = {
    "calibration_dataset": "dataset",
    "num_calib_data": "num_calib_data",
    "seq_len": "seq_len",
    "batch_size": "batch_size",
}
_OVERRIDES = "layer_quant_config"
_NONE_OF_IT = frozenset({"kv_cache_scheme", "attention_dtype", "multi_gpu"})
"""Choices whose "none" asks for none of it."""
_TEXTS = frozenset({"evaluation_dataset", "tasks"})
"""Texts of the plan that ask for none of it where they are emptied."""


class _Bad(Exception):
    """Why a value was not understood, in a sentence."""


def read_form(form: Form, values: Mapping[str, Sent]) -> Changes | FormErrors:
    """What a person changed: only what differs from the form's values, or what was not understood.

    A field that is absent from `values` is left as it is: a platform may show a part of the form. What is not a field
    of the form is passed over. An emptied list, text or choice is a value: none of it, where that can be asked for.
    """
    errors: dict[str, str] = {}
    differing: dict[str, Parsed] = {}
    for field in form.fields:
        if field.name not in values:
            continue
        try:
            parsed = _parsed(form, field, values[field.name])
        except _Bad as bad:
            errors[field.name] = str(bad)
            continue
        if not _same(field, parsed, _as_filled(form, field)):
            differing[field.name] = parsed
    errors |= {
        name: f"{_label(form, name)} cannot be left empty." for name in differing if _may_not_be_empty(differing, name)
    }
    if errors:
        return FormErrors(errors=errors)
    try:
        return _changes(differing)
    except ValidationError as error:
        # The bounds of the form are those of the plan; should they ever part, a person is still told where.
        where = ", ".join(str(part) for part in error.errors()[0]["loc"])
        return FormErrors(errors={name: f"The runner would not take this ({line(where, 80)})." for name in differing})


def _as_filled(form: Form, field: FormField) -> Parsed:
    """What the form's own value means. What it was filled with may not fit any more: then everything is a change."""
    try:
        return _parsed(form, field, list(field.value) if isinstance(field.value, tuple) else field.value)
    except _Bad:
        return "\x00"  # equal to nothing that anybody can send


def _parsed(form: Form, field: FormField, sent: Sent) -> Parsed:
    if field.kind == "list":
        return _list(form, field, _lines(sent))
    text = (sent if isinstance(sent, str) else next(iter(sent), "")).strip()
    match field.kind:
        case "toggle":
            return text.lower() in _YES
        case "number":
            return _number(field, text)
        case "select":
            return _chosen(field, text)
        case "text":
            return _checked(field, text) if text else ""


def _lines(sent: Sent) -> list[str]:
    parts = (
        re.split(r"[\r\n,]+", sent)
        if isinstance(sent, str)
        else [part for one in sent for part in re.split(r"[\r\n]+", one)]
    )
    return list(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _list(form: Form, field: FormField, lines: list[str]) -> Parsed:
    if len(lines) > _MOST_LINES:
        raise _Bad(f"{field.label} has {len(lines):,} lines; {_MOST_LINES:,} are the most.")
    if field.name == _OVERRIDES:
        return _pairs(form, field, lines)
    if field.options:
        lines = [_chosen(field, one) for one in lines]
    for one in lines:
        _checked(field, one)
    if NONE in lines and len(lines) > 1 and field.name == "algorithm":
        raise _Bad(f'Choose either "{NONE}" or algorithms.')
    return lines


def _pairs(form: Form, field: FormField, lines: list[str]) -> dict[str, str]:
    scheme_field = form.field("global_scheme")
    offered = {option.value for option in scheme_field.options if option.value} if scheme_field else set()
    pairs: dict[str, str] = {}
    for one in lines:
        pattern, equals, scheme = (part.strip() for part in one.rpartition("="))
        if not equals or not pattern or not scheme:
            raise _Bad(f'"{line(one, 80)}" is not understood. Write pattern = scheme, such as *down_proj = fp8.')
        _checked(field, pattern)
        _checked(field, scheme)
        if offered and scheme not in offered:
            scheme = scheme.lower()
        if offered and scheme not in offered:
            raise _Bad(f'There is no scheme "{line(scheme, 60)}". There are: {some(sorted(offered), 40)}.')
        if pattern in pairs:
            raise _Bad(f'"{line(pattern, 80)}" stands there twice.')
        pairs[pattern] = scheme
    return pairs


def _number(field: FormField, text: str) -> int | float | None:
    if not text:
        return None
    what = "a whole number" if field.whole else "a number"
    span = _span(field)
    digits = text.replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+", text, re.ASCII) else text
    pattern = r"\d+" if field.whole else r"\d*\.?\d+(e-?\d{1,3})?"
    if len(digits) > _LONGEST_NUMBER or not re.fullmatch(pattern, digits, re.ASCII | re.IGNORECASE):
        raise _Bad(f"{field.label} must be {what}{span}.")
    value = int(digits) if field.whole else float(digits)
    if (
        not math.isfinite(value)
        or (field.least is not None and value < field.least)
        or (field.most is not None and value > field.most)
    ):
        raise _Bad(f"{field.label} must be {what}{span}.")
    return value


def _span(field: FormField) -> str:
    if field.least is None:
        return ""
    least = f"{field.least:,.0f}"
    return f" of at least {least}" if field.most is None else f" from {least} to {field.most:,.0f}"


def _chosen(field: FormField, text: str) -> str:
    values = {option.value for option in field.options}
    if text in values:
        return text
    if text.lower() in values:
        return text.lower()
    raise _Bad(f'{field.label}: "{line(text, 60)}" is not offered.' if text else f"{field.label}: choose one.")


def _checked(field: FormField, value: str) -> str:
    """The value itself, where it may become part of a command."""
    if len(value) > _LONGEST:
        raise _Bad(f"{field.label}: a value is longer than {_LONGEST:,} characters.")
    if value.startswith("-"):
        raise _Bad(f'{field.label}: "{line(value, 60)}" begins with a dash, as if it were an option.')
    if not value.isprintable():
        raise _Bad(f'{field.label}: "{line(value, 60)}" has characters that cannot be seen.')
    return value


def _same(field: FormField, parsed: Parsed, filled: Parsed) -> bool:
    if field.kind == "list" and isinstance(parsed, list) and isinstance(filled, list):
        if field.name == "algorithm" and filled == [NONE] and not parsed:
            return True  # none chosen is none
        return set(parsed) == set(filled)  # a browser gives what was chosen in the order of the options
    return parsed == filled


_MAY_BE_EMPTY = frozenset(
    {
        *("revision", "min_kv_scale", "exclude_layers", "layer_quant_config", "algorithm"),
        *("num_eval_data", "tensor_parallel", *_TEXTS),
    }
)


def _may_not_be_empty(differing: Mapping[str, Parsed], name: str) -> bool:
    return differing[name] in ("", None) and name not in _MAY_BE_EMPTY


def _label(form: Form, name: str) -> str:
    field = form.field(name)
    return field.label if field else name


def _changes(differing: Mapping[str, Parsed]) -> Changes:
    plain = {name: str(value) for name, value in differing.items() if name in _PLAIN}
    calibration = {_CALIBRATION[name]: value for name, value in differing.items() if name in _CALIBRATION}
    choices: dict[str, JsonValue] = {
        name: _choice(name, value)
        for name, value in differing.items()
        if name not in _PLAIN and name not in _CALIBRATION
    }
    if calibration:
        choices["calibration"] = {name: _json(value) for name, value in calibration.items()}
    return Changes(**plain, choices=choices)


def _choice(name: str, value: Parsed) -> JsonValue:
    if name == "algorithm":
        names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        return ",".join(one for one in names if one != NONE) or None
    if (name in _NONE_OF_IT and value == NONE) or (name in _TEXTS and value == ""):
        return None
    return _json(value)


def _json(value: Parsed) -> JsonValue:
    if isinstance(value, list):
        return list(value)
    return dict(value) if isinstance(value, dict) else value
