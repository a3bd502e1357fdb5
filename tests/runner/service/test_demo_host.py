"""What a demonstration needs: made once for all of them, by one process, whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from runner.errors import Broken, Conflict
from runner.host.kernel_cache import kernel_cache
from runner.service.demo_host import MODEL, alone, default_cache, default_state, prepare
from runner.settings import load_settings
from tests.waiting import wait_until

# Stands in for the interpreter that makes the model, which takes most of a minute.
_MAKER = """#!{python} -IS
import json, os, pathlib, sys, threading
home = pathlib.Path({home!r})
with (home / "started").open("a") as trace:
    trace.write(json.dumps(sys.argv[1:]) + "\\n")
while (home / "wait").exists():
    threading.Event().wait(0.01)
if (home / "fail").exists():
    sys.exit("No space left on device")
options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
if "--text" in options:
    pathlib.Path(options["--text"]).write_text("words")
if "--output_dir" in options:
    temporary = pathlib.Path(options["--output_dir"] + ".new")
    temporary.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (temporary / name).write_text(name)
    temporary.rename(options["--output_dir"])
"""


class Maker:
    """The stand-in and what is known of it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir()
        self.program = home / "python"
        self.program.write_text(_MAKER.format(python=sys.executable, home=str(home)))
        self.program.chmod(0o755)

    def starts(self) -> list[list[str]]:
        """The arguments of each start."""
        trace = self.home / "started"
        return [json.loads(line) for line in trace.read_text().splitlines()] if trace.exists() else []

    def tell(self, name: str) -> Path:
        """Make it wait or fail for as long as the file is there."""
        (self.home / name).touch()
        return self.home / name


@pytest.fixture
def maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Maker:
    made = Maker(tmp_path / "maker")
    monkeypatch.setenv("PTQ_RUNNER_QUARK__PYTHON", str(made.program))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)
    return made


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "runner.service", "demo", "--prepare", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_the_program_says_where_everything_is_in_one_line(maker: Maker, tmp_path: Path) -> None:
    status, out, err = finish(start("--state", str(tmp_path / "here")))
    assert status == 0
    assert out.count("\n") == 1
    told = json.loads(out)
    cache = tmp_path / "cache" / "quark-ptq-bot" / "demo"
    assert told == {
        "config": str(tmp_path / "here" / "runner.yaml"),
        "model": str(cache / "models" / MODEL),
        "model_name": MODEL,
        "output_root": str(tmp_path / "here" / "outputs"),
        "dataset": "topics.txt",
        "calibration": {"num_calib_data": 8, "seq_len": 512},
        "state": str(tmp_path / "here"),
        "socket": str(tmp_path / "here" / "state" / "runner.sock"),
        "url": f"unix://{tmp_path / 'here' / 'state' / 'runner.sock'}",
        "made": True,
    }
    assert f"Making the model {MODEL} once" in err
    assert (cache / "models" / MODEL / "config.json").exists()
    assert (cache / "datasets" / "topics.txt").exists()
    settings = load_settings(Path(told["config"]))
    assert settings.models.roots == [cache / "models"]
    assert settings.datasets.mirror == cache / "datasets"
    assert (settings.datasets.num_calib_data, settings.datasets.seq_len) == (8, 512)
    assert len(maker.starts()) == 1

    status, out, err = finish(start())  # another folder: nothing is made again
    assert status == 0
    assert err == ""
    again = json.loads(out)
    assert (again["made"], again["model"]) == (False, told["model"])
    assert again["state"] == str(tmp_path / "data" / "quark-ptq-bot" / "demo")
    assert len(maker.starts()) == 1


def test_two_at_once_make_one_model(maker: Maker, tmp_path: Path) -> None:
    wait = maker.tell("wait")
    first = start("--state", str(tmp_path / "a"))
    wait_until(lambda: len(maker.starts()) == 1, 30)
    second = start("--state", str(tmp_path / "b"))
    assert second.stderr is not None
    assert "waiting for it" in second.stderr.readline()
    wait.unlink()
    results = [finish(first), finish(second)]
    assert [status for status, _, _ in results] == [0, 0]
    assert [json.loads(out)["made"] for _, out, _ in results] == [True, True]
    assert len(maker.starts()) == 1


def test_a_killed_one_leaves_its_maker_and_nobody_starts_a_second(maker: Maker, tmp_path: Path) -> None:
    wait = maker.tell("wait")
    first = start("--state", str(tmp_path / "a"))
    wait_until(lambda: len(maker.starts()) == 1, 30)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    second = start("--state", str(tmp_path / "b"))
    assert second.stderr is not None
    assert "waiting for it" in second.stderr.readline()
    wait.unlink()
    assert finish(second)[0] == 0
    assert len(maker.starts()) == 1


def test_a_maker_that_fails_is_one_sentence_and_the_next_one_tries_again(maker: Maker, tmp_path: Path) -> None:
    fail = maker.tell("fail")
    status, out, err = finish(start("--state", str(tmp_path / "a")))
    assert (status, out) == (1, "")
    assert "The model could not be made: No space left on device" in err
    assert "Traceback" not in err
    fail.unlink()
    assert finish(start("--state", str(tmp_path / "a")))[0] == 0


def test_what_was_taken_out_of_the_cache_is_made_again(maker: Maker, tmp_path: Path) -> None:
    said: list[str] = []
    host = prepare(tmp_path / "a", said.append)
    (host.model / "model.safetensors").unlink()
    left = host.model.parent / f".{MODEL}.x1y2"
    left.mkdir()
    assert prepare(tmp_path / "a", said.append).made
    assert (host.model / "model.safetensors").exists()
    assert not left.exists()
    (default_cache() / "datasets" / "topics.txt").unlink()
    assert prepare(tmp_path / "a", said.append).made
    assert len(said) == 2
    assert [sorted(option for option in start if option.startswith("--")) for start in maker.starts()] == [
        ["--output_dir", "--text"],
        ["--output_dir"],
        ["--text"],
    ]


@pytest.mark.usefixtures("maker")
def test_what_is_known_of_the_engine_is_shared(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        hosts = [prepare(tmp_path / name, print) for name in ("a", "b")]
    finally:
        os.umask(before)
    caches = [host.settings.state_dir / "cache" for host in hosts]
    (caches[0] / "catalogue-1.json").write_text("{}")
    assert (caches[1] / "catalogue-1.json").exists()
    for folder in (*(host.settings.state_dir for host in hosts), caches[0].resolve()):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    own = tmp_path / "c" / "state" / "cache"
    own.mkdir(parents=True, mode=0o700)
    prepare(tmp_path / "c", print)
    assert not own.is_symlink()


@pytest.mark.usefixtures("maker")
def test_a_folder_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Broken, match="The demonstration cannot use") as caught:
        prepare(tmp_path / "file" / "x", print)
    assert "--state" in caught.value.hint


def test_an_interpreter_that_is_missing_is_one_sentence(
    maker: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTQ_RUNNER_QUARK__PYTHON", str(maker.home / "none"))
    with pytest.raises(Broken, match="cannot be started: No such file"):
        prepare(tmp_path / "a", print)


@pytest.mark.usefixtures("maker")
def test_a_lock_that_a_stopped_demonstration_left_is_removed(tmp_path: Path) -> None:
    lock = kernel_cache() / "py311_cpu" / "kernels" / "lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    prepare(tmp_path / "a", print)
    assert not lock.exists()


@pytest.mark.usefixtures("maker")
def test_settings_are_replaced_whole(tmp_path: Path) -> None:
    host = prepare(tmp_path / "a", print)
    with host.config.open() as old:
        prepare(tmp_path / "a", print)
        assert yaml.safe_load(old) == yaml.safe_load(host.config.read_text())
    assert [path.name for path in host.folder.glob("runner*")] == ["runner.yaml"]


def test_a_folder_has_one_demonstration(tmp_path: Path) -> None:
    with alone(tmp_path / "a"):
        with pytest.raises(Conflict, match="Another demonstration works in"), alone(tmp_path / "a"):
            pass
        with alone(tmp_path / "b"):
            pass
    with alone(tmp_path / "a") as _, (tmp_path / "a" / ".demonstration").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.usefixtures("maker")
def test_a_second_demonstration_in_the_folder_is_refused(tmp_path: Path) -> None:
    with alone(tmp_path / "a"):
        command = [sys.executable, "-m", "runner.service", "demo", "--state", str(tmp_path / "a")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert "Another demonstration works in" in done.stderr


def test_folders_are_the_user_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, "relative")  # the standard says to ignore it
    assert default_cache() == Path.home() / ".cache" / "quark-ptq-bot" / "demo"
    assert default_state() == Path.home() / ".local" / "share" / "quark-ptq-bot" / "demo"
