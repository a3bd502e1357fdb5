"""What is promised of the daemon's speed, as a comparison within one run."""

from __future__ import annotations

import importlib.util

import pytest

from tests.bench.intake import compare
from tests.e2e.host import Host

pytestmark = pytest.mark.bench


def test_intake_is_thirty_times_faster_than_reading_the_configuration_alone(host: Host) -> None:
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed beside the tests: there is nothing to compare with")
    comparison = compare(host.client, host.model)
    print(comparison)
    assert comparison.ratio >= 30, comparison
