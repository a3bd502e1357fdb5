"""Events stand on lines of their own, phases go forward, and progress is not chatty."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runner.ptq import quantize
from schemas.runs import Phase
from tests.runner.ptq.scripts import events_of


def test_the_phases_are_those_of_a_run_in_their_order() -> None:
    order = [phase.value for phase in Phase]
    assert [order.index(phase) for phase in quantize.PHASES] == sorted(map(order.index, quantize.PHASES))


def test_an_event_ends_the_line_that_a_progress_bar_left_open(capsys: pytest.CaptureFixture[str]) -> None:
    print("Calibrating:  50%|#####     | 4/8", end="")
    quantize.Events().write("output", dir="/out", bytes=1)
    lines = capsys.readouterr().out.split("\n")
    assert lines == ["Calibrating:  50%|#####     | 4/8", '{"ptq": "output", "dir": "/out", "bytes": 1}', ""]


def test_text_in_an_event_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    message = "first\nsecond\r\u2028third \ud800"
    quantize.Events().write("error", message=message)
    assert [event["message"] for event in events_of(capsys.readouterr().out)] == [message]


def test_a_phase_never_comes_again(capsys: pytest.CaptureFixture[str]) -> None:
    events = quantize.Events()
    events.enter("calibrating")
    with pytest.raises(RuntimeError, match="loading_model cannot come after calibrating"):
        events.enter("loading_model")
    assert [event["phase"] for event in events_of(capsys.readouterr().out)] == ["calibrating"]


def test_progress_is_told_at_once_then_once_a_second_and_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([100.0, 100.4, 100.9, 101.1, 101.2, 101.3])
    monkeypatch.setattr(quantize, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    events = quantize.Events()
    events.enter("calibrating")
    for done in range(1, 7):
        events.progress(done, 6)
    told = [event["done"] for event in events_of(capsys.readouterr().out) if event["ptq"] == "progress"]
    assert told == [1, 4, 6]


def test_memory_of_the_gpus_is_told_also_of_a_run_that_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    peaks = [70, 30]
    gpus = SimpleNamespace(is_available=lambda: True, device_count=lambda: 2, max_memory_allocated=peaks.__getitem__)
    backends = SimpleNamespace(mkldnn=SimpleNamespace(is_available=lambda: False))
    torch = SimpleNamespace(cuda=gpus, backends=backends, manual_seed=lambda _: None)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(quantize, "check_files", lambda _: None)
    monkeypatch.setattr(quantize, "work", lambda *_: (_ for _ in ()).throw(MemoryError("HIP out of memory")))
    arguments = ["--model_dir", str(tmp_path), "--output_dir", "out", "--quant_scheme", "fp8", "--device", "cuda"]
    assert quantize.main(arguments) == 1
    told = events_of(capsys.readouterr().out)
    assert [event["ptq"] for event in told] == ["phase", "memory", "error"]
    assert told[1]["gpu_peak_bytes"] == 100


def test_a_number_that_json_does_not_have_cannot_slip_in() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        quantize.Events().write("perplexity", value=float("nan"))


class Model:
    """Calls whatever watches it after each pass, as a torch module does."""

    def __init__(self) -> None:
        self.watching: list[Any] = []

    def register_forward_hook(self, watch: Any) -> Model:
        self.watching.append(watch)
        return self

    def remove(self) -> None:
        self.watching.clear()

    def __call__(self, batch: object) -> None:
        for watch in self.watching:
            watch(self, (batch,), None)


class Quantizer:
    """Has one of the two steps of the engine that are announced."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    def _do_calibration(self, model: Model, batches: list[int]) -> Model:
        for batch in batches:
            model(batch)
        if self.fails:
            raise ValueError("in the engine")
        return model


def test_a_step_of_the_engine_is_announced_and_its_batches_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    quantizer, model = Quantizer(), Model()
    quantize.announce(quantizer, "_do_calibration", "calibrating", quantize.Events())
    assert quantizer._do_calibration(model, [1, 2, 3]) is model
    said = [json.dumps(event) for event in events_of(capsys.readouterr().out)]
    assert said[0] == '{"ptq": "phase", "phase": "calibrating"}'
    assert said[-1] == '{"ptq": "progress", "phase": "calibrating", "done": 3, "total": 3}'
    assert model.watching == []


def test_a_step_that_fails_is_watched_no_longer() -> None:
    quantizer, model = Quantizer(fails=True), Model()
    quantize.announce(quantizer, "_do_calibration", "calibrating", quantize.Events())
    with pytest.raises(ValueError, match="in the engine"):
        quantizer._do_calibration(model, [1])
    assert model.watching == []


def test_an_engine_without_the_step_announces_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    quantizer = Quantizer()
    quantize.announce(quantizer, "_of_another_version", "optimizing", quantize.Events())
    quantizer._do_calibration(Model(), [1])
    assert events_of(capsys.readouterr().out) == []
