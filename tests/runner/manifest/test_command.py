"""A plan to an argument list: the published mapping, and what a program reads out of the list again."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.errors import BadRequest, NotHere, RunnerError
from runner.host.entry_points import EntryPointName
from runner.manifest.command import argument_list, find_entry_point, make_job
from runner.manifest.entry_points import own, quantize_quark, quark_cli, site
from runner.planning import flags, make_plan
from runner.planning.flags import Job
from runner.planning.layers import in_order
from runner.planning.values import why_refused
from runner.ptq import quantize
from schemas.artifacts.plan import Calibration, PlanChoices, PlannedModel, QuantPlan
from tests.runner.manifest import parsers
from tests.runner.manifest.bench import PYTHON, Bench, make_bench
from tests.runner.planning.catalogue import recorded


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


@pytest.mark.parametrize(
    ("changes", "expected"),
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
    changes: dict[str, Any], expected: dict[str, list[str] | None]
) -> None:
    found = flags_of(own.arguments(job(**changes)))
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"--dataset": None, "--batch_size": None, "--model_export": ["hf_format"], "--data_type": ["auto"]}),
        ({"calibration": Calibration(dataset="wikitext")}, {"--dataset": ["wikitext"], "--batch_size": None}),
        ({"calibration": Calibration(batch_size=4)}, {"--dataset": None, "--batch_size": ["4"]}),
        ({"model_export": "gguf", "data_type": "float16"}, {"--model_export": ["gguf"], "--data_type": ["float16"]}),
        ({"attention_dtype": "fp8"}, {"--attention_dtype": ["fp8"]}),
        ({"multi_gpu": "balanced", "multi_device": True}, {"--multi_gpu": ["balanced"], "--multi_device": []}),
        ({"file2file_quantization": True}, {"--file2file_quantization": []}),
        ({"num_eval_data": 5, "tasks": "arc,piqa"}, {"--num_eval_data": ["5"], "--tasks": ["arc,piqa"]}),
        ({"num_eval_data": 5, "tasks": "arc", "evaluation_intent": "none"}, {"--num_eval_data": None, "--tasks": None}),
        ({"evaluation_dataset": "wikitext_gpt_oss_20b"}, {"--evaluation_dataset": ["wikitext_gpt_oss_20b"]}),
        ({"template_file": "/t.json"}, {"--template_file": None}),
    ],
)
def test_the_published_script_gets_what_goes_beyond_its_defaults(
    changes: dict[str, Any], expected: dict[str, list[str] | None]
) -> None:
    found = flags_of(quantize_quark.arguments(job(**changes)))
    assert {name: found.get(name) for name in expected} == expected


def test_files_and_revisions_stand_in_the_command() -> None:
    wanted = replace(
        job(algorithm="awq,gptq"), revision="a" * 40, algorithm_files={"awq": "/c/awq.json", "gptq": "/c/gptq.json"}
    )
    for program in (quantize_quark.arguments, own.arguments):
        argv = program(wanted)
        assert flags_of(argv)["--revision"] == ["a" * 40]
        assert [argv[i + 1 : i + 3] for i, word in enumerate(argv) if word == "--quant_algo_config_file"] == [
            ["awq", "/c/awq.json"],
            ["gptq", "/c/gptq.json"],
        ]
    template = replace(wanted, template_file="/c/template.json")
    assert flags_of(quark_cli.arguments(template)[1:])["--template_file"] == ["/c/template.json"]


def test_a_sites_script_is_told_everything_that_its_defaults_could_differ_in() -> None:
    found = flags_of(site.arguments(job()))
    assert list(found) == [
        *("--model_dir", "--output_dir", "--quant_scheme", "--num_calib_data", "--seq_len", "--device"),
        *("--dataset", "--batch_size"),
    ]


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
    },
    optional={
        "model_export": st.sampled_from(["hf_format", "onnx", "gguf"]),
        "data_type": st.sampled_from(["auto", "float16", "bfloat16", "float32"]),
        "attention_dtype": st.sampled_from(["fp8", "int8"]),
        "multi_gpu": st.sampled_from(["auto", "balanced"]),
        "multi_device": st.booleans(),
        "file2file_quantization": st.booleans(),
        "num_eval_data": st.integers(1, 10_000),
        "evaluation_dataset": st.sampled_from(["wikitext", "wikitext_gpt_oss_120b", "wikitext_gpt_oss_20b", "c4"]),
        "tasks": _VALUES,
    },
)
_FOLDERS = _VALUES.map(lambda name: f"/somewhere/{name}")
_FILES = st.fixed_dictionaries(
    {}, optional={"revision": st.just("a" * 40), "template_file": _FOLDERS, "algorithm_files": st.just({"awq": "/a"})}
)
_PROGRAMS: dict[EntryPointName, tuple[Callable[[Job], list[str]], Callable[[list[str]], argparse.Namespace]]] = {
    "own": (own.arguments, lambda argv: quantize.parse(argv)),
    "quantize_quark": (quantize_quark.arguments, lambda argv: parsers.quantize_quark().parse_args(argv)),
    "quark_cli": (quark_cli.arguments, lambda argv: parsers.quark_cli().parse_args(argv[1:])),
    "site": (site.arguments, lambda argv: parsers.site().parse_args(argv)),
}


def _check_read_back(options: argparse.Namespace, wanted: Job) -> None:
    """What a program reads, as far as it has an option for it: exactly the plan."""
    plan = wanted.plan
    evaluates, quantizes_kv = plan.evaluation_intent != "none", plan.kv_cache_scheme is not None
    expected = {
        "model_dir": wanted.model,
        "output_dir": wanted.output_dir,
        "quant_scheme": plan.global_scheme,
        "layer_quant_scheme": [list(pair) for pair in in_order(plan.layer_quant_config)],
        "kv_cache_dtype": plan.kv_cache_scheme,
        "quant_algo": plan.algorithms,
        "exclude_layers": plan.exclude_layers if plan.exclude_layers_changed else None,
        "dataset": wanted.dataset,
        "num_calib_data": plan.calibration.num_calib_data,
        "seq_len": plan.calibration.seq_len,
        "batch_size": plan.calibration.batch_size,
        "device": plan.device,
        "skip_evaluation": not evaluates,
        "trust_remote_code": plan.trust_remote_code,
        "min_kv_scale": (plan.min_kv_scale or 0.0) if quantizes_kv else 0.0,
        "kv_cache_post_rope": plan.kv_cache_post_rope and quantizes_kv,
        "model_export": plan.model_export,
        "data_type": plan.data_type,
        "attention_dtype": plan.attention_dtype,
        "quant_algo_config_file": [list(pair) for pair in wanted.algorithm_files.items()],
        "multi_gpu": plan.multi_gpu,
        "multi_device": plan.multi_device,
        "file2file_quantization": plan.file2file_quantization,
        "revision": wanted.revision,
        "template_file": wanted.template_file,
        "num_eval_data": (plan.num_eval_data or -1) if evaluates else -1,
        "evaluation_dataset": (plan.evaluation_dataset or "wikitext") if evaluates else "wikitext",
        "tasks": plan.tasks if evaluates else None,
    }
    assert set(vars(options)) <= {*expected, "eval_windows", "eval_seq_len"}
    for name, read in vars(options).items():
        if name in expected:
            assert _plain(name, read) == expected[name], name


def _plain(name: str, read: Any) -> Any:
    """A read option, without the differences in how programs keep the same thing."""
    if name in ("layer_quant_scheme", "quant_algo_config_file", "quant_algo"):
        return list(read or [])
    if name == "model_export" and isinstance(read, list):
        return read[-1]
    return str(read) if isinstance(read, Path) else read


@settings(max_examples=300, deadline=None)
@given(program=st.sampled_from(sorted(_PROGRAMS)), changes=_PLANS, model=_FOLDERS, output=_FOLDERS, files=_FILES)
def test_programs_read_the_plan_back_and_get_no_flag_that_they_lack(
    program: EntryPointName, changes: dict[str, Any], model: str, output: str, files: dict[str, Any]
) -> None:
    if "algorithm_files" in files and "awq" not in (changes["algorithm"] or "").split(","):
        files = {name: value for name, value in files.items() if name != "algorithm_files"}
    wanted = Job(job(**changes).plan, model, str(Path(output)), changes["calibration"].dataset, **files)
    build, parse = _PROGRAMS[program]
    argv = build(wanted)
    unasked = list(flags.gaps(program, wanted))
    ours_refuses = program == "own" and wanted.plan.multi_gpu and wanted.plan.device == "cpu"
    if not unasked and not ours_refuses:  # else the plan is blocked, and its command never made
        _check_read_back(parse(argv), wanted)
    known = {flag.name for flag in flags.FLAGS if program in flag.programs}
    assert {word for word in argv if word.startswith("--")} <= known


@pytest.mark.parametrize("program", sorted(_PROGRAMS))
def test_the_table_gives_no_program_a_flag_that_it_lacks(program: EntryPointName) -> None:
    """Each flag alone is taken by the program's parser."""
    _, parse = _PROGRAMS[program]
    everything = Job(
        job(
            kv_cache_scheme="fp8", min_kv_scale=0.1, kv_cache_post_rope=True, algorithm="awq", exclude_layers=["x"],
            exclude_layers_changed=True, layer_quant_config={"*mlp*": "fp8"}, attention_dtype="fp8", multi_gpu="auto",
            multi_device=True, file2file_quantization=True, num_eval_data=3, evaluation_dataset="wikitext", tasks="arc",
            trust_remote_code=True, calibration=Calibration(dataset="wikitext", batch_size=2),
        ).plan,
        "/m", "/o", "wikitext", "a" * 40, {"awq": "/a.json"}, "/t.json",
    )  # fmt: skip
    skipping = replace(everything, plan=everything.plan.model_copy(update={"evaluation_intent": "none"}))
    seen = set()
    for wanted in (everything, skipping, replace(everything, plan=job().plan, algorithm_files={})):
        given = flags.arguments(program, wanted)
        seen |= {word for word in given if word.startswith("--")}
        parse([*(["torch-llm-ptq"] if program == "quark_cli" else []), *given])
    assert seen == {flag.name for flag in flags.FLAGS if program in flag.programs}


@settings(max_examples=100, deadline=None)
@given(changes=_PLANS, model=_FOLDERS)
def test_the_shown_command_is_the_argument_list(changes: dict[str, Any], model: str) -> None:
    argv = own.arguments(Job(job(**changes).plan, model, "/out", "pileval"))
    assert shlex.split(shlex.join(argv)) == argv


@pytest.mark.parametrize("bad", ["-x", "--trust_remote_code", "a\nb", "", "\u202etxt"])
@pytest.mark.parametrize(
    "field",
    [
        *("exclude_layers", "pattern", "scheme", "algorithm", "kv_cache_scheme", "dataset"),
        *("attention_dtype", "evaluation_dataset", "tasks", "template_file"),
    ],
)
def test_no_value_becomes_an_option(bench: Bench, field: str, bad: str) -> None:
    plan = bench.plan()
    changes: dict[str, dict[str, Any]] = {
        "exclude_layers": {"exclude_layers": [bad], "exclude_layers_changed": True},
        "pattern": {"layer_quant_config": {bad: "fp8"}},
        "scheme": {"global_scheme": bad},
        "algorithm": {"algorithm": bad},
        "kv_cache_scheme": {"kv_cache_scheme": bad},
        "dataset": {"calibration": Calibration(dataset=bad)},
        "attention_dtype": {"attention_dtype": bad},
        "evaluation_dataset": {"evaluation_dataset": bad},
        "tasks": {"tasks": bad},
        "template_file": {"template_file": bad},
    }
    with pytest.raises(BadRequest):
        make_job(plan.model_copy(update=changes[field]), bench.analysis, bench.output, bench.context)


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
        make_job(plan, analysis, output, bench.context)
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
    entry = find_entry_point(plan, bench.analysis, context)
    argv = argument_list(make_job(plan, bench.analysis, bench.output, context), entry, context)
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
    assert find_entry_point(plan, bench.analysis, without).name == "quantize_quark"


def test_a_program_that_is_gone_is_named(gpu_bench: Bench) -> None:
    plan = gpu_bench.plan()
    with pytest.raises(NotHere, match="quantize_quark"):
        find_entry_point(plan, gpu_bench.analysis, gpu_bench.with_host(entry_points={}))
    Path(gpu_bench.context.host.entry_points["quantize_quark"]).unlink()
    with pytest.raises(NotHere) as missing:
        find_entry_point(plan, gpu_bench.analysis, gpu_bench.context)
    assert missing.value.code == "file_missing"
