"""The linear layers of a model, from its tensor headers.

Headers have the names of files. The engine sees modules: it takes fused experts apart, and some families have other
names in memory. Layers that it may see differently are provisional. Source: amd-quark 0.13 replaces nn.Linear modules,
after its own preparation of the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from runner.intake.config import ModelConfig
from runner.intake.experts import is_fused, is_stacked, unfused, unstacked
from runner.intake.headers import Tensor
from runner.intake.linear import Bunch, Linear, group_bunches, parsed
from schemas.artifacts.analysis import LinearGroup

_EMBEDDINGS = {"wte", "wpe", "embed", "shared", "embed_in", "relative_attention_bias"}
_EMBEDDING = re.compile(r"embed_tokens|embed_positions|(?:embeddings?|embd)$|position")
_HEADS = {"lm_head", "output_layer", "embed_out", "output", "head", "unembed", "score"}
_ROUTERS = {"gate", "router", "wg", "shared_expert_gate"}
# Patterns of the decoder's own layers; those of a vision tower have another beginning.
_STACK = re.compile(r"(?:(?:model|language_model|transformer|gpt_neox|decoder)\.)*(?:layers|h|blocks)\.\*\.")
_PREDICTORS = re.compile(r"(?:model\.)?mtp\.")
_QUANTIZED = (".qweight", ".weight_scale", ".weight_scale_inv", ".weight_packed", ".weight_zero_point", "proj_blocks")
_NORM = re.compile(r"norm|^ln(?:_|\d|$)")
_NAMED = 5


@dataclass(frozen=True)
class Linears:
    """The linear layers of a model in groups, and what else their names tell.

    `transposed` counts layers that multiply and are no nn.Linear (GPT-2's Conv1D): the engine leaves them alone.
    `unused_bytes` and `unused_elements` belong to tensors that loading does not take, such as layers that predict
    further tokens. `missing_layers` are numbers of decoder layers that config.json promises and no file holds, the
    first five of them. `norms` are patterns of the normalisation layers.
    """

    groups: tuple[LinearGroup, ...]
    norms: tuple[str, ...]
    has_experts: bool
    fused_experts: bool
    transposed: int
    tied: bool
    has_head: bool
    unused_bytes: int
    unused_elements: int
    missing_layers: tuple[int, ...]
    quantized_tensors: bool

    @property
    def quantized_by_default(self) -> int:
        """How many layers the engine quantizes with the default exclusions."""
        return sum(g.count for g in self.groups if not g.excluded_by_default and not g.never_quantized)

    @property
    def provisional(self) -> bool:
        """Whether any layer that would be quantized may look different to the engine."""
        return any(group.provisional for group in self.groups if not group.excluded_by_default)


def find_linears(tensors: Sequence[Tensor], config: ModelConfig, exclusions: Iterable[str]) -> Linears:
    """Find and group the linear layers. `exclusions` are the engine's default patterns for the model's family."""
    every = _kinds(tensors)
    kinds, unused = _used(every, config)
    plain = [kind for kind in kinds if _is_matrix(kind.first) and not is_embedding(kind.first, config)]
    experts = [kind for kind in kinds if is_fused(kind.first, config) or is_stacked(kind.first, config)]
    embeddings = [kind.first for kind in kinds if len(kind.first.shape) == 2 and is_embedding(kind.first, config)]
    transposed = _transposed(plain, kinds)
    has_head = any(_leaf(kind.first) in _HEADS for kind in plain)
    tied = config.ties_embeddings if config.ties_embeddings is not None else bool(embeddings) and not has_head
    bunches = [*_plain(plain, transposed), *_from_experts(experts, kinds, config)]
    if tied and not has_head and embeddings:
        # The file holds the shared tensor once; the engine sees a second module, which it can quantize.
        shared = max(embeddings, key=lambda tensor: tensor.shape[0])
        bunches.append(Bunch("lm_head", [()], Linear("", shared.shape[1], shared.shape[0], shared.dtype)))
    return Linears(
        groups=group_bunches(bunches, exclusions),
        norms=tuple(sorted({kind.module for kind in kinds if _is_norm(kind.first)})),
        has_experts=bool(experts) or any(".experts." in kind.pattern for kind in plain),
        fused_experts=bool(experts),
        transposed=sum(len(kind.tensors) for kind in plain if _leaf(kind.first) in transposed),
        tied=tied,
        has_head=has_head,
        unused_bytes=sum(tensor.size_bytes for kind in unused for tensor in kind.tensors),
        unused_elements=sum(tensor.elements for kind in unused for tensor in kind.tensors),
        missing_layers=tuple(islice(_missing(every, config), _NAMED)),
        quantized_tensors=any(kind.pattern.endswith(_QUANTIZED) for kind in kinds),
    )


def is_embedding(tensor: Tensor, config: ModelConfig) -> bool:
    """Whether a tensor is looked up by number and not multiplied: by its name, or as vocabulary x hidden size."""
    leaf = _leaf(tensor)
    if leaf in _HEADS:
        return False
    by_shape = config.vocab_size is not None and tensor.shape == (config.vocab_size, config.hidden_size)
    return leaf in _EMBEDDINGS or _EMBEDDING.search(leaf) is not None or by_shape


@dataclass(frozen=True)
class _Kind:
    """Tensors whose names differ by numbers only, of one shape and dtype: a model has few kinds and many tensors.

    `points` are the numbers in the name of each.
    """

    pattern: str
    tensors: list[Tensor]
    points: list[tuple[int, ...]]

    @property
    def first(self) -> Tensor:
        return self.tensors[0]

    @property
    def module(self) -> str:
        return self.pattern.removesuffix(".weight")

    @property
    def in_stack(self) -> bool:
        """Whether the first number is that of one of the decoder's own layers."""
        return _STACK.match(self.pattern) is not None

    def where(self, keep: Callable[[tuple[int, ...]], bool]) -> _Kind:
        """Those of the tensors whose numbers are to be kept."""
        pairs = [pair for pair in zip(self.tensors, self.points, strict=True) if keep(pair[1])]
        return _Kind(self.pattern, [tensor for tensor, _ in pairs], [point for _, point in pairs])


def _kinds(tensors: Iterable[Tensor]) -> list[_Kind]:
    kinds: dict[tuple[str, tuple[int, ...], str], _Kind] = {}
    for tensor in tensors:
        pattern, numbers = parsed(tensor.name)
        key = (pattern, tensor.shape, tensor.dtype)
        if key not in kinds:
            kinds[key] = _Kind(pattern, [], [])
        kinds[key].tensors.append(tensor)
        kinds[key].points.append(numbers)
    return list(kinds.values())


def _used(kinds: Iterable[_Kind], config: ModelConfig) -> tuple[list[_Kind], list[_Kind]]:
    """The kinds that loading takes and those that it leaves out: layers beyond those of config.json, and heads for
    further tokens."""
    used, unused, layers = list[_Kind](), list[_Kind](), config.hidden_layers
    for kind in kinds:
        if _PREDICTORS.match(kind.pattern):
            unused.append(kind)
        elif layers is not None and kind.in_stack:
            used.append(kind.where(lambda numbers: numbers[0] < layers))
            unused.append(kind.where(lambda numbers: numbers[0] >= layers))
        else:
            used.append(kind)
    return [kind for kind in used if kind.tensors], [kind for kind in unused if kind.tensors]


def _is_matrix(tensor: Tensor) -> bool:
    matrix = len(tensor.shape) == 2 and 0 not in tensor.shape and tensor.name.endswith(".weight")
    return matrix and "norm" not in _leaf(tensor)


def _is_norm(tensor: Tensor) -> bool:
    vector = len(tensor.shape) == 1 and tensor.name.endswith(".weight")
    return vector and _NORM.search(_leaf(tensor).lower()) is not None


def _leaf(tensor: Tensor) -> str:
    """The last part of the module's name."""
    return tensor.name.removesuffix(".weight").rpartition(".")[2]


def _plain(kinds: Iterable[_Kind], transposed: set[str]) -> Iterator[Bunch]:
    """One layer for each matrix."""
    for kind in kinds:
        leaf = _leaf(kind.first)
        if leaf in transposed:
            continue
        # Routers are nn.Linear in some versions of transformers and a class of their own in others.
        may_differ = ".experts." in kind.pattern or ".router." in kind.pattern or leaf in _ROUTERS
        outputs, inputs = kind.first.shape
        yield Bunch(kind.module, kind.points, Linear("", inputs, outputs, kind.first.dtype, may_differ))


def _from_experts(experts: Iterable[_Kind], kinds: Iterable[_Kind], config: ModelConfig) -> Iterator[Bunch]:
    """The layers of each expert that a file keeps together with others."""
    patterns = {kind.pattern for kind in kinds}
    for kind in experts:
        with_bias = f"{kind.pattern.removesuffix('.weight')}_bias" in patterns
        for tensor in kind.tensors:
            if is_fused(kind.first, config):
                linears = unfused(tensor, config, with_bias=with_bias)
            else:
                linears = unstacked(tensor, config.experts or 1)
            for linear in linears:
                pattern, numbers = parsed(linear.name)
                yield Bunch(pattern, [numbers], linear)


def _transposed(matrices: Iterable[_Kind], kinds: Iterable[_Kind]) -> set[str]:
    """Last names of layers whose bias fits the second axis: inputs x outputs, as GPT-2's Conv1D has it.

    A square matrix proves nothing; it is judged by another layer of the same last name.
    """
    biases = {(kind.pattern, kind.first.shape) for kind in kinds if kind.pattern.endswith(".bias")}
    return {
        _leaf(kind.first)
        for kind in matrices
        if kind.first.shape[0] != kind.first.shape[1]
        and (f"{kind.pattern.removesuffix('.weight')}.bias", kind.first.shape[1:]) in biases
    }


def _missing(kinds: Iterable[_Kind], config: ModelConfig) -> Iterator[int]:
    present = {numbers[0] for kind in kinds if kind.in_stack for numbers in kind.points}
    if present and config.hidden_layers is not None:
        yield from (number for number in range(config.hidden_layers) if number not in present)
