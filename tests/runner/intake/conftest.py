from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runner.intake.hub_bench import HubBench, hub_bench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubBench]:
    with hub_bench(tmp_path, monkeypatch) as made:
        yield made
