"""Our documents are valid under the contract schemas that the installed amd-quark package carries."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from tests import samples

pytestmark = pytest.mark.quark


def _contracts() -> list[Path]:
    spec = importlib.util.find_spec("quark")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("amd-quark is not installed beside the tests: its contract schemas cannot be read")
    root = Path(next(iter(spec.submodule_search_locations)))
    return sorted(root.glob("_bundled_skills/**/contracts/*.schema.json"))


_DOCUMENTS: dict[str, BaseModel] = {
    "session_context": samples.session(),
    "env_context": samples.environment().env_context,
    "workspace_context": samples.workspace(),
    "pytorch_install_result": samples.environment().pytorch_install_result,
    "quark_install_result": samples.environment().quark_install_result,
    "model_analysis": samples.analysis(),
    "quant_plan": samples.plan(),
    "run_manifest": samples.manifest(),
    "validation_report": samples.report(),
}


@pytest.mark.parametrize("name", _DOCUMENTS)
def test_our_document_keeps_the_published_contract(name: str) -> None:
    schemas: list[Any] = [
        json.loads(path.read_text(encoding="utf-8")) for path in _contracts() if path.name == f"{name}.schema.json"
    ]
    assert schemas, f"the installed package carries no contract for {name}"
    for schema in schemas:
        Draft202012Validator(schema).validate(_DOCUMENTS[name].model_dump(mode="json"))


def test_every_contract_of_the_workflow_is_held() -> None:
    onnx_only: set[str] = set()
    published = {path.name.removesuffix(".schema.json") for path in _contracts()} - onnx_only
    assert published == set(_DOCUMENTS)
