"""A new conversation, or why there is none."""

from __future__ import annotations

import pytest

from bot.conversation.decide import begin
from bot.conversation.decision import Proceed, Refuse
from bot.conversation.person import Person, Place
from bot.conversation.policy import Policy
from bot.conversation.request import Request
from bot.conversation.state import Analysing
from tests.bot.conversation.samples import ADA, BOB, PLACE, POLICY, ROBO, RUNNERS

FP8 = Request(model="Qwen/Qwen3-8B", choices={"global_scheme": "fp8"})
WITH_CODE = Request(model="odd/model", choices={"trust_remote_code": True})


def test_a_conversation_begins_with_the_analysis() -> None:
    assert begin(FP8, ADA, PLACE, POLICY) == Proceed(
        Analysing(request=FP8.model_copy(update={"runner": "local"}), requester=ADA, step=1)
    )


def test_a_runner_can_be_named() -> None:
    begun = begin(FP8.model_copy(update={"runner": "mi300"}), ADA, PLACE, POLICY)
    assert isinstance(begun, Proceed)
    assert begun.state.request.runner == "mi300"


def test_a_listed_channel_may_ask_and_so_may_other_platforms() -> None:
    policy = Policy(runners=RUNNERS, channels={"slack": ("C1",), "web": ("quantize",)})
    for place in (PLACE, Place(platform="slack", channel="C1"), Place(platform="discord", channel="any")):
        assert isinstance(begin(FP8, ADA, place, policy), Proceed)


def test_who_is_named_for_it_may_ask_for_remote_code() -> None:
    assert isinstance(begin(WITH_CODE, ADA, PLACE, Policy(runners=RUNNERS, remote_code=(ADA.id,))), Proceed)


@pytest.mark.parametrize(
    ("request_", "by", "place", "policy", "code", "sentence"),
    [
        (FP8, ROBO, PLACE, POLICY, "not_allowed", "Only people ask and decide here; a bot may not."),
        (
            FP8,
            ADA,
            Place(platform="slack", channel="C9"),
            Policy(runners=RUNNERS, channels={"slack": ("C1", "C2")}),
            "not_allowed",
            "No requests are taken in this channel. Ask in C1 or C2.",
        ),
        (
            FP8,
            ADA,
            Place(platform="slack", channel="C9"),
            Policy(runners=RUNNERS, channels={"slack": ()}),
            "not_allowed",
            "No requests are taken on slack: no channel is named in this bot's settings.",
        ),
        (
            FP8.model_copy(update={"runner": "h100"}),
            ADA,
            PLACE,
            POLICY,
            "unknown_runner",
            "There is no runner called 'h100'. Known: local, mi300.",
        ),
        (FP8, ADA, PLACE, Policy(), "no_runner", "No runner is configured. Name one under runners in bot.yaml."),
        (
            WITH_CODE,
            ADA,
            PLACE,
            POLICY,
            "not_allowed",
            "Nobody may ask for this, because code that the model brings along would run, "
            "and nobody is named for that in this bot's settings.",
        ),
        (
            WITH_CODE.model_copy(update={"choices": {"trust_remote_code": "yes"}}),
            ADA,
            PLACE,
            Policy(runners=RUNNERS, remote_code=(BOB.id,)),
            "not_allowed",
            "Only web:bob may ask for this, because code that the model brings along would run.",
        ),
    ],
)
def test_a_request_is_refused_with_a_sentence(
    request_: Request, by: Person, place: Place, policy: Policy, code: str, sentence: str
) -> None:
    refused = begin(request_, by, place, policy)
    assert isinstance(refused, Refuse)
    assert (refused.trouble.code, refused.trouble.sentence()) == (code, sentence)
