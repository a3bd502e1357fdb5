"""Which values from outside may become part of a command.

No value passes a shell, but a value that begins with a dash would be read as an option, and one with invisible
characters would show a person something else than what runs.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator

from runner.errors import BadRequest
from schemas.artifacts.plan import PlanChoices, QuantPlan

LONGEST = 4096
"""Characters of one value. Paths end there on Linux; no pattern needs more."""


def why_refused(value: str) -> str | None:
    """Why a value must not become an argument, or None when it may."""
    if not value.strip():
        return "is empty"
    if value.startswith("-"):
        return "begins with a dash, so that the program would read it as an option"
    if len(value) > LONGEST:
        return f"is longer than {LONGEST} characters"
    if any(unicodedata.category(character)[0] == "C" or character in "\u2028\u2029" for character in value):
        return "has control or invisible characters, which a person could not see in the command"
    return None


def check_value(value: str, where: str) -> str:
    """The value itself. Raises BadRequest, naming where it stands, when it must not become an argument."""
    reason = why_refused(value)
    if reason:
        raise BadRequest("bad_value", f"{where} {reason}: {_shown(value)}.", "Give another value.")
    return value


def check_choices(choices: PlanChoices) -> None:
    """Raises BadRequest for the first value that must not become an argument."""
    _check(_strings(choices), choices.min_kv_scale)


def check_plan(plan: QuantPlan) -> None:
    """Raises BadRequest for the first value that must not become an argument: a plan may come from anywhere."""
    _check(_strings(plan), plan.min_kv_scale)


def _check(strings: Iterator[tuple[str, str]], min_kv_scale: float | None) -> None:
    for where, value in strings:
        check_value(value, where)
    if min_kv_scale is not None and not math.isfinite(min_kv_scale):
        raise BadRequest("bad_value", "min_kv_scale is not a finite number.", "Give a small number such as 0.001.")


def _strings(source: PlanChoices | QuantPlan) -> Iterator[tuple[str, str]]:
    texts = ("attention_dtype", "evaluation_dataset", "tasks", "template_file")
    for name in ("global_scheme", "kv_cache_scheme", "algorithm", *texts):
        value = getattr(source, name)
        if value is not None:
            yield name, value
    if source.calibration is not None and source.calibration.dataset is not None:
        yield "calibration.dataset", source.calibration.dataset
    for number, pattern in enumerate(source.exclude_layers or []):
        yield f"exclude_layers[{number}]", pattern
    for pattern, scheme in (source.layer_quant_config or {}).items():
        yield "a pattern of layer_quant_config", pattern
        yield f"layer_quant_config[{pattern}]", scheme


def _shown(value: str) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
