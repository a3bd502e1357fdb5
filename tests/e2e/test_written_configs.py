"""qwen3, for which the engine has no awq, gptq or smoothquant: their written configurations run for real, step by step.

One daemon with the real engine on a tiny model. Random weights say nothing of accuracy; what is looked at is that the
algorithm changed what it has to change, and that the plan, the command and the result agree.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.planning.algorithm_configs import file_bytes
from schemas.artifacts.manifest import RunManifest
from schemas.runs import RunState
from tests.e2e.host import Host
from tests.runner.ptq.scripts import needs_engine
from tests.tiny_models import make_tiny_model

pytestmark = [pytest.mark.quark, needs_engine]

NORM = "model.layers.0.input_layernorm.weight"
DOWN_SCALE = "model.layers.0.mlp.down_proj.weight_scale"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A host whose interpreter is the one that the tests run in."""
    host = Host(tmp_path_factory.mktemp("written"), python=Path(sys.executable))
    shutil.rmtree(host.model)
    make_tiny_model(host.model, "qwen3", hidden=64, intermediate=128, layers=1, heads=2, kv_heads=1)
    try:
        host.start()
        yield host
    finally:
        host.stop()


def planned(host: Host, algorithm: str, scheme: str) -> RunManifest:
    return host.manifest(
        output=algorithm,
        algorithm=algorithm,
        global_scheme=scheme,
        write_algorithm_config=True,
        evaluation_intent="smoke",
    )


@pytest.mark.parametrize(
    ("algorithm", "scheme", "scale_dtype", "moves_norms"),
    [
        ("awq", "int4_wo_32", "BF16", True),
        ("gptq", "int4_wo_32", "F32", False),
        ("smoothquant", "fp8", None, True),
    ],
)
def test_a_written_configuration_runs_to_a_verified_model(
    real: Host, algorithm: str, scheme: str, scale_dtype: str | None, moves_norms: bool
) -> None:
    manifest = planned(real, algorithm, scheme)
    plan = manifest.inputs.quant_plan
    (config,) = plan.algorithm_configs
    assert (config.algorithm, config.derived_from) == (algorithm, "qwen2")
    assert "algorithm_config_written" in plan.risks

    flag = manifest.argv.index("--quant_algo_config_file")
    assert manifest.argv[flag + 1] == algorithm
    carried = Path(manifest.argv[flag + 2])
    assert carried.read_bytes() == file_bytes(config)
    assert config.sha256 in carried.parts

    run = real.submit(manifest, key=algorithm)
    ended = real.wait_for(run.id, RunState.SUCCEEDED, RunState.FAILED, seconds=600)
    assert ended.state is RunState.SUCCEEDED, ended.reason
    written = real.outputs / algorithm / "model.safetensors"
    named = applied(real.outputs / algorithm)
    assert (
        named["scaling_layers" if moves_norms else "inside_layer_modules"]
        == config.content["scaling_layers" if moves_norms else "inside_layer_modules"]
    )
    assert (data_of(written, NORM) != data_of(real.model / "model.safetensors", NORM)) is moves_norms
    if scale_dtype:
        assert header_of(written)[DOWN_SCALE]["dtype"] == scale_dtype
    predicted = plan.estimates.output_bytes
    assert predicted is not None
    # So small a model is mostly file headers and configuration, which no prediction is about.
    assert abs(predicted / size_of(real.outputs / algorithm) - 1) < 0.05


def applied(output: Path) -> dict[str, Any]:
    """The configuration of the algorithm in the exported model, as the engine wrote it."""
    document = json.loads((output / "config.json").read_text(encoding="utf-8"))
    (found,) = document["quantization_config"]["algo_config"]
    assert isinstance(found, dict)
    return found


def header_of(path: Path) -> dict[str, Any]:
    """The header of a safetensors file."""
    with path.open("rb") as file:
        header: dict[str, Any] = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return header


def data_of(path: Path, name: str) -> bytes:
    """The bytes of one tensor."""
    first, last = header_of(path)[name]["data_offsets"]
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    return data[start + first : start + last]


def size_of(output: Path) -> int:
    return sum(path.stat().st_size for path in output.iterdir())
