"""Planning by the warm daemon: DeepSeek-V3's 45,033 linear layers against the 253 of Qwen3-8B."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from runner.service.analyses import SETTLED_SECONDS
from runner.service.client import Client
from schemas.api import IntakeRequest, PlanRequest
from schemas.artifacts.plan import CalibrationChanges, PlanChoices
from tests.bench.intake import seconds_of
from tests.published_models import write_published
from tests.waiting import wait_until

SHARDS = (("Qwen3-8B", 5), ("DeepSeek-V3", 163))
"""The models, and the number of files that their weights are published in."""


@dataclass(frozen=True)
class Timed:
    """Seconds of each step for one model: the first analysis and a later one, the first plan and the median of later
    ones; and the size of the plan's request in bytes."""

    first_intake: float
    intake: float
    first_plan: float
    plan: float
    request_bytes: int

    def __str__(self) -> str:
        """All of them."""
        times = (self.first_intake, self.intake, self.first_plan, self.plan)
        first, later, plan_first, plan = (f"{seconds * 1000:.1f} ms" for seconds in times)
        return f"intake {later} (first {first}), plan {plan} (first {plan_first}), request {self.request_bytes} bytes"


@dataclass(frozen=True)
class Planning:
    """Both models, measured in turns."""

    small: Timed
    large: Timed

    @property
    def ratio(self) -> float:
        """How many times as long a plan of the large model takes."""
        return self.large.plan / self.small.plan

    def __str__(self) -> str:
        """Absolute times and the ratio."""
        return f"planning Qwen3-8B: {self.small}\nplanning DeepSeek-V3: {self.large}\nratio of plans {self.ratio:.2f}"


def measure(client: Client, models: Path, rounds: int = 15) -> Planning:
    """Make both models' folders in `models`, and plan for each in turns through the daemon behind `client`.

    The plans differ in their exclusions from round to round, so that no answer can be one that was given before.
    """
    folders = {name: write_published(models / name, name, shards) for name, shards in SHARDS}
    settle(folders.values())
    asked = {name: IntakeRequest(model=str(folder), depth="modules") for name, folder in folders.items()}
    firsts = {name: seconds_of(partial(client.intake, request)) for name, request in asked.items()}
    intakes: dict[str, list[float]] = {name: [] for name in asked}
    plans: dict[str, list[float]] = {name: [] for name in asked}
    for _ in range(rounds):
        for name, request in asked.items():
            intakes[name].append(seconds_of(partial(client.intake, request)))
    analyses = {name: client.intake(request).model_analysis for name, request in asked.items()}
    for number in range(rounds + 1):
        for name, analysis in analyses.items():
            wanted = PlanRequest(model_analysis=analysis, request=_choices(number))
            plans[name].append(seconds_of(partial(client.plan, wanted)))
    found = {
        name: Timed(
            first_intake=firsts[name],
            intake=statistics.median(intakes[name]),
            first_plan=plans[name][0],
            plan=statistics.median(plans[name][1:]),
            request_bytes=len(PlanRequest(model_analysis=analyses[name], request=_choices(0)).model_dump_json()),
        )
        for name in asked
    }
    return Planning(found["Qwen3-8B"], found["DeepSeek-V3"])


def settle(folders: Iterable[Path]) -> None:
    """Wait until the files are old enough for the daemon to trust their times."""
    written = max(file.stat().st_ctime for folder in folders for file in folder.iterdir())
    wait_until(lambda: time.time() > written + SETTLED_SECONDS, 30)


def _choices(number: int) -> PlanChoices:
    return PlanChoices(
        global_scheme="fp8",
        exclude_layers=["lm_head", "*self_attn*", "*mlp.gate", f"model.layers.{number % 30}.*"],
        layer_quant_config={"*down_proj": "ptpc_fp8", f"*layers.{number % 20}.mlp*up_proj": "int4_wo_128"},
        calibration=CalibrationChanges(dataset="text.txt", num_calib_data=4, seq_len=32),
    )
