"""Files and models that a command names beside its script: kept under their digest, pinned, or refused."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.errors import BadRequest, Changed, Refused, RunnerError
from runner.manifest import check
from runner.manifest.command import make_job
from runner.manifest.context import ManifestContext
from runner.planning.algorithm_configs import file_bytes
from runner.settings import ModelSettings
from schemas.artifacts.plan import AlgorithmConfig
from tests.runner.manifest.bench import Bench, make_bench

AWQ = {"name": "awq", "model_decoder_layers": "model.layers", "scaling_layers": [{"inp": "q_proj"}]}


def config_of(content: dict[str, Any], algorithm: str = "awq", sha256: str = "") -> AlgorithmConfig:
    made = AlgorithmConfig(algorithm=algorithm, derived_from="llama", content=content, sha256="0" * 64)
    digest = sha256 or hashlib.sha256(file_bytes(made)).hexdigest()
    return made.model_copy(update={"sha256": digest})


def job_with(bench: Bench, context: ManifestContext | None = None, **changes: Any) -> Any:
    plan = bench.plan().model_copy(update=changes)
    return make_job(plan, bench.analysis, bench.output, context or bench.context)


def test_a_written_configuration_lies_under_its_digest(bench: Bench) -> None:
    config = config_of(AWQ)
    job = job_with(bench, algorithm="awq", algorithm_configs=[config])
    path = Path(job.algorithm_files["awq"])
    assert path == bench.folder / "state" / "content" / config.sha256 / "awq.json"
    assert json.loads(path.read_bytes()) == AWQ
    assert path.read_bytes() == file_bytes(config)


def test_a_kept_configuration_that_was_changed_is_refused(bench: Bench) -> None:
    job = job_with(bench, algorithm_configs=[config_of(AWQ)])
    path = Path(job.algorithm_files["awq"])
    path.chmod(0o644)
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(Changed) as refusal:
        job_with(bench, algorithm_configs=[config_of(AWQ)])
    assert refusal.value.code == "script_changed"


@pytest.mark.parametrize(
    ("config", "code"),
    [
        (config_of(AWQ, sha256="1" * 64), "plan_inconsistent"),
        (config_of(AWQ, algorithm="../awq"), "bad_value"),
        (config_of(AWQ, algorithm="-awq"), "bad_value"),
    ],
)
def test_a_configuration_that_is_not_what_it_says_is_refused(bench: Bench, config: AlgorithmConfig, code: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        job_with(bench, algorithm_configs=[config])
    assert refusal.value.code == code


@pytest.fixture
def with_roots(bench: Bench) -> Bench:
    """A runner that reads a folder of models."""
    settings = bench.context.settings
    roots = settings.models.model_copy(update={"roots": [bench.folder / "models"]})
    return replace(bench, context=bench.but(settings=settings.model_copy(update={"models": roots})))


def test_a_template_is_copied_under_its_digest(with_roots: Bench) -> None:
    template = with_roots.folder / "models" / "own.json"
    template.write_text('{"model_type": "own"}', encoding="utf-8")
    first = Path(job_with(with_roots, template_file=str(template)).template_file)
    assert first.read_bytes() == template.read_bytes()
    assert first.is_relative_to(with_roots.folder / "state" / "content")
    template.write_text('{"model_type": "other"}', encoding="utf-8")
    assert Path(job_with(with_roots, template_file=str(template)).template_file) != first


def _elsewhere(folder: Path) -> str:
    (folder / "t.json").write_text("{}", encoding="utf-8")
    return str(folder / "t.json")


def _linked(folder: Path) -> str:
    (folder / "models" / "t.json").symlink_to(_elsewhere(folder))
    return str(folder / "models" / "t.json")


def _broken(folder: Path) -> str:
    (folder / "models" / "t.json").write_text("[", encoding="utf-8")
    return str(folder / "models" / "t.json")


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (_elsewhere, "template_not_allowed"),
        (_linked, "template_not_allowed"),
        (_broken, "template_broken"),
        (lambda folder: str(folder / "models" / "none.json"), "file_missing"),
        (lambda _: "models/t.json", "path_not_absolute"),
    ],
)
def test_a_template_from_elsewhere_is_refused(with_roots: Bench, asked: Any, code: str) -> None:
    with pytest.raises(RunnerError) as refusal:
        job_with(with_roots, template_file=asked(with_roots.folder))
    assert refusal.value.code == code


def test_a_template_that_changed_after_the_approval_is_refused(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, gpu=True, hub=True)
    program, template = tmp_path / "quark-cli", tmp_path / "models" / "own.json"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    template.write_text('{"model_type": "llama"}', encoding="utf-8")
    models = ModelSettings(hub=True, roots=[tmp_path / "models"])
    context = bench.but(
        settings=bench.context.settings.model_copy(update={"models": models}),
        host=replace(bench.context.host, entry_points={"quark_cli": str(program)}),
    )
    here = replace(bench, context=context)
    manifest = here.manifest(template_file=str(template))
    assert manifest.entry_point.name == "quark_cli"
    check(manifest, context)
    template.write_text('{"model_type": "llama", "exclude_layers_name": []}', encoding="utf-8")
    with pytest.raises(Changed) as refusal:
        check(manifest, context)
    assert (refusal.value.code, "after --template_file" in refusal.value.message) == ("command_changed", True)


@pytest.mark.parametrize(
    ("hub", "revision", "code"),
    [(False, "a" * 40, "hub_is_off"), (True, None, "no_revision"), (True, "-x", "bad_value")],
)
def test_a_model_of_the_hub_needs_the_hub_and_a_commit(
    bench: Bench, hub: bool, revision: str | None, code: str
) -> None:
    facts = bench.analysis.model.model_copy(
        update={"model_path": "org/tiny", "downloaded": False, "revision": revision}
    )
    settings = bench.context.settings.model_copy(update={"models": ModelSettings(hub=hub)})
    with pytest.raises(RunnerError) as refusal:
        make_job(
            bench.plan(), bench.analysis.model_copy(update={"model": facts}), bench.output, bench.but(settings=settings)
        )
    assert refusal.value.code == code
    assert isinstance(refusal.value, Refused | BadRequest)
