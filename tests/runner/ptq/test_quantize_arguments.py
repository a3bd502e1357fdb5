"""A wrong command line of the quantization script ends at once, with status 2 and a reason."""

from __future__ import annotations

import pytest

from runner.ptq import quantize
from tests.runner.ptq.scripts import loads_before_it_ends

NEEDED = ["--model_dir", "model", "--output_dir", "out", "--quant_scheme", "fp8"]

WRONG = [
    (["--model_dir", "model"], "required"),
    ([*NEEDED, "--no_such_flag"], "--no_such_flag"),
    ([*NEEDED, "--skip_eval"], "--skip_eval"),
    ([*NEEDED, "--num_calib_data", "0"], "--num_calib_data must be at least 1"),
    ([*NEEDED, "--num_calib_data", "many"], "--num_calib_data"),
    ([*NEEDED, "--batch_size", "-1"], "--batch_size must be at least 1"),
    ([*NEEDED, "--eval_windows", "-1"], "--eval_windows must be at least 0"),
    ([*NEEDED, "--eval_seq_len", "1"], "--eval_seq_len must be at least 2"),
    ([*NEEDED, "--kv_cache_dtype", "fp8", "--min_kv_scale", "nan"], "--min_kv_scale must be a number from 0 on"),
    ([*NEEDED, "--kv_cache_dtype", "fp8", "--min_kv_scale", "inf"], "--min_kv_scale must be a number from 0 on"),
    ([*NEEDED, "--min_kv_scale", "0.1"], "do nothing without --kv_cache_dtype"),
    ([*NEEDED, "--kv_cache_post_rope"], "do nothing without --kv_cache_dtype"),
    ([*NEEDED, "--device", "tpu"], "tpu"),
    ([*NEEDED, "--device", "cpu", "--multi_gpu"], "--multi_gpu needs --device cuda"),
    ([*NEEDED, "--multi_gpu", "three"], "three"),
    ([*NEEDED, "--model_export", "onnx"], "onnx"),
    ([*NEEDED, "--data_type", "int8"], "int8"),
    ([*NEEDED, "--layer_quant_scheme", "*down_proj"], "--layer_quant_scheme"),
    ([*NEEDED, *["--layer_quant_scheme", "*up_proj", "fp8"] * 2], "*up_proj is named twice"),
    ([*NEEDED, "--quant_algo", "awq,awq"], "awq is named twice"),
    ([*NEEDED, "--quant_algo_config_file", "awq", "awq.json"], "configures awq, which --quant_algo does not name"),
    ([*NEEDED, "--trust_remote_code", "--no_trust_remote_code"], "not allowed with"),
]


@pytest.mark.parametrize(("arguments", "reason"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_a_wrong_command_line_is_refused_with_its_reason(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        quantize.main(arguments)
    said = capsys.readouterr()
    assert end.value.code == 2
    assert reason in said.err.splitlines()[-1]
    assert said.out == ""


def test_it_is_refused_before_anything_heavy_is_loaded() -> None:
    status, modules = loads_before_it_ends("quantize.py", *NEEDED, "--no_such_flag")
    assert status == 2
    assert not modules & {"torch", "transformers", "quark", "datasets", "numpy"}


def test_what_is_not_said_is_the_published_default_except_for_trust() -> None:
    options = quantize.parse(NEEDED)
    assert (options.num_calib_data, options.seq_len, options.batch_size, options.dataset) == (512, 512, 1, "pileval")
    assert options.exclude_layers is None
    assert options.trust_remote_code is False


def test_an_empty_list_of_exclusions_is_not_an_omitted_one() -> None:
    assert quantize.parse([*NEEDED, "--exclude_layers"]).exclude_layers == []
    assert quantize.parse([*NEEDED, "--exclude_layers", "lm_head", "*.gate"]).exclude_layers == ["lm_head", "*.gate"]


def test_repeated_flags_add_up() -> None:
    pairs = ["--layer_quant_scheme", "*up_proj", "int8", "--layer_quant_scheme", "*down_proj", "int4_wo_32"]
    options = quantize.parse([*NEEDED, *pairs, "--quant_algo", "rotation,smoothquant", "--multi_gpu"])
    assert options.layer_quant_scheme == [["*up_proj", "int8"], ["*down_proj", "int4_wo_32"]]
    assert options.quant_algo == ["rotation", "smoothquant"]
    assert options.multi_gpu == "auto"
    assert quantize.parse([*NEEDED, "--no_trust_remote_code"]).trust_remote_code is False
