"""Parsers with the flags of the engine's two programs, and of a site's script with what they have in common.

Written from their documentation. Source: quantize_quark.py and quark-cli of amd-quark 0.13. Ours is tested with its own
parser.
"""

from __future__ import annotations

import argparse

from tests.runner.planning.catalogue import recorded

_DATASETS = [
    "pileval",
    "wikitext",
    "cnn_dailymail",
    "pileval_for_awq_benchmark",
    "wikitext_for_gptq_benchmark",
    "HuggingFaceH4/ultrachat_200k",
    "ScienceQA",
]
_EVALUATED = ["wikitext", "wikitext_gpt_oss_120b"]


class Strict(argparse.ArgumentParser):
    """A parser that raises where a program would end."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise AssertionError(message)


def quantize_quark() -> Strict:
    """The flags of quantize_quark.py that the published mapping can use."""
    parser = _common()
    parser.add_argument("--revision")
    parser.add_argument("--multi_gpu", nargs="?", const="auto", choices=["auto", "balanced"])
    parser.add_argument("--data_type", default="auto", choices=["auto", "float16", "bfloat16", "float32"])
    parser.add_argument("--kv_cache_dtype", "--kv_cache_quant_scheme", choices=["fp8", None])
    parser.add_argument("--min_kv_scale", type=float, default=0.0)
    parser.add_argument("--kv_cache_post_rope", action="store_true")
    parser.add_argument("--attention_dtype", choices=["fp8"])
    parser.add_argument("--quant_algo_config_file", action="append", nargs=2)
    parser.add_argument("--model_export", action="append", choices=[None, "onnx", "hf_format", "gguf"])
    parser.add_argument("--file2file_quantization", action="store_true")
    parser.add_argument("--multi_device", action="store_true")
    parser.add_argument("--evaluation_dataset", default="wikitext", choices=[*_EVALUATED, "wikitext_gpt_oss_20b"])
    parser.add_argument("--num_eval_data", type=int, default=-1)
    parser.add_argument("--tasks")
    trust = parser.add_mutually_exclusive_group()
    trust.add_argument("--trust_remote_code", action="store_true", dest="trust_remote_code")
    trust.add_argument("--no_trust_remote_code", action="store_false", dest="trust_remote_code")
    parser.set_defaults(trust_remote_code=True)
    return parser


def quark_cli() -> Strict:
    """The flags of `quark-cli torch-llm-ptq`."""
    parser = _common()
    parser.add_argument("--kv_cache_dtype", "--kv_cache_quant_scheme")
    parser.add_argument("--multi_device", action="store_true")
    parser.add_argument("--template_file")
    parser.add_argument("--evaluation_dataset", default="wikitext", choices=_EVALUATED)
    parser.add_argument("--no_trust_remote_code", action="store_false", dest="trust_remote_code")
    return parser


def site() -> Strict:
    """What a site's script is told: the flags that the published programs have in common."""
    parser = _common()
    parser.add_argument("--kv_cache_dtype")
    return parser


def _common() -> Strict:
    parser = Strict(allow_abbrev=False)
    parser.add_argument("--model_dir", required=True)
    parser.add_argument("--output_dir", default="exported_model")
    parser.add_argument("--quant_scheme", choices=list(recorded().schemes))
    parser.add_argument("--layer_quant_scheme", action="append", nargs=2, metavar=("PATTERN", "QUANT_SCHEME"))
    parser.add_argument("--quant_algo", type=lambda text: text.split(","))
    parser.add_argument("--exclude_layers", nargs="*")
    parser.add_argument("--dataset", default="pileval", choices=_DATASETS)
    parser.add_argument("--num_calib_data", type=int, default=512)
    parser.add_argument("--seq_len", type=int, default=512)
    parser.add_argument("--batch_size", type=int, default=1)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--skip_evaluation", action="store_true")
    return parser
