"""JSON documents that this runner keeps for itself, each with a checksum of its content.

A document that is damaged may well be JSON still, and say something else. Where the checksum does not fit, it counts as
not kept. The checksum is no protection against somebody who writes into the state folder on purpose.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any


def read_sealed(file: Path) -> Any:
    """The document in a file. Raises OSError where it cannot be read, ValueError where it is not what was written."""
    try:
        kept = json.loads(file.read_bytes())
    except RecursionError:
        raise ValueError(f"{file} is nested too deeply.") from None
    if not isinstance(kept, dict) or kept.get("sha256") != _digest(kept.get("document")):
        raise ValueError(f"{file} is damaged.")
    return kept["document"]


def write_sealed(file: Path, document: Any) -> bool:
    """Put a document into its file at once; whether that worked, since what is kept only saves time."""
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8") as stream:
            json.dump({"sha256": _digest(document), "document": document}, stream)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        return False
    return True


def _digest(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
