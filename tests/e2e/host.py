"""A host for tests: a real daemon in a real process, with a stand-in for the engine's interpreter."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from runner.errors import RunnerError
from runner.service.client import Client
from runner.settings import load_settings
from schemas.api import Approval, IntakeRequest, ManifestRequest, PlanRequest, RunSubmission
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import CalibrationChanges, PlanChoices
from schemas.digest import digest
from schemas.runs import Run, RunState
from tests.peers import interpreter
from tests.peers.gpus import PretendGpus
from tests.tiny_models import make_tiny_model, tiny_text
from tests.waiting import wait_until

SECRET = "hf_" + "Zq9" * 12
GRACE_SECONDS = 1.0
_MARK = re.compile(r'"mark": *"([^"]+)"')


class Host:
    """One state folder and at most one daemon at a time."""

    def __init__(
        self, folder: Path, python: Path | None = None, pretended: PretendGpus | None = None, **settings: Any
    ) -> None:
        """`pretended` GPUs stand in for this machine's; without them it is as it is."""
        self.folder = folder
        self.pretended = pretended
        self.environment: dict[str, str] = {}
        self.state = folder / "state"
        self.models, self.outputs, self.mirror = folder / "models", folder / "outputs", folder / "datasets"
        for made in (self.models, self.outputs, self.mirror):
            made.mkdir(parents=True)
        self.model = self.models / "tiny"
        make_tiny_model(self.model, model_type="llama")
        tiny_text(self.mirror / "text.txt", words=4000)
        self.engine = folder / "engine"
        python = python or interpreter.install(self.engine)
        if pretended is not None:
            interpreter.build_for_rocm(self.engine)
        self.config = folder / "runner.yaml"
        self._values = self._settings(python)
        self.daemon: subprocess.Popen[bytes] | None = None
        self.configure(**settings)
        self.client = Client(self.settings)

    def _settings(self, python: Path) -> dict[str, Any]:
        return {
            "state_dir": str(self.state),
            "quark": {"python": str(python)},
            "models": {"roots": [str(self.models)]},
            "outputs": {"roots": [str(self.outputs)]},
            "datasets": {"mirror": str(self.mirror)},
            "limits": {"grace_seconds": GRACE_SECONDS, "disk_reserve_bytes": 0},
        }

    def configure(self, **settings: Any) -> None:
        """Write runner.yaml anew with some settings replaced; the next daemon reads it."""
        self._values |= settings
        self.config.write_text(yaml.safe_dump(self._values))
        self.settings = load_settings(self.config)

    def start(self) -> None:
        """Start the daemon and wait until it answers."""
        with (self.folder / "daemon.log").open("ab") as log:
            self.daemon = subprocess.Popen(
                [sys.executable, *self._serve()],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "HF_TOKEN": SECRET, **self.environment},
            )
        wait_until(self._answers, 30, f"the daemon does not answer: {self.daemon_log()[-2000:]}")

    def _serve(self) -> list[str]:
        if self.pretended is not None:
            return ["-m", "tests.e2e.pretend_daemon", str(self.config), str(self.pretended.root)]
        return ["-m", "runner.service", "--config", str(self.config), "serve"]

    def kill(self) -> None:
        """SIGKILL, as a crash would."""
        assert self.daemon is not None
        self.daemon.kill()
        self.daemon.wait()
        self.daemon = None
        self.client.close()  # its connections lead to a daemon that is gone
        self.client = Client(self.settings)

    def stop(self) -> None:
        """End the daemon and everything that it ever started."""
        self.client.close()
        if self.daemon is not None:
            self.daemon.terminate()
            self.daemon.wait(20)
            self.daemon = None
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def daemon_log(self) -> str:
        """What the daemon said."""
        path = self.folder / "daemon.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def manifest(self, output: str = "out", **choices: Any) -> RunManifest:
        """Steps 1 to 3 with fp8 on the tiny model."""
        analysis = self.client.intake(IntakeRequest(model=str(self.model))).model_analysis
        calibration = CalibrationChanges(dataset="text.txt", num_calib_data=4, seq_len=32)
        asked = PlanChoices(**{"global_scheme": "fp8", "kv_cache_scheme": None, "calibration": calibration, **choices})
        plan = self.client.plan(PlanRequest(model_analysis=analysis, request=asked)).quant_plan
        request = ManifestRequest(model_analysis=analysis, quant_plan=plan, output_dir=str(self.outputs / output))
        return self.client.manifest(request).run_manifest

    def submit(self, manifest: RunManifest, key: str = "key") -> Run:
        """Step 4 with the three approvals."""
        return self.client.submit(submission(manifest, key))

    def state_of(self, run: str) -> RunState:
        """Where a run stands."""
        return self.client.run(run).state

    def wait_for(self, run: str, *states: RunState, seconds: float = 30) -> Run:
        """Wait until the run is in one of these states."""
        wait_until(lambda: self.state_of(run) in states, seconds, f"{run} is {self.state_of(run)}, not {states}")
        return self.client.run(run)

    def run_folder(self, run: str) -> Path:
        """The run's folder."""
        return self.state / "runs" / run

    def supervisors(self) -> list[int]:
        """Pids of living supervisors of this host."""
        return [
            pid for pid in _pids() if b"runs/supervisor" in _cmdline(pid) and str(self.state).encode() in _cmdline(pid)
        ]

    def processes(self) -> list[int]:
        """Pids of everything that runs for this host: supervisors, and processes that carry a mark of its runs.

        The whole mark: a run's name comes from its key, so that hosts of other tests have runs of the same name.
        """
        records = (self.state / "runs").glob("run-*/*.json")
        marks = {f"PTQ_RUN_MARK={mark}".encode() for file in records for mark in _MARK.findall(_text(file))}
        marked = [pid for pid in _pids() if not marks.isdisjoint(_environ(pid).split(b"\0"))]
        return sorted({*self.supervisors(), *marked})

    def starts(self) -> int:
        """How often the approved command was started."""
        return interpreter.starts(self.engine)

    def _answers(self) -> bool:
        path, parts = self.settings.socket_path, urlsplit(self.settings.listen_url)
        # The client's library leaks a socket that cannot connect.
        with socket.socket(socket.AF_UNIX if path else socket.AF_INET) as probe:
            if probe.connect_ex(str(path) if path else (parts.hostname or "", parts.port or 0)) != 0:
                return False
        try:
            self.client.health()
        except RunnerError:
            return False
        return True


def submission(manifest: RunManifest, key: str = "key") -> RunSubmission:
    """A submission with the three approvals that the manifest needs."""
    inputs = manifest.inputs
    digests = {"analysis": inputs.analysis_digest, "plan": inputs.plan_digest, "command": digest(manifest)}
    approvals = [
        Approval(checkpoint=checkpoint, digest=value, by="ada", at=datetime.now(UTC), where="test")
        for checkpoint, value in digests.items()
    ]
    return RunSubmission(run_manifest=manifest, approvals=approvals, key=key)


@contextmanager
def running_host(folder: Path, **settings: Any) -> Iterator[Host]:
    """A host with its daemon up, and nothing left of it afterwards."""
    host = Host(folder, **settings)
    try:
        host.start()
        yield host
    finally:
        host.stop()


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _cmdline(pid: int) -> bytes:
    return _read(pid, "cmdline")


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _environ(pid: int) -> bytes:
    return _read(pid, "environ")


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
