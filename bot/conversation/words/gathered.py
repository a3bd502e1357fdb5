"""What a sentence was found to say, clause by clause."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import JsonValue, ValidationError

from bot.conversation.request import Changes
from bot.conversation.words.unread import MOST_CHARACTERS
from schemas.artifacts.plan import PlanChoices

Own = Literal["model", "revision", "runner", "output_dir"]


class Gathered:
    """Collects what clauses say. Two clauses that say different things of one field contradict each other."""

    def __init__(self) -> None:
        self._own: dict[str, str] = {}
        self._choices: dict[str, JsonValue] = {}
        self._calibration: dict[str, JsonValue] = {}
        self._layers: dict[str, JsonValue] = {}
        self.contradicts = False

    def own(self, field: Own, value: str) -> bool:
        """A field of the request itself. All of these give True, so that a clause can end with them."""
        return self._put(self._own, field, value)

    def choose(self, field: str, value: JsonValue) -> bool:
        """A field of the plan's choices; None asks for none of it."""
        return self._put(self._choices, field, value)

    def calibrate(self, field: str, value: JsonValue) -> bool:
        """A field of the calibration."""
        return self._put(self._calibration, field, value)

    def layers(self, pattern: str, scheme: str) -> bool:
        """A scheme for the layers of one pattern."""
        return self._put(self._layers, pattern, scheme)

    def contradict(self) -> bool:
        """A clause that contradicts itself."""
        self.contradicts = True
        return True

    @property
    def has_layers(self) -> bool:
        """Whether a scheme was told for some layers."""
        return bool(self._layers)

    def changes(self) -> Changes | None:
        """All of it together, or None when it contradicts itself or has a value that no plan can have."""
        nested: dict[str, JsonValue] = {}
        if self._calibration:
            nested["calibration"] = self._calibration
        if self._layers:
            nested["layer_quant_config"] = self._layers
        if self.contradicts or nested.keys() & self._choices.keys():
            return None
        own: dict[str, Any] = self._own
        try:
            return Changes(**own, choices={**self._choices, **nested})
        except ValidationError:
            return None

    def misfit(self) -> str:
        """The value that no plan can have, where there is one."""
        for fields in ({"calibration": self._calibration}, self._choices):
            try:
                PlanChoices.model_validate(fields)
            except ValidationError as error:
                return str(error.errors()[0]["input"])[:MOST_CHARACTERS]
        return ""

    def _put(self, fields: dict[str, Any], field: str, value: JsonValue) -> bool:
        if field in fields and fields[field] != value:
            self.contradicts = True
        fields[field] = value
        return True
