"""The API's description, made from the same table that the routes are made from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import Response

from schemas.api import API_VERSION, Problem

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Endpoint:
    """One operation of the API."""

    method: str
    path: str
    handler: Handler
    summary: str
    answer: type[BaseModel] | str
    body: type[BaseModel] | None = None
    query: tuple[str, ...] = ()
    status: int = 200


def describe(endpoints: Sequence[Endpoint], version: str) -> dict[str, Any]:
    """The OpenAPI 3.1 document of the endpoints."""
    answers = [endpoint.answer for endpoint in endpoints if isinstance(endpoint.answer, type)]
    bodies = [endpoint.body for endpoint in endpoints if endpoint.body]
    models: dict[type[BaseModel], None] = dict.fromkeys([*answers, *bodies, Problem])
    _, schemas = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/components/schemas/{model}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "quark-ptq-bot runner",
            "version": version,
            "description": f"API version {API_VERSION}. Errors are RFC 9457 problems with a code and a hint.",
        },
        "paths": paths,
        "components": {"schemas": schemas.get("$defs", {})},
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    in_path = [part[1:-1] for part in endpoint.path.split("/") if part.startswith("{")]
    parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in in_path] + [
        {"name": name, "in": "query", "required": False, "schema": {"type": "string"}} for name in endpoint.query
    ]
    answer = _content(endpoint.answer)
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "parameters": parameters,
        "responses": {
            str(endpoint.status): {"description": "The answer.", "content": answer},
            "default": {"description": "What went wrong.", "content": _content(Problem, "application/problem+json")},
        },
    }
    if endpoint.body:
        operation["requestBody"] = {"required": True, "content": _content(endpoint.body)}
    return operation


def _content(what: type[BaseModel] | str, media_type: str = "application/json") -> dict[str, Any]:
    if isinstance(what, str):
        return {what: {"schema": {"type": "string"}}}
    return {media_type: {"schema": {"$ref": f"#/components/schemas/{what.__name__}"}}}
