"""Lists of modules are made once, kept, and made again when what they rest on changed."""

from __future__ import annotations

import asyncio
import copy
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.errors import Broken, Refused, RunnerError
from runner.host.interpreter import Interpreter
from runner.intake.modules import ModuleList, ModuleLists
from runner.intake.source import ModelFolder
from tests.published_models import PUBLISHED, modules_of
from tests.runner.host.probes import FACTS, MODULES, Probes
from tests.runner.host.test_interpreter import HeldClock
from tests.waiting import until

_AUTO_MAP = {"AutoModelForCausalLM": "own.OwnModel"}


class Bench:
    """A model folder, a make-believe interpreter, and what a daemon would keep of both."""

    def __init__(self, folder: Path) -> None:
        self.probes = Probes(folder / "probes")
        self.cache = folder / "state" / "cache"
        self.clock = HeldClock()
        self.model = folder / "model"
        self.model.mkdir()
        self.write(model_type="llama")
        self.restart()

    def write(self, **config: Any) -> None:
        (self.model / "config.json").write_text(json.dumps(config))

    def restart(self) -> None:
        """Forget everything that is in memory."""
        python = Path(sys.executable)
        self.interpreter = Interpreter(python, self.cache, 30.0, probes=self.probes.folder, clock=self.clock)
        self.lists = ModuleLists(self.interpreter, self.cache, clock=self.clock)

    def of(self, **options: bool) -> ModuleList:
        return asyncio.run(self.lists.of(ModelFolder(self.model), **options))

    def refusal(self, **options: bool) -> RunnerError:
        with pytest.raises(RunnerError) as refused:
            self.of(**options)
        assert refused.value.message.endswith(".")
        assert refused.value.hint.endswith(".")
        return refused.value

    @property
    def asked(self) -> int:
        """How often the probe ran, ever."""
        return self.probes.starts("module")

    @property
    def kept(self) -> list[Path]:
        return sorted(self.cache.glob("modules-*"))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_document_of_a_published_model_is_read(name: str) -> None:
    found = ModuleList.model_validate(modules_of(name))
    assert sum(group.count for group in found.linears) == found.linear_count
    assert len({layer for group in found.linears for layer in group.names()}) == found.linear_count


@pytest.mark.parametrize(
    "wrong",
    [
        {"numbers": ["0-1"]},
        {"numbers": ["0-2", "0-1"]},
        {"numbers": ["all"]},
        {"count": 0},
        {"numbers": ["0-99999999999"], "count": 10**11},
        {"replaced": None},
    ],
)
def test_a_group_that_is_not_its_numbers_is_no_group(wrong: dict[str, Any]) -> None:
    document = copy.deepcopy(MODULES["models"][0])
    document["linears"][0] |= wrong
    with pytest.raises(ValueError, match="linears"):
        ModuleList.model_validate(document)


def test_a_list_is_made_once_and_kept_over_a_restart(bench: Bench) -> None:
    first = bench.of()
    assert (first.model_class, first.linears[0].count, bench.asked) == ("LlamaForCausalLM", 3, 1)
    assert bench.of() is first
    bench.restart()
    assert bench.of() == first
    assert bench.asked == 1
    assert len(bench.kept) == 1


def test_where_the_model_lies_is_of_no_matter_and_what_it_says_is(bench: Bench) -> None:
    bench.of()
    (bench.model / "notes.txt").write_text("other")
    bench.of()
    assert bench.asked == 1
    bench.write(model_type="llama", num_hidden_layers=4)
    bench.of()
    assert bench.asked == 2


def test_another_version_or_probe_gives_another_list(bench: Bench) -> None:
    bench.of()
    packages = {**FACTS["packages"], "transformers": "5.17.0"}
    bench.probes.tell_facts({**FACTS, "packages": packages})
    bench.restart()
    bench.of()
    assert bench.asked == 2
    bench.probes.modules(f"import sys\nopen(sys.argv[4], 'w').write({json.dumps(MODULES)!r})")
    bench.restart()
    bench.of()
    assert bench.asked == 3


def test_callers_at_the_same_time_share_one_probe(bench: Bench, tmp_path: Path) -> None:
    bench.probes.tell_modules(MODULES, once=tmp_path / "go")

    async def many() -> None:
        tasks = [asyncio.ensure_future(bench.lists.of(ModelFolder(bench.model))) for _ in range(10)]
        await until(lambda: bench.asked == 1)
        tasks[0].cancel()  # does not stop it for the others
        (tmp_path / "go").touch()
        found = await asyncio.gather(*tasks[1:])
        assert all(one == found[0] for one in found)

    asyncio.run(many())
    assert bench.asked == 1


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"models": []}', b'{"models": [{}]}', b"\xff"])
def test_a_damaged_cache_is_made_again(bench: Bench, content: bytes) -> None:
    good = bench.of()
    bench.kept[0].write_bytes(content)
    bench.restart()
    assert bench.of() == good
    assert bench.asked == 2
    assert json.loads(bench.kept[0].read_bytes())["document"] == MODULES


def test_a_kept_list_that_says_something_else_is_made_again(bench: Bench) -> None:
    good = bench.of()
    kept = bench.kept[0].read_text()
    for was, now in (('"in_features": 64', '"in_features": 32'), ('"replaced": true', '"replaced": false')):
        assert was in kept
        bench.kept[0].write_text(kept.replace(was, now))
        bench.restart()
        assert bench.of() == good
    assert bench.asked == 3


def test_a_list_that_does_not_count_its_layers_is_none(bench: Bench) -> None:
    document = copy.deepcopy(MODULES)
    document["models"][0]["linear_count"] = 4
    bench.probes.tell_modules(document)
    assert bench.refusal().code == "engine_broken"


def test_the_probe_has_a_limit_of_memory(bench: Bench) -> None:
    bench.probes.modules(
        "import sys\nlimit = int(sys.argv[sys.argv.index('--memory_bytes') + 1])\n"
        f"if limit <= 8 * 2**30: open(sys.argv[4], 'w').write({json.dumps(MODULES)!r})"
    )
    assert bench.of().linear_count == 3


def test_a_cache_that_cannot_be_written_costs_nothing_else(bench: Bench) -> None:
    asyncio.run(bench.interpreter.catalogue())
    bench.lists = ModuleLists(bench.interpreter, bench.model / "config.json" / "no folder", clock=bench.clock)
    assert bench.of() == bench.of()
    assert bench.asked == 1


def test_a_model_that_cannot_be_made_is_told_again_without_another_try(bench: Bench) -> None:
    bench.probes.modules("import sys\nprint('The model type llama cannot be made: no.', file=sys.stderr)\nsys.exit(1)")
    error = bench.refusal()
    assert isinstance(error, Refused)
    assert error.code == "modules_not_built"
    assert "The model type llama cannot be made: no." in error.message
    assert bench.refusal() is error
    assert bench.asked == 1
    bench.clock.now += 601
    bench.probes.tell_modules(MODULES)
    assert bench.of().linear_count == 3


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("raise ImportError('no torch')", "modules_not_built"),  # Python's own status for it is that of the probe
        ("import sys\nsys.exit(3)", "engine_broken"),
        ("import os\nos.kill(os.getpid(), 9)", "engine_broken"),
        ("pass", "engine_broken"),
        ("import sys\nopen(sys.argv[4], 'w').write('[]')", "engine_broken"),
    ],
)
def test_whatever_else_happens_is_told_and_tried_again_soon(bench: Bench, body: str, code: str) -> None:
    bench.probes.modules(body)
    error = bench.refusal()
    assert error.code == code
    bench.refusal()
    assert bench.asked == 1
    if isinstance(error, Broken):
        bench.clock.now += 61
        bench.refusal()
        assert bench.asked == 2


def test_a_probe_that_takes_too_long(bench: Bench) -> None:
    bench.probes.modules("import threading\nthreading.Event().wait(60)")
    asyncio.run(bench.interpreter.catalogue())
    bench.interpreter._timeout = 0.3
    assert bench.refusal().code == "probe_timeout"


def test_an_unknown_family_is_refused_without_asking_the_engine(bench: Bench) -> None:
    bench.write(model_type="newer")
    assert bench.refusal().code == "modules_unknown_family"
    assert bench.asked == 0


@pytest.mark.parametrize("options", [{}, {"trust_remote_code": True}, {"code_allowed": True}])
def test_code_runs_only_when_asked_and_allowed(bench: Bench, options: dict[str, bool]) -> None:
    bench.write(model_type="own_family", auto_map=_AUTO_MAP)
    assert bench.refusal(**options).code == "modules_need_code"
    assert bench.asked == 0


def test_a_list_that_needs_code_depends_on_that_code(bench: Bench) -> None:
    bench.probes.modules(
        "import os, sys\n"
        "assert '--trust_remote_code' in sys.argv\n"
        "assert os.path.exists(sys.argv[2] + '/own.py') and not os.path.exists(sys.argv[2] + '/tokenizer.json')\n"
        f"open(sys.argv[4], 'w').write({json.dumps(MODULES)!r})"
    )
    bench.write(model_type="own_family", auto_map=_AUTO_MAP)
    (bench.model / "tokenizer.json").write_text("{}")
    (bench.model / "own.py").write_text("first")
    trusted = {"trust_remote_code": True, "code_allowed": True}
    assert asyncio.run(bench.lists.kept(ModelFolder(bench.model))) is None
    made = bench.of(**trusted)
    assert asyncio.run(bench.lists.kept(ModelFolder(bench.model))) == made
    bench.restart()
    assert asyncio.run(bench.lists.kept(ModelFolder(bench.model))) == made
    (bench.model / "own.py").write_text("second")
    assert asyncio.run(bench.lists.kept(ModelFolder(bench.model))) is None
    bench.of(**trusted)
    assert bench.asked == 2


def test_a_family_that_transformers_knows_is_made_without_its_code(bench: Bench) -> None:
    bench.write(model_type="llama", auto_map=_AUTO_MAP)
    (bench.model / "own.py").write_text("raise SystemExit(9)")
    bench.probes.modules(
        "import os, sys\n"
        "assert '--trust_remote_code' not in sys.argv and not os.path.exists(sys.argv[2] + '/own.py')\n"
        f"open(sys.argv[4], 'w').write({json.dumps(MODULES)!r})"
    )
    assert bench.of(code_allowed=True).linear_count == 3
