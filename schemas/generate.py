"""Write the JSON Schemas from the models: `python -m schemas.generate`."""

from __future__ import annotations

import json
from pathlib import Path

from schemas.documents import MODELS, schema_of

FOLDER = Path(__file__).parent / "json"


def text_of(name: str) -> str:
    """The file content of a document's schema."""
    return json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every schema and remove files of models that are gone."""
    FOLDER.mkdir(exist_ok=True)
    wanted = {f"{name}.schema.json": text_of(name) for name in MODELS}
    for stale in {path.name for path in FOLDER.glob("*.schema.json")} - set(wanted):
        (FOLDER / stale).unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
