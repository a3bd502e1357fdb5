"""What the installed engine offers, compared with what was recorded of the version that the extra pins."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from runner.host.interpreter_facts import read_algorithm_configs, read_catalogue
from tests.fixtures_folder import fixture
from tests.runner.planning.algorithms import configs
from tests.runner.planning.catalogue import recorded
from tests.runner.ptq.scripts import loads_before_it_ends, needs_engine, run_script

pytestmark = [pytest.mark.quark, needs_engine]


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    output = tmp_path_factory.mktemp("catalogue") / "catalogue.json"
    done = run_script("catalogue_probe.py", "--output", output)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == ""
    assert [path.name for path in output.parent.iterdir()] == [output.name]
    read: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return read


def test_the_versions_are_those_of_the_interpreter(catalogue: dict[str, Any]) -> None:
    told = json.loads(run_script("environment_probe.py").stdout)
    versions = catalogue["versions"]
    assert versions["python"] == told["python"]
    assert versions["quark"] == told["packages"]["amd-quark"]
    assert versions["transformers"] == told["packages"]["transformers"]
    assert versions["torch_cuda"] == told["torch_build"]["cuda"]


def test_every_family_as_recorded(catalogue: dict[str, Any]) -> None:
    with fixture("quark", "builtin_algorithms.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["model_type"]: row for row in csv.DictReader(file)}
    assert set(catalogue["templates"]) == set(rows)
    for model_type, row in rows.items():
        template = catalogue["templates"][model_type]
        assert template["algorithms"] == [name for name in catalogue["algorithms"] if row[name] == "Y"], model_type
        assert template["exclude_defaults"] == row["exclude_defaults"].split(), model_type
        assert set(catalogue["algorithm_configs"][model_type]) == set(template["algorithms"])


def test_all_that_the_installed_engine_offers_is_what_was_recorded_of_it(catalogue: dict[str, Any]) -> None:
    """28 schemes, 9 algorithms and 51 families, each scheme with its words, and every configuration of an algorithm."""
    found = read_catalogue(catalogue, recorded().versions)
    assert found.schemes == recorded().schemes
    assert found.algorithms == recorded().algorithms
    assert found.templates == recorded().templates
    assert found.kv_cache_schemes == recorded().kv_cache_schemes
    assert found.described_algorithms.keys() == set(found.algorithms)
    assert read_algorithm_configs(catalogue) == configs()


def test_a_scheme_is_told_tensor_by_tensor(catalogue: dict[str, Any]) -> None:
    schemes = catalogue["schemes"]
    assert all(scheme["weight"] for scheme in schemes.values())
    assert schemes["fp8"]["weight"]["dtype"] == schemes["fp8"]["input"]["dtype"] == "fp8_e4m3"
    assert schemes["fp8"]["weight"]["qscheme"] == "per_tensor"
    assert (schemes["int4_wo_32"]["weight"]["group_size"], schemes["int4_wo_32"]["input"]) == (32, None)
    assert schemes["ptpc_fp8"]["input"]["is_dynamic"] is True
    assert [stage["dtype"] for stage in schemes["int4_fp8"]["weight"]] == ["fp8_e4m3", "int4"]
    assert catalogue["kv_cache_schemes"] == ["fp8"]


def test_the_families_of_the_engine_that_transformers_builds_are_among_those_it_knows(
    catalogue: dict[str, Any],
) -> None:
    known = catalogue["model_types_known_to_transformers"]
    assert known == sorted(known)
    assert {"llama", "qwen3", "qwen3_moe", "mixtral", "deepseek_v3"} <= set(known) & set(catalogue["templates"])


def test_a_folder_that_does_not_exist_is_named_before_the_engine_is_loaded(tmp_path: Path) -> None:
    output = tmp_path / "absent" / "catalogue.json"
    status, modules = loads_before_it_ends("catalogue_probe.py", "--output", output)
    assert status == 1
    assert not modules & {"torch", "quark"}
