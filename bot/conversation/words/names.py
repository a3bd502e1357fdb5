"""Names and places as people type them: models, paths, revisions, runners, datasets.

Each function reads one at the cursor and moves behind it, or gives None and leaves the cursor where it was. A plain
word of the language is no name unless it stands where nothing else can: "the model looks good" names no model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.conversation.words import phrases, values
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.text import Kind, Token

_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_HUB_PAGE = re.compile(
    r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/([^/\s?#]+/[^/\s?#]+)(?:/tree/([^\s?#]+?))?/?", re.IGNORECASE
)
_PLACE = re.compile(r"[\w.+,@:=%~/-]{1,4096}")  # what else a path may have in it has to be quoted
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")
_RELATIVE = re.compile(r"[A-Za-z][A-Za-z0-9._/+-]{0,999}")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,99}){0,4}")
_USUAL_REVISION = re.compile(r"[0-9a-f]{3,40}|main|master")
_ORDINAL = re.compile(r"[0-9]{1,6}")  # "revision 2" is one of the plan
_TELLING = re.compile(r"[0-9_./-]")
_LETTER = re.compile(r"[A-Za-z]")
_DATA_FILE = re.compile(r"(?!.*\.\.)[A-Za-z0-9/][A-Za-z0-9._/+-]{0,999}\.(?:txt|jsonl)")
_ENDS_NAME = PhraseBook(
    *phrases.words("and but then with using also please thanks instead on into for , . ! !! ; :"),
    *(courtesy for courtesy in phrases.COURTESY if not courtesy.isascii()),
)


def _each_word(*spoken: str) -> frozenset[str]:
    return frozenset(word for phrase in spoken for word in phrase.split())


# What stands behind "model", "quantize", "output" or "runner" in a sentence without naming one.
_NO_NAMES = _each_word(
    *phrases.COURTESY, *phrases.ACCEPT, *phrases.EXPLICIT, *phrases.PRAISE, *phrases.REJECT, *phrases.CANCEL
) | phrases.words(
    """
    and or but then also with without using use to as at in into on for from of by too again more less other another
    same something anything nothing everything them these those he she we you they is are was be has have had not no
    model models weights weight activations activation layers layer linear attention attn mlp experts expert router
    gate gates embeddings embedding kv cache head heads vision tower only both first last later now today tomorrow
    better best smaller smallest faster fastest scheme algorithm algorithms calibration dataset samples runner output
    gguf onnx cpu gpu accuracy size speed precision rtn plain what which why how when where who whose half fully
    mostly some most every each if unless until maybe perhaps soon tonight there here done ready down up broken slow
    busy full free missing bad empty incomplete garbage unclear strange weird odd huge big small large short long
    although though however because said says whom back guess reply type kind name names again whatever none nothing
    works worked rocks sucks fails failed broke breaks broken crashes crashed loads lags died quality asap soon
    """
)
# Behind a verb that leads to a value ("use runner nope") also what would be a no by itself.
_NO_NAMES_BEHIND_VERBS = _NO_NAMES - (_each_word(*phrases.REJECT) - _each_word(*phrases.CANCEL, "no not wrong"))


def model(cursor: Cursor, any_name: bool = False) -> tuple[str, str | None] | None:
    """A model and its revision, if one hangs on it: a path, a name on the Hub or its page there, a quotation, a folder
    whose name is no plain word; `any_name`: also a folder of one word."""
    token = cursor.token
    if token is None or token.kind not in (Kind.WORD, Kind.QUOTED) or token.text.startswith("-"):
        return None
    quoted = token.kind is Kind.QUOTED
    text = token.text.strip() if quoted else _unlinked(token.text)
    if _is_of_a_home(text, cursor):
        return None
    if not quoted and _is_said_of_a_plan(token, cursor):
        return None
    found = _on_hub(text) or (
        (text, None) if text and (quoted or _is_local(text, any_name or cursor.assigned)) else None
    )
    cursor.at += found is not None
    return found


def is_hub_model(token: Token | None) -> bool:
    """Whether a token can hardly be anything else than a model of the Hub ("24/7", "yes/no" and "CI/CD" are not)."""
    if token is None or token.kind is not Kind.WORD:
        return False
    text = _unlinked(token.text)
    owner, _, name = text.partition("@")[0].partition("/")
    said = bool(re.search("[a-z]", name) and re.search("[a-z]", owner) and re.search("[0-9A-Z-]", name))
    return _on_hub(text) is not None and (said or "://" in text)


def is_place(token: Token | None) -> bool:
    """Whether a token is a model by its looks alone: one of the Hub, or a path of several folders."""
    if is_hub_model(token):
        return True
    return token is not None and token.kind is Kind.WORD and bool(re.fullmatch(r"(?:/[\w.+-]+){2,}/?", token.text))


def _on_hub(text: str) -> tuple[str, str | None] | None:
    page = _HUB_PAGE.fullmatch(text)
    if page:
        return (page[1], page[2]) if _HUB_ID.fullmatch(page[1]) else None
    if _HUB_ID.fullmatch(text):
        return text, None
    name, _, revised = text.rpartition("@")
    return (name, revised) if _HUB_ID.fullmatch(name) and _REVISION.fullmatch(revised) else None


def _is_local(text: str, any_name: bool) -> bool:
    if "://" in text or not _PLACE.fullmatch(text) or not _LETTER.search(text):
        return False
    if "/" in text:
        return True
    if not _PLAIN_NAME.fullmatch(text) or text.lower() in _NO_NAMES:
        return False
    return any_name or bool(re.search(r"[0-9_-]", text))


def _unlinked(text: str) -> str:
    """What a platform made a link of: <https://host/x|host/x>."""
    if text.startswith("<") and text.endswith(">"):
        return text[1:-1].partition("|")[0]
    return text


def path(cursor: Cursor, relative: bool = False, any_name: bool = False) -> str | None:
    """A whole path; `relative`: also one beneath the runner's first output folder, when it is no plain word or where
    one has to stand (`any_name`)."""
    token = cursor.token
    if token is None or token.kind not in (Kind.WORD, Kind.QUOTED):
        return None
    text = token.text.strip()
    if _is_of_a_home(text, cursor):
        return None
    plain = token.kind is Kind.QUOTED or _PLACE.fullmatch(text) is not None
    whole = text.startswith("/") and len(text) > 1 and plain
    telling = relative and (_is_telling(token, cursor) or (any_name and ends_as_name(cursor)))
    if not whole and not telling:
        return None
    cursor.at += 1
    return text


def revision(cursor: Cursor) -> str | None:
    """A commit, tag or branch of the Hub."""
    token = cursor.token
    if token is None or token.kind not in (Kind.WORD, Kind.QUOTED) or not _REVISION.fullmatch(token.text.strip()):
        return None
    text = token.text.strip()
    if _is_said_of_a_plan(token, cursor) or _ORDINAL.fullmatch(text):
        return None
    if not (_TELLING.search(text) or _USUAL_REVISION.fullmatch(text) or token.kind is Kind.QUOTED or cursor.assigned):
        return None
    cursor.at += 1
    return text


def runner(cursor: Cursor, named: bool = False, told: bool = False) -> str | None:
    """A runner that is known, or a label of runners. Behind its field's name (`named`) also one that is not, so that
    the person hears which there are: what looks like a name, or any word where one has to stand (`told`); while none is
    known, any."""
    token = cursor.token
    if token is None:
        return None
    known = cursor.vocabulary
    found = _known(token, known.runners, known.runner_of)
    if found is None and named and _PLAIN_NAME.fullmatch(token.text) and token.text.lower() not in _NO_NAMES:
        found = token.text if not known.runners or _is_telling(token, cursor) else None
    if found is None and told and ends_as_name(cursor, told):
        found = token.text
    cursor.at += found is not None
    return found


def dataset(cursor: Cursor, named: bool = False, used: bool = False) -> str | None:
    """A dataset that is known; behind a verb (`used`) also a file of texts; behind its field's name (`named`) any name
    that is no plain word, and a path."""
    token = cursor.token
    if token is None:
        return None
    found = _known(token, cursor.vocabulary.datasets, cursor.vocabulary.dataset_of)
    text = token.text.strip()
    if found is None and named and _is_telling(token, cursor):
        found = text
    if found is None and (named or used) and token.kind is Kind.WORD and _DATA_FILE.fullmatch(text):
        found = text
    cursor.at += found is not None
    return found


def ends_as_name(cursor: Cursor, told: bool = False) -> bool:
    """Whether the word here may be a name of a person's own choice, and nothing that speaks of it follows: "output
    foo", not "output foo looks odd". `told`: one has to stand here, as behind a verb."""
    token = cursor.token
    if token is None or token.kind is not Kind.WORD or not _PLAIN_NAME.fullmatch(token.text):
        return False
    told = told or cursor.headed or cursor.moves
    if token.text.lower() in (_NO_NAMES_BEHIND_VERBS if told else _NO_NAMES) or not _LETTER.search(token.text):
        return False
    return not _is_said_of_a_plan(token, cursor) and cursor.sees_behind(_ENDS_NAME)


def _is_of_a_home(text: str, cursor: Cursor) -> bool:
    """Whether a path begins with "~", which nobody here turns into anybody's home folder."""
    if not text.startswith("~"):
        return False
    cursor.blamed = cursor.at
    return True


def _known(token: Token, names: frozenset[str], by_key: Mapping[str, str]) -> str | None:
    if token.kind not in (Kind.WORD, Kind.QUOTED):
        return None
    text = token.text.strip()
    return text if text in names else by_key.get(text.lower().replace("-", "_"))


def _is_said_of_a_plan(token: Token, cursor: Cursor) -> bool:
    """Whether a word names a scheme or an algorithm."""
    return values.looks_like_scheme(token, cursor) or token.key in cursor.vocabulary.algorithm_of


def _is_telling(token: Token, cursor: Cursor) -> bool:
    """Whether a token has the looks of a name of a person's own choice."""
    text = token.text.strip()
    if token.kind is Kind.QUOTED:
        return bool(text) and not text.startswith("-")
    if token.kind is not Kind.WORD or not _RELATIVE.fullmatch(text) or text.lower() in _NO_NAMES:
        return False
    if _is_said_of_a_plan(token, cursor):
        return False
    return cursor.assigned or bool(_TELLING.search(text))
