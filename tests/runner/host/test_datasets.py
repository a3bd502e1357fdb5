"""The mirror lists what it gives, and gives what it holds itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.errors import BadRequest
from runner.host.datasets import dataset_path, mirrored_datasets, text_bytes


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    folder = tmp_path / "mirror"
    (folder / "Salesforce" / "wikitext").mkdir(parents=True)
    (folder / "team").mkdir()
    for name in ("a.txt", "team/b.jsonl"):
        (folder / name).write_text("text\n")
    return folder


def test_named_datasets_stand_before_files(mirror: Path) -> None:
    assert mirrored_datasets(mirror) == ["wikitext", "a.txt", "team/b.jsonl"]
    assert dataset_path(mirror, "wikitext") == mirror / "Salesforce" / "wikitext"
    assert dataset_path(mirror, "a.txt") == mirror / "a.txt"
    assert dataset_path(mirror, "pileval") is None


@pytest.mark.parametrize("name", ["a\nb.txt", "a\x1b[31m.txt", "a\u202eb.txt", "-x.txt", " x.txt", "x\udc80.txt"])
def test_a_name_that_nobody_can_write_is_not_listed(mirror: Path, name: str) -> None:
    (mirror / name).write_text("text\n")
    assert mirrored_datasets(mirror) == ["wikitext", "a.txt", "team/b.jsonl"]


def test_links_out_of_the_mirror_are_neither_listed_nor_given(mirror: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret\n")
    (tmp_path / "pile").mkdir()
    (mirror / "out.txt").symlink_to(tmp_path / "secret.txt")
    (mirror / "away").symlink_to(tmp_path)
    (mirror / "mit-han-lab").mkdir()
    (mirror / "mit-han-lab" / "pile-val-backup").symlink_to(tmp_path / "pile")
    (mirror / "same.txt").symlink_to("a.txt")
    assert mirrored_datasets(mirror) == ["wikitext", "a.txt", "same.txt", "team/b.jsonl"]
    for name in ("out.txt", "away/secret.txt", "pileval", "../secret.txt", str(tmp_path / "secret.txt")):
        assert dataset_path(mirror, name) is None


def test_loops_of_links_are_neither_listed_nor_given(mirror: Path) -> None:
    (mirror / "loop.txt").symlink_to("loop.txt")
    (mirror / "sl").symlink_to("sl")
    (mirror / "mit-han-lab").symlink_to("mit-han-lab")
    assert mirrored_datasets(mirror) == ["wikitext", "a.txt", "team/b.jsonl"]
    assert [dataset_path(mirror, name) for name in ("loop.txt", "sl/x.txt", "pileval")] == [None, None, None]


@pytest.mark.parametrize("name", ["", "a\0b.txt", "\ud800.txt", "-x.txt", "x" * 300 + ".txt", "a\nb.txt"])
def test_what_is_no_name_never_reaches_the_file_system(mirror: Path, name: str) -> None:
    for place in (mirror, None):
        with pytest.raises(BadRequest) as refused:
            dataset_path(place, name)
        assert refused.value.code == "bad_dataset_name"


def test_a_mirror_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert mirrored_datasets(None) == mirrored_datasets(tmp_path / "gone") == []


def test_the_sizes_of_texts_are_those_of_the_files(mirror: Path) -> None:
    (mirror / "same.txt").symlink_to("a.txt")
    assert text_bytes(mirror, [*mirrored_datasets(mirror), "gone.txt"]) == {
        "a.txt": 5,
        "same.txt": 5,
        "team/b.jsonl": 5,
    }
    assert text_bytes(None, ["a.txt"]) == {}
