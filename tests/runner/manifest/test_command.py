"""A plan to an argument list: the published mapping, and what a program reads out of the list again."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.errors import BadRequest, NotHere, RunnerError
from runner.manifest.command import argument_list, find_entry_point
from runner.manifest.entry_points import own, quantize_quark, quark_cli
from runner.manifest.entry_points.flags import Job
from runner.planning import make_plan
from runner.planning.layers import in_order
from runner.planning.values import why_refused
from runner.ptq import quantize
from schemas.artifacts.plan import Calibration, PlanChoices, PlannedModel, QuantPlan
from tests.runner.manifest import parsers
from tests.runner.manifest.bench import PYTHON, Bench, make_bench
from tests.runner.planning.catalogue import recorded, with_gpu_torch
from tests.runner.planning.hosts import MI300X
from tests.runner.planning.models import qwen3_8b

# The published command for Qwen/Qwen3-8B, as flags and values.
PUBLISHED = {
    "--quant_scheme": ["fp8"],
    "--kv_cache_dtype": ["fp8"],
    "--num_calib_data": ["128"],
    "--seq_len": ["512"],
    "--model_export": ["hf_format"],
    "--data_type": ["auto"],
    "--device": ["cuda"],
}
# What stands there beside: written out instead of left to a default, and remote code switched off.
BEYOND = {"--dataset": ["pileval"], "--batch_size": ["1"], "--no_trust_remote_code": []}


def flags_of(argv: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for argument in argv:
        if argument.startswith("--"):
            current = found.setdefault(argument, [])
        else:
            current.append(argument)
    return found


def job(**changes: Any) -> Job:
    values: dict[str, Any] = {
        "model": PlannedModel(model_type="llama", analysis_digest="0" * 64, model_path="/models/tiny"),
        "global_scheme": "fp8",
        "exclude_layers": ["lm_head"],
        "entry_point": "own",
    }
    plan = QuantPlan(**{**values, **changes})
    return Job(plan, "/models/tiny", "/out/tiny", plan.calibration.dataset)


def test_the_published_example() -> None:
    plan = make_plan(qwen3_8b(), PlanChoices(global_scheme="fp8"), with_gpu_torch(), MI300X)
    argv = quantize_quark.arguments(Job(plan, "/models/Qwen3-8B", "/out/qwen3-8b-fp8", "pileval"))
    found = flags_of(argv)
    assert found.pop("--model_dir") == ["/models/Qwen3-8B"]
    assert found.pop("--output_dir") == ["/out/qwen3-8b-fp8"]
    assert found == {**PUBLISHED, **BEYOND}
    assert [flag for flag in found if flag in PUBLISHED] == list(PUBLISHED), "in the published order"


@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        ({}, {"--exclude_layers": None, "--quant_algo": None, "--kv_cache_dtype": None, "--skip_evaluation": None}),
        ({"exclude_layers_changed": True}, {"--exclude_layers": ["lm_head"]}),
        ({"exclude_layers_changed": True, "exclude_layers": []}, {"--exclude_layers": []}),
        ({"algorithm": "awq,smoothquant"}, {"--quant_algo": ["awq,smoothquant"]}),
        ({"kv_cache_scheme": "fp8"}, {"--kv_cache_dtype": ["fp8"], "--min_kv_scale": None}),
        ({"kv_cache_scheme": "fp8", "min_kv_scale": 1e-7}, {"--min_kv_scale": ["1e-07"]}),
        ({"kv_cache_scheme": "fp8", "kv_cache_post_rope": True}, {"--kv_cache_post_rope": []}),
        ({"min_kv_scale": 0.5, "kv_cache_post_rope": True}, {"--min_kv_scale": None, "--kv_cache_post_rope": None}),
        ({"evaluation_intent": "none"}, {"--skip_evaluation": [], "--eval_windows": None}),
        ({"evaluation_intent": "smoke"}, {"--eval_windows": ["8"], "--eval_seq_len": ["512"]}),
        ({"evaluation_intent": "full"}, {"--eval_windows": ["0"], "--eval_seq_len": ["2048"]}),
        ({"trust_remote_code": True}, {"--trust_remote_code": [], "--no_trust_remote_code": None}),
        ({}, {"--trust_remote_code": None, "--no_trust_remote_code": []}),
        ({"device": "cpu"}, {"--device": ["cpu"]}),
        (
            {"layer_quant_config": {"*mlp*": "int8", "*down_proj": "ptpc_fp8"}},
            {"--layer_quant_scheme": ["*down_proj", "ptpc_fp8", "*mlp*", "int8"]},
        ),
    ],
)
def test_our_script_gets_each_flag_only_when_it_means_something(
    changes: dict[str, Any], flags: dict[str, list[str] | None]
) -> None:
    found = flags_of(own.arguments(job(**changes)))
    assert {name: found.get(name) for name in flags} == flags


def test_the_engines_programs_are_told_not_to_trust_unless_the_plan_does() -> None:
    for program in (quantize_quark.arguments, quark_cli.arguments):
        assert "--no_trust_remote_code" in program(job())
        trusting = program(job(trust_remote_code=True))
        assert not any("trust" in argument for argument in trusting), "it is what they do by themselves"


def test_quark_cli_gets_no_flag_that_it_lacks() -> None:
    argv = quark_cli.arguments(job(kv_cache_scheme="fp8", min_kv_scale=0.1, kv_cache_post_rope=True))
    assert argv[0] == "torch-llm-ptq"
    assert {"--model_export", "--data_type", "--min_kv_scale", "--kv_cache_post_rope"}.isdisjoint(argv)


_SCHEMES = st.sampled_from(sorted(recorded().schemes))
_VALUES = st.text(min_size=1, max_size=24).filter(lambda text: why_refused(text) is None) | st.sampled_from(
    ["*self_attn*", "model.layers.[0-9].*", "a b", "$(touch x)", "'", '"', "a=b", "x --device cpu", "@file", "a,b"]
)
_PLANS = st.fixed_dictionaries(
    {
        "global_scheme": _SCHEMES,
        "layer_quant_config": st.dictionaries(_VALUES, _SCHEMES, max_size=4),
        "exclude_layers": st.lists(_VALUES, max_size=4),
        "exclude_layers_changed": st.booleans(),
        "algorithm": st.none()
        | st.lists(st.sampled_from(recorded().algorithms), min_size=1, unique=True).map(",".join),
        "kv_cache_scheme": st.sampled_from([None, "fp8"]),
        "min_kv_scale": st.none() | st.floats(0, 1e6),
        "kv_cache_post_rope": st.booleans(),
        "evaluation_intent": st.sampled_from(["none", "smoke", "full"]),
        "device": st.sampled_from(["cuda", "cpu"]),
        "trust_remote_code": st.booleans(),
        "calibration": st.builds(
            Calibration,
            dataset=st.sampled_from(["pileval", "wikitext"]),
            num_calib_data=st.integers(1, 1_000_000),
            seq_len=st.integers(1, 1_048_576),
            batch_size=st.integers(1, 65_536),
        ),
    }
)
_FOLDERS = _VALUES.map(lambda name: f"/somewhere/{name}")


def _check_read_back(options: argparse.Namespace, wanted: Job) -> None:
    """What every program reads: exactly the plan."""
    plan = wanted.plan
    assert options.model_dir == wanted.model
    assert Path(options.output_dir) == Path(wanted.output_dir)
    assert options.quant_scheme == plan.global_scheme
    assert [tuple(pair) for pair in options.layer_quant_scheme or []] == in_order(plan.layer_quant_config)
    assert options.kv_cache_dtype == plan.kv_cache_scheme
    assert list(options.quant_algo or []) == plan.algorithms
    assert options.exclude_layers == (plan.exclude_layers if plan.exclude_layers_changed else None)
    assert options.dataset == wanted.dataset
    assert options.num_calib_data == plan.calibration.num_calib_data
    assert (options.seq_len, options.batch_size) == (plan.calibration.seq_len, plan.calibration.batch_size)
    assert options.device == plan.device
    assert options.skip_evaluation is (plan.evaluation_intent == "none")
    assert options.trust_remote_code is plan.trust_remote_code


def _check_kv_options(options: argparse.Namespace, plan: QuantPlan) -> None:
    quantized = plan.kv_cache_scheme is not None
    assert options.min_kv_scale == ((plan.min_kv_scale or 0.0) if quantized else 0.0)
    assert options.kv_cache_post_rope is (plan.kv_cache_post_rope and quantized)


@settings(max_examples=200, deadline=None)
@given(changes=_PLANS, model=_FOLDERS, output=_FOLDERS)
def test_programs_read_the_plan_back_whatever_its_values(changes: dict[str, Any], model: str, output: str) -> None:
    wanted = Job(job(**changes).plan, model, output, changes["calibration"].dataset)

    ours = quantize.parse(own.arguments(wanted))
    _check_read_back(ours, wanted)
    _check_kv_options(ours, wanted.plan)
    assert (ours.model_export, ours.data_type) == ("hf_format", "auto")

    published = parsers.quantize_quark().parse_args(quantize_quark.arguments(wanted))
    _check_read_back(published, wanted)
    _check_kv_options(published, wanted.plan)
    assert (published.model_export, published.data_type) == (["hf_format"], "auto")

    _check_read_back(parsers.quark_cli().parse_args(quark_cli.arguments(wanted)[1:]), wanted)


@settings(max_examples=100, deadline=None)
@given(changes=_PLANS, model=_FOLDERS)
def test_the_shown_command_is_the_argument_list(changes: dict[str, Any], model: str) -> None:
    argv = own.arguments(Job(job(**changes).plan, model, "/out", "pileval"))
    assert shlex.split(shlex.join(argv)) == argv


@pytest.mark.parametrize("bad", ["-x", "--trust_remote_code", "a\nb", "", "\u202etxt"])
@pytest.mark.parametrize("field", ["exclude_layers", "pattern", "scheme", "algorithm", "kv_cache_scheme", "dataset"])
def test_no_value_becomes_an_option(bench: Bench, field: str, bad: str) -> None:
    plan = bench.plan()
    changes: dict[str, dict[str, Any]] = {
        "exclude_layers": {"exclude_layers": [bad], "exclude_layers_changed": True},
        "pattern": {"layer_quant_config": {bad: "fp8"}},
        "scheme": {"global_scheme": bad},
        "algorithm": {"algorithm": bad},
        "kv_cache_scheme": {"kv_cache_scheme": bad},
        "dataset": {"calibration": Calibration(dataset=bad)},
    }
    entry = find_entry_point(plan, bench.context)
    with pytest.raises(BadRequest):
        argument_list(plan.model_copy(update=changes[field]), bench.analysis, bench.output, entry, bench.context)


@pytest.mark.parametrize(
    ("model", "output", "code"),
    [
        ("/models/tiny", "out", "path_not_absolute"),
        ("Qwen/Qwen3-8B", "/out/x", "path_not_absolute"),
        ("/models/tiny", "-out", "bad_value"),
        ("/models/tiny", "/models/tiny", "output_touches_model"),
        ("/models/tiny", "/models/tiny/quantized", "output_touches_model"),
        ("/models/tiny", "/models", "output_touches_model"),
        ("/models/tiny", "/models/other/../tiny/x", "output_touches_model"),
        ("/models/tiny", "/out/a\nb", "bad_value"),
    ],
)
def test_paths_are_whole_and_apart(bench: Bench, model: str, output: str, code: str) -> None:
    facts = bench.analysis.model.model_copy(update={"model_path": model})
    analysis = bench.analysis.model_copy(update={"model": facts})
    plan = bench.plan()
    with pytest.raises(RunnerError) as refusal:
        argument_list(plan, analysis, output, find_entry_point(plan, bench.context), bench.context)
    assert refusal.value.code == code


def test_our_script_runs_from_the_content_store(bench: Bench) -> None:
    manifest = bench.manifest()
    entry = manifest.entry_point
    assert manifest.argv[:2] == [str(PYTHON), entry.path]
    assert Path(entry.path) == bench.folder / "state" / "content" / entry.sha256 / "quantize.py"
    assert Path(entry.path).read_bytes() == bench.own_script.read_bytes()


def test_quantize_quark_runs_from_its_checkout(gpu_bench: Bench) -> None:
    manifest = gpu_bench.manifest()
    assert manifest.entry_point.name == "quantize_quark"
    assert manifest.argv[:2] == [str(PYTHON), gpu_bench.context.host.entry_points["quantize_quark"]]


def test_quark_cli_is_its_own_program_and_says_that_it_was_not_tried(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, gpu=True, hub=True)
    program = tmp_path / "quark-cli"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    context = bench.with_host(entry_points={"quark_cli": str(program)})
    plan = make_plan(
        bench.analysis, PlanChoices(global_scheme="fp8", entry_point="quark_cli"), context.catalogue, context.host
    )
    entry = find_entry_point(plan, context)
    argv = argument_list(plan, bench.analysis, bench.output, entry, context)
    assert argv[:2] == [str(program), "torch-llm-ptq"]
    assert "Not tried" in entry.reason


def test_a_text_file_of_the_mirror_is_given_by_its_path(bench: Bench) -> None:
    manifest = bench.manifest(calibration={"dataset": "calibration.txt"})
    assert flags_of(manifest.argv)["--dataset"] == [str(bench.folder / "mirror" / "calibration.txt")]


def test_a_text_file_that_left_the_mirror_is_missed(bench: Bench) -> None:
    plan = bench.plan(calibration={"dataset": "calibration.txt"})
    (bench.folder / "mirror" / "calibration.txt").unlink()
    with pytest.raises(NotHere) as missing:
        bench.manifest(plan)
    assert missing.value.code == "dataset_missing"


def test_an_open_choice_is_made_by_this_runner(bench: Bench, tmp_path: Path) -> None:
    plan = bench.open_plan()
    assert bench.manifest(plan).entry_point.name == "own"
    without = bench.with_host(entry_points={"quantize_quark": str(tmp_path / "programs" / "quantize_quark.py")})
    assert find_entry_point(plan, without).name == "quantize_quark"


def test_a_program_that_is_gone_is_named(gpu_bench: Bench) -> None:
    plan = gpu_bench.plan()
    with pytest.raises(NotHere, match="quantize_quark"):
        find_entry_point(plan, gpu_bench.with_host(entry_points={}))
    Path(gpu_bench.context.host.entry_points["quantize_quark"]).unlink()
    with pytest.raises(NotHere) as missing:
        find_entry_point(plan, gpu_bench.context)
    assert missing.value.code == "file_missing"
