"""What a sentence was found to say, clause by clause."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import JsonValue, ValidationError

from bot.conversation.request import Changes, Exclusions
from bot.conversation.words.unread import MOST_CHARACTERS
from schemas.artifacts.plan import PlanChoices

Own = Literal["model", "revision", "runner", "output_dir"]


class Gathered:
    """Collects what clauses say. Two clauses that say different things of one field contradict each other."""

    def __init__(self) -> None:
        self._own: dict[str, str] = {}
        self._choices: dict[str, JsonValue] = {}
        self._calibration: dict[str, JsonValue] = {}
        self._layers: dict[str, str | None] = {}
        self._excluded: dict[str, bool] = {}
        self._also: list[str] = []
        self._without: list[str] = []
        self._refused: list[str] = []
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

    def layers(self, pattern: str, scheme: str | None) -> bool:
        """A scheme for the layers of one pattern, beside those of others; None takes one back."""
        return self._put(self._layers, pattern, scheme)

    def exclude(self, patterns: Iterable[str], excluded: bool = True) -> bool:
        """Layers that are left out beside those that are already, or quantized after all."""
        for pattern in patterns:
            self._put(self._excluded, pattern, excluded)
        return True

    def also(self, algorithms: Iterable[str]) -> bool:
        """Algorithms that are applied behind those that stand."""
        self._also += algorithms
        return True

    def without(self, algorithm: str) -> bool:
        """One algorithm of those that stand shall not be applied."""
        self._without.append(algorithm)
        return True

    def refuse(self, scheme: str) -> bool:
        """One scheme is not wanted: another has to be named beside it."""
        self._refused.append(scheme)
        return True

    def contradict(self) -> bool:
        """A clause that contradicts itself."""
        self.contradicts = True
        return True

    @property
    def excludes(self) -> bool:
        """Whether anything was said of layers that are left out."""
        return bool(self._excluded) or "exclude_layers" in self._choices

    def changes(self) -> Changes | None:
        """All of it together, or None when it contradicts itself or has a value that no plan can have."""
        choices = dict(self._choices)
        if self._calibration:
            choices["calibration"] = self._calibration
        if self.contradicts or (self._layers and "layer_quant_config" in choices):
            return None
        if self._refused and choices.get("global_scheme") in (None, *self._refused):
            return None
        asked = choices.get("algorithm")
        if self._also and "algorithm" in choices:
            if not isinstance(asked, str):
                return None
            choices["algorithm"] = asked = ",".join(dict.fromkeys([*asked.split(","), *self._also]))
        if {*self._also, *(asked.split(",") if isinstance(asked, str) else ())} & set(self._without):
            return None
        exclusions = Exclusions(
            add=tuple(pattern for pattern, excluded in self._excluded.items() if excluded),
            drop=tuple(pattern for pattern, excluded in self._excluded.items() if not excluded),
        )
        listed = choices.get("exclude_layers")
        left_out = {*exclusions.add, *(listed if isinstance(listed, list) else ())}
        if left_out & {pattern for pattern, scheme in self._layers.items() if scheme is not None}:
            return None
        if isinstance(listed, list) and exclusions:
            if not listed or exclusions.drop:
                return None
            choices["exclude_layers"] = [*exclusions.of(map(str, listed))]
            exclusions = Exclusions()
        own: dict[str, Any] = self._own
        try:
            return Changes(
                **own,
                choices=choices,
                exclusions=exclusions,
                layer_schemes=self._layers,
                with_algorithms=tuple(dict.fromkeys(self._also)) if "algorithm" not in choices else (),
                without_algorithms=tuple(self._without) if "algorithm" not in choices else (),
            )
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
