"""A standalone script of the site: its copy runs as a real process, and nothing of our own events is expected of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.errors import RunnerError
from schemas.api import IntakeRequest, PlanRequest
from schemas.artifacts.plan import PlanChoices
from schemas.runs import RunState
from tests.e2e.host import Host

ROOT = Path(__file__).parent.parent.parent

SCRIPT = """
import argparse
import os
from pathlib import Path

from parts.layout import export

parser = argparse.ArgumentParser(allow_abbrev=False)
for name in ("model_dir", "output_dir", "quant_scheme", "kv_cache_dtype", "quant_algo", "dataset", "device"):
    parser.add_argument(f"--{name}")
for name in ("num_calib_data", "seq_len", "batch_size"):
    parser.add_argument(f"--{name}", type=int)
parser.add_argument("--layer_quant_scheme", action="append", nargs=2)
parser.add_argument("--exclude_layers", nargs="*")
parser.add_argument("--skip_evaluation", action="store_true")
options = parser.parse_args()
print("\\n[INFO]: Loading model ...")
print(f"the script lies in {Path(__file__).parent}")
print("\\n[INFO]: Exporting hugging face format safetensors...")
export(Path(options.model_dir), Path(options.output_dir), "")
if not options.skip_evaluation:
    print("\\n[INFO] Perplexity: 10.25")
"""
LAYOUT = f"""
import sys

sys.path.insert(0, {str(ROOT)!r})
from tests.peers.interpreter import export
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Host]:
    """A host with a script of its own that needs a file beside it."""
    folder = tmp_path / "site"
    (folder / "parts").mkdir(parents=True)
    (folder / "our_ptq.py").write_text(SCRIPT)
    (folder / "parts" / "layout.py").write_text(LAYOUT)
    host = Host(tmp_path / "h")
    python = str(host.settings.quark.python)
    host.configure(quark={"python": python, "script": str(folder / "our_ptq.py"), "entry_point": "site"})
    (host.mirror / "Salesforce" / "wikitext").mkdir(parents=True)
    try:
        host.start()
        yield host
    finally:
        host.stop()


def test_the_copy_of_a_sites_script_runs_and_is_verified(site: Host) -> None:
    manifest = site.manifest()
    assert manifest.entry_point.name == "site"
    assert list(manifest.entry_point.files) == ["parts/layout.py"]
    run = site.submit(manifest)
    ended = site.wait_for(run.id, RunState.SUCCEEDED, RunState.FAILED)
    assert ended.state is RunState.SUCCEEDED, ended.reason
    assert ended.progress.percent == 100
    report = ended.report
    assert report is not None
    assert report.perplexity is not None
    assert (report.perplexity.quantized, report.perplexity.original) == (10.25, None)
    assert report.perplexity.dataset == ""
    log = (site.run_folder(run.id) / "log").read_text()
    assert f"the script lies in {Path(manifest.entry_point.path).parent}" in log
    assert str(site.state / "content") in manifest.entry_point.path


def test_it_is_among_the_capabilities(site: Host) -> None:
    script = site.folder.parent / "site" / "our_ptq.py"
    assert site.client.capabilities().entry_points["site"] == str(script)


def test_a_file_beside_it_that_changed_after_the_approvals_is_refused(site: Host) -> None:
    manifest = site.manifest()
    (site.folder.parent / "site" / "parts" / "layout.py").write_text("raise SystemExit(1)\n")
    with pytest.raises(RunnerError) as caught:
        site.submit(manifest)
    assert caught.value.code == "script_changed"
    assert "parts/layout.py" in caught.value.message


def test_a_plan_that_it_cannot_be_told_is_blocked_with_those_that_can(site: Host) -> None:
    analysis = site.client.intake(IntakeRequest(model=str(site.model))).model_analysis
    asked = PlanChoices(global_scheme="fp8", kv_cache_scheme=None, data_type="float16")
    plan = site.client.plan(PlanRequest(model_analysis=analysis, request=asked)).quant_plan
    (finding,) = [finding for finding in plan.blocked_by if finding.code == "flag_not_offered"]
    assert finding.message == "site has no flag for data_type (--data_type)."
    assert finding.hint == "Take quantize_quark (not found on this host) or own, or plan without it."


@pytest.mark.quark
def test_a_script_that_calls_the_engine_itself_gives_a_verified_model(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    script = tmp_path / "site" / "quantize_tiny.py"
    script.write_bytes((ROOT / "tests" / "data" / "site" / "quantize_tiny.py").read_bytes())
    host = Host(tmp_path / "h", Path(sys.executable))
    host.configure(quark={"python": sys.executable, "script": str(script), "entry_point": "site"})
    try:
        host.start()
        manifest = host.manifest(evaluation_intent="none")
        ended = host.wait_for(host.submit(manifest).id, RunState.SUCCEEDED, RunState.FAILED, seconds=600)
        assert ended.state is RunState.SUCCEEDED, ended.reason
        assert ended.report is not None
        assert not [check for check in ended.report.checks if check.outcome == "failed"]
        assert {tensor.dtype for tensor in ended.report.tensors} >= {"F8_E4M3"}
    finally:
        host.stop()
