"""Whether somebody asks for code that a model brings along."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from schemas.artifacts.plan import PlanChoices

FIELD = "trust_remote_code"


def asked(choices: Mapping[str, JsonValue]) -> bool:
    """Whether these choices ask for it, read as the runner reads them: "yes" and 1 are a yes too."""
    return PlanChoices.model_validate({FIELD: choices.get(FIELD)}).trust_remote_code is True
