"""What a person asked for, and what people change of it."""

from __future__ import annotations

from typing import Any

from pydantic import JsonValue, field_validator

from schemas.artifacts.plan import PlanChoices
from schemas.base import Document


class Changes(Document):
    """What a person wants otherwise. An absent field is not touched.

    `choices` holds fields of `PlanChoices` by name, only those that were said; null asks for none of it. A change of
    `model`, `revision` or `runner` touches the analysis, one of `choices` the plan, one of `output_dir` the command. An
    empty `revision` asks for none.
    """

    model: str | None = None
    revision: str | None = None
    runner: str | None = None
    output_dir: str | None = None
    choices: dict[str, JsonValue] = {}

    @field_validator("choices")
    @classmethod
    def _choices_fit(cls, choices: dict[str, JsonValue]) -> dict[str, JsonValue]:
        PlanChoices.model_validate(choices)
        return choices

    @property
    def nothing(self) -> bool:
        """Whether nothing is changed at all."""
        return self == Changes()

    def flat(self) -> dict[str, JsonValue]:
        """Field to value, as people read it: none is None."""
        named = {"model": self.model, "revision": self.revision, "runner": self.runner, "output_dir": self.output_dir}
        touched: dict[str, JsonValue] = {name: value for name, value in named.items() if value is not None}
        if self.revision == "":
            touched["revision"] = None
        return touched | self.choices


class Request(Document):
    """What is asked for, with all changes so far. An empty `runner` means the first that is configured."""

    text: str = ""
    model: str
    revision: str | None = None
    runner: str = ""
    output_dir: str | None = None
    choices: dict[str, JsonValue] = {}

    @property
    def plan_choices(self) -> PlanChoices:
        """The choices as the runner takes them."""
        return PlanChoices.model_validate(self.choices)

    def changed(self, changes: Changes) -> Request:
        """This request with the changes in it. Another model forgets the old one's revision."""
        update: dict[str, Any] = {
            name: value
            for name, value in changes.flat().items()
            if name in {"model", "revision", "runner", "output_dir"}
        }
        if changes.model is not None and changes.revision is None:
            update["revision"] = None
        return self.model_copy(update=update | {"choices": merged(self.choices, changes.choices)})


def merged(old: dict[str, JsonValue], new: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Choices with newer ones laid over them; calibration is merged field by field."""
    calibration, changed = old.get("calibration"), new.get("calibration")
    if isinstance(calibration, dict) and isinstance(changed, dict):
        return {**old, **new, "calibration": {**calibration, **changed}}
    return {**old, **new}
