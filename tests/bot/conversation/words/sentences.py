"""Sentences that several tests put together: agreements by checkpoint, and changes with what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bot.conversation.state import Checkpoint
from bot.conversation.words.phrases import ACCEPT, AGREE, EXPLICIT, KIND
from bot.conversation.words.phrases import ANALYSIS as RIGHT_ANALYSIS
from bot.conversation.words.phrases import PLAN as RIGHT_PLAN
from tests.agreement.words import read_table

ANALYSIS, PLAN, COMMAND, RESULT = Checkpoint
CHECKPOINTS = tuple(Checkpoint)

# Written down here once more, so that a phrase that gets lost in the program is missed.
TYPED_AT_PLAN = (
    *("ok", "okay", "confirm", "looks good", "continue", "yes", "yep", "yeah", "yup", "lgtm", "approve", "approved"),
    *("go ahead", "correct", "that's right", "that is correct", "perfect", "fine", "proceed", "sounds good", "agreed"),
    *("I agree", "I confirm", "confirmed", "looks good to me", "that looks right", "this is fine", "good to go"),
    "sure",
    *("it's correct", "the plan looks good", "the analysis looks correct", "all good", "alright", "works for me"),
    *("👍", ":+1:", "+1", ":thumbsup:", "✅", ":white_check_mark:", "👌", "let's go", "of course", "ship it"),
)
TYPED_AT_COMMAND = (
    *("yes", "run it", "go", "execute", "yes, run it", "go ahead", "start it", "do it", "approve", "approved", "yep"),
    *("yes run it", "yes, go ahead", "go ahead and run it", "execute it", "run this command", "run the command"),
    *("lgtm run it", "lgtm, run it", "sure go ahead", "sure, go ahead", "sure, run it", "sounds good run it"),
    *("run this exact command", "let's go", "let's run it", "start the run", "run it now", "I approve", "please do"),
    *("ok, run it", "okay go", "looks good, run it", "great, go ahead", "👍 run it", "perfect. yes", "yes - run it"),
)
TYPED_AT_ANALYSIS = (
    *("good", "great", "next", "good, thanks", "Great!", "the analysis is correct", "analysis is right", "next please"),
)
TYPED_AT_RESULT = (
    *("accept", "accepted", "ok", "yes", "looks good", "confirm", "I accept", "accept it", "accept the result"),
    *("the result looks good", "results look great", "result accepted", "perfect", "lgtm", "👍"),
)
TYPED = {
    ANALYSIS: (*TYPED_AT_PLAN, *TYPED_AT_ANALYSIS),
    PLAN: (*TYPED_AT_PLAN, "the plan is correct", "plan is fine"),
    COMMAND: TYPED_AT_COMMAND,
    RESULT: TYPED_AT_RESULT,
}

AGREEMENTS = {
    ANALYSIS: (*TYPED_AT_PLAN, *TYPED_AT_ANALYSIS, *AGREE, *KIND, *RIGHT_ANALYSIS),
    PLAN: (*TYPED_AT_PLAN, *AGREE, *RIGHT_PLAN),
    COMMAND: (*TYPED_AT_COMMAND, *EXPLICIT),
    RESULT: (*TYPED_AT_RESULT, *ACCEPT),
}
EVERY_AGREEMENT = tuple(dict.fromkeys(phrase for phrases in AGREEMENTS.values() for phrase in phrases))

Flat = dict[str, Any]

TABLE = Path(__file__).parents[3] / "data" / "sentences.tsv"
"""Sentences with their meaning at each checkpoint: what `python -m tests.agreement words` takes."""

_OF_ONE_KIND = ("Changes", "Changes of what newer plans have", "Changes of layers beside those that are said already")

CHANGES: dict[str, Flat] = {
    meaning.sentence: meaning.changes or {}
    for meaning in read_table(TABLE)
    if meaning.section in _OF_ONE_KIND and meaning.place == PLAN.value
}
"""Changes that can be put beside others, with what they say."""


def calibration(**fields: Any) -> Flat:
    """What a sentence about calibration changes."""
    return {"calibration": fields}
