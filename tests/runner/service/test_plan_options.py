"""Every field of a request can be typed as an option of `ptq-runner plan`, and what is not typed was not asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from runner.service.client import Client
from runner.service.commands import main
from runner.service.plan_options import FURTHER
from schemas.api import PlanAnswer, PlanRequest
from schemas.artifacts.plan import PlanChoices
from tests import samples

TYPED: list[tuple[list[str], dict[str, Any]]] = [
    ([], {}),
    (["--tensor-parallel", "4", "--multi-gpu", "auto"], {"tensor_parallel": 4, "multi_gpu": "auto"}),
    (
        ["--algorithm", "awq", "--write-algorithm-config"],
        {"algorithm": "awq", "write_algorithm_config": True},
    ),
    (["--min-kv-scale", "0.001", "--kv-cache-post-rope"], {"min_kv_scale": 0.001, "kv_cache_post_rope": True}),
    (["--export", "gguf", "--data-type", "float16"], {"model_export": "gguf", "data_type": "float16"}),
    (["--attention", "fp8", "--multi-device"], {"attention_dtype": "fp8", "multi_device": True}),
    (["--file2file", "--trust-remote-code"], {"file2file_quantization": True, "trust_remote_code": True}),
    (["--eval-samples", "8", "--tasks", "arc,piqa"], {"num_eval_data": 8, "tasks": "arc,piqa"}),
    (
        ["--eval-dataset", "wikitext", "--template-file", "/t.json", "--entry-point", "site"],
        {"evaluation_dataset": "wikitext", "template_file": "/t.json", "entry_point": "site"},
    ),
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[PlanChoices]:
    """What reached the daemon."""
    requests: list[PlanChoices] = []

    def plan(_: Client, request: PlanRequest) -> PlanAnswer:
        requests.append(request.request)
        made = samples.plan()
        return PlanAnswer(quant_plan=made, decisions=[], findings=[], estimates=made.estimates, digest="0" * 64)

    monkeypatch.setattr(Client, "plan", plan)
    return requests


@pytest.mark.parametrize(("typed", "expected"), TYPED, ids=lambda value: " ".join(value) if value else None)
def test_what_is_typed_is_asked(
    typed: list[str], expected: dict[str, Any], asked: list[PlanChoices], tmp_path: Path
) -> None:
    analysis = tmp_path / "model_analysis.json"
    analysis.write_text(samples.analysis().model_dump_json())
    done = CliRunner().invoke(main, ["plan", str(analysis), "--json", *typed])
    assert done.exit_code == 0, done.output
    assert asked[0].model_dump(exclude_unset=True) == expected
    assert json.loads(done.stdout)["digest"] == "0" * 64


def test_each_of_these_options_is_a_field_of_a_request_and_is_tried_here() -> None:
    fields = [name for name, _, _ in FURTHER]
    assert set(fields) <= set(PlanChoices.model_fields)
    assert set(fields) <= {name for _, expected in TYPED for name in expected}
