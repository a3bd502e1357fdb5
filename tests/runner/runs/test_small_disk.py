"""A disk that fills while a run exports: the run fails and says so, and its place is free again without a shell."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.engines.engine import Exit
from runner.host.output_location import check_output, examine_output
from runner.runs.output import read_output
from runner.runs.partial import set_apart
from tests.runner.host.settings import settings_in
from tests.runner.runs.supervising import Host, a_host, a_small_disk, exit_of, python

# What an export does: a configuration, and then weights until they are all there.
EXPORTS = python(
    """
output = sys.argv[1]
os.makedirs(output, exist_ok=True)
open(output + "/config.json", "w").write("{}")
with open(output + "/model.safetensors", "wb", buffering=0) as weights:
    while True:
        weights.write(b"w" * int(sys.argv[2]))
        select.select([], [], [], 0.02)
"""
)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """One MiB, for outputs and run folders alike."""
    with a_small_disk(tmp_path / "disk") as disk:
        (disk / "out").mkdir()
        (disk / "models" / "m").mkdir(parents=True)
        yield disk


def export(host: Host, output: Path, chunk: int, reserve: int) -> Exit:
    argv = [*EXPORTS, str(output), str(chunk)]
    return exit_of(host.run(argv, watched=[str(output)], disk_reserve_bytes=reserve)).exit


def free_for_a_retry(disk: Path, output: Path) -> bool:
    place = examine_output(str(output), disk / "models" / "m", settings_in(disk))
    check_output(place)
    return place.usable and not read_output(output).sizes


def test_a_run_is_ended_before_it_fills_the_disk(disk: Path) -> None:
    output = disk / "out" / "llama-fp8"
    with a_host(disk) as host:
        for number in range(2):  # the second one as a retry into the same folder, on a disk that is short already
            told = export(host, output, 4096, 400_000)
            assert (told.exit_code, told.cancelled, told.ended_by) == (-15, False, "disk_reserve")
            assert "must stay free there" in told.ended_because
            apart = set_apart(output, f"run-{number}")
            if number == 0:
                assert apart == f"{output}.partial-run-0"
                assert (Path(apart) / "model.safetensors").stat().st_size > 100_000
            assert free_for_a_retry(disk, output)


def test_a_full_disk_loses_neither_the_outcome_nor_what_was_written(disk: Path) -> None:
    """Without a reserve the command itself meets the end of the disk."""
    output = disk / "out" / "llama-fp8"
    with a_host(disk) as host:
        told = export(host, output, 65536, 0)
        assert os.statvfs(disk).f_bavail == 0
        assert told.exit_code not in (0, None)
        assert (told.ended_by, told.could_not_start) == (None, None)
        written = (output / "model.safetensors").stat().st_size
        apart = Path(set_apart(output, "run-0"))
        assert (apart / "model.safetensors").stat().st_size == written
        assert free_for_a_retry(disk, output)


def test_a_command_that_fills_the_disk_at_once_fails_for_that(disk: Path) -> None:
    """Quicker than any look at the disk, and its own words find no room on it."""
    with a_host(disk) as host:
        told = export(host, disk / "out" / "llama-fp8", 4 << 20, 100_000)
    assert told.exit_code not in (0, None)
    assert (told.ended_by, told.cancelled) == ("disk_reserve", False)
    assert told.ended_because.startswith("Only 0 kB are free on the disk of ")


def test_a_full_disk_that_is_the_output_folder_itself(tmp_path: Path, disk: Path) -> None:
    """It cannot be renamed, so what was written moves into a folder within."""
    (tmp_path / "out").mkdir()
    (tmp_path / "models" / "m").mkdir(parents=True)
    with a_small_disk(tmp_path / "out" / "llama-fp8") as output, a_host(disk) as host:
        told = export(host, output, 4096, 400_000)
        assert told.ended_by == "disk_reserve"
        assert set_apart(output, "run-0") == str(output / ".partial-run-0")
        assert free_for_a_retry(tmp_path, output)
