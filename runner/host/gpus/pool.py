"""Shares out the GPUs of this host, together with every other daemon on it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runner.errors import Conflict, RunnerError
from runner.host.amd import amd_gpus
from runner.host.gpus import busy
from runner.host.gpus.identity import identity, identity_in, name_of
from runner.host.gpus.leases import Leases
from runner.host.gpus.mask import allowed, inherited, mask
from runner.host.gpus.shortage import Shortage
from runner.host.gpus.use import GpuUse, uses
from runner.host.nvidia import nvidia_gpus
from runner.host.tools import ToolRunner, run_tool
from runner.settings import GpuSettings
from schemas.api import GpuStanding
from schemas.artifacts.environment import Gpu

_BETWEEN_LOOKS_SECONDS = 0.5
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

    async def take(self, count: int) -> HeldGpus | Shortage:
        """So many GPUs that are free by the busy rule at this moment, or why not.

        Each is locked first and looked at again then: what began to compute meanwhile is left alone. Raises Conflict
        where runs may use fewer GPUs, and Broken where nobody can be told who has which.
        """
        gpus = await self._usable(count)
        found = await asyncio.to_thread(uses, gpus, self.root, self.run)
        reasons = {identity(use.gpu): busy.held_by(use, self.settings.idle_bytes) for use in found}
        candidates = [gpu for gpu in gpus if not reasons[identity(gpu)]]
        locked: dict[str, int] = {}
        try:
            while candidates and len(locked) < count:
                batch = self._lock_some(candidates, count - len(locked), locked, reasons)
                for gpu, why in (await self._busy(batch)).items():
                    os.close(locked.pop(gpu))
                    reasons[gpu] = why
            chosen = tuple(gpu for gpu in gpus if identity(gpu) in locked)
            if len(chosen) < count:
                told = [f"GPU {name_of(gpu)}: {reasons[identity(gpu)]}" for gpu in gpus if reasons[identity(gpu)]]
                return Shortage(count, len(chosen), tuple(told))
            descriptors = tuple(locked.pop(identity(gpu)) for gpu in chosen)
            return HeldGpus(chosen, descriptors, mask(chosen, self.settings.mask))
        finally:
            for descriptor in locked.values():
                os.close(descriptor)

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
        gpus = {identity(gpu): gpu for gpu in await asyncio.to_thread(self._found)}
        wanted = [identity_in(name) for name in names]
        if gone := [name for name in wanted if name not in gpus]:
            raise Conflict("gpu_gone", f"The GPU {gone[0]} is not there any more.", "Run `ptq-runner doctor`.")
        kept: list[int] = []
        for name in wanted:
            descriptor = self._leases.take(name)
            if descriptor is None:
                for other in kept:
                    os.close(other)
                busy_one = f"GPU {name_of(gpus[name])}: {_ANOTHERS}"
                return Shortage(len(names), len(names) - 1, (busy_one,))
            kept.append(descriptor)
        chosen = tuple(gpus[name] for name in wanted)
        return HeldGpus(chosen, tuple(kept), mask(chosen, self.settings.mask))

    async def still_held(self, names: Sequence[str]) -> str:
        """Why these GPUs are not free again, in a sentence; empty when they are, or are not there any more."""
        wanted = {identity_in(name) for name in names}
        gpus = [gpu for gpu in await asyncio.to_thread(self._found) if identity(gpu) in wanted]
        for use in await asyncio.to_thread(uses, gpus, self.root, self.run):
            if why := busy.held_by(use, self.settings.idle_bytes):
                return f"GPU {name_of(use.gpu)}: {why}."
        return ""

    async def standings(self) -> list[GpuStanding]:
        """Every GPU that runs may use, as it stands."""
        gpus = await asyncio.to_thread(self._offered)
        found = await asyncio.to_thread(uses, gpus, self.root, self.run)
        return [self._standing(use) for use in found]

    def _standing(self, use: GpuUse) -> GpuStanding:
        try:
            taken = _ANOTHERS if self._leases.is_taken(identity(use.gpu)) else ""
        except RunnerError as error:
            taken = error.message
        return GpuStanding(
            name=name_of(use.gpu),
            model=use.gpu.model or "",
            busy=taken or busy.held_by(use, self.settings.idle_bytes),
            memory_bytes=use.gpu.memory_bytes,
            memory_used_bytes=use.memory_used_bytes,
        )

    @property
    def _leases(self) -> Leases:
        return Leases(self.settings.lease_dir)

    async def _usable(self, count: int) -> list[Gpu]:
        gpus = await asyncio.to_thread(self._offered)
        if len(gpus) < count:
            there = "no GPU" if not gpus else "1 GPU" if len(gpus) == 1 else f"{len(gpus)} GPUs"
            hint = (
                "Look at gpus.visible and gpus.per_run in runner.yaml and at `ptq-runner doctor`, or plan for the CPU."
            )
            raise Conflict("too_few_gpus", f"This run needs {count}, and runs may use {there} here.", hint)
        return gpus

    async def _busy(self, gpus: Sequence[Gpu]) -> dict[str, str]:
        """Why each of these may not be had, by identity; those that may are not in it."""
        looks: dict[str, list[GpuUse]] = {identity(gpu): [] for gpu in gpus}
        computing = list(gpus)
        for look in range(busy.LOOKS):
            if look:
                await asyncio.sleep(self.between_looks_seconds)
            found = await asyncio.to_thread(uses, computing, self.root, self.run)
            for use in found:
                looks[identity(use.gpu)].append(use)
            computing = [use.gpu for use in found if busy.computes(use)]
            if not computing:
                break
        reasons = {name: busy.busy(use, self.settings.idle_bytes) for name, use in looks.items()}
        return {name: why for name, why in reasons.items() if why}

    def _found(self) -> list[Gpu]:
        """All GPUs of this host."""
        amd = amd_gpus(self.root, self.run).gpus
        return list(amd or nvidia_gpus(self.root, self.run).gpus)

    def _offered(self) -> list[Gpu]:
        """Those that runs may use. Raises Conflict for a setting that names one that is not there."""
        found = self._found()
        left, unknown = allowed(inherited(found, self.environment), self.settings.visible)
        if unknown:
            known = ", ".join(name_of(gpu) for gpu in found) or "none"
            hint = f"Correct gpus.visible; GPUs that runs may use here: {known}."
            raise Conflict("unknown_gpu", f"gpus.visible names {unknown[0]}, which this host does not have.", hint)
        return left
