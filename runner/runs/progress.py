"""What a run's log tells of its progress.

Two kinds of log are understood. Our own script writes JSON lines, among whatever the engine prints below it:

    {"ptq": "phase", "phase": P}
    {"ptq": "progress", "phase": P, "done": n, "total": m}      also "rate" (per second) and "seconds_left", if known
    {"ptq": "perplexity", "of": "original" | "quantized", "value": x}
    {"ptq": "done"}

quantize_quark.py and quark-cli write lines such as ``[INFO]: Loading dataset ...`` to standard output, and
``[QUARK-INFO]: Calibration start.`` and progress bars to standard error.
Source: seen with amd-quark 0.13 and transformers 5.16.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Final

from runner.runs.bars import Bar
from runner.runs.reading import Segments
from schemas.runs import Phase, Progress


class Flow(Enum):
    """How a run goes about it; the value is its column in WEIGHTS."""

    STANDARD = 0  # quantize_quark.py and quark-cli
    OWN = 1  # our own script: also evaluates the original and reloads the result
    FILE_TO_FILE = 2  # one shard after another is read, quantized and written


# How much of the whole run each phase counts for, in percent. Roughly an 8B model with calibration and an algorithm; a
# run that skips a phase jumps over its part.
WEIGHTS: Final[Mapping[Phase, tuple[float, float, float]]] = {
    Phase.PREPARING: (5, 5, 5),
    Phase.LOADING_MODEL: (10, 8, 0),
    Phase.CHECKING_COMPATIBILITY: (2, 2, 0),
    Phase.EVALUATING_ORIGINAL: (0, 15, 0),
    Phase.LOADING_DATASET: (3, 2, 0),
    Phase.REPLACING_MODULES: (1, 1, 0),
    Phase.OPTIMIZING: (24, 20, 0),
    Phase.CALIBRATING: (22, 18, 0),
    Phase.FREEZING: (5, 4, 0),
    Phase.EXPORTING: (9, 8, 90),
    Phase.EVALUATING: (18, 13, 4),
    Phase.RELOADING: (0, 3, 0),
    Phase.DONE: (1, 1, 1),
}

_RANK: Final = {phase: rank for rank, phase in enumerate(Phase)}

_LINES: Final[Mapping[str, Phase]] = {
    "Loading model ...": Phase.LOADING_MODEL,
    "Checking model compatibility ...": Phase.CHECKING_COMPATIBILITY,
    "Running compatibility dry-run test...": Phase.CHECKING_COMPATIBILITY,
    "Loading dataset ...": Phase.LOADING_DATASET,
    "In-place OPs replacement start.": Phase.REPLACING_MODULES,
    "Advanced algorithm start.": Phase.OPTIMIZING,
    "Blockwise tuning algorithm start.": Phase.OPTIMIZING,
    "Calibration start.": Phase.CALIBRATING,
    "Weight calibration start.": Phase.CALIBRATING,
    "Freeze model start.": Phase.FREEZING,
    "Model post process start.": Phase.EXPORTING,
    "Evaluating ...": Phase.EVALUATING,
}

_STARTS_OF_LINES: Final[tuple[tuple[str, Phase], ...]] = (
    ("Exporting ", Phase.EXPORTING),
    ("Start exporting ", Phase.EXPORTING),
)

_DUMPS: Final = {
    "Quantizing with the quantization configuration:": Flow.STANDARD,
    "File-to-file quantization with the configuration:": Flow.FILE_TO_FILE,
}

_STEP: Final = 0.6
_WITHIN_A_STEP: Final = 0.0

# A bar shows that its phase has begun, and fills this share of what is left of the phase: 1 where it is the phase's
# last bar, less where another may follow (several algorithms, several rotations), 0 where it restarts for every layer.
_BARS: Final[Mapping[str, tuple[Phase, float]]] = {
    "Loading weights": (Phase.LOADING_MODEL, 1),
    "Loading checkpoint shards": (Phase.LOADING_MODEL, 1),
    "Caching layer inputs": (Phase.OPTIMIZING, 0.1),
    "AWQ": (Phase.OPTIMIZING, _STEP),
    "SmoothQuant": (Phase.OPTIMIZING, _STEP),
    "Auto-SmoothQuant": (Phase.OPTIMIZING, _STEP),
    "AutoRound": (Phase.OPTIMIZING, _STEP),
    "[TwoBitScalar] Quantizing layers": (Phase.OPTIMIZING, _STEP),
    "BlockWise_Tuning": (Phase.OPTIMIZING, _STEP),
    "BlockWise_Joint_Tuning": (Phase.OPTIMIZING, _STEP),
    "R1 Rotation": (Phase.OPTIMIZING, _STEP),
    "R2 Rotation": (Phase.OPTIMIZING, _STEP),
    "R3 Rotation": (Phase.OPTIMIZING, _STEP),
    "R4 Rotation": (Phase.OPTIMIZING, _STEP),
    "GPTQ quantizing columns": (Phase.OPTIMIZING, _WITHIN_A_STEP),
    "Collecting GPTAQ statistics": (Phase.OPTIMIZING, _WITHIN_A_STEP),
    "Collecting Qronos statistics": (Phase.OPTIMIZING, _WITHIN_A_STEP),
    "Calibrating all params": (Phase.CALIBRATING, 0.3),
    "Calibrating activations": (Phase.CALIBRATING, 1),
    "Freezing quantized modules": (Phase.FREEZING, 1),
    "Converting QuantLinear for export": (Phase.EXPORTING, 0.5),
    "Restoring missing weights": (Phase.EXPORTING, 0.5),
    "Writing model shards": (Phase.EXPORTING, 1),
}

# Bars whose name does not tell the phase: they count only while the run is in one of these.
_BARS_ANYWHERE: Final[tuple[tuple[re.Pattern[str], Mapping[Phase, float]], ...]] = (
    (
        re.compile(""),
        {Phase.REPLACING_MODULES: 1, Phase.EVALUATING_ORIGINAL: 1, Phase.EVALUATING: 1},
    ),
    (re.compile("Loading weights|Loading checkpoint shards"), {Phase.RELOADING: 0.5}),
    (
        re.compile(r"Fetching \d+ files|Downloading .*"),
        {Phase.PREPARING: 0.8, Phase.LOADING_MODEL: 0.8, Phase.LOADING_DATASET: 0.3},
    ),
    (re.compile(r"Generating \S+ split|(?:Map|Filter)(?: \(.*\))?"), {Phase.LOADING_DATASET: 0.3}),
)

_LONGEST_LINE: Final = 4096
_INFO = re.compile(r"\[(?:QUARK-)?INFO\]:? (?P<text>.+)")
_EVENT = re.compile(r'\{\s*"ptq"')
_SHARD = re.compile(r"Processing (?P<number>[1-9]\d{0,5})/(?P<total>[1-9]\d{0,5}): ")


class ProgressReader:
    """Follows a log. Phases only move forward; the percentage never falls and reaches 100 only with the end."""

    def __init__(self) -> None:
        self._segments = Segments()
        self._progress = Progress()
        self._flow = Flow.STANDARD
        self._dump = False
        self._traceback = False
        self._fraction = 0.0  # of the current phase
        self._slices: dict[str, _Slice] = {}  # of the current phase, by the bar's name

    @property
    def current(self) -> Progress:
        """How far the run is."""
        return self._progress

    def feed(self, data: bytes) -> list[Progress]:
        """The changes that these bytes of the log bring, in order; the last one is the current state."""
        return self.follow(self._segments.feed(data))

    def follow(self, segments: Iterable[str]) -> list[Progress]:
        """The changes that these segments bring, for who splits the log already. Not to be mixed with `feed`."""
        changes = []
        for segment in segments:
            before = self._progress
            self._read(segment.rstrip())
            if self._progress is not before and self._progress != before:
                changes.append(self._progress)
        return changes

    def finish(self, succeeded: bool = False) -> list[Progress]:
        """The changes at the end of the log. Only who knows the exit status can say that a run is done."""
        changes = self.follow(self._segments.finish())
        before = self._progress
        if succeeded:
            self._enter(Phase.DONE)
        return changes if self._progress is before else [*changes, self._progress]

    def _read(self, line: str) -> None:
        if len(line) > _LONGEST_LINE or self._is_quoted(line):
            return
        if bar := Bar.read(line):
            self._read_bar(bar)
            # A program that writes to standard output does not know of the unfinished bar on standard error.
            if bar.rest:
                self._read(bar.rest)
        elif said := _INFO.fullmatch(line):
            self._read_info(said["text"])
        elif _EVENT.match(line):
            self._read_event(line)

    def _is_quoted(self, line: str) -> bool:
        """Whether a line belongs to a traceback or to the dumped configuration, which may quote anything."""
        indented = not line or line[0].isspace()
        if self._dump:
            self._dump = indented or line == "QConfig("
            return self._dump or line == ")"
        if self._traceback and indented:
            return True
        self._traceback = line.startswith("Traceback (most recent call last):")
        return self._traceback

    def _read_info(self, text: str) -> None:
        if phase := _phase_of(text):
            self._enter(phase)
        elif (flow := _DUMPS.get(text)) is not None:
            self._dump = True
            if flow is not Flow.STANDARD:
                self._flow = flow
        elif text.startswith("Perplexity: "):
            self._learn_perplexity("perplexity", text.removeprefix("Perplexity: "))
        elif self._flow is Flow.FILE_TO_FILE and (shard := _SHARD.match(text)):
            # Said when a shard begins, so the ones before it are done.
            self._advance(Phase.EXPORTING, Bar("shards", int(shard["number"]) - 1, int(shard["total"])), 1)

    def _read_bar(self, bar: Bar) -> None:
        now = self._progress.phase
        for name, phases in _BARS_ANYWHERE:
            if now in phases and name.fullmatch(bar.name):
                self._advance(now, bar, phases[now])
                return
        if known := _BARS.get(bar.name):
            self._advance(known[0], bar, known[1])
        elif bar.name.startswith("Applying "):  # "Applying GptqProcessor" and the like
            self._advance(Phase.OPTIMIZING, bar, _STEP)

    def _read_event(self, line: str) -> None:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return
        match event:
            case {"ptq": "phase", "phase": str(name)} if name in _RANK:
                self._flow = Flow.OWN
                self._enter(Phase(name))
            case {"ptq": "progress", "phase": str(name), "done": done, "total": total} if name in _RANK:
                self._flow = Flow.OWN
                if _is_count(done) and _is_count(total):
                    rate, left = _number(event.get("rate")), _number(event.get("seconds_left"))
                    self._advance(Phase(name), Bar(f"event {name}", done, total, rate, left), 1)
            case {"ptq": "perplexity", "of": "original" | "quantized" as of, "value": float() | int() | None as value}:
                self._flow = Flow.OWN
                # JSON has no word for infinite or undefined: a measurement that gave no number arrives as null.
                measured = math.nan if value is None else value
                self._learn_perplexity("perplexity" if of == "quantized" else "original_perplexity", measured)
            case {"ptq": "done"}:
                self._flow = Flow.OWN
                self._enter(Phase.DONE)

    def _learn_perplexity(self, which: str, value: str | float) -> None:
        if isinstance(value, bool):
            return
        try:
            # A collapsed model may well have an infinite perplexity or none: that is a result and is kept.
            number = float(value)
        except (ValueError, OverflowError):
            return
        self._progress = self._progress.model_copy(update={which: number})

    def _enter(self, phase: Phase) -> None:
        """Moves on to a later phase; stays where the phase is over already."""
        if _RANK[phase] <= _RANK[self._progress.phase]:
            return
        self._fraction = 0.0
        self._slices.clear()
        self._change(phase=phase, done=None, total=None, rate=None, seconds_left=None)

    def _advance(self, phase: Phase, bar: Bar, share: float) -> None:
        """Counts a bar's steps within its phase."""
        if phase is Phase.DONE:
            return
        self._enter(phase)
        if phase is not self._progress.phase or share == _WITHIN_A_STEP:
            return
        part = self._slices.get(bar.name)
        if part is None or bar.total != part.total or bar.done < part.done:
            part = self._slices[bar.name] = _Slice(self._fraction, (1 - self._fraction) * share, bar.total)
        self._fraction = max(self._fraction, part.filled(bar.done))
        self._change(done=bar.done, total=bar.total, rate=bar.rate, seconds_left=_left(bar))

    def _change(self, **changes: Any) -> None:
        phase = changes.get("phase", self._progress.phase)
        start, end = window(self._flow, phase)
        percent = 100.0 if phase is Phase.DONE else round(start + (end - start) * self._fraction, 2)
        changes["percent"] = max(self._progress.percent, percent)
        self._progress = self._progress.model_copy(update=changes)


@cache
def window(flow: Flow, phase: Phase) -> tuple[float, float]:
    """Where a phase begins and ends within the whole run, in percent."""
    start = sum(weights[flow.value] for earlier, weights in WEIGHTS.items() if _RANK[earlier] < _RANK[phase])
    return start, start + WEIGHTS[phase][flow.value]


@dataclass
class _Slice:
    """The part of a phase that one bar fills, from `start` on, as fractions of the phase."""

    start: float
    width: float
    total: int | None
    done: int = 0

    def filled(self, done: int) -> float:
        """How much of the phase is over after so many steps of the bar."""
        self.done = done
        return self.start + self.width * min(done / self.total, 1.0) if self.total else self.start


def _left(bar: Bar) -> float | None:
    """Seconds until a bar is full: what it says itself, else what is left of it at its rate."""
    if bar.seconds_left is not None or bar.total is None or not bar.rate or bar.done > bar.total:
        return bar.seconds_left
    left = (bar.total - bar.done) / bar.rate
    return left if math.isfinite(left) else None


def _phase_of(text: str) -> Phase | None:
    if phase := _LINES.get(text):
        return phase
    return next((phase for start, phase in _STARTS_OF_LINES if text.startswith(start)), None)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e300 else None
