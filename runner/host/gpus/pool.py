"""Shares out the GPUs of this host, together with every other daemon on it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runner.errors import Conflict, RunnerError
from runner.host.gpus import busy
from runner.host.gpus.identity import identity, identity_in, name_of
from runner.host.gpus.inventory import Inventory, found_gpus, offered
from runner.host.gpus.leases import Leases
from runner.host.gpus.mask import mask
from runner.host.gpus.shortage import Shortage
from runner.host.gpus.use import GpuUse
from runner.host.tools import ToolRunner, run_tool
from runner.settings import GpuSettings
from schemas.api import GpuStanding
from schemas.artifacts.environment import Gpu

_BETWEEN_LOOKS_SECONDS = 0.5
_INVENTORY_SECONDS = 30.0
"""How long the list of GPUs holds; what they hold is looked at each time. nvidia-smi may take seconds for an answer."""
_ANOTHERS = "another run has it"


@dataclass
class HeldGpus:
    """A lease: GPUs that nobody else gets while this, or a process that inherited the descriptors, lives."""

    gpus: tuple[Gpu, ...]
    descriptors: tuple[int, ...]
    mask: dict[str, str]
    _open: bool = field(default=True, repr=False)

    def close(self) -> None:
        """Let go here; what processes inherited stays theirs."""
        if self._open:
            self._open = False
            for descriptor in self.descriptors:
                os.close(descriptor)


@dataclass
class HostGpus:
    """The GPUs of this host that its settings and an inherited mask leave to runs.

    `root` is the file system that is looked at, `run` starts the vendors' tools, `environment` may hold a mask.
    """

    settings: GpuSettings
    root: Path = Path("/")
    run: ToolRunner = run_tool
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    between_looks_seconds: float = _BETWEEN_LOOKS_SECONDS
    inventory_seconds: float = _INVENTORY_SECONDS
    _known: tuple[float, tuple[Inventory, Inventory]] | None = field(default=None, init=False, repr=False)

    async def take(self, count: int) -> HeldGpus | Shortage:
        """So many GPUs that are free by the busy rule at this moment, or why not; for none, what hides them all.

        Each is locked first and looked at again then: what began to compute meanwhile is left alone. Raises Conflict
        where runs may use fewer GPUs, and Broken where nobody can be told who has which.
        """
        if not count:
            hidden = [mask((), one.vendor) for one in await self._found() if one.gpus]
            return HeldGpus((), (), {name: value for variables in hidden for name, value in variables.items()})
        here = await self._usable(count)
        gpus = here.gpus
        found = await self._uses(here, gpus)
        reasons = {identity(use.gpu): busy.not_free(use, self.settings.idle_bytes) for use in found}
        free = [use for use in found if not reasons[identity(use.gpu)]]
        quiet, computing = ([use.gpu for use in free if busy.computes(use) is loud] for loud in (False, True))
        locked: dict[str, int] = {}
        try:
            await self._lock(here, quiet, count, locked, reasons)
            if computing and len(locked) < count:
                reasons.update(await self._busy(here, computing))  # all of them at once: a look takes its time
                left = [gpu for gpu in computing if not reasons[identity(gpu)]]
                await self._lock(here, left, count, locked, reasons)
            chosen = tuple(gpu for gpu in gpus if identity(gpu) in locked)
            if len(chosen) < count:
                told = [f"GPU {name_of(gpu)}: {reasons[identity(gpu)]}" for gpu in gpus if reasons[identity(gpu)]]
                return Shortage(count, len(chosen), tuple(told))
            descriptors = tuple(locked.pop(identity(gpu)) for gpu in chosen)
            return HeldGpus(chosen, descriptors, mask(chosen, here.vendor, self.settings.mask))
        finally:
            for descriptor in locked.values():
                os.close(descriptor)

    async def _lock(
        self, here: Inventory, candidates: list[Gpu], count: int, locked: dict[str, int], reasons: dict[str, str]
    ) -> None:
        """Lock candidates until there are `count`, in their order; those that are busy by now are let go again."""
        while candidates and len(locked) < count:
            batch = self._lock_some(candidates, count - len(locked), locked, reasons)
            for gpu, why in (await self._busy(here, batch)).items():
                os.close(locked.pop(gpu))
                reasons[gpu] = why

    def _lock_some(
        self, candidates: list[Gpu], count: int, locked: dict[str, int], reasons: dict[str, str]
    ) -> list[Gpu]:
        """Lock the next candidates, so many that nobody else has; they are taken off the list."""
        batch: list[Gpu] = []
        while candidates and len(batch) < count:
            gpu = candidates.pop(0)
            descriptor = self._leases.take(identity(gpu))
            if descriptor is None:
                reasons[identity(gpu)] = _ANOTHERS
            else:
                locked[identity(gpu)] = descriptor
                batch.append(gpu)
        return batch

    async def take_again(self, names: Sequence[str]) -> HeldGpus | Shortage:
        """Exactly the GPUs of these names, which a run had before, be they busy or not.

        Raises Conflict where one of them is not there any more.
        """
        here, known = await self._owners(names)
        wanted = [identity_in(name) for name in names]
        if gone := [name for name in wanted if name not in known]:
            raise Conflict("gpu_gone", f"The GPU {gone[0]} is not there any more.", "Run `ptq-runner doctor`.")
        kept: list[int] = []
        try:
            for name in wanted:
                descriptor = self._leases.take(name)
                if descriptor is None:
                    return Shortage(len(names), len(kept), (f"GPU {name_of(known[name])}: {_ANOTHERS}",))
                kept.append(descriptor)
            chosen = tuple(known[name] for name in wanted)
            lease = HeldGpus(chosen, tuple(kept), mask(chosen, here.vendor, self.settings.mask))
            kept.clear()
            return lease
        finally:
            for descriptor in kept:
                os.close(descriptor)

    async def still_held(self, names: Sequence[str]) -> str:
        """Why these GPUs are not free again, in a sentence; empty when they are, or are not there any more."""
        here, known = await self._owners(names)
        gpus = [known[name] for name in map(identity_in, names) if name in known]
        for use in await self._uses(here, gpus):
            if why := busy.held_by(use, self.settings.idle_bytes):
                return f"GPU {name_of(use.gpu)}: {why}."
        return ""

    async def count(self) -> int:
        """How many GPUs runs may use, be they free or not."""
        return len((await self._offered()).gpus)

    async def standings(self) -> list[GpuStanding]:
        """Every GPU that runs may use, as it stands. Load is not looked at: a single look says nothing of it."""
        here = await self._offered()
        return [self._standing(use) for use in await self._uses(here, here.gpus)]

    def _standing(self, use: GpuUse) -> GpuStanding:
        try:
            taken = _ANOTHERS if self._leases.is_taken(identity(use.gpu)) else ""
        except RunnerError as error:
            taken = error.message
        return GpuStanding(
            name=name_of(use.gpu),
            model=use.gpu.model or "",
            busy=taken or busy.not_free(use, self.settings.idle_bytes),
            memory_bytes=use.gpu.memory_bytes,
            memory_used_bytes=use.memory_used_bytes,
        )

    @property
    def _leases(self) -> Leases:
        return Leases(self.settings.lease_dir)

    async def _usable(self, count: int) -> Inventory:
        here = await self._offered()
        if len(here.gpus) < count:
            there = {0: "no GPU", 1: "1 GPU"}.get(len(here.gpus), f"{len(here.gpus)} GPUs")
            hint = (
                "Look at gpus.visible and gpus.per_run in runner.yaml and at `ptq-runner doctor`, or plan for the CPU."
            )
            raise Conflict("too_few_gpus", f"This run needs {count}, and runs may use {there} here.", hint)
        return here

    async def _busy(self, here: Inventory, gpus: Sequence[Gpu]) -> dict[str, str]:
        """Why each of these may not be had, by identity; those that may are not in it."""
        looks: dict[str, list[GpuUse]] = {identity(gpu): [] for gpu in gpus}
        computing = list(gpus)
        for look in range(busy.LOOKS):
            if not computing:
                break
            if look:
                await asyncio.sleep(self.between_looks_seconds)
            found = await self._uses(here, computing)
            for use in found:
                looks[identity(use.gpu)].append(use)
            computing = [use.gpu for use in found if busy.computes(use)]
        reasons = {name: busy.busy(use, self.settings.idle_bytes) for name, use in looks.items()}
        return {name: why for name, why in reasons.items() if why}

    async def _owners(self, names: Sequence[str]) -> tuple[Inventory, dict[str, Gpu]]:
        """The vendor's GPUs to which these names belong, whatever the settings leave now, by identity."""
        wanted = set(map(identity_in, names))
        found = [(one, {identity(gpu): gpu for gpu in one.gpus}) for one in await self._found()]
        return max(found, key=lambda one: len(wanted & one[1].keys()))

    async def _uses(self, here: Inventory, gpus: Sequence[Gpu]) -> list[GpuUse]:
        return await asyncio.to_thread(here.uses, gpus, self.root, self.run) if gpus else []

    async def _offered(self) -> Inventory:
        return offered(await self._found(), self.environment, self.settings.visible)

    async def _found(self) -> tuple[Inventory, Inventory]:
        """All GPUs of this host; looked at again where there was none."""
        now = time.monotonic()
        if self._known is None or now - self._known[0] >= self.inventory_seconds:
            found = await asyncio.to_thread(found_gpus, self.root, self.run)
            self._known = (now, found) if any(one.gpus for one in found) else None
            return found
        return self._known[1]
