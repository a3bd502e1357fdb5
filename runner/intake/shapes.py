"""Whether config.json and the weight files are of one model, by the shapes of the tensors.

transformers makes a model by config.json and then refuses tensors of other shapes, so that such a folder never loads.
Only what is certain is told: weights that are quantized have shapes of their own, families may rename, transpose or
join tensors when they load them, and tables of tokens may be padded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from runner.intake.config import ModelConfig
from runner.intake.headers import Tensor
from runner.intake.linear import names_of
from runner.intake.modules import ModuleList
from schemas.artifacts.analysis import LinearGroup

_STACK = r"(?:(?:model|transformer|gpt_neox|decoder)\.)+"
_EMBEDDING = re.compile(rf"{_STACK}(?:embed_tokens|wte|embed_in|word_embeddings)\.weight")
_LAST_NORM = re.compile(rf"{_STACK}(?:norm|ln_f|final_layer_?norm|final_layernorm)\.weight")

Sizes = tuple[int, int]
"""Inputs and outputs of a linear layer."""


@dataclass(frozen=True)
class Contradiction:
    """One tensor that has another shape than the configuration makes of it; `promised` says what that would be."""

    tensor: str
    shape: tuple[int, ...]
    promised: str

    def __str__(self) -> str:
        sizes = " x ".join(map(str, self.shape))
        return f"{self.tensor} is {sizes} in the weight files, and by config.json it has to be {self.promised}"


def contradiction(
    tensors: Sequence[Tensor], named: Iterable[LinearGroup], config: ModelConfig, modules: ModuleList | None
) -> Contradiction | None:
    """The first tensor whose shape cannot be that of the configured model; None where there is none.

    `named` are the layers by the names of the files, `modules` the engine's own where they were listed. Not for weights
    that are quantized already.
    """
    found = None if modules is None else next(_layers(named, modules), None)
    return found or _width(tensors, config)


def _width(tensors: Sequence[Tensor], config: ModelConfig) -> Contradiction | None:
    """The embedding against hidden_size. Some families have narrow embeddings: there the last norm is as wide as
    config.json says."""
    hidden = config.hidden_size
    if hidden is None or config.modalities:
        return None
    embedding = next((t for t in tensors if len(t.shape) == 2 and _EMBEDDING.fullmatch(t.name)), None)
    norm = next((t for t in tensors if len(t.shape) == 1 and _LAST_NORM.fullmatch(t.name)), None)
    if embedding is None or embedding.shape[1] == hidden or (norm is not None and norm.shape[0] == hidden):
        return None
    if norm is not None and norm.shape[0] != embedding.shape[1]:
        return None  # neither is as the other: no plain decoder
    return Contradiction(embedding.name, embedding.shape, f"{hidden} wide (hidden_size)")


def _layers(named: Iterable[LinearGroup], modules: ModuleList) -> Iterator[Contradiction]:
    """Linear layers that both name alike and that hold another number of elements in one than in the other."""
    engine: defaultdict[str, list[tuple[Sizes, Sequence[str]]]] = defaultdict(list)
    for group in modules.linears:
        engine[group.pattern].append(((group.in_features, group.out_features), group.numbers))
    for held in named:
        sizes = (held.in_features, held.out_features)
        there = engine.get(held.pattern, [])
        if held.provisional or ".experts." in held.pattern or not there:
            continue
        if all(not _differ(held.pattern, sizes, other) for other, _ in there):
            continue
        for name in names_of(held.pattern, held.numbers):
            other = _sizes_of(name, held.pattern, there)
            if other and _differ(held.pattern, sizes, other):
                yield Contradiction(f"{name}.weight", sizes[::-1], f"{other[1]} x {other[0]}")


def _differ(pattern: str, files: Sizes, engine: Sizes) -> bool:
    """Whether two sizes cannot be those of one layer. Of a head only the width counts."""
    if pattern.rpartition(".")[2] == "lm_head":
        return files[0] != engine[0]
    return files[0] * files[1] != engine[0] * engine[1]


def _sizes_of(name: str, pattern: str, groups: Iterable[tuple[Sizes, Sequence[str]]]) -> Sizes | None:
    return next((sizes for sizes, numbers in groups if name in names_of(pattern, numbers)), None)
