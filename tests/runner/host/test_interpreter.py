from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from runner.errors import Broken
from runner.host import bounded
from runner.host.child import probe_environment, run_child, with_programs_of
from runner.host.interpreter import FRESH_SECONDS, Interpreter
from tests.runner.host.probes import CATALOGUE, FACTS, Probes
from tests.waiting import until


class HeldClock:
    """Monotonic time that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def probes(tmp_path: Path) -> Probes:
    return Probes(tmp_path / "probes")


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


def make(tmp_path: Path, probes: Probes, clock: HeldClock | None = None, seconds: float = 30.0) -> Interpreter:
    return Interpreter(
        Path(sys.executable), tmp_path / "cache", seconds, probes=probes.folder, clock=clock or HeldClock()
    )


def broken(work: Any) -> Broken:
    with pytest.raises(Broken) as refused:
        asyncio.run(work)
    error = refused.value
    assert error.message.endswith(".")
    assert "\n" not in error.message
    assert error.hint
    return error


def test_facts_and_catalogue_are_read(tmp_path: Path, probes: Probes) -> None:
    interpreter = make(tmp_path, probes)
    facts = asyncio.run(interpreter.facts())
    catalogue = asyncio.run(interpreter.catalogue())
    assert (facts.quark, facts.torch, facts.transformers) == ("0.13", "2.13.0+cpu", "5.16.1")
    assert catalogue.versions == facts.versions()
    assert [spec.dtype for spec in catalogue.schemes["int4_fp8"].weight] == ["fp8_e4m3", "int4"]
    assert catalogue.schemes["int4_fp8"].group_size == 32
    assert catalogue.schemes["fp8"].output == []
    assert catalogue.templates["llama"].exclude_defaults == ["lm_head"]
    assert catalogue.known_model_types == ["llama"]
    assert interpreter.known_catalogue is catalogue
    assert asyncio.run(interpreter.algorithm_configs()) == {"llama": {"awq": {"name": "awq"}}}
    assert probes.starts("catalogue") == 1


def test_callers_at_the_same_time_share_one_probe(tmp_path: Path, probes: Probes) -> None:
    async def many() -> None:
        interpreter = make(tmp_path, probes)
        found = await asyncio.gather(*(interpreter.catalogue() for _ in range(20)))
        assert all(catalogue == found[0] for catalogue in found)

    asyncio.run(many())
    assert (probes.starts("environment"), probes.starts("catalogue")) == (1, 1)


def test_a_caller_that_leaves_does_not_stop_the_probe_for_others(tmp_path: Path, probes: Probes) -> None:
    probes.tell_catalogue(CATALOGUE, once=tmp_path / "go")

    async def leave() -> None:
        interpreter = make(tmp_path, probes)
        await interpreter.facts()
        first = asyncio.ensure_future(interpreter.catalogue())
        second = asyncio.ensure_future(interpreter.catalogue())
        await until(lambda: probes.starts("catalogue"))
        first.cancel()
        (tmp_path / "go").touch()
        assert (await second).algorithms == ["awq"]
        assert first.cancelled()

    asyncio.run(leave())
    assert probes.starts("catalogue") == 1


def test_a_new_process_reads_the_catalogue_from_disk(tmp_path: Path, probes: Probes) -> None:
    first = asyncio.run(make(tmp_path, probes).catalogue())
    assert asyncio.run(make(tmp_path, probes).catalogue()) == first
    assert probes.starts("catalogue") == 1


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff\xfe", b'{"schemes": 5}', b"[" * 100_000])
def test_a_broken_cache_is_made_again(tmp_path: Path, probes: Probes, content: bytes) -> None:
    asyncio.run(make(tmp_path, probes).catalogue())
    (kept,) = (tmp_path / "cache").glob("catalogue-*")
    kept.write_bytes(content)
    assert asyncio.run(make(tmp_path, probes).catalogue()).algorithms == ["awq"]
    assert probes.starts("catalogue") == 2
    assert kept.stat().st_size > 100
    there = {path.name for path in (tmp_path / "cache").iterdir()}
    assert there == {kept.name, "probes"}, "no temporary file may stay"


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path, probes: Probes) -> None:
    (tmp_path / "cache").write_text("a file in its place")
    assert asyncio.run(make(tmp_path, probes).catalogue()).algorithms == ["awq"]


def test_facts_are_looked_up_again_after_a_while_or_when_asked(
    tmp_path: Path, probes: Probes, clock: HeldClock
) -> None:
    interpreter = make(tmp_path, probes, clock)

    async def steps() -> None:
        assert (await interpreter.facts()).quark == "0.13"
        probes.tell_facts(FACTS | {"packages": FACTS["packages"] | {"amd-quark": "0.14"}})
        assert (await interpreter.facts()).quark == "0.13"
        assert (await interpreter.facts(force=True)).quark == "0.14"
        probes.tell_facts(FACTS)
        clock.now += FRESH_SECONDS
        assert (await interpreter.facts()).quark == "0.13"

    asyncio.run(steps())
    assert probes.starts("environment") == 3


def test_a_forced_look_does_not_join_a_probe_that_looked_before(tmp_path: Path, probes: Probes) -> None:
    go = tmp_path / "go"
    wait = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
    probes.environment(f"{wait}print({json.dumps(FACTS)!r})")

    async def steps() -> None:
        interpreter = make(tmp_path, probes)
        early = asyncio.ensure_future(interpreter.facts())
        await until(lambda: probes.starts("environment"))
        probes.tell_facts(FACTS | {"packages": FACTS["packages"] | {"amd-quark": "0.14"}})
        forced = asyncio.ensure_future(interpreter.facts(force=True))
        joined = asyncio.ensure_future(interpreter.facts())
        await asyncio.sleep(0)
        go.touch()
        assert [(await task).quark for task in (early, joined, forced)] == ["0.13", "0.13", "0.14"]

    asyncio.run(steps())
    assert probes.starts("environment") == 2


def test_another_engine_means_another_catalogue(tmp_path: Path, probes: Probes, clock: HeldClock) -> None:
    interpreter = make(tmp_path, probes, clock)

    async def steps() -> None:
        assert (await interpreter.catalogue()).algorithms == ["awq"]
        probes.tell_facts(FACTS | {"packages": FACTS["packages"] | {"amd-quark": "0.14"}})
        probes.tell_catalogue(CATALOGUE | {"algorithms": ["awq", "new"]})
        found = await interpreter.catalogue(force=True)
        assert (found.algorithms, found.versions.quark) == (["awq", "new"], "0.14")

    asyncio.run(steps())


def test_another_probe_means_another_catalogue(tmp_path: Path, probes: Probes) -> None:
    asyncio.run(make(tmp_path, probes).catalogue())
    probes.tell_catalogue(CATALOGUE | {"algorithms": []})
    assert asyncio.run(make(tmp_path, probes).catalogue()).algorithms == []


@pytest.mark.parametrize(
    ("package", "code"),
    [("amd-quark", "quark_missing"), ("torch", "torch_missing"), ("transformers", "transformers_missing")],
)
def test_a_missing_package_is_named_with_the_way_to_install_it(
    tmp_path: Path, probes: Probes, package: str, code: str
) -> None:
    probes.tell_facts(FACTS | {"packages": FACTS["packages"] | {package: None}})
    interpreter = make(tmp_path, probes)
    error = broken(interpreter.catalogue())
    assert error.code == code
    assert error.message == f"The interpreter {sys.executable} has no {package}."
    assert f"{sys.executable} -m pip install" in error.hint
    assert probes.starts("catalogue") == 0
    assert asyncio.run(interpreter.facts()).python == "3.11.7", "facts can be told all the same"


@pytest.mark.parametrize("kind", ["missing", "folder", "text"])
def test_what_is_no_interpreter_is_refused(tmp_path: Path, probes: Probes, kind: str) -> None:
    python = tmp_path / "python"
    if kind == "folder":
        python.mkdir()
    elif kind == "text":
        python.write_text("hello")
    error = broken(Interpreter(python, tmp_path / "cache", probes=probes.folder).facts())
    assert error.code == "interpreter_missing"
    assert str(python) in error.message


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise SystemExit(3)", "status 3"),
        ("raise ImportError('no module named x')", "ImportError: no module named x"),
        ("print('hello')", "not a list of packages"),
        ("print('[]')", "not a list of packages"),
        ("", "not a list of packages"),
        ("print('x' * 20_000_000)", "not a list of packages"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "status -11"),
    ],
)
def test_an_interpreter_that_answers_nonsense_is_refused(tmp_path: Path, probes: Probes, body: str, says: str) -> None:
    probes.environment(body)
    error = broken(make(tmp_path, probes).facts())
    assert error.code == "interpreter_broken"
    assert says in error.message


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("import sys; sys.exit('The engine cannot be imported: no module named torchao')", "no module named torchao"),
        ("import sys; open(sys.argv[2], 'w').write('{')", "cannot read"),
        ("import sys; open(sys.argv[2], 'w').write('[]')", "cannot read"),
        ("import sys; open(sys.argv[2], 'w').write('{}')", "cannot read"),
        ("pass", "cannot read"),
    ],
)
def test_an_engine_that_cannot_be_loaded_is_refused_and_not_tried_again_at_once(
    tmp_path: Path, probes: Probes, clock: HeldClock, body: str, says: str
) -> None:
    probes.catalogue(body)
    interpreter = make(tmp_path, probes, clock)
    error = broken(interpreter.catalogue())
    assert error.code == "engine_broken"
    assert says in error.message
    assert broken(interpreter.catalogue()) is error
    assert probes.starts("catalogue") == 1
    clock.now += FRESH_SECONDS
    broken(interpreter.catalogue())
    assert probes.starts("catalogue") == 2
    assert not list((tmp_path / "cache").glob("*.json")), "what cannot be read is not kept"


def test_a_daemon_starts_with_a_broken_engine(tmp_path: Path, probes: Probes) -> None:
    probes.catalogue("import sys; sys.exit('broken')")
    interpreter = make(tmp_path, probes)
    problem = asyncio.run(interpreter.warm())
    assert isinstance(problem, Broken)
    assert interpreter.known_catalogue is None
    probes.tell_catalogue(CATALOGUE)
    assert asyncio.run(make(tmp_path, probes).warm()) is None


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


HANGS = """
import os, subprocess, time
child = subprocess.Popen(['sleep', '300'])
with open({file!r}, 'w') as file: file.write(f'{{os.getpid()}} {{child.pid}}\\n')
time.sleep(300)
"""


def test_a_probe_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path, probes: Probes) -> None:
    probes.catalogue(HANGS.format(file=str(tmp_path / "pids")))
    began = time.monotonic()
    error = broken(make(tmp_path, probes, seconds=4).catalogue())
    assert time.monotonic() - began < 60
    assert error.code == "probe_timeout"
    pids = [int(word) for word in (tmp_path / "pids").read_text().split()]

    async def gone() -> None:
        await until(lambda: all(is_gone(pid) for pid in pids))

    asyncio.run(gone())


BOUNDED = bounded.__file__
DAEMON = """
import asyncio, pathlib, sys
sys.path.insert(0, sys.argv[3])
from runner.host.interpreter import Interpreter
cache, probes = map(pathlib.Path, sys.argv[1:3])
asyncio.run(Interpreter(pathlib.Path(sys.executable), cache, 60.0, probes=probes).catalogue())
"""


def test_a_killed_daemon_leaves_no_probe_and_the_next_one_sweeps(tmp_path: Path, probes: Probes) -> None:
    probes.catalogue(HANGS.format(file=str(tmp_path / "pids")))
    cache = tmp_path / "cache"
    root = str(Path(__file__).parents[3])
    argv = [sys.executable, "-c", DAEMON, str(cache), str(probes.folder), root]
    daemon = subprocess.Popen(argv)

    async def killed() -> None:
        pids = tmp_path / "pids"
        await until(lambda: pids.exists() and pids.read_text().endswith("\n"))
        daemon.kill()
        daemon.wait()
        probe, grandchild = map(int, pids.read_text().split())
        await until(lambda: is_gone(probe))
        os.kill(grandchild, signal.SIGKILL)  # what a probe starts is not watched

    asyncio.run(killed())
    left = list((cache / "probes").iterdir())
    assert left, "the folder of a killed probe stays until somebody sweeps"
    asyncio.run(make(tmp_path, probes).facts())
    assert list((cache / "probes").iterdir()) == left, "it may belong to another daemon's probe"
    for place in left:
        os.utime(place, (0, 0))
    asyncio.run(make(tmp_path, probes).facts())
    assert list((cache / "probes").iterdir()) == []


def test_a_child_whose_parent_is_gone_does_not_start() -> None:
    argv = [sys.executable, "-I", "-S", BOUNDED, "1", "5", "1", sys.executable, "-c", "print('started')"]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")


def test_a_child_has_a_time_limit_of_its_own() -> None:
    bounds = [str(os.getpid()), "1", "2"]
    argv = [sys.executable, "-I", "-S", BOUNDED, *bounds, "sleep", "300"]
    assert subprocess.run(argv, check=False, timeout=60).returncode == -signal.SIGALRM


def test_what_a_probe_writes_lies_in_its_own_folder(tmp_path: Path, probes: Probes) -> None:
    probes.environment(
        f"import os, tempfile\nopen({str(tmp_path / 'seen')!r}, 'w').write(tempfile.gettempdir())\n"
        f"assert os.listdir() == []\nprint({json.dumps(FACTS)!r})"
    )
    asyncio.run(make(tmp_path, probes).facts())
    place = Path((tmp_path / "seen").read_text())
    assert place.parent == tmp_path / "cache" / "probes"
    assert not place.exists()


def test_a_kept_catalogue_that_says_something_else_is_made_again(tmp_path: Path, probes: Probes) -> None:
    good = asyncio.run(make(tmp_path, probes).catalogue())
    (kept,) = (tmp_path / "cache").glob("catalogue-*.json")
    kept.write_text(kept.read_text().replace("fp8_e4m3", "fp8_e5m2"))
    assert asyncio.run(make(tmp_path, probes).catalogue()) == good
    assert probes.starts("catalogue") == 2


def test_the_event_loop_goes_on_while_a_probe_runs(tmp_path: Path, probes: Probes) -> None:
    probes.catalogue(HANGS.format(file=str(tmp_path / "pids")))

    async def beside() -> None:
        interpreter = make(tmp_path, probes, seconds=60)
        await interpreter.facts()
        waiting = asyncio.ensure_future(interpreter.catalogue())
        await until(lambda: (tmp_path / "pids").exists() and (tmp_path / "pids").read_text().endswith("\n"))
        pids = (tmp_path / "pids").read_text().split()
        assert not waiting.done()
        assert (await interpreter.facts(force=True)).quark == "0.13", "the quick probe does not wait for the slow one"
        waiting.cancel()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await until(lambda: all(is_gone(int(pid)) for pid in pids))

    asyncio.run(beside())


def test_a_grandchild_that_holds_the_pipes_holds_nobody_up(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "import subprocess; print(subprocess.Popen(['sleep', '300']).pid)"]
    began = time.monotonic()
    result = asyncio.run(run_child(argv, timeout_seconds=120, environment=dict(os.environ), folder=tmp_path))
    assert time.monotonic() - began < 60
    assert result.status == 0
    asyncio.run(until(lambda: is_gone(int(result.output))))  # the kernel needs a moment to carry out a KILL


def test_a_child_that_writes_much_is_drained(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "import sys; print('o' * 30_000_000); print('e' * 300_000 + 'end', file=sys.stderr)"]
    result = asyncio.run(run_child(argv, timeout_seconds=60, environment=dict(os.environ), folder=tmp_path))
    assert result.status == 0
    assert len(result.output) == 8 * 2**20
    assert result.errors.endswith("end\n")
    assert len(result.errors) == 64 * 2**10


def test_a_probe_gets_no_secrets_and_asks_no_hub() -> None:
    given = {"PATH": "/bin", "PTQ_RUNNER_TOKEN": "s", "HF_TOKEN": "s", "AWS_SECRET_ACCESS_KEY": "s", "HOME": "/root"}
    environment = probe_environment(given)
    assert "s" not in environment.values()
    assert environment["PATH"] == "/bin"
    assert environment["HF_HUB_OFFLINE"] == "1"


def test_programs_beside_an_interpreter_are_found_last() -> None:
    given = {"PATH": "/bin:/usr/bin", "HOME": "/root"}
    assert with_programs_of("/opt/quark/bin/python", given) == {**given, "PATH": "/bin:/usr/bin:/opt/quark/bin"}
    assert with_programs_of("/usr/bin/python3", given) == given
    assert with_programs_of("python3", given) == given


def test_a_probe_does_not_import_from_where_the_daemon_stands(
    tmp_path: Path, probes: Probes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stray.py").write_text("raise SystemExit('imported from the working directory')")
    monkeypatch.chdir(tmp_path)
    probes.environment(
        "import importlib.util, sys\n"
        "if importlib.util.find_spec('stray'): sys.exit('stray can be imported')\n"
        f"print({json.dumps(FACTS)!r})"
    )
    assert asyncio.run(make(tmp_path, probes).facts()).python == "3.11.7"


@pytest.mark.quark
def test_the_real_engine_describes_itself(tmp_path: Path) -> None:
    pytest.importorskip("quark", reason="amd-quark is not installed in this interpreter", exc_type=ImportError)
    interpreter = Interpreter(Path(sys.executable), tmp_path / "cache")
    catalogue = asyncio.run(interpreter.catalogue())
    assert catalogue.versions.quark
    assert len(catalogue.schemes) >= 21
    assert len(catalogue.algorithms) >= 7
    assert len(catalogue.templates) >= 36
    assert catalogue.templates["llama"].exclude_defaults == ["lm_head"]
    assert catalogue.schemes["int4_wo_32"].group_size == 32
    assert "llama" in catalogue.known_model_types
    assert asyncio.run(interpreter.algorithm_configs())["llama"]["awq"]
