"""The canonical form of a document and its digest.

Canonical form: RFC 8785 (JSON Canonicalization Scheme), with integers beyond 2^53 - 1 written as strings, since JSON
numbers of that size do not survive every reader. Two documents are the same exactly when their digests are.
"""

from __future__ import annotations

import hashlib
from typing import Any

import rfc8785
from pydantic import BaseModel

_LARGEST_EXACT_INTEGER = 2**53 - 1
_EXPONENT_FROM = 1e21  # from here on RFC 8785 writes an exponent, which reads back as a float


def canonical(document: BaseModel | dict[str, Any] | list[Any]) -> bytes:
    """The document as RFC 8785 bytes. Raises ValueError for values that JSON cannot hold, such as NaN."""
    plain = document.model_dump(mode="json") if isinstance(document, BaseModel) else document
    try:
        return rfc8785.dumps(_exact(plain))
    except rfc8785.CanonicalizationError as error:
        raise ValueError(f"this document has no canonical form: {error}") from error


def digest(document: BaseModel | dict[str, Any] | list[Any]) -> str:
    """SHA-256 of the canonical form, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical(document)).hexdigest()


def short(full: str) -> str:
    """The part of a digest that people compare by eye: 12 hexadecimal digits."""
    return full[:12]


def _exact(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _exact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _LARGEST_EXACT_INTEGER:
        return str(value)
    if isinstance(value, float) and value.is_integer() and _LARGEST_EXACT_INTEGER < abs(value) < _EXPONENT_FROM:
        # Written without a fraction, it would be read back as an integer of that size.
        return str(int(value))
    return value
