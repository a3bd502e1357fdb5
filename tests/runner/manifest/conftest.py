"""Shared between the tests of manifests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runner.manifest.bench import Bench, make_bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A runner without a GPU."""
    return make_bench(tmp_path)


@pytest.fixture
def gpu_bench(tmp_path: Path) -> Bench:
    """A runner with a GPU and a Quark checkout."""
    return make_bench(tmp_path, gpu=True)
