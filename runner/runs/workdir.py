"""The working directory of a run: empty, its own, with links to what the dataset mirror holds.

Quark looks for datasets relative to the working directory *before* it asks the Hub, so a stray folder there would
replace the calibration data without a word. Seen with datasets 5.2: a folder `org/name` beside the process wins.
"""

from __future__ import annotations

from pathlib import Path

_MIRRORED = ("*/*",)  # datasets of the Hub are `organisation/name`


def make_working_directory(folder: Path, mirror: Path | None) -> Path:
    """Make `work` in the run folder and link the datasets of the mirror into it. Raises OSError."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    if mirror is None or not mirror.is_dir():
        return work
    for dataset in sorted(path for pattern in _MIRRORED for path in mirror.glob(pattern) if path.is_dir()):
        link = work / dataset.relative_to(mirror)
        link.parent.mkdir(exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(dataset, target_is_directory=True)
    return work
