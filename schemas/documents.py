"""The documents by name: their models, their JSON Schemas, and the step that makes each.

Documents from outside are held against the JSON Schema first, so that what is wrong is named by its path.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from pydantic import BaseModel, ValidationError

from schemas.api import (
    CancelRequest,
    Capabilities,
    EnvironmentAnswer,
    Health,
    IntakeAnswer,
    IntakeRequest,
    ManifestAnswer,
    ManifestRequest,
    PlanAnswer,
    PlanRequest,
    PriorityRequest,
    Problem,
    Queue,
    QueueRequest,
    RunList,
    RunSubmission,
)
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.environment import EnvContext
from schemas.artifacts.installation import PytorchInstallResult, QuarkInstallResult
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import PlanChoices, QuantPlan
from schemas.artifacts.report import ValidationReport
from schemas.artifacts.session import SessionContext
from schemas.artifacts.workspace import WorkspaceContext
from schemas.catalog import Catalogue
from schemas.runs import Run, RunEvent

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Kind:
    """A document's model, and the step of the workflow that makes it."""

    model: type[BaseModel]
    made_by: str


ARTIFACTS: dict[str, Kind] = {
    "session_context": Kind(SessionContext, "the request itself"),
    "env_context": Kind(EnvContext, "the environment preflight (`ptq-runner doctor`)"),
    "workspace_context": Kind(WorkspaceContext, "step 1, intake (`ptq-runner intake MODEL`)"),
    "pytorch_install_result": Kind(PytorchInstallResult, "the environment preflight (`ptq-runner doctor`)"),
    "quark_install_result": Kind(QuarkInstallResult, "the environment preflight (`ptq-runner doctor`)"),
    "model_analysis": Kind(ModelAnalysis, "step 1, intake (`ptq-runner intake MODEL`)"),
    "quant_plan": Kind(QuantPlan, "step 2, the quantization plan (`ptq-runner plan ANALYSIS`)"),
    "run_manifest": Kind(RunManifest, "step 3, the manifest (`ptq-runner manifest PLAN`)"),
    "validation_report": Kind(ValidationReport, "step 4, the verified run (`ptq-runner run MANIFEST`)"),
}
_API: tuple[type[BaseModel], ...] = (
    Capabilities,
    EnvironmentAnswer,
    Health,
    IntakeRequest,
    IntakeAnswer,
    PlanRequest,
    PlanAnswer,
    ManifestRequest,
    ManifestAnswer,
    RunSubmission,
    CancelRequest,
    PriorityRequest,
    Queue,
    QueueRequest,
    RunList,
    Problem,
)
MODELS: dict[str, type[BaseModel]] = {
    **{name: kind.model for name, kind in ARTIFACTS.items()},
    "catalogue": Catalogue,
    "plan_choices": PlanChoices,
    "run": Run,
    "run_event": RunEvent,
    **{f"api.{model.__name__}": model for model in _API},
}


class InvalidDocument(ValueError):
    """A document from outside that is not what it has to be: `path` says where, the message what is wrong."""

    def __init__(self, name: str, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.name = name
        self.path = path
        self.problem = problem


class MissingDocument(LookupError):
    """A document that a step needs and that is not there; the message names the step that makes it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is missing. It is made by {ARTIFACTS[name].made_by}.")
        self.name = name


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document, made from its model."""
    schema = MODELS[name].model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": name}


@cache
def _validator(name: str) -> Draft202012Validator:
    text = resources.files("schemas").joinpath("json", f"{name}.schema.json").read_text(encoding="utf-8")
    return Draft202012Validator(json.loads(text))


def read_document(model: type[Model], data: object, name: str = "") -> Model:
    """Check plain JSON data against the document's schema and its model.

    Raises MissingDocument where there is no document at all, else InvalidDocument with the path of what is wrong.
    """
    known = next(key for key, value in MODELS.items() if value is model)
    shown = name or known.removeprefix("api.")
    if data is None and known in ARTIFACTS:
        raise MissingDocument(known)
    with suppress(ValueError, TypeError, RecursionError):
        # The models made the schemas: what they take strictly is right, in a tenth of the time. Otherwise the schema
        # says what is wrong, and where.
        return model.model_validate_json(json.dumps(data), strict=True)
    error = best_match(_validator(known).iter_errors(data))
    if error is not None:
        missing = _missing_artifact(error.validator, error.message)
        if missing:
            raise MissingDocument(missing)
        raise InvalidDocument(shown, _path(shown, error.absolute_path), _shortened(error.message))
    try:
        return model.model_validate(data)
    except ValidationError as problem:
        first = problem.errors()[0]
        raise InvalidDocument(shown, _path(shown, first["loc"]), _shortened(first["msg"])) from None


def _missing_artifact(validator: object, message: str) -> str | None:
    if validator != "required":
        return None
    return next((name for name in ARTIFACTS if message.startswith(f"'{name}'")), None)


def _path(name: str, parts: Any) -> str:
    steps = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return name + "".join(steps)


def _shortened(message: str, limit: int = 300) -> str:
    """jsonschema quotes the whole value; a value of a megabyte helps nobody."""
    return message if len(message) <= limit else f"{message[: limit // 2]} … {message[-limit // 2 :]}"
