"""Whatever people click and say, however late runners answer and whenever the bot restarts: nothing runs unapproved."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.conversation import remote_code
from bot.conversation.approvals import signed
from bot.conversation.commands import (
    Answer,
    Approve,
    BetterAnalysis,
    Cancel,
    Change,
    Command,
    Delayed,
    Expire,
    Human,
    NoBetterAnalysis,
    Reject,
    Remark,
    Retry,
    Revise,
    RunMissing,
    RunNews,
    RunSilent,
    StepFailed,
)
from bot.conversation.decision import Proceed, Verb
from bot.conversation.person import Person
from bot.conversation.policy import Policy
from bot.conversation.reached import reached
from bot.conversation.request import Changes, Request
from bot.conversation.state import (
    STATES,
    Checkpoint,
    Ended,
    Failed,
    ReviewingAnalysis,
    Running,
    State,
    Submitting,
    Trouble,
    Working,
    asked_at,
)
from schemas.runs import RunState
from tests import samples
from tests.bot.conversation.samples import (
    ADA,
    AWAY,
    BLOCKED,
    BOB,
    GRACE,
    NOON,
    ROBO,
    ROOT,
    RUNNERS,
    TROUBLE,
    WHERE,
    Talk,
    all_commands,
    better_analysis,
    digest_of,
    yes,
)

PEOPLE = (ADA, BOB, GRACE, ROOT, ROBO)
POLICIES = (
    Policy(runners=RUNNERS),
    Policy(runners=RUNNERS, approvers=(GRACE.id,), admins=(ROOT.id,)),
    Policy(runners=RUNNERS, approvers=(ADA.id, GRACE.id, ROBO.id), remote_code=(ADA.id,), admins=(ROOT.id,)),
)
CHANGES: tuple[dict[str, Any], ...] = (
    {"model": "Qwen/Qwen3-4B"},
    {"revision": "v2"},
    {"runner": "mi300"},
    {"runner": "nowhere"},
    {"output_dir": "/out/a"},
    {"output_dir": "/out/b"},
    {"choices": {"global_scheme": "int8"}},
    {"choices": {"algorithm": "awq"}, "output_dir": "/out/c"},
    {"choices": {"trust_remote_code": True}},
    {"choices": {"trust_remote_code": False}},
    {},
)
CODE: dict[str, Any] = {"trust_remote_code": True}
PLANS: tuple[dict[str, Any], ...] = ({}, {}, {}, {}, {"findings": BLOCKED.findings}, CODE, CODE)
CODES = ("runner_changed", "model_changed", "analysis_changed", "plan_inconsistent", "disk_full", "model_missing")


@dataclass(frozen=True)
class Move:
    """Something that happens. What of it is meant is found in the conversation as it is then; `pick` chooses."""

    what: str
    by: Person
    pick: int


# What leads on is more frequent than what disturbs: otherwise no conversation gets as far as a run.
FORWARD = ("answer", "approve", "forward", "forward")
DISTURBING = (
    *("change", "change of an old card", "old yes", "hasty yes", "no", "cancel", "retry", "revise", "remark"),
    *("again", "late", "wrong answer", "step fails", "delayed", "news", "silence", "missing", "expire", "restart"),
    *("better", "better", "no better", "old better"),
)
KINDS = FORWARD * 8 + DISTURBING
ACTORS = (ADA, ADA, ADA, *PEOPLE)


def _move(number: int) -> Move:
    number, what = divmod(number, len(KINDS))
    pick, by = divmod(number, len(ACTORS))
    return Move(KINDS[what], ACTORS[by], pick)


# One number a move: quicker to draw than three, and more varied.
moves = st.integers(0, len(KINDS) * len(ACTORS) * 840 - 1).map(_move)
begun = st.integers(0, 9)
"""How far a conversation came before anything disturbs it."""


@dataclass
class Witness:
    """Follows a conversation with a book of its own, and objects to what must not be.

    `given` holds the digest that was approved at each checkpoint and still stands, as the rules say in plain words.
    """

    talk: Talk
    given: dict[Checkpoint, str] = field(default_factory=dict)
    said: list[Command] = field(default_factory=list)
    digests: list[tuple[Checkpoint, str]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)

    def go(self, steps: int) -> None:
        """Forward, undisturbed."""
        for _ in range(steps):
            self.make(Move("forward", ADA, 0))

    def make(self, move: Move) -> None:
        if move.what == "restart":
            self.talk.state = STATES.validate_json(STATES.dump_json(self.talk.state))
            return
        command = self.command(move)
        self.say(command)

    def say(self, command: Command) -> None:
        before = self.talk.state
        decision = self.talk.say(command)
        self.said.append(command)
        if isinstance(decision, Proceed):
            self.note(before, command, decision)
            self.judge(before, command)

    def note(self, before: State, command: Command, decision: Proceed) -> None:
        """Keep the book."""
        after = self.talk.state
        asked = asked_at(before)
        match command:
            case Approve(checkpoint=checkpoint, digest=digest):
                assert asked is not None, "a yes counted where nothing was asked"
                assert checkpoint is asked[0]
                assert len(digest) >= 12
                assert asked[1].startswith(digest)
                self.given[checkpoint] = asked[1]
            case Change(digest=digest):
                assert not digest or asked is None or asked[1].startswith(digest)
                for checkpoint in voided(before.request, after.request):
                    self.given.pop(checkpoint, None)
            case Retry():
                self.given.pop(Checkpoint.COMMAND, None)
            case Revise():
                self.given.pop(Checkpoint.PLAN, None)
                self.given.pop(Checkpoint.COMMAND, None)
            case Answer(step=step):
                assert step == before.step, "a late answer counted"
            case _:
                pass
        if isinstance(command, Human):
            assert decision.verdict is not None
            assert decision.verdict.by == command.by
        shown = asked_at(after)
        if shown is not None and shown not in self.digests:
            self.digests.append(shown)

    def judge(self, before: State, command: Command) -> None:
        after, have = self.talk.state, reached(self.talk.state)
        assert STATES.validate_json(STATES.dump_json(after)) == after
        assert before.step <= after.step <= before.step + 1
        if isinstance(after, Working) and after.kind != before.kind:
            assert after.step > before.step, "an answer to the step before would count here"
        found = isinstance(before, Failed) and isinstance(command, RunNews)
        back = isinstance(command, BetterAnalysis) and isinstance(after, ReviewingAnalysis)
        if after.step > before.step:
            assert isinstance(after, Working) or found or back
        if isinstance(command, BetterAnalysis | NoBetterAnalysis):
            self.judge_better(before, command)
        for kind, count in before.revisions.items():
            assert after.revisions[kind] >= count
        for approval in have.approvals:
            assert self.given.get(Checkpoint(approval.checkpoint)) == approval.digest
        if isinstance(command, Human):
            assert not command.by.is_bot
        if isinstance(after, Submitting | Running):
            self.judge_approved(after)
        if isinstance(after, Submitting) and not isinstance(before, Submitting):
            assert isinstance(command, Approve)
            assert after.key not in self.keys, "one key for two runs"
            self.keys.add(after.key)
        if isinstance(after, Running) and not isinstance(before, Running | Submitting):
            assert isinstance(before, Failed)
            assert before.unresolved
            assert before.run is not None
            assert before.run.id == after.run.id, "another run was taken up"
        if isinstance(command, Cancel | Retry | Revise | Approve | Reject):
            assert command.step in (0, before.step), "a button of another step counted"

    def judge_better(self, before: State, command: BetterAnalysis | NoBetterAnalysis) -> None:
        """What was approved stays as it was, or nothing of it counts any more; it is never asked for twice."""
        was, have = reached(before), reached(self.talk.state)
        assert not isinstance(before, Submitting | Running)
        assert was.analysis is not None
        assert have.analysis is not None
        assert command.of == was.analysis.digest
        assert have.analysis.better == "none"
        if have.analysis.digest == was.analysis.digest:
            assert have.approvals == was.approvals
            assert self.talk.state.step == before.step
        else:
            assert isinstance(self.talk.state, ReviewingAnalysis)
            assert isinstance(command, BetterAnalysis)
            assert have.analysis.digest == command.digest

    def judge_approved(self, state: Submitting | Running) -> None:
        """A run has exactly three approvals, for exactly what it is, from people who may give them."""
        digests = {approval.checkpoint: approval.digest for approval in state.approvals}
        assert len(state.approvals) == 3
        assert digests == {
            "analysis": state.analysis.digest,
            "plan": state.plan.digest,
            "command": state.manifest.digest,
        }
        assert not state.plan.blocked_by
        policy = self.talk.policy
        may = set(policy.approvers or (ADA.id,))
        if state.plan.remote_code:
            may &= set(policy.remote_code)
        by = {approval.checkpoint: approval.by for approval in state.approvals}
        assert by["analysis"] == by["plan"] == signed(ADA)
        assert by["command"] in {signed(person) for person in PEOPLE if person.id in may}

    def command(self, move: Move) -> Command:
        """What a move means just now."""
        state, by, pick = self.talk.state, move.by, move.pick
        match move.what:
            case "forward" if isinstance(state, Failed | Ended):
                return Retry(ADA, NOON, WHERE) if isinstance(state, Failed) else Revise(ADA, NOON, WHERE)
            case "forward":
                waits = asked_at(state) is not None
                decider = _decider(state, self.talk.policy)
                return yes(state, decider) if waits else self.talk.fitting_answer(**PLANS[pick % len(PLANS)])
            case "approve":
                whole = yes(state, by)
                return replace(whole, digest=whole.digest[: (12, 13, 64)[pick % 3]])
            case "answer":
                return self.talk.fitting_answer(**PLANS[pick % len(PLANS)])
            case "old yes" if self.digests:
                checkpoint, digest = self.digests[pick % len(self.digests)]
                return Approve(by, NOON, WHERE, checkpoint, digest[: (12, 64)[pick % 2]])
            case "change of an old card" if self.digests:
                return Change(by, NOON, WHERE, _changes(pick), self.digests[pick % len(self.digests)][1])
            case "change":
                return Change(by, NOON, WHERE, _changes(pick), (asked_at(state) or (None, ""))[1] if pick % 2 else "")
            case "hasty yes":
                whole = yes(state, by)
                wrong = list(Checkpoint)[pick // 4 % 4]
                return (
                    replace(whole, digest=""),
                    replace(whole, digest=whole.digest[: pick % 12]),
                    replace(whole, digest=digest_of("another")),
                    replace(whole, checkpoint=wrong),
                )[pick % 4]
            case "no":
                return Reject(by, NOON, WHERE, None if pick % 2 else Checkpoint.RESULT, yes(state).digest)
            case "again" if self.said:
                return self.said[pick % len(self.said)]
            case _:
                return self.other(move)

    def better(self, move: Move) -> Command:
        """The engine's own list: of the same layers, or of more; for the analysis of today, or for an older one."""
        state, pick = self.talk.state, move.pick
        if move.what == "no better":
            known = better_analysis(state, samples.exact_analysis())
            return NoBetterAnalysis(known.of, NOON, TROUBLE)
        self.talk.documents += 1
        document = samples.exact_analysis(count=(36, 36, 144)[pick % 3])
        found = better_analysis(state, document, digest_of(f"document {self.talk.documents}"))
        old = [digest for checkpoint, digest in self.digests if checkpoint is Checkpoint.ANALYSIS]
        return replace(found, of=old[pick % len(old)]) if move.what == "old better" and old else found

    def other(self, move: Move) -> Command:
        state, by, pick = self.talk.state, move.by, move.pick
        actor = (by, NOON, WHERE)
        running = state.run.id if isinstance(state, Running) else "run-0"
        step = (0, state.step, state.step - 1, 1)[pick // 5 % 4]  # of words, of this card, of older ones
        match move.what:
            case "cancel":
                return Cancel(*actor, step)
            case "retry":
                return Retry(*actor, step)
            case "revise":
                return Revise(*actor, step)
            case "late":
                answer = self.talk.fitting_answer()
                return (
                    replace(answer, step=state.step + (1, -1, -2)[pick % 3]) if isinstance(answer, Answer) else answer
                )
            case "wrong answer":
                commands = list(all_commands(state, by).values())
                return commands[pick % len(commands)]
            case "step fails":
                trouble = Trouble(code=CODES[pick % len(CODES)], message="It cannot be.")
                return StepFailed(state.step, NOON, trouble)
            case "delayed":
                return Delayed(state.step, NOON, AWAY)
            case "news" if isinstance(state, Running | Failed) and state.run is not None:
                kind = list(RunState)[pick % len(RunState)]
                return RunNews(state.run.model_copy(update={"state": kind, "code": CODES[pick % 3]}), NOON)
            case "silence":
                return RunSilent(running, AWAY, NOON)
            case "missing" if pick % 4 == 0:
                return RunMissing(running, AWAY, NOON)
            case "better" | "no better" | "old better":
                return self.better(move)
            case "expire" if pick % 4 == 0:
                return Expire(state.step, state.kind, NOON)
            case _:
                return Remark(*actor, "hm")


def voided(before: Request, after: Request) -> set[Checkpoint]:
    """Which approvals a change makes void."""
    void: set[Checkpoint] = set()
    if before.output_dir != after.output_dir:
        void |= {Checkpoint.COMMAND}
    if before.choices != after.choices:
        void |= {Checkpoint.PLAN, Checkpoint.COMMAND}
    of_the_model = ("model", "revision", "runner")
    trust = [remote_code.asked(request.choices) for request in (before, after)]
    if trust[0] != trust[1] or any(getattr(before, name) != getattr(after, name) for name in of_the_model):
        void |= {Checkpoint.ANALYSIS, Checkpoint.PLAN, Checkpoint.COMMAND}
    return void


def _changes(pick: int) -> Changes:
    return Changes(**CHANGES[pick % len(CHANGES)])


def _decider(state: State, policy: Policy) -> Person:
    """Somebody who may say yes."""
    asked = asked_at(state)
    if asked is None or asked[0] is not Checkpoint.COMMAND or not policy.approvers:
        return ADA
    return next(person for person in PEOPLE if person.id == policy.approvers[0])


@settings(max_examples=100, deadline=None)
@given(policy=st.sampled_from(POLICIES), steps=begun, happening=st.lists(moves, min_size=20, max_size=60))
def test_nothing_runs_but_what_was_approved(policy: Policy, steps: int, happening: list[Move]) -> None:
    witness = Witness(Talk(policy=policy))
    witness.go(steps)
    for move in happening:
        witness.make(move)


@pytest.mark.parametrize("policy", POLICIES, ids=["open", "approvers", "remote code"])
def test_the_witness_sees_whole_conversations(policy: Policy) -> None:
    """The moves above can go all the way, and the book of the witness allows it."""
    witness = Witness(Talk(policy=policy))
    for _ in range(9):
        witness.go(1)
        witness.make(Move("restart", ADA, 0))
    assert isinstance(witness.talk.state, Ended)
    assert len(witness.keys) == 1
    assert set(witness.given) == set(Checkpoint)


@settings(max_examples=60, deadline=None)
@given(steps=begun, happening=st.lists(moves, max_size=20), change=st.sampled_from(CHANGES[:9]))
def test_an_edit_voids_what_was_approved_after_it(steps: int, happening: list[Move], change: dict[str, Any]) -> None:
    witness = Witness(Talk(policy=POLICIES[2]))
    witness.go(steps)
    for move in happening:
        witness.make(move)
    before = witness.talk.state
    decision = witness.talk.say(Change(ADA, NOON, WHERE, Changes(**change)))
    if not isinstance(decision, Proceed):
        return
    assert decision.verdict is not None
    assert decision.verdict.verb is Verb.CHANGED
    void = voided(before.request, decision.state.request)
    assert not {Checkpoint(one.checkpoint) for one in reached(decision.state).approvals} & void
