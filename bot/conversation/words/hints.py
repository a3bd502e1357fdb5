"""What to write instead of a part that was not understood: the nearest name, or what it may mean. Never a guess."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from bot.conversation.words import phrases, values
from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.text import Kind, Token
from bot.conversation.words.vocabulary import Vocabulary

_MOST_TOKENS = 6
_MOST_NAMES = 5
_LONGEST = 40
_SHORTEST = 3

# What people say for several schemes at once.
_MEANS = {
    "w8a8": ("int8", "fp8"),
    "w4a16": ("int4_wo_32", "int4_wo_64", "int4_wo_128", "uint4_wo_32", "uint4_wo_128"),
    "w4a8": ("int4_fp8", "mxfp4_fp8", "int4_wa_64"),
    "w4a4": ("mxfp4", "nvfp4", "amdfp4"),
    "4 bit": ("int4_wo_32", "uint4_wo_32", "mxfp4", "nvfp4", "amdfp4"),
    "6 bit": ("mxfp6_e3m2", "mxfp6_e2m3", "mx6"),
    "8 bit": ("int8", "fp8", "ptpc_fp8"),
}
_SPOKEN = {
    **{name: name for name in _MEANS},
    **{f"{bits}{joint}bit": f"{bits} bit" for bits in "468" for joint in ("", "_")},
    **{f"{bits} bits": f"{bits} bit" for bits in "468"},
    "w4a16_asym": "w4a16",
    "q4": "4 bit",
    "q8": "8 bit",
}
_SEVERAL = PhraseBook(*_SPOKEN)

STANDS = "What nobody changes stays as it is: say what shall be otherwise."
_MEASURES = "Say how much is measured, as in: smoke evaluation, or: full evaluation."
_ADVICE = {
    **{f"{dont} {drop}": STANDS for dont in ("dont", "do not", "never") for drop in ("drop", "remove", "disable")},
    **{
        f"{dont} {skip} {what}": _MEASURES
        for dont in ("dont", "do not", "never")
        for skip in ("skip", "drop", "remove", "disable")
        for what in ("evaluation", "the evaluation", "eval", "evaluating")
    },
    "group": "Name the scheme with its group, as in: int4 group size 128.",
    "group size": "Name the scheme with its group, as in: int4 group size 128.",
    "group_size": "Name the scheme with its group, as in: int4 group size 128.",
    "attention": "Say: attention layers in fp8, or: attention math in fp8.",
    "router": "Name the layers by a pattern, as in: keep *mlp.gate* in full precision.",
    "routers": "Name the layers by a pattern, as in: keep *mlp.gate* in full precision.",
    "evaluate on": "Name a dataset or a task, as in: evaluate on wikitext, or: tasks gsm8k.",
    "evaluation on": "Name a dataset or a task, as in: evaluate on wikitext, or: tasks gsm8k.",
    "gpus": "Say: multi gpu, to quantize on all GPUs; or: tensor parallel 4, for how it is served.",
    "script": "Say: own script, for the one of this program; or: site script, for the standalone one of the site.",
    "more samples": "Say how many, as in: 256 samples.",
    "fewer samples": "Say how many, as in: 64 samples.",
    "the last layer": "Say its number, as in: keep layer 35.",
    "last layer": "Say its number, as in: keep layer 35.",
}
_LAYERS = re.compile(r"[\w.*]*(?:_proj|lm_head|self_attn)[\w.*]*|\*[\w.]+\*?|[\w.]+\*")
_ADVISED = PhraseBook(*_ADVICE)
_HYPHENED = re.compile(r"[a-z]+_[0-9]+")
_GROUP = PhraseBook("group size", "group_size", "groupsize", "group", "groups of", "group size of", "per group")
_THOUSANDS = re.compile(r"([1-9][0-9]{0,2})k")
_OF_TOKENS = frozenset({"seq", "len", "length", "seq_len", "seqlen", "seq_length", "sequence_length", "tokens"})

# Words of this program's own that are worth a hint when they are mistyped.
_WORDS = (
    *(
        "algorithm",
        "attention",
        "accuracy",
        "approve",
        "balanced",
        "bfloat16",
        "calibration",
        "cancel",
        "configuration",
    ),
    *("confirm", "continue", "dataset", "evaluation", "exclude", "export", "float16", "hardware", "lm_head"),
    *("parallel", "priority", "quantize", "reject", "revision", "runner", "samples", "scheme", "template", "tensor"),
    *("accept", "skip", "without", "file2file", "tokens"),
)
_PLAIN = phrases.words(
    """
    the and but for with not use into out all any can you are was has had this that then than them they from keep make
    too its also only some more less one two few set get let run new old now yes why how who what when where which
    output input model layer layers group size batch seq data gate router head code trust remote cache awk dont
    bf16 fp16 fp32 bf32 accepts accepted approved rejected exports exported excluded excludes simple sample runs running
    """
)


def of(tokens: tuple[Token, ...], vocabulary: Vocabulary) -> str:
    """What to write instead of these, in a sentence; empty where nothing is near."""
    shown = tokens[:_MOST_TOKENS]
    keys = [token.key for token in shown]
    for at, token in enumerate(shown):
        if length := _SEVERAL.longest(keys, at):
            said = " ".join(one.text for one in shown[at : at + length])
            return _may_be(said, _MEANS[_SPOKEN[" ".join(keys[at : at + length])]])
        if token.kind is Kind.WORD and (names := family(token.key, vocabulary)):
            return _may_be(token.text, names)
        if told := _apart(shown, at, vocabulary) or _grouped(shown, at, vocabulary) or _thousands(token.key, keys):
            return told
        if length := _ADVISED.longest(keys, at):
            return _ADVICE[" ".join(keys[at : at + length])]
    if shown and shown[0].kind is Kind.WORD and _LAYERS.fullmatch(shown[0].text):
        name = shown[0].text[:_LONGEST]
        return f"Say what becomes of it, as in: keep {name}, quantize {name} too, or: {name} in fp8."
    for token in shown:
        if token.kind is Kind.WORD and (near := nearest(token.key, vocabulary)):
            return f"Did you mean {_either(near)}?"
    return ""


def _apart(tokens: tuple[Token, ...], at: int, vocabulary: Vocabulary) -> str:
    """ "int 4", "int-4": the schemes that begin so, for a name that was written in two."""
    keys = [token.key for token in tokens[at : at + 2]]
    whole = len(keys) == 2 and keys[1].isdigit()
    joined = "".join(keys) if whole else keys[0].replace("_", "") if _HYPHENED.fullmatch(keys[0]) else ""
    names = sorted(name for known, name in vocabulary.scheme_of.items() if joined and _starts(known, joined))
    said = " ".join(token.text for token in tokens[at : at + 1 + whole])
    return "" if not names else f"Did you mean {names[0]}?" if len(names) == 1 else _may_be(said, names)


def _starts(known: str, joined: str) -> bool:
    return len(joined) >= _SHORTEST and (known == joined or known.startswith(f"{joined}_"))


def _grouped(tokens: tuple[Token, ...], at: int, vocabulary: Vocabulary) -> str:
    """ "group size 128" without what is grouped so: the schemes that have such groups."""
    length = _GROUP.longest([token.key for token in tokens], at)
    if not length or at + length >= len(tokens) or any(token.key in values.ALIASES for token in tokens[:at]):
        return ""
    end = f"_{tokens[at + length].key}"
    names = sorted(name for known, name in vocabulary.scheme_of.items() if end[1:].isdigit() and known.endswith(end))
    return _may_be(" ".join(token.text for token in tokens[at : at + length + 1]), names) if names else ""


def _thousands(key: str, keys: list[str]) -> str:
    """ "seq len 2k": of tokens, that is one number or the other."""
    found = _THOUSANDS.fullmatch(key)
    if found is None or not _OF_TOKENS & {*keys}:
        return ""
    return _may_be(key, [str(int(found[1]) * thousand) for thousand in (1_000, 1_024)])


def family(key: str, vocabulary: Vocabulary) -> list[str]:
    """The schemes of which a name is a part that several may share: "mxfp6", "fp4". Empty for a scheme's own name."""
    own = key in vocabulary.scheme_of or key in values.ALIASES
    if own or len(key) < _SHORTEST or key.isdigit() or not any(map(str.isdigit, key)):
        return []
    return sorted(name for known, name in vocabulary.scheme_of.items() if key in known)


def nearest(key: str, vocabulary: Vocabulary) -> list[str]:
    """The names that a mistyped one may be: one letter is off, in a long word two; all that are equally near."""
    if not _SHORTEST <= len(key) <= _LONGEST or key in _PLAIN or key.isdigit():
        return []
    known: dict[str, str] = {word: word for word in _WORDS}
    for names in (vocabulary.dataset_of, vocabulary.runner_of, vocabulary.scheme_of, vocabulary.algorithm_of):
        known.update(names)
    if key in known or key in values.ALIASES:
        return []
    most = 1 if len(key) < 9 else 2
    near = [(_distance(key, name, most), name) for name in known if _may_be_near(key, name, most)]
    least = min((distance for distance, _ in near), default=most + 1)
    return sorted(known[name] for distance, name in near if distance == least) if least <= most else []


def _may_be_near(one: str, other: str, most: int) -> bool:
    """Cheap: names whose letters differ in more than that cannot be near."""
    if abs(len(one) - len(other)) > most:
        return False
    first, second = Counter(one), Counter(other)
    return max((first - second).total(), (second - first).total()) <= most


def _distance(one: str, other: str, most: int) -> int:
    """Letters that have to be changed, added, taken away or swapped with their neighbour (optimal string alignment)."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        row = [at]
        for there, theirs in enumerate(other, 1):
            cost = min(last[there] + 1, row[-1] + 1, last[there - 1] + (letter != theirs))
            if at > 1 and there > 1 and letter == other[there - 2] and one[at - 2] == theirs:
                cost = min(cost, before[there - 2] + 1)
            row.append(cost)
        before, last = last, row
        if min(row) > most:
            return most + 1
    return last[-1]


def _may_be(said: str, names: Iterable[str]) -> str:
    kept = list(names)
    more = f", {len(kept) - _MOST_NAMES} more" if len(kept) > _MOST_NAMES else ""
    shown = kept[:_MOST_NAMES]
    listed = f"{', '.join(shown)}{more}" if more else _either(shown)
    return f"{said[:_LONGEST]} may be {listed}: say which."


def _either(names: list[str]) -> str:
    shown = names[:_MOST_NAMES]
    return " or ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]
