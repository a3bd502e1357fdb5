"""Rules are data: each has a class, words for people and a pattern that is quick, and knows the engine's messages."""

from __future__ import annotations

import re
import time

import pytest

from runner.runs.diagnosis import examine
from runner.runs.diagnosis.rule import Rule, Where
from runner.runs.diagnosis.rules import rules
from schemas.artifacts.report import FailureClass

ALL = [rule for where in Where for rule in rules(where)]

BUILT_IN = "NotImplementedError: No built-in {} configuration is available for the 'qwen3' architecture. Pass a custom"
DIVIDE = "ValueError: The number of element per dimension ch_axis=-1 is 96 which is not divisible by group_size=128."
EXPORTING = ('  File "/v/quark/torch/export/nn/modules/realquantizer.py", line 80, in pack', "    assert found")
EVALUATING = ("[INFO]: Evaluating ...",)

# What the engine, its libraries and the host say, the lines before it, and the class.
SAID: list[tuple[str, tuple[str, ...], FailureClass]] = [
    (BUILT_IN.format("awq"), (), FailureClass.CONFIGURATION),
    (BUILT_IN.format("rotation"), (), FailureClass.CONFIGURATION),
    (DIVIDE, (), FailureClass.CONFIGURATION),
    ("ValueError: Unsupported attention scheme: int8", (), FailureClass.CONFIGURATION),
    ("ValueError: Unsupported algorithm: nope", (), FailureClass.CONFIGURATION),
    ("quantize_quark.py: error: unrecognized arguments: --foo", (), FailureClass.CONFIGURATION),
    ("AssertionError", EXPORTING, FailureClass.EXPORT),
    ("AssertionError", (), FailureClass.UNKNOWN),
    ("ValueError: The qmin and qmax of Dtype.bfp16 are not defined", (), FailureClass.EXPORT),
    ("RuntimeError: qdq_mxfp4 is only implemented in CUDA devices!", (), FailureClass.QUANTIZATION),
    ("RuntimeError: qdq_mxfp4 is only implemented in CUDA devices!", EVALUATING, FailureClass.EVALUATION),
    ("ConnectionError: Couldn't reach 'mit-han-lab/pile-val-backup' on the Hub (X)", (), FailureClass.LOAD),
    ("ConnectionError: Couldn't reach 'Salesforce/wikitext' on the Hub (X)", EVALUATING, FailureClass.EVALUATION),
    ("PermissionError: [Errno 13] Permission denied: '/out/config.json'", (), FailureClass.HOST),
    ("OSError: [Errno 122] Disk quota exceeded", (), FailureClass.HOST),
    ("torch.AcceleratorError: HIP error: out of memory", (), FailureClass.MEMORY),
    ("torch.AcceleratorError: HIP error: invalid device function", (), FailureClass.ENVIRONMENT),
    ("RuntimeError: Error building extension 'kernel_ext'", (), FailureClass.ENVIRONMENT),
    ("RuntimeError: Found no NVIDIA driver on your system.", (), FailureClass.ENVIRONMENT),
    ("torch._C._LinAlgError: linalg.cholesky: The factorization could not be completed", (), FailureClass.QUANTIZATION),
    ("ValueError: Loading /m requires you to execute the configuration file in that repo on your local machine.", (),
     FailureClass.CONFIGURATION),
    ("RuntimeError: unable to open shared memory object </torch_1> in read-write mode", (), FailureClass.HOST),
    ("RuntimeError: unable to mmap 4096 bytes from file </m/model.safetensors>: Cannot allocate memory (12)", (),
     FailureClass.HOST),
    ("KeyboardInterrupt", (), FailureClass.KILLED),
    ("slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch.", (), FailureClass.MEMORY),
    ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-14T09:26:53 DUE TO TIME LIMIT ***", (),
     FailureClass.KILLED),
    ("/opt/run.sh: line 3: 4242 Killed                  python quantize_quark.py", (), FailureClass.KILLED),
    ("bash: quark-cli: command not found", (), FailureClass.ENVIRONMENT),
    ("json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", (), FailureClass.UNKNOWN),
    ("TypeError: forward() got an unexpected keyword argument 'x'", (), FailureClass.UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("line", "before", "expected"), SAID)
def test_messages_have_their_class(line: str, before: tuple[str, ...], expected: FailureClass) -> None:
    found = examine([*before, "Traceback (most recent call last):", '  File "x.py", line 1, in <module>', line], 1)
    assert found.failure is expected
    assert found.next_actions


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: f"{rule.failure}:{rule.pattern.pattern[:40]}")
def test_a_rule_is_written_for_people(rule: Rule) -> None:
    assert rule.failure is not FailureClass.UNKNOWN
    assert rule.cause.endswith((".", "!"))
    assert rule.action.endswith((".", ")"))
    assert len(rule.cause) + len(rule.action) < 600
    named = set(re.findall(r"{(\w*)}", rule.cause + rule.action))
    assert named <= set(rule.pattern.groupindex)


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: f"{rule.failure}:{rule.pattern.pattern[:40]}")
@pytest.mark.parametrize(
    "line",
    ["Error: " * 280, "--quant_scheme mxfp4 " * 95, "not supported multi_device " * 70, "a.b." * 500, " " * 2000,
     "no file named Unrecognized model in ImportError: cannot import name 'x' " * 28, "Couldn't reach " * 130],
    ids=["errors", "flags", "words", "names", "blank", "beginnings", "reaching"],
)  # fmt: skip
def test_no_line_makes_a_pattern_slow(rule: Rule, line: str) -> None:
    started = time.perf_counter()
    rule.pattern.search(line)
    assert time.perf_counter() - started < 0.05


def test_every_class_has_rules() -> None:
    assert {rule.failure for rule in ALL} == set(FailureClass) - {FailureClass.UNKNOWN}


def test_what_needs_two_lines_is_asked_first() -> None:
    for where in Where:
        needs = [rule.within is None for rule in rules(where)]
        assert needs == sorted(needs)
