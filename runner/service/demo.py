"""The whole workflow on embedded defaults: a small real model, the real engine, and a person at every checkpoint."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.errors import Broken, Refused
from runner.service import asking, terminal
from runner.service.client import Client
from runner.service.demo_host import CALIBRATION, MODEL, TEXT, Prepared, alone, prepare
from runner.service.following import follow
from runner.service.shell import Shell
from runner.settings import RunnerSettings
from schemas.api import IntakeRequest, ManifestRequest, PlanRequest, RunSubmission
from schemas.artifacts.plan import CalibrationChanges, PlanChoices
from schemas.digest import digest
from schemas.runs import RunState

_START_SECONDS = 60.0
_CALIBRATION = CalibrationChanges(dataset=TEXT, **CALIBRATION)


def play(shell: Shell, state: Path, scheme: str) -> None:
    """Go through the four steps with the person at the terminal. Raises RunnerError where one stops."""
    with alone(state):
        _play(shell, prepare(state, shell.say), scheme)


def _play(shell: Shell, host: Prepared, scheme: str) -> None:
    state, output = host.folder, _fresh(host.outputs, f"{MODEL}-{scheme}")
    with _daemon(host.settings, state) as client:
        shell.say("Looking at the engine; the first time takes up to a minute.")
        analysis = client.intake(IntakeRequest(model=str(host.model), output_dir=str(output)))
        shell.show(terminal.analysis_view(analysis.model_analysis))
        approvals = [asking.approved(asking.ANALYSIS, analysis.digest, shell.listen, shell.clock)]

        choices = PlanChoices(global_scheme=scheme, kv_cache_scheme=None, calibration=_CALIBRATION)
        plan = client.plan(PlanRequest(model_analysis=analysis.model_analysis, request=choices))
        shell.show(terminal.plan_view(plan.quant_plan))
        if blocked := plan.quant_plan.blocked_by:
            raise Refused("plan_blocked", f"This plan cannot run: {blocked[0].message}", blocked[0].hint)
        approvals.append(asking.approved(asking.PLAN, plan.digest, shell.listen, shell.clock))

        request = ManifestRequest(
            model_analysis=analysis.model_analysis, quant_plan=plan.quant_plan, output_dir=str(output)
        )
        manifest = client.manifest(request)
        shell.show(terminal.manifest_view(manifest.run_manifest))
        approvals.append(asking.approved(asking.COMMAND, manifest.digest, shell.listen, shell.clock))

        key = f"demo-{digest(manifest.run_manifest)}"
        run = client.submit(RunSubmission(run_manifest=manifest.run_manifest, approvals=approvals, key=key))
        shell.say(f"Run {run.id} is {run.state}.")
        ended = follow(client, run.id, shell.err, shell.tell)
        shell.show(terminal.run_view(ended))
        if ended.state is not RunState.SUCCEEDED:
            raise Refused(
                "run_failed", f"The run {ended.state}: {ended.reason}", f"Its log: {state}/state/runs/{run.id}/log"
            )
        asking.ask(asking.RESULT, shell.listen)
        shell.say(f"Accepted. The quantized model is in {ended.output_dir}")


@contextmanager
def _daemon(settings: RunnerSettings, state: Path) -> Iterator[Client]:
    """A daemon of the demonstration's own. Its log lies beside its state."""
    with (state / "daemon.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "runner.service", "--config", str(state / "runner.yaml"), "serve"],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
    client = Client(settings)
    try:
        _wait_for(client, process, state / "daemon.log")
        yield client
    finally:
        client.close()
        process.terminate()
        process.wait()


def _wait_for(client: Client, process: subprocess.Popen[bytes], log: Path) -> None:
    pause = threading.Event()
    last = time.monotonic() + _START_SECONDS
    while time.monotonic() < last:
        if process.poll() is not None:
            said = log.read_text(errors="replace").strip().splitlines() or ["nothing"]
            raise Broken("no_daemon", f"The daemon ended at once. It said: {said[-1]}", f"See {log}.")
        try:
            client.health()
        except Broken:
            pause.wait(0.1)
        else:
            return
    raise Broken("no_daemon", f"The daemon did not answer within {_START_SECONDS:.0f} s.", f"See {log}.")


def _fresh(root: Path, name: str) -> Path:
    """An output folder that does not exist yet."""
    candidates = (root / (name if number == 1 else f"{name}-{number}") for number in range(1, 10_000))
    return next(path for path in candidates if not path.exists())
