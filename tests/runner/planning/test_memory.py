"""Memory that a run is said to need, and what is said to be there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.planning import HostView, make_plan, memory
from schemas.artifacts.analysis import FileFact, ModelAnalysis
from schemas.artifacts.plan import Estimates, PlanChoices
from tests.runner.planning.catalogue import recorded, with_gpu_torch
from tests.runner.planning.hosts import CPU, MI300X, but
from tests.runner.planning.models import analysis_of, decoder, experts, head, matrix_models, qwen3_8b

GB = 10**9
WEIGHTS = 16_381_470_720
VOCABULARY = 151_936


def estimates(analysis: ModelAnalysis | None = None, host: HostView = MI300X, **choices: Any) -> Estimates:
    """The estimates of a plan; fp8 without an evaluation unless asked for otherwise."""
    catalogue = recorded() if host.accelerator == "cpu" else with_gpu_torch()
    asked = {"global_scheme": "fp8", "kv_cache_scheme": None, "evaluation_intent": "none", **choices}
    return make_plan(analysis or qwen3_8b(), PlanChoices(**asked), catalogue, host).estimates


def gpu(**choices: Any) -> int:
    """Peak on the GPU for Qwen3-8B."""
    found = estimates(**choices).gpu_memory_bytes
    assert found is not None
    return found


def test_a_standard_run_holds_the_model_twice_and_the_logits_of_a_batch() -> None:
    assert gpu() == 2 * WEIGHTS + 512 * VOCABULARY * 6
    assert gpu(calibration={"seq_len": 2048, "batch_size": 4}) == 2 * WEIGHTS + 4 * 2048 * VOCABULARY * 6


def test_weights_alone_need_no_logits() -> None:
    assert gpu(global_scheme="int4_wo_128") == 2 * WEIGHTS
    assert gpu(global_scheme="ptpc_fp8") == 2 * WEIGHTS
    assert gpu(global_scheme="int4_wo_128", kv_cache_scheme="fp8") > 2 * WEIGHTS


def test_an_evaluation_reads_windows_of_the_entry_point() -> None:
    long = gpu(global_scheme="int4_wo_128", evaluation_intent="smoke", entry_point="quantize_quark")
    short = gpu(global_scheme="int4_wo_128", evaluation_intent="smoke", entry_point="own")
    assert long - 2 * WEIGHTS == 4 * (short - 2 * WEIGHTS) == 2048 * VOCABULARY * 8


def test_float32_doubles_the_weights() -> None:
    assert gpu(global_scheme="int4_wo_128", data_type="float32") == 4 * WEIGHTS


@pytest.mark.parametrize(("algorithm", "copies"), [("awq", 2), ("smoothquant", 2), ("gptq", 3), ("qronos", 5)])
def test_algorithms_keep_the_inputs_of_a_layer_for_every_sample(algorithm: str, copies: int) -> None:
    few, many = (
        gpu(global_scheme="int4_wo_128", algorithm=algorithm, calibration={"num_calib_data": samples, "seq_len": 2048})
        for samples in (1000, 2000)
    )
    assert many - few == copies * 1000 * 2048 * 4096 * 2


def test_awq_keeps_the_inputs_of_all_linear_layers_in_main_memory() -> None:
    plain, awq = (
        estimates(global_scheme="int4_wo_128", algorithm=algorithm).host_memory_bytes for algorithm in (None, "awq")
    )
    assert plain is not None
    assert awq is not None
    assert awq - plain == 128 * 512 * (6 * 4096 + 12288) * 2


def test_all_experts_of_a_step_have_their_matrix_at_the_same_time() -> None:
    """Mixtral by a configuration that names its experts: 8 matrices of 4 x K^2 bytes, against one for a dense layer."""
    names = {"inside_layer_modules": ["mlp.experts.*.up_proj"], "model_decoder_layers": "model.layers"}
    host = but(MI300X, algorithm_configs={"mixtral": {"gptq": names}})
    peaks = []
    for count in (1, 8):
        shapes = [*experts(count, 256, hidden=1024), head(1024)]
        facts: dict[str, Any] = {"hidden_size": 1024, "experts": count, "is_moe": True, "source_bytes": 10**8}
        analysis = analysis_of("mixtral", shapes, **facts)
        peaks.append(estimates(analysis, host, global_scheme="int4_wo_128", algorithm="gptq").gpu_memory_bytes or 0)
    assert peaks[1] - peaks[0] == 7 * 4 * 1024**2


def test_file_to_file_holds_the_largest_shard_twice() -> None:
    files = [FileFact(name=f"model-{n}.safetensors", size_bytes=n * GB) for n in (5, 4, 1)]
    found = estimates(qwen3_8b(files=files), file2file_quantization=True, global_scheme="ptpc_fp8")
    assert (found.flow, found.gpu_memory_bytes) == ("file2file", 10 * GB)
    unknown = estimates(qwen3_8b(), file2file_quantization=True, global_scheme="ptpc_fp8")
    assert (unknown.gpu_memory_bytes, unknown.host_memory_bytes) == (None, None)


def test_a_run_on_the_cpu_needs_no_gpu_and_all_of_it_in_main_memory() -> None:
    found = estimates(host=CPU)
    assert (found.gpu_memory_bytes, found.gpu_memory_bytes_there, found.flow) == (None, None, "standard")
    assert found.host_memory_bytes is not None
    assert found.host_memory_bytes > 1.8 * WEIGHTS


@dataclass(frozen=True)
class Run:
    """A run of our own script on a CPU, and its largest resident set. Measured with torch 2.13, amd-quark 0.13."""

    scheme: str
    host_bytes: int
    calibration: dict[str, int] = field(default_factory=lambda: {"num_calib_data": 4, "seq_len": 128})
    intent: str = "none"
    large: bool = False

    @property
    def analysis(self) -> ModelAnalysis:
        """SmolLM2-135M, or a random Llama of eight wide layers with a head of its own."""
        facts: dict[str, Any] = {"vocab_size": 49152, "tied_embeddings": not self.large}
        if self.large:
            shapes = [*decoder(hidden=2048, intermediate=5632, layers=8, kv=512), head(2048, 49152)]
            facts |= {"hidden_size": 2048, "hidden_layers": 8, "source_bytes": 1_124_143_104}
        else:
            shapes = decoder(hidden=576, intermediate=1536, layers=30, kv=192)
            facts |= {"hidden_size": 576, "hidden_layers": 30, "source_bytes": 269_030_016}
        return analysis_of("llama", shapes, **facts)


MEASURED = {
    "fp8": Run("fp8", 1_300_013_056),
    "int4": Run("int4_wo_64", 1_343_430_656),
    "mxfp6": Run("mxfp6_e2m3", 1_390_551_040),
    "nvfp4": Run("nvfp4", 1_225_543_680),
    "one large batch": Run("fp8", 2_299_850_752, {"num_calib_data": 8, "seq_len": 512, "batch_size": 8}),
    "with an evaluation": Run("fp8", 1_466_000_000, {"num_calib_data": 8, "seq_len": 512}, "smoke"),
    "a larger model": Run("fp8", 2_636_132_352, large=True),
}


@pytest.mark.parametrize("name", MEASURED)
def test_main_memory_is_near_what_was_measured_on_a_cpu(name: str) -> None:
    run = MEASURED[name]
    choices = {"global_scheme": run.scheme, "calibration": run.calibration, "evaluation_intent": run.intent}
    found = estimates(run.analysis, CPU, entry_point="own", **choices)
    assert found.host_memory_bytes == pytest.approx(run.host_bytes, rel=0.12)


EIGHT = but(MI300X, gpu_memory=(192 * GB,) * 8, gpu_free=(190 * GB,) * 8)


@pytest.mark.parametrize(
    ("host", "choices", "expected"),
    [
        (MI300X, {}, (None, None)),
        (EIGHT, {}, (192 * GB, 190 * GB)),
        (but(EIGHT, gpus_per_run=4), {}, (192 * GB, 190 * GB)),
        (but(EIGHT, gpus_per_run=4), {"multi_gpu": "auto"}, (768 * GB, 760 * GB)),
        (but(EIGHT, gpu_free=()), {}, (192 * GB, None)),
        (but(EIGHT, gpu_free=(0,) * 8), {}, (192 * GB, 0)),
    ],
)
def test_only_the_gpus_of_a_run_count(
    host: HostView, choices: dict[str, Any], expected: tuple[int | None, ...]
) -> None:
    found = estimates(host=host, **choices)
    assert (found.gpu_memory_bytes_there, found.gpu_memory_bytes_free) == expected


def test_the_loader_leaves_room_on_each_gpu() -> None:
    """The shares of amd-quark 0.13."""
    assert memory.loader_share([192 * GB, 192 * GB]) == pytest.approx(96 * GB + 168 * GB)
    assert memory.loader_share([24 * GB, 24 * GB]) == pytest.approx(7.2 * GB + 16.8 * GB)
    assert memory.loader_share([]) == 0


CHOICES = st.fixed_dictionaries(
    {
        "global_scheme": st.sampled_from(sorted(recorded().schemes)),
        "algorithm": st.sampled_from([None, "awq", "gptq", "gptaq", "qronos", "smoothquant", "awq,gptq", "rotation"]),
        "evaluation_intent": st.sampled_from(["none", "smoke"]),
        "file2file_quantization": st.booleans(),
    }
)
SIZES = st.integers(1, 4096)


@settings(max_examples=60, deadline=None)
@given(
    choices=CHOICES,
    samples=SIZES,
    tokens=SIZES,
    batch=st.integers(1, 8),
    more=SIZES,
    host=st.sampled_from([CPU, MI300X]),
)
def test_more_work_never_takes_less_memory(
    choices: dict[str, Any], samples: int, tokens: int, batch: int, more: int, host: HostView
) -> None:
    def needed(samples: int, tokens: int, batch: int) -> list[int]:
        wanted = {"num_calib_data": samples, "seq_len": tokens, "batch_size": batch}
        found = estimates(SMALL, host, calibration=wanted, **choices)
        return [found.gpu_memory_bytes or 0, found.host_memory_bytes or 0]

    least = needed(samples, tokens, batch)
    assert all(value >= 0 for value in least)
    for larger in (needed(samples + more, tokens, batch), needed(samples, tokens + more, batch)):
        assert all(one <= other for one, other in zip(least, larger, strict=True))
    assert all(one <= other for one, other in zip(least, needed(samples, tokens, batch + more), strict=True))


SMALL = analysis_of("llama", [*decoder(128), head()], vocab_size=2048)


@settings(max_examples=60, deadline=None)
@given(layers=st.integers(1, 50), choices=CHOICES, host=st.sampled_from([CPU, MI300X]))
def test_more_layers_never_take_less_memory(layers: int, choices: dict[str, Any], host: HostView) -> None:
    few, more = (
        estimates(
            analysis_of("llama", decoder(layers=count), hidden_layers=count, source_bytes=10**6 * count),
            host,
            **choices,
        )
        for count in (layers, layers + 1)
    )
    assert (few.gpu_memory_bytes or 0) <= (more.gpu_memory_bytes or 0)
    assert (few.host_memory_bytes or 0) <= (more.host_memory_bytes or 0)


@pytest.mark.parametrize("name", matrix_models())
@pytest.mark.parametrize("host", [CPU, MI300X], ids=["cpu", "gpu"])
def test_what_is_not_known_of_a_model_stops_nothing(name: str, host: HostView) -> None:
    analysis = matrix_models()[name]
    facts = analysis.model.model_copy(update={"vocab_size": None, "hidden_size": None, "hidden_layers": None})
    bare = analysis.model_copy(update={"model": facts})
    nothing = bare.model_copy(update={"size": bare.size.model_copy(update={"weight_bytes": 0, "parameters": 0})})
    assert estimates(bare, host, algorithm="gptq").host_memory_bytes is not None
    unknown = estimates(nothing, host, algorithm="gptq")
    assert (unknown.gpu_memory_bytes, unknown.host_memory_bytes, unknown.output_bytes) == (None, None, None)
