"""Documents as files: whatever lies there, and wherever it shall go, is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.errors import BadRequest, RunnerError
from runner.service.documents import read_file, write_file
from schemas.artifacts.manifest import RunManifest
from tests import samples

_BOMB = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 9)}]\n" for n in range(9))

BROKEN = [
    ("run_manifest.yaml", f"{_BOMB}schema_version: *a8\n", "a document has no aliases"),
    ("run_manifest.yaml", "&a [*a]", "a document has no aliases"),
    ("run_manifest.yaml", "[" * 5_000, "is broken"),
    ("run_manifest.json", "[" * 100_000, "is broken"),
    ("run_manifest.json", '{"inputs":' * 900 + "1" + "}" * 900, "run_manifest"),
    ("run_manifest.json", '"\\ud800"', "not a valid run_manifest"),
]


@pytest.mark.parametrize(("name", "content", "words"), BROKEN, ids=[words for _, _, words in BROKEN])
def test_a_document_that_is_none_is_told(name: str, content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(RunnerError, match=words) as caught:
        read_file(tmp_path / name, RunManifest)
    assert len(caught.value.message) < 1000


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    for name in ("run_manifest.yaml", "run_manifest.json"):
        write_file(tmp_path / name, samples.manifest())
        assert read_file(tmp_path / name, RunManifest) == samples.manifest()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run_manifest.json", "run_manifest.yaml"]


@pytest.mark.parametrize("place", ["file/x.json", "none/x.json", "x" * 300 + ".json", "x" * 250 + ".json"])
def test_a_place_that_cannot_be_written_is_told(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadRequest, match="cannot be written"):
        write_file(tmp_path / place, samples.manifest())


def test_a_folder_in_place_of_a_document_is_told_shortly(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="cannot be read: Is a directory"):
        read_file(tmp_path, RunManifest)
