"""Published models without their weights: config.json as on the Hub, and files with true headers over holes.

DeepSeek-V3's 1.3 TB take a few MB of disk. It is told as BF16, without the quantization of its published FP8 files.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.runner.intake.checkpoints import (
    Shapes,
    deepseek_v3,
    mixtral_8x7b,
    qwen3_8b,
    qwen3_30b_a3b,
    write_checkpoint,
)
from tests.tiny_models import write_tokenizer

QWEN3_8B: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "attention_bias": False,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "max_position_embeddings": 40960,
    "num_attention_heads": 32,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.51.0",
    "vocab_size": 151936,
}
MIXTRAL_8X7B: dict[str, Any] = {
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "num_attention_heads": 32,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "rms_norm_eps": 1e-05,
    "rope_theta": 1000000.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.36.0.dev0",
    "vocab_size": 32000,
}
QWEN3_30B_A3B: dict[str, Any] = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "attention_bias": False,
    "decoder_sparse_step": 1,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "max_position_embeddings": 40960,
    "mlp_only_layers": [],
    "moe_intermediate_size": 768,
    "norm_topk_prob": True,
    "num_attention_heads": 32,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.51.0",
    "vocab_size": 151936,
}
DEEPSEEK_V3: dict[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "attention_bias": False,
    "first_k_dense_replace": 3,
    "hidden_act": "silu",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "kv_lora_rank": 512,
    "max_position_embeddings": 163840,
    "moe_intermediate_size": 2048,
    "moe_layer_freq": 1,
    "n_group": 8,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "norm_topk_prob": True,
    "num_attention_heads": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 61,
    "num_key_value_heads": 128,
    "num_nextn_predict_layers": 1,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "rms_norm_eps": 1e-06,
    "rope_scaling": {
        "beta_fast": 32,
        "beta_slow": 1,
        "factor": 40,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 4096,
        "type": "yarn",
    },
    "rope_theta": 10000,
    "routed_scaling_factor": 2.5,
    "scoring_func": "sigmoid",
    "tie_word_embeddings": False,
    "topk_group": 4,
    "topk_method": "noaux_tc",
    "torch_dtype": "bfloat16",
    "transformers_version": "4.33.1",
    "v_head_dim": 128,
    "vocab_size": 129280,
}
PUBLISHED = {
    "Qwen3-8B": QWEN3_8B,
    "Mixtral-8x7B": MIXTRAL_8X7B,
    "Qwen3-30B-A3B": QWEN3_30B_A3B,
    "DeepSeek-V3": DEEPSEEK_V3,
}

_SHAPES: dict[str, Callable[[], tuple[Shapes, dict[str, Any]]]] = {
    "Qwen3-8B": qwen3_8b,
    "Mixtral-8x7B": mixtral_8x7b,
    "Qwen3-30B-A3B": qwen3_30b_a3b,
    "DeepSeek-V3": deepseek_v3,
}
_RECORDED = Path(__file__).parent / "data" / "modules-0.13.json"


def write_published(folder: Path, name: str, shards: int = 1) -> Path:
    """A folder of a published model: its configuration, a small tokenizer, and weight files of holes."""
    write_checkpoint(folder, _SHAPES[name]()[0], PUBLISHED[name], shards=shards)
    write_tokenizer(folder)
    return folder


def modules_of(name: str) -> dict[str, Any]:
    """What the module probe said of a published model with amd-quark 0.13 and transformers 5.16.1."""
    found: dict[str, Any] = json.loads(_RECORDED.read_text(encoding="utf-8"))[name]
    return found
