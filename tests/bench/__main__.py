"""`python -m tests.bench [MODEL]`: run the benchmarks on a model folder, or on a tiny one."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.bench import clicks, logs, planning, supervision
from tests.bench.intake import compare
from tests.e2e.host import running_host


def main(arguments: list[str]) -> None:
    """Print one line for each benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        print(logs.measure(Path(folder)))
    with tempfile.TemporaryDirectory() as folder:
        print(supervision.measure(Path(folder) / "host", Path(arguments[0]) if arguments else None))
    with tempfile.TemporaryDirectory() as folder, running_host(Path(folder) / "host") as host:
        model = _linked(Path(arguments[0]), host.models / "given") if arguments else host.model
        print(compare(host.client, model, rounds=5))
        print(planning.measure(host.client, host.models))
    clicks.main([])


def _linked(source: Path, target: Path) -> Path:
    """The model inside the roots, since links out of them are refused. Hard links: nothing is copied."""
    target.mkdir()
    for file in source.iterdir():
        if file.is_file():
            (target / file.name).hardlink_to(file)
    return target


if __name__ == "__main__":
    main(sys.argv[1:])
