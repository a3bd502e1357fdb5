"""The folders of runner.yaml: models, results and datasets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from runner.host.datasets import mirrored_datasets
from runner.service.doctor.subject import Subject, blocks, informs, warns
from schemas.artifacts.plan import Finding


def folders(subject: Subject) -> Iterator[Finding]:
    """Roots that cannot be used, and whether there is anything to calibrate with."""
    settings = subject.settings
    yield from _roots("models.roots", settings.models.roots, os.R_OK | os.X_OK, "read")
    yield from _roots("outputs.roots", settings.outputs.roots, os.W_OK | os.X_OK, "write into")
    datasets = mirrored_datasets(settings.datasets.mirror)
    if datasets:
        yield informs("datasets", f"The dataset mirror holds {', '.join(datasets)}.")
    elif not settings.models.hub:
        yield warns(
            "no_datasets",
            "There is no calibration data: the dataset mirror is empty or not set, and this runner is offline.",
            "Set datasets.mirror in runner.yaml and put a text file or a downloaded dataset into it.",
        )


def _roots(setting: str, roots: list[Path], access: int, what: str) -> Iterator[Finding]:
    if not roots:
        yield blocks("no_roots", f"{setting} names no folder.", f"Set {setting} in runner.yaml.")
    for root in roots:
        if not os.path.isdir(root):  # noqa: PTH112 - false, not an error, where looking is not allowed
            yield blocks("bad_root", f"{root} of {setting} is no folder.", "Create it, or correct the setting.")
        elif not os.access(root, access, effective_ids=True):
            hint = f"Give {setting.partition('.')[0]} to the runner's user, or correct the setting."
            yield blocks("bad_root", f"The runner's user may not {what} {root} of {setting}.", hint)
