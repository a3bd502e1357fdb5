"""What a request needs of a runner, and what it would rather have, each by what a runner offers."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from bot.conversation import remote_code
from bot.conversation.request import Request, algorithms_of
from bot.conversation.wording import shortened
from schemas.api import Capabilities

_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_NUMBERED = re.compile(r"sm_([0-9]{2,3})[a-z]?")
_LONGEST = 80

# Source: the GPUs' vendors. AMD Instinct and its architectures; NVIDIA GPUs and their compute capability.
_ARCHITECTURES = {
    "gfx908": ("MI100",),
    "gfx90a": ("MI210", "MI250", "MI250X"),
    "gfx942": ("MI300A", "MI300X", "MI325X"),
    "gfx950": ("MI350X", "MI355X"),
    "sm_80": ("A100", "A30"),
    "sm_86": ("A10", "A40"),
    "sm_89": ("L4", "L40", "L40S"),
    "sm_90": ("H100", "H200", "GH200"),
    "sm_100": ("B100", "B200", "GB200"),
}
_ARCHITECTURE_OF = {model: arch for arch, models in _ARCHITECTURES.items() for model in models}
_FOUR_BITS = ("mx", "amdfp4")
_FP4_OF_NVIDIA = "nvfp4"


@dataclass(frozen=True)
class Want:
    """One thing that is wanted of a runner, and how it is said of one that has it and of one that does not."""

    met: Callable[[Capabilities], bool]
    having: str
    lacking: str


def needs(request: Request) -> list[Want]:
    """Without these a runner refuses the model, the plan or the command."""
    return [*_place_needs(request), *_plan_needs(request)]


def likes(request: Request, labels: Iterable[str] = ()) -> list[Want]:
    """What is rather wanted, the most important first; `labels` are those of the runner that is looked at. All of a
    request's are there for each runner, in the same order."""
    found: list[Want] = []
    hardware = request.choices.get("hardware")
    if isinstance(hardware, str) and hardware:
        kind = shortened(hardware, _LONGEST)
        same = hardware.lower() in {label.lower() for label in labels}
        arch = _ARCHITECTURE_OF.get(hardware.upper(), hardware.lower())
        found.append(Want(lambda offer: same or arch in offer.gpu_archs, f"has {kind}", f"has no {kind}"))
    schemes = list(_schemes(request))
    if any(name.startswith(_FOUR_BITS) for name in schemes):
        found.append(Want(_has_gfx950, "has gfx950", "has no gfx950, which computes in these formats"))
    if any(name == _FP4_OF_NVIDIA for name in schemes):
        found.append(Want(partial(_has_sm, 100), "has sm_100", "has no sm_100, which computes in this format"))
    if any("fp8" in name for name in schemes):
        found.append(Want(_computes_fp8, "has GPUs that compute in FP8", "has no GPUs that compute in FP8"))
    if request.choices.get("multi_gpu") is not None:
        found.append(Want(lambda offer: offer.gpu_count != 1, "has several GPUs", "has one GPU only"))
    if request.choices.get("priority") != "cpu":
        # What is not known to have none may have some: an older runner, or one that hands runs to another scheduler.
        found.append(Want(lambda offer: offer.accelerator != "cpu", "has GPUs", "has no GPU"))
    return found


def _place_needs(request: Request) -> Iterator[Want]:
    model = request.model
    if model.startswith("/"):
        shown = shortened(model, _LONGEST)
        within = partial(_within, model)
        yield Want(lambda offer: within(offer.model_roots), f"reads {shown}", f"does not read {shown}")
    elif _HUB_ID.fullmatch(model):
        yield Want(lambda offer: offer.hub, "may ask the Hub", "may not ask the Hub")
    if request.output_dir is not None and request.output_dir.startswith("/"):
        folder, into = shortened(request.output_dir, _LONGEST), partial(_within, request.output_dir)
        yield Want(lambda offer: into(offer.output_roots), f"writes to {folder}", f"does not write to {folder}")


def _plan_needs(request: Request) -> Iterator[Want]:
    choices = request.choices
    for name in _schemes(request):
        yield _named(name, lambda offer: offer.catalogue.schemes)
    if isinstance(kv_cache := choices.get("kv_cache_scheme"), str):
        yield _named(kv_cache, lambda offer: offer.catalogue.kv_cache_schemes, " for the KV cache")
    if isinstance(attention := choices.get("attention_dtype"), str):
        yield _named(attention, lambda offer: offer.catalogue.attention_schemes, " for attention")
    for name in algorithms_of(choices):
        yield _named(name, lambda offer: offer.catalogue.algorithms)
    if isinstance(entry_point := choices.get("entry_point"), str) and entry_point != "auto":
        yield _named(entry_point, lambda offer: offer.entry_points, " as an entry point")
    if remote_code.asked(choices):
        yield Want(lambda offer: offer.remote_code, "runs a model's own code", "runs no code of a model's own")


def _named(name: str, known: Callable[[Capabilities], Iterable[str]], use: str = "") -> Want:
    shown = f"{shortened(name, _LONGEST)}{use}"
    return Want(lambda offer: name in known(offer), f"has {shown}", f"has no {shown}")


def _schemes(request: Request) -> Iterator[str]:
    """The schemes that are named, each once: for the whole model, and for some layers."""
    of_layers = request.choices.get("layer_quant_config")
    named = [request.choices.get("global_scheme"), *(of_layers.values() if isinstance(of_layers, dict) else ())]
    yield from dict.fromkeys(name for name in named if isinstance(name, str))


def _within(path: str, roots: Iterable[str]) -> bool:
    """Whether a path lies beneath a root, as far as that can be told without the runner's links."""
    parts = posixpath.normpath(path).strip("/").split("/")
    return any(parts[: len(root)] == root for root in (_parts(one) for one in roots))


def _parts(root: str) -> list[str]:
    return [part for part in posixpath.normpath(root).split("/") if part]


def _has_gfx950(offer: Capabilities) -> bool:
    return "gfx950" in offer.gpu_archs


def _computes_fp8(offer: Capabilities) -> bool:
    """Source: FP8 matrix instructions came with CDNA 3 (gfx942), RDNA 4 (gfx12), and Ada Lovelace (sm_89)."""
    amd = any(arch in ("gfx942", "gfx950") or arch.startswith("gfx12") for arch in offer.gpu_archs)
    return amd or _has_sm(89, offer)


def _has_sm(least: int, offer: Capabilities) -> bool:
    numbers = [_NUMBERED.fullmatch(arch) for arch in offer.gpu_archs]
    return any(int(found[1]) >= least for found in numbers if found is not None)
