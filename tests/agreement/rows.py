"""A recorded row: what was tried with the real engine, what became of it, and what a planner has to say of it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

COLUMNS = ("model", "scheme", "algo", "kv", "extra", "result(ok/error class)", "stage", "message", "warnings_and_obs")

_EXPLAINED: tuple[tuple[str, str, str], ...] = (
    # class of the error, its message, and the code that stops such a plan; the first line that fits counts
    ("NotImplementedError", r"No built-in \w+ configuration", "algorithm_not_configured"),
    ("KeyError", r"'?autoround'?", "autoround_fails"),
    ("ValueError", r"Unsupported algorithm", "unknown_algorithm"),
    ("ValueError", r"Unsupported attention scheme", "unknown_attention_scheme"),
    ("ValueError", r"Unsupported KV cache (?:quantization )?scheme", "unknown_kv_scheme"),
    ("ValueError", r"Unsupported quantization scheme", "unknown_scheme"),
    ("KeyError", r"'?{scheme}'?", "unknown_scheme"),
    ("ValueError", r"not divisible by group_size", "group_size_divides"),
    ("RuntimeError", r"only implemented in CUDA", "algorithm_needs_gpu"),
    ("ValueError", r"The qmin and qmax of .* are not defined", "not_exportable"),
    ("AssertionError", r"", "not_exportable"),
)
_AT_EXPORT = ("not_exportable",)


@dataclass(frozen=True)
class Row:
    """One line of the file."""

    number: int
    model: str
    scheme: str
    algorithms: list[str]
    kv: str | None
    extra: dict[str, Any]
    result: str
    stage: str
    message: str
    observed: str
    output_bytes: int | None
    source_bytes: int

    @property
    def worked(self) -> bool:
        """Whether the engine went through to its export."""
        return self.result == "ok"

    @property
    def shown(self) -> str:
        """The row in a line."""
        extra = json.dumps(self.extra) if self.extra else ""
        parts = (self.model, self.scheme, "+".join(self.algorithms), f"kv={self.kv}" if self.kv else "", extra)
        return f"line {self.number}: {' '.join(part for part in parts if part)}"

    @property
    def excluded(self) -> list[str] | None:
        """Names that the engine says it excluded; None where the row does not say, or says only the first of them."""
        found = re.search(r"exclude=(\[[^\]]*\])", self.observed)
        return json.loads(found[1].replace("'", '"')) if found else None


@dataclass(frozen=True)
class Expected:
    """What the planner has to say: by which code it may be stopped (empty: not at all), and what it has to warn of.

    `may_stop` are codes that may stop a row that ran, because nothing of what was asked came of it. `unknown` says why
    the row cannot be judged.
    """

    stopped_by: str = ""
    warned_of: frozenset[str] = field(default_factory=frozenset)
    may_stop: frozenset[str] = field(default_factory=frozenset)
    unknown: str = ""

    @property
    def kind(self) -> str:
        """The kind of row, as the table counts it."""
        if self.unknown:
            return "not understood"
        if self.stopped_by:
            return f"fails: {self.stopped_by}"
        if self.may_stop:
            return f"works in vain: {', '.join(sorted(self.may_stop | self.warned_of))}"
        return f"works, but: {', '.join(sorted(self.warned_of))}" if self.warned_of else "works"


def read(path: Path) -> list[Row]:
    """All rows of a file. Raises ValueError where it has other columns."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file)
        missing = [name for name in COLUMNS if name not in (lines.fieldnames or [])]
        if missing:
            raise ValueError(f"{path} has no column {', '.join(missing)}.")
        return [_row(number, line) for number, line in enumerate(lines, start=2)]


def expected(row: Row, names: list[str], default_exclusions: list[str]) -> Expected:
    """What the planner has to say of a row. `names` are those of all linear layers of the model."""
    if row.worked:
        warned, may_stop = _without_effect(row, names, default_exclusions)
        return Expected(warned_of=frozenset(warned), may_stop=frozenset(may_stop))
    for kind, message, code in _EXPLAINED:
        schemes = (row.scheme, *row.extra.get("layer_config", {}).values())
        pattern = message.replace("{scheme}", f"(?:{'|'.join(map(re.escape, schemes))})")
        at_export = code not in _AT_EXPORT or row.stage == "export"
        if kind == row.result and re.search(pattern, row.message) and at_export:
            return Expected(stopped_by=code)
    return Expected(unknown=f"no code is known for {row.result} at {row.stage}: {row.message[:100]}")


def _without_effect(row: Row, names: list[str], defaults: list[str]) -> tuple[set[str], set[str]]:
    """What of a row that ran had no effect, or another one than a person expects."""
    warned: set[str] = set()
    may_stop: set[str] = set()
    if "only implemented in CUDA" in row.observed:
        warned.add("evaluation_needs_gpu")
    elif "forward-after-freeze failed" in row.observed:
        warned.add("result_unusable_here")
    if len(set(row.algorithms)) < len(row.algorithms):
        warned.add("algorithm_repeated")
    if not row.kv and (row.extra.get("min_kv_scale") or row.extra.get("kv_cache_post_rope")):
        warned.add("kv_options_without_scheme")
    asked = row.extra.get("exclude_layers")
    excluded = row.excluded if row.excluded is not None else _matched(asked or [], names)
    if asked is not None:
        own = [pattern for pattern in asked if pattern not in defaults]
        if any(not _matched([pattern], excluded) for pattern in own):
            warned.add("exclusion_matches_nothing")
        if set(_matched(defaults, names)) - set(excluded):
            warned.add("exclusion_dropped")
        if row.model.endswith("_tied") and "lm_head" not in excluded:
            warned.add("tied_head_quantized")
    left_alone = _matched(defaults, names) if asked is None else excluded
    for pattern in row.extra.get("layer_config", {}):
        reached = _matched([pattern], names)
        if not reached and "embed" not in pattern:
            may_stop.add("override_matches_nothing")
        elif set(reached) & set(left_alone):
            warned.add("override_excluded")
    return warned, may_stop


def _matched(patterns: list[str], names: list[str]) -> list[str]:
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


def _row(number: int, line: dict[str, str]) -> Row:
    return Row(
        number=number,
        model=line["model"],
        scheme=line["scheme"],
        algorithms=[name for name in re.split(r"[+,]", line["algo"]) if name],
        kv=line["kv"] or None,
        extra=json.loads(line["extra"]) if line["extra"] else {},
        result=line["result(ok/error class)"],
        stage=line["stage"],
        message=line["message"],
        observed=line["warnings_and_obs"],
        output_bytes=_number(line.get("output_bytes")),
        source_bytes=_number(line.get("src_bytes")) or 0,
    )


def _number(text: str | None) -> int | None:
    return int(float(text)) if text else None


def written_out(patterns: Iterator[tuple[str, list[str]]]) -> list[str]:
    """Every name of groups of layers; for models so small that they can be written down."""
    found: list[str] = []
    for pattern, numbers in patterns:
        names = [pattern]
        for text in numbers:
            first, _, last = text.partition("-")
            span = range(int(first), int(last or first) + 1)
            names = [name.replace("*", str(number), 1) for name in names for number in span]
        found += names
    return found
