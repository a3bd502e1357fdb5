"""An analysis is kept for as long as the files, the engine and the depth are the same, and no longer."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.errors import RunnerError
from runner.host.interpreter import FRESH_SECONDS, Interpreter
from runner.host.model_location import ModelLocation
from runner.intake.modules import ModuleLists
from runner.service import analyses
from runner.service.analyses import Analyses, Depth
from runner.settings import ModelSettings, RunnerSettings
from schemas.artifacts.analysis import FileFact, ModelAnalysis
from tests.runner.host.probes import CATALOGUE, FACTS, MODULES, Probes
from tests.runner.host.test_interpreter import HeldClock
from tests.tiny_models import make_tiny_model

_LATER_NS = 3_600_000_000_000


class Bench:
    """A tiny model whose files were written an hour ago, and how often it was really looked at."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.model = make_tiny_model(folder / "models" / "tiny", layers=3)
        self.location = ModelLocation(self.model, "local", "tiny")
        self.probes = Probes(folder / "probes")
        self.clock = HeldClock()
        self.settings = RunnerSettings(
            models=ModelSettings(roots=[folder / "models"]), state_dir=folder / "state", remote_code=True
        )
        cache = folder / "state" / "cache"
        self.interpreter = Interpreter(Path(sys.executable), cache, 30, probes=self.probes.folder, clock=self.clock)
        self.lists = ModuleLists(self.interpreter, cache, clock=self.clock)
        self.now = time.time_ns() + _LATER_NS
        self.kept = Analyses(self.settings, self.interpreter, self.lists, now=lambda: self.now)
        self.made = self._count(monkeypatch, "analyse")
        self.read = self._count(monkeypatch, "fingerprint")

    @staticmethod
    def _count(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
        original, calls = getattr(analyses, name), list[str]()

        def counted(*given: Any) -> Any:
            calls.append(name)
            return original(*given)

        monkeypatch.setattr(analyses, name, counted)
        return calls

    def of(self, depth: Depth = "headers", location: ModelLocation | None = None, **options: bool) -> ModelAnalysis:
        return asyncio.run(self.kept.of(location or self.location, depth, **options))

    def check(self, given: ModelAnalysis, **options: bool) -> None:
        asyncio.run(self.kept.check(given, ModelLocation(self.model, "local", str(self.model)), **options))

    def files(self, **options: bool) -> list[FileFact]:
        return asyncio.run(self.kept.files(self.location, **options))

    def config(self, **changes: Any) -> None:
        path = self.model / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_an_unchanged_model_is_looked_at_once(bench: Bench) -> None:
    first = bench.of()
    assert bench.of() is first
    bench.check(first)
    bench.check(ModelAnalysis.model_validate_json(first.model_dump_json()))
    assert bench.files() == first.size.files
    assert (len(bench.made), len(bench.read)) == (1, 0)


def test_a_fresh_look_is_a_real_one(bench: Bench) -> None:
    first = bench.of()
    bench.check(first, fresh=True)
    assert bench.files(fresh=True) == first.size.files
    assert (len(bench.made), len(bench.read)) == (2, 2)


def test_depths_are_kept_apart(bench: Bench) -> None:
    headers, modules = bench.of(), bench.of("modules")
    assert (headers.quantization_targets.method, modules.quantization_targets.method) == ("headers", "modules")
    assert bench.of() is headers
    assert bench.of("modules") is modules
    bench.check(headers)
    bench.check(modules)
    assert len(bench.made) == 2


def _same_size(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(1, 1))


CHANGES: list[Callable[[Path], object]] = [
    lambda model: (model / "config.json").write_text((model / "config.json").read_text() + " "),
    lambda model: (model / "special_tokens_map.json").unlink(),
    lambda model: (model / "notes.txt").write_text("new"),
    lambda model: _same_size(model / "model.safetensors"),
    lambda model: (model / "tokenizer.json").rename(model / "moved.json"),
    lambda model: os.utime(model / "model.safetensors", ns=(7, 7)),
]


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_of_the_files_is_looked_at_again(bench: Bench, change: Callable[[Path], object]) -> None:
    (bench.model / "tokenizer.model").write_text("another tokenizer")  # so that losing one is no error of its own
    first = bench.of()
    change(bench.model)
    assert bench.of() is not first
    assert len(bench.made) == 2


def test_a_change_is_told_by_the_file(bench: Bench) -> None:
    first = bench.of()
    bench.config(hidden_size=64)
    with pytest.raises(RunnerError) as refused:
        bench.check(first)
    assert refused.value.code == "model_changed"
    assert "config.json" in refused.value.message


def test_files_that_were_written_just_now_are_not_kept(bench: Bench) -> None:
    bench.now = time.time_ns()
    first = bench.of()
    assert bench.of() == first
    assert len(bench.made) == 2


def test_another_engine_is_another_analysis(bench: Bench) -> None:
    first = bench.of()
    packages = {**FACTS["packages"], "transformers": "5.17.0"}
    bench.probes.tell_facts({**FACTS, "packages": packages})
    bench.clock.now += FRESH_SECONDS + 1
    assert bench.of().compatibility.transformers_version == "5.17.0"
    with pytest.raises(RunnerError) as refused:
        bench.check(first)
    assert refused.value.code == "analysis_changed"


def test_how_the_model_was_named_is_part_of_an_answer_and_not_of_a_comparison(bench: Bench) -> None:
    ambiguous = ModelLocation(bench.model, "ambiguous", "org/tiny")
    found = bench.of(location=ambiguous)
    assert "ambiguous_source" in {risk.code for risk in found.risks}
    assert "ambiguous_source" not in {risk.code for risk in bench.of().risks}
    bench.check(found)
    assert len(bench.made) == 2


def test_callers_at_the_same_time_share_one_look(bench: Bench) -> None:
    async def many() -> None:
        await bench.interpreter.catalogue()
        found = await asyncio.gather(*(bench.kept.of(bench.location) for _ in range(8)))
        assert all(one is found[0] for one in found)

    asyncio.run(many())
    assert len(bench.made) == 1


def test_a_model_that_is_broken_is_refused_each_time(bench: Bench) -> None:
    bench.config(model_type=None)
    for _ in range(2):
        with pytest.raises(RunnerError) as refused:
            bench.of()
        assert refused.value.code == "model_type_missing"
    assert len(bench.made) == 2


def test_only_so_many_are_kept(bench: Bench) -> None:
    for number in range(40):
        bench.of(location=ModelLocation(bench.model, "ambiguous", f"org/{number}"))
    assert len(bench.made) == 40
    bench.of(location=ModelLocation(bench.model, "ambiguous", "org/39"))
    assert len(bench.made) == 40
    bench.of(location=ModelLocation(bench.model, "ambiguous", "org/0"))
    assert len(bench.made) == 41


def test_an_analysis_that_took_the_models_code_is_compared_without_running_it(bench: Bench) -> None:
    bench.config(model_type="own_family", auto_map={"AutoModelForCausalLM": "own.OwnModel"})
    (bench.model / "own.py").write_text("")
    bench.probes.tell_catalogue({**CATALOGUE, "model_types_known_to_transformers": ["other"]})
    bench.probes.tell_modules(MODULES)
    found = bench.of("modules", trust_remote_code=True)
    bench.check(found)
    assert bench.probes.starts("module") == 1
    for path in (bench.settings.state_dir / "cache").glob("modules-*"):
        path.unlink()
    bench.lists = ModuleLists(bench.interpreter, bench.settings.state_dir / "cache")
    bench.kept = Analyses(bench.settings, bench.interpreter, bench.lists)
    with pytest.raises(RunnerError) as refused:
        bench.check(found)
    assert refused.value.code == "modules_need_code"
    assert bench.probes.starts("module") == 1
