"""Load an exported checkpoint in a fresh process and let it say something: the proof that a result can be used.

    python reload_check.py --model_dir FOLDER [--device cuda|cpu] [--multi_gpu [auto|balanced]] [--text TEXT]

Loads the tokenizer and the model from the folder alone, without network and without code of the folder, and passes a
short text through the model once. Events are JSON lines on stdout:

    {"ptq": "phase", "phase": "reloading"}
    {"ptq": "reload", "ok": true, "seconds": s, "logits_finite": true, "dtype": "bfloat16", "loader": "quark",
     "quantized_modules": n, "tokens": n}
    {"ptq": "reload", "ok": false, "reason": "..."}     the checkpoint is at fault
    {"ptq": "reload", "ok": null, "reason": "..."}      this device or interpreter cannot tell: neither good nor bad
    {"ptq": "done"}

Exit status: 0 when ok is true or null, 1 when it is false (a traceback goes to stderr), 2 for a wrong command line.

Quark's own importer is used and not the integration in transformers. Seen with amd-quark 0.13, transformers 5.16: the
latter gives NaN for two-stage schemes (int4_fp8, nvfp4) and cannot build models whose experts Quark has parted; the
former gives the very perplexity that the model in memory had after its export.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TEXT = "The quick brown fox jumps over the lazy dog, and the dog does not mind."
# What is said by kernels that exist for another device only, and by a device that is too small.
OF_THE_DEVICE = (
    "only implemented in cuda devices",
    "not implemented for 'cpu'",
    "no kernel image is available",
    "out of memory",
)


class BadCheckpoint(Exception):
    """The folder does not hold a checkpoint that works. Its text is one sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check one folder and return the exit status."""
    parser = argparse.ArgumentParser(description="Load an exported checkpoint and run it once.", allow_abbrev=False)
    parser.add_argument("--model_dir", required=True, type=Path)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="A GPU is called cuda on ROCm too.")
    parser.add_argument("--multi_gpu", nargs="?", const="auto", choices=["auto", "balanced"])
    parser.add_argument("--text", default=TEXT)
    options = parser.parse_args(arguments)
    if options.multi_gpu and options.device == "cpu":
        parser.error("--multi_gpu needs --device cuda.")
    os.environ["HF_HUB_OFFLINE"] = "1"  # the folder must suffice
    say("phase", phase="reloading")
    began = time.monotonic()
    try:
        found = check(options)
    except Exception as problem:  # reported, logged and turned into the exit status: nothing is swallowed
        reason = " ".join(str(problem).split()) or f"{type(problem).__name__} without a message"
        if isinstance(problem, BadCheckpoint):
            print(f"\n{reason}", file=sys.stderr, flush=True)
        else:
            traceback.print_exc()
        ok = None if undecided(problem) else False
        say("reload", ok=ok, reason=reason[:2000])
        return 1 if ok is False else 0
    say("reload", seconds=round(time.monotonic() - began, 1), **found)
    say("done")
    return 0


def undecided(problem: Exception) -> bool:
    """Whether an error says something of this device or interpreter, and nothing of the checkpoint."""
    if isinstance(problem, ImportError | MemoryError):
        return True
    return any(words in str(problem).lower() for words in OF_THE_DEVICE)


def say(kind: str, **fields: Any) -> None:
    """Write an event on a line of its own, whatever line a progress bar has left open."""
    sys.stdout.write("\n" + json.dumps({"ptq": kind, **fields}, allow_nan=False) + "\n")
    sys.stdout.flush()


def check(options: argparse.Namespace) -> dict[str, Any]:
    """Load and run; returns the fields of the reload event."""
    configuration = options.model_dir / "config.json"
    if not configuration.is_file():
        raise BadCheckpoint(f"{options.model_dir} is not a checkpoint: it has no config.json.")
    import torch

    if options.device == "cuda" and not torch.cuda.is_available():
        return {"ok": None, "reason": f"torch {torch.__version__} finds no GPU here, and --device is cuda."}
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(options.model_dir), trust_remote_code=False)
    tokens = tokenizer(options.text, return_tensors="pt")["input_ids"]
    if not tokens.numel():
        raise BadCheckpoint("The tokenizer makes no tokens of a text.")
    model, loader = load(options)
    with torch.no_grad():
        logits = model(input_ids=tokens.to(model.device)).logits
    if not bool(torch.isfinite(logits).all()):
        raise BadCheckpoint("The checkpoint loads, but some of its logits are not finite numbers.")
    return {
        "ok": True,
        "logits_finite": True,
        "loader": loader,
        "dtype": str(model.dtype).removeprefix("torch."),
        "quantized_modules": count_quantized(model),
        "tokens": tokens.numel(),
    }


def load(options: argparse.Namespace) -> tuple[Any, str]:
    """The model and who loaded it: quark where the configuration says so, transformers for a model as it came."""
    described = json.loads((options.model_dir / "config.json").read_text(encoding="utf-8"))
    if described.get("quantization_config", {}).get("quant_method") == "quark":
        from quark.torch import import_model_from_safetensors

        model = import_model_from_safetensors(
            None,
            str(options.model_dir),
            trust_remote_code=False,
            device=options.device,
            multi_gpu=options.multi_gpu or False,
        )
        return model, "quark"
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(
        str(options.model_dir),
        trust_remote_code=False,
        local_files_only=True,
        device_map="auto" if options.multi_gpu else options.device,
    )
    return model.eval(), "transformers"


def count_quantized(model: Any) -> int:
    """Layers that hold quantized weights."""
    from quark.torch.export.nn.modules.qparamslinear import QParamsLinear

    return sum(isinstance(module, QParamsLinear) for module in model.modules())


if __name__ == "__main__":
    sys.exit(main())
