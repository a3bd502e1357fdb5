"""Export, entry point and remote code."""

from __future__ import annotations

from bot.conversation.words import values
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered
from bot.conversation.words.phrases import PhraseBook

_EXPORT = PhraseBook(
    "save as",
    "save it as",
    "saved as",
    "export",
    "exported",
    "export it",
    "model export",
    "model_export",
    "export format",
    "output format",
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
    "your script": "own",
    "the runners script": "own",
    "the runners own script": "own",
    "runners own script": "own",
    "its own script": "own",
    "site": "site",
    "site script": "site",
    "the site script": "site",
    "sites script": "site",
    "the sites script": "site",
    "sites own script": "site",
    "the sites own script": "site",
    "standalone script of the site": "site",
    "the standalone script of the site": "site",
    "our sites script": "site",
    "our sites own script": "site",
    "our site script": "site",
    "standalone script": "site",
    "the standalone script": "site",
    "our standalone script": "site",
    "the sites standalone script": "site",
    "script of the site": "site",
    "the script of the site": "site",
    "script of our site": "site",
    "quark_cli": "quark_cli",
    "quark cli": "quark_cli",
    "quantize_quark": "quantize_quark",
    "quantize_quark.py": "quantize_quark",
    "auto": "auto",
}
_ENTRY_POINT_NAME = PhraseBook(*_ENTRY_POINTS)
_ENTRY_POINT_ALONE = PhraseBook(*(name for name in _ENTRY_POINTS if name not in ("own", "auto", "site")))

_DISTRUSTS = PhraseBook(
    *(f"{no} trust {code}" for no in ("do not", "dont", "never", "no") for code in ("remote code", "the remote code")),
    *(f"{no} allow remote code" for no in ("do not", "dont", "never")),
    *("do not trust_remote_code", "dont trust_remote_code", "no_trust_remote_code", "no trust_remote_code"),
    *(
        f"{no} {trust} the models {code}"
        for no in ("do not", "dont", "never")
        for trust in ("trust", "allow", "run")
        for code in ("code", "own code")
    ),
    *("disallow remote code", "forbid remote code", "distrust remote code"),
)
_TRUSTS = PhraseBook(
    *("trust remote code", "trust_remote_code", "trust the remote code", "trusting remote code"),
    *("trust the models code", "trust the models own code", "trust its code", "allow the models code"),
    *("allow the models own code", "run the models own code", "allow its code"),
    *("allow remote code", "enable remote code", "with remote code", "allow the remote code"),
)
_ASSIGNS = PhraseBook("=", ":", "to", "is")


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
    cursor.takes(_ENTRY_POINT)
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
