"""The words around clauses: what begins a sentence, what stands between its parts, and what leads to a value."""

from __future__ import annotations

from bot.conversation.words import phrases
from bot.conversation.words.phrases import PhraseBook

PREFIX = PhraseBook("/ptq", "/ptq_bot", "ptq")
QUANTIZE = PhraseBook("quantize", "quantise", "quant", "/quantize", "/quantise", "convert", "compress")
MAKE = PhraseBook("make", "turn")  # these are said of anything: only what is a model by its looks may follow
A_VERSION = PhraseBook(
    *(f"{what} of" for what in ("version", "copy", "variant", "build", "quant", "quantization", "quantisation")),
    *("quantized version of", "quantised version of", "quantized copy of", "quantised copy of", "checkpoint of"),
    *("quantized model of", "quantized checkpoint of"),
)
QUANTIZED = PhraseBook("quantized", "quantised")
VERSION_WISHES = PhraseBook(
    *(f"{who} {want}" for who in ("i", "we") for want in ("want", "need", "would like", "want to have")),
    *("id like", "wed like", "id like to have", "id love", "need", "want", "give me", "get me", "make", "make me"),
    *("create", "build", "produce", "prepare", "generate", "lets make", "lets have", "could use"),
)
WANTS = PhraseBook(
    *(f"{who} {want} to" for who in ("i", "we") for want in ("want", "need", "would like")),
    *("id like to", "wed like to", "lets", "let us"),
)
THE_MODEL = PhraseBook("model", "hub model", "this model")
THE_SAME = PhraseBook("it", "this", "that", "it all")
ASSIGNS = PhraseBook("=", ":")
MODEL_WORD = PhraseBook("model")
BEHIND_NAME = PhraseBook(
    *phrases.words("to as in into with without using for on at and please revision , . ! ;"), *phrases.ASIDES
)

BETWEEN = PhraseBook(
    *("and", "also", "then", "but", "plus", "with", "using", "enable"),
    *(",", ".", ";", ":", "!", "…", "-", "--", "–", "—", "(", ")", ").", "+", "&"),
    *phrases.COURTESY,
    *phrases.SECOND_THOUGHTS,
    *phrases.ASIDES,
)
MORE = PhraseBook("and", "or", ", and")
MORE_OR_COMMA = PhraseBook("and", "or", ", and", ",")
OPPOSES = PhraseBook("instead of", "rather than")
WISHES = PhraseBook(
    *(f"{who} {want}" for who in ("i", "we") for want in ("want", "need", "would like", "want to have")),
    *("id like", "wed like", "id like to have", "need", "want", "give me", "get me"),
)
HEADS = PhraseBook(
    *WISHES.phrases,
    *("use", "take", "choose", "pick", "apply", "try", "prefer", "go with", "go for", "make it", "make that", "use it"),
    *(
        f"{verb} to"
        for verb in ("switch", "switch it", "switch back", "change", "change it", "move", "move it", "set", "set it")
    ),
    *("do a", "do an", "combine", "i care about", "we care about"),
    *("i prefer", "we prefer", "i want to use", "we want to use", "id prefer", "id like to use"),
    *(f"lets {verb}" for verb in ("use", "take", "try", "do", "go with", "go for")),
)
ADD = PhraseBook("add", "add a", "add an", "add the")
MOVES = PhraseBook(
    *("change", "switch", "set", "update", "increase", "raise", "bump", "reduce", "lower", "decrease", "move", "make"),
)
AGREEMENTS = PhraseBook(
    *phrases.ACCEPT, *phrases.EXPLICIT, *phrases.PRAISE, *phrases.NEXT, *phrases.ANALYSIS, *phrases.PLAN, *phrases.RETRY
)
DO = PhraseBook("do", "do it", "do it now")
REJECTIONS = PhraseBook("no", "nope", "nah", "wrong", "thats wrong", "that is wrong", "not ok", *phrases.REJECTED)
LINKS = frozenset({"and", "then", "but", "please"})
