"""Pretend GPUs: the kernel files of a host with AMD GPUs below a folder, whose use a test changes as it likes."""

from __future__ import annotations

import shutil
from pathlib import Path

MEMORY_BYTES = 192 * 2**30
BASELINE_BYTES = 283 * 2**20


class PretendGpus:
    """A file system root with so many GPUs of one kind, all idle at first.

    With `parts` each card is cut into so many partitions (CPX), which count as GPUs of their own: only the first part
    of a card has the card's files. `high_bits` writes a partition's number where newer kernels do.
    """

    def __init__(self, root: Path, count: int, gfx: int = 90402, parts: int = 1, *, high_bits: bool = True) -> None:
        self.root = root
        self.count = count
        self.parts = parts
        self._write("dev/kfd", "")
        self._node(0, {"cpu_cores_count": 96, "gfx_target_version": 0}, 0)
        for index in range(count):
            card, part = divmod(index, parts)
            facts = {
                "simd_count": 304 // parts,
                "gfx_target_version": gfx,
                "location_id": (0x05 + 0x10 * card) << 8 | (part << 28 if high_bits else part),
                "domain": 0,
                "drm_render_minor": 128 + index,
                "unique_id": 0x1A2B0000 + card,
            }
            self._node(index + 1, facts, self.kfd_id(index))
            if part == 0:
                self._write(f"{self._device(index)}/mem_info_vram_total", f"{MEMORY_BYTES}\n")
                self._write(f"{self._device(index)}/product_name", "AMD Instinct MI300X\n")
                self._write(f"{self._device(index)}/current_compute_partition", "SPX\n" if parts == 1 else "CPX\n")
                self.use(index, BASELINE_BYTES)
                self.load(index, 0)
        (root / "sys/class/kfd/kfd/proc").mkdir(parents=True, exist_ok=True)

    @staticmethod
    def kfd_id(index: int) -> int:
        """The kernel's own number of a GPU."""
        return 40_000 + index

    def name(self, index: int) -> str:
        """What a run's record calls it."""
        card, part = divmod(index, self.parts)
        return f"{index} (0000:{0x05 + 0x10 * card:02x}:00.{part})"

    def use(self, index: int, used_bytes: int) -> None:
        """Memory in use on the card."""
        self._write(f"{self._device(index)}/mem_info_vram_used", f"{used_bytes}\n")

    def remove(self) -> None:
        """All of them are gone from the bus."""
        for index in range(self.count):
            shutil.rmtree(self.root / f"sys/class/kfd/kfd/topology/nodes/{index + 1}")

    def load(self, index: int, percent: int) -> None:
        """How much it computes."""
        self._write(f"{self._device(index)}/gpu_busy_percent", f"{percent}\n")

    def process(self, index: int, pid: int, held_bytes: int) -> None:
        """A process that holds memory on it."""
        self._write(f"sys/class/kfd/kfd/proc/{pid}/vram_{self.kfd_id(index)}", f"{held_bytes}\n")

    def forget(self, pid: int) -> None:
        """The process is gone."""
        folder = self.root / f"sys/class/kfd/kfd/proc/{pid}"
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()

    @staticmethod
    def _device(index: int) -> str:
        return f"sys/class/drm/renderD{128 + index}/device"

    def _node(self, number: int, facts: dict[str, int], kfd_id: int) -> None:
        node = f"sys/class/kfd/kfd/topology/nodes/{number}"
        self._write(f"{node}/properties", "".join(f"{name} {value}\n" for name, value in facts.items()))
        self._write(f"{node}/gpu_id", f"{kfd_id}\n")

    def _write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        # Replaced at once: a daemon that looks at this moment must not read half of it.
        beside = file.with_name(f".{file.name}.new")
        beside.write_text(text)
        beside.replace(file)
