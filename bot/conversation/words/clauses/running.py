"""How the model is loaded and laid out: data type, GPUs, templates, and what a server will do with it."""

from __future__ import annotations

import re

from bot.conversation.words import names, values
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered
from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.text import Kind

_DTYPES = {
    **dict.fromkeys(("bfloat16", "bf16", "bfloat_16"), "bfloat16"),
    **dict.fromkeys(("float16", "fp16", "half", "half precision", "float_16"), "float16"),
    **dict.fromkeys(("float32", "fp32", "single precision", "float_32"), "float32"),
    "auto": "auto",
}
_DTYPE = PhraseBook(*_DTYPES)
_DTYPE_FIELD = PhraseBook(
    *("data type", "data_type", "datatype", "dtype", "torch dtype", "torch_dtype", "model dtype", "load dtype"),
    *("weight dtype", "weights dtype", "weight data type", "model data type", "data type for loading"),
)
_LOAD = PhraseBook(
    *(
        f"load {what}{how}"
        for what in ("", "it ", "the model ", "model ", "the weights ", "weights ", "this ")
        for how in ("in", "as", "with", "using")
    ),
    *("loaded in", "loaded as", "loading in", "loading it in"),
)
_NONE = PhraseBook("none", "null", "off", "false", "disabled")

_ALL_GPUS = (
    *("multiple gpus", "several gpus", "all gpus", "all the gpus", "all available gpus", "every gpu", "many gpus"),
    *("more than one gpu", "all of the gpus", "all our gpus", "all cards"),
)
_SPREAD = tuple(
    f"{verb} {what}{over}"
    for verb in ("spread", "distribute", "split", "shard", "balance")
    for what in ("", "it ", "the model ", "this ", "the weights ")
    for over in ("over", "across", "on", "to", "among", "between")
)
_MULTI = PhraseBook(
    *("multi gpu", "multi_gpu", "multigpu", "multi gpus", "multi_gpus", "several gpus at once", *_ALL_GPUS),
    *(f"{on} {gpus}" for on in ("on", "over", "across", "with", "using", "run it on", "run on") for gpus in _ALL_GPUS),
)
_OVER_GPUS = PhraseBook(
    *(f"{spread} {gpus}" for spread in _SPREAD for gpus in _ALL_GPUS),
    *(f"{spread} gpus" for spread in _SPREAD),
    *(f"{spread} the gpus" for spread in _SPREAD),
)
_BALANCED = PhraseBook("balanced", ", balanced", "and balanced", "in a balanced way", "evenly")
_AUTO = PhraseBook("auto", "automatically", "automatic", "on", "true", "enabled")
_SINGLE = PhraseBook(
    *(f"{on}{one} gpu" for on in ("", "on ") for one in ("single", "one", "a single", "only one", "just one")),
    *("single_gpu", "only on one gpu"),
)

_FILES = PhraseBook(
    *(
        f"{name}{what}"
        for name in ("file2file", "file to file", "file_to_file", "file_2_file")
        for what in ("", " quantization")
    ),
    *("file2file_quantization", "file2file mode", "file to file mode", "file2file flow", "file by file"),
)

_PARALLEL = PhraseBook(
    *("tensor parallel", "tensor_parallel", "tensor parallelism", "tensor_parallelism", "tensor_parallel_size"),
    *(
        "tensor parallel size",
        "tensor parallel degree",
        "tp",
        "tp size",
        "tp_size",
        "tp degree",
        "tensor_parallel size",
    ),
)
_SERVED = PhraseBook(
    *(
        f"{verb} {at}"
        for verb in ("served", "serve", "serve it", "to serve", "to serve it", "for serving", "to be served", "serving")
        for at in ("with", "at", "using", "in")
    ),
    *(
        "for",
        "with",
        "at",
        "using",
        "we serve with",
        "we serve it with",
        "will be served with",
        "it will be served with",
    ),
)
_WAY = re.compile(r"([0-9]{1,4})_?way")
_WAY_WORD = PhraseBook("way")
_JOINED = re.compile(r"tp_?([0-9]{1,4})")

_TEMPLATE = PhraseBook(
    *(
        "template file",
        "template_file",
        "template",
        "quark template",
        "llm template",
        "template from",
        "custom template",
    ),
    *("template file from", "site template", "our template"),
)


def data_type(cursor: Cursor, gathered: Gathered) -> bool:
    """ "load it in bfloat16", "data type float16"."""
    if cursor.takes(_DTYPE_FIELD):
        cursor.equals()
        if cursor.takes(_NONE):
            return gathered.choose("data_type", None)
    elif not cursor.takes(_LOAD):
        return False
    name = cursor.reads(_DTYPE)
    return bool(name) and gathered.choose("data_type", _DTYPES[name])


def multi_gpu(cursor: Cursor, gathered: Gathered) -> bool:
    """ "use multi gpu", "spread it over all gpus", "balanced over all gpus", "single gpu"."""
    if cursor.takes(_SINGLE):
        return gathered.choose("multi_gpu", None)
    balanced = cursor.key == "balanced" and cursor.takes(_BALANCED)
    if not (cursor.takes(_MULTI) or cursor.takes(_OVER_GPUS)):
        return balanced and gathered.choose("multi_gpu", "balanced")
    behind = cursor.at
    cursor.equals()
    if cursor.takes(_NONE):
        return not balanced and gathered.choose("multi_gpu", None)
    if cursor.takes(_BALANCED):
        balanced = True
    elif not cursor.takes(_AUTO):
        cursor.at = behind
    return gathered.choose("multi_gpu", "balanced" if balanced else "auto")


def file2file(cursor: Cursor, gathered: Gathered) -> bool:
    """ "file to file", "use file2file", "file2file off"."""
    if not cursor.takes(_FILES):
        return False
    cursor.equals()
    on = values.switch(cursor)
    return gathered.choose("file2file_quantization", True if on is None else on)


def tensor_parallel(cursor: Cursor, gathered: Gathered) -> bool:
    """ "served with tp 8", "tensor parallel 4", "for TP=2", "8-way tensor parallel"."""
    cursor.takes(_SERVED)
    if (joined := _JOINED.fullmatch(cursor.key)) is not None:
        cursor.at += 1
        return gathered.choose("tensor_parallel", int(joined[1]))
    count = _ways(cursor)
    if not cursor.takes(_PARALLEL):
        return False
    if count is None:
        cursor.equals()
        if cursor.takes(_NONE):
            return gathered.choose("tensor_parallel", None)
        count = values.number(cursor)
    return count is not None and gathered.choose("tensor_parallel", count)


def template_file(cursor: Cursor, gathered: Gathered) -> bool:
    """ "template file /templates/own.json"."""
    if not cursor.takes(_TEMPLATE):
        return False
    cursor.equals()
    if cursor.takes(_NONE):
        return gathered.choose("template_file", None)
    found = names.path(cursor) or _file(cursor)
    return found is not None and gathered.choose("template_file", found)


def nothing_of(cursor: Cursor, gathered: Gathered) -> bool:
    """ "(no) multi gpu", behind a word that takes it away."""
    if cursor.takes(_MULTI):
        return gathered.choose("multi_gpu", None)
    if cursor.takes(_FILES):
        return gathered.choose("file2file_quantization", False)
    if cursor.takes(_PARALLEL):
        return gathered.choose("tensor_parallel", None)
    if cursor.takes(_DTYPE_FIELD):
        return gathered.choose("data_type", None)
    return cursor.takes(_TEMPLATE) and gathered.choose("template_file", None)


def _ways(cursor: Cursor) -> int | None:
    way = _WAY.fullmatch(cursor.key)
    if way is not None:
        cursor.at += 1
        return int(way[1])
    start = cursor.at
    count = values.number(cursor)
    if count is not None and cursor.takes(_WAY_WORD):
        return count
    cursor.at = start
    return None


def _file(cursor: Cursor) -> str | None:
    """A file by its name: one beside others, or between quotes."""
    token = cursor.token
    if token is None or token.kind not in (Kind.WORD, Kind.QUOTED):
        return None
    text = token.text.strip()
    if not re.fullmatch(r"(?!.*\.\.)[A-Za-z0-9][\w./+-]{0,999}\.(?:json|py|ya?ml)", text):
        return None
    cursor.at += 1
    return text
