"""Which GPUs runs may see: the names in gpus.visible, and masks that this process inherited."""

from __future__ import annotations

from collections.abc import Iterator

from runner.service.doctor.subject import Subject, blocks, informs, warns
from schemas.artifacts.plan import Finding

_MASKS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
_NONE = {"", "-1", "none", "void", "NoDevFiles"}


def visibility(subject: Subject) -> Iterator[Finding]:
    """Names that are none, fewer GPUs than a run gets, and GPUs that the environment hides."""
    yield from _names(subject)
    yield from _masks(subject)
    if version := subject.environment.get("HSA_OVERRIDE_GFX_VERSION"):
        yield informs(
            "gfx_override",
            f"HSA_OVERRIDE_GFX_VERSION is {version[:40]}: kernels are chosen for another GPU than this host has.",
            "Remove it from the runner's environment unless that is meant.",
        )


def _names(subject: Subject) -> Iterator[Finding]:
    gpus, settings = subject.hardware.gpus, subject.settings.gpus
    known = {name for gpu in gpus for name in (str(gpu.index), gpu.uuid, gpu.bus_address) if name}
    unknown = [name for name in settings.visible or [] if name not in known]
    if unknown:
        here = ", ".join(f"{gpu.index} ({gpu.uuid or gpu.bus_address or 'no other name'})" for gpu in gpus[:16])
        yield blocks(
            "gpu_unknown",
            f"gpus.visible names {', '.join(unknown)[:200]}, and this host has no such GPU.",
            f"Correct gpus.visible; here are: {here or 'none'}.",
        )
    offered = len(set(settings.visible or [])) if settings.visible is not None else len(gpus)
    if gpus and settings.per_run > offered:
        message = f"gpus.per_run is {settings.per_run}, and runs may use {offered} of this host's GPUs."
        yield blocks("too_few_gpus", message, "Lower gpus.per_run, or name more in gpus.visible.")


def _masks(subject: Subject) -> Iterator[Finding]:
    masks = {name: subject.environment[name] for name in _MASKS if name in subject.environment}
    count = len(subject.hardware.gpus)
    for name, value in masks.items():
        # The first name that is none ends the list, as the drivers read it.
        shown = [part.strip() for part in value.split(",")]
        left = next((place for place, part in enumerate(shown) if part in _NONE), len(shown))
        hint = f"Remove {name} from the runner's environment, and name GPUs in gpus.visible in its place."
        if left == 0:
            yield warns(
                "mask_hides_all", f"{name} in the runner's environment is {value!r}, which hides every GPU.", hint
            )
        elif count and left < count:
            message = f"{name} in the runner's environment hides {count - left} of {count} GPUs: it is {value[:100]!r}."
            yield warns("mask_hides", message, hint)
    if "ROCR_VISIBLE_DEVICES" in masks and {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"} & set(masks):
        yield warns(
            "masks_differ",
            "The runner's environment has ROCR_VISIBLE_DEVICES and another mask: the second one counts what the first "
            "one left over, and together they may leave nothing.",
            "Keep one of them.",
        )
