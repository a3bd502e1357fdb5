"""Whether a configuration of an algorithm, made for another family, holds for a model, and what of it to write.

Source of what each kind of configuration means and of what goes wrong silently: the algorithms of amd-quark 0.13.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from schemas.artifacts.analysis import LinearGroup, ModelAnalysis

_EXPERT = re.compile(r"(?<=experts\.)\d+(?=\.)")
_NORMS_OF_A_LAYER = 2
_LAYER = ".layer_id."
_LAYER_BEFORE = ".pre_layer_id."


@dataclass(frozen=True)
class Fitted:
    """What to write, and patterns of quantized layers that it does not name."""

    content: dict[str, Any]
    left: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    """The repeated layers of a model, seen from inside one of them.

    `linears` are name -> group, with `*` for expert numbers ("self_attn.q_proj", "mlp.experts.*.up_proj"); `norms` are
    names of the normalisation layers; `layers` is how many such layers the model has.
    """

    linears: dict[str, list[LinearGroup]] = field(default_factory=dict)
    norms: frozenset[str] = frozenset()
    layers: int = 0

    @property
    def own_norms(self) -> frozenset[str]:
        """Norms of the layer itself, not of a head within its attention."""
        return frozenset(name for name in self.norms if "." not in name)

    def in_every_layer(self, name: str) -> bool:
        """Whether each of the repeated layers has this linear layer."""
        return sum(group.count for group in self.linears.get(name, [])) == self.layers

    def quantized(self) -> Iterator[str]:
        """Names of the layers that the engine quantizes unless it is told otherwise."""
        for name, groups in self.linears.items():
            if not all(group.excluded_by_default for group in groups):
                yield name


def fitted(content: Mapping[str, Any], analysis: ModelAnalysis, own: Iterable[Mapping[str, Any]] = ()) -> Fitted | None:
    """What to write for this model; None where the configuration does not hold for it.

    `own` are the engine's configurations of other algorithms for this family. A norm that they scale nowhere is none
    that can be scaled: OLMo's has no weights.
    """
    scaling = content.get("scaling_layers")
    if isinstance(scaling, Mapping):
        return _rotation(content, scaling, analysis, scaled_norms(own))
    prefix = content.get("model_decoder_layers")
    if not isinstance(prefix, str):
        return _unnamed(content, analysis)
    block = block_of(prefix, analysis)
    if not block.linears:
        return None
    if isinstance(scaling, list):
        return _scaling(content, scaling, block, analysis, scaled_norms(own))
    named = content.get("inside_layer_modules")
    return _by_layer(content, named, block, analysis) if isinstance(named, list) else None


def block_of(prefix: str, analysis: ModelAnalysis) -> Block:
    """The repeated layers below a prefix such as "model.layers"."""
    inside = re.compile(rf"{re.escape(prefix)}\.(?:\*|\d+)\.(.+)")
    found = analysis.quantization_targets
    linears: dict[str, list[LinearGroup]] = {}
    for group in found.groups:
        if match := inside.fullmatch(group.pattern):
            linears.setdefault(match[1], []).append(group)
    norms = frozenset(match[1] for pattern in found.norms if (match := inside.fullmatch(pattern)))
    layers = analysis.model.hidden_layers or max((_count(groups) for groups in linears.values()), default=0)
    return Block(linears, norms, layers)


def scaled_norms(own: Iterable[Mapping[str, Any]]) -> frozenset[str] | None:
    """What the engine's configurations of this family scale ahead of layers; None where they scale nothing."""
    lists = [config["scaling_layers"] for config in own if isinstance(config.get("scaling_layers"), list)]
    return frozenset(entry["prev_op"] for entries in lists for entry in entries if _is_entry(entry)) if lists else None


def _count(groups: Iterable[LinearGroup]) -> int:
    return sum(group.count for group in groups)


def _scaling(
    content: Mapping[str, Any],
    named: list[Mapping[str, Any]],
    block: Block,
    analysis: ModelAnalysis,
    scalable: frozenset[str] | None,
) -> Fitted | None:
    """awq, smoothquant, autosmoothquant: a scale goes out of some layers and into what feeds them.

    A norm may take the scale only when nothing else reads its output. Names show that as far as they can: the layer has
    the two norms of a plain one (four belong to Gemma's kind, where the one after attention feeds no MLP; one belongs
    to blocks whose attention and MLP run side by side), and the block that the norm feeds has no other linear layer.
    Layers that stand in some of the repeated layers only are refused: families that mix kinds of layers also have norms
    of their own, which the engine would scale wrongly (Qwen3-Next multiplies by 1 + weight).
    """
    if len(block.own_norms) != _NORMS_OF_A_LAYER or not all(map(_is_entry, named)):
        return None
    entries = _for_all_experts(named, analysis.model.experts or 0)
    targets = {_starred(name) for entry in entries for name in entry["layers"]}
    sources = {_starred(str(entry["prev_op"])) for entry in entries}
    if not targets <= block.linears.keys() or not sources <= block.linears.keys() | block.own_norms:
        return None
    norms = sources & block.own_norms
    if not targets & set(block.quantized()) or (scalable is not None and not norms <= scalable):
        return None
    for entry in entries:
        names = [_starred(name) for name in entry["layers"]]
        if entry["prev_op"] in norms:
            parents = {name.rpartition(".")[0] for name in names}
            beside = {name for name in block.linears if _below(name, parents)}
            if not beside <= targets or not all(map(block.in_every_layer, names)):
                return None
    left = _left(block, lambda name: name in targets | sources)
    return _unless_much_is_left({**content, "scaling_layers": entries}, left, analysis)


def _is_entry(entry: Any) -> bool:
    """Whether an entry says what this module knows of: a newer engine may say more in other words."""
    return (
        isinstance(entry, Mapping)
        and isinstance(entry.get("prev_op"), str)
        and isinstance(entry.get("inp"), str)
        and isinstance(entry.get("layers"), list)
        and all(isinstance(name, str) for name in entry["layers"])
    )


def _below(name: str, parents: set[str]) -> bool:
    """Whether a layer lies anywhere in one of these modules; "" is the repeated layer itself."""
    return any(not parent or name.startswith(f"{parent}.") for parent in parents)


def _by_layer(content: Mapping[str, Any], named: list[str], block: Block, analysis: ModelAnalysis) -> Fitted | None:
    """gptq, gptaq, qronos: each named layer is solved for itself, so that a name which is not there does no harm.

    A layer belongs to a name that it ends with; the engine puts a `*` in front of each name.
    """

    def belongs(layer: str, name: str) -> bool:
        return fnmatchcase(layer.replace("*", "0"), f"*{name}")

    there = all(any(belongs(layer, name) for layer in block.linears) for name in named)
    if not there or not any(belongs(layer, name) for layer in block.quantized() for name in named):
        return None
    left = _left(block, lambda layer: any(belongs(layer, name) for name in named))
    return _unless_much_is_left(dict(content), left, analysis)


def _left(block: Block, is_named: Any) -> tuple[str, ...]:
    return tuple(name for name in block.quantized() if not is_named(name))


def _unless_much_is_left(content: dict[str, Any], left: tuple[str, ...], analysis: ModelAnalysis) -> Fitted | None:
    """Of a mixture, experts may be left out, as the engine's own configurations of mixtures do; nothing else may."""
    if any(not (analysis.model.is_moe and "expert" in name) for name in left):
        return None
    return Fitted(content, left)


def _rotation(
    content: Mapping[str, Any], scaling: Mapping[str, Any], analysis: ModelAnalysis, scalable: frozenset[str] | None
) -> Fitted | None:
    """rotation: everything that writes into the residual stream or reads from it is turned, so nothing may be missing.

    It changes what the model computes as soon as one such layer is not named. The embedding is no linear layer and
    stands in no list; it is taken to be where the donor has it when the head is.
    """
    prefix = str(content.get("model_decoder_layers") or "")
    block = block_of(prefix, analysis)
    places = [place for part in scaling.values() if isinstance(part, list) for place in part]
    if not places or not all(map(_is_place, places)):
        return None
    names = {name for place in places for key in ("prev_modules", "next_modules") for name in place[key]}
    norms = {place["norm_module"] for place in places}
    inside, outside = _split(names, prefix)
    norms_inside, norms_outside = _split(norms, prefix)
    all_linears = {group.pattern for group in analysis.quantization_targets.groups}
    complete = (
        inside == block.linears.keys()
        and all(map(block.in_every_layer, inside))
        and norms_inside == block.own_norms
        and (scalable is None or norms_inside <= scalable)
        and norms_outside <= set(analysis.quantization_targets.norms)
        and all(name in all_linears for name in outside if not name.endswith("embed_tokens"))
    )
    return Fitted(dict(content)) if complete and not analysis.model.is_moe else None


def _is_place(place: Any) -> bool:
    """Whether a place where the residual stream is turned names all that it touches."""
    return isinstance(place, Mapping) and {"prev_modules", "norm_module", "next_modules"} <= place.keys()


def _split(names: Iterable[str], prefix: str) -> tuple[set[str], set[str]]:
    """Names inside a repeated layer, without its number, and those outside."""
    inside: set[str] = set()
    outside: set[str] = set()
    for name in names:
        for number in (_LAYER, _LAYER_BEFORE):
            if name.startswith(prefix + number):
                inside.add(name.removeprefix(prefix + number))
                break
        else:
            outside.add(name)
    return inside, outside


def _unnamed(content: Mapping[str, Any], analysis: ModelAnalysis) -> Fitted | None:
    """twobitscalar: all linear layers but those it excludes, which have to be there: else the head would be one."""
    excluded = content.get("exclude_layers")
    if analysis.model.is_moe or analysis.model.modalities or not isinstance(excluded, list):
        return None
    heads = [group.pattern for group in analysis.quantization_targets.groups if group.excluded_by_default]
    covered = all(any(fnmatchcase(head, str(pattern)) for pattern in excluded) for head in heads)
    return Fitted(dict(content)) if heads and covered else None


def _starred(name: str) -> str:
    """A name with `*` for the number of an expert, as groups have it."""
    return _EXPERT.sub("*", name)


def _for_all_experts(entries: list[Mapping[str, Any]], experts: int) -> list[dict[str, Any]]:
    """The entries with those for single experts made for as many experts as this model has."""
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    for entry in entries:
        text = json.dumps(entry, sort_keys=True)
        starred = _starred(text)
        if starred == text:
            found.append(dict(entry))
        elif starred not in seen:
            seen.add(starred)
            found += [_numbered(entry, number) for number in range(experts)]
    return found


def _numbered(value: Any, number: int) -> Any:
    """The value with this expert's number in place of any other."""
    if isinstance(value, str):
        return _EXPERT.sub(str(number), value)
    if isinstance(value, Mapping):
        return {key: _numbered(item, number) for key, item in value.items()}
    return [_numbered(item, number) for item in value] if isinstance(value, list) else value
