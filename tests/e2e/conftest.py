"""A fresh host for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.host import Host, running_host


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A running daemon with a stand-in for the engine."""
    with running_host(tmp_path / "h") as started:
        yield started
