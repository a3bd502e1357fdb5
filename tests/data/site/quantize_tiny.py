"""A standalone quantization script as a site may have one: it knows nothing of this project and calls Quark's API."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from quark.torch import LLMTemplate, ModelQuantizer, export_safetensors
from quark.torch.utils.llm import preprocess_for_quantization
from transformers import AutoModelForCausalLM, AutoTokenizer


def main() -> None:
    """Quantize on the CPU, calibrated on the beginning of a text file."""
    options = parse()
    tokenizer = AutoTokenizer.from_pretrained(options.model_dir)
    model = AutoModelForCausalLM.from_pretrained(options.model_dir, dtype="auto").to(options.device).eval()
    preprocess_for_quantization(model)
    config = LLMTemplate.get(model.config.model_type).get_config(
        scheme=options.quant_scheme,
        layer_config=dict(options.layer_quant_scheme),
        exclude_layers=options.exclude_layers,
    )
    tokens = tokenizer(Path(options.dataset).read_text(encoding="utf-8"), return_tensors="pt")["input_ids"][0]
    samples = tokens[: options.num_calib_data * options.seq_len].reshape(-1, options.seq_len)
    quantizer = ModelQuantizer(config)
    model = quantizer.freeze(quantizer.quantize_model(model, list(samples.split(options.batch_size))))
    tokenizer.save_pretrained(options.output_dir)
    with torch.no_grad():
        export_safetensors(model, options.output_dir, weight_format="real_quantized")


def parse() -> argparse.Namespace:
    """The flags that such a script is told."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("model_dir", "output_dir", "quant_scheme", "dataset"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("num_calib_data", "seq_len", "batch_size"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--device", choices=["cuda", "cpu"], required=True)
    parser.add_argument("--layer_quant_scheme", action="append", nargs=2, default=[])
    parser.add_argument("--exclude_layers", nargs="*")
    parser.add_argument("--skip_evaluation", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
