"""Evaluation, export, entry point and remote code."""

from __future__ import annotations

from bot.conversation.words import values
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered
from bot.conversation.words.phrases import PhraseBook

_EVALUATION = PhraseBook(
    *("evaluation intent", "evaluation_intent", "evaluation", "evaluations", "eval", "evaluate"),
)
_LEVELS = {
    "none": "none",
    "off": "none",
    "null": "none",
    "smoke": "smoke",
    "quick": "smoke",
    "full": "full",
    "complete": "full",
}
_LEVEL = PhraseBook(*_LEVELS)
_ADJECTIVE = PhraseBook("smoke", "quick", "full", "complete")
_SKIP_FLAG = PhraseBook("skip_evaluation")
_ON_WHAT = PhraseBook("on", "with", "over")

_EXPORT = PhraseBook(
    "export", "exported", "export it", "model export", "model_export", "export format", "output format"
)
_EXPORT_TO = PhraseBook("as", "to", "in", "for", "=", ":", "is")
_FORMATS = {
    "onnx": "onnx",
    "gguf": "gguf",
    "hf": "hf_format",
    "hf_format": "hf_format",
    "huggingface": "hf_format",
    "hugging face": "hf_format",
    "safetensors": "hf_format",
}
_FORMAT = PhraseBook(*_FORMATS)
_FORMAT_WORD = PhraseBook("format", "files", "file")
_EXPORT_WORD = PhraseBook("export")

_ENTRY_POINT = PhraseBook("entry point", "entry_point", "entrypoint")
_ENTRY_POINTS = {
    "own": "own",
    "own script": "own",
    "our own script": "own",
    "the own script": "own",
    "your own script": "own",
    "quark_cli": "quark_cli",
    "quark cli": "quark_cli",
    "quantize_quark": "quantize_quark",
    "quantize_quark.py": "quantize_quark",
    "auto": "auto",
}
_ENTRY_POINT_NAME = PhraseBook(*_ENTRY_POINTS)
_ENTRY_POINT_ALONE = PhraseBook(*(name for name in _ENTRY_POINTS if name not in ("own", "auto")))

_DISTRUSTS = PhraseBook(
    *(f"{no} trust {code}" for no in ("do not", "dont", "never", "no") for code in ("remote code", "the remote code")),
    *(f"{no} allow remote code" for no in ("do not", "dont", "never")),
    *("do not trust_remote_code", "dont trust_remote_code", "no_trust_remote_code", "no trust_remote_code"),
    *("disallow remote code", "forbid remote code", "distrust remote code"),
)
_TRUSTS = PhraseBook(
    *("trust remote code", "trust_remote_code", "trust the remote code", "trusting remote code"),
    *("allow remote code", "enable remote code", "with remote code", "allow the remote code"),
)
_ASSIGNS = PhraseBook("=", ":", "to", "is")


def evaluation(cursor: Cursor, gathered: Gathered) -> bool:
    """ "full evaluation", "evaluation none"."""
    if cursor.takes(_SKIP_FLAG):
        return gathered.choose("evaluation_intent", "none")
    level = cursor.reads(_ADJECTIVE)
    if not cursor.takes(_EVALUATION):
        return False
    if not level:
        cursor.equals()
        level = cursor.reads(_LEVEL)
    if not level:
        return False
    # On which data a model is evaluated is not for people to choose, and is no calibration data.
    return not cursor.sees(_ON_WHAT) and gathered.choose("evaluation_intent", _LEVELS[level])


def takes_evaluation(cursor: Cursor) -> bool:
    """Read the word for it."""
    return cursor.takes(_EVALUATION)


def export(cursor: Cursor, gathered: Gathered) -> bool:
    """ "export gguf", "as onnx", "gguf export"."""
    said = cursor.takes(_EXPORT)
    cursor.takes(_EXPORT_TO)
    name = cursor.reads(_FORMAT)
    formatted = cursor.takes(_FORMAT_WORD)
    said = said or _ends_with_export(cursor)
    # "gguf" alone is a priority, which brings the scheme and the algorithm with it.
    alone = name in ("onnx", "hf_format") or (formatted and name != "gguf")
    return bool(name) and (said or alone) and not cursor.moves and gathered.choose("model_export", _FORMATS[name])


def _ends_with_export(cursor: Cursor) -> bool:
    """Whether "export" stands behind the format, and does not lead to another one."""
    start = cursor.at
    if not cursor.takes(_EXPORT_WORD):
        return False
    behind = cursor.at
    cursor.takes(_EXPORT_TO)
    ends = not cursor.sees(_FORMAT)
    cursor.at = behind if ends else start
    return ends


def entry_point(cursor: Cursor, gathered: Gathered) -> bool:
    """ "entry point own", "quark_cli", "our own script"."""
    named = cursor.takes(_ENTRY_POINT)
    if named:
        cursor.equals()
    name = cursor.reads(_ENTRY_POINT_NAME if named else _ENTRY_POINT_ALONE)
    return bool(name) and gathered.choose("entry_point", _ENTRY_POINTS[name])


def remote_code(cursor: Cursor, gathered: Gathered) -> bool:
    """ "trust remote code", "do not trust remote code", "trust_remote_code false"."""
    if cursor.takes(_DISTRUSTS):
        return gathered.choose("trust_remote_code", False)
    if not cursor.takes(_TRUSTS):
        return False
    cursor.takes(_ASSIGNS)
    on = values.switch(cursor)
    if on is None and cursor.key == "no":  # "trust remote code no kv cache": whose is the "no"?
        return False
    return gathered.choose("trust_remote_code", True if on is None else on)
