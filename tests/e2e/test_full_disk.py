"""A disk that fills while a result is exported: the run fails and says so, and the daemon goes on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from schemas.runs import Run, RunState
from tests.e2e.host import GRACE_SECONDS, Host
from tests.peers import interpreter

SIZE_MIB = 48
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")


@contextmanager
def on_a_small_disk(tmp_path: Path, reserve: int) -> Iterator[Host]:
    """A host whose results go to a disk of 48 MiB."""
    host = Host(tmp_path / "host", limits={"grace_seconds": GRACE_SECONDS, "disk_reserve_bytes": reserve})
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "tmpfs", str(host.outputs)], check=True)
    try:
        host.start()
        yield host
    finally:
        host.stop()
        subprocess.run(["umount", "--lazy", str(host.outputs)], check=True)


def failed_run(host: Host, mib: int) -> Run:
    interpreter.tell(host.engine, fills=mib)
    return host.wait_for(host.submit(host.manifest("out")).id, RunState.FAILED, seconds=60)


def is_set_apart_and_the_next_succeeds(host: Host, failed: Run) -> None:
    assert failed.partial_output == f"{failed.output_dir}.partial-{failed.id}"
    assert (Path(failed.partial_output) / "model.safetensors").stat().st_size > 1 << 20
    assert not Path(failed.output_dir).exists(), "what is there looks like a model"
    (Path(failed.partial_output) / "model.safetensors").unlink()
    interpreter.tell(host.engine)
    again = host.submit(host.manifest("out"), "again")
    assert host.wait_for(again.id, RunState.SUCCEEDED, seconds=60).output_dir == failed.output_dir


def test_an_export_into_a_full_disk_fails_for_that_reason(tmp_path: Path) -> None:
    with on_a_small_disk(tmp_path, reserve=0) as host:
        failed = failed_run(host, 2 * SIZE_MIB)

        assert failed.report is not None
        assert failed.report.failure == "host"
        assert "full" in failed.reason, failed.reason
        assert any("No space left on device" in line for line in failed.report.evidence), failed.report.evidence
        is_set_apart_and_the_next_succeeds(host, failed)


def test_a_run_is_ended_before_it_takes_the_reserve(tmp_path: Path) -> None:
    with on_a_small_disk(tmp_path, reserve=16 << 20) as host:
        failed = failed_run(host, SIZE_MIB - 8)

        assert failed.code == "disk_reserve"
        assert "and 16.8 MB must stay free there" in failed.reason, failed.reason
        assert failed.report is not None
        assert failed.report.failure == "host"
        is_set_apart_and_the_next_succeeds(host, failed)
