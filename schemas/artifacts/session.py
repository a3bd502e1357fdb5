"""session_context: what the person wants and under which constraints."""

from __future__ import annotations

from typing import Literal

from schemas.base import Document


class Constraints(Document):
    """Limits that the person set for the session."""

    offline: bool = False
    execution_mode: Literal["plan_only", "interactive_execute", "batch_execute"] = "interactive_execute"


class SessionContext(Document):
    """The published session_context. The *_ref fields name the documents that carry the facts."""

    user_goal: str
    workflow: Literal["quark-torch-ptq", "quark-torch-install", "quark-install"] = "quark-torch-ptq"
    constraints: Constraints = Constraints()
    env_context_ref: str | None = None
    workspace_context_ref: str | None = None
    pytorch_install_result_ref: str | None = None
    quark_install_result_ref: str | None = None
    open_questions: list[str] = []
