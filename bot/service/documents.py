"""Artifacts as files."""

from __future__ import annotations

import json

import yaml


def as_file(name: str, document: object) -> bytes:
    """A document in the format that its name ends in."""
    if name.endswith((".yaml", ".yml")):
        return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120).encode(
            errors="backslashreplace"
        )
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode(errors="backslashreplace")
