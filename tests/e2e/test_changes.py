"""What changes after the approvals is refused with a sentence that says what changed; nothing runs."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.errors import RunnerError
from schemas.artifacts.manifest import RunManifest
from schemas.digest import digest
from schemas.runs import RunState
from tests.e2e.host import Host, submission
from tests.peers import interpreter


def _edited(manifest: RunManifest, edit: Callable[[dict[str, Any]], None]) -> RunManifest:
    data = manifest.model_dump(mode="json")
    edit(data)
    return RunManifest.model_validate(data)


def _plan_scheme(data: dict[str, Any]) -> None:
    data["inputs"]["quant_plan"]["global_scheme"] = "fp9"


def _argument(data: dict[str, Any]) -> None:
    data["argv"][data["argv"].index("--num_calib_data") + 1] = "5"


def _shown_command_only(data: dict[str, Any]) -> None:
    data["command"] = data["command"].replace("--num_calib_data 4", "--num_calib_data 5")


def _variable(data: dict[str, Any]) -> None:
    data["environment"]["LD_PRELOAD"] = "/tmp/evil.so"


def _analysis(data: dict[str, Any]) -> None:
    data["inputs"]["model_analysis"]["model"]["hidden_layers"] = 3


def _maker(data: dict[str, Any]) -> None:
    data["made_by"] = "quark-ptq-bot 99.0"


EDITS: list[tuple[Callable[[dict[str, Any]], None], str, str]] = [
    (_plan_scheme, "plan_changed", "plan"),
    (_argument, "command_changed", "--num_calib_data"),
    (_shown_command_only, "manifest_changed", "command"),
    (_variable, "runner_changed", "LD_PRELOAD"),
    (_analysis, "analysis_changed", "analysis"),
    (_maker, "runner_changed", "99.0"),
]


@pytest.mark.parametrize(("edit", "code", "word"), EDITS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_manifest_changed_by_hand_is_refused(
    host: Host, edit: Callable[[dict[str, Any]], None], code: str, word: str
) -> None:
    approved = host.manifest()
    changed = submission(approved).model_copy(update={"run_manifest": _edited(approved, edit)})
    with pytest.raises(RunnerError) as caught:
        host.client.submit(changed)
    assert caught.value.code == code
    assert word in caught.value.message
    assert host.client.runs(None, 10) == []
    assert host.starts() == 0


def _flip_last(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.chmod(0o644)
    path.write_bytes(bytes(data))


def _config(host: Host, _: RunManifest) -> None:
    config = json.loads((host.model / "config.json").read_text())
    (host.model / "config.json").write_text(json.dumps(config | {"rope_theta": 12345.0}))


def _weight_header(host: Host, _: RunManifest) -> None:
    """One byte of the header, with the file's size and times as they were."""
    path = host.model / "model.safetensors"
    before = path.stat()
    data = bytearray(path.read_bytes())
    length = struct.unpack("<Q", data[:8])[0]
    at = data.index(b"q_proj", 8, 8 + length)
    data[at] = ord("p")
    path.write_bytes(bytes(data))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _script(_: Host, manifest: RunManifest) -> None:
    _flip_last(Path(manifest.entry_point.path))


def _calibration_text(host: Host, _: RunManifest) -> None:
    _flip_last(host.mirror / "text.txt")


def _versions(host: Host, _: RunManifest) -> None:
    (host.engine / "versions.json").write_text(json.dumps({"transformers": "5.16.2"}))


CHANGES: list[tuple[Callable[[Host, RunManifest], None], str, str]] = [
    (_config, "model_changed", "config.json"),
    (_weight_header, "model_changed", "model.safetensors"),
    (_script, "script_changed", "quantize.py"),
    (_calibration_text, "dataset_changed", "text.txt"),
    (_versions, "runner_changed", "5.16.2"),
]


@pytest.mark.parametrize(("change", "code", "word"), CHANGES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_host_that_changed_after_the_approvals_refuses_the_run(
    host: Host, change: Callable[[Host, RunManifest], None], code: str, word: str
) -> None:
    manifest = host.manifest()
    change(host, manifest)
    with pytest.raises(RunnerError) as caught:
        host.submit(manifest)
    assert (caught.value.code, word in caught.value.message) == (code, True), caught.value
    assert host.starts() == 0


@pytest.mark.parametrize(("change", "code", "word"), CHANGES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_host_that_changed_while_the_run_waited_does_not_start_it(
    host: Host, change: Callable[[Host, RunManifest], None], code: str, word: str
) -> None:
    go = host.folder / "go"
    interpreter.tell(host.engine, wait_for=str(go))
    first = host.submit(host.manifest("first"), "first").id
    waiting = host.manifest("second")
    run = host.submit(waiting, "second").id
    host.wait_for(first, RunState.RUNNING)
    change(host, waiting)
    go.touch()
    ended = host.wait_for(run, RunState.FAILED)
    assert (ended.code, word in ended.reason) == (code, True), ended.reason
    assert host.starts() == 1


def test_approvals_are_needed_for_exactly_these_documents(host: Host) -> None:
    manifest = host.manifest()
    whole = submission(manifest)
    for missing in range(3):
        approvals = [approval for number, approval in enumerate(whole.approvals) if number != missing]
        with pytest.raises(RunnerError) as caught:
            host.client.submit(whole.model_copy(update={"approvals": approvals}))
        assert caught.value.code == "approval_missing"
        assert f"checkpoint {missing + 1}" in caught.value.message
    for outdated in range(3):
        approvals = [
            approval.model_copy(update={"digest": digest({"another": "document"})}) if number == outdated else approval
            for number, approval in enumerate(whole.approvals)
        ]
        with pytest.raises(RunnerError) as caught:
            host.client.submit(whole.model_copy(update={"approvals": approvals}))
        assert caught.value.code == "approval_outdated"
        assert f"checkpoint {outdated + 1}" in caught.value.message
    assert host.starts() == 0


def test_a_key_belongs_to_one_manifest(host: Host) -> None:
    first = host.submit(host.manifest("one"), "key")
    with pytest.raises(RunnerError) as caught:
        host.submit(host.manifest("two"), "key")
    assert caught.value.code == "key_used"
    assert first.id in caught.value.message


@pytest.mark.parametrize("second", ["out", "out/inside", "."])
def test_an_output_folder_is_reserved_when_a_run_is_handed_in(host: Host, second: str) -> None:
    go = host.folder / "go"
    interpreter.tell(host.engine, wait_for=str(go))
    manifests = [host.manifest("deep/out"), host.manifest(f"deep/{second}")]
    host.submit(manifests[0], "first")
    with pytest.raises(RunnerError) as caught:
        host.submit(manifests[1], "second")
    assert caught.value.code == "output_reserved"
    go.touch()


def test_an_output_that_filled_up_since_is_refused(host: Host) -> None:
    manifest = host.manifest("out")
    (host.outputs / "out").mkdir()
    (host.outputs / "out" / "precious").touch()
    with pytest.raises(RunnerError) as caught:
        host.submit(manifest)
    assert caught.value.code == "output_not_empty"
