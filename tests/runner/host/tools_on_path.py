"""Vendor tools that answer as a test wants, and a file system root with drivers' files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from runner.host.tools import ToolAnswer, ToolRunner

NOT_THERE = ToolAnswer(found=False, problem="is not on PATH")


def tools(**answers: str | ToolAnswer | Callable[[Sequence[str]], ToolAnswer]) -> ToolRunner:
    """A runner of tools that knows some by name ("amd_smi" for amd-smi); all others are not on PATH."""

    def run(argv: Sequence[str]) -> ToolAnswer:
        answer = answers.get(argv[0].replace("-", "_"), NOT_THERE)
        if callable(answer):
            return answer(argv)
        return ToolAnswer(found=True, output=answer) if isinstance(answer, str) else answer

    return run


def fails(problem: str) -> ToolAnswer:
    """A tool that is there and does not succeed."""
    return ToolAnswer(found=True, problem=problem)


def write(root: Path, path: str, text: str = "") -> None:
    """A file below the root."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def with_kfd(root: Path, nodes: Path, *, device: bool = True) -> Path:
    """A root whose /sys has a KFD topology."""
    shutil.copytree(nodes, root / "sys/class/kfd/kfd/topology/nodes")
    if device:
        write(root, "dev/kfd")
    return root


def kfd_node(root: Path, number: int, gfx: int, location: int = 0, **more: int) -> None:
    """One node of a topology; gfx 0 is a processor."""
    facts = {"gfx_target_version": gfx, "location_id": location, "domain": 0, "drm_render_minor": 128 + number, **more}
    text = "".join(f"{name} {value}\n" for name, value in facts.items())
    write(root, f"sys/class/kfd/kfd/topology/nodes/{number}/properties", text)
