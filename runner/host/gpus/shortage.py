"""Why there are not enough free GPUs."""

from __future__ import annotations

from dataclasses import dataclass

_NAMED = 3


@dataclass(frozen=True)
class Shortage:
    """No lease now: how many GPUs are needed and free, and why each other is not, in sentences."""

    needed: int
    free: int
    busy: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What a waiting run is told."""
        what = "1 GPU" if self.needed == 1 else f"{self.needed} GPUs"
        named = "; ".join(self.busy[:_NAMED])
        more = f"; {len(self.busy) - _NAMED} more are busy" if len(self.busy) > _NAMED else ""
        return f"It waits for {what}; {self.free} free{f' ({named}{more})' if named else ''}."
