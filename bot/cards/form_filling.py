"""What the edit form is filled with, and the fields that it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bot.cards.form_data import NONE, FormField, Option
from bot.cards.texts import line
from bot.conversation.request import Request
from schemas.api import Capabilities
from schemas.artifacts.plan import PlanChoices, QuantPlan

LONGEST = 4096
"""Characters of one value, as of a path."""

_RECOMMENDED = Option(value="", label="as the runner recommends")


class Now:
    """What applies now: the plan's decision, else what was asked for, else nothing."""

    def __init__(
        self,
        request: Request,
        plan: QuantPlan | None,
        capabilities: Capabilities | None,
        defaults: Sequence[str] | None,
    ) -> None:
        self.request = request
        self.plan = plan
        self.capabilities = capabilities
        # What was said of the engine's own exclusions means a whole list once those are known.
        self._choices = request.plan_choices if defaults is None else request.choices_on(defaults)
        self._source: QuantPlan | PlanChoices = plan if plan is not None else self._choices

    def value(self, name: str) -> Any:
        """The value of a field of the plan; None also where nothing is decided."""
        return getattr(self._source, name)

    def decided(self, name: str) -> bool:
        """Whether there is a decision, be it for none."""
        return self.plan is not None or self._choices.asks(name)

    def word(self, name: str) -> str:
        """The value as one word: empty where nothing is decided, "none" where none of it is wanted."""
        if not self.decided(name):
            return ""
        found = self.value(name)
        return NONE if found is None else line(found, LONGEST)

    def number(self, name: str) -> str:
        """The value as a number; empty where none is decided."""
        found = self.value(name)
        return "" if found is None else f"{found:g}" if isinstance(found, float) else str(found)

    def text(self, name: str) -> str:
        """The value as it is typed; empty where none is decided."""
        return line(self.value(name) or "", LONGEST)

    def calibration(self, name: str) -> str:
        """One value of the calibration."""
        found = getattr(self.value("calibration"), name, None)
        return "" if found is None else line(found, LONGEST)


def named(values: Iterable[str], names: dict[str, str]) -> list[Option]:
    """Values to choose from, with their names for people."""
    return [Option(value=value, label=line(names.get(value, value), 75)) for value in values]


def select(name: str, words: str, section: str, value: str, options: Sequence[Option]) -> FormField:
    """A choice of one; a line to type where it is not known what there is to choose."""
    offered = list(options)
    if offered and not value:
        offered.insert(0, _RECOMMENDED)
    elif offered and value not in {option.value for option in offered}:
        offered.append(Option(value=value, label=line(f"{value} (not offered here)", 75)))
    kind: Any = "select" if offered else "text"
    return FormField(name=name, label=words, kind=kind, section=section, value=value, options=tuple(offered))


def toggle(name: str, words: str, section: str, value: bool) -> FormField:
    """A yes or no."""
    return FormField(name=name, label=words, kind="toggle", section=section, value="true" if value else "false")
