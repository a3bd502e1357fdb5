"""What is promised of the daemon's speed, as a comparison within one run."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.bench import logs, planning
from tests.bench.intake import compare
from tests.e2e.host import Host

pytestmark = pytest.mark.bench


def test_intake_is_thirty_times_faster_than_reading_the_configuration_alone(host: Host) -> None:
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed beside the tests: there is nothing to compare with")
    comparison = compare(host.client, host.model)
    print(comparison)
    assert comparison.ratio >= 30, comparison


def test_planning_45000_layers_costs_at_most_twice_as_much_as_253(host: Host) -> None:
    measured = planning.measure(host.client, host.models, rounds=15)
    print(measured)
    assert measured.ratio <= 2, measured


def test_memory_does_not_grow_with_a_log(tmp_path: Path) -> None:
    measured = logs.measure(tmp_path, lines=300_000)
    print(measured)
    assert measured.long.lines > 9 * measured.short.lines
    assert measured.growth_bytes <= 3 * 2**20, measured
