"""A run that reaches a limit of its host has failed, with the numbers that decided it; nobody cancelled it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from runner.engines.engine import Begun
from tests.runner.runs.supervising import WAIT_FOR_EVER, Host, a_host, a_small_disk, exit_of, python

MIB = 1 << 20


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with a_host(tmp_path) as host:
        yield host


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """One MiB."""
    with a_small_disk(tmp_path / "disk") as disk:
        yield disk


def test_the_time_limit_is_told_with_its_number(host: Host) -> None:
    told = exit_of(host.run(WAIT_FOR_EVER, time_limit_seconds=0.3)).exit
    assert (told.exit_code, told.cancelled, told.ended_by, told.timed_out) == (-15, False, "time_limit", True)
    assert told.ended_because == "It took longer than 0.3 s, which is the longest that a run may take."


def test_a_command_that_ends_politely_at_its_limit_has_reached_it(host: Host) -> None:
    polite = python("signal.signal(signal.SIGTERM, lambda *_: os._exit(0))\nsignal.pause()")
    told = exit_of(host.run(polite, time_limit_seconds=0.5, grace_seconds=30)).exit
    assert (told.exit_code, told.ended_by) == (0, "time_limit")


def test_limits_that_are_not_reached_are_not_mentioned(host: Host, disk: Path) -> None:
    limits: dict[str, Any] = {"time_limit_seconds": 60, "memory_limit_bytes": 1 << 40, "disk_reserve_bytes": 1024}
    told = exit_of(host.run(python("sys.exit(3)"), watched=[str(disk)], **limits)).exit
    assert (told.exit_code, told.ended_by, told.ended_because, told.oom_killed) == (3, None, "", 0)


FILLS = python("open(sys.argv[1], 'wb').write(bytes(int(sys.argv[2])))\nos.write(1, b'written\\n')\nsignal.pause()")


@pytest.mark.parametrize("watched", ["", "out", "out/not/there/yet"])
def test_a_run_that_leaves_too_little_of_a_disk_is_ended(host: Host, disk: Path, watched: str) -> None:
    (disk / "out").mkdir()
    folder = host.run(
        [*FILLS, str(disk / "model"), "700000"], watched=[str(disk / watched)], disk_reserve_bytes=500_000
    )
    told = exit_of(folder).exit
    assert (told.exit_code, told.cancelled, told.ended_by) == (-15, False, "disk_reserve")
    assert f" kB are free on the disk of {disk / watched}, and 500 kB must stay free there." in told.ended_because
    assert folder.read("log") == b"written\n", "it was ended when the disk was short, and not before"


def test_the_disk_of_the_run_folder_is_watched_too(disk: Path) -> None:
    with a_host(disk) as host:
        told = exit_of(host.run([*FILLS, str(disk / "model"), "700000"], disk_reserve_bytes=500_000)).exit
    assert told.ended_by == "disk_reserve"


def test_what_cannot_be_looked_at_ends_no_run(host: Host) -> None:
    (host.root / "file").touch()
    watched = [str(host.root / "file" / "within"), "", "relative", "/" + 300 * "x", "a\0b"]
    told = exit_of(host.run(python("select.select([], [], [], 1.2)"), watched=watched, disk_reserve_bytes=1)).exit
    assert (told.exit_code, told.ended_by) == (0, None)


HOLDS = """
held = bytearray(60 << 20)
held[::4096] = b"x" * len(held[::4096])
"""


def test_the_memory_of_all_processes_together_is_limited(host: Host) -> None:
    """Neither of the two holds more than the limit."""
    folder = host.run(python(f"os.fork()\n{HOLDS}\nsignal.pause()"), memory_limit_bytes=100 * MIB)
    told = exit_of(folder).exit
    assert (told.exit_code, told.cancelled, told.ended_by) == (-15, False, "memory_limit")
    assert told.max_rss_bytes < 100 * MIB < told.tree_rss_bytes
    assert told.ended_because.startswith("It held 1")
    assert told.ended_because.endswith(" MB of main memory, and a run may hold 104.9 MB.")


def test_memory_that_forks_share_counts_once(host: Host) -> None:
    """As of workers that read data: each seems to hold all that the process held which started them."""
    share = f"{HOLDS}\nfor _ in range(3):\n    if os.fork() == 0: break\nselect.select([], [], [], 2)"
    told = exit_of(host.run(python(share), memory_limit_bytes=120 * MIB)).exit
    assert (told.exit_code, told.ended_by) == (0, None)
    assert 60 * MIB < told.tree_rss_bytes < 120 * MIB


def test_a_clock_that_is_set_back_changes_no_duration(host: Host) -> None:
    """Stood in for by a supervisor that reads another time at the end, as everybody does once the clock was set."""
    folder = host.folder(WAIT_FOR_EVER, time_limit_seconds=0.6)
    told_at = '"ended_at": wall_time(time.time()'
    began = time.monotonic()
    host.start(folder, script=host.changed_script(told_at, f"{told_at} - 86400"))
    told = exit_of(folder).exit
    took = time.monotonic() - began
    begun = folder.read_as("begun.json", Begun)
    assert begun is not None
    assert told.started_at is not None
    assert told.ended_at < begun.wall - timedelta(hours=23)
    assert 0.6 < told.seconds < took
    assert began < begun.monotonic < begun.monotonic + told.seconds < began + took
    assert told.ended_by == "time_limit"


SHOWN = {"ROCR_VISIBLE_DEVICES": "3,1", "HIP_VISIBLE_DEVICES": "3,1", "CUDA_VISIBLE_DEVICES": "3,1"}


@pytest.mark.parametrize(
    ("variable", "given", "expected"),
    [
        ("", SHOWN, SHOWN),
        ("HIP_VISIBLE_DEVICES", SHOWN, {"HIP_VISIBLE_DEVICES": "3,1"}),
        ("HIP_VISIBLE_DEVICES", {"GPU_DEVICE_ORDINAL": "0"}, {"HIP_VISIBLE_DEVICES": "0"}),
        ("HIP_VISIBLE_DEVICES", {}, {}),
    ],
)
def test_of_the_masks_that_a_scheduler_sets_one_is_kept(
    host: Host, variable: str, given: dict[str, str], expected: dict[str, str]
) -> None:
    code = "import json; print(json.dumps({k: v for k, v in os.environ.items() if 'DEVICE' in k}))"
    folder = host.run(python(code), env=given, mask_variable=variable)
    assert exit_of(folder).exit.exit_code == 0
    assert json.loads(folder.read("log")) == expected
