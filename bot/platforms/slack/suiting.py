"""Algorithms beside the scheme that is chosen: those that the runner describes as made for it come first."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.cards.form_data import NONE, FormField, Option

_FOR = "For: "  # begins what is said of the schemes that an algorithm suits
_KIND = re.compile(r"U?INT\d+|FP\d+|MX\w*", re.IGNORECASE)
_ANY = re.compile(r"(any|most)\b", re.IGNORECASE)


def suited(fields: Sequence[FormField]) -> list[FormField]:
    """The fields of a form, the algorithms in two groups by the scheme that its field has. Nothing is left out.

    It is a help, no rule: whether a plan can run is said by the runner. What is described in no known words stays as
    it is.
    """
    scheme = _scheme(fields)
    kinds = _kinds(f"{scheme.group} {scheme.label}") if scheme else set()
    return [
        _grouped(field, scheme, kinds) if scheme and kinds and field.name == "algorithm" else field for field in fields
    ]


def _scheme(fields: Sequence[FormField]) -> Option | None:
    field = next((field for field in fields if field.name == "global_scheme"), None)
    return next((option for option in field.options if option.value == field.value), None) if field else None


def _grouped(field: FormField, scheme: Option, kinds: set[str]) -> FormField:
    made = [option for option in field.options if option.value != NONE and _suits(option, kinds)]
    if not made or len(made) == len(field.options):
        return field
    there = {option.value for option in made}
    none = [option for option in field.options if option.value == NONE]
    others = [option for option in field.options if option.value not in there and option.value != NONE]
    groups = (("Without", none), (f"Made for {scheme.value}", made), ("Others", others))
    options = [option.model_copy(update={"group": group}) for group, some in groups for option in some]
    return field.model_copy(update={"options": tuple(options)})


def _suits(option: Option, kinds: set[str]) -> bool:
    said = option.about.partition(_FOR)[2].partition(";")[0]
    return bool(_ANY.match(said)) or bool(_kinds(said) & kinds)


def _kinds(text: str) -> set[str]:
    return {kind.upper() for kind in _KIND.findall(text)}
