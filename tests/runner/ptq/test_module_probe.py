"""The list of modules of published models, by the installed engine. One process for all: importing it takes long."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.published_models import PUBLISHED, modules_of
from tests.runner.ptq.scripts import SCRIPTS, loads_before_it_ends, needs_engine
from tests.tiny_models import TinyShape, tiny_config

# Runs the script several times in one process and tells (status, stdout, stderr) of each.
_SEVERAL = """
import contextlib, io, json, runpy, sys
probe = runpy.run_path(sys.argv[1])
told = []
for arguments in json.loads(sys.argv[2]):
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = probe["main"](arguments)
    told.append([status, out.getvalue(), errors.getvalue()])
print("\\n" + json.dumps(told))
"""
_CODE = """
import pathlib
from transformers import LlamaConfig, LlamaForCausalLM
pathlib.Path({trace!r}).open("a").write("ran")
class OwnConfig(LlamaConfig):
    model_type = "own_family"
class OwnModel(LlamaForCausalLM):
    config_class = OwnConfig
"""


class Told(NamedTuple):
    """What one run of the probe said."""

    status: int
    output: str
    errors: str

    @property
    def models(self) -> list[dict[str, Any]]:
        """The models in its document."""
        found: list[dict[str, Any]] = json.loads(self.output)["models"]
        return found

    @property
    def sentence(self) -> str:
        """Its last line of stderr."""
        return self.errors.strip().splitlines()[-1]


def write_config(folder: Path, document: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(document))
    return folder


def with_code(folder: Path, trace: Path) -> Path:
    tiny = tiny_config(TinyShape("llama", 64, 128, 2, 4, 2, 320, 0, tied=True))
    names = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"}
    write_config(folder, {**tiny, "model_type": "own_family", "architectures": ["OwnModel"], "auto_map": names})
    (folder / "own.py").write_text(_CODE.format(trace=str(trace)))
    return folder


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    base = tmp_path_factory.mktemp("models")
    published = [write_config(base / name, config) for name, config in PUBLISHED.items()]
    moe = tiny_config(TinyShape("qwen3_moe", 64, 128, 5, 4, 2, 320, 4, tied=True))
    uneven = write_config(base / "uneven", {**moe, "mlp_only_layers": [1, 4], "intermediate_size": 96})
    quantized = write_config(base / "quantized", {**moe, "quantization_config": {"quant_method": "fp8"}})
    own = with_code(base / "own", base / "ran")
    cases: dict[str, Sequence[object]] = {
        "published": published,
        "uneven": [uneven],
        "quantized": [quantized],
        "unknown": [write_config(base / "unknown", {"model_type": "no_such_family"})],
        "encoder": [write_config(base / "encoder", {"model_type": "t5"})],
        "wrong": [write_config(base / "wrong", {**moe, "num_attention_heads": "many"})],
        "code": [own],
        "trusted": [own, "--trust_remote_code"],
    }
    arguments = [["--model_dir", *map(str, case)] for case in cases.values()]
    command = [sys.executable, "-c", _SEVERAL, str(SCRIPTS / "module_probe.py"), json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True, cwd=base)
    answers = json.loads(done.stdout.strip().splitlines()[-1])
    return {name: Told(*answer) for name, answer in zip(cases, answers, strict=True)}


@pytest.mark.quark
@needs_engine
class TestWithTheEngine:
    def test_published_models_are_told_as_recorded(self, told: dict[str, Told]) -> None:
        assert told["published"].status == 0, told["published"].errors[-2000:]
        for name, found in zip(PUBLISHED, told["published"].models, strict=True):
            assert found == modules_of(name), name

    @pytest.mark.parametrize(
        ("name", "layers"),
        [("Qwen3-8B", 253), ("Mixtral-8x7B", 897), ("Qwen3-30B-A3B", 18_673), ("DeepSeek-V3", 45_033)],
    )
    def test_every_linear_layer_is_counted_in_a_few_groups(self, told: dict[str, Told], name: str, layers: int) -> None:
        found = dict(zip(PUBLISHED, told["published"].models, strict=True))[name]
        assert found["linear_count"] == layers
        assert len(json.dumps(found)) < 5_000

    def test_layers_that_alternate_stand_in_groups_of_their_own(self, told: dict[str, Told]) -> None:
        (found,) = told["uneven"].models
        groups = {(group["pattern"], tuple(group["numbers"])): group["count"] for group in found["linears"]}
        assert groups["model.layers.*.mlp.up_proj", ("1,4",)] == 2
        assert groups["model.layers.*.mlp.experts.*.up_proj", ("0,2-3", "0-3")] == 12
        routers = [group for group in found["linears"] if not group["replaced"]]
        assert [(group["class"], group["count"]) for group in routers] == [("QuarkQwen3MoeTopKRouter", 3)]
        assert {
            "count": 3,
            "from": "Qwen3MoeExperts",
            "pattern": "model.layers.*.mlp.experts",
            "to": "QuarkExperts",
        } in (found["prepared"])

    def test_a_quantized_model_is_told_as_the_plain_one(self, told: dict[str, Told]) -> None:
        (found,) = told["quantized"].models
        assert found["quantized"] is True
        assert all(group["class"] in {"Linear", "QuarkQwen3MoeTopKRouter"} for group in found["linears"])

    @pytest.mark.parametrize(
        ("case", "words"),
        [
            ("unknown", "no_such_family"),
            ("encoder", "generate text, and transformers has none for t5"),
            ("wrong", "The model type qwen3_moe cannot be made from config.json: "),
            ("code", "trust_remote_code"),
        ],
    )
    def test_what_cannot_be_made_is_one_sentence(self, told: dict[str, Told], case: str, words: str) -> None:
        assert (told[case].status, told[case].output) == (1, "")
        assert words in told[case].sentence

    def test_code_of_a_model_runs_only_when_it_is_trusted(self, told: dict[str, Told]) -> None:
        assert told["code"].status == 1
        assert told["trusted"].status == 0, told["trusted"].errors[-2000:]
        (found,) = told["trusted"].models
        assert (found["model_type"], found["class"], found["linear_count"]) == ("own_family", "OwnModel", 15)


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "config.json cannot be read"), ("{", "config.json cannot be read"), ("[]", "does not hold a JSON object")],
)
def test_a_broken_configuration_is_told_before_the_engine_is_loaded(
    tmp_path: Path, content: str | None, words: str
) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    command = [sys.executable, str(SCRIPTS / "module_probe.py"), "--model_dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    status, modules = loads_before_it_ends("module_probe.py", "--model_dir", tmp_path)
    assert status == 1
    assert not modules & {"torch", "quark", "transformers"}


def test_more_memory_than_allowed_ends_it_with_a_sentence(tmp_path: Path) -> None:
    folder = write_config(tmp_path / "m", {"model_type": "llama"})
    command = [
        sys.executable,
        str(SCRIPTS / "module_probe.py"),
        "--model_dir",
        str(folder),
        "--memory_bytes",
        "1000000",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == "The model's list of modules needs more than 1000000 bytes of memory."
