"""Settings with roots below a test's own folder."""

from __future__ import annotations

from pathlib import Path

from runner.settings import ModelSettings, OutputSettings, QuarkSettings, RunnerSettings


def settings_in(
    folder: Path, *, hub: bool = False, more_roots: tuple[Path, ...] = (), checkout: Path | None = None
) -> RunnerSettings:
    """Models may come from `folder/models`, results go to `folder/out`; both are made."""
    models, outputs = folder / "models", folder / "out"
    models.mkdir(exist_ok=True)
    outputs.mkdir(exist_ok=True)
    return RunnerSettings(
        state_dir=folder / "state",
        models=ModelSettings(roots=[models, *more_roots], hub=hub),
        outputs=OutputSettings(roots=[outputs]),
        quark=QuarkSettings(checkout=checkout),
    )
