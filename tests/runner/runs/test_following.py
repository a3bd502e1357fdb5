"""Following a log never raises, never waits, and costs what the log holds, not how long it says it is."""

from __future__ import annotations

import json
import os
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.runs.following import LogFollower
from schemas.runs import Phase
from tests.runner.runs.test_documents import NO_FILES

CALIBRATING = '{"ptq": "phase", "phase": "calibrating"}\n'
GIB = 1 << 30


@pytest.mark.parametrize("make", NO_FILES)
def test_what_is_no_regular_file_is_no_log(tmp_path: Path, make: Callable[[Path], None]) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    make(folder / "log")
    follower = LogFollower(folder / "log")
    assert follower.read_on() is None
    assert follower.read_to_end(succeeded=False).percent == 0


def test_no_log_yet(tmp_path: Path) -> None:
    follower = LogFollower(tmp_path / "log")
    assert follower.read_on() is None
    (tmp_path / "log").write_text(CALIBRATING)
    progress = follower.read_on()
    assert progress is not None
    assert progress.phase is Phase.CALIBRATING


def test_a_disk_that_fails_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log").write_text(CALIBRATING)
    follower = LogFollower(tmp_path / "log")

    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "pread", fail)
        progress = follower.read_on()
    assert progress is not None
    assert progress.percent == 0
    assert follower.read_to_end(succeeded=False).phase is Phase.CALIBRATING


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from([10**400, -1, "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
EVENTS = st.fixed_dictionaries(
    {"ptq": ANYTHING | st.sampled_from(["phase", "progress", "perplexity", "memory", "done"])},
    optional={
        key: ANYTHING | st.sampled_from([str(phase) for phase in Phase] + ["original", "quantized"])
        for key in (
            "phase",
            "done",
            "total",
            "rate",
            "seconds_left",
            "of",
            "value",
            "dataset",
            "tokens",
            "gpu_peak_bytes",
        )
    },
).map(lambda event: json.dumps(event).encode())
LINES = st.one_of(
    EVENTS,
    st.binary(max_size=40),
    st.sampled_from(
        [
            b"\0" * 5000,
            b'{"ptq"' + b"[" * 60_000,
            b'{"ptq": ' + b"[" * 60_000,
            b'{"ptq": "perplexity", "tokens": ' + b"9" * 5000 + b"}",
            b'{"ptq": "progress", "phase": "calibrating", "done": NaN, "total": 1e999}',
            b"[INFO]: Perplexity: 1e999999",
            b"AWQ:  50%|##| 9e99G/1e99Y [00:00<9999999:99:99, 1e99kit/s]",
            b"AWQ: 0%| | 0/0 [00:00<?, ?it/s]",
            b"| Exclude pattern | Number of modules excluded |\n| \0 | 9 |",
            "AWQ: ٣%|#| ٣/٣ [00:00<00:00, ٣it/s]".encode(),
        ]
    ),
)


@settings(max_examples=150, deadline=None)
@given(lines=st.lists(LINES, max_size=12))
def test_nothing_in_a_log_raises(lines: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        log.write_bytes(b"\n".join(lines))
        follower = LogFollower(log)
        assert follower.read_on() is not None
        progress = follower.read_to_end(succeeded=True)
    assert progress.percent == 100
    assert json.loads(progress.model_dump_json())
    for count in (follower.evaluated_tokens, follower.gpu_memory_bytes):
        assert count is None or 0 <= count < 2**53


@pytest.mark.parametrize(
    ("tokens", "kept"), [("12", 12), ("0", 0), ("-1", None), ("true", None), ("1" * 400, None), ("1.5", None)]
)
def test_evaluated_tokens_are_a_count(tmp_path: Path, tokens: str, kept: int | None) -> None:
    (tmp_path / "log").write_text('{"ptq": "perplexity", "tokens": ' + tokens + "}\n")
    follower = LogFollower(tmp_path / "log")
    follower.read_on()
    assert follower.evaluated_tokens == kept


@pytest.mark.parametrize(("told", "kept"), [("80000000000", 80 * 10**9), ("0", 0), ("-1", None), ("null", None)])
def test_memory_of_the_gpus_is_a_count(tmp_path: Path, told: str, kept: int | None) -> None:
    (tmp_path / "log").write_text('{"ptq": "memory", "gpu_peak_bytes": ' + told + "}\n")
    follower = LogFollower(tmp_path / "log")
    follower.read_on()
    assert follower.gpu_memory_bytes == kept


def with_hole(log: Path, hole: int, behind: bytes) -> None:
    with log.open("wb") as file:
        file.write(b"the first half of a li")
        file.seek(hole)
        file.write(behind)


def test_a_hole_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_hole(tmp_path / "log", 8 * GIB, b"ne\n" + CALIBRATING.encode() + b"the end")
    reads, pread = [], os.pread

    def counted(descriptor: int, count: int, offset: int) -> bytes:
        reads.append(offset)
        return pread(descriptor, count, offset)

    monkeypatch.setattr(os, "pread", counted)
    tracemalloc.start()
    follower = LogFollower(tmp_path / "log")
    progress = follower.read_to_end(succeeded=False)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert progress.phase is Phase.CALIBRATING
    assert follower.last_lines == ("the first half of a li", "ne", CALIBRATING.strip(), "the end")
    assert most < 32 << 20
    assert len(reads) < 10


def test_a_hole_at_the_end_is_skipped_and_the_log_goes_on_behind_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"begin\n")
    os.truncate(log, 8 * GIB)
    follower = LogFollower(log)
    assert follower.read_on() is not None
    with log.open("ab") as file:
        file.write(CALIBRATING.encode())
    assert follower.read_to_end(succeeded=False).phase is Phase.CALIBRATING
    assert follower.last_lines == ("begin", CALIBRATING.strip())


def test_a_hole_where_the_file_system_knows_of_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "lseek", unknown)
    with_hole(tmp_path / "log", 64 << 20, b"ne\n" + CALIBRATING.encode())
    follower = LogFollower(tmp_path / "log")
    assert follower.read_to_end(succeeded=False).phase is Phase.CALIBRATING
    assert follower.last_lines == ("the first half of a li", "ne", CALIBRATING.strip())


def test_a_bar_that_is_drawn_again_pushes_nothing_out(tmp_path: Path) -> None:
    """What failed one process stands there still when another went on drawing its bar."""
    bars = "".join(
        f"\rCalibrating activations:  {n // 10:2}%|#  | {n}/1000 [00:01<00:03, 6.0it/s]" for n in range(1000)
    )
    (tmp_path / "log").write_text(f"ValueError: the moon is full\n{bars}")
    follower = LogFollower(tmp_path / "log")
    follower.read_to_end(succeeded=False)
    assert follower.last_lines[0] == "ValueError: the moon is full"
    assert "999/1000" in follower.last_lines[-1]
    assert len(follower.last_lines) < 20
