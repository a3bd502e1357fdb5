"""Our script and a model that is still on the Hub: what it downloads, and what it says when that fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.hub import BreaksOff, HubPeer, Says
from tests.runner.ptq.scripts import events_of
from tests.tiny_models import make_tiny_model

PROGRAM = """
import argparse, sys
from runner.ptq.quantize import BadInput, Events, download
model, revision, trust = sys.argv[1:4]
options = argparse.Namespace(model_dir=model, revision=revision or None, trust_remote_code=trust == "trust")
try:
    print("folder", download(options, Events()))
except BadInput as problem:
    print("bad", problem)
"""
READ = {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
SHARDS = {f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)}
INDEX = "model.safetensors.index.json"


@pytest.fixture
def peer() -> Iterator[HubPeer]:
    with HubPeer().running() as started:
        yield started


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = make_tiny_model(tmp_path / "upstream", shards=3)
    (folder / "pytorch_model.bin").write_bytes(bytes(1000))
    (folder / "consolidated.safetensors").write_bytes((folder / "model-00001-of-00003.safetensors").read_bytes())
    (folder / "README.md").write_text("A model.")
    (folder / "modeling_tiny.py").write_text("raise RuntimeError")
    (folder / "original").mkdir()
    (folder / "original" / "params.json").write_text("{}")
    return folder


def download(peer: HubPeer, cache: Path, revision: str = "", *, name: str = "org/tiny", trust: str = "") -> str:
    """What the script says: `folder PATH`, or `bad SENTENCE`; its events come before."""
    hidden = {"HF_TOKEN", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name, revision, trust],
        env={**env, "HF_ENDPOINT": peer.url, "HF_HOME": str(cache), "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_one_commit_and_no_weights_twice(peer: HubPeer, model: Path, tmp_path: Path) -> None:
    commit = peer.add("org/tiny", model)
    peer.add("org/tiny", make_tiny_model(tmp_path / "newer", layers=3))
    said = download(peer, tmp_path / "hf", commit)
    folder = Path(said.removeprefix("folder "))
    assert folder.name == commit
    assert {path.name for path in folder.iterdir()} == READ | SHARDS | {INDEX}
    assert all((folder / name).read_bytes() == (model / name).read_bytes() for name in READ | SHARDS)
    peer.forget()
    assert download(peer, tmp_path / "hf", commit) == said
    assert peer.bytes_of("weight") == 0


def test_code_only_with_trust(peer: HubPeer, model: Path, tmp_path: Path) -> None:
    commit = peer.add("org/tiny", model)
    folder = Path(download(peer, tmp_path / "hf", commit, trust="trust").removeprefix("folder "))
    assert (folder / "modeling_tiny.py").exists()


def test_a_single_file_of_weights(peer: HubPeer, tmp_path: Path) -> None:
    peer.add("org/tiny", make_tiny_model(tmp_path / "single"))
    folder = Path(download(peer, tmp_path / "hf").removeprefix("folder "))
    assert {path.name for path in folder.iterdir()} == READ | {"model.safetensors"}


@pytest.mark.parametrize(
    ("where", "fault", "name", "words"),
    [
        ("nothing", Says(), "org/nowhere", "org/nowhere cannot be downloaded from the Hub"),
        ("/api/", Says(403, headers=(("X-Error-Code", "GatedRepo"),)), "org/tiny", "cannot be downloaded"),
        ("/api/", Says(200, b"{}"), "org/tiny", "cannot be downloaded"),
        ("signature", Says(404), "org/tiny", "cannot be downloaded"),
        ("index.json", Says(200, b"{}"), "org/tiny", "cannot be"),
    ],
)
def test_a_failure_is_a_sentence(
    peer: HubPeer, model: Path, tmp_path: Path, where: str, fault: Says, name: str, words: str
) -> None:
    peer.add("org/tiny", model)
    peer.fail(where, fault)
    said = download(peer, tmp_path / "hf", name=name)
    assert said.startswith("bad ")
    assert words in said


def test_a_connection_that_breaks_is_taken_up_again(peer: HubPeer, model: Path, tmp_path: Path) -> None:
    commit = peer.add("org/tiny", model)
    peer.fail("model-00001.*signature", BreaksOff(1000), 1)
    folder = Path(download(peer, tmp_path / "hf", commit).removeprefix("folder ").splitlines()[-1].split(" ")[-1])
    name = "model-00001-of-00003.safetensors"
    assert (folder / name).read_bytes() == (model / name).read_bytes()


def test_an_index_that_names_what_is_not_there(peer: HubPeer, model: Path, tmp_path: Path) -> None:
    index = json.loads((model / INDEX).read_text())
    index["weight_map"]["x"] = "model-00004-of-00004.safetensors"
    (model / INDEX).write_text(json.dumps(index))
    peer.add("org/tiny", model)
    assert "not complete: model-00004-of-00004.safetensors" in download(peer, tmp_path / "hf")


def test_how_much_has_arrived_is_said(tmp_path: Path) -> None:
    program = """
import sys, threading
from pathlib import Path
from runner.ptq.quantize import Events, arriving
cache, seen = Path(sys.argv[1]), threading.Event()
class Noted(Events):
    def write(self, kind, **fields):
        super().write(kind, **fields)
        seen.set()
with arriving(cache, {"a" * 40, "b" * 64}, 100, Noted()):
    assert seen.wait(30)
"""
    for file, size in (("a" * 40, 10), ("b" * 64 + ".x.incomplete", 20), ("c" * 40, 40)):
        (tmp_path / file).write_bytes(bytes(size))
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)
    (event,) = events_of(done.stdout)
    assert event == {"ptq": "progress", "phase": "preparing", "done": 30, "total": 100}
