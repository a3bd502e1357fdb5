from __future__ import annotations

from pathlib import Path

import pytest

from runner.errors import NotHere
from runner.host.entry_points import OWN_SCRIPT, entry_point, entry_points, wanted_entry_point_problem
from runner.settings import QuarkSettings, RunnerSettings
from tests.runner.host.settings import settings_in
from tests.runner.intake.engine import FACTS

SCRIPT = "examples/torch/language_modeling/llm_ptq/quantize_quark.py"


def checkout(folder: Path) -> Path:
    script = folder / "Quark" / SCRIPT
    script.parent.mkdir(parents=True)
    script.write_text("print('quantize')")
    return folder / "Quark"


def test_our_own_script_is_always_there(tmp_path: Path) -> None:
    assert entry_points(settings_in(tmp_path), None) == {"own": str(OWN_SCRIPT)}
    assert OWN_SCRIPT.name == "quantize.py"


def test_a_checkout_and_the_command_line_are_added(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    facts = FACTS.model_copy(update={"quark_cli": "/venv/bin/quark-cli"})
    found = entry_points(settings_in(tmp_path, checkout=folder), facts)
    assert found == {
        "quantize_quark": str(folder / SCRIPT),
        "quark_cli": "/venv/bin/quark-cli",
        "own": str(OWN_SCRIPT),
    }


def test_a_checkout_without_the_script_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    settings = settings_in(tmp_path, checkout=tmp_path / "empty")
    assert "quantize_quark" not in entry_points(settings, None)
    with pytest.raises(NotHere, match=rf"{tmp_path / 'empty'} has no {SCRIPT}") as missing:
        entry_point("quantize_quark", settings, None)
    assert "quark.checkout" in missing.value.hint
    problem = wanted_entry_point_problem(settings, None)
    assert problem is not None
    assert problem.code == "entry_point_missing"


def test_no_checkout_is_a_problem_only_when_it_is_wanted(tmp_path: Path) -> None:
    assert wanted_entry_point_problem(settings_in(tmp_path), None) is None
    with pytest.raises(NotHere, match="no Quark checkout is configured"):
        entry_point("quantize_quark", settings_in(tmp_path), None)
    wanting = RunnerSettings(quark=QuarkSettings(entry_point="quantize_quark"))
    assert wanted_entry_point_problem(wanting, None) is not None


def test_a_missing_command_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotHere, match="no quark-cli beside the interpreter") as missing:
        entry_point("quark_cli", settings_in(tmp_path), FACTS)
    assert "amd-quark[cli]" in missing.value.hint


def with_script(folder: Path, script: Path) -> RunnerSettings:
    settings = settings_in(folder)
    return settings.model_copy(update={"quark": settings.quark.model_copy(update={"script": script})})


def test_a_script_of_the_site_is_added(tmp_path: Path) -> None:
    script = tmp_path / "site" / "our_ptq.py"
    script.parent.mkdir()
    script.write_text("print('quantize')")
    settings = with_script(tmp_path, script)
    assert entry_points(settings, None) == {"own": str(OWN_SCRIPT), "site": str(script)}
    assert wanted_entry_point_problem(settings, None) is None


def test_a_script_of_the_site_that_cannot_be_taken_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotHere, match="No script of this site is configured"):
        entry_point("site", settings_in(tmp_path), None)
    (tmp_path / "site").mkdir()
    (tmp_path / "models" / "ptq.py").write_text("")
    (tmp_path / "site" / "link.py").symlink_to(tmp_path / "models" / "ptq.py")
    for script, words in (
        (tmp_path / "site" / "gone.py", "is not there"),
        (tmp_path / "site", "also holds|is not there"),
        (tmp_path / "site" / "link.py", "lies in a folder of models"),
        (tmp_path / "models" / "ptq.py", "lies in a folder of models"),
    ):
        settings = with_script(tmp_path, script)
        assert "site" not in entry_points(settings, None)
        with pytest.raises(NotHere, match=words):
            entry_point("site", settings, None)
        assert wanted_entry_point_problem(settings, None) is not None
