"""The two tables that the engine logs while it replaces modules.

They are the only evidence that exclusions and overrides took effect: an exclusion or an override that matches nothing
is no error to the engine. Source: seen with amd-quark 0.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ExclusionTable:
    """How many modules each exclusion pattern kept from being quantized."""

    modules_excluded: Mapping[str, int] = field(default_factory=dict)

    @property
    def without_effect(self) -> list[str]:
        """The patterns that matched no module."""
        return [pattern for pattern, count in self.modules_excluded.items() if count == 0]


@dataclass(frozen=True)
class ReplacementTable:
    """For each class of module, how many the model has and how many were replaced by quantized ones."""

    modules: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def replaced(self) -> int:
        """All modules that were replaced."""
        return sum(replaced for _, replaced in self.modules.values())


@dataclass(frozen=True)
class Tables:
    """Both tables of one log; None for one that the log does not hold. Without exclusions there is no such table."""

    exclusions: ExclusionTable | None = None
    replacements: ReplacementTable | None = None


def read_tables(segments: Iterable[str]) -> Tables:
    """Both tables from the segments of a log. Where the engine logged a table twice, the last one counts."""
    reader = TableReader()
    for segment in segments:
        reader.read(segment)
    return reader.tables


class TableReader:
    """Picks the two tables out of a log, segment by segment."""

    def __init__(self) -> None:
        self._excluded: dict[str, int] | None = None
        self._replaced: dict[str, tuple[int, int]] | None = None
        self._within: re.Pattern[str] | None = None

    @property
    def tables(self) -> Tables:
        """What was read so far."""
        return Tables(
            None if self._excluded is None else ExclusionTable(dict(self._excluded)),
            None if self._replaced is None else ReplacementTable(dict(self._replaced)),
        )

    def read(self, segment: str) -> None:
        """Takes one more segment."""
        line = segment.strip()
        if line.startswith("|"):
            self._read_row(line)
        elif _NEXT_MESSAGE.match(line):
            # Other lines may come from standard output and stand between two rows.
            self._within = None

    def _read_row(self, line: str) -> None:
        if _EXCLUSION_HEADER.fullmatch(line):
            self._within, self._excluded = _EXCLUSION, {}
        elif _REPLACEMENT_HEADER.fullmatch(line):
            self._within, self._replaced = _REPLACEMENT, {}
        elif self._within is None:
            return
        elif row := self._within.fullmatch(line):
            self._keep(row)
        else:
            self._within = None  # another table, such as the one of modules that were quantized before

    def _keep(self, row: re.Match[str]) -> None:
        if self._within is _EXCLUSION and self._excluded is not None:
            self._excluded[row["name"].strip()] = int(row["count"])
        elif self._replaced is not None:
            self._replaced[row["name"].strip()] = int(row["original"]), int(row["replaced"])


_NEXT_MESSAGE = re.compile(r"\[QUARK-[A-Z]+\]: ")
_EXCLUSION_HEADER = re.compile(r"\|\s*Exclude pattern\s*\|\s*Number of modules excluded\s*\|")
_REPLACEMENT_HEADER = re.compile(r"\|\s*Original module\s*\|\s*Number original\s*\|\s*Number replaced\s*\|")
# A pattern may hold a bar itself: the name is all that stands before the numbers.
_EXCLUSION = re.compile(r"\|(?P<name>.*)\|\s*(?P<count>\d{1,9})\s*\|")
_REPLACEMENT = re.compile(r"\|(?P<name>.*)\|\s*(?P<original>\d{1,9})\s*\|\s*(?P<replaced>\d{1,9})\s*\|")
