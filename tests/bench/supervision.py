"""`python -m tests.bench.supervision [MODEL]`: what daemon and supervisor cost while a real quantization runs.

The runner's own script with the installed engine quantizes a model on the CPU. From its begin to its end the processor
time of the daemon, of the run's supervisor and of the run itself are read from the kernel, in the same run.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from schemas.api import IntakeRequest, ManifestRequest, PlanRequest
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import CalibrationChanges, PlanChoices
from tests.e2e.host import Host
from tests.tiny_models import make_tiny_model, tiny_text
from tests.waiting import wait_until

CLAIM = 0.01
_TICK = 1 / os.sysconf("SC_CLK_TCK")
_LONGEST_SECONDS = 1800


@dataclass(frozen=True)
class Supervision:
    """Seconds of processor time between the begin and the end of one run, and how long that was."""

    run: float
    supervisor: float
    daemon: float
    seconds: float

    @property
    def share(self) -> float:
        """What daemon and supervisor took together, as a part of what the run took."""
        return (self.supervisor + self.daemon) / self.run

    def __str__(self) -> str:
        """All of them."""
        return (
            f"a real quantization took {self.run:.2f} s of processor time in {self.seconds:.1f} s; its supervisor took "
            f"{self.supervisor:.2f} s and the daemon {self.daemon:.2f} s: together {self.share:.2%} of it "
            f"(claimed: at most {CLAIM:.0%})"
        )


def measure(folder: Path, model: Path | None = None, samples: int = 32) -> Supervision:
    """Quantize a model, or a tiny one, with a real daemon in `folder`."""
    host = Host(folder, python=Path(sys.executable))
    try:
        if model is not None:
            host.model = _linked(model, host.models / "given")
        else:
            host.model = make_tiny_model(host.models / "given", "llama")
        tiny_text(host.mirror / "text.txt", words=20_000)  # calibration and evaluation take different parts of it
        host.start()
        manifest = _manifest(host, samples)
        run = host.submit(manifest).id
        place = host.run_folder(run)
        wait_until((place / "child.json").exists, 120, "the run does not begin")
        return _watch(host, place)
    finally:
        host.stop()


def _manifest(host: Host, samples: int) -> RunManifest:
    client = host.client
    analysis = client.intake(IntakeRequest(model=str(host.model))).model_analysis
    calibration = CalibrationChanges(dataset="text.txt", num_calib_data=samples, seq_len=64)
    asked = PlanChoices(global_scheme="fp8", kv_cache_scheme=None, entry_point="own", calibration=calibration)
    plan = client.plan(PlanRequest(model_analysis=analysis, request=asked)).quant_plan
    request = ManifestRequest(model_analysis=analysis, quant_plan=plan, output_dir=str(host.outputs / "out"))
    return client.manifest(request).run_manifest


def _watch(host: Host, place: Path) -> Supervision:
    """Look at the kernel's counts until the run has ended. Nobody asks the daemon anything meanwhile."""
    if host.daemon is None:
        raise LookupError("the daemon is not running")
    supervisor = int(json.loads((place / "begun.json").read_text())["pid"])
    daemon_before = _own(host.daemon.pid)
    seen: dict[int, float] = {}
    supervising = 0.0

    def look() -> bool:
        nonlocal supervising
        supervising = max(supervising, _own(supervisor))
        for pid in _below(supervisor):
            seen[pid] = max(seen.get(pid, 0.0), _own(pid))
        return (place / "exit.json").exists()

    wait_until(look, _LONGEST_SECONDS, "the run does not end")
    daemon = _own(host.daemon.pid) - daemon_before
    end = json.loads((place / "exit.json").read_text())
    if end["exit_code"] != 0:
        raise AssertionError((place / "log").read_text(errors="replace")[-2000:])
    return Supervision(sum(seen.values()), supervising, daemon, float(end["seconds"]))


def _own(pid: int) -> float:
    """Seconds of processor time of a process without its children; 0 for one that is gone."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) * _TICK if fields else 0.0


def _below(ancestor: int) -> Iterator[int]:
    """All descendants of a process."""
    parents = {int(entry.name): fields[1] for entry in Path("/proc").iterdir() if (fields := _named(entry))}
    found = {ancestor}
    for _ in range(8):  # generations
        found |= {pid for pid, parent in parents.items() if int(parent) in found}
    yield from found - {ancestor}


def _named(entry: Path) -> list[str]:
    return _stat(int(entry.name)) if entry.name.isdecimal() else []


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may hold blanks; none for a process that is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def _linked(source: Path, target: Path) -> Path:
    """The model inside the roots, since links out of them are refused. Copied where it lies on another disk."""
    target.mkdir()
    for file in source.iterdir():
        if file.is_file():
            try:
                (target / file.name).hardlink_to(file)
            except OSError:
                (target / file.name).write_bytes(file.read_bytes())
    return target


def main(arguments: list[str]) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        print(measure(Path(folder) / "host", Path(arguments[0]) if arguments else None))


if __name__ == "__main__":
    main(sys.argv[1:])
