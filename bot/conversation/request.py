"""What a person asked for, and what people change of it."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from pydantic import JsonValue, field_validator

from schemas.artifacts.plan import PlanChoices
from schemas.base import Document


class Exclusions(Document):
    """Layers that shall be left out, or quantized after all, beside what stands: nobody has to know the whole list.

    `add` are patterns to leave out; `drop` are patterns whose layers shall not be left out any more.
    """

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.add or self.drop)

    def of(self, excluded: Iterable[str]) -> list[str]:
        """A list of exclusions with these laid over it."""
        kept = [pattern for pattern in excluded if not any(_covers(one, pattern) for one in self.drop)]
        return list(dict.fromkeys([*kept, *self.add]))

    def then(self, later: Exclusions) -> Exclusions:
        """Both; where they differ the later ones count."""
        added = [one for one in self.add if not any(_covers(other, one) for other in later.drop)]
        dropped = [one for one in self.drop if one not in later.add]
        return Exclusions(
            add=tuple(dict.fromkeys([*added, *later.add])), drop=tuple(dict.fromkeys([*dropped, *later.drop]))
        )


def _covers(named: str, pattern: str) -> bool:
    """Whether what a person names is that pattern, or all that it may match: "*experts*" is all of "*mlp.experts*"."""
    return fnmatchcase(pattern, named) or pattern.strip("*.") == named.strip("*.")


class Changes(Document):
    """What a person wants otherwise. An absent field is not touched.

    `choices` holds fields of `PlanChoices` by name, only those that were said; null asks for none of it. A change of
    `model`, `revision` or `runner` touches the analysis, one of `choices` the plan, one of `output_dir` the command. An
    empty `revision` asks for none.

    As people say it, `runner` is a name, a label that several runners may have, or empty for any. Before it is decided
    upon, it is the name of one, and `runner_reason` says why it is that one.

    Some changes speak of what stands already: `exclusions`; `layer_schemes`, by pattern, beside those of other patterns
    (null takes one back); and `with_algorithms`, behind those that were asked for, and `without_algorithms`, of them.
    """

    model: str | None = None
    revision: str | None = None
    runner: str | None = None
    runner_reason: str = ""
    output_dir: str | None = None
    choices: dict[str, JsonValue] = {}
    exclusions: Exclusions = Exclusions()
    layer_schemes: dict[str, str | None] = {}
    with_algorithms: tuple[str, ...] = ()
    without_algorithms: tuple[str, ...] = ()

    @field_validator("choices")
    @classmethod
    def _choices_fit(cls, choices: dict[str, JsonValue]) -> dict[str, JsonValue]:
        PlanChoices.model_validate(choices)
        return choices

    @property
    def nothing(self) -> bool:
        """Whether nothing is changed at all."""
        return self == Changes()

    @property
    def relative(self) -> tuple[str, ...]:
        """The fields of which this changes a part, and leaves the rest as it stands."""
        told = {
            "exclude_layers": bool(self.exclusions),
            "layer_quant_config": bool(self.layer_schemes),
            "algorithm": bool(self.with_algorithms or self.without_algorithms),
        }
        return tuple(name for name, partly in told.items() if partly)

    def flat(self) -> dict[str, JsonValue]:
        """Field to value, as people read it: none is None.

        A field of which only a part is changed shows that part: layers that are added to the exclusions as their list,
        and what is taken out of them under "drop".
        """
        named = {"model": self.model, "revision": self.revision, "runner": self.runner, "output_dir": self.output_dir}
        touched: dict[str, JsonValue] = {name: value for name, value in named.items() if value is not None}
        for name in ("revision", "runner"):
            if touched.get(name) == "":
                touched[name] = None
        return touched | self.choices | self._parts()

    def laid_over(self, choices: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Choices with these in them. `exclusions` are not: they may need the engine's defaults."""
        after = merged(choices, self.choices)
        if self.layer_schemes:
            stated = after.get("layer_quant_config")
            both = {**(stated if isinstance(stated, dict) else {}), **self.layer_schemes}
            after["layer_quant_config"] = {pattern: name for pattern, name in both.items() if name is not None}
        if self.with_algorithms or self.without_algorithms:
            asked = algorithms_of(after)
            names = dict.fromkeys([*asked, *self.with_algorithms])
            left = [name for name in names if name not in self.without_algorithms]
            # Nothing is taken from where nothing stands, unless a priority may bring it.
            if left != asked or (not left and priority_decides(after)):
                after["algorithm"] = ",".join(left) or None
        return after

    def _parts(self) -> dict[str, JsonValue]:
        parts: dict[str, JsonValue] = {}
        if self.exclusions.drop:
            sides = {"add": list(self.exclusions.add), "drop": list(self.exclusions.drop)}
            parts["exclude_layers"] = {side: [*patterns] for side, patterns in sides.items() if patterns}
        elif self.exclusions.add:
            parts["exclude_layers"] = [*self.exclusions.add]
        if self.layer_schemes:
            parts["layer_quant_config"] = dict(self.layer_schemes)
        if self.with_algorithms:
            parts["algorithm"] = ",".join(self.with_algorithms)
        elif self.without_algorithms:
            parts["algorithm"] = None
        return parts


class Request(Document):
    """What is asked for, with all changes so far. An empty `runner` means that none was named.

    `runner_reason` says why it is that runner, as it stands behind "since"; empty where a person named it, or where
    there is no other.

    `exclusions` are laid over the engine's defaults, which belong to a model and are known with its analysis. Where a
    person named the whole list, it stands in `choices`, and there are none.
    """

    text: str = ""
    model: str
    revision: str | None = None
    runner: str = ""
    runner_reason: str = ""
    output_dir: str | None = None
    choices: dict[str, JsonValue] = {}
    exclusions: Exclusions = Exclusions()

    @property
    def replaces_exclusions(self) -> bool:
        """Whether layers that the engine leaves alone by default may be quantized."""
        return "exclude_layers" in self.choices or bool(self.exclusions.drop)

    @property
    def plan_choices(self) -> PlanChoices:
        """The choices as they were named, without what speaks of the engine's defaults."""
        return PlanChoices.model_validate(self.choices)

    def choices_on(self, defaults: Iterable[str]) -> PlanChoices:
        """The choices as the runner takes them, for a model that has these default exclusions."""
        if not self.exclusions:
            return self.plan_choices
        return PlanChoices.model_validate({**self.choices, "exclude_layers": self.exclusions.of(defaults)})

    def changed(self, changes: Changes) -> Request:
        """This request with the changes in it. Another model forgets the old one's revision."""
        update: dict[str, Any] = {
            name: value
            for name, value in changes.flat().items()
            if name in {"model", "revision", "runner", "output_dir"}
        }
        if changes.model is not None and changes.revision is None:
            update["revision"] = None
        if changes.runner is not None:
            update["runner"] = changes.runner
            # Whoever names the runner that it has changes nothing, also not why it has it.
            same = changes.runner == self.runner
            update["runner_reason"] = self.runner_reason if same else changes.runner_reason
        choices = changes.laid_over(self.choices)
        exclusions = self.exclusions.then(changes.exclusions)
        if "exclude_layers" in changes.choices:
            exclusions = changes.exclusions
        stated = choices.get("exclude_layers")
        if isinstance(stated, list) and exclusions:
            choices["exclude_layers"] = [*exclusions.of(str(pattern) for pattern in stated)]
            exclusions = Exclusions()
        return self.model_copy(update=update | {"choices": choices, "exclusions": exclusions})


def algorithms_of(choices: dict[str, JsonValue]) -> list[str]:
    """The algorithms that are asked for, in their order."""
    stated = choices.get("algorithm")
    return [name.strip() for name in stated.split(",")] if isinstance(stated, str) else []


def priority_decides(choices: dict[str, JsonValue]) -> bool:
    """Whether a priority chooses the algorithm, together with the scheme: which one it is stands in the plan only."""
    return "algorithm" not in choices and choices.get("global_scheme") is None and choices.get("priority") is not None


def merged(old: dict[str, JsonValue], new: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Choices with newer ones laid over them; calibration is merged field by field."""
    calibration, changed = old.get("calibration"), new.get("calibration")
    if isinstance(calibration, dict) and isinstance(changed, dict):
        return {**old, **new, "calibration": {**calibration, **changed}}
    return {**old, **new}
