"""Every call of a test, and as a file for the checker of payloads where PTQ_CALLS names a folder."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PARSED = ("blocks", "view", "metadata", "files")


@dataclass(frozen=True)
class Call:
    """One call as it was on the wire."""

    method: str
    body: dict[str, Any]


class Record:
    """In order."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        folder = os.environ.get("PTQ_CALLS")
        test = os.environ.get("PYTEST_CURRENT_TEST", "no test").rpartition(" ")[0]
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", test)[-180:]
        self._file = Path(folder) / f"slack-{name}.jsonl" if folder else None
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)

    def add(self, method: str, body: dict[str, Any]) -> None:
        """One more."""
        self.calls.append(Call(method, body))
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"platform": "slack", "method": method, "body": body}) + "\n")

    def of(self, method: str) -> list[dict[str, Any]]:
        """The bodies of one method's calls."""
        return [call.body for call in self.calls if call.method == method]


def parsed(fields: dict[str, Any]) -> dict[str, Any]:
    """A form's fields, with those parsed that hold JSON."""
    return {
        name: json.loads(value) if name in _PARSED and isinstance(value, str) else value
        for name, value in fields.items()
    }
