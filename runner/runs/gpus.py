"""What the queue needs of the host's GPUs: leases, as `runner.host.gpus` gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from runner.host.gpus.shortage import Shortage
from runner.planning.memory import uses_several
from schemas.api import GpuStanding
from schemas.artifacts.environment import Gpu
from schemas.artifacts.plan import QuantPlan

__all__ = ["GpuPool", "Lease", "Shortage", "gpus_needed"]


class Lease(Protocol):
    """GPUs that nobody else gets, as long as this object or any process that inherited its descriptors lives."""

    gpus: tuple[Gpu, ...]
    descriptors: tuple[int, ...]
    """Locks to be kept open in every process of the run."""
    mask: dict[str, str]
    """The one visibility variable, and what has to stand beside it."""

    def close(self) -> None:
        """Let go here; what processes inherited stays theirs."""


class GpuPool(Protocol):
    """Shares out the GPUs of this host, together with every other daemon on it."""

    async def take(self, count: int) -> Lease | Shortage:
        """So many GPUs that are free by the busy rule at this moment, or why not. Raises RunnerError where there are
        not so many at all."""

    async def take_again(self, names: Sequence[str]) -> Lease | Shortage:
        """Exactly the GPUs of these names (`Run.gpus`), which a run had before, be they busy or not."""

    async def still_held(self, names: Sequence[str]) -> str:
        """Why these GPUs are not free again: memory in use, or a process of the run; empty when they are."""

    async def count(self) -> int:
        """How many GPUs runs may use, be they free or not."""

    async def standings(self) -> list[GpuStanding]:
        """Every GPU as it stands, without `run`."""


def gpus_needed(plan: QuantPlan, per_run: int) -> int:
    """How many GPUs a run of this plan gets: none on the CPU, one, or `per_run` where the loader uses several."""
    if plan.device == "cpu":
        return 0
    return per_run if uses_several(plan) else 1
