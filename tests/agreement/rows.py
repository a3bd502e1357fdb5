"""A recorded row: what was tried with the real engine, what became of it, and what a planner has to say of it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import isfinite
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
        return _excluded(self.observed)


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
    """All rows of a file.

    Raises ValueError with a sentence that names the file, and the line and the column where one of them is wrong.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as problem:
        raise ValueError(f"{path} cannot be read: {problem.strerror}.") from None
    except UnicodeDecodeError as problem:
        before = problem.object[: problem.start]
        line, column = before.count(b"\n") + 1, problem.start - before.rfind(b"\n")
        raise ValueError(f"{path}, line {line}, byte {column}: this is no UTF-8 text.") from None
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        names = next(lines, [])
        missing = [name for name in COLUMNS if name not in names]
        if missing:
            raise ValueError(f"{path} has no column {', '.join(missing)}.")
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{path}, line 1: there are two columns {', '.join(twice)}.")
        return list(_rows(lines, names, path))
    except csv.Error as problem:
        raise ValueError(f"{path}, line {max(lines.line_num, 1)}: this is no CSV ({problem}).") from None


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


def _rows(lines: Any, names: list[str], path: Path) -> Iterator[Row]:
    """The rows behind the names of the columns; a row that spans lines has the number of its first."""
    before = lines.line_num
    for cells in lines:
        number, before = before + 1, lines.line_num
        if not cells:
            continue  # an empty line
        if len(cells) != len(names):
            where = f"{path}, line {number}, column {names[len(cells)]}" if len(cells) < len(names) else ""
            wrong = f"{len(cells)} cells instead of {len(names)}"
            raise ValueError(f"{where or f'{path}, line {number}, behind the last column'}: the row has {wrong}.")
        try:
            yield _row(number, dict(zip(names, cells, strict=True)))
        except _WrongCell as problem:
            raise ValueError(f"{path}, line {number}, column {problem.column}: {problem}.") from None


class _WrongCell(Exception):
    """A cell that cannot be read; its text says why."""

    def __init__(self, column: str, why: str) -> None:
        super().__init__(why)
        self.column = column


def _row(number: int, line: Mapping[str, str]) -> Row:
    for column in ("model", "scheme", "result(ok/error class)"):
        if not line[column].strip():
            raise _WrongCell(column, "it is empty")
    observed = line["warnings_and_obs"]
    try:
        _excluded(observed)
    except ValueError:
        raise _WrongCell("warnings_and_obs", "what stands behind exclude= is no list of names") from None
    return Row(
        number=number,
        model=line["model"],
        scheme=line["scheme"],
        algorithms=[name for name in re.split(r"[+,]", line["algo"]) if name],
        kv=line["kv"] or None,
        extra=_extra(line["extra"]),
        result=line["result(ok/error class)"],
        stage=line["stage"],
        message=line["message"],
        observed=observed,
        output_bytes=_number(line, "output_bytes"),
        source_bytes=_number(line, "src_bytes") or 0,
    )


def _extra(text: str) -> dict[str, Any]:
    """The options of a row: a JSON object. Those that are judged here have to be of their kind."""
    try:
        extra = json.loads(text) if text else {}
    except (ValueError, RecursionError) as problem:
        raise _WrongCell("extra", f"{_shown(text)} is no JSON ({problem})") from None
    if not isinstance(extra, dict):
        raise _WrongCell("extra", f"{_shown(text)} is no JSON object")
    overrides, excluded = extra.get("layer_config", {}), extra.get("exclude_layers", [])
    if not isinstance(overrides, dict) or not all(isinstance(scheme, str) for scheme in overrides.values()):
        raise _WrongCell("extra", "layer_config has to give a scheme for each pattern")
    if not isinstance(excluded, list) or not all(isinstance(pattern, str) for pattern in excluded):
        raise _WrongCell("extra", "exclude_layers has to be a list of patterns")
    if not isinstance(extra.get("algo_from", ""), str):
        raise _WrongCell("extra", "algo_from has to be a family")
    return extra


def _number(line: Mapping[str, str], column: str) -> int | None:
    text = line.get(column)
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        raise _WrongCell(column, f"{_shown(text)} is no number") from None
    if not isfinite(number) or number < 0 or number != int(number):
        raise _WrongCell(column, f"{_shown(text)} is no number of bytes")
    return int(number)


def _excluded(observed: str) -> list[str] | None:
    """The names in what a row observed; None where it has none. Raises ValueError for something else than names."""
    found = re.search(r"exclude=(\[[^\]]*\])", observed)
    return json.loads(found[1].replace("'", '"')) if found else None


def _shown(text: str) -> str:
    return ascii(text)[:80]


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
