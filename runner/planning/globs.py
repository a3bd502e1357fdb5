"""Globs over many numbered names at once, without writing the names down.

45,000 expert layers are a dozen patterns whose `*` are numbers. A glob is run over such a pattern as an automaton: text
moves its set of positions on, and a number splits the names among the sets that its digits lead to. Names that lead to
the same set are counted together from there on, so the cost grows with the numbers of a pattern and not with their
combinations. Positions are bits of one integer (the Shift-And method), and several globs share that integer.

The dialect is that of `fnmatch.fnmatchcase`, which on Linux is what the engine calls. Source: amd-quark 0.13.
"""

from __future__ import annotations

import fnmatch
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

_WILDCARDS = "*?["
_DIGITS = "0123456789"
_MOST_NUMBERS = 1_000_000  # of one span; no model has as many layers, and a document from elsewhere may say anything
_SPAN = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def has_wildcard(pattern: str) -> bool:
    """Whether a pattern can match several names."""
    return any(character in pattern for character in _WILDCARDS)


def parse_numbers(text: str) -> tuple[int, ...] | None:
    """The numbers of "0,2,4-9", lowest first; None for a text that says no set of numbers."""
    found: list[int] = []
    for part in text.split(","):
        span = _SPAN.fullmatch(part.strip())
        first, last = (int(span[1]), int(span[2] or span[1])) if span else (0, -1)
        if not 0 <= last - first < _MOST_NUMBERS:
            return None
        found += range(first, last + 1)
    return tuple(found) if all(one < other for one, other in pairwise(found)) else None


class Globs:
    """Several globs as one automaton. A state is an integer: a bit for each position that a name may have reached."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self.start = 0
        self._stars = 0
        self._ends: list[int] = []
        self._items: list[tuple[int, str, re.Pattern[str] | None]] = []
        self._moves: dict[str, int] = {}
        self._slots: dict[tuple[int, tuple[int, ...]], Counter[int]] = {}
        place = 0
        for pattern in patterns:
            self.start |= 1 << place
            for item in _items(pattern):
                if item == "*":
                    self._stars |= 1 << place
                else:
                    self._items.append((1 << place, item, _one_of(item)))
                place += 1
            self._ends.append(1 << place)
            place += 1
        self.start = self._closed(self.start)

    def text(self, state: int, text: str) -> int:
        """The state after a text."""
        for character in text:
            if not state:
                return 0
            moves = self._moves.get(character)
            if moves is None:
                moves = self._moves[character] = self._accepting(character)
            state = self._closed(((state & moves) << 1) | (state & self._stars))
        return state

    def numbers(self, state: int, numbers: tuple[int, ...]) -> Counter[int]:
        """How many of the numbers lead to which state."""
        key = (state, numbers)
        found = self._slots.get(key)
        if found is None:
            found = self._slots[key] = self._after(state, numbers)
        return found

    def accepted(self, state: int) -> frozenset[int]:
        """Which of the globs, by their place, match a name that ended in this state."""
        return frozenset(place for place, end in enumerate(self._ends) if state & end)

    def _closed(self, state: int) -> int:
        return state | ((state & self._stars) << 1)  # one pass will do: no star follows a star

    def _accepting(self, character: str) -> int:
        hits = (bit for bit, item, kind in self._items if (kind.match(character) if kind else item == character))
        return sum(hits)

    def _after(self, state: int, numbers: tuple[int, ...]) -> Counter[int]:
        alike = self._whatever_digits(state)
        if alike is not None:
            return Counter({alike: len(numbers)})
        known = {"": state}

        def reached(digits: str) -> int:
            if digits not in known:
                known[digits] = self.text(reached(digits[:-1]), digits[-1])
            return known[digits]

        return Counter(reached(str(number)) for number in numbers)

    def _whatever_digits(self, state: int) -> int | None:
        """The state after any number, where its digits make no difference: most patterns name no number."""
        first = {self.text(state, digit) for digit in _DIGITS}
        if len(first) > 1:
            return None
        (after,) = first
        return after if all(self.text(after, digit) == after for digit in _DIGITS) else None


@lru_cache(maxsize=1024)
def automaton(patterns: tuple[str, ...]) -> Globs:
    """The automaton of several globs; plans ask about the same ones again and again."""
    return Globs(patterns)


@dataclass(frozen=True)
class Names:
    """All names of a pattern: `parts` are the texts around its `*`, `slots` the numbers of each, lowest first."""

    parts: tuple[str, ...]
    slots: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """How many names these are: every combination of the numbers."""
        return math.prod(len(slot) for slot in self.slots)

    def ways(self, patterns: Sequence[str]) -> dict[frozenset[str], int]:
        """How many names match exactly which of the patterns. The counts add up to all names.

        Whole names among the patterns are looked up one by one: as parts of the automaton, many of them would keep its
        states apart for nothing.
        """
        globs = tuple(dict.fromkeys(pattern for pattern in patterns if has_wildcard(pattern)))
        found: Counter[frozenset[str]] = Counter()
        for kinds, count in self._counted(automaton(globs)).items():
            found[frozenset(globs[place] for place in kinds)] += count
        for name in dict.fromkeys(pattern for pattern in patterns if not has_wildcard(pattern)):
            count = self.count(name)
            if count:
                also = frozenset(glob for glob in globs if fnmatch.fnmatchcase(name, glob))
                found[also] -= count
                found[also | {name}] += count
        return {kinds: count for kinds, count in found.items() if count}

    def count(self, pattern: str) -> int:
        """How many of the names a pattern matches."""
        if not has_wildcard(pattern) and self._shape.fullmatch(pattern) is None:
            return 0
        counted = self._counted(automaton((pattern,)))
        return sum(count for kinds, count in counted.items() if kinds)

    def examples(self, pattern: str) -> Iterator[str]:
        """The names that a pattern matches, lowest numbers first."""
        globs = automaton((pattern,))
        yield from self._walk(globs, 0, globs.text(globs.start, self.parts[0]), self.parts[0], {})

    @cached_property
    def _shape(self) -> re.Pattern[str]:
        return re.compile(r"\d+".join(re.escape(part) for part in self.parts))

    def _counted(self, globs: Globs) -> Counter[frozenset[int]]:
        states = Counter({globs.text(globs.start, self.parts[0]): 1})
        for slot, part in zip(self.slots, self.parts[1:], strict=True):
            later: Counter[int] = Counter()
            for state, names in states.items():
                for after, numbers in globs.numbers(state, slot).items():
                    later[globs.text(after, part)] += names * numbers
            states = later
        found: Counter[frozenset[int]] = Counter()
        for state, names in states.items():
            found[globs.accepted(state)] += names
        return found

    def _walk(
        self, globs: Globs, place: int, state: int, name: str, ends: dict[tuple[int, int], bool]
    ) -> Iterator[str]:
        if not self._leads(globs, place, state, ends):
            return
        if place == len(self.slots):
            yield name
            return
        part = self.parts[place + 1]
        for number in self.slots[place]:
            after = globs.text(state, f"{number}{part}")
            yield from self._walk(globs, place + 1, after, f"{name}{number}{part}", ends)

    def _leads(self, globs: Globs, place: int, state: int, ends: dict[tuple[int, int], bool]) -> bool:
        """Whether any name that goes on from here is matched."""
        key = (place, state)
        if key not in ends:
            if place == len(self.slots) or not state:
                ends[key] = bool(globs.accepted(state))
            else:
                after = globs.numbers(state, self.slots[place])
                part = self.parts[place + 1]
                ends[key] = any(self._leads(globs, place + 1, globs.text(one, part), ends) for one in after)
        return ends[key]


def _items(pattern: str) -> Iterable[str]:
    """The parts of a glob that match one character each, and its stars; stars in a row are one."""
    found: list[str] = []
    place = 0
    while place < len(pattern):
        end = _bracket(pattern, place) if pattern[place] == "[" else place + 1
        item = pattern[place:end]
        if item != "*" or found[-1:] != ["*"]:
            found.append(item)
        place = end
    return found


def _bracket(pattern: str, place: int) -> int:
    """Where the set that begins at `place` ends. A bracket that nothing closes stands for itself."""
    start = place + 1
    if pattern[start : start + 1] == "!":
        start += 1
    end = pattern.find("]", start + 1)  # a bracket right at the beginning belongs to the set
    return end + 1 if end >= 0 else place + 1


def _one_of(item: str) -> re.Pattern[str] | None:
    """What an item matches beside itself; None for a plain character."""
    return re.compile(fnmatch.translate(item)) if item == "?" or (item[0] == "[" and len(item) > 1) else None
