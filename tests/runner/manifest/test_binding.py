"""A manifest is refused when anything that it binds changed, with a sentence that says what."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from runner.errors import Changed, DigestMismatch, NotHere, Refused, RunnerError
from runner.manifest import ManifestContext, check, check_approvals
from runner.settings import ModelSettings, QuarkSettings
from schemas.api import Approval, ApprovedCheckpoint
from schemas.artifacts.analysis import FileFact
from schemas.artifacts.manifest import RunManifest
from schemas.digest import digest
from tests.runner.manifest.bench import Bench, make_bench
from tests.runner.planning.catalogue import with_versions

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def approvals_of(manifest: RunManifest) -> list[Approval]:
    wanted: dict[ApprovedCheckpoint, str] = {
        "analysis": digest(manifest.inputs.model_analysis),
        "plan": digest(manifest.inputs.quant_plan),
        "command": digest(manifest),
    }
    return [Approval(checkpoint=name, digest=exact, by="ada", at=NOW) for name, exact in wanted.items()]


def refusal_of(action: Callable[[], None]) -> RunnerError:
    with pytest.raises(RunnerError) as refusal:
        action()
    return refusal.value


def test_an_untouched_manifest_passes(bench: Bench) -> None:
    manifest = bench.manifest()
    check(manifest, bench.context)
    check_approvals(manifest, approvals_of(manifest))


def test_it_passes_after_a_trip_through_json_with_other_orders_of_keys(bench: Bench) -> None:
    plan = bench.plan(layer_quant_config={"*mlp*": "int8", "*down_proj": "ptpc_fp8", "*self_attn*": "int8"})
    manifest = bench.manifest(plan)
    data = manifest.model_dump(mode="json")
    data["inputs"]["quant_plan"]["layer_quant_config"] = dict(
        sorted(data["inputs"]["quant_plan"]["layer_quant_config"].items())
    )
    again = RunManifest.model_validate(dict(sorted(data.items())))
    check(again, bench.context)
    check_approvals(again, approvals_of(manifest))


def test_a_file_that_was_only_touched_is_the_same_file(bench: Bench) -> None:
    manifest = bench.manifest()
    config = bench.model / "config.json"
    config.write_bytes(config.read_bytes())
    check(manifest, bench.now())


CASES: list[tuple[str, Callable[[Bench], ManifestContext], type[RunnerError], str, str]] = [
    (
        "another version of this program",
        lambda bench: bench.but(made_by="quark-ptq-bot 0.2.0"),
        Changed,
        "runner_changed",
        "made by quark-ptq-bot 0.1.0, and this is quark-ptq-bot 0.2.0",
    ),
    (
        "another torch",
        lambda bench: bench.but(catalogue=with_versions(torch="2.14.0")),
        Changed,
        "runner_changed",
        "torch 2.13.0+cpu -> 2.14.0",
    ),
    (
        "no transformers any more",
        lambda bench: bench.but(catalogue=with_versions(transformers=None)),
        Changed,
        "runner_changed",
        "transformers 5.16.1 -> none",
    ),
    ("another config.json", lambda bench: _rewritten(bench, "config.json"), Changed, "model_changed", "config.json"),
    (
        "another weights header",
        lambda bench: bench.but(
            model_files=[
                fact.model_copy(update={"header_sha256": "1" * 64, "sha256": None}) if fact.header_sha256 else fact
                for fact in bench.context.model_files
            ]
        ),
        Changed,
        "model_changed",
        "model.safetensors has another header",
    ),
    ("another script of ours", lambda bench: _other_script(bench), Changed, "script_changed", "own"),
    ("a kept script that was changed", lambda bench: _tampered(bench), Changed, "script_changed", "another content"),
    (
        "another interpreter",
        lambda bench: bench.but(
            settings=bench.context.settings.model_copy(update={"quark": QuarkSettings(python=Path("/other/python"))})
        ),
        Changed,
        "command_changed",
        "argument 0 is '/opt/venv/bin/python' and should be '/other/python'",
    ),
    (
        "the hub switched on",
        lambda bench: bench.but(settings=bench.context.settings.model_copy(update={"models": ModelSettings(hub=True)})),
        Changed,
        "runner_changed",
        "HF_DATASETS_OFFLINE is 1 in the manifest and absent here",
    ),
    (
        "an entry point that is gone",
        lambda bench: bench.with_host(entry_points={}),
        Refused,
        "plan_blocked",
        "own was not found",
    ),
    (
        "a disk that has filled up",
        lambda bench: bench.with_host(disk_free_bytes=1000),
        Refused,
        "plan_blocked",
        "free disk",
    ),
    (
        "a new calibration file",
        lambda bench: bench.but(dataset_files=[FileFact(name="calibration.txt", size_bytes=1, mtime_ns=1)]),
        Changed,
        "dataset_changed",
        "calibration.txt is new",
    ),
    (
        "an engine without the scheme",
        lambda bench: bench.but(catalogue=bench.context.catalogue.model_copy(update={"schemes": {}})),
        Refused,
        "plan_blocked",
        "no scheme fp8",
    ),
]


def _rewritten(bench: Bench, name: str) -> ManifestContext:
    (bench.model / name).write_text("{}", encoding="utf-8")
    return bench.now()


def _other_script(bench: Bench) -> ManifestContext:
    bench.own_script.write_text("print('another')\n", encoding="utf-8")
    return bench.context


def _tampered(bench: Bench) -> ManifestContext:
    kept = next((bench.folder / "state" / "content").glob("*/*.py"))
    kept.chmod(0o644)
    kept.write_text("import evil\n", encoding="utf-8")
    return bench.context


@pytest.mark.parametrize(("what", "changed", "kind", "code", "words"), CASES, ids=[case[0] for case in CASES])
def test_what_changed_is_said(
    bench: Bench,
    what: str,
    changed: Callable[[Bench], ManifestContext],
    kind: type[RunnerError],
    code: str,
    words: str,
) -> None:
    manifest = bench.manifest()
    refusal = refusal_of(lambda: check(manifest, changed(bench)))
    assert type(refusal) is kind, what
    assert refusal.code == code
    assert words in refusal.message


def test_an_entry_point_that_moved_is_said(gpu_bench: Bench) -> None:
    manifest = gpu_bench.manifest()
    before = Path(gpu_bench.context.host.entry_points["quantize_quark"])
    moved = before.rename(before.with_name("moved.py"))
    context = gpu_bench.with_host(entry_points={**gpu_bench.context.host.entry_points, "quantize_quark": str(moved)})
    refusal = refusal_of(lambda: check(manifest, context))
    assert (refusal.code, "moved from" in refusal.message) == ("runner_changed", True)


def test_a_changed_quantize_quark_is_said(gpu_bench: Bench) -> None:
    manifest = gpu_bench.manifest()
    script = Path(gpu_bench.context.host.entry_points["quantize_quark"])
    script.write_text("print('patched')\n", encoding="utf-8")
    assert refusal_of(lambda: check(manifest, gpu_bench.context)).code == "script_changed"
    script.unlink()
    assert isinstance(refusal_of(lambda: check(manifest, gpu_bench.context)), NotHere)


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda m: m["argv"].append("--multi_gpu"), "command_changed", "nothing"),
        (lambda m: m["argv"].pop(), "command_changed", "'512'"),
        (lambda m: m["argv"].__setitem__(3, "/models/other"), "command_changed", "argument 3 (after --model_dir) is"),
        (lambda m: m["inputs"]["quant_plan"].update(global_scheme="int8"), "plan_changed", "The plan"),
        (lambda m: m["inputs"]["model_analysis"].update(analysis_status="partial"), "analysis_changed", "The analysis"),
        (
            lambda m: m["environment"].update(LD_PRELOAD="/tmp/evil.so"),
            "runner_changed",
            "LD_PRELOAD",
        ),
        (lambda m: m["secrets"].append("AWS_SECRET_ACCESS_KEY"), "runner_changed", "secrets"),
        (lambda m: m.update(command="true"), "manifest_changed", "run_manifest.command"),
        (lambda m: m["steps"][3].update(argv=["true"]), "manifest_changed", "run_manifest.steps[3].argv"),
        (lambda m: m["checkpoints"].pop(), "manifest_changed", "run_manifest.checkpoints"),
        (lambda m: m["blocked_by"].append("x"), "manifest_changed", "run_manifest.blocked_by"),
        (lambda m: m["outputs"].update(output_dir="/elsewhere"), "command_changed", "/elsewhere"),
        (lambda m: m["entry_point"].update(path="/tmp/evil.py"), "runner_changed", "moved"),
        (lambda m: m["entry_point"].update(sha256="1" * 64), "script_changed", "111111111111"),
        (lambda m: m["entry_point"].update(name="quantize_quark"), "runner_changed", "is now own"),
        (lambda m: m["versions"].update(quark="0.12"), "runner_changed", "quark 0.12 -> 0.13"),
        (lambda m: m["model_files"].pop(), "model_changed", "is new"),
    ],
)
def test_a_manifest_that_was_changed_is_refused(
    bench: Bench, change: Callable[[dict[str, Any]], object], code: str, words: str
) -> None:
    data = bench.manifest().model_dump(mode="json")
    change(data)
    changed = RunManifest.model_validate(data)
    refusal = refusal_of(lambda: check(changed, bench.context))
    assert refusal.code == code
    assert words in refusal.message


def test_documents_that_were_changed_with_their_digests_still_need_approval(bench: Bench) -> None:
    """Whoever writes a whole new manifest has made a manifest; what is missing is anybody's yes to it."""
    manifest = bench.manifest()
    other = bench.manifest(global_scheme="ptpc_fp8")
    check(other, bench.context)
    refusal = refusal_of(lambda: check_approvals(other, approvals_of(manifest)))
    assert isinstance(refusal, DigestMismatch)
    assert (refusal.code, "checkpoint 2" in refusal.message) == ("approval_outdated", True)


@pytest.mark.parametrize(
    ("missing", "number"), [("analysis", "checkpoint 1"), ("plan", "checkpoint 2"), ("command", "checkpoint 3")]
)
def test_each_checkpoint_needs_its_yes(bench: Bench, missing: str, number: str) -> None:
    manifest = bench.manifest()
    some = [approval for approval in approvals_of(manifest) if approval.checkpoint != missing]
    refusal = refusal_of(lambda: check_approvals(manifest, some))
    assert (refusal.code, number in refusal.message) == ("approval_missing", True)


@pytest.mark.parametrize("outdated", ["analysis", "plan", "command"])
def test_a_yes_to_another_document_is_refused_even_beside_the_right_one(bench: Bench, outdated: Any) -> None:
    manifest = bench.manifest()
    given = [*approvals_of(manifest), Approval(checkpoint=outdated, digest="1" * 64, by="bob", at=NOW)]
    refusal = refusal_of(lambda: check_approvals(manifest, given))
    assert refusal.code == "approval_outdated"
    assert "bob" in refusal.message


def test_two_people_may_say_yes_to_the_same(bench: Bench) -> None:
    manifest = bench.manifest()
    check_approvals(manifest, [*approvals_of(manifest), *approvals_of(manifest)])


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value of a JSON document that holds no others."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if not items:
        yield path
    else:
        for key, item in items:
            yield from leaves(item, (*path, key))


def changed_leaf(leaf: Any, seed: int) -> Any:
    """Another value of the same kind, one character or step away."""
    if isinstance(leaf, bool):
        return not leaf
    if isinstance(leaf, int | float):
        return leaf + 1 + seed % 3
    if isinstance(leaf, str) and leaf:
        place = seed % len(leaf)
        return leaf[:place] + chr((ord(leaf[place]) + 1 + seed % 5) % 0x7E or 0x21) + leaf[place + 1 :]
    if isinstance(leaf, list):
        return ["x"]
    if isinstance(leaf, dict):
        return {"x": "fp8"}
    return "x"


@pytest.fixture(scope="module")
def module_bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return make_bench(tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="module")
def full_manifest(module_bench: Bench) -> RunManifest:
    return module_bench.manifest(
        layer_quant_config={"*mlp*": "int8"}, algorithm="smoothquant", exclude_layers=["lm_head", "*o_proj"]
    )


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_one_changed_byte_anywhere_is_refused(
    module_bench: Bench, full_manifest: RunManifest, data: st.DataObject
) -> None:
    manifest = full_manifest
    plain = manifest.model_dump(mode="json")
    path = data.draw(st.sampled_from(list(leaves(plain))))
    changed = copy.deepcopy(plain)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = changed_leaf(place[path[-1]], data.draw(st.integers(0, 10_000)))
    try:
        other = RunManifest.model_validate(changed)
    except ValidationError:
        return  # refused already as a document
    assume(other != manifest)
    with pytest.raises(RunnerError):
        check_approvals(other, approvals_of(manifest))
    file_times = path[0] == "model_files"  # a small file that was only touched is the same file
    if not file_times:
        with pytest.raises(RunnerError):
            check(other, module_bench.context)
