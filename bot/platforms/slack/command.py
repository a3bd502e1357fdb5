"""An exact command: letter by letter, never through anything that is parsed, and whole where that can be."""

from __future__ import annotations

from bot.cards.card import CommandLine
from bot.cards.texts import plain as visible
from bot.platforms.slack import limits
from bot.platforms.slack.escape import EMPTY, Part, begun, enough, length, single
from bot.platforms.slack.rich import apart, line, preformatted, rich, words
from bot.platforms.slack.room import Room

_DIGEST = 64
_PARTS = 6  # sections into which a command may come apart
_CUT = "This is the beginning of the command only: run_manifest.yaml in this thread holds the whole. "
_APART = "The command stands above in {} parts, which follow one another without a space. "
_TOLD = "digest "


def command_rich(block: CommandLine, room: Room) -> list[Part]:
    """The command in a fixed width, and under it the digest of the manifest that holds it."""
    shown, digest, told = _begin(block, room)
    room.left -= length(shown) + length(told)
    # A command without a letter is shown as such.
    under = line(words(told, italic=True), words(room.take(_TOLD)), words(room.take(digest), code=True))
    return [rich(preformatted(shown or EMPTY), under)]


def command_plain(block: CommandLine, room: Room) -> list[Part]:
    """The command as plain text. It comes apart where a section is full and where it would look like a ping."""
    shown, digest, told = _begin(block, room)
    chunks = [chunk for part in apart(shown) for chunk in _chunks(part)] or [EMPTY]
    most = min(_PARTS, room.blocks - 1)
    if len(chunks) > most:
        chunks, told, room.cut = chunks[:most], _CUT, True
    elif len(chunks) > 1:
        told += _APART.format(len(chunks))
    under = f"{told}{_TOLD}{digest}"
    room.left -= sum(map(length, chunks)) + length(under)
    return [*map(_section, chunks), _section(under)]


def _begin(block: CommandLine, room: Room) -> tuple[str, str, str]:
    """As much of the command as has room, its digest, and what is said where that is not all of it."""
    command, digest = visible(enough(block.command, limits.MESSAGE)), single(block.digest)[:_DIGEST]
    around = length(_TOLD) + length(digest) + length(_APART) + 5
    if length(command) <= room.left - around:
        return command, digest, ""
    room.cut = True
    return begun(command, room.left - around - length(_CUT)), digest, _CUT


def _chunks(text: str) -> list[str]:
    """The text in pieces that fit a section; together they are the text. No piece is blank."""
    pieces = []
    while text:
        piece = begun(text, limits.SECTION)
        pieces.append(piece)
        text = text[len(piece) :]
    return pieces


def _section(text: str) -> Part:
    return {"type": "section", "text": {"type": "plain_text", "text": text, "emoji": False}}
