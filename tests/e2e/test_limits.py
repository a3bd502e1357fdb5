"""The limits of runner.yaml reach a run, and one that is reached is told as the run's failure."""

from __future__ import annotations

import json
from pathlib import Path

from schemas.runs import RunState
from tests.e2e.host import GRACE_SECONDS, running_host
from tests.peers import interpreter

LIMITS = {"grace_seconds": GRACE_SECONDS, "disk_reserve_bytes": 4096, "run_seconds": 1.5, "run_memory_bytes": 10**12}


def test_a_run_that_takes_too_long_has_failed(tmp_path: Path) -> None:
    with running_host(tmp_path / "h", limits=LIMITS) as host:
        interpreter.tell(host.engine, wait_for=str(host.folder / "never"))
        manifest = host.manifest()
        run = host.submit(manifest).id
        ended = host.wait_for(run, RunState.FAILED, RunState.CANCELLED, RunState.SUCCEEDED)
        assert (ended.state, ended.code) == (RunState.FAILED, "time_limit")
        assert "It took longer than 1.5 s, which is the longest that a run may take." in ended.reason
        launch = json.loads((host.run_folder(run) / "launch.json").read_text())
        assert launch["watched"] == [manifest.outputs.output_dir]
        assert (launch["disk_reserve_bytes"], launch["memory_limit_bytes"]) == (4096, 10**12)
        assert not host.processes()
