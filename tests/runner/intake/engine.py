"""An installed engine as its probes describe it: a few real families and schemes of amd-quark 0.13."""

from __future__ import annotations

from runner.host.interpreter_facts import InterpreterFacts, TorchBuild
from schemas.catalog import Catalogue, Scheme, Template, TensorSpec

FACTS = InterpreterFacts(
    python="3.11.7",
    executable="/venv/bin/python",
    packages={
        "torch": "2.13.0+cpu",
        "transformers": "5.16.1",
        "amd-quark": "0.13",
        "accelerate": "1.15.0",
        "datasets": "5.2.0",
        "onnxruntime": None,
    },
    torch_build=TorchBuild(tag="cpu"),
)

_EXCLUSIONS: dict[str, list[str]] = {
    "llama": ["lm_head"],
    "mistral": ["lm_head"],
    "phi3": ["lm_head"],
    "qwen2": ["lm_head"],
    "qwen3": ["lm_head"],
    "mixtral": ["lm_head", "*.gate"],
    "qwen3_moe": ["lm_head", "*.gate"],
    "dbrx": ["lm_head", "*router.layer"],
    "gpt_oss": ["lm_head", "*router*"],
    "deepseek_v3": ["lm_head", "*self_attn*", "*mlp.gate"],
    "deepseek_v32": ["lm_head", "*mlp.gate", "model.layers.61.*", "*self_attn*"],
    "gemma3": ["*vision_tower*", "*multi_modal_projector*", "*lm_head"],
    "grok-1": ["lm_head", "*.gate"],
}

CATALOGUE = Catalogue(
    versions=FACTS.versions(),
    schemes={"fp8": Scheme(name="fp8", weight=[TensorSpec(dtype="fp8_e4m3", qscheme="per_tensor")])},
    kv_cache_schemes=["fp8"],
    algorithms=["awq", "smoothquant"],
    templates={
        name: Template(
            model_type=name, kv_layers=["*k_proj", "*v_proj"], q_layers=["*q_proj"], exclude_defaults=defaults
        )
        for name, defaults in _EXCLUSIONS.items()
    },
    known_model_types=[*(name for name in _EXCLUSIONS if name != "grok-1"), "gpt2", "bert"],
)
