"""Documents as JSON text, and back.

Python strings may hold halves of characters (lone surrogates), which platforms do send and UTF-8 cannot hold. What is
kept has U+FFFD in their place, so that nothing that a person writes can stop the store.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from bot.errors import StoreForeign

_T = TypeVar("_T")


def clean(text: str) -> str:
    """The text as UTF-8 can hold it: pairs of surrogates joined, lone ones replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def written(document: BaseModel) -> str:
    """The document as JSON text."""
    try:
        return document.model_dump_json()
    except PydanticSerializationError:
        return as_json(document.model_dump(mode="json"))


def as_json(value: Any) -> str:
    """Plain values as JSON text."""
    return json.dumps(_cleaned(value), ensure_ascii=False, separators=(",", ":"))


def read(kind: TypeAdapter[_T], text: str, where: str) -> _T:
    """The document of a row. Raises StoreForeign, naming the row by `where`, when this release cannot understand it."""
    try:
        return kind.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise StoreForeign(
            "row_unreadable",
            f"{where} in the database cannot be read by this release: {place}: {first['msg']}.",
            "Install the release that wrote it, or restore a copy.",
        ) from None


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(name)): _cleaned(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    return value
