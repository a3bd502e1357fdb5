"""What a failed run left is set apart: its place is free again, nothing is lost, and nothing else is touched."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.errors import Broken
from runner.host.output_location import check_output, examine_output
from runner.runs.output import read_output
from runner.runs.partial import set_apart
from schemas.artifacts.workspace import OutputState
from tests.runner.host.settings import settings_in
from tests.runner.host.unprivileged import open_to_all, unprivileged
from tests.runner.runs.supervising import a_small_disk

RUN = "run-0123456789abcdef"


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """An output folder as a run leaves it that was ended while it exported."""
    folder = tmp_path / "out" / "llama-fp8"
    (folder / "shards").mkdir(parents=True)
    fill(folder)
    return folder


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """The same where the output folder is a file system of its own, which cannot be renamed."""
    (tmp_path / "out").mkdir()
    with a_small_disk(tmp_path / "out" / "mounted") as folder:
        (folder / "shards").mkdir()
        fill(folder)
        yield folder


def fill(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    (folder / "shards" / "model.safetensors").write_bytes(b"half of it")


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def may_be_used(folder: Path, tmp_path: Path) -> bool:
    """Whether a retry's checks accept the folder."""
    model = tmp_path / "models" / "m"
    model.mkdir(parents=True, exist_ok=True)
    place = examine_output(str(folder), model, settings_in(tmp_path))
    check_output(place)
    return place.usable


def test_the_folder_is_renamed_and_its_name_is_free(output: Path, tmp_path: Path) -> None:
    before = content(output)
    place = Path(set_apart(output, RUN))
    assert place == output.with_name(f"llama-fp8.partial-{RUN}")
    assert content(place) == before
    assert not output.exists()
    assert may_be_used(output, tmp_path)


def test_asked_again_it_says_the_same_and_leaves_the_retry_alone(output: Path) -> None:
    place = set_apart(output, RUN)
    assert set_apart(output, RUN) == place
    (output / "shards").mkdir(parents=True)
    fill(output)
    kept = content(output)
    assert set_apart(output, RUN) == place
    assert content(output) == kept, "that is the work of a later run"
    assert set_apart(output, "run-2") == str(output.with_name("llama-fp8.partial-run-2"))


@pytest.mark.parametrize("there", [True, False], ids=["empty", "absent"])
def test_nothing_is_left_of_nothing(tmp_path: Path, there: bool) -> None:
    output = tmp_path / "out"
    if there:
        output.mkdir()
    assert set_apart(output, RUN) == ""
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_set_apart_itself(output: Path, tmp_path: Path) -> None:
    """A command that put a link in place of its folder must not lead the runner out of it."""
    before = content(output)
    link = tmp_path / "out" / "link"
    link.symlink_to(output)
    place = Path(set_apart(link, RUN))
    assert place.is_symlink()
    assert not os.path.lexists(link)
    assert content(output) == before


def test_a_long_name_is_cut(tmp_path: Path) -> None:
    output = tmp_path / ("ü" * 127)
    output.mkdir()
    (output / "config.json").touch()
    place = set_apart(output, RUN)
    assert place.endswith(f".partial-{RUN}")
    assert set_apart(output, RUN) == place
    assert not output.exists()


def test_a_mount_point_keeps_it_within(mounted: Path, tmp_path: Path) -> None:
    before = content(mounted)
    place = Path(set_apart(mounted, RUN))
    assert place == mounted / f".partial-{RUN}"
    assert content(place) == before
    assert [path.name for path in mounted.iterdir()] == [place.name]
    assert may_be_used(mounted, tmp_path)
    assert set_apart(mounted, RUN) == str(place)
    assert set_apart(mounted, "run-2") == "", "the second try wrote nothing"
    assert read_output(mounted).sizes == {}, "what was set apart is no part of a result"
    (mounted / "shards").mkdir()
    fill(mounted)
    assert set_apart(mounted, "run-2") == str(mounted / ".partial-run-2")
    assert content(place) == content(mounted / ".partial-run-2") == before


@pytest.mark.parametrize("moved", [[], ["config.json"], ["config.json", "shards"]], ids=len)
def test_a_crash_in_between_is_made_up_for(mounted: Path, moved: list[str]) -> None:
    before, inside = content(mounted), mounted / f".partial-{RUN}"
    inside.mkdir()
    for name in moved:
        (mounted / name).rename(inside / name)
    assert set_apart(mounted, RUN) == str(inside)
    assert content(inside) == before
    assert [path.name for path in mounted.iterdir()] == [inside.name]


def test_nothing_within_is_ever_overwritten(mounted: Path) -> None:
    inside = mounted / f".partial-{RUN}"
    inside.mkdir()
    (inside / "config.json").write_text("written first")
    set_apart(mounted, RUN)
    assert (inside / "config.json").read_text() == "written first"
    assert (inside / "config.json~").read_text() == "{}"


def test_where_the_folder_above_may_not_be_written_it_stays_within(output: Path) -> None:
    open_to_all(output.parent)
    for place in (output, *output.rglob("*")):
        place.chmod(0o777)
    before = content(output)
    with unprivileged():
        place = Path(set_apart(output, RUN))
    if os.geteuid() == 0:  # else the folder above is the tester's own, and may be written
        assert place.parent == output
    assert content(place) == before


def test_a_link_in_place_of_the_folder_within_is_not_followed(mounted: Path, tmp_path: Path) -> None:
    (mounted / f".partial-{RUN}").symlink_to(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(Broken, match="cannot be set apart") as refused:
        set_apart(mounted, RUN)
    assert refused.value.code == "output_not_set_apart"
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_what_cannot_be_moved_is_told(mounted: Path) -> None:
    inner = mounted / "inner"
    inner.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(inner)], check=True)
    try:
        with pytest.raises(Broken, match=os.strerror(errno.EBUSY)) as refused:
            set_apart(mounted, RUN)
        assert "Move or remove it" in refused.value.hint
    finally:
        subprocess.run(["umount", "--lazy", str(inner)], check=True)
    assert set_apart(mounted, RUN) == str(mounted / f".partial-{RUN}"), "once nothing is mounted there it goes on"


def test_only_folders_count_as_set_apart(tmp_path: Path) -> None:
    settings, output = settings_in(tmp_path), tmp_path / "out" / "x"
    model = tmp_path / "models" / "m"
    model.mkdir(parents=True)
    output.mkdir()
    (output / ".partial-note").touch()
    assert examine_output(str(output), model, settings).state is OutputState.NOT_EMPTY
    assert set_apart(output, RUN) == str(output.with_name(f"x.partial-{RUN}"))


@pytest.mark.parametrize("name", ["é" * 120, "a" + "é" * 120, "量" * 80, "ab" + "量" * 80, "a" * 250])
def test_where_it_lies_can_be_told_also_when_a_long_name_had_to_be_cut(tmp_path: Path, name: str) -> None:
    output = tmp_path / name
    output.mkdir()
    (output / "config.json").write_text("{}")
    place = set_apart(output, "run-0123456789abcdef")
    assert (Path(place) / "config.json").exists()
    assert place.encode().endswith(b".partial-run-0123456789abcdef")
