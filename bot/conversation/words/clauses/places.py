"""Which model, on which runner, to which folder."""

from __future__ import annotations

from bot.conversation.words import names
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered
from bot.conversation.words.phrases import PhraseBook

_MODEL = PhraseBook("model", "the model", "model_dir", "model dir", "model path", "model_path")
_FROM = PhraseBook("from")
_TO = PhraseBook("to", "with", "by")
_REVISION = PhraseBook("revision", "at revision", "rev", "commit", "at commit", "branch", "tag")
_RUNNER = PhraseBook("runner", "on runner", "the runner", "on the runner", "with runner", "via runner")
_ON = PhraseBook("on", "on the", "via")
_RUNNER_WORD = PhraseBook("runner")
_OUTPUT = PhraseBook(
    *("output", "output to", "output_dir", "output dir", "output folder", "output directory", "output path", "out dir"),
    *("save to", "save it to", "save in", "save it in", "save into", "save as", "saved to", "write to", "write it to"),
    *(
        "export to",
        "export it to",
        "export into",
        "write into",
        "store in",
        "store it in",
        "put it in",
        "put it into",
        "export to folder",
        "results to",
        "to folder",
    ),
)
_INTO = PhraseBook("into", "to", "in", "under")
_ASSIGNS = PhraseBook("=", ":")
_RELATIVE_BEHIND = PhraseBook("=", ":", "to", "is", "as", "in")


def model(cursor: Cursor, gathered: Gathered) -> bool:
    """ "model Qwen/Qwen3-8B", "use Qwen/Qwen3-8B", "change the model to ..."."""
    if cursor.takes(_MODEL):
        if cursor.takes(_FROM) and (names.model(cursor, any_name=True) is None or not cursor.takes(_TO)):
            return False
        cursor.equals()
    elif not (cursor.headed and names.is_hub_model(cursor.token)) or cursor.moves:
        return False
    found = names.model(cursor)
    return found is not None and tell_model(found, gathered)


def tell_model(found: tuple[str, str | None], gathered: Gathered) -> bool:
    """A model, and its revision where one hung on it."""
    name, revised = found
    gathered.own("model", name)
    return revised is None or gathered.own("revision", revised)


def revision(cursor: Cursor, gathered: Gathered) -> bool:
    """ "revision abc123"."""
    if not cursor.takes(_REVISION):
        return False
    cursor.takes(_TO if cursor.moves else _ASSIGNS)
    found = names.revision(cursor)
    return found is not None and gathered.own("revision", found)


def runner(cursor: Cursor, gathered: Gathered) -> bool:
    """ "runner b", "on mi300" where that is one."""
    if cursor.takes(_RUNNER):
        cursor.equals()
        found = names.runner(cursor, named=True)
    else:
        found = names.runner(cursor) if cursor.takes(_ON) else None
        if found is not None:
            cursor.takes(_RUNNER_WORD)
    return found is not None and gathered.own("runner", found)


def output(cursor: Cursor, gathered: Gathered) -> bool:
    """ "into /out/foo", "output /out/foo", "save it to /out/foo"."""
    if cursor.takes(_OUTPUT):
        cursor.takes(_RELATIVE_BEHIND)
        found = names.path(cursor, relative=True)
    else:
        found = names.path(cursor) if cursor.takes(_INTO) else None
    return found is not None and gathered.own("output_dir", found)
