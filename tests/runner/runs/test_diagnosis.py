"""Why a command failed: what the rules know for certain, and that they claim nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.errors import NotHere
from runner.runs.diagnosis import diagnose, diagnose_file, examine, last_exception
from schemas.artifacts.report import FailureClass
from tests.agreement import failures
from tests.fixtures_folder import fixture_files

TABLE = [
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", 1, FailureClass.MEMORY),
    ("torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.", 1, FailureClass.MEMORY),
    ("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB", 1, FailureClass.MEMORY),
    ("MemoryError", 1, FailureClass.MEMORY),
    ("RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried", 1, FailureClass.MEMORY),
    ("OSError: [Errno 12] Cannot allocate memory", 1, FailureClass.MEMORY),
    ("MemoryError: Out of memory. The available GPU memory is insufficient to load", 1, FailureClass.MEMORY),
    ("OSError: [Errno 28] No space left on device: '/out/config.json'", 1, FailureClass.HOST),
    ("SafetensorError: Error while serializing: I/O error: No space left (os error 28)", 1, FailureClass.HOST),
    ("SafetensorError: Error while deserializing header: incomplete metadata", 1, FailureClass.LOAD),
    ("OSError: Error no file named model.safetensors, or pytorch_model.bin, found in /m.", 1, FailureClass.LOAD),
    ("ModuleNotFoundError: No module named 'timm'", 1, FailureClass.ENVIRONMENT),
    (
        "ValueError: The checkpoint has model type `x` but Transformers does not recognize this architecture.",
        1,
        FailureClass.COMPATIBILITY,
    ),
    ("python3: can't open file '/x/quantize.py': [Errno 2] No such file or directory", 2, FailureClass.ENVIRONMENT),
    ("TypeError: get_calib_dataloader_to_tensor() got an unexpected keyword argument 'processor'", 1,
     FailureClass.ENVIRONMENT),
    ("ImportError: cannot import name 'RuntimeOptions' from 'quark.torch' (/v/__init__.py)", 1,
     FailureClass.ENVIRONMENT),
    ("TypeError: forward() got an unexpected keyword argument 'cache'", 1, FailureClass.UNKNOWN),
    ("quantize.py: error: argument --quant_scheme: invalid choice", 2, FailureClass.CONFIGURATION),
    ("KeyError: 'autoround'", 1, FailureClass.QUANTIZATION),
    ("KeyError: 'model.layers.0'", 1, FailureClass.UNKNOWN),
    ("all is well", 1, FailureClass.UNKNOWN),
    ("all is well", -9, FailureClass.KILLED),
    ("all is well", -15, FailureClass.KILLED),
    ("all is well", -11, FailureClass.UNKNOWN),
    ("all is well", -63, FailureClass.UNKNOWN),
    ("all is well", 137, FailureClass.KILLED),
    ("all is well", None, FailureClass.UNKNOWN),
    ("torch.OutOfMemoryError: CUDA out of memory", 0, FailureClass.UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("line", "exit_code", "expected"), TABLE)
def test_the_last_exception_decides(line: str, exit_code: int | None, expected: FailureClass) -> None:
    noise = ["[QUARK-INFO]: Install a compatible Transformers version.", "Traceback (most recent call last):"]
    failure, cause, next_actions = diagnose([*noise, line, ""], exit_code)
    assert failure is expected
    assert cause
    assert next_actions or exit_code == 0
    assert "Install a compatible" not in cause


@pytest.mark.parametrize("recorded", fixture_files("failures/*.txt"))
def test_a_recorded_failure_is_told_however_it_is_read(recorded: Path, tmp_path: Path) -> None:
    """Whole, cut and mixed with what others print: class and fix are what its first line says."""
    found = failures.judge(failures.Recorded.read(recorded), tmp_path)
    assert found.readings >= 40
    assert not found.problems


def test_the_own_script_tells_its_errors_as_events() -> None:
    event = {"ptq": "error", "phase": "exporting", "type": "OSError", "message": "[Errno 28] No space left on device"}
    assert last_exception(["Calibrating", json.dumps(event)]) == "OSError: [Errno 28] No space left on device"
    assert diagnose([json.dumps(event)], 1)[0] is FailureClass.HOST
    assert diagnose([json.dumps(event | {"type": "MemoryError", "message": ""})], 1)[0] is FailureClass.MEMORY
    assert last_exception(['{"ptq": "error", "type": 3}', '{"ptq": ']) == ""


@given(lines=st.lists(st.text(max_size=80)), exit_code=st.one_of(st.none(), st.integers(-200, 300)))
def test_any_output_gives_a_sentence(lines: list[str], exit_code: int | None) -> None:
    found = examine(lines, exit_code)
    assert found.cause.isprintable()
    found.cause.encode()


def test_a_log_alone_is_enough(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(b"\xff\xfe" * 300_000 + b"\rCalibrating  10%\r\x1b[31mKeyError: 'x'\x1b[0m\nbye\n")
    report = diagnose_file(log, 1)
    assert report.status == "failed"
    assert report.failure is FailureClass.UNKNOWN
    assert report.evidence[0] == "KeyError: 'x'"
    assert json.loads(report.model_dump_json())["class"] == "unknown"
    assert diagnose_file(log, 0).status == "success"
    with pytest.raises(NotHere, match="cannot be read"):
        diagnose_file(tmp_path / "absent.log", 1)


REFUSALS = [
    (
        "text.txt has 20,839 tokens, but calibration needs 65,536: take a longer text or less of it.",
        FailureClass.CONFIGURATION,
        "fewer calibration samples",
    ),
    ("pileval has 4 samples; --num_calib_data asks for 5.", FailureClass.CONFIGURATION, "fewer calibration samples"),
    ("The model cannot be read: model.safetensors is cut off.", FailureClass.LOAD, "fetch again"),
    ("The output folder /o cannot be written to: Permission denied.", FailureClass.HOST, "write there"),
    ("torch 2.13 of this interpreter finds no GPU: use --device cpu, or a GPU build.", FailureClass.ENVIRONMENT, ""),
    ("The installed transformers cannot build the model type 'x'.", FailureClass.COMPATIBILITY, ""),
    ("Quark has no scheme 'fp9'.", FailureClass.CONFIGURATION, "make a new plan"),
]


@pytest.mark.parametrize(("sentence", "expected", "action"), REFUSALS)
def test_what_our_script_refuses_is_a_reason_that_is_known(sentence: str, expected: FailureClass, action: str) -> None:
    event = json.dumps({"ptq": "error", "phase": "preparing", "type": "BadInput", "message": sentence})
    failure, cause, next_actions = diagnose([event, sentence], 1)
    assert failure is expected
    assert cause == f"The quantization script refused to go on: {sentence}"
    assert action in next_actions[0]
