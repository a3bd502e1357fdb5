"""What a person wants of the model, where no scheme is named: a priority, or the GPU that will serve it."""

from __future__ import annotations

import re

from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered
from bot.conversation.words.phrases import PhraseBook

_SPOKEN = {
    "accuracy": ("best accuracy", "highest accuracy", "maximum accuracy", "max accuracy", "most accurate"),
    "size": ("smallest", "smallest size", "minimal size", "minimum size", "as small as possible"),
    "speed": ("fastest", "best speed", "highest speed", "maximum speed", "as fast as possible"),
    "cpu": ("for cpu", "for a cpu", "for cpus", "for the cpu", "cpu deployment", "cpu inference"),
    "gguf": ("gguf",),
}
_PRIORITIES = {phrase: priority for priority, spoken in _SPOKEN.items() for phrase in spoken}
_WISH = PhraseBook(*_PRIORITIES)
_PRIORITY = PhraseBook("priority", "optimize for", "optimise for", "prioritize", "prioritise", "optimized for")
_BY_NAME = PhraseBook(*_SPOKEN)
_BEFORE = PhraseBook("for", "for the", "with the", "at the", "to", "as", "as a", "in")
_AFTER = PhraseBook("model", "format", "deployment", "inference", "file")

_HARDWARE = PhraseBook("hardware", "target hardware", "gpu", "target gpu")
_ON = PhraseBook(
    *("for", "on", "for an", "for a", "for the", "on an", "on a", "on the", "im on", "i am on", "were on", "we are on"),
    *("to run on", "to serve on", "served on", "serve on", "targeting", "deploy on", "to deploy on", "deployed on"),
)
_VENDOR = PhraseBook("amd", "nvidia", "amd instinct", "instinct")
_GPU = PhraseBook("gpu", "gpus", "hardware", "card", "cards")
# AMD Instinct and its architectures; NVIDIA data centre and workstation GPUs.
_GPU_NAME = re.compile(r"mi[0-9]{3}[a-z]?|gfx[0-9a-f]{3,4}|g?[hb][0-9]{2,3}|[al][0-9]{1,3}s?|rtx[0-9]{4}")


def priority(cursor: Cursor, gathered: Gathered) -> bool:
    """ "best accuracy", "smallest model", "for cpu", "priority speed"."""
    named = cursor.takes(_PRIORITY) or (cursor.headed and cursor.before in ("prefer", "about"))
    if named:
        cursor.equals()
        cursor.skips_article()
    elif cursor.moves:
        return False
    elif not cursor.sees(_WISH):
        cursor.takes(_BEFORE)
    name = _PRIORITIES.get(cursor.reads(_WISH)) or (cursor.reads(_BY_NAME) if named else "")
    if not name:
        return False
    cursor.skips(_AFTER)
    return gathered.choose("priority", name)


def hardware(cursor: Cursor, gathered: Gathered) -> bool:
    """ "for H100", "I'm on AMD MI300X", "hardware MI355X"."""
    if cursor.takes(_HARDWARE):
        cursor.equals()
    elif not cursor.takes(_ON):
        return False
    cursor.takes(_VENDOR)
    name = cursor.key
    if not _GPU_NAME.fullmatch(name):
        return False
    cursor.at += 1
    cursor.takes(_GPU)
    return gathered.choose("hardware", name if name.startswith("gfx") else name.upper())
