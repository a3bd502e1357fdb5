"""The edit form as data; each platform draws it as it can."""

from __future__ import annotations

from typing import Literal

from schemas.base import Document

NONE = "none"
"""The value of a choice that asks for none of it."""


class Option(Document):
    """One value that can be chosen. Options of one `group` stand together; `about` says what it does and suits."""

    value: str
    label: str
    group: str = ""
    about: str = ""


class FormField(Document):
    """One thing that can be changed.

    `value` is what applies now: of a list all its lines, of a toggle "true" or "false", and empty where the runner
    decides. A select has options; a list with options is a choice of several, one without is typed line by line.
    `least` and `most` bound a number, which is a whole one where `whole` says so.
    """

    name: str
    label: str
    kind: Literal["select", "number", "text", "list", "toggle"]
    section: str
    value: str | tuple[str, ...] = ""
    options: tuple[Option, ...] = ()
    help: str = ""
    least: float | None = None
    most: float | None = None
    whole: bool = True


class Form(Document):
    """What of a request can be changed. `digest` is that of the card from which it was opened, empty without one."""

    conversation: int
    title: str
    digest: str = ""
    fields: tuple[FormField, ...]

    def field(self, name: str) -> FormField | None:
        """The field of that name."""
        return next((field for field in self.fields if field.name == name), None)


class FormErrors(Document):
    """What was not understood in a sent form: field to sentence."""

    errors: dict[str, str]
