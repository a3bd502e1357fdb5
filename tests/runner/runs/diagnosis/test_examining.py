"""Which line decides: not the engine's advice, not an echo of another failure, and nothing where nothing is known."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.runs.diagnosis import examine, quoted
from runner.runs.diagnosis.endings import ended_by_runner, likely_host_memory
from runner.runs.diagnosis.output import Output
from runner.runs.reading import Segments
from schemas.artifacts.report import FailureClass

MEMORY = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 16.00 GiB."
TRACE = ["Traceback (most recent call last):", '  File "x.py", line 3, in <module>']
ADVICE = "  1. Install a compatible Transformers version: pip install transformers==4.40"


def test_the_engines_advice_is_never_the_answer() -> None:
    known = examine([ADVICE, *TRACE, "SafetensorError: Error while deserializing header: incomplete metadata"], 1)
    assert known.failure is FailureClass.LOAD
    unknown = examine([ADVICE, *TRACE, "RuntimeError: the moon is full"], 1)
    assert unknown.failure is FailureClass.UNKNOWN
    assert "the moon is full" in unknown.cause
    assert "ransformers" not in unknown.cause + " ".join(unknown.next_actions)


@pytest.mark.parametrize(
    "line",
    [
        "[QUARK-WARNING]: Cannot reach the Hub: offline mode is enabled.",
        "WARNING 03-14 09:26:53 [x.py:1] CUDA out of memory, trying again with less",
        "/v/x.py:3: UserWarning: mmap failed, reading instead",
        "INFO: No space left on device 3, taking device 4",
    ],
)
def test_a_warning_is_not_what_ended_the_command(line: str) -> None:
    assert examine([line, "bye"], 1).failure is FailureClass.UNKNOWN


def test_an_earlier_failure_that_was_survived_says_nothing() -> None:
    found = examine([*TRACE, MEMORY, "Trying again with less.", *TRACE, "RuntimeError: the moon is full"], 1)
    assert found.failure is FailureClass.UNKNOWN


def test_what_an_unknown_exception_was_raised_from_is_the_cause() -> None:
    between = "The above exception was the direct cause of the following exception:"
    found = examine([*TRACE, MEMORY, between, *TRACE, "engine.StepError: a step failed"], 1)
    assert found.failure is FailureClass.MEMORY


@pytest.mark.parametrize(
    "echo",
    [
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        "subprocess.CalledProcessError: Command '['python', 'x.py']' returned non-zero exit status 1.",
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        "ImportError: sys.meta_path is None, Python is likely shutting down",
        "BrokenPipeError: [Errno 32] Broken pipe",
    ],
)
def test_an_echo_does_not_hide_the_failure(echo: str) -> None:
    assert examine([*TRACE, MEMORY, *TRACE, echo], 1).failure is FailureClass.MEMORY
    assert examine([*TRACE, echo], 1).line == echo


def test_the_rank_that_says_why_decides() -> None:
    lines = ["[rank1]: " + MEMORY, "[rank0]: ValueError: the moon is full", "[rank0]: bye"]
    assert examine(lines, 1).failure is FailureClass.MEMORY


@pytest.mark.parametrize(
    "prefix",
    [
        "[rank0]: ", "[rank12]:", "rank3: ", "(EngineCore_DP0 pid=4242) ", "(Worker_TP0 pid=1) ERROR 03-14 09:26:53 ",
        "2026-03-14 09:26:53,589 - ERROR - ", "2026-03-14T09:26:53.589793Z ", "[2026-03-14 09:26:53] ", "09:26:53 ",
        "Mar 14 09:26:53 host ptq-runner[1234]: ", "E0314 09:26:53.589793 4242 main.py:10] ", "ERROR:root:",
        "runner-1  | ", "runner | 2026-03-14T09:26:53Z ", "0: ", "[    2.001 E] ", "[ERROR] ", "    | ",
        "\x1b[31m", "^[[31m", "ERROR 03-14 09:26:53 [core.py:700] ",
        "Calibrating:  42%|####      | 84/200 [00:14<00:19,  6.01it/s]",
    ],
)  # fmt: skip
def test_what_stands_before_a_line_does_not_matter(prefix: str) -> None:
    found = examine([f"{prefix}Traceback (most recent call last):", f"{prefix}{MEMORY}"], 1)
    assert found.failure is FailureClass.MEMORY
    if " - ERROR - " not in prefix:
        assert found.line.startswith("torch.OutOfMemoryError")


def test_killed_for_memory_is_said_with_numbers() -> None:
    found = examine(["Calibrating"], -9)
    assert found.failure is FailureClass.KILLED
    assert found.short_of == "host"
    told = likely_host_memory(found, 60_000_000_000, 64_000_000_000)
    assert "60.0 GB of this host's 64.0 GB" in told.cause
    assert likely_host_memory(found, None, 64_000_000_000) is found
    assert likely_host_memory(examine([MEMORY], 1), 1, 1).cause == examine([MEMORY], 1).cause


@pytest.mark.parametrize(
    ("ended_by", "killed", "exit_code", "expected"),
    [
        ("time_limit", 0, -15, FailureClass.KILLED),
        ("disk_reserve", 0, -15, FailureClass.HOST),
        ("memory_limit", 2, -9, FailureClass.MEMORY),
        (None, 1, -9, FailureClass.MEMORY),
        (None, 1, 1, FailureClass.MEMORY),
        (None, 0, -9, None),
        (None, 1, 0, None),
        ("cancel.json", 0, -15, None),
    ],
)
def test_the_runners_own_ends(ended_by: str | None, killed: int, exit_code: int, expected: FailureClass | None) -> None:
    found = ended_by_runner(ended_by, "It held 9.1 GB, and 8 GB are allowed.", killed, exit_code)
    assert (found.failure if found else None) is expected
    if found:
        assert "9.1 GB" in found.cause
        assert found.next_actions


def test_a_command_that_ended_well_may_still_be_warned_of() -> None:
    line = "RuntimeError: qdq_mxfp4 is only implemented in CUDA devices!"
    found = examine(["[INFO]: Evaluating ...", line], 0)
    assert (found.failure, found.status) == (FailureClass.EVALUATION, "partial")
    assert examine([MEMORY], 0).status == "success"


BAR = "Calibrating activations:   2%|2         | 4/200 [00:00<00:32,  6.01it/s]"


def test_output_that_stops_in_a_step_was_ended_from_outside() -> None:
    assert examine(["[INFO]: Loading model ...", BAR], None).failure is FailureClass.KILLED
    assert examine(["[INFO]: Loading model ...", BAR], 1).failure is FailureClass.UNKNOWN
    full = BAR.replace("4/200", "200/200")
    assert examine([full], None).failure is FailureClass.UNKNOWN


def test_the_deciding_lines_come_first() -> None:
    lines = [
        "one",
        "/x/quark/experimental/cli/main.py",
        "ModuleNotFoundError: No module named 'timm'",
        "    ^^^^^",
        "z",
    ]
    found = examine(lines, 1)
    assert quoted(lines, found.line, *found.also)[:2] == [lines[2], lines[1]]
    assert "^^^^^" not in quoted(lines, found.line)


@given(st.lists(st.sampled_from([MEMORY, BAR, ADVICE, *TRACE, "", "x" * 70, "[INFO]: Evaluating ..."])), st.data())
def test_the_same_however_the_bytes_arrive(lines: list[str], data: st.DataObject) -> None:
    written = "\n".join(lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=6)))
    whole, parts = Segments(), Segments()
    expected = examine(whole.feed(written) + whole.finish(), 1)
    pieces = [parts.feed(written[a:b]) for a, b in zip([0, *cuts], [*cuts, len(written)], strict=True)]
    assert examine([line for piece in pieces for line in piece] + parts.finish(), 1) == expected


@given(st.lists(st.binary(max_size=200)), st.sampled_from([None, 0, 1, 2, -9, -11, 137, 70_000]))
def test_any_bytes_give_a_sentence(raw: list[bytes], exit_code: int | None) -> None:
    found = examine([part.decode("utf-8", "replace") for part in raw], exit_code)
    assert found.cause.isprintable()
    assert all(action.isprintable() for action in found.next_actions)
    assert found.cause.encode()


@pytest.mark.parametrize("kind", ["plain", "bars", "wide", "coloured"])
def test_two_hundred_lines_take_no_time(kind: str) -> None:
    dice = random.Random(7)
    words = ["".join(dice.choices("abcdefgh .:/[]|%", k=100 if kind != "wide" else 2000)) for _ in range(200)]
    lines = [
        BAR + word if kind == "bars" else f"\x1b[31m{word}\x1b[0m" if kind == "coloured" else word for word in words
    ]
    times = []
    for _ in range(3):
        started = time.perf_counter()
        examine(lines, 1)
        times.append(time.perf_counter() - started)
    assert min(times) < (0.5 if kind == "wide" else 0.1)


def test_indented_lines_stay_lines_of_a_traceback() -> None:
    output = Output(['  File "x.py", line 1', "    raise ValueError: no", "ValueError: yes"])
    assert [line.indented for line in output.lines] == [True, True, False]
    assert output.last_exception == "ValueError: yes"
