"""Documents from outside: accepted when right, else refused with the path of what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from schemas import generate
from schemas.api import ManifestRequest, PlanRequest, RunSubmission
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import PlanChoices, QuantPlan
from schemas.documents import ARTIFACTS, MODELS, InvalidDocument, MissingDocument, read_document, schema_of
from tests.samples import analysis, manifest, plan


def test_the_schema_files_are_those_of_the_models() -> None:
    on_disk = {path.name: path.read_text(encoding="utf-8") for path in generate.FOLDER.glob("*.json")}
    assert on_disk == {f"{name}.schema.json": generate.text_of(name) for name in MODELS}


@pytest.mark.parametrize("name", MODELS)
def test_every_schema_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(schema_of(name))


def test_a_document_survives_the_wire() -> None:
    for document in (analysis(), plan(), manifest()):
        assert read_document(type(document), document.model_dump(mode="json")) == document


_WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"size": {"weight_bytes": -1, "parameters": 0}}, "model_analysis.size.weight_bytes", "minimum"),
    ({"quantization_targets": {"linear_layer_count": "many", "exclude_defaults": []}}, ".linear_layer_count", "many"),
    (
        {"risks": [{"severity": "terrible", "code": "x", "message": "y"}]},
        "model_analysis.risks[0].severity",
        "terrible",
    ),
    ({"colour": "red"}, "model_analysis", "colour"),
]


@pytest.mark.parametrize(("change", "path", "words"), _WRONG)
def test_a_wrong_value_is_named_by_its_path(change: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(InvalidDocument) as caught:
        read_document(ModelAnalysis, {**analysis().model_dump(mode="json"), **change})
    assert path in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize("data", [[], "text", 3, True])
def test_something_else_than_an_object_is_refused(data: object) -> None:
    with pytest.raises(InvalidDocument, match="quant_plan"):
        read_document(QuantPlan, data)


@pytest.mark.parametrize(
    ("request_type", "body", "step"),
    [
        (ManifestRequest, {"output_dir": "/out", "quant_plan": plan().model_dump(mode="json")}, "step 1, intake"),
        (ManifestRequest, {"output_dir": "/out", "model_analysis": analysis().model_dump(mode="json")}, "step 2"),
        (PlanRequest, {}, "step 1, intake"),
        (RunSubmission, {"approvals": [], "key": "k"}, "step 3, the manifest"),
    ],
)
def test_a_missing_artifact_is_named_with_the_step_that_makes_it(request_type: Any, body: Any, step: str) -> None:
    with pytest.raises(MissingDocument, match=step):
        read_document(request_type, body)


def test_every_artifact_says_which_step_makes_it() -> None:
    assert all(kind.made_by for kind in ARTIFACTS.values())


def test_a_value_of_a_megabyte_is_not_repeated_to_the_person() -> None:
    body = {**analysis().model_dump(mode="json"), "analysis_status": "x" * 1_000_000}
    with pytest.raises(InvalidDocument) as caught:
        read_document(ModelAnalysis, body)
    assert len(str(caught.value)) < 500


def test_asking_for_none_differs_from_not_asking() -> None:
    assert PlanChoices.model_validate({"kv_cache_scheme": None}).asks("kv_cache_scheme")
    assert not PlanChoices().asks("kv_cache_scheme")
