"""An analysis is believed only as far as the model's folder says the same."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from runner.errors import Changed, DigestMismatch, RunnerError
from runner.host.model_location import ModelLocation
from runner.intake import analyse, fingerprint
from runner.intake.comparison import check_files, check_same, first_difference
from runner.settings import ModelSettings, RunnerSettings
from schemas.artifacts.analysis import ModelAnalysis
from schemas.catalog import Catalogue
from tests.runner.intake.checkpoints import mixtral_8x7b, write_checkpoint
from tests.runner.intake.engine import CATALOGUE, FACTS
from tests.runner.manifest.test_binding import changed_leaf, leaves


@pytest.fixture
def location(tmp_path: Path) -> ModelLocation:
    return ModelLocation(write_checkpoint(tmp_path / "m", *mixtral_8x7b()), "local", "m")


def made(location: ModelLocation) -> ModelAnalysis:
    return analyse(location, CATALOGUE, FACTS, settings_of(location))


def settings_of(location: ModelLocation) -> RunnerSettings:
    return RunnerSettings(models=ModelSettings(roots=[location.path.parent]))


def checked(given: ModelAnalysis, location: ModelLocation, catalogue: Catalogue = CATALOGUE) -> None:
    check_files(given.size.files, fingerprint(location.path))
    check_same(given, analyse(location, catalogue, FACTS, settings_of(location)), str(location.path))


def refusal(given: ModelAnalysis, location: ModelLocation, catalogue: Catalogue = CATALOGUE) -> RunnerError:
    with pytest.raises(RunnerError) as refused:
        checked(given, location, catalogue)
    assert refused.value.message.isprintable()
    assert refused.value.message.endswith(".")
    assert refused.value.hint
    return refused.value


def test_an_analysis_passes_after_a_trip_through_json(location: ModelLocation) -> None:
    checked(ModelAnalysis.model_validate_json(made(location).model_dump_json()), location)


def test_how_the_model_was_named_is_of_no_matter(location: ModelLocation) -> None:
    ambiguous = replace(location, source="ambiguous", asked="org/m")
    assert "ambiguous_source" in {risk.code for risk in made(ambiguous).risks}
    checked(made(ambiguous), location)


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def snapshot(tmp_path: Path) -> ModelLocation:
    folder = tmp_path / "models--org--m" / "snapshots" / COMMIT
    folder.parent.mkdir(parents=True)
    return ModelLocation(write_checkpoint(folder, *mixtral_8x7b()), "local", str(folder))


def test_a_snapshot_may_have_been_named_by_its_hub_id(snapshot: ModelLocation) -> None:
    by_id = made(replace(snapshot, source="huggingface_id", asked="org/m", revision=COMMIT, newer="f" * 40))
    assert "snapshot_older" in {risk.code for risk in by_id.risks}
    checked(by_id, snapshot)
    checked(made(snapshot), replace(snapshot, source="huggingface_id", asked="org/m", revision=COMMIT))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"source": "huggingface_id", "revision": "f" * 40}, "model.revision is ffff"),
        ({"source": "huggingface_id"}, "model.revision is nothing and should be 0123"),
        ({"source": "ambiguous", "revision": COMMIT}, "model.revision is 0123"),
        ({"revision": COMMIT}, "model.revision is 0123"),
        ({"hub_token": "somebody"}, "model.hub_token is somebody and should be ''"),
    ],
)
def test_a_commit_that_is_not_that_of_the_snapshot_is_refused(
    snapshot: ModelLocation, model: dict[str, str], words: str
) -> None:
    data = made(snapshot).model_dump(mode="json")
    data["model"].update(model)
    error = refusal(ModelAnalysis.model_validate(data), snapshot)
    assert error.code == "analysis_changed"
    assert words in error.message


def test_a_folder_has_no_commit_and_no_risk_of_another_name(location: ModelLocation) -> None:
    by_id = made(replace(location, source="huggingface_id", revision=COMMIT))
    assert "model.revision is 0123" in refusal(by_id, location).message
    ambiguous = made(replace(location, source="ambiguous", asked="org/m"))
    renamed = ambiguous.model_copy(update={"model": made(location).model})
    assert "risks has 1 entry and should have 0 entries" in refusal(renamed, location).message


def test_a_file_that_was_only_touched_is_the_same_file(location: ModelLocation) -> None:
    given = made(location)
    config = location.path / "config.json"
    config.write_bytes(config.read_bytes())
    checked(given, location)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda a: a["risks"].clear(), "risks has 0 entries and should have"),
        (lambda a: a["quantization_targets"]["groups"].clear(), "quantization_targets.groups has 0 entries"),
        (lambda a: a["model"].update(model_type="llama"), "model.model_type is llama and should be mixtral"),
        (lambda a: a["size"].update(weight_bytes=1), "size.weight_bytes is 1 and should be "),
        (lambda a: a["compatibility"].update(status="doubtful"), "compatibility.status is doubtful and should be ok"),
        (lambda a: a["model"].update(experts=None), "model.experts is nothing and should be 8"),
        (lambda a: a["model"].update(is_moe=False), "model.is_moe is false and should be true"),
        (lambda a: a["model"].update(model_type="a\nb\u202e"), "model.model_type is 'a\\nb\\u202e' and should be"),
        (lambda a: a["model"].update(model_path="/elsewhere"), "model.model_path is /elsewhere and should be"),
        (lambda a: a["size"]["files"].append(a["size"]["files"][0]), "size.files has"),
        (lambda a: a["size"]["files"][0].update(sha256=None), "size.files[0].sha256 is nothing and should be"),
    ],
)
def test_an_analysis_edited_by_hand_is_refused_by_the_place(location: ModelLocation, edit: Any, words: str) -> None:
    data = made(location).model_dump(mode="json")
    edit(data)
    error = refusal(ModelAnalysis.model_validate(data), location)
    assert isinstance(error, DigestMismatch)
    assert error.code == "analysis_changed"
    assert words in error.message
    assert str(location.path) in error.message


def test_one_changed_value_anywhere_is_refused(location: ModelLocation) -> None:
    plain = made(location).model_dump(mode="json")
    ignored = {("model", "source")}  # a folder's name may be ambiguous
    tried = 0
    for number, path in enumerate(leaves(plain)):
        times = path[-1] == "mtime_ns"  # judged together with the content
        if path in ignored or times:
            continue
        data = copy.deepcopy(plain)
        place = data
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = changed_leaf(place[path[-1]], number)
        try:
            other = ModelAnalysis.model_validate(data)
        except ValidationError:
            continue  # refused already as a document
        assert refusal(other, location).code in {"analysis_changed", "model_changed"}, path
        tried += 1
    assert tried > 50


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "config.json").write_text("{}"), "config.json has"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json is gone"),
        (lambda folder: (folder / "notes.json").write_text("{}"), "notes.json is new"),
    ],
)
def test_changed_files_are_said_first_even_where_nothing_can_be_analysed_any_more(
    location: ModelLocation, change: Any, words: str
) -> None:
    given = made(location)
    change(location.path)
    error = refusal(given, location)
    assert isinstance(error, Changed)
    assert error.code == "model_changed"
    assert words in error.message


def test_another_engine_gives_another_analysis(location: ModelLocation) -> None:
    other = CATALOGUE.model_copy(update={"templates": {}})
    assert refusal(made(location), location, other).code == "analysis_changed"


@pytest.mark.parametrize(
    ("found", "expected", "said"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": 1}, {"a": True}, "a is 1 and should be true"),
        ({"a": 1}, {"a": 1.0}, "a is 1 and should be 1.0"),
        ({"a": 1}, {}, "a is 1 and should be nothing"),
        ({"a": [{"b": "x"}]}, {"a": [{"b": "y"}]}, "a[0].b is x and should be y"),
        ({"a": []}, {"a": [1]}, "a has 0 entries and should have 1 entry"),
        ({"a": ""}, {"a": "y"}, "a is '' and should be y"),
        ({"a": "x" * 500}, {"a": "y"}, f"a is {'x' * 77}... and should be y"),
    ],
)
def test_the_first_difference_in_words(found: Any, expected: Any, said: str | None) -> None:
    difference = first_difference(found, json.loads(json.dumps(expected)))
    assert (None if difference is None else str(difference)) == said
