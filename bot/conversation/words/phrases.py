"""What people say, as whole phrases: lower case, without apostrophes ("that's right" is "thats right").

Source of the agreements: AMD Quark's published workflow. Plan: "ok", "confirm", "looks good", "continue". Command:
"yes", "run it", "go", "execute". The others are their natural kin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class PhraseBook:
    """Phrases that are found by their first word, the longest first."""

    def __init__(self, *phrases: str) -> None:
        found: dict[str, set[tuple[str, ...]]] = {}
        for phrase in phrases:
            words = tuple(phrase.split())
            found.setdefault(words[0], set()).add(words)
        self.phrases = frozenset(phrases)
        self._by_first = {
            first: tuple(sorted(of, key=lambda words: (-len(words), words))) for first, of in found.items()
        }

    def longest(self, words: Sequence[str], at: int) -> int:
        """How many words the longest phrase has that begins at `at`; 0 for none."""
        if at >= len(words):
            return 0
        for phrase in self._by_first.get(words[at], ()):
            if tuple(words[at : at + len(phrase)]) == phrase:
                return len(phrase)
        return 0


def words(text: str) -> frozenset[str]:
    """The words of a text, each by itself."""
    return frozenset(text.split())


def _each(firsts: Iterable[str], seconds: Iterable[str]) -> tuple[str, ...]:
    seconds = tuple(seconds)
    return tuple(f"{first} {second}".strip() for first in firsts for second in seconds)


YES = ("yes", "yeah", "yep", "yup")

_ITS = ("thats", "that is", "this is", "its", "it is", "all", "all is")
_WHAT = ("", "it", "that", "this", "all", "everything", "plan", "the plan", "analysis", "the analysis")
_APPROVE = ("approve", "confirm", "accept")

ASKED_OF_OTHERS = _each(_APPROVE, ("", "it", "this", "that"))
"""With "please" these are said to somebody else: "please approve" approves nothing."""

SAID_OK = ("ok", "okay", "alright", "all right")

EXPLICIT = (
    *YES,
    *_each(("run", "execute", "start"), ("", "it", "this", "that", "the command", "this command", "it now")),
    *("run this exact command", "run that command", "start the run", "start this run", "launch it", "kick it off"),
    *("go", "go ahead", "go for it", "do it", "do it now", "please do", "please do it", "please do it now"),
    *_each(("lets",), ("go", "do it", "do this", "run it", "run this", "start it", "start")),
    *("approve", "approved", "approve it", "approve this", "i approve", "i approve it"),
)
"""An explicit yes to running a command."""

AGREE = (
    *YES,
    *SAID_OK,
    *("yea", "aye", "sure", "of course", "absolutely", "definitely", "certainly", "affirmative"),
    *("agree", "agreed", "i agree", "confirmed", "i confirm", "i confirm it", "approved", "i approve", "accepted"),
    *ASKED_OF_OTHERS,
    *("i accept", "i accept it"),
    *("continue", "proceed", "go", "go ahead", "go on", "go for it", "carry on", "keep going"),
    *("do it", "please do", "please do it"),
    *_each(("lets",), ("go", "do it", "do this", "continue", "proceed", "go on")),
    *_each(
        [f"{what} looks" for what in _WHAT],
        ("good", "great", "fine", "right", "correct", "ok", "okay", "perfect", "good to me", "fine to me"),
    ),
    *_each(_ITS, ("right", "correct", "fine", "good", "ok", "okay", "perfect")),
    *("lgtm", "sounds good", "sounds great", "sounds right", "fine", "perfect", "correct", "good to go"),
    *("fine with me", "fine by me", "ok with me", "ok by me", "good for me", "works for me", "ship it", "yes it is"),
    *("+1", "👍", "👌", "✅", "✔", "☑", "🆗", "💯"),
)
"""Agreement with an analysis, a plan or a result."""

ACCEPT = (
    *AGREE,
    *_each(("accept", "i accept"), ("the result", "this result", "the model", "the results")),
    *_each(("result", "the result"), ("accepted", "looks good", "looks great", "looks fine", "is good", "is fine")),
    *_each(("results", "the results"), ("accepted", "look good", "look great", "look fine", "are good", "are fine")),
)
"""Agreement with a result."""

NEXT = ("next", "k", "y")
"""Said instead of an agreement, by themselves."""

KIND = ("good", "great")
"""Praise that is enough where only the facts of a model are asked: nothing is done yet."""

LEADING = ("lgtm", "sure", "looks good", "sounds good")
"""Agreements that may stand right in front of an explicit yes: "lgtm run it"."""

_IS_RIGHT = ("is correct", "is right", "is fine", "is good", "is ok", "is okay", "is perfect")
ANALYSIS = _each(("analysis", "the analysis", "this analysis"), _IS_RIGHT)
"""Agreement with an analysis, by its name."""
PLAN = _each(("plan", "the plan", "this plan"), _IS_RIGHT)
"""Agreement with a plan, by its name."""

PRAISE = (
    *("good", "great", "nice", "cool", "awesome", "excellent", "wonderful", "super"),
    *("very good", "very nice", "well done"),
)
"""Said beside an agreement, and none by itself."""

COURTESY = (
    *("please", "pls", "plz", "kindly", "thanks", "thank you", "thank you very much", "thanks a lot", "many thanks"),
    *("thx", "ty", "cheers", "hi", "hello", "hey", "hi there", "hello there", "hey there", "good morning"),
    *("🙏", "🙂", "😊", "🎉", "🚀", "🙌"),
)

PLEASE = ("please", "pls", "plz", "kindly")

OWN_NAMES = ("@ptq-bot", "@ptqbot", "@ptq_bot", "@quark-ptq-bot", "@ptq", "@bot")
"""How people address this bot in plain text. Adapters take out the mention that their platform makes of it."""

REJECT = (
    *("no", "nope", "nah", "no way", "no good", "no go", "wrong", "incorrect", "disapprove", "disapproved", "👎"),
    *_each(("reject", "i reject"), ("", "it", "this", "that", "the plan", "the analysis", "the command", "the result")),
    *("rejected", "decline", "declined", "deny", "denied", "not approved", "not accepted"),
    *_each(("", *_ITS), ("wrong", "incorrect", "not right", "not correct", "not ok", "not okay", "not good")),
    *_each(("it", "that", "this", "plan", "the plan", "analysis", "the analysis"), ("looks wrong", "is wrong")),
    *_each(("absolutely", "definitely", "certainly", "of course"), ("not",)),
    *_each(("dont", "do not"), ("run", "run it", "run this", "run that", "do it", "do that", "start it")),
    *_each(("dont", "do not"), ("accept", "accept it", "approve", "approve it", "go ahead")),
)

_SERVERS = ("vllm", "sglang", "vllm or sglang", "vllm and sglang")
_STOP = ("cancel", "stop", "abort", "quit", "halt", "terminate", "kill")
_STOPPED = (
    *("it", "this", "that", "everything", "all", "all of it", "the whole thing", "now", "right now", "immediately"),
    *("the run", "this run", "the job", "this job", "the request", "this request", "it now", "it all"),
)

CANCEL = (
    *("cancel", "stop", "abort", "quit", "halt", "terminate", "never mind", "nevermind", "call it off"),
    *_each(_STOP, _STOPPED),
    *_each(("forget", "forget about", "drop", "scrap"), ("it", "this", "that")),
    *_each(("i want to", "lets"), ("cancel", "stop", "abort", "cancel it", "stop it", "abort it")),
)

REJECTED = ("reject", "rejected", "i reject it", "i reject this", "i reject the result", "reject it", "reject this")
"""A no that may be followed by its reason."""

RETRY = (
    *("retry", "retry it", "retry this", "try again", "try it again", "try this again", "try once more", "again"),
    *(
        "once more",
        "one more time",
        "run it again",
        "run again",
        "rerun",
        "re-run",
        "re_run",
        "re-run it",
        "re_run it",
        "rerun it",
        "rerun this",
        "redo",
    ),
    *("redo it", "redo this", "do it again", "lets try again", "lets retry", "lets try it again", "lets do it again"),
    *("give it another try", "give it another go"),
)
"""The same once more."""

_TO_THE_PLAN = _each(("to",), ("plan", "the plan", "planning"))
REVISE = (
    *("back", "go back", "revise", "replan"),
    *_each(("back", "go back", "lets go back", "return", "take it back", "get back"), _TO_THE_PLAN),
    *_each(
        ("", "lets", "i want to", "we want to", "id like to"),
        _each(("revise", "change", "edit", "rework", "adjust"), ("the plan", "plan", "this plan")),
    ),
)
"""Back to the plan, without saying what shall be different."""

AS_SUGGESTED = ("as suggested", "as you suggest", "as you suggested", "as offered", "as recommended")

ASIDES = (
    *AS_SUGGESTED,
    *("asap", "as soon as possible", "now", "right now", "right away", "urgently", "for me", "for us"),
    *("thanks in advance", "when you can", "when you have time"),
    *_each(
        ("on", "in", "for", "with", "for use with", "for use in", "to use with", "to serve with", "for serving with"),
        _SERVERS,
    ),
    *_each(
        ("to run", "to run it", "for running it", "and serve it"), ("with vllm", "with sglang", "in vllm", "on vllm")
    ),
    *_each(("for",), ("serving", "inference", "deployment", "vllm serving", "vllm inference", "sglang serving")),
)
"""Said beside a request, and nothing that a plan knows: when, for whom, and the servers that load what is exported."""

SECOND_THOUGHTS = ("actually", "wait", "hold on", "hmm", "oh", "sorry", "well", "just", "instead", "rather", "so")
"""Said around a change or a stop, and never around an agreement."""
