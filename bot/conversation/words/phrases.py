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
    *(
        "continue",
        "proceed",
        "go",
        "go ahead",
        "go on",
        "go for it",
        "do it",
        "carry on",
        "keep going",
        "please do",
        "please do it",
    ),
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

PRAISE = (
    "good",
    "great",
    "nice",
    "cool",
    "awesome",
    "excellent",
    "wonderful",
    "super",
    "very good",
    "very nice",
    "well done",
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

SECOND_THOUGHTS = ("actually", "wait", "hold on", "hmm", "oh", "sorry", "well", "just", "instead", "rather", "so")
"""Said around a change or a stop, and never around an agreement."""
