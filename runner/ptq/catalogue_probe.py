"""Ask the installed engine what it offers: schemes, algorithms, templates, versions.

    python catalogue_probe.py [--output FILE]

Prints one JSON document as the last (and only) line on stdout, or writes it to FILE. Everything is read from the
installed packages; nothing here knows a scheme or an algorithm by name. Importing the engine takes 15 to 65 seconds, so
callers keep the answer by interpreter and package versions.

    versions                       of python, torch (with its CUDA and HIP), transformers, quark, accelerate, datasets
    schemes                        name -> {weight, input, output, bias}, each null, one tensor, or a list of stages
    kv_cache_schemes, attention_schemes, algorithms        names
    templates                      model type -> {kv_layers, q_layers, exclude_defaults, algorithms}; the algorithms are
                                   those with a built-in configuration for that family
    algorithm_configs              model type -> algorithm -> its built-in configuration: the content of a file for
                                   --quant_algo_config_file, for families that have none of their own
    model_types_known_to_transformers, quark_cli

A tensor has the engine's own fields as plain values (dtype, qscheme, group_size, ch_axis, symmetric, is_dynamic,
scale_type, ...). Exit status: 0, or 1 with one sentence on stderr when the engine cannot be imported.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_DISTRIBUTIONS = {
    "torch": "torch",
    "transformers": "transformers",
    "quark": "amd-quark",
    "accelerate": "accelerate",
    "datasets": "datasets",
}


def main(arguments: list[str] | None = None) -> int:
    """Write the document and return the exit status."""
    parser = argparse.ArgumentParser(description="Ask the installed engine what it offers.")
    parser.add_argument("--output", type=Path, help="Write the document there instead of to stdout.")
    options = parser.parse_args(arguments)
    if options.output and not options.output.parent.is_dir():
        print(f"There is no folder {options.output.parent} to write the catalogue to.", file=sys.stderr)
        return 1
    try:
        with _stdout_to_stderr():
            document = json.dumps(catalogue(), sort_keys=True)
    except ImportError as problem:
        print(f"The engine cannot be imported by {sys.executable}: {problem}", file=sys.stderr)
        return 1
    if options.output is None:
        print(document, flush=True)
        return 0
    try:
        temporary = options.output.with_name(f".{options.output.name}.{os.getpid()}")
        temporary.write_text(document + "\n", encoding="utf-8")
        temporary.replace(options.output)
    except OSError as problem:
        print(f"The catalogue cannot be written to {options.output}: {problem}", file=sys.stderr)
        return 1
    return 0


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Send whatever is printed meanwhile, also by compiled code, to stderr: stdout is for the document alone."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def catalogue() -> dict[str, Any]:
    """The whole document. Imports the engine."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a probe reads what is installed and asks nobody
    from quark.torch import LLMTemplate
    from quark.torch.quantization.config.algo_configs import get_supported_algorithm_types
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    templates = {name: LLMTemplate.get(name) for name in LLMTemplate.list_available()}
    return {
        "versions": versions(),
        "schemes": {name: _scheme(LLMTemplate, name) for name in LLMTemplate.get_supported_schemes()},
        # The engine keeps these two lists only as class attributes; an engine without them offers none.
        "kv_cache_schemes": list(getattr(LLMTemplate, "_SUPPORTED_KV_CACHE_SCHEMES", [])),
        "attention_schemes": list(getattr(LLMTemplate, "_SUPPORTED_ATTENTION_SCHEMES", [])),
        "algorithms": list(get_supported_algorithm_types()),
        "templates": {name: _template(template) for name, template in templates.items()},
        "algorithm_configs": {name: _algorithm_configs(template) for name, template in templates.items()},
        "model_types_known_to_transformers": sorted(CONFIG_MAPPING.keys()),
        "quark_cli": (Path(sys.executable).parent / "quark-cli").is_file(),
    }


def versions() -> dict[str, str | None]:
    """Versions by short name, None for what is not installed.

    `torch_cuda` and `torch_hip` are what torch was built for.
    """
    import torch

    found: dict[str, str | None] = {"python": platform.python_version()}
    for name, distribution in _DISTRIBUTIONS.items():
        try:
            found[name] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return {**found, "torch": torch.__version__, "torch_cuda": torch.version.cuda, "torch_hip": torch.version.hip}


def _scheme(template_class: Any, name: str) -> dict[str, Any]:
    """What a scheme does to weights, inputs, outputs and biases."""
    parts = template_class._SCHEME_COLLECTION.get_scheme(name).config.to_dict()
    return {
        "weight": _plain(parts.get("weight")),
        "input": _plain(parts.get("input_tensors")),
        "output": _plain(parts.get("output_tensors")),
        "bias": _plain(parts.get("bias")),
    }


def _template(template: Any) -> dict[str, Any]:
    """A family's layer names, default exclusions, and the algorithms that have a built-in configuration for it."""
    return {
        "kv_layers": _names(template.kv_layers_name),
        "q_layers": _names(template.q_layer_name),
        "exclude_defaults": _names(template.exclude_layers_name),
        "algorithms": [name for name, configuration in template.algo_config.items() if configuration is not None],
    }


def _algorithm_configs(template: Any) -> dict[str, Any]:
    """The built-in configurations of a family, as the engine reads them back from a file."""
    return {
        name: _plain(configuration.to_dict())
        for name, configuration in template.algo_config.items()
        if configuration is not None
    }


def _names(value: str | list[str] | None) -> list[str]:
    """The engine writes one name as a string, several as a list, none as None."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def _plain(value: Any) -> Any:
    """The same with every enumeration and class as its plain name, so that it is JSON."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(getattr(value, "name", None) or getattr(value, "__name__", None) or value)


if __name__ == "__main__":
    sys.exit(main())
