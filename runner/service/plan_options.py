"""Options of `ptq-runner plan` that say one field of the request each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from runner.service.arguments import Words

COUNT = click.IntRange(1, 1_000_000_000)

FURTHER: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("min_kv_scale", "--min-kv-scale", {"type": click.FloatRange(0), "help": "Smallest scale of the KV cache."}),
    (
        "kv_cache_post_rope",
        "--kv-cache-post-rope",
        {"is_flag": True, "help": "Quantize keys after the rotary embedding."},
    ),
    (
        "model_export",
        "--export",
        {"type": click.Choice(["hf_format", "onnx", "gguf"]), "help": "Format of the result."},
    ),
    ("attention_dtype", "--attention", {"type": Words(), "help": "Quantize attention too, such as fp8."}),
    (
        "data_type",
        "--data-type",
        {"type": click.Choice(["auto", "float16", "bfloat16", "float32"]), "help": "What the model is loaded as."},
    ),
    (
        "multi_gpu",
        "--multi-gpu",
        {"type": click.Choice(["auto", "balanced"]), "help": "Spread the model over several GPUs."},
    ),
    (
        "multi_device",
        "--multi-device",
        {"is_flag": True, "help": "Keep what no GPU has room for in main memory: slow."},
    ),
    (
        "file2file_quantization",
        "--file2file",
        {"is_flag": True, "help": "One weight file after another, without loading the model."},
    ),
    (
        "write_algorithm_config",
        "--write-algorithm-config",
        {"is_flag": True, "help": "Write a configuration for algorithms that have none built in for this family."},
    ),
    ("num_eval_data", "--eval-samples", {"type": COUNT, "help": "Samples of the evaluation data."}),
    ("evaluation_dataset", "--eval-dataset", {"type": Words(), "help": "What perplexity is measured on."}),
    ("tasks", "--tasks", {"type": Words(), "help": "Evaluation tasks, joined by commas."}),
    ("template_file", "--template-file", {"type": Words(), "help": "A template of the site, on the runner's host."}),
    ("tensor_parallel", "--tensor-parallel", {"type": COUNT, "help": "GPUs among which a server splits each layer."}),
    (
        "trust_remote_code",
        "--trust-remote-code",
        {"is_flag": True, "help": "Let code of the model's own run, where the runner allows it."},
    ),
)
"""The field, the option, and what it takes. What is not given was not asked."""


def further(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add those options to a command."""
    for name, option, takes in reversed(FURTHER):
        takes = {**takes, "default": None}
        command = click.option(option, name, **takes)(command)
    return command
