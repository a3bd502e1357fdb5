"""Who may do what, and what everybody else is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.person import Person, Place
from bot.conversation.policy import Facts, Policy, Right
from bot.conversation.state import Checkpoint
from tests.bot.conversation.samples import ADA, BOB, GRACE, PLACE, ROBO, ROOT

HERS = Facts(requester=ADA, place=PLACE)
WITH_CODE = Facts(requester=ADA, place=PLACE, remote_code=True)
OPEN = Policy()
NAMED = Policy(approvers=(GRACE.id,), remote_code=(ADA.id, GRACE.id), admins=(ROOT.id,))
PEOPLE = (ADA, BOB, GRACE, ROOT)


def may(policy: Policy, right: Right, facts: Facts = HERS) -> set[str]:
    """Who of all people may."""
    return {person.name for person in PEOPLE if policy.against(person, right, facts) is None}


@pytest.mark.parametrize(
    ("right", "open_", "named"),
    [
        (Right.ANALYSIS, {"Ada"}, {"Ada"}),
        (Right.PLAN, {"Ada"}, {"Ada"}),
        (Right.COMMAND, {"Ada"}, {"Grace"}),
        (Right.RESULT, {"Ada"}, {"Ada"}),
        (Right.CHANGE, {"Ada"}, {"Ada"}),
        (Right.RETRY, {"Ada"}, {"Ada"}),
        (Right.REVISE, {"Ada"}, {"Ada"}),
        (Right.CANCEL, {"Ada"}, {"Ada", "Grace", "Root"}),
        (Right.QUEUE, set(), {"Root"}),
        (Right.URGE, {"Ada"}, {"Grace", "Root"}),
        (Right.YIELD, {"Ada"}, {"Ada", "Grace", "Root"}),
    ],
)
def test_who_may(right: Right, open_: set[str], named: set[str]) -> None:
    assert may(OPEN, right) == open_
    assert may(NAMED, right) == named


def test_every_checkpoint_is_a_right() -> None:
    assert {checkpoint.value for checkpoint in Checkpoint} < {right.value for right in Right}


@pytest.mark.parametrize("right", [Right.ASK, Right.CHANGE, Right.COMMAND])
def test_nobody_runs_a_models_own_code_unless_somebody_is_named(right: Right) -> None:
    assert may(OPEN, right, WITH_CODE) == set()
    reason = OPEN.against(ADA, right, WITH_CODE)
    assert reason is not None
    assert reason.startswith("Nobody may ")
    assert reason.endswith("and nobody is named for that in this bot's settings.")


def test_who_is_named_may_run_a_models_own_code() -> None:
    assert may(NAMED, Right.ASK, WITH_CODE) == {"Ada", "Grace"}
    assert may(NAMED, Right.CHANGE, WITH_CODE) == {"Ada"}  # hers, and she is named
    assert may(NAMED, Right.COMMAND, WITH_CODE) == {"Grace"}  # an approver, and named
    assert may(Policy(remote_code=(BOB.id,)), Right.COMMAND, WITH_CODE) == set()  # named, but it is not his
    for right in (Right.ANALYSIS, Right.PLAN, Right.RESULT, Right.RETRY, Right.REVISE):
        assert may(NAMED, right, WITH_CODE) == {"Ada"}


@pytest.mark.parametrize(
    ("place", "policy", "allowed"),
    [
        (Place(platform="slack", channel="C1"), Policy(), True),
        (Place(platform="slack", channel="C1"), Policy(channels={"discord": ("1",)}), True),
        (Place(platform="slack", channel="C1"), Policy(channels={"slack": ("C0", "C1")}), True),
        (Place(platform="slack", channel="C2"), Policy(channels={"slack": ("C0", "C1")}), False),
        (Place(platform="slack", channel="C"), Policy(channels={"slack": ("C0", "C1")}), False),
        (Place(platform="slack", channel="C1"), Policy(channels={"slack": ()}), False),
        (None, Policy(), False),
    ],
)
def test_requests_are_taken_in_listed_channels(place: Place | None, policy: Policy, allowed: bool) -> None:
    reason = policy.against(BOB, Right.ASK, Facts(requester=BOB, place=place))
    assert (reason is None) is allowed


def test_channels_are_named() -> None:
    policy = Policy(channels={"slack": ("C1",)})
    elsewhere = Facts(requester=BOB, place=Place(platform="slack", channel="C2"))
    assert policy.against(BOB, Right.ASK, elsewhere) == "No requests are taken in this channel. Ask in C1."
    assert policy.against(BOB, Right.CHANGE, Facts(requester=BOB, place=elsewhere.place)) is None  # asked before


def test_a_reason_names_who_may() -> None:
    assert OPEN.against(BOB, Right.PLAN, HERS) == "Only Ada (web:ada) may decide about this plan."
    nameless = Facts(requester=Person(id="slack:U1", name=""))
    assert OPEN.against(BOB, Right.RETRY, nameless) == "Only slack:U1 may try this again."
    many = Policy(approvers=tuple(f"slack:U{number}" for number in range(8)))
    assert many.against(BOB, Right.COMMAND, HERS) == (
        "Only slack:U0, slack:U1, slack:U2, slack:U3, slack:U4 and 3 more may approve this command."
    )
    twice = Policy(approvers=(ADA.id,), admins=(ADA.id,))
    assert twice.against(BOB, Right.CANCEL, HERS) == "Only Ada (web:ada) may cancel this."


@given(
    right=st.sampled_from(Right),
    code=st.booleans(),
    lists=st.tuples(*[st.lists(st.sampled_from([p.id for p in (*PEOPLE, ROBO)]), unique=True).map(tuple)] * 3),
)
def test_a_bot_never_may_and_every_refusal_is_a_sentence(
    right: Right, code: bool, lists: tuple[tuple[str, ...], ...]
) -> None:
    approvers, remote_code, admins = lists
    policy = Policy(approvers=approvers, remote_code=remote_code, admins=admins)
    facts = Facts(requester=ROBO, place=PLACE, remote_code=code)
    assert policy.against(ROBO, right, facts) is not None
    for person in PEOPLE:
        reason = policy.against(person, right, Facts(requester=ADA, place=PLACE, remote_code=code))
        assert reason is None or (reason[0].isupper() and reason.endswith("."))
        if code and right in (Right.ASK, Right.CHANGE, Right.COMMAND) and reason is None:
            assert person.id in remote_code


SHARED_BY_NOBODY = Policy(approvers=(GRACE.id,), remote_code=(ADA.id, BOB.id))


def test_who_may_is_the_sentence_of_the_refusal() -> None:
    two = Policy(approvers=(ADA.id, BOB.id))
    assert two.who_may(Right.COMMAND, HERS) == "Only Ada (web:ada) and web:bob may approve this command."
    for policy in (NAMED, two, SHARED_BY_NOBODY):
        for facts in (HERS, WITH_CODE):
            assert policy.who_may(Right.COMMAND, facts) == policy.against(ROOT, Right.COMMAND, facts)


def test_what_needs_no_saying_is_not_said() -> None:
    assert OPEN.who_may(Right.COMMAND, HERS) == ""  # the requester, as with all other cards
    assert Policy(approvers=(ADA.id,)).who_may(Right.COMMAND, HERS) == ""
    assert OPEN.who_may(Right.ASK, HERS) == ""  # everybody
    assert OPEN.who_may(Right.COMMAND, WITH_CODE).startswith("Nobody may approve this command, because code ")


@pytest.mark.parametrize(
    "policy", [OPEN, NAMED, Policy(remote_code=(ADA.id,)), Policy(approvers=(ADA.id,)), Policy(admins=(ROOT.id,))]
)
def test_rules_that_somebody_can_fulfil_do_not_contradict_each_other(policy: Policy) -> None:
    assert policy.contradictions() == []


def test_remote_code_that_nobody_can_approve_is_a_contradiction() -> None:
    (found,) = SHARED_BY_NOBODY.contradictions()
    assert found == (
        "web:ada and web:bob may ask for code that a model brings along, but nobody may approve a command that runs "
        "it: the approvers of remote code and the approvers of commands (web:grace) share nobody. "
        "Name somebody in both."
    )
    assert may(SHARED_BY_NOBODY, Right.ASK, WITH_CODE) == {"Ada", "Bob"}
    assert may(SHARED_BY_NOBODY, Right.COMMAND, WITH_CODE) == set()
