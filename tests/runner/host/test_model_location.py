from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.errors import OutsideRoots, RunnerError
from runner.host.model_location import check_links, locate_model, model_roots
from runner.settings import ModelSettings, RunnerSettings
from tests.runner.host.settings import settings_in
from tests.runner.host.unprivileged import open_to_all, unprivileged

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def hub_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "hub-cache"
    monkeypatch.setenv("HF_HUB_CACHE", str(folder))
    return folder


def make_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


def make_snapshot(cache: Path, name: str = "org/name", commit: str = COMMIT, ref: str | None = "main") -> Path:
    """A download as the Hub's client keeps it: the snapshot's files are links to blobs."""
    repository = cache / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (repository / "blobs").mkdir(exist_ok=True)
    (repository / "blobs" / "b10b").write_text("{}")
    (snapshot / "config.json").symlink_to("../../blobs/b10b")
    if ref:
        (repository / "refs" / ref).parent.mkdir(parents=True, exist_ok=True)
        (repository / "refs" / ref).write_text(commit)
    return snapshot


def refusal(asked: str, settings: RunnerSettings, revision: str | None = None) -> RunnerError:
    with pytest.raises(RunnerError) as refused:
        locate_model(asked, settings, revision)
    error = refused.value
    assert error.message.endswith(".")
    assert "\n" not in error.message
    assert error.hint
    return error


def test_an_absolute_folder_in_a_root(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    model = make_model(tmp_path / "models" / "smollm2")
    location = locate_model(str(model), settings)
    assert (location.path, location.source, location.name) == (model, "local", "smollm2")
    assert locate_model(f"{model}/", settings).path == model
    assert locate_model(f"{model}/../smollm2/.", settings).path == model


@pytest.mark.parametrize("name", ["smollm2", "./smollm2", "smollm2/", "org/name", "deep/er/model"])
def test_a_relative_name_is_looked_up_beneath_the_roots(tmp_path: Path, name: str) -> None:
    settings = settings_in(tmp_path)
    model = make_model((tmp_path / "models" / name).resolve())
    location = locate_model(name, settings)
    assert (location.path, location.source) == (model, "local")


def test_a_folder_that_could_be_a_hub_id_is_ambiguous_only_where_hub_ids_are_allowed(tmp_path: Path) -> None:
    model = make_model(tmp_path / "models" / "org" / "name")
    assert locate_model("org/name", settings_in(tmp_path)).source == "local"
    online = locate_model("org/name", settings_in(tmp_path, hub=True))
    assert (online.source, online.path) == ("ambiguous", model)


def test_a_name_in_two_roots_is_ambiguous(tmp_path: Path) -> None:
    other = tmp_path / "other"
    settings = settings_in(tmp_path, more_roots=(other,))
    make_model(tmp_path / "models" / "m")
    make_model(other / "m")
    error = refusal("m", settings)
    assert error.code == "ambiguous_model"
    assert str(tmp_path / "models" / "m") in error.message
    assert str(other / "m") in error.message


def test_one_folder_reached_through_two_roots_is_one_folder(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, more_roots=(tmp_path / "alias",))
    (tmp_path / "alias").symlink_to("models")
    model = make_model(tmp_path / "models" / "m")
    assert locate_model("m", settings).path == model


def _file(models: Path) -> None:
    (models / "x").write_text("weights")


def _empty(models: Path) -> None:
    (models / "x").mkdir()


def _loop(models: Path) -> None:
    (models / "x").symlink_to("x")


def _config_loop(models: Path) -> None:
    (models / "x").mkdir()
    (models / "x" / "config.json").symlink_to("config.json")


def _dangling(models: Path) -> None:
    (models / "x").symlink_to("y")


def _out(models: Path) -> None:
    make_model(models.parent / "secret")
    (models / "x").symlink_to(models.parent / "secret")


def _parent(models: Path) -> None:
    make_model(models / "x" / "inner")


@pytest.mark.parametrize(
    ("prepare", "code", "says"),
    [
        (lambda _: None, "model_missing", "does not exist"),
        (_file, "model_is_file", "is a file"),
        (_empty, "config_missing", "no config.json"),
        (_loop, "model_not_reachable", "cannot be reached"),
        (_config_loop, "model_not_readable", "cannot be reached"),
        (_dangling, "model_missing", "does not exist"),
        (_out, "outside_roots", "leads to"),
        (_parent, "config_missing", "no config.json"),
    ],
    ids=["absent", "file", "empty", "loop", "config-loop", "dangling", "outside", "parent"],
)
def test_what_is_no_model_is_refused_by_its_code(tmp_path: Path, prepare: object, code: str, says: str) -> None:
    settings = settings_in(tmp_path)
    assert callable(prepare)
    prepare(tmp_path / "models")
    error = refusal(str(tmp_path / "models" / "x"), settings)
    assert error.code == code
    assert says in error.message


@pytest.mark.parametrize("asked", ["x", "x/inner", "{models}/x/inner"])
def test_a_loop_of_links_is_said_however_it_is_named(tmp_path: Path, asked: str) -> None:
    settings = settings_in(tmp_path)
    _loop(tmp_path / "models")
    error = refusal(asked.format(models=tmp_path / "models"), settings)
    assert error.code == "model_not_reachable"
    assert "links" in error.message


def test_the_hint_names_the_model_in_a_folder_of_models(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    _parent(tmp_path / "models")
    assert "inner" in refusal(str(tmp_path / "models" / "x"), settings).hint


def test_the_hint_names_a_similar_model(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    make_model(tmp_path / "models" / "smollm2")
    error = refusal("smolm2", settings)
    assert error.code == "model_missing"
    assert "smollm2" in error.hint


@pytest.mark.parametrize("asked", ["/etc", "/etc/passwd", "../secret", "x/../../secret", "/nowhere/at/all", "/"])
def test_outside_the_roots_nothing_is_told_of_what_exists(tmp_path: Path, asked: str) -> None:
    settings = settings_in(tmp_path)
    make_model(tmp_path / "secret")
    error = refusal(asked, settings)
    assert error.code == "outside_roots"
    assert isinstance(error, OutsideRoots)
    assert str(tmp_path / "models") in error.hint


@pytest.mark.parametrize("asked", ["/models/x", "x", "deep/er/x"])
def test_without_roots_no_model_can_be_named(asked: str) -> None:
    assert refusal(asked, RunnerSettings()).code == "no_model_roots"


def test_a_folder_that_may_not_be_read(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    model = make_model(tmp_path / "models" / "m")
    open_to_all(tmp_path / "models")
    for place, mode in ((model, 0o000), (model / "config.json", 0o000)):
        before = place.stat().st_mode
        place.chmod(mode)
        with unprivileged():
            error = refusal(str(model), settings)
        place.chmod(before | 0o055)
        assert error.code == "model_not_readable"


def test_a_pipe_in_place_of_the_configuration_holds_nobody_up(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    (tmp_path / "models" / "m").mkdir()
    os.mkfifo(tmp_path / "models" / "m" / "config.json")
    assert locate_model("m", settings).path.name == "m"  # the pipe is refused when it is read


def test_a_hub_id_without_the_hub(tmp_path: Path) -> None:
    error = refusal("Qwen/Qwen3-8B", settings_in(tmp_path))
    assert error.code == "hub_off"
    assert "is a Hub id and this runner is offline" in error.message
    assert str(tmp_path / "models") in error.hint


def test_a_hub_id_without_the_hub_and_without_roots() -> None:
    assert refusal("Qwen/Qwen3-8B", RunnerSettings()).code == "hub_off"


def test_a_hub_id_that_is_not_on_this_host(tmp_path: Path) -> None:
    error = refusal("Qwen/Qwen3-8B", settings_in(tmp_path, hub=True))
    assert error.code == "hub_not_downloaded"
    assert "hf download Qwen/Qwen3-8B" in error.hint


def test_a_snapshot_in_the_hubs_cache(tmp_path: Path, hub_cache_folder: Path) -> None:
    snapshot = make_snapshot(hub_cache_folder)
    location = locate_model("org/name", settings_in(tmp_path, hub=True))
    assert (location.path, location.source) == (snapshot, "huggingface_id")
    assert (location.revision, location.name) == (COMMIT, "name")


def test_the_hubs_cache_is_no_root_while_the_hub_is_off(tmp_path: Path, hub_cache_folder: Path) -> None:
    snapshot = make_snapshot(hub_cache_folder)
    assert refusal("org/name", settings_in(tmp_path)).code == "hub_off"
    assert refusal(str(snapshot), settings_in(tmp_path)).code == "outside_roots"
    assert locate_model(str(snapshot), settings_in(tmp_path, hub=True)).path == snapshot


def test_a_root_may_be_a_cache_of_the_hub(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    snapshot = make_snapshot(tmp_path / "models")
    assert locate_model("org/name", settings).path == snapshot
    error = refusal(str(tmp_path / "models" / "models--org--name"), settings)
    assert error.code == "config_missing"
    assert COMMIT in error.hint


def test_a_revision_is_a_branch_or_a_commit_of_a_snapshot(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    make_snapshot(tmp_path / "models")
    other = make_snapshot(tmp_path / "models", commit="f" * 40, ref="pr/1")
    assert locate_model("org/name", settings, "f" * 40).path == other
    assert locate_model("org/name", settings, "pr/1").revision == "f" * 40
    assert locate_model("org/name", settings).revision == COMMIT
    assert refusal("org/name", settings, "v9").code == "hub_off"


def test_the_only_snapshot_needs_no_reference(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    make_snapshot(tmp_path / "models", ref=None)
    assert locate_model("org/name", settings).revision == COMMIT
    make_snapshot(tmp_path / "models", commit="f" * 40, ref=None)
    assert refusal("org/name", settings).code == "hub_off"


@pytest.mark.parametrize("revision", ["../../..", "-x", "a b", "", "a/../b", "/etc", "x\n"])
def test_a_revision_cannot_be_a_path(tmp_path: Path, revision: str) -> None:
    assert refusal("org/name", settings_in(tmp_path), revision).code == "bad_revision"


def test_a_folder_has_no_revision(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    make_model(tmp_path / "models" / "m")
    assert refusal("m", settings, "main").code == "revision_of_folder"


def test_links_inside_a_model_may_lead_to_another_place_in_a_root_only(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    model = make_model(tmp_path / "models" / "m")
    (tmp_path / "models" / "shared.json").write_text("{}")
    (tmp_path / "secret.json").write_text("{}")
    (model / "tokenizer.json").symlink_to("../shared.json")
    roots = model_roots(settings)
    check_links(model, ["config.json", "tokenizer.json"], roots)
    (model / "chat.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(OutsideRoots, match=r"chat\.json is a link to"):
        check_links(model, ["config.json", "chat.json"], roots)


def test_a_cache_whose_blobs_lie_in_the_root_passes(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    snapshot = make_snapshot(tmp_path / "models")
    check_links(snapshot, ["config.json"], model_roots(settings))


def test_a_snapshot_that_leads_out_of_the_roots_is_refused(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    outside = make_snapshot(tmp_path / "elsewhere")
    repository = tmp_path / "models" / "models--org--name"
    (repository / "snapshots").mkdir(parents=True)
    (repository / "snapshots" / COMMIT).symlink_to(outside)
    assert refusal("org/name", settings).code == "outside_roots"


def test_roots_without_the_hub_are_those_of_the_settings(tmp_path: Path) -> None:
    assert model_roots(RunnerSettings(models=ModelSettings(roots=[tmp_path]))) == (tmp_path,)
