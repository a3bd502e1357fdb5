"""The base of every document: strict, immutable, and refusing what it does not know."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """An immutable document. Unknown fields are refused, so that a misspelt one is noticed and not lost."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="null")
