"""Probes of a make-believe interpreter: the real protocol, without any engine behind it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FACTS: dict[str, Any] = {
    "python": "3.11.7",
    "executable": "/venv/bin/python",
    "prefix": "/venv",
    "packages": {"torch": "2.13.0+cpu", "transformers": "5.16.1", "amd-quark": "0.13", "timm": None},
    "torch_build": {"cuda": None, "hip": None, "tag": "cpu"},
    "quark_path": None,
    "quark_cli": None,
    "ninja": True,
    "compiler": None,
}
_FP8 = {"dtype": "fp8_e4m3", "qscheme": "per_tensor", "round_method": "half_even"}
CATALOGUE: dict[str, Any] = {
    "versions": {"python": "3.11.7"},
    "schemes": {
        "fp8": {"weight": _FP8, "input": _FP8, "output": None, "bias": None},
        "int4_fp8": {
            "weight": [_FP8, {"dtype": "int4", "group_size": 32}],
            "input": None,
            "output": None,
            "bias": None,
        },
    },
    "kv_cache_schemes": ["fp8"],
    "attention_schemes": [],
    "algorithms": ["awq"],
    "templates": {
        "llama": {"kv_layers": ["*k_proj"], "q_layers": [], "exclude_defaults": ["lm_head"], "algorithms": ["awq"]}
    },
    "algorithm_configs": {"llama": {"awq": {"name": "awq"}}},
    "model_types_known_to_transformers": ["llama"],
    "quark_cli": False,
}
MODULES: dict[str, Any] = {
    "models": [
        {
            "model_type": "llama",
            "class": "LlamaForCausalLM",
            "linear_count": 3,
            "linears": [
                {
                    "pattern": "model.layers.*.mlp.up_proj",
                    "numbers": ["0-2"],
                    "count": 3,
                    "in_features": 64,
                    "out_features": 128,
                    "class": "Linear",
                    "replaced": True,
                }
            ],
            "convolutions": [],
            "norms": ["model.norm"],
            "kept": [],
            "prepared": [],
            "quantized": False,
        }
    ]
}
# Every start is counted, so that a test can say how often a probe really ran.
_COUNT = "with open({folder!r} + '/{name}.starts', 'a') as file: file.write('x')\n"


class Probes:
    """A folder with the probes. Their answers can be changed at any time; `starts` counts how often one ran."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.tell_facts(FACTS)
        self.tell_catalogue(CATALOGUE)
        self.tell_modules(MODULES)

    def tell_facts(self, document: object) -> None:
        self.environment(f"print('noise')\nprint({json.dumps(document)!r})")

    def tell_catalogue(self, document: object, once: Path | None = None) -> None:
        """What the catalogue's probe answers; with `once` only when that file is there."""
        wait = f"import os, threading\nwhile not os.path.exists({str(once)!r}): threading.Event().wait(0.01)\n"
        write = f"import sys\nopen(sys.argv[2], 'w').write({json.dumps(document)!r})"
        self.catalogue(f"{wait if once else ''}{write}")

    def tell_modules(self, document: object, once: Path | None = None) -> None:
        """What the module probe answers; with `once` only when that file is there."""
        wait = f"import os, threading\nwhile not os.path.exists({str(once)!r}): threading.Event().wait(0.01)\n"
        write = f"import sys\nopen(sys.argv[sys.argv.index('--output') + 1], 'w').write({json.dumps(document)!r})"
        self.modules(f"{wait if once else ''}{write}")

    def modules(self, body: str) -> None:
        self._write("module_probe", body)

    def environment(self, body: str) -> None:
        self._write("environment_probe", body)

    def catalogue(self, body: str) -> None:
        self._write("catalogue_probe", body)

    def starts(self, name: str) -> int:
        file = self.folder / f"{name}_probe.starts"
        return len(file.read_text()) if file.exists() else 0

    def _write(self, name: str, body: str) -> None:
        (self.folder / f"{name}.py").write_text(_COUNT.format(folder=str(self.folder), name=name) + body + "\n")
