"""Logs of any length and kind: only what is needed is read, memory stays small, and what is no file is refused."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.errors import NotHere
from runner.runs.diagnosis import diagnose_file
from schemas.artifacts.report import FailureClass
from tests.runner.runs.test_documents import NO_FILES

MEMORY = b"torch.OutOfMemoryError: HIP out of memory. Tried to allocate 16.00 GiB.\n"
WARNING = b"WARNING [kv_cache.py:151] Using KV cache scaling factor 1.0 for fp8_e4m3. If this is unintended\n"
SERVED = b'INFO:     127.0.0.1:40312 - "GET /health HTTP/1.1" 200 OK\n'
MIB = 1 << 20


def written(path: Path, *parts: bytes) -> Path:
    with path.open("wb") as file:
        for part in parts:
            file.write(part)
    return path


@pytest.mark.parametrize("make", NO_FILES)
def test_what_is_no_regular_file_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "log")
    if (tmp_path / "log").is_file():  # a link to a file: whoever names a log means what it points to
        return
    with pytest.raises(NotHere, match="cannot be read") as told:
        diagnose_file(tmp_path / "log", 1)
    assert "model folder" not in told.value.hint


def test_a_warning_long_before_the_end_is_found(tmp_path: Path) -> None:
    log = written(tmp_path / "log", WARNING, *[SERVED * 20_000] * 8)
    report = diagnose_file(log, None)
    assert report.failure is FailureClass.COMPATIBILITY
    assert report.status == "partial"
    assert "scaling factor 1.0" in report.evidence[0]


def test_the_latest_failure_of_a_long_log_is_told(tmp_path: Path) -> None:
    log = written(tmp_path / "log", b"KeyError: 'a'\n", SERVED * 30_000, MEMORY, SERVED * 30_000)
    assert diagnose_file(log, None).failure is FailureClass.MEMORY


def test_a_failure_between_two_blocks_is_found(tmp_path: Path) -> None:
    for shift in range(-40, 41, 20):
        after = b"x" * (MIB + 256 * 1024 + shift - 1) + b"\n"
        log = written(tmp_path / "log", SERVED * 20_000, MEMORY, after)
        assert diagnose_file(log, 1).failure is FailureClass.MEMORY


def test_what_was_run_stands_at_the_beginning(tmp_path: Path) -> None:
    command = b"+ python quantize_quark.py --quant_scheme mxfp4 --device cpu --skip_evaluation\n"
    log = written(tmp_path / "log", command, b"[QUARK-INFO]: x\n" * 60_000)
    assert diagnose_file(log, 0).failure is FailureClass.EVALUATION


@pytest.mark.parametrize(
    "filler", [SERVED, b"[QUARK-ERROR]: Error rate 0.1, no Exception, Killed by nobody\n", b"\0" * 64]
)
def test_memory_does_not_grow_with_the_log(tmp_path: Path, filler: bytes) -> None:
    log = written(tmp_path / "log", *[filler * (4 * MIB // len(filler))] * 4)
    os.truncate(log, 1 << 28)  # the rest is a hole
    tracemalloc.start()
    report = diagnose_file(log, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24 * MIB
    assert report.failure is FailureClass.UNKNOWN


@given(data=st.binary(max_size=2000), exit_code=st.sampled_from([None, 0, 1, -9, 137]))
@settings(max_examples=60, deadline=None)
def test_any_bytes_make_a_report(tmp_path_factory: pytest.TempPathFactory, data: bytes, exit_code: int | None) -> None:
    report = diagnose_file(written(tmp_path_factory.mktemp("any") / "log", data), exit_code)
    assert "class" in json.loads(report.model_dump_json())
    assert report.summary.isprintable()
