"""The canonical form of a document and its digest.

Canonical form: RFC 8785 (JSON Canonicalization Scheme), with integers beyond 2^53 - 1 written as strings, since JSON
numbers of that size do not survive every reader. Two documents are the same exactly when their digests are.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import rfc8785
from pydantic import BaseModel

_LARGEST_EXACT_INTEGER = 2**53 - 1
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
_EXPONENT_FROM = 1e21  # from here on RFC 8785 writes an exponent, which reads back as a float


def canonical(document: BaseModel | dict[str, Any] | list[Any]) -> bytes:
    """The document as RFC 8785 bytes. Raises ValueError for values that JSON cannot hold, such as NaN."""
    plain = document.model_dump(mode="json") if isinstance(document, BaseModel) else document
    exact = _Exact()
    value = exact.of(plain)
    try:
        # The same bytes in a fifth of the time: an analysis of hundreds of files is digested for every plan.
        return _ENCODER.encode(value).encode() if exact.simple else rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise ValueError(f"this document has no canonical form: {error}") from error


def digest(document: BaseModel | dict[str, Any] | list[Any]) -> str:
    """SHA-256 of the canonical form, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical(document)).hexdigest()


def short(full: str) -> str:
    """The part of a digest that people compare by eye: 12 hexadecimal digits."""
    return full[:12]


class _Exact:
    """A value with its large integers as strings.

    It is `simple` where RFC 8785 and Python write it the same: no fractions, and keys in ASCII alone, which both put
    into one order.
    """

    def __init__(self) -> None:
        self.simple = True

    def of(self, value: Any) -> Any:
        """The value, or what stands for it."""
        if isinstance(value, str | bool) or value is None:
            return value
        if isinstance(value, dict):
            self.simple = self.simple and all(isinstance(key, str) and key.isascii() for key in value)
            return {str(key): self.of(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(item) for item in value]
        if isinstance(value, int):
            return value if abs(value) <= _LARGEST_EXACT_INTEGER else str(value)
        self.simple = False
        if isinstance(value, float) and value.is_integer() and _LARGEST_EXACT_INTEGER < abs(value) < _EXPONENT_FROM:
            # Written without a fraction, it would be read back as an integer of that size.
            return str(int(value))
        return value
