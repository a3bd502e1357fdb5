"""Which finished runs tell how long the next one takes."""

from __future__ import annotations

from typing import Any

import pytest

from runner.planning import HostView, PastRun, make_plan
from schemas.artifacts.plan import Estimates, PlanChoices, QuantPlan
from tests.runner.planning.catalogue import with_gpu_torch
from tests.runner.planning.hosts import MI300X, but
from tests.runner.planning.models import qwen3_8b

PARAMETERS = qwen3_8b().size.parameters


def plan(host: HostView = MI300X, **choices: Any) -> QuantPlan:
    """A plan for Qwen3-8B."""
    return make_plan(qwen3_8b(), PlanChoices(**{"global_scheme": "fp8", **choices}), with_gpu_torch(), host)


def past(seconds: float = 600.0, parameters: int = PARAMETERS, arch: str | None = "gfx942", **choices: Any) -> PastRun:
    """A finished run."""
    return PastRun(plan(**choices), parameters, seconds, arch)


def told(*history: PastRun, **choices: Any) -> Estimates:
    """What the plan says when these runs have finished."""
    return plan(but(MI300X, history=history), **choices).estimates


def test_without_history_nothing_is_said() -> None:
    found = told()
    assert (found.seconds_least, found.seconds_most, found.runs_of_this_kind) == (None, None, 0)


def test_the_quickest_and_the_slowest_are_told() -> None:
    found = told(past(500.0), past(620.0), past(580.0))
    assert (found.seconds_least, found.seconds_most, found.runs_of_this_kind) == (500.0, 620.0, 3)


@pytest.mark.parametrize(
    ("run", "same"),
    [
        (past(), True),
        (past(parameters=int(PARAMETERS * 1.09)), True),
        (past(parameters=int(PARAMETERS * 1.2)), False),
        (past(parameters=int(PARAMETERS / 1.2)), False),
        (past(calibration={"num_calib_data": 256}), True),
        (past(calibration={"num_calib_data": 64}), True),
        (past(calibration={"num_calib_data": 257}), False),
        (past(calibration={"seq_len": 128}), False),
        (past(calibration={"num_calib_data": 64, "seq_len": 1024}), True),
        (past(global_scheme="ptpc_fp8"), False),
        (past(kv_cache_scheme=None), False),
        (past(algorithm="smoothquant"), False),
        (past(entry_point="own"), False),
        (past(evaluation_intent="none"), False),
        (past(evaluation_intent="full"), False),
        (past(arch="gfx950"), False),
        (past(arch=None), False),
        (past(layer_quant_config={"*down_proj": "int8"}), False),
        (past(multi_gpu="auto"), False),
        (past(exclude_layers=["lm_head", "*nothing*"]), True),
        (past(exclude_layers=["lm_head", "*mlp*"]), False),
        (past(calibration={"batch_size": 2}), True),
        (past(calibration={"batch_size": 3}), False),
        (past(calibration={"dataset": "wikitext"}), False),
        (past(data_type="float32"), False),
        (past(attention_dtype="fp8"), False),
        (past(evaluation_dataset="wikitext"), False),
        (past(multi_device=True), False),
    ],
)
def test_only_runs_of_the_same_kind_count(run: PastRun, same: bool) -> None:
    assert told(run).runs_of_this_kind == int(same)
