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
_REVISION_WORD = PhraseBook("revision", "revisions", "rev")
_SAYS = frozenset({"is", "be", "in", "of", "at", "with", "as"})  # rather describe than set what stands before
_RUNNER = PhraseBook("runner", "on runner", "the runner", "on the runner", "with runner", "via runner")
_ON = PhraseBook("on", "on the", "via", "on a", "on an", "on any", "on one of the", "on our", "on one of our")
_RUNNER_WORD = PhraseBook("runner", "runners", "box", "machine", "node", "host")
_ANY_RUNNER = PhraseBook(
    *(f"{on}{any_} runner" for on in ("", "on ", "via ") for any_ in ("any", "any other", "whichever", "whatever")),
    *(
        "choose the runner yourself",
        "choose a runner yourself",
        "you choose the runner",
        "pick a runner",
        "pick any runner",
    ),
    *("on whichever runner is free", "whichever runner is free", "any runner that is free", "any free runner"),
    *("on any runner that is free", "on any free runner", "runner = any", "runner : any", "runner any", "runner auto"),
)
_SERVES = frozenset({"serving", "inference", "deployment"})  # "for serving on mi300x": what will serve it, not a runner
_OUTPUT = PhraseBook(
    *(
        f"{verb} the {what} {to}"
        for verb in ("put", "write", "save", "store")
        for what in ("output", "result", "results", "model", "quantized model")
        for to in ("in", "into", "to", "under")
    ),
    *("output", "output to", "output_dir", "output dir", "output folder", "output directory", "output path", "out dir"),
    *("save to", "save it to", "save in", "save it in", "save into", "save as", "saved to", "write to", "write it to"),
    *("export to", "export it to", "export into", "write into", "store in", "store it in", "put it in"),
    *("put it into", "export to folder", "results to", "to folder"),
)
_INTO = PhraseBook("into", "to", "in", "under")
_ASSIGNS = PhraseBook("=", ":")
_OUTPUT_FOLDER = PhraseBook(
    *("output", "output_dir", "output dir", "output folder", "output directory", "output path", "out dir"),
    *("output to", "to folder", "export to folder"),
)
_NO_REVISION = PhraseBook("none", "null")
_TO_NONE = PhraseBook("to none", "to null")
_RELATIVE_BEHIND = PhraseBook("=", ":", "to", "is", "as", "in")


def model(cursor: Cursor, gathered: Gathered) -> bool:
    """ "model Qwen/Qwen3-8B", "use Qwen/Qwen3-8B", "change the model to ..."."""
    articled = cursor.articled
    if cursor.takes(_MODEL):
        if cursor.takes(_FROM) and (names.model(cursor, any_name=True) is None or not cursor.takes(_TO)):
            return False
        # "Model tiny" names one; "the model rocks" speaks of it.
        names_it = cursor.told or not (articled or cursor.key in _SAYS)
        cursor.equals()
        found = names.model(cursor, any_name=names_it and names.ends_as_name(cursor))
        return found is not None and tell_model(found, gathered)
    if cursor.moves or not (names.is_hub_model(cursor.token) or (cursor.wished and names.is_place(cursor.token))):
        return False
    found = names.model(cursor) if cursor.headed else None
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
    cursor.takes(_TO if cursor.moves or cursor.sees(_TO_NONE) else _ASSIGNS)
    if cursor.takes(_NO_REVISION):
        return gathered.own("revision", "")
    found = names.revision(cursor)
    return found is not None and gathered.own("revision", found)


def takes_revision(cursor: Cursor) -> bool:
    """Read the word for it."""
    return cursor.takes(_REVISION_WORD)


def runner(cursor: Cursor, gathered: Gathered) -> bool:
    """ "runner b", "on mi300" where that is one or a label of some; "any runner"."""
    if cursor.takes(_ANY_RUNNER):
        return gathered.own("runner", "")
    if cursor.before in _SERVES:
        return False
    if cursor.takes(_RUNNER):
        told = cursor.told
        cursor.equals()
        found = names.runner(cursor, named=True, told=told)
    else:
        found = names.runner(cursor) if cursor.takes(_ON) else None
        if found is not None:
            cursor.takes(_RUNNER_WORD)
    return found is not None and gathered.own("runner", found)


def output(cursor: Cursor, gathered: Gathered) -> bool:
    """ "into /out/foo", "output /out/foo", "save it to /out/foo"."""
    folder, articled = cursor.sees(_OUTPUT_FOLDER), cursor.articled
    if cursor.takes(_OUTPUT):
        names_it = folder and (cursor.told or cursor.before == "to" or not (articled or cursor.key in _SAYS))
        cursor.takes(_RELATIVE_BEHIND)
        found = names.path(cursor, relative=True, any_name=names_it)
    else:
        found = None
        if word := cursor.reads(_INTO):
            found = names.path(cursor, relative=word == "into")
    return found is not None and gathered.own("output_dir", found)
