"""The tiny models that recorded rows were made with, from their names: `qwen3_h100`, `llama_tied`, `mixtral`.

A name is a family and sizes: `_h96` hidden size, `_i192` width of the MLP, `_l3` layers, `_v512` vocabulary, `_e8`
experts, `_tied`. What it does not say is 128, twice the hidden size, 2, 2048, 4, and as the family has it. Heads are 4
and key-value heads 2. Where those sizes do not make up the recorded weight file, other usual ones are tried, the
closest to these first, until one does: a model is judged only when its size is explained to two tenths of a percent.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from schemas.artifacts.analysis import ModelAnalysis
from tests.runner.planning.catalogue import recorded
from tests.runner.planning.models import Shape, analysis_of

HEADER_BYTES = 107  # of one tensor in a safetensors header, on average over such names
_SIZE = re.compile(r"_(?:([hilve])(\d+)|(tied))$")
_HEADS = 4
_CLOSE = 0.002  # of the weight file: beyond it the model is another one than was built here

_PLAIN = ("llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text", "olmo", "cohere", "instella")
_PLAIN_TOO = ("hunyuan_v1_dense",)
_TIED = ("gemma2", "gemma3_text", "opt", "cohere")
_OWN_HEAD = ("qwen3", "qwen3_moe", "gemma2", "gemma3_text", "deepseek_v2", "deepseek_v3")
_LAYER = "model.layers.*."


@dataclass(frozen=True)
class Sizes:
    """What a name says of its model."""

    family: str
    hidden: int = 128
    intermediate: int | None = None
    layers: int = 2
    vocabulary: int = 2048
    experts: int = 4
    tied: bool = False
    head: int = 32
    kv_heads: int = 2

    @property
    def mlp(self) -> int:
        """Width of the MLP."""
        return self.intermediate or 2 * self.hidden

    @property
    def queries(self) -> int:
        """Outputs of all query heads."""
        return _HEADS * self.head

    @property
    def keys(self) -> int:
        """Outputs of all key heads."""
        return self.kv_heads * self.head


@dataclass(frozen=True)
class Built:
    """Linear layers, normalisation layers by pattern, and the weights outside linear layers (elements)."""

    shapes: list[Shape]
    norms: list[str]
    others: int
    tensors: int


def parse(name: str) -> Sizes | None:
    """The sizes of a name; None where its family is unknown to the engine or was not built here."""
    found: dict[str, int] = {}
    while name not in recorded().templates and (size := _SIZE.search(name)):
        found[size[1] or "tied"] = int(size[2] or 1)
        name = name[: size.start()]
    if name not in recorded().templates:
        return None
    return Sizes(
        family=name,
        hidden=found.get("h", 128),
        intermediate=found.get("i"),
        layers=found.get("l", 2),
        vocabulary=found.get("v", 2048),
        experts=found.get("e", 4),
        tied="tied" in found or name in _TIED,
    )


def analysis_for(name: str, source_bytes: int) -> ModelAnalysis | None:
    """The analysis of a named model whose weight file has `source_bytes`; None where nothing known here fits it."""
    sizes = parse(name)
    if sizes is None:
        return None
    for tried in usual(sizes):
        built = build(tried)
        if built is None:
            return None
        if abs(weight_file_bytes(tried, built) / source_bytes - 1) < _CLOSE:
            return _analysis(tried, built, source_bytes)
    return None


def usual(sizes: Sizes) -> Iterator[Sizes]:
    """The sizes, with other usual ones in place of those that a name leaves open, the fewest changes first.

    A head is as wide as hidden size and number of heads say, or 32 in families that keep them apart.
    """
    quarter = sizes.hidden // _HEADS
    axes: dict[str, tuple[int, ...]] = {
        "head": tuple(dict.fromkeys((32 if sizes.family in _OWN_HEAD else quarter, quarter, 32, 64, 16, 128))),
        "intermediate": (sizes.intermediate,) if sizes.intermediate else _widths(sizes.hidden),
        "kv_heads": (2, 4, 1),
        "tied": tuple(dict.fromkeys((sizes.tied, not sizes.tied))),
        "experts": tuple(dict.fromkeys((sizes.experts, 8, 2))),
    }
    combinations = list(itertools.product(*(enumerate(values) for values in axes.values())))
    combinations.sort(key=lambda row: (sum(place > 0 for place, _ in row), [place for place, _ in row]))
    for row in combinations:
        head, intermediate, kv_heads, tied, experts = (value for _, value in row)
        yield replace(sizes, head=head, intermediate=intermediate, kv_heads=kv_heads, tied=bool(tied), experts=experts)


def _widths(hidden: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys((2 * hidden, 256, 3 * hidden, 4 * hidden)))


def weight_file_bytes(sizes: Sizes, built: Built) -> int:
    """Bytes of the model's weight file in BF16, its header included."""
    linear = sum(s.count * s.inputs * s.outputs for s in built.shapes if not (sizes.tied and s.pattern == "lm_head"))
    embedding = sizes.vocabulary * sizes.hidden
    return 2 * (linear + embedding + built.others) + built.tensors * HEADER_BYTES


def build(sizes: Sizes) -> Built | None:
    """The layers of a family; None for a family whose structure is not known here."""
    if sizes.family in (*_PLAIN, *_PLAIN_TOO):
        return _finish(sizes, [*_attention(sizes), *_mlp(sizes, f"{_LAYER}mlp.", sizes.layers, sizes.mlp)])
    if sizes.family == "phi3":
        return _finish(sizes, list(_fused(sizes)))
    if sizes.family in ("opt", "phi"):
        return _positional(sizes)
    if sizes.family in ("mixtral", "qwen3_moe", "qwen2_moe"):
        return _mixture(sizes)
    if sizes.family in ("deepseek_v2", "deepseek_v3"):
        return _latent(replace(sizes, layers=max(sizes.layers, 3)))
    return None


def _analysis(sizes: Sizes, built: Built, source_bytes: int) -> ModelAnalysis:
    mixture = any("experts" in shape.pattern for shape in built.shapes)
    excluded = recorded().templates[sizes.family].exclude_defaults
    latent = any("kv_b_proj" in shape.pattern for shape in built.shapes)
    return analysis_of(
        sizes.family,
        [replace(shape, excluded=_is_excluded(shape.pattern, excluded)) for shape in built.shapes],
        source_bytes=source_bytes,
        targets={"norms": built.norms},
        tied_embeddings=sizes.tied,
        hidden_layers=max(sizes.layers, 3) if latent else sizes.layers,
        hidden_size=sizes.hidden,
        vocab_size=sizes.vocabulary,
        is_moe=mixture,
        experts=sizes.experts if mixture else None,
    )


def _is_excluded(pattern: str, exclusions: list[str]) -> bool:
    """Whether a default exclusion takes the layers of a group; none of them names a number."""
    name = pattern.replace("*", "0")
    return any(re.fullmatch(re.escape(each).replace(r"\*", ".*"), name) for each in exclusions)


def _attention(sizes: Sizes) -> Iterator[Shape]:
    for name, inputs, outputs in (
        ("q_proj", sizes.hidden, sizes.queries),
        ("k_proj", sizes.hidden, sizes.keys),
        ("v_proj", sizes.hidden, sizes.keys),
        ("o_proj", sizes.queries, sizes.hidden),
    ):
        yield Shape(f"{_LAYER}self_attn.{name}", sizes.layers, inputs, outputs)


def _mlp(sizes: Sizes, prefix: str, count: int, width: int) -> Iterator[Shape]:
    yield Shape(f"{prefix}gate_proj", count, sizes.hidden, width)
    yield Shape(f"{prefix}up_proj", count, sizes.hidden, width)
    yield Shape(f"{prefix}down_proj", count, width, sizes.hidden)


def _fused(sizes: Sizes) -> Iterator[Shape]:
    yield Shape(f"{_LAYER}self_attn.qkv_proj", sizes.layers, sizes.hidden, sizes.queries + 2 * sizes.keys)
    yield Shape(f"{_LAYER}self_attn.o_proj", sizes.layers, sizes.queries, sizes.hidden)
    yield Shape(f"{_LAYER}mlp.gate_up_proj", sizes.layers, sizes.hidden, 2 * sizes.mlp)
    yield Shape(f"{_LAYER}mlp.down_proj", sizes.layers, sizes.mlp, sizes.hidden)


def _finish(sizes: Sizes, shapes: list[Shape], *, others: int = 0) -> Built:
    """The head, the norms, and what is neither."""
    if sizes.family in ("gemma2", "gemma3_text"):
        own = [f"{place}_feedforward_layernorm" for place in ("pre", "post")]
    else:
        own = []
    own = ["input_layernorm", "post_attention_layernorm", *own]
    heads = ["self_attn.q_norm", "self_attn.k_norm"] if sizes.family in ("qwen3", "qwen3_moe", "gemma3_text") else []
    biases = sizes.queries + 2 * sizes.keys if sizes.family in ("qwen2", "qwen2_moe") else 0
    weights = len(own) * sizes.hidden + len(heads) * sizes.head + biases
    extra = len(own) + len(heads) + (3 if biases else 0)
    shapes = [*shapes, Shape("lm_head", 1, sizes.hidden, sizes.vocabulary)]
    return Built(
        shapes=shapes,
        norms=[f"{_LAYER}{name}" for name in (*own, *heads)] + ["model.norm"],
        others=others + sizes.layers * weights + sizes.hidden,
        tensors=sum(s.count for s in shapes) - sizes.tied + sizes.layers * extra + 2,
    )


def _positional(sizes: Sizes) -> Built:
    """OPT and Phi: biases everywhere, no gate; OPT also has a table of positions, which is tiny here."""
    opt = sizes.family == "opt"
    prefix = "model.decoder.layers.*." if opt else _LAYER
    hidden, names = sizes.hidden, ("q_proj", "k_proj", "v_proj", "out_proj" if opt else "dense")
    keys = hidden if opt else sizes.keys
    widths = {"k_proj": keys, "v_proj": keys}
    shapes = [Shape(f"{prefix}self_attn.{name}", sizes.layers, hidden, widths.get(name, hidden)) for name in names]
    shapes += [
        Shape(f"{prefix}{'' if opt else 'mlp.'}fc1", sizes.layers, hidden, sizes.mlp),
        Shape(f"{prefix}{'' if opt else 'mlp.'}fc2", sizes.layers, sizes.mlp, hidden),
        Shape("lm_head", 1, hidden, sizes.vocabulary),
    ]
    biases = sum(s.count * s.outputs for s in shapes[:-1]) + (0 if opt else sizes.vocabulary)
    norms = ["self_attn_layer_norm", "final_layer_norm"] if opt else ["input_layernorm"]
    positions = _OPT_POSITIONS * hidden if opt else 0
    return Built(
        shapes=shapes,
        norms=[f"{prefix}{name}" for name in norms],
        others=biases + positions + (sizes.layers * len(norms) + 1) * 2 * hidden,
        tensors=2 * sum(s.count for s in shapes[:-1]) + sizes.layers * 2 * len(norms) + 5,
    )


_OPT_POSITIONS = 2050  # the family's default, two more than its longest text


def _mixture(sizes: Sizes) -> Built:
    width = sizes.mlp if sizes.family == "mixtral" else sizes.mlp // 2
    shapes = [*_attention(sizes), *_mlp(sizes, f"{_LAYER}mlp.experts.*.", sizes.layers * sizes.experts, width)]
    router = Shape(f"{_LAYER}mlp.gate", sizes.layers, sizes.hidden, sizes.experts)
    if sizes.family == "mixtral":
        # Its router is a class of its own, which the engine does not see as a linear layer.
        return _finish(sizes, shapes, others=sizes.layers * sizes.hidden * sizes.experts)
    if sizes.family == "qwen2_moe":
        shapes += _mlp(sizes, f"{_LAYER}mlp.shared_expert.", sizes.layers, sizes.mlp)
        shapes.append(Shape(f"{_LAYER}mlp.shared_expert_gate", sizes.layers, sizes.hidden, 1))
    return _finish(sizes, [*shapes, router])


def _latent(sizes: Sizes) -> Built:
    """DeepSeek: one dense layer, then mixtures with shared experts, and attention through latent vectors."""
    hidden, rank, rope = sizes.hidden, sizes.hidden, sizes.head
    attention = (
        ("q_a_proj", hidden, rank),
        ("q_b_proj", rank, _HEADS * (sizes.head + rope)),
        ("kv_a_proj_with_mqa", hidden, rank + rope),
        ("kv_b_proj", rank, _HEADS * 2 * sizes.head),
        ("o_proj", _HEADS * sizes.head, hidden),
    )
    shapes = [Shape(f"{_LAYER}self_attn.{name}", sizes.layers, inputs, outputs) for name, inputs, outputs in attention]
    shapes += _mlp(sizes, "model.layers.0.mlp.", 1, sizes.mlp)
    mixtures, width = sizes.layers - 1, sizes.mlp // 2
    shapes += _mlp(sizes, f"{_LAYER}mlp.experts.*.", mixtures * sizes.experts, width)
    shapes += _mlp(sizes, f"{_LAYER}mlp.shared_experts.", mixtures, width * (2 if sizes.family == "deepseek_v2" else 1))
    others = mixtures * (sizes.experts * hidden + sizes.experts) + sizes.layers * 2 * rank
    return _finish(sizes, shapes, others=others)
