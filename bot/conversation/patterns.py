"""Whether a pattern of a person matches any layer of a model. Pure.

Patterns are those of `fnmatch` on whole names. A group of layers stands for very many names, so none is written down:
the pattern is followed along the group's own pattern, and a number leads wherever any of its numbers leads. The numbers
of a group are combined freely, so this finds a match exactly where one of the names has it.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from schemas.artifacts.analysis import LinearGroup, ModelAnalysis

_MOST_NUMBERS = 10_000  # of one `*`; no model has as many layers or experts, and a document may say anything
_SPAN = re.compile(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*")
_CLASS = re.compile(r"\[!?+\]?+[^\]]*\]")

_Item = Callable[[str], bool] | None  # what one character has to be; None for any number of any characters


def matches_any(pattern: str, analysis: ModelAnalysis) -> bool:
    """Whether the pattern matches a layer that a plan can quantize; those that the engine never does are none."""
    items = _items(pattern)
    groups = (group for group in analysis.quantization_targets.groups if not group.never_quantized)
    return any(_matches(items, group, analysis) for group in groups)


def _matches(items: tuple[_Item, ...], group: LinearGroup, analysis: ModelAnalysis) -> bool:
    first, *parts = group.pattern.split("*")
    slots = [_numbers(text) for text in group.numbers]
    if len(slots) != len(parts):  # not told: from 0 on, as models number their layers
        most = min(max(group.count, analysis.model.hidden_layers or 1), _MOST_NUMBERS)
        slots = [tuple(map(str, range(most)))] * len(parts)
    places = _after(_closed(frozenset({0}), items), first, items)
    for numbers, part in zip(slots, parts, strict=True):
        reached = frozenset(place for number in numbers for place in _after(places, number, items))
        places = _after(reached, part, items)
    return len(items) in places


def _after(places: frozenset[int], text: str, items: tuple[_Item, ...]) -> frozenset[int]:
    """Where in the pattern one may be after some text, from where one may have been before it."""
    for character in text:
        if not places:
            break
        moved = set[int]()
        for place in places:
            item = items[place] if place < len(items) else _nothing
            if item is None:
                moved.add(place)
            elif item(character):
                moved.add(place + 1)
        places = _closed(frozenset(moved), items)
    return places


def _closed(places: frozenset[int], items: tuple[_Item, ...]) -> frozenset[int]:
    """The same places, and those behind every `*` that may stand for nothing."""
    found = set(places)
    for place in places:
        while place < len(items) and items[place] is None:
            place += 1
            found.add(place)
    return frozenset(found)


@lru_cache(maxsize=256)
def _items(pattern: str) -> tuple[_Item, ...]:
    items: list[_Item] = []
    place = 0
    while place < len(pattern):
        found = _CLASS.match(pattern, place)
        text = found[0] if found else pattern[place]
        items.append(None if text == "*" else _one_character(text))
        place += len(text)
    return tuple(items)


def _one_character(text: str) -> Callable[[str], bool]:
    """What `fnmatch` itself makes of a character, a `?` or a class."""
    compiled = re.compile(fnmatch.translate(text))
    return lambda character: compiled.match(character) is not None


def _nothing(character: str) -> bool:
    del character
    return False


def _numbers(text: str) -> Iterable[str]:
    """The numbers of "0,2,4-9", as names write them."""
    spans = [_SPAN.fullmatch(part) for part in text.split(",")]
    found: list[str] = []
    for span in spans:
        if span is not None:
            first, last = int(span[1]), int(span[2] or span[1])
            found += map(str, range(first, min(last + 1, first + _MOST_NUMBERS)))
    return found[:_MOST_NUMBERS]
