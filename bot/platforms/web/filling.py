"""The edit form as the page fills and reads it: what a person did not touch is never sent on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from bot.cards.form_data import Form, FormField
from bot.platforms.web.body import Sent

WAS = "was."
"""Begins the names of the hidden fields that hold what a field was filled with."""


_PATHS = {
    "model": "Write a name of the Hub such as Qwen/Qwen3-8B, or a whole path that begins with /.",
    "output_dir": "Write a name such as my-model-fp8, or a whole path that begins with /.",
}


@dataclass(frozen=True)
class Value:
    """What a field shows. `was` is what it was filled with when the form was opened."""

    text: str
    was: str

    @property
    def lines(self) -> list[str]:
        """The value of a list."""
        return _lines(self.text)


Filled = tuple[str, list[tuple[FormField, Value]]]


def filled(form: Form, typed: Mapping[str, str]) -> list[Filled]:
    """The form's sections with their fields; `typed` lies over what applies now."""
    sections: dict[str, list[tuple[FormField, Value]]] = defaultdict(list)
    for field in form.fields:
        now = "\n".join(field.value) if isinstance(field.value, tuple) else field.value
        sections[field.section].append((field, Value(typed.get(field.name, now), now)))
    return list(sections.items())


def touched(form: Form, sent: Sent) -> dict[str, str]:
    """What a person changed in the form as it was opened, field to value; a list's lines are joined.

    Compared with what the form was filled with then, not with what applies now: somebody else may have changed that.
    """
    changed: dict[str, str] = {}
    for field in form.fields:
        values = sent.fields.get(field.name)
        if values is None:
            continue
        value = "\n".join(values) if field.kind == "list" else values[-1]
        was = sent.one(WAS + field.name)
        same = set(_lines(value)) == set(_lines(was)) if field.kind == "list" else value.strip() == was.strip()
        if not same:
            changed[field.name] = "\n".join(_lines(value)) if field.kind == "list" else value
    return changed


def misplaced(form: Form, typed: Mapping[str, str]) -> dict[str, str]:
    """Sentences for typed paths that can mean nothing on a runner, by field: all else about a path is the runner's."""
    wrong: dict[str, str] = {}
    for field in form.fields:
        path = typed.get(field.name, "").strip()
        if field.name not in _PATHS or not path:
            continue
        if path.startswith("~"):
            wrong[field.name] = f"{field.label}: the runner knows no ~ folder. {_PATHS[field.name]}"
        elif not path.startswith("/") and _climbs(path):
            wrong[field.name] = f'{field.label}: a name cannot climb out of its folder with "..". {_PATHS[field.name]}'
    return wrong


def _climbs(path: str) -> bool:
    depth = 0
    for part in path.split("/"):
        depth += -1 if part == ".." else 0 if part in {"", "."} else 1
        if depth < 0:
            return True
    return False


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]
