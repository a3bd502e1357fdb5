"""Progress is read right from every recorded log, and the same however the log is cut."""

from __future__ import annotations

import ast
import json
import math
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.runs.bars import Bar
from runner.runs.progress import WEIGHTS, Flow, ProgressReader, window
from runner.runs.reading import segments_of
from schemas.runs import Phase, Progress
from tests.fixtures_folder import fixture, fixture_files

RANK = {phase: rank for rank, phase in enumerate(Phase)}
PIECE = re.compile(r"\[ *[\d.]+ [OE]\] (?P<repr>.*)")


def recorded(path: Path) -> bytes:
    """The bytes of a recorded log; a ".log" holds them as literals, piece by piece, after the time of each."""
    if path.suffix != ".log":
        return path.read_bytes()
    pieces = []
    for line in path.read_text().splitlines():
        if found := PIECE.fullmatch(line):
            piece = ast.literal_eval(found["repr"])
            pieces.append(piece if isinstance(piece, bytes) else str(piece).encode())
    return b"".join(pieces)


def bars(name: str, *states: str) -> str:
    prefix = f"{name}: " if name else ""
    return "".join(f"\r{prefix}{state}" for state in states) + "\n"


def said(text: str) -> str:
    return f"\x1b[32m\n[QUARK-INFO]: {text}\x1b[0m\n"


ENGINE_LOG = (
    said("C++ kernel loading check start.")
    + "\n[INFO]: Loading model ...\n"
    + bars(
        "Loading weights", "  0%|          | 0/47 [00:00<?, ?it/s]", "100%|██████████| 47/47 [00:00<00:00, 91.78it/s]"
    )
    + "\n[INFO]: Checking model compatibility ...\n"
    + "\n[INFO]: Loading dataset ...\n"
    + bars("Generating validation split", "0 examples [00:00, ? examples/s]", "400 examples [00:00, 88.42 examples/s]")
    + said("Quantizing with the quantization configuration:\nQConfig(\n    exclude=['lm_head'],\n    algo=None,\n)")
    + said("In-place OPs replacement start.")
    + bars("", "  0%|          | 0/67 [00:00<?, ?it/s]", "100%|██████████| 67/67 [00:00<00:00, 8831.78it/s]")
    + said("Advanced algorithm start.")
    + bars("AWQ", "  0%|          | 0/4 [00:00<?, ?it/s]", " 50%|█████     | 2/4 [00:08<00:08,  4.00s/it]")
    + said("Calibration start.")
    + bars("Calibrating activations", " 25%|██▌       | 2/8 [00:00<00:00, 18.76it/s]")
    + said("Freeze model start.")
    + bars("Freezing quantized modules", " 42%|████▏     | 81/195 [00:04<00:03, 33.54it/s]")
    + "\n[INFO]: Exporting hugging face format safetensors...\n"
    + bars("Writing model shards", "100%|██████████| 1/1 [00:00<00:00, 91.91it/s]")
    + "\n[INFO]: Evaluating ...\n"
    + bars("", " 17%|█▋        | 1/6 [00:05<00:25,  5.09s/it]", "100%|██████████| 6/6 [00:25<00:00,  4.22s/it]")
    + "\n[INFO] Perplexity: 1944.8040771484375\n"
).encode()

OWN_EVENTS: list[dict[str, object]] = [
    {"ptq": "phase", "phase": "loading_model"},
    {"ptq": "phase", "phase": "evaluating_original"},
    {"ptq": "progress", "phase": "evaluating_original", "done": 4, "total": 8},
    {"ptq": "perplexity", "of": "original", "value": 9.72, "windows": 8},
    {"ptq": "phase", "phase": "loading_dataset"},
    {"ptq": "progress", "phase": "calibrating", "done": 16, "total": 32, "rate": 2.0, "seconds_left": 8},
    {"ptq": "phase", "phase": "exporting"},
    {"ptq": "progress", "phase": "evaluating", "done": 8, "total": 8},
    {"ptq": "perplexity", "of": "quantized", "value": 9.91},
    {"ptq": "phase", "phase": "reloading"},
    {"ptq": "done"},
]
OWN_LOG = "".join(json.dumps(event) + "\n" for event in OWN_EVENTS).encode()

ENGINE_PHASES = [
    Phase.LOADING_MODEL,
    Phase.CHECKING_COMPATIBILITY,
    Phase.LOADING_DATASET,
    Phase.REPLACING_MODULES,
    Phase.CALIBRATING,
    Phase.FREEZING,
    Phase.EXPORTING,
]
RECORDED_PHASES = {
    "01_no_dataset_online.log": (ENGINE_PHASES[:3], None),
    "02_cwd_validation_jsonl.log": (ENGINE_PHASES, None),
    "04_full_with_eval.log": ([*ENGINE_PHASES, Phase.EVALUATING], 1944.8040771484375),
    "05_idle_fp8.log": ([*ENGINE_PHASES, Phase.EVALUATING], 1944.8040771484375),
}


def read(*feeds: bytes, succeeded: bool = False) -> list[Progress]:
    reader = ProgressReader()
    changes = [change for data in feeds for change in reader.feed(data)] + reader.finish(succeeded)
    assert not changes or reader.current == changes[-1]
    return changes


def last(*feeds: bytes) -> Progress:
    return read(*feeds)[-1]


def phases(changes: list[Progress]) -> list[Phase]:
    """The phases in the order in which they came."""
    return list(dict.fromkeys(change.phase for change in changes))


def assert_never_back(changes: list[Progress]) -> None:
    assert all(earlier != later for earlier, later in pairwise(changes))
    percentages = [change.percent for change in changes]
    assert percentages == sorted(percentages)
    ranks = [RANK[change.phase] for change in changes]
    assert ranks == sorted(ranks)
    for change in changes:
        assert 0 <= change.percent <= 100
        assert (change.percent == 100) == (change.phase is Phase.DONE)


@pytest.mark.parametrize("path", fixture_files("quark/logs/*.log"))
def test_recorded_logs(path: Path) -> None:
    expected, perplexity = RECORDED_PHASES[path.name]
    changes = read(recorded(path))
    assert phases(changes) == expected
    assert changes[-1].perplexity == perplexity
    assert_never_back(changes)


@pytest.mark.parametrize("path", fixture_files("quark/logs/*.std*"))
def test_one_stream_of_a_recorded_log(path: Path) -> None:
    expected, perplexity = RECORDED_PHASES[path.stem]
    changes = read(recorded(path))
    told_there = {
        ".stdout": {*ENGINE_PHASES[:3], Phase.EXPORTING, Phase.EVALUATING},
        ".stderr": {*ENGINE_PHASES} - {Phase.LOADING_DATASET},
    }[path.suffix]
    assert phases(changes) == [phase for phase in expected if phase in told_there]
    assert changes[-1].perplexity == (perplexity if path.suffix == ".stdout" else None)
    assert_never_back(changes)


def test_steps_of_a_recorded_evaluation() -> None:
    changes = read(recorded(fixture("quark", "logs", "04_full_with_eval.log")))
    evaluating = [change for change in changes if change.phase is Phase.EVALUATING and change.done is not None]
    assert [change.done for change in evaluating] == [0, 1, 2, 3, 4, 5, 6, 6, 6]
    assert {change.total for change in evaluating} == {6}
    assert evaluating[0].rate is None
    assert evaluating[0].seconds_left is None
    assert evaluating[1].rate == pytest.approx(1 / 5.09)
    assert evaluating[1].seconds_left == 25


@settings(max_examples=60, deadline=None)
@given(cuts=st.lists(st.floats(0, 1), max_size=30))
@pytest.mark.parametrize("path", fixture_files("quark/logs/*.log"))
def test_a_recorded_log_reads_the_same_however_it_is_cut(path: Path, cuts: list[float]) -> None:
    log = recorded(path)
    places = [0, *sorted(round(cut * len(log)) for cut in cuts), len(log)]
    assert read(*(log[start:end] for start, end in pairwise(places))) == read(log)


@pytest.mark.parametrize("log", [ENGINE_LOG, OWN_LOG], ids=["engine", "own"])
def test_a_log_reads_the_same_when_cut_at_any_byte(log: bytes) -> None:
    whole = read(log)
    for cut in range(len(log) + 1):
        assert read(log[:cut], log[cut:]) == whole
    assert read(*(bytes([byte]) for byte in log)) == whole


@settings(deadline=None)
@given(cuts=st.lists(st.integers(0, len(ENGINE_LOG)), max_size=40))
def test_a_log_reads_the_same_when_cut_often(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(ENGINE_LOG)]
    assert read(*(ENGINE_LOG[start:end] for start, end in pairwise(places))) == read(ENGINE_LOG)


def test_the_engines_log() -> None:
    changes = read(ENGINE_LOG)
    assert_never_back(changes)
    assert phases(changes) == [
        *ENGINE_PHASES[:4],
        Phase.OPTIMIZING,
        *ENGINE_PHASES[4:],
        Phase.EVALUATING,
    ]
    assert changes[-1] == Progress(
        phase=Phase.EVALUATING,
        percent=99.0,
        done=6,
        total=6,
        rate=1 / 4.22,
        seconds_left=0.0,
        perplexity=1944.8040771484375,
    )


def test_segments_tell_the_same_as_bytes() -> None:
    reader = ProgressReader()
    assert reader.follow(segments_of(ENGINE_LOG)) == read(ENGINE_LOG)
    assert reader.finish(succeeded=True) == [reader.current] == read(ENGINE_LOG, succeeded=True)[-1:]


def test_our_own_scripts_log() -> None:
    changes = read(OWN_LOG)
    assert_never_back(changes)
    assert phases(changes) == [
        Phase.LOADING_MODEL,
        Phase.EVALUATING_ORIGINAL,
        Phase.LOADING_DATASET,
        Phase.CALIBRATING,
        Phase.EXPORTING,
        Phase.EVALUATING,
        Phase.RELOADING,
        Phase.DONE,
    ]
    calibrating = next(change for change in changes if change.phase is Phase.CALIBRATING and change.done)
    start, end = window(Flow.OWN, Phase.CALIBRATING)
    assert calibrating.percent == (start + end) / 2
    assert (calibrating.done, calibrating.total, calibrating.rate, calibrating.seconds_left) == (16, 32, 2.0, 8.0)
    assert changes[-1] == Progress(phase=Phase.DONE, percent=100, original_perplexity=9.72, perplexity=9.91)


def test_bars_of_the_engine_below_our_own_script() -> None:
    calibrating = bars("Calibrating activations", " 50%|█████     | 4/8 [00:01<00:02,  2.00it/s]").encode()
    changes = read(OWN_LOG[: OWN_LOG.index(b'{"ptq": "progress", "phase": "calibrating"')] + calibrating)
    assert changes[-1].phase is Phase.CALIBRATING
    assert (changes[-1].done, changes[-1].total, changes[-1].rate, changes[-1].seconds_left) == (4, 8, 2.0, 2.0)
    assert changes[-1].original_perplexity == 9.72
    loading = bars("Loading weights", " 50%|█████     | 4/8 [00:01<00:02,  2.00it/s]").encode()
    assert read(b'{"ptq": "phase", "phase": "reloading"}\n' + loading)[-1].done == 4
    assert read(b'{"ptq": "phase", "phase": "exporting"}\n' + loading)[-1].done is None


def test_two_sources_of_one_phase_do_not_add_up() -> None:
    log = b""
    for done in range(1, 5):
        log += json.dumps({"ptq": "progress", "phase": "calibrating", "done": done, "total": 8}).encode() + b"\n"
        log += bars("Calibrating activations", f" 50%|█| {done}/8 [00:01<00:02,  2.00it/s]").encode()
    start, end = window(Flow.OWN, Phase.CALIBRATING)
    assert start + (end - start) * 0.5 <= last(log).percent < start + (end - start) * 0.75


def test_the_second_algorithm_goes_on_where_the_first_one_ended() -> None:
    first = bars("SmoothQuant", "100%|█| 4/4 [00:01<00:00, 4.00it/s]").encode()
    second = bars("Applying GptqProcessor", "  0%|          | 0/4 [00:00<?, ?it/s]", " 50%|█| 2/4 [00:01<00:01, 2it/s]")
    changes = read(first + second.encode())
    start, end = window(Flow.STANDARD, Phase.OPTIMIZING)
    assert [change.percent for change in changes if change.done is not None] == [
        pytest.approx(start + (end - start) * share, abs=0.01) for share in (0.6, 0.6, 0.72)
    ]


def test_a_bar_that_starts_again_goes_on_where_it_ended() -> None:
    rotation = bars("R2 Rotation", "  0%|          | 0/4 [00:00<?, ?it/s]", "100%|█| 4/4 [00:01<00:00, 4.00it/s]")
    start, end = window(Flow.STANDARD, Phase.OPTIMIZING)
    percentages = [change.percent for change in read((rotation + rotation).encode())]
    assert percentages == [pytest.approx(start + (end - start) * share, abs=0.01) for share in (0, 0.6, 0.6, 0.84)]


def test_a_bar_of_the_same_name_in_another_phase_begins_anew() -> None:
    loading = bars("Loading weights", " 25%|█| 2/8 [00:01<00:03, 2.00it/s]")
    reloading = bars("Loading weights", " 50%|█| 4/8 [00:01<00:03, 2.00it/s]")
    log = (
        f'{{"ptq": "phase", "phase": "loading_model"}}\n{loading}{{"ptq": "phase", "phase": "reloading"}}\n{reloading}'
    )
    start, end = window(Flow.OWN, Phase.RELOADING)
    assert last(log.encode()).percent == start + (end - start) * 0.25


def test_bars_within_a_step_do_not_count() -> None:
    outer = bars("Applying GptqProcessor", " 25%|█| 1/4 [00:01<00:03, 1.00s/it]").encode()
    inner = bars("GPTQ quantizing columns", "100%|█| 9/9 [00:00<00:00, 99.0it/s]").encode()
    assert last(outer + inner) == last(outer)
    assert last(inner) == Progress(phase=Phase.OPTIMIZING, percent=window(Flow.STANDARD, Phase.OPTIMIZING)[0])


def test_file_to_file() -> None:
    log = said("File-to-file quantization with the configuration:\nQConfig(\n    exclude=[],\n)")
    log += said("Processing 1/4: model-00001.safetensors") + said("Processing 3/4: model-00003.safetensors")
    changes = read(log.encode())
    assert [(change.phase, change.percent, change.done, change.total) for change in changes] == [
        (Phase.EXPORTING, 5.0, 0, 4),
        (Phase.EXPORTING, 50.0, 2, 4),
    ]


def test_a_run_that_turns_out_to_go_file_to_file_does_not_fall_back() -> None:
    log = "[INFO]: Loading dataset ...\n" + said("File-to-file quantization with the configuration:\nQConfig(\n)")
    changes = read((log + said("Processing 1/4: x.safetensors") + said("Processing 2/4: y.safetensors")).encode())
    assert [change.percent for change in changes] == [17.0, 17.0, 27.5]


def test_quark_cli_says_it_through_the_logger() -> None:
    log = said("Loading model ...") + said("Loading dataset ...") + said("Evaluating ...") + said("Perplexity: 7.5")
    changes = read(log.encode())
    assert phases(changes) == [Phase.LOADING_MODEL, Phase.LOADING_DATASET, Phase.EVALUATING]
    assert changes[-1].perplexity == 7.5


def test_a_line_of_an_earlier_phase_is_ignored() -> None:
    # Standard output that is buffered arrives all at once, at the end.
    late = said("Freeze model start.").encode() + b"[INFO]: Loading model ...\n[INFO]: Loading dataset ...\n"
    assert phases(read(late)) == [Phase.FREEZING]
    assert phases(
        read(b'{"ptq":"phase","phase":"exporting"}\n{"ptq":"progress","phase":"calibrating","done":1,"total":2}')
    ) == [Phase.EXPORTING]


def test_only_the_end_is_100_percent() -> None:
    assert read(ENGINE_LOG)[-1].percent < 100
    assert read(ENGINE_LOG, succeeded=True)[-1] == Progress(
        phase=Phase.DONE, percent=100, perplexity=1944.8040771484375
    )
    assert read(OWN_LOG + ENGINE_LOG, succeeded=True)[-1].percent == 100
    for column in Flow:
        assert sum(weights[column.value] for weights in WEIGHTS.values()) == 100
        assert window(column, Phase.DONE) == (99, 100)


QUOTED_BARS = "  0%|      | 0/6 [00:00<?, ?it/s]\n    text\n\n 17%|█| 1/6 [00:05<00:25, 5.00s/it]\n"


@pytest.mark.parametrize(
    "line",
    [
        '    print("\\n[INFO]: Evaluating ...")',
        "    [INFO]: Evaluating ...",
        "ValueError: [INFO]: Evaluating ...",
        "ValueError: Writing model shards: 100%|█| 1/1 [00:00<00:00, 91.91it/s]",
        "    exclude=['[QUARK-INFO]: Calibration start.'],",
        "[QUARK-INFO]: Calibration start. Or not",
        "[QUARK-WARNING]: Calibration start.",
        "[INFO] Perplexity: unknown",
        "Retrying in 8s [Retry 5/5].",
        "tokens: 5 [a, b/s]",
        "model.safetensors: 50%|█| 1/2 [00:00<00:00, 91.91it/s]",
        '{"ptq": "phase", "phase": "nowhere"}',
        '{"ptq": "phase", "phase": ["done"]}',
        '{"ptq": "phase"}',
        '{"ptq": "phase", "phase": "done"',
        '{"ptq": "progress", "phase": "calibrating", "done": -1, "total": 2}',
        '{"ptq": "progress", "phase": "calibrating", "done": true, "total": 2}',
        '{"ptq": "progress", "phase": "calibrating", "done": 1.5, "total": 2}',
        '{"ptq": "progress", "phase": "done", "done": 1, "total": 2}',
        '{"ptq": "perplexity", "of": "nothing", "value": 1}',
        '{"ptq": "perplexity", "of": "quantized", "value": true}',
        '{"ptq": "perplexity", "of": "quantized", "value": 1' + "0" * 400 + "}",
        '{"ptq": ' + "[" * 4000,
        '{"level": "info", "phase": "done"}',
        '["ptq", "done"]',
        '{"ptq": "done"}' + " " * 5000 + "x",
    ],
)
def test_what_is_no_progress(line: str) -> None:
    assert read(line.encode()) == []


def test_a_measurement_that_gave_no_number_is_not_one_that_was_not_made() -> None:
    (progress,) = read(b'{"ptq": "perplexity", "of": "quantized", "value": null}')
    assert progress.perplexity is not None
    assert math.isnan(progress.perplexity)


@pytest.mark.parametrize(
    "quoted",
    [
        f"Traceback (most recent call last):\n{QUOTED_BARS}ValueError: x\n",
        said(f"Quantizing with the quantization configuration:\nQConfig(\n{QUOTED_BARS})"),
    ],
    ids=["traceback", "configuration"],
)
def test_quoted_text_is_no_progress_but_what_follows_is(quoted: str) -> None:
    evaluating = b"[INFO]: Evaluating ...\n"
    assert read(evaluating, quoted.encode()) == read(evaluating)
    bar = bars("", " 33%|███▎      | 2/6 [00:08<00:17,  4.37s/it]").encode()
    assert last(evaluating, quoted.encode(), bar).done == 2


def test_a_configuration_that_never_ends_hides_nothing_for_long() -> None:
    opened = said("Quantizing with the quantization configuration:\nQConfig(\n    exclude=[").encode()
    assert last(opened, said("Calibration start.").encode()).phase is Phase.CALIBRATING
    failed = b"Traceback (most recent call last):\n  File x\n[INFO]: Evaluating ...\n"
    assert last(failed).phase is Phase.EVALUATING


def test_a_line_behind_an_unfinished_bar() -> None:
    bar = b"\rCalibrating activations:  25%|##5       | 2/8 [00:00<00:00, 18.76it/s]"
    assert last(bar + b'{"ptq": "phase", "phase": "freezing"}\n').phase is Phase.FREEZING
    assert last(bar + b"    [INFO]: Exporting hugging face format safetensors...\n").phase is Phase.EXPORTING


@pytest.mark.parametrize(("text", "meant"), [("inf", float("inf")), ("1e3", 1000.0)])
def test_perplexity_beyond_measure_is_a_result(text: str, meant: float) -> None:
    assert last(f"[INFO] Perplexity: {text}\n".encode()).perplexity == meant


def test_perplexity_that_is_no_number_is_a_result() -> None:
    changes = read(b"[INFO] Perplexity: nan\n[INFO]: Evaluating ...\n")
    assert [str(change.perplexity) for change in changes] == ["nan", "nan"]


@pytest.mark.parametrize(
    ("line", "bar"),
    [
        ("Loading weights:   0%|          | 0/47 [00:00<?, ?it/s]", Bar("Loading weights", 0, 47)),
        (" 17%|█▋        | 1/6 [00:05<00:25,  5.00s/it]", Bar("", 1, 6, 0.2, 25.0)),
        ("a: b:  50%|##   | 1/2 [1:01:01<49:00:02, 2.00it/s]", Bar("a: b", 1, 2, 2.0, 176402.0)),
        ("x: 100%|██| 2/2 [00:01<00:00, 2.00it/s, loss=1.5, lr=3] ", Bar("x", 2, 2, 2.0, 0.0)),
        ("x:  50% 1/2 [00:01<00:01, 1.00it/s]", Bar("x", 1, 2, 1.0, 1.0)),
        ("x:  12%|█▏ | 598M/4.98G [00:10<01:12, 60.5MB/s]", Bar("x", 598_000_000, 4_980_000_000, 60.5e6, 72.0)),
        ("x:  12%|█▏ | 1.20k/9.98k [00:10<01:12, 1.25kit/s]", Bar("x", 1200, 9980, 1250.0, 72.0)),
        ("x:  12%|█▏ | 1/9 [00:10<01:12, 2.00ks/it]", Bar("x", 1, 9, 0.0005, 72.0)),
        ("x:  12%|█▏ | 1/9 [00:10<01:12, 2.00keys/s]", Bar("x", 1, 9, 2.0, 72.0)),
        ("x:  12%|█▏ | 1/9 [00:10<01:12, 2.00layer/s]", Bar("x", 1, 9, 2.0, 72.0)),
        ("x:  12%|█▏ | 1/9 [00:10<01:12, 4.00s/layer]", Bar("x", 1, 9, 0.25, 72.0)),
        ("x:  12%|█▏ | 1/9 [00:10<-1:-12, 4.00s/layer]", Bar("x", 1, 9, 0.25)),
        ("Preserving: 0it [00:00, ?it/s]", Bar("Preserving", 0)),
        ("0it [00:00, ?it/s]", Bar("", 0)),
        ("Gen: 400 examples [00:00, 2000.50 examples/s]", Bar("Gen", 400, None, 2000.5)),
        ("Map: 1.20kexamples [00:01, 1.10kexamples/s]", Bar("Map", 1200, None, 1100.0)),
        ("x:  50%|█| 1/2 [00:01<00:01, 1it/s][INFO]: y", Bar("x", 1, 2, 1.0, 1.0, "[INFO]: y")),
        ("x:  50%|█| 1/0 [00:01<00:01, 0.00it/s]", Bar("x", 1, 0, 0.0, 1.0)),
        ("Retrying in 8s [Retry 5/5].", None),
        ("x: 50%", None),
        ("", None),
    ],
)
def test_bars(line: str, bar: Bar | None) -> None:
    assert Bar.read(line) == bar


@settings(deadline=None)
@given(
    line=st.from_regex(
        r"(x: )?\s?\d{1,4}%\|.{0,3}\| [\d.e+kM]{1,24}/[\d.e+kM]{1,24} "
        r"\[[\d:?]{1,24}<[\d:?]{1,30}, [\d.e+ks?]{1,30}(it/s|s/it)\]",
        fullmatch=True,
    )
)
def test_no_bar_is_an_error(line: str) -> None:
    bar = Bar.read(line)
    assert bar is None or (bar.done >= 0 and (bar.rate is None or bar.rate >= 0))


@settings(deadline=None)
@given(
    data=st.lists(
        st.sampled_from([*ENGINE_LOG.splitlines(keepends=True), *OWN_LOG.splitlines(keepends=True), b"\n"]),
        max_size=40,
    )
)
def test_lines_in_any_order_never_lead_back(data: list[bytes]) -> None:
    assert_never_back(read(*data))


def test_the_time_left_is_told_by_the_bar_or_follows_from_its_rate() -> None:
    told = read(b"Calibrating activations:  50%|##   | 5/10 [00:05<00:07, 1.00it/s]")[-1]
    assert told.seconds_left == 7
    event = b'{"ptq": "progress", "phase": "calibrating", "done": 4, "total": 10, "rate": 0.5}'
    assert read(event)[-1].seconds_left == 12
    assert read(b'{"ptq": "progress", "phase": "calibrating", "done": 4, "total": 10}')[-1].seconds_left is None


def test_a_whole_log_of_quark_cli_is_followed() -> None:
    """Its own lines come through the engine's logger; it changes its working directory and says so."""
    log = said("Working directory is now=/v/quark/experimental/cli/torch_llm/llm_ptq/") + said("Loading model ...")
    log += "\rLoading weights: 100%|####| 25/25 [00:00<00:00, 33727.11it/s]\n"
    log += said("Loading dataset ...") + said("In-place OPs replacement start.") + said("Calibration start.")
    log += "\rCalibrating activations:  50%|##   | 4/8 [00:02<00:02, 1.76it/s]"
    log += "\rCalibrating activations: 100%|#####| 8/8 [00:04<00:00, 1.76it/s]\n"
    log += said("Freeze model start.") + said("Exporting hugging face format safetensors...")
    log += "\rWriting model shards: 100%|####| 1/1 [00:00<00:00, 402.72it/s]\n" + said("Evaluating ...")
    log += "\r 25%|##  | 1/4 [00:01<00:03, 1.00s/it]\n" + said("Perplexity: 9.25")
    changes = read(log.encode(), succeeded=True)
    assert phases(changes) == [
        Phase.LOADING_MODEL,
        Phase.LOADING_DATASET,
        Phase.REPLACING_MODULES,
        Phase.CALIBRATING,
        Phase.FREEZING,
        Phase.EXPORTING,
        Phase.EVALUATING,
        Phase.DONE,
    ]
    assert any(change.seconds_left == 2 for change in changes)
    assert changes[-1].perplexity == 9.25
