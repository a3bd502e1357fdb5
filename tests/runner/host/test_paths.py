from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.errors import BadRequest
from runner.host.paths import checked_name, nearest_existing, root_of, within


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "has no name"),
        ("   \t", "has no name"),
        ("-rf", "begins with a dash"),
        ("--model_dir", "begins with a dash"),
        (" -x", "begins with a dash"),
        ("a\nb", "do not show"),
        ("a\0b", "do not show"),
        ("a\u202eb", "do not show"),
        ("a\ud800b", "do not show"),
        ("a\x1b[31mb", "do not show"),
        ("x" * 256, "longer than 255 bytes"),
        ("/" + "a/" * 2100, "more than 4096 bytes"),
    ],
)
def test_a_name_that_could_mislead_is_refused(name: str, says: str) -> None:
    with pytest.raises(BadRequest, match=says) as refused:
        checked_name(name, "model", "bad_model_name")
    assert refused.value.code == "bad_model_name"
    assert refused.value.message.isprintable()
    assert refused.value.hint


@pytest.mark.parametrize("name", ["/models/x", "org/name", "Модель", "a b", " /models/x ", "a-b"])
def test_an_ordinary_name_is_taken(name: str) -> None:
    assert checked_name(name, "model", "c") == name.strip()


@given(st.text(max_size=300))
def test_every_text_is_a_name_or_refused_with_a_sentence_that_shows(name: str) -> None:
    taken, refused = outcome(name)
    assert (taken is None) != (refused is None)
    shown = taken or (refused.message if refused else "")
    assert shown.isprintable()
    assert not shown.startswith("-")


def outcome(name: str) -> tuple[str | None, BadRequest | None]:
    try:
        return checked_name(name, "model", "c"), None
    except BadRequest as refused:
        return None, refused


def test_within_is_about_whole_folders() -> None:
    assert within(Path("/a/b"), Path("/a"))
    assert within(Path("/a"), Path("/a"))
    assert not within(Path("/ab"), Path("/a"))


def test_a_root_may_be_a_link_itself(tmp_path: Path) -> None:
    (tmp_path / "real" / "model").mkdir(parents=True)
    (tmp_path / "root").symlink_to("real")
    assert root_of(tmp_path / "real" / "model", [tmp_path / "root"]) == tmp_path / "real"
    assert root_of(tmp_path / "other", [tmp_path / "root"]) is None


def test_the_nearest_existing_folder(tmp_path: Path) -> None:
    assert nearest_existing(tmp_path / "a" / "b") == tmp_path
    assert nearest_existing(tmp_path) == tmp_path
