"""A quantization interpreter that has no engine: it answers the probes from recordings and "quantizes" as it is told.

It is a real program in a real process, so that everything around the engine can be tested in seconds. What it is told
lies in `behaviour.json` beside it; each start of the quantization leaves a line in `started` beside it.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

_DATA = Path(__file__).parent.parent / "data"
_PACKAGES = {
    "torch": "2.13.0+cpu",
    "transformers": "5.16.1",
    "amd-quark": "0.13",
    "accelerate": "1.15.0",
    "datasets": "5.2.0",
}
_CPU_BUILD = {"cuda": None, "hip": None, "tag": "cpu"}


def install(folder: Path) -> Path:
    """Make `folder/python`, to be named as `quark.python` in runner.yaml."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "python"
    program.write_text(f"#!{sys.executable} -IS\nimport runpy, sys\n_home = {str(folder)!r}\n" + _BOOT.format(__file__))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    tell(folder)
    return program


def tell(folder: Path, **behaviour: Any) -> None:
    """What the next one does: `wait_for` and `check_waits_for` (files), `exit`, `says`, `stubborn`, `spoil`,
    `fills` (the disk, with so many MiB), `diary` (a file that notes where each computes); and `modules_fail` (a
    sentence) for the list of modules."""
    (folder / "behaviour.json").write_text(json.dumps(behaviour))


def build_for_rocm(folder: Path) -> None:
    """Its torch is a build for AMD's GPUs from now on."""
    (folder / "torch_build.json").write_text(json.dumps({"cuda": None, "hip": "6.4", "tag": "rocm6.4"}))


def starts(folder: Path) -> int:
    """How often a quantization was started, ever."""
    path = folder / "started"
    return len(path.read_text().splitlines()) if path.exists() else 0


def module_lists(folder: Path) -> int:
    """How often a list of modules was asked for, ever."""
    path = folder / "listed"
    return len(path.read_text()) if path.exists() else 0


_BOOT = """_module = runpy.run_path({!r})
sys.exit(_module["main"](_home, sys.argv[1:]))
"""


def main(home: str, arguments: list[str]) -> int:
    """Run a script of the project in name: which one is known by its file name."""
    script, rest = Path(arguments[0]).name, arguments[1:]
    if script == "environment_probe.py":
        print(json.dumps(environment(home)))
        return 0
    if script == "catalogue_probe.py":
        recorded = (_DATA / "catalogue-probe-0.13.json").read_bytes()
        Path(rest[rest.index("--output") + 1]).write_bytes(recorded)
        return 0
    if script == "module_probe.py":
        return modules(Path(home), rest)
    if script == "reload_check.py":
        return reload_check(Path(home))
    if script.endswith("_ptq.py"):  # a script of a test's own site is run for real
        os.execv(sys.executable, [sys.executable, *arguments])
    return quantize(Path(home), rest)


def modules(home: Path, arguments: list[str]) -> int:
    """The list of modules as recorded of a published model, else of a tiny decoder by its configuration."""
    with (home / "listed").open("a") as trace:
        trace.write("x")
    told = json.loads((home / "behaviour.json").read_text())
    if told.get("modules_fail"):
        print(told["modules_fail"], file=sys.stderr)
        return 1
    config = json.loads((Path(arguments[arguments.index("--model_dir") + 1]) / "config.json").read_text())
    recorded = json.loads((_DATA / "modules-0.13.json").read_text())
    size = (config["model_type"], config["vocab_size"], config["num_hidden_layers"])
    published = {("qwen3", 151936, 36): "Qwen3-8B", ("deepseek_v3", 129280, 61): "DeepSeek-V3"}
    document = recorded[published[size]] if size in published else _decoder(config)
    Path(arguments[arguments.index("--output") + 1]).write_text(json.dumps({"models": [document]}))
    return 0


def _decoder(config: dict[str, Any]) -> dict[str, Any]:
    """A decoder of dense layers, or of layers with experts, as the engine sees it."""
    hidden, width, layers = config["hidden_size"], config["intermediate_size"], f"0-{config['num_hidden_layers'] - 1}"
    head = hidden // config["num_attention_heads"]
    keys = config["num_key_value_heads"] * head
    experts = config.get("num_experts") or config.get("num_local_experts")
    mlp, numbers = ("mlp.experts.*", [layers, f"0-{experts - 1}"]) if experts else ("mlp", [layers])
    shapes = [
        *((f"self_attn.{name}", hidden, size, [layers]) for name, size in (("q_proj", hidden), ("o_proj", hidden))),
        *((f"self_attn.{name}", hidden, keys, [layers]) for name in ("k_proj", "v_proj")),
        *((f"{mlp}.{name}", hidden, width, numbers) for name in ("gate_proj", "up_proj")),
        (f"{mlp}.down_proj", width, hidden, numbers),
    ]
    groups = [_linears(f"model.layers.*.{name}", inputs, outputs, numbers) for name, inputs, outputs, numbers in shapes]
    groups.append(_linears("lm_head", hidden, config["vocab_size"], []))
    norms = ["model.layers.*.input_layernorm", "model.layers.*.post_attention_layernorm", "model.norm"]
    return {
        "model_type": config["model_type"],
        "class": "Decoder",
        "linear_count": sum(group["count"] for group in groups),
        "linears": groups,
        "norms": norms,
        "convolutions": [],
        "kept": [],
        "prepared": [],
        "quantized": False,
    }


def _linears(pattern: str, inputs: int, outputs: int, numbers: list[str]) -> dict[str, Any]:
    count = 1
    for text in numbers:
        count *= int(text.partition("-")[2]) + 1
    sizes = {"in_features": inputs, "out_features": outputs}
    return {"pattern": pattern, "numbers": numbers, "count": count, "class": "Linear", "replaced": True, **sizes}


def reload_check(home: Path) -> int:
    """Say that the model loads, once `check_waits_for` is there."""
    told = json.loads((home / "behaviour.json").read_text())
    with (home / "checked").open("a") as trace:
        trace.write(f"{os.getpid()}\n")
    _wait(told.get("check_waits_for"))
    say(ptq="reload", ok=True, seconds=0.1, logits_finite=True, dtype="bfloat16")
    return 0


def environment(home: str) -> dict[str, Any]:
    """The answer of the quick probe. `versions` and `torch_build` beside the interpreter change what is installed."""
    build = Path(home) / "torch_build.json"
    changed = Path(home) / "versions.json"
    packages = {**_PACKAGES, **(json.loads(changed.read_text()) if changed.exists() else {})}
    return {
        "python": "3.11.7",
        "executable": f"{home}/python",
        "prefix": home,
        "packages": packages,
        "torch_build": json.loads(build.read_text()) if build.exists() else _CPU_BUILD,
        "quark_path": None,
        "quark_cli": None,
        "ninja": True,
        "compiler": None,
    }


def quantize(home: Path, arguments: list[str]) -> int:
    """Leave a trace, behave as told, and write what an fp8 export looks like."""
    with (home / "started").open("a") as trace:
        trace.write(f"{os.getpid()}\n")
    told = json.loads((home / "behaviour.json").read_text())
    _note(told.get("diary"), "start", arguments)
    if told.get("stubborn"):
        _be_stubborn()
    say(ptq="phase", phase="loading_model")
    print(f"token: {os.environ.get('HF_TOKEN', 'none')}", flush=True)
    say(ptq="perplexity", of="original", value=10.0, dataset="test", tokens=100)
    say(ptq="phase", phase="calibrating")
    say(ptq="progress", phase="calibrating", done=1, total=2)
    _wait(told.get("wait_for"))
    say(ptq="progress", phase="calibrating", done=2, total=2)
    if told.get("exit"):
        print(told.get("says", "ValueError: the stand-in was told to fail"), file=sys.stderr)
        return int(told["exit"])
    say(ptq="phase", phase="exporting")
    if told.get("fills"):
        _fill(Path(arguments[arguments.index("--output_dir") + 1]), told["fills"])
    model = Path(arguments[arguments.index("--model_dir") + 1])
    export(model, Path(arguments[arguments.index("--output_dir") + 1]), told.get("spoil", ""))
    say(ptq="perplexity", of="quantized", value=10.1, dataset="test", tokens=100)
    say(ptq="done")
    _note(told.get("diary"), "end", arguments)
    return 0


def _fill(output: Path, pieces: int) -> None:
    """Write weights as an export does that nobody had the room for, MiB by MiB, and then nothing more."""
    output.mkdir(parents=True, exist_ok=True)
    (output / "config.json").write_text("{}")
    with (output / "model.safetensors").open("wb") as weights:
        for _ in range(pieces):
            weights.write(bytes(1 << 20))
            weights.flush()
    threading.Event().wait()


def _note(diary: str | None, what: str, arguments: list[str]) -> None:
    """A line about where this run computes, with the time of the host's monotonic clock."""
    if diary is None:
        return
    masks = {name: os.environ[name] for name in os.environ if name.endswith("VISIBLE_DEVICES")}
    output = arguments[arguments.index("--output_dir") + 1]
    line = json.dumps({"what": what, "at": time.monotonic_ns(), "output": output, "masks": masks})
    with Path(diary).open("a") as file:
        file.write(line + "\n")


def _wait(file: str | None) -> None:
    pause = threading.Event()
    while file and not Path(file).exists():
        pause.wait(0.02)


def say(**event: Any) -> None:
    """One event line."""
    print("\n" + json.dumps(event), flush=True)


def export(model: Path, output: Path, spoil: str) -> None:
    """Turn a tiny model's tensors into the layout of an fp8 export: F8_E4M3 weights with scales, lm_head as it was."""
    output.mkdir(parents=True, exist_ok=True)
    raw = (model / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + length])
    tensors: dict[str, tuple[str, list[int], int]] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        size = entry["data_offsets"][1] - entry["data_offsets"][0]
        linear = len(entry["shape"]) == 2 and not any(word in name for word in ("embed", "lm_head"))
        if linear and spoil != "not_quantized":
            tensors[name] = ("F8_E4M3", entry["shape"], size // 2)
            tensors[name + "_scale"] = ("BF16", [], 2)
            tensors[name.replace(".weight", ".input_scale")] = ("BF16", [], 2)
        else:
            tensors[name] = (entry["dtype"], entry["shape"], size)
    _write(output / "model.safetensors", tensors)
    config = json.loads((model / "config.json").read_text())
    recorded = json.loads((_DATA / "exports" / "llama-fp8.json").read_text())
    config["quantization_config"] = recorded["config"]["quantization_config"]
    (output / "config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        if (model / name).exists():
            (output / name).write_bytes((model / name).read_bytes())


def _write(path: Path, tensors: dict[str, tuple[str, list[int], int]]) -> None:
    header: dict[str, Any] = {}
    offset = 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(offset))


def _be_stubborn() -> None:
    """Ignore TERM, and leave a grandchild in a session of its own that ignores it too."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    code = "import signal, threading; signal.signal(15, signal.SIG_IGN); threading.Event().wait(120)"
    subprocess.Popen([sys.executable, "-IS", "-c", code], start_new_session=True)
