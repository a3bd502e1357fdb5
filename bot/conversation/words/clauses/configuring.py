"""Writing the configuration of an algorithm that the engine has none for."""

from __future__ import annotations

from bot.conversation.words import values
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered
from bot.conversation.words.phrases import PhraseBook

_WRITE = PhraseBook(
    *("write", "derive", "generate", "create", "produce", "prepare", "let it write", "let the runner write", "with"),
    *("and write", "please write", "write me", "with a written", "with the written", "with a derived", "with derived"),
)
_WITH = frozenset({"with"})
_ITS = PhraseBook("its", "its own", "their", "the", "a", "an", "one", "own", "that", "written", "derived", "your")
_CONFIGURATION = PhraseBook(
    *("configuration", "config", "configurations", "configs", "configuration file", "config file", "settings file"),
    *("algorithm configuration", "algorithm config", "algorithm configuration file", "algorithm config file"),
    *("algorithm_config", "algo config", "algo configuration", "quant algo config", "quant_algo_config"),
    *("quant_algo_config_file",),
)
_FOR = PhraseBook("for", "of")
_INTO = PhraseBook("to", "into", "in", "under")
_IT = PhraseBook(
    "it", "this", "that", "the algorithm", "the algorithms", "them", "this model", "this family", "me", "us"
)
_FIELD = PhraseBook("write_algorithm_config", "write algorithm config")
_WRITTEN = frozenset({"written", "derived"})


def configuration(cursor: Cursor, gathered: Gathered) -> bool:
    """ "write the configuration", "derive an awq config", "write a config for it", "write_algorithm_config true"."""
    if cursor.takes(_FIELD):
        cursor.equals()
        on = values.switch(cursor)
        return gathered.choose("write_algorithm_config", True if on is None else on)
    how = cursor.reads(_WRITE)
    if not how:
        # "Use awq with its written configuration": the word for "with" is read between clauses.
        started = cursor.at
        cursor.skips(_ITS)
        if not {token.key for token in cursor.tokens[started : cursor.at]} & _WRITTEN:
            return False
    elif how in _WITH and not _says_written(cursor):
        return False
    return takes_configuration(cursor) and gathered.choose("write_algorithm_config", True)


def takes_configuration(cursor: Cursor) -> bool:
    """Read the word for one, with the algorithm that it is for, if it is named."""
    start = cursor.at
    cursor.skips(_ITS)
    values.algorithm(cursor)
    if not cursor.takes(_CONFIGURATION):
        cursor.at = start
        return False
    behind = cursor.at
    if cursor.takes(_INTO):
        cursor.at = start  # where it lies is for the runner to choose
        return False
    if cursor.takes(_FOR) and not cursor.takes(_IT) and values.algorithm(cursor) is None:
        cursor.at = behind
    return True


def _says_written(cursor: Cursor) -> bool:
    started = cursor.at
    cursor.skips(_ITS)
    return bool({token.key for token in cursor.tokens[started : cursor.at]} & _WRITTEN)
