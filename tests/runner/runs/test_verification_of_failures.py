"""The report on a run whose command failed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runner.runs.tables import ExclusionTable, ReplacementTable
from runner.runs.verification import verify
from schemas.artifacts.plan import Calibration, Estimates
from schemas.artifacts.report import FailureClass, Measured
from tests.runner.planning.catalogue import with_gpu_torch
from tests.runner.planning.hosts import CPU, MI300X
from tests.runner.runs.exported import Export, catalogue, detail, evidence_of, manifest_for, outcomes

CATALOGUE = catalogue()
GPU_CATALOGUE = with_gpu_torch()
KV = "llama-fp8-kv"

TRACE = (
    "Traceback (most recent call last):",
    '  File "quantize.py", line 3, in <module>',
    "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 16.00 GiB.",
)


@dataclass(frozen=True)
class Failed:
    """How a command failed, and what the report says."""

    evidence: dict[str, Any]
    failure: FailureClass
    says: str


FAILED = {
    "gpu memory": Failed({"exit_code": 1, "last_lines": TRACE}, FailureClass.MEMORY, "The GPU ran out of memory."),
    "killed": Failed({"exit_code": -9}, FailureClass.KILLED, "the host ran out of memory"),
    "killed in a container": Failed({"exit_code": 137}, FailureClass.KILLED, "SIGKILL"),
    "terminated": Failed({"exit_code": -15}, FailureClass.KILLED, "asked to end (SIGTERM)"),
    "time limit": Failed({"exit_code": -15, "ended_by": "time_limit"}, FailureClass.KILLED, "longer than a run may"),
    "time limit, ended politely": Failed(
        {"exit_code": 0, "ended_by": "time_limit"}, FailureClass.KILLED, "longer than a run may"
    ),
    "disk reserve": Failed(
        {"exit_code": -15, "ended_by": "disk_reserve", "ended_because": "2.0 GB are free on /out, 5.0 GB must be."},
        FailureClass.HOST,
        "2.0 GB are free on /out",
    ),
    "memory limit": Failed(
        {"exit_code": -9, "ended_by": "memory_limit"}, FailureClass.MEMORY, "limit of main memory that a run may use"
    ),
    "killed by the kernel": Failed(
        {"exit_code": -9, "oom_killed": 1}, FailureClass.MEMORY, "killed 1 of its processes"
    ),
    "not started": Failed(
        {"exit_code": None, "could_not_start": "/venv/bin/python: No such file or directory."},
        FailureClass.ENVIRONMENT,
        "could not be started",
    ),
    "unknown": Failed(
        {"exit_code": 1, "last_lines": ("KeyError: 'lm_head'",)}, FailureClass.UNKNOWN, "KeyError: 'lm_head'"
    ),
    "silent": Failed({"exit_code": 3, "last_lines": ()}, FailureClass.UNKNOWN, "printed no exception"),
}


@pytest.mark.parametrize("case", FAILED.values(), ids=FAILED.keys())
def test_a_command_that_failed_is_diagnosed(case: Failed, tmp_path: Path) -> None:
    export = Export.recorded(KV)
    report = verify(manifest_for(export, tmp_path / "nothing"), CATALOGUE, evidence_of(export, **case.evidence))
    assert report.status == "failed"
    assert report.failure is case.failure
    assert case.says in report.cause
    assert report.summary == f"Quantization failed: {report.cause}"
    assert outcomes(report) == {"exit status": "failed"}
    assert report.next_actions
    assert report.size_bytes is None


def test_the_evidence_of_a_failed_command_begins_with_its_exception(tmp_path: Path) -> None:
    export = Export.recorded(KV)
    lines = (*TRACE, "\x1b[32m[QUARK-INFO]: bye\x1b[0m")
    report = verify(manifest_for(export, tmp_path), CATALOGUE, evidence_of(export, exit_code=1, last_lines=lines))
    assert report.evidence[0] == TRACE[-1]
    assert report.evidence[-1] == "[QUARK-INFO]: bye"
    assert len(report.evidence) == len(set(report.evidence)) == 4


def test_a_profile_alone_is_no_model_that_could_be_judged(tmp_path: Path) -> None:
    """The published script writes its profile also when it fails before anything else was written."""
    export = Export.recorded(KV)
    (tmp_path / "quark_profile.yaml").write_text("phases: []\n")
    report = verify(manifest_for(export, tmp_path), CATALOGUE, evidence_of(export, exit_code=1, last_lines=TRACE))
    assert outcomes(report) == {"exit status": "failed"}
    assert not any("serve" in action for action in report.next_actions)


def test_a_full_disk_is_said_twice_over(tmp_path: Path) -> None:
    """The log says why; the folder says that it is no model although it looks like one."""
    export = Export.recorded(KV)
    folder = export.write(tmp_path)
    (folder / "model.safetensors").unlink()
    line = "safetensors._safetensors_rust.SafetensorError: Error while serializing: I/O error: No space left on device"
    report = verify(manifest_for(export, folder), CATALOGUE, evidence_of(export, exit_code=1, last_lines=(line,)))
    assert report.status == "failed"
    assert report.failure is FailureClass.HOST
    assert "only looks like a model" in detail(report, "files")


def test_a_model_that_was_complete_before_the_command_failed_is_named(tmp_path: Path) -> None:
    export = Export.recorded("llama-ptpc_fp8")
    folder = export.write(tmp_path)
    line = "RuntimeError: qdq_mxfp4 is only implemented in CUDA devices!"
    report = verify(manifest_for(export, folder), CATALOGUE, evidence_of(export, exit_code=1, last_lines=(line,)))
    assert report.status == "failed"
    assert report.summary.endswith(f"The model in {folder} was complete by then.")
    assert outcomes(report)["tensor dtypes"] == "ok"
    (folder / "config.json").unlink()
    broken = verify(manifest_for(export, folder), CATALOGUE, evidence_of(export, exit_code=1, last_lines=(line,)))
    assert "complete" not in broken.summary


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    export = Export.recorded(KV)
    report = verify(manifest_for(export, tmp_path / "nothing"), CATALOGUE, evidence_of(export))
    assert report.status == "failed"
    assert report.failure is FailureClass.EXPORT
    assert "No such file or directory" in detail(report, "files")
    assert report.size_bytes is None
    file = tmp_path / "file"
    file.write_text("no folder")
    assert "is not a folder" in detail(verify(manifest_for(export, file), CATALOGUE, evidence_of(export)), "files")


def test_what_may_help_is_offered_and_nothing_else(tmp_path: Path) -> None:
    export = Export.recorded(KV)
    batch = Calibration(batch_size=64, num_calib_data=64, seq_len=128)
    manifest = manifest_for(export, tmp_path, calibration=batch, device="cuda")
    report = verify(manifest, GPU_CATALOGUE, evidence_of(export, exit_code=1, last_lines=TRACE), MI300X)
    assert report.failure is FailureClass.MEMORY
    assert report.offers[0].choices == {"calibration": {"batch_size": 1}}
    assert 1 <= len(report.offers) <= 3
    assert verify(manifest, GPU_CATALOGUE, evidence_of(export, exit_code=1, last_lines=("KeyError: 'x'",))).offers == []
    well = verify(manifest, GPU_CATALOGUE, evidence_of(export), MI300X)
    assert not well.offers or well.status == "failed"


def test_an_offer_does_not_need_to_know_the_host(tmp_path: Path) -> None:
    export = Export.recorded(KV)
    manifest = manifest_for(export, tmp_path, evaluation_intent="smoke", device="cpu")
    lines = ("[INFO]: Evaluating ...", "RuntimeError: qdq_mxfp4 is only implemented in CUDA devices!")
    report = verify(manifest, CATALOGUE, evidence_of(export, exit_code=1, last_lines=lines))
    assert report.failure is FailureClass.EVALUATION
    assert [offer.choices for offer in report.offers] == [{"evaluation_intent": "none"}]


def test_a_collapse_is_offered_a_way_that_loses_less(tmp_path: Path) -> None:
    export = Export.recorded(KV)
    folder = export.write(tmp_path)
    report = verify(manifest_for(export, folder), CATALOGUE, evidence_of(export, quantized_perplexity=400.0), CPU)
    assert report.status == "failed"
    assert report.failure is FailureClass.EVALUATION
    assert report.offers
    assert all(set(offer.choices) <= {"algorithm", "global_scheme"} for offer in report.offers)


def test_a_killed_run_tells_how_much_memory_it_held(tmp_path: Path) -> None:
    export = Export.recorded(KV)
    there = Estimates(host_memory_bytes_there=64_000_000_000)
    manifest = manifest_for(export, tmp_path, estimates=there)
    measured = Measured(seconds=3.0, host_memory_bytes=63_000_000_000)
    report = verify(manifest, CATALOGUE, evidence_of(export, exit_code=-9, measured=measured))
    assert "63.0 GB of this host's 64.0 GB" in report.cause


@pytest.mark.parametrize("program", ["quantize_quark", "quark_cli", "own"])
@pytest.mark.parametrize("export_format", ["hf_format", "gguf"])
def test_tables_that_differ_from_the_plan_are_said_of_every_program(
    program: str, export_format: str, tmp_path: Path
) -> None:
    """The engine's two tables are the same below each program, and all there is where the files cannot be read."""
    export = Export.recorded("llama-ptpc_fp8")
    folder = export.write(tmp_path)
    if export_format == "gguf":
        (folder / "model.gguf").write_bytes(b"GGUF")
    changes = {"entry_point": program, "model_export": export_format}
    manifest = manifest_for(export, folder, **changes)  # type: ignore[arg-type]
    well = verify(manifest, CATALOGUE, evidence_of(export))
    assert outcomes(well)["log: exclusions"] == outcomes(well)["log: replaced modules"] == "ok"
    lost = evidence_of(
        export, exclusions=ExclusionTable({"other": 1}), replacements=ReplacementTable({"Linear": (15, 3)})
    )
    report = verify(manifest, CATALOGUE, lost)
    assert outcomes(report)["log: exclusions"] == outcomes(report)["log: replaced modules"] == "failed"
    assert "lm_head of the plan is not in it" in detail(report, "log: exclusions")
    assert report.status != "success"
    assert any("exclusions" in action for action in report.next_actions)
