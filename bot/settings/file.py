"""Reading the settings: the file, the variables over it, and one line about the first thing that is wrong."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource, SettingsError

from bot.errors import BadSetting
from bot.settings.model import BotSettings
from bot.settings.values import Wrong

_PREFIX = "PTQ_BOT_"
_ENVIRONMENT = "the environment"


def load_settings(file: Path | None) -> BotSettings:
    """Read bot.yaml and the environment. Raises BadSetting with one line that names the wrong setting."""
    written = _read_yaml(file) if file else {}
    variables = _read_variables()
    try:
        return BotSettings(**_laid_over(written, variables))
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        error = first.get("ctx", {}).get("error")
        path = [_shown(part) for part in first["loc"]] + (
            error.setting.split(".") if isinstance(error, Wrong) and error.setting else []
        )
        where = str(file) if file and not _holds(variables, path) else _ENVIRONMENT
        why = first["msg"].removeprefix("Value error, ").rstrip(".")
        raise BadSetting("bad_setting", f"{'.'.join(path)} in {where} is wrong: {why}.") from None


def _read_yaml(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadSetting("bad_setting", f"The configuration {file} cannot be read: {error.strerror}.") from None
    except RecursionError:
        raise BadSetting("bad_setting", f"The configuration {file} is nested too deeply.") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: not UTF-8, or a date that no calendar has
        raise BadSetting("bad_setting", f"The configuration {file} is not YAML: {_place(error)}.") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise BadSetting("bad_setting", f"The configuration {file} has to be a mapping of settings.")
    for key in content:
        if str(key) not in BotSettings.model_fields:  # the library would take some others as orders to itself
            raise BadSetting("bad_setting", f"{_shown(key)} in {file} is no setting of the bot.", _near(str(key)))
    return {str(key): value for key, value in content.items()}


def _read_variables() -> dict[str, Any]:
    for name in os.environ:
        head, lines, _ = name.upper().removeprefix(_PREFIX).partition("__")
        # Only those with a path: others may be switches of the program, or what a cluster sets for a service ptq-bot.
        if name.upper().startswith(_PREFIX) and lines and head.lower() not in BotSettings.model_fields:
            message = f"{_shown(name)} in {_ENVIRONMENT} is no setting of the bot."
            raise BadSetting("bad_setting", message, _near(head.lower()))
    try:
        return EnvSettingsSource(BotSettings)()
    except SettingsError as problem:  # a variable that has to be JSON
        named = next((name for name in BotSettings.model_fields if f'"{name}"' in str(problem)), "A setting")
        raise BadSetting("bad_setting", f"{named} in {_ENVIRONMENT} is wrong: it has to be JSON.") from None


def _laid_over(below: Any, above: Any) -> Any:
    """Mappings merged key by key. A mapping over a list changes its entries by number."""
    if not isinstance(above, dict):
        return above
    if isinstance(below, dict):
        return {**below, **{key: _laid_over(below.get(key), value) for key, value in above.items()}}
    if isinstance(below, list) and all(key.isdecimal() and int(key) < len(below) for key in above):
        return [_laid_over(value, above.get(str(number), value)) for number, value in enumerate(below)]
    return above


def _holds(values: Any, path: list[str]) -> bool:
    for part in path:
        if not isinstance(values, dict) or part not in values:
            return not isinstance(values, dict) and bool(values)
        values = values[part]
    return True


def _near(name: str) -> str:
    near = get_close_matches(name, list(BotSettings.model_fields), n=1)
    return f"Did you mean {near[0]}?" if near else f"There are {', '.join(BotSettings.model_fields)}."


def _shown(part: object) -> str:
    return "".join(letter for letter in str(part) if letter.isprintable())[:80]


def _place(error: Exception) -> str:
    """Where a file stops being YAML. What stands there is not shown: it may be half a token."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return "it is not UTF-8 text" if isinstance(error, UnicodeError) else " ".join(str(error).split())[:200]
    return f"line {mark.line + 1}, column {mark.column + 1}: {getattr(error, 'problem', '') or 'it ends too early'}"
