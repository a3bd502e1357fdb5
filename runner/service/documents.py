"""Documents of the workflow as files: read with clear errors, written whole or not at all."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel

from runner.errors import BadRequest, NotHere
from schemas.documents import ARTIFACTS, InvalidDocument, MissingDocument, read_document

Model = TypeVar("Model", bound=BaseModel)

_LARGEST_BYTES = 64 << 20


def read_file(path: Path, model: type[Model]) -> Model:
    """Read a JSON or YAML document. Raises RunnerError with the path of what is wrong."""
    name = next(key for key, kind in ARTIFACTS.items() if kind.model is model)
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise BadRequest("bad_document", f"{path} is too large to be a {name}.")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotHere(
            "missing_document", f"{path} does not exist.", f"It is made by {ARTIFACTS[name].made_by}."
        ) from None
    except OSError as error:
        raise BadRequest("bad_document", f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise BadRequest("bad_document", f"{path} cannot be read as text: {error}.") from None
    try:
        return read_document(model, _parsed(path, text), name=str(path))
    except RecursionError:
        raise BadRequest("bad_document", f"{path} is nested too deeply to be a {name}.") from None
    except MissingDocument as error:
        raise BadRequest("missing_document", f"{path} is not complete: {error}") from None
    except InvalidDocument as error:
        raise BadRequest(
            "bad_document", f"{path} is not a valid {name}: {error}.", f"It is made by {ARTIFACTS[name].made_by}."
        ) from None


def write_file(path: Path, document: BaseModel) -> None:
    """Write a document as JSON, or as YAML where the name says so. Never leaves half a file."""
    data = document.model_dump(mode="json")
    yaml_wanted = path.suffix in {".yaml", ".yml"}
    text = (
        yaml.safe_dump(data, sort_keys=False, allow_unicode=True) if yaml_wanted else json.dumps(data, indent=2) + "\n"
    )
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except UnicodeError:
        raise BadRequest("cannot_write", f"{path} cannot be written: its text is not UTF-8.") from None
    except OSError as error:
        raise BadRequest("cannot_write", f"{path} cannot be written: {error.strerror}.") from None
    finally:
        with suppress(OSError):  # what could not be made cannot be removed either
            beside.unlink()


def _parsed(path: Path, text: str) -> Any:
    try:
        return yaml.load(text, Loader=_Plain) if path.suffix in {".yaml", ".yml"} else json.loads(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadRequest("bad_document", f"{path} is broken: {' '.join(str(error).split())}.") from None


class _Plain(yaml.SafeLoader):
    """YAML without dates and aliases: a document is what JSON could hold, and as large as its text."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """The next node. Raises YAMLError for an alias: a few of them make a document of gigabytes."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("a document has no aliases")
        return super().compose_node(parent, index)


_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
