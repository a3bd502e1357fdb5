"""What a question speaks of: its words, and the names in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.text import Kind, Sentence
from bot.conversation.words.values import ALIASES
from bot.conversation.words.vocabulary import PUBLISHED
from schemas.catalog import Catalogue

FIELDS: dict[str, tuple[str, ...]] = {
    "kv_cache_scheme": ("kv cache", "kv_cache", "kv", "kvcache", "kv_cache_scheme", "key value cache"),
    "min_kv_scale": ("min kv scale", "min_kv_scale"),
    "kv_cache_post_rope": ("post rope", "kv_cache_post_rope", "post_rope"),
    "attention_dtype": ("attention math", "attention_dtype", "attention dtype"),
    "global_scheme": ("scheme", "global_scheme", "quantization scheme", "precision", "format of the weights"),
    "algorithm": ("algorithm", "algorithms", "algo"),
    "write_algorithm_config": ("written configuration", "write_algorithm_config", "algorithm configuration"),
    "exclude_layers": ("exclusions", "excluded", "exclude_layers", "excluded layers", "left out", "kept"),
    "layer_quant_config": ("overrides", "override", "layer_quant_config", "layer schemes"),
    "calibration_dataset": ("dataset", "data set", "calibration data", "calibration dataset", "calibration_dataset"),
    "num_calib_data": ("samples", "num_calib_data", "calibration samples"),
    "seq_len": ("sequence length", "seq_len", "seq len", "tokens", "sample length"),
    "batch_size": ("batch size", "batch_size", "batch"),
    "evaluation_intent": ("evaluation", "evaluate", "evaluated", "evaluation_intent", "eval", "perplexity check"),
    "evaluation_dataset": ("evaluation dataset", "evaluation_dataset"),
    "num_eval_data": ("evaluation samples", "num_eval_data"),
    "tasks": ("tasks", "evaluation tasks", "benchmarks"),
    "model_export": ("export", "output format", "model_export", "exported"),
    "entry_point": ("entry point", "entry_point", "script", "which program"),
    "device": ("device",),
    "trust_remote_code": ("remote code", "trust_remote_code"),
    "data_type": ("data type", "data_type", "dtype"),
    "multi_gpu": ("multi gpu", "multi_gpu", "several gpus"),
    "file2file_quantization": ("file2file", "file to file", "file2file_quantization"),
    "template_file": ("template file", "template_file", "template"),
    "tensor_parallel": ("tensor parallel", "tensor_parallel", "tp", "tensor parallelism"),
    "hardware": ("target hardware", "target gpu"),
}
"""Decisions of a plan, by how people call them."""

_FIELD_OF = {phrase: field for field, phrases in FIELDS.items() for phrase in phrases}
_FIELD = PhraseBook(*_FIELD_OF)


@dataclass(frozen=True)
class Asked:
    """A question, word by word, and the offer by which its names are known."""

    sentence: Sentence
    catalogue: Catalogue | None = None

    @cached_property
    def keys(self) -> list[str]:
        """Its words as fields and schemes are compared; what stands between quotes counts as one."""
        return [
            token.text.strip().lower().replace("-", "_") if token.kind is Kind.QUOTED else token.key
            for token in self.sentence.tokens
        ]

    def says(self, book: PhraseBook) -> bool:
        """Whether one of the phrases stands anywhere in it."""
        return any(book.longest(self.keys, at) for at in range(len(self.keys)))

    def begins(self, book: PhraseBook) -> bool:
        """Whether one of the phrases is its beginning, behind a few words at most ("ok, but why ...")."""
        return any(book.longest(self.keys, at) for at in range(min(5, len(self.keys))))

    @cached_property
    def fields(self) -> list[str]:
        """The decisions that it names, in the order in which it does."""
        found: list[str] = []
        at = 0
        while at < len(self.keys):
            length = _FIELD.longest(self.keys, at)
            if length:
                found.append(_FIELD_OF[" ".join(self.keys[at : at + length])])
            at += max(1, length)
        return list(dict.fromkeys(found))

    @cached_property
    def schemes(self) -> list[str]:
        """The schemes that it names, those that the engine has or that are published."""
        known = self.catalogue.schemes if self.catalogue is not None else {}
        by_key = {**PUBLISHED.scheme_of, **{name.lower(): name for name in known}}
        return self._named(by_key, ALIASES)

    @cached_property
    def algorithms(self) -> list[str]:
        """The algorithms that it names."""
        known = self.catalogue.algorithms if self.catalogue is not None else []
        return self._named({**PUBLISHED.algorithm_of, **{name.lower(): name for name in known}}, {})

    def _named(self, by_key: dict[str, str], aliases: dict[str, str]) -> list[str]:
        return list(
            dict.fromkeys(by_key.get(key) or aliases[key] for key in self.keys if key in by_key or key in aliases)
        )
