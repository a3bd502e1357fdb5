"""Documents in which every text that may be anything is hostile."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st
from pydantic import BaseModel

Model = TypeVar("Model", bound=BaseModel)
Path = tuple[str | int, ...]

TRICKS = (
    "\u202egnp.exe",
    "\x1b[2J\x07",
    "\ud800 half a pair",
    "\r\noverwritten",
    "\u2066\u2069\u200b\u200d\ufeff",
    "<!channel> <@U1> @everyone `code` *bold* |x|",
    "\u3164\u2800",
    "\x00\x85\u2028\u2029",
    "\U000e0041\U000e0042",
    "a" * 5000,
    "line\n" * 400,
    " ",
    "",
)

TEXTS = st.one_of(st.sampled_from(TRICKS), st.text(st.characters(exclude_categories=()), max_size=40))
"""Every string that Python can hold, and the worst ones often."""


@dataclass(frozen=True)
class _Place:
    """Where a document may hold any text: with halves of surrogate pairs or without, of any length or a bounded one."""

    path: Path
    surrogates: bool
    bounded: bool

    def fit(self, text: str) -> str:
        """The text, as near as the place takes it."""
        kept = text if self.surrogates else text.encode("utf-8", "replace").decode()
        return (kept or "x")[:200] if self.bounded else kept


def filled(document: Model, texts: list[str]) -> Model:
    """The document with these texts, again and again, wherever its model allows any text at all."""
    data = document.model_dump(mode="python")
    for number, place in enumerate(_places(document)):
        _put(data, place.path, place.fit(texts[number % len(texts)]))
    return type(document).model_validate(data)


def places(document: BaseModel) -> int:
    """How many texts of a document may be anything."""
    return len(_places(document))


_KNOWN: dict[str, list[_Place]] = {}


def _places(document: BaseModel) -> list[_Place]:
    key = f"{type(document).__name__} {document!r}"
    if key not in _KNOWN:
        data = document.model_dump(mode="python")
        _KNOWN[key] = list(_found(type(document), data))
    return _KNOWN[key]


def _found(model: type[BaseModel], data: dict[str, Any]) -> Iterator[_Place]:
    for path in _strings(data):
        if _allows(model, data, path, "x\u202e"):
            bounded = not (_allows(model, data, path, "") and _allows(model, data, path, "a" * 5000))
            yield _Place(path, _allows(model, data, path, "\ud800"), bounded)


def _allows(model: type[BaseModel], data: dict[str, Any], path: Path, text: str) -> bool:
    changed = copy.deepcopy(data)
    _put(changed, path, text)
    try:
        model.model_validate(changed)
    except ValueError:
        return False
    return True


def _strings(value: Any, path: Path = ()) -> Iterator[Path]:
    match value:
        case str():
            yield path
        case dict():
            for name, item in value.items():
                yield from _strings(item, (*path, name))
        case list() | tuple():
            for number, item in enumerate(value):
                yield from _strings(item, (*path, number))
        case _:
            return


def _put(data: Any, path: Path, text: str) -> None:
    *way, last = path
    for step in way:
        if isinstance(data[step], tuple):
            data[step] = list(data[step])
        data = data[step]
    data[last] = text
