"""Which GPUs of this host runs may use: of one vendor, as the settings and an inherited mask leave them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.errors import Conflict
from runner.host.amd import amd_gpus, kernel_gpus
from runner.host.gpus.amd_use import amd_uses
from runner.host.gpus.identity import identity, name_of
from runner.host.gpus.mask import allowed, inherited
from runner.host.gpus.nvidia_use import nvidia_uses
from runner.host.gpus.use import GpuUse, Vendor
from runner.host.nvidia import nvidia_gpus
from runner.host.tools import ToolRunner
from schemas.artifacts.environment import Gpu


@dataclass(frozen=True)
class Inventory:
    """GPUs of one vendor. Without any GPU the vendor says nothing."""

    vendor: Vendor
    gpus: tuple[Gpu, ...] = ()

    def uses(self, gpus: Sequence[Gpu], root: Path, run: ToolRunner) -> list[GpuUse]:
        """What these GPUs hold now, in their order. Takes as long as the vendor's tools do; never raises."""
        return amd_uses(gpus, root, run) if self.vendor == "amd" else nvidia_uses(gpus, run)


def found_gpus(root: Path, run: ToolRunner) -> tuple[Inventory, Inventory]:
    """AMD's and NVIDIA's. AMD's tools are asked only where the kernel lists nothing: they take seconds."""
    amd = kernel_gpus(root) or amd_gpus(root, run).gpus
    return Inventory("amd", amd), Inventory("nvidia", nvidia_gpus(root, run).gpus)


def offered(
    found: tuple[Inventory, Inventory], environment: Mapping[str, str], visible: Sequence[str] | None
) -> Inventory:
    """What runs may use. Raises Conflict where the setting names what is not there, or GPUs of both vendors."""
    left = [Inventory(one.vendor, tuple(inherited(one.gpus, one.vendor, environment))) for one in found]
    named = [allowed(one.gpus, visible) for one in left]
    if unknown := [name for name in visible or () if all(name in names for _, names in named)]:
        raise _unknown(unknown[0], found, left)
    # Two that cannot be told apart could be leased twice: the first stands for both.
    here = [
        Inventory(one.vendor, tuple({identity(gpu): gpu for gpu in reversed(gpus)}.values())[::-1])
        for one, (gpus, _) in zip(left, named, strict=True)
        if gpus
    ]
    if len(here) > 1:
        raise Conflict(
            "two_vendors",
            "This host has AMD and NVIDIA GPUs; nothing says which of them shall be used.",
            "Name those of one vendor in gpus.visible, by bus address.",
        )
    return here[0] if here else Inventory("amd")


def _unknown(name: str, found: Sequence[Inventory], left: Sequence[Inventory]) -> Conflict:
    hidden = bool(allowed([gpu for one in found for gpu in one.gpus], [name])[0])
    why = "which the mask that this daemon inherited hides" if hidden else "which this host does not have"
    known = ", ".join(name_of(gpu) for one in left for gpu in one.gpus) or "none"
    return Conflict(
        "unknown_gpu",
        f"gpus.visible names {name[:80]}, {why}.",
        f"Correct gpus.visible in runner.yaml; GPUs that runs may use here: {known}.",
    )
