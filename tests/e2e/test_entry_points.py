"""The published script from a checkout: run where it lies, unchanged, in a working directory of the run's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.errors import RunnerError
from schemas.artifacts.plan import CalibrationChanges
from schemas.runs import RunState
from tests.e2e.host import Host
from tests.peers import interpreter

PLACE = Path("examples/torch/language_modeling/llm_ptq/quantize_quark.py")


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Host]:
    """A host with a checkout and a mirror of the named datasets."""
    script = tmp_path / "Quark" / PLACE
    script.parent.mkdir(parents=True)
    script.write_text("# stands for the published script\n")
    host = Host(tmp_path / "h")
    host.configure(quark={"python": str(host.settings.quark.python), "checkout": str(tmp_path / "Quark")})
    for name in ("mit-han-lab/pile-val-backup", "Salesforce/wikitext"):
        (host.mirror / name).mkdir(parents=True)
        (host.mirror / name / "validation.jsonl").write_text('{"text": "some"}\n')
    try:
        host.start()
        yield host
    finally:
        host.stop()


def test_the_script_of_the_checkout_runs_where_it_lies(checkout: Host) -> None:
    interpreter.tell(checkout.engine)
    manifest = checkout.manifest(calibration=None, entry_point="quantize_quark")
    script = checkout.folder.parent / "Quark" / PLACE
    assert manifest.argv[1] == str(script)
    assert "--no_trust_remote_code" in manifest.argv
    assert "--exclude_layers" not in manifest.argv
    run = checkout.submit(manifest)
    ended = checkout.wait_for(run.id, RunState.SUCCEEDED, RunState.FAILED)
    assert ended.state is RunState.SUCCEEDED, ended.reason
    work = checkout.run_folder(run.id) / "work"
    assert (work / "mit-han-lab" / "pile-val-backup" / "validation.jsonl").read_text() == '{"text": "some"}\n'
    assert script.read_text() == "# stands for the published script\n"


def test_a_checkout_that_changed_after_the_approvals_is_refused(checkout: Host) -> None:
    manifest = checkout.manifest(calibration=None, entry_point="quantize_quark")
    (checkout.folder.parent / "Quark" / PLACE).write_text("# another one\n")
    with pytest.raises(RunnerError) as caught:
        checkout.submit(manifest)
    assert caught.value.code == "script_changed"
    assert "quantize_quark" in caught.value.message
    assert checkout.starts() == 0


@pytest.mark.parametrize("dataset", ["mit-han-lab/pile-val-backup", "Salesforce/wikitext"])
def test_data_that_changed_after_the_approvals_is_refused(checkout: Host, dataset: str) -> None:
    """What is calibrated on, under whichever name, and what is measured on."""
    calibration = CalibrationChanges(dataset="pileval_for_awq_benchmark")
    manifest = checkout.manifest(calibration=calibration, entry_point="quantize_quark")
    (checkout.mirror / dataset / "validation.jsonl").write_text('{"text": "other"}\n')
    with pytest.raises(RunnerError) as caught:
        checkout.submit(manifest)
    assert caught.value.code == "dataset_changed"
    assert f"{dataset}/validation.jsonl" in caught.value.message
