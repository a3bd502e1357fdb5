"""A runner's model finder beside a local Hub, without anything of the account that runs the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from runner.intake import analyse
from runner.intake.models import Models
from runner.settings import ModelSettings, RunnerSettings
from schemas.artifacts.analysis import ModelAnalysis
from tests.peers.hub import HubPeer
from tests.runner.intake.engine import CATALOGUE, FACTS
from tests.tiny_models import make_tiny_model

TOKEN = "hf_" + "s3cret" * 5


@dataclass
class HubBench:
    """A Hub with one model, org/tiny in three weight files, and a finder that may ask it."""

    folder: Path
    peer: HubPeer
    settings: RunnerSettings
    models: Models
    tiny: Path
    commit: str

    @property
    def snapshot(self) -> Path:
        """Where the commit of org/tiny is kept."""
        return self.settings.state_dir / "cache" / "hub" / f"org--tiny@{self.commit}"

    async def analysed(self, asked: str = "org/tiny", revision: str | None = None) -> ModelAnalysis:
        """Find and analyse."""
        return analyse(await self.models.find(asked, revision), CATALOGUE, FACTS, self.settings)


def without_account(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Hide caches and tokens of the account that runs the tests, and let nothing leave this machine."""
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HOME"):
        patch.delenv(name, raising=False)
    patch.setenv("HF_HUB_CACHE", str(folder / "hf"))
    patch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    patch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(folder / "no-token"))


@contextmanager
def hub_bench(folder: Path, patch: pytest.MonkeyPatch, *, seconds: float = 20.0) -> Iterator[HubBench]:
    """A bench in a folder."""
    without_account(folder, patch)
    peer = HubPeer(readers={TOKEN})
    with peer.running():
        patch.setenv("HF_ENDPOINT", peer.url)
        tiny = make_tiny_model(folder / "upstream" / "tiny", shards=3)
        commit = peer.add("org/tiny", tiny)
        (folder / "models").mkdir()
        settings = RunnerSettings(
            state_dir=folder / "state",
            models=ModelSettings(roots=[folder / "models"], hub=True, hub_timeout_seconds=seconds),
        )
        yield HubBench(folder, peer, settings, Models(settings), tiny, commit)
