from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.errors import RunnerError
from runner.host.model_location import ModelLocation
from runner.host.output_location import check_disk, check_output, examine_output, gigabytes
from runner.host.workspace import workspace_context
from runner.settings import OutputSettings, RunnerSettings
from schemas.artifacts.workspace import OutputState
from tests.runner.host.settings import settings_in
from tests.runner.host.unprivileged import open_to_all, unprivileged


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "m"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


def refusal(asked: str | None, model: Path, settings: RunnerSettings) -> RunnerError:
    with pytest.raises(RunnerError) as refused:
        check_output(examine_output(asked, model, settings))
    assert refused.value.message.endswith(".")
    assert refused.value.hint
    return refused.value


def test_a_place_that_does_not_exist_can_be_used(tmp_path: Path, model: Path) -> None:
    output = examine_output("new/deep", model, settings_in(tmp_path))
    assert output.path == tmp_path / "out" / "new" / "deep"
    assert (output.state, output.exists, output.parent_writable, output.usable) == (
        OutputState.ABSENT,
        False,
        True,
        True,
    )
    assert output.free_bytes is not None
    assert output.free_bytes > 0
    check_output(output)
    assert not output.path.exists(), "looking must make nothing"


def test_an_empty_folder_can_be_used(tmp_path: Path, model: Path) -> None:
    settings = settings_in(tmp_path)
    (tmp_path / "out" / "x").mkdir()
    output = examine_output(str(tmp_path / "out" / "x"), model, settings)
    assert (output.state, output.exists) == (OutputState.EMPTY, True)
    check_output(output)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("file", "output_is_file"),
        ("full", "output_not_empty"),
        ("", "bad_output_name"),
        ("-x", "bad_output_name"),
        ("a\nb", "bad_output_name"),
        (".", "output_is_root"),
        ("../elsewhere", "output_outside_roots"),
        ("/etc/x", "output_outside_roots"),
        ("link-out/x", "output_outside_roots"),
        ("link-full", "output_not_empty"),
        ("file/below", "output_not_writable"),
        ("loop", "output_not_reachable"),
        ("loop/x", "output_not_reachable"),
        ("ping/x/y", "output_not_reachable"),
        ("/".join(["x" * 254] * 16), "output_not_reachable"),
    ],
)
def test_each_unusable_place_has_its_code(tmp_path: Path, model: Path, asked: str, code: str) -> None:
    settings = settings_in(tmp_path)
    out = tmp_path / "out"
    (out / "file").write_text("x")
    (out / "full").mkdir()
    (out / "full" / ".hidden").write_text("x")
    (out / "link-out").symlink_to(tmp_path)
    (out / "link-full").symlink_to("full")
    (out / "loop").symlink_to("loop")
    (out / "ping").symlink_to("pong")
    (out / "pong").symlink_to("ping")
    if asked == ".":
        for name in ("file", "full/.hidden", "link-out", "link-full", "loop", "ping", "pong"):
            (out / name).unlink()
        (out / "full").rmdir()
    assert refusal(asked, model, settings).code == code


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("models/m", "output_equals_model"),
        ("models/m/quantized", "output_inside_model"),
        ("models", "output_above_model"),
        ("alias", "output_equals_model"),
        ("alias/quantized", "output_inside_model"),
    ],
)
def test_the_model_itself_is_never_in_the_way_of_an_output(tmp_path: Path, model: Path, asked: str, code: str) -> None:
    (tmp_path / "alias").symlink_to(model)
    settings = RunnerSettings(outputs=OutputSettings(roots=[tmp_path]))
    assert refusal(str(tmp_path / asked), model, settings).code == code


def test_a_link_to_nowhere_is_judged_by_where_it_leads(tmp_path: Path, model: Path) -> None:
    settings = settings_in(tmp_path)
    (tmp_path / "out" / "link").symlink_to("later")
    output = examine_output("link", model, settings)
    assert (output.path, output.state) == (tmp_path / "out" / "later", OutputState.ABSENT)
    (tmp_path / "out" / "away").symlink_to(tmp_path / "later")
    assert refusal("away", model, settings).code == "output_outside_roots"


def test_without_roots_nothing_can_be_written(model: Path) -> None:
    assert refusal(None, model, RunnerSettings()).code == "no_output_roots"


@pytest.mark.parametrize("asked", ["x", None])
def test_a_root_that_is_gone_is_not_made(tmp_path: Path, model: Path, asked: str | None) -> None:
    settings = settings_in(tmp_path)
    seen = examine_output(asked, model, settings)
    (tmp_path / "out").rmdir()
    error = refusal(asked, model, settings)
    assert error.code == "output_root_missing"
    assert f"{tmp_path / 'out'} does not exist" in error.message
    with pytest.raises(RunnerError) as refused:
        check_output(seen)
    assert refused.value.code == "output_root_missing"
    (tmp_path / "out").write_text("x")
    assert "is not a folder" in refusal(asked, model, settings).message
    (tmp_path / "out").unlink()
    (tmp_path / "out").symlink_to("later")
    assert refusal(asked, model, settings).code == "output_root_missing"
    assert not (tmp_path / "later").exists()


def test_an_unreachable_place_is_not_usable(tmp_path: Path, model: Path) -> None:
    settings = settings_in(tmp_path)
    (tmp_path / "out" / "loop").symlink_to("loop")
    assert not examine_output("loop/x", model, settings).usable


def test_a_free_place_is_proposed(tmp_path: Path, model: Path) -> None:
    settings = settings_in(tmp_path)
    first = examine_output(None, model, settings)
    assert first.path == tmp_path / "out" / "m-quantized"
    first.path.mkdir()
    assert examine_output(None, model, settings).path == first.path, "an empty folder is free"
    (first.path / "config.json").write_text("{}")
    assert examine_output(None, model, settings).path == tmp_path / "out" / "m-quantized-2"
    assert examine_output(None, model, settings, name="Qwen3-8B").path.name == "Qwen3-8B-quantized"


def test_a_place_that_may_not_be_written(tmp_path: Path, model: Path) -> None:
    settings = settings_in(tmp_path)
    open_to_all(tmp_path / "out")
    with unprivileged():
        if os.geteuid() == (tmp_path / "out").stat().st_uid:
            (tmp_path / "out").chmod(0o555)
        output = examine_output("x", model, settings)
        error = refusal("x", model, settings)
    assert not output.parent_writable
    assert not output.usable
    assert error.code == "output_not_writable"
    assert str(tmp_path / "out") in error.message


def test_what_may_not_be_looked_into_is_not_taken_for_empty(tmp_path: Path, model: Path) -> None:
    settings = settings_in(tmp_path)
    open_to_all(tmp_path / "out")
    closed = tmp_path / "out" / "closed"
    closed.mkdir()
    closed.chmod(0o000)
    with unprivileged():
        assert examine_output("closed", model, settings).state is OutputState.NOT_EMPTY
    closed.chmod(0o755)


def test_disk_space_is_compared_with_what_is_free_beyond_the_reserve(tmp_path: Path, model: Path) -> None:
    output = examine_output("x", model, settings_in(tmp_path))
    free = output.free_bytes
    assert free is not None
    check_disk(output, free - 1000, 1000)
    with pytest.raises(RunnerError, match="stay reserved") as refused:
        check_disk(output, free - 999, 1000)
    assert refused.value.code == "disk_full"


@pytest.mark.parametrize(
    ("count", "text"), [(5_000_000, "5 MB"), (1_000_000_000, "1.0 GB"), (16_400_000_000, "16.4 GB")]
)
def test_bytes_in_words(count: int, text: str) -> None:
    assert gigabytes(count) == text


def test_the_workspace_document_says_what_was_looked_at(tmp_path: Path, model: Path) -> None:
    settings = settings_in(tmp_path)
    location = ModelLocation(model, "local", "m")
    context = workspace_context(location, examine_output("x", model, settings), trust_remote_code_required=True)
    assert context.model_path == str(model)
    assert context.output_dir_state is OutputState.ABSENT
    assert context.trust_remote_code_required
    assert context.disk_space_gb_free
    assert context.quark_script_path is None
    looked = {required.input: (required.exists, required.kind) for required in context.required_paths}
    assert looked["m"] == (True, "directory")
    assert looked["config.json"] == (True, "file")
    assert looked["x"] == (False, None)
