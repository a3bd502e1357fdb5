"""Every state answers every command."""

from __future__ import annotations

from typing import get_args

import pytest

from bot.conversation.commands import Answer, Command, Human
from bot.conversation.decide import decide
from bot.conversation.decision import Decision, Ignore, Proceed, Refuse
from bot.conversation.state import STATES, State
from tests.bot.conversation.samples import POLICY, ROBO, all_commands, all_states

# A kind of state: the conversation goes on there. "!code": it is refused. "-": it is ignored.
TABLE = """
                    Approve             Change             Reject            Cancel            Retry     Revise
analysing           !outdated           analysing          !outdated         ended             !not_now  !not_now
reviewing_analysis  planning            reviewing_analysis !what_instead     ended             !not_now  !not_now
planning            !outdated           planning           !outdated         ended             !not_now  !not_now
reviewing_plan      preparing           planning           !what_instead     ended             !not_now  !what_instead
preparing           !outdated           planning           !outdated         ended             !not_now  planning
reviewing_command   submitting          planning           !what_instead     ended             !not_now  planning
submitting          !not_now            !not_now           !not_now          submitting        !not_now  !not_now
running             !not_now            !not_now           !not_now          running           !not_now  !not_now
reviewing_result    ended               planning           ended             !not_now          !not_now  planning
failed              !not_now            planning           !not_now          ended             preparing planning
ended               !not_now            planning           !not_now          !not_now          !not_now  planning

                    TakeOffer  GiveOrder
analysing           !no_offer  -
reviewing_analysis  !no_offer  -
planning            !no_offer  -
reviewing_plan      !no_offer  -
preparing           !no_offer  -
reviewing_command   !no_offer  -
submitting          !no_offer  -
running             !no_offer  -
reviewing_result    !no_offer  -
failed              !no_offer  -
ended               !no_offer  -

                    Remark          Analysed           Planned        Prepared          Submitted StepFailed Delayed
analysing           !not_understood reviewing_analysis -              -                 -         failed     analysing
reviewing_analysis  !not_understood -                  -              -                 -         -          -
planning            !not_understood -                  reviewing_plan -                 -         failed     planning
reviewing_plan      !not_understood -                  -              -                 -         -          -
preparing           !not_understood -                  -              reviewing_command -         failed     preparing
reviewing_command   !not_understood -                  -              -                 -         -          -
submitting          !not_understood -                  -              -                 running   failed     submitting
running             !not_understood -                  -              -                 -         -          -
reviewing_result    !not_understood -                  -              -                 -         -          -
failed              !not_understood -                  -              -                 -         -          -
ended               !not_understood -                  -              -                 -         -          -

                    BetterAnalysis     NoBetterAnalysis   RunNews RunSilent RunMissing Expire
analysing           -                  -                  -       -         -          -
reviewing_analysis  reviewing_analysis reviewing_analysis -       -         -          ended
planning            reviewing_analysis planning           -       -         -          -
reviewing_plan      reviewing_analysis reviewing_plan     -       -         -          ended
preparing           reviewing_analysis preparing          -       -         -          -
reviewing_command   reviewing_analysis reviewing_command  -       -         -          ended
submitting          -                  -                  -       -         -          -
running             -                  -                  running running   failed     -
reviewing_result    -                  -                  -       -         -          -
failed              -                  -                  -       -         -          ended
ended               -                  -                  -       -         -          -
"""


def _cells() -> dict[tuple[str, str], str]:
    cells: dict[tuple[str, str], str] = {}
    for part in TABLE.strip("\n").split("\n\n"):
        head, *rows = (line.split() for line in part.splitlines())
        for state, *row in rows:
            cells.update({(state, command): cell for command, cell in zip(head, row, strict=True)})
    return cells


CELLS = _cells()


def _cell(decision: Decision) -> str:
    match decision:
        case Proceed(state=state):
            return state.kind
        case Refuse(trouble=trouble):
            return f"!{trouble.code}"
        case Ignore():
            return "-"


def test_the_table_has_every_state_and_every_command() -> None:
    states = {kind.model_fields["kind"].default for kind in get_args(State)}
    commands = {kind.__name__ for kind in get_args(Command)}
    assert set(CELLS) == {(state, command) for state in states for command in commands}
    assert set(all_states()) == states
    assert set(all_commands(all_states()["running"])) == commands


@pytest.mark.parametrize(("state", "command"), CELLS)
def test_every_state_answers_every_command(state: str, command: str) -> None:
    before = all_states()[state]
    decision = decide(before, all_commands(before)[command], POLICY)
    assert _cell(decision) == CELLS[state, command]
    if isinstance(decision, Proceed):
        assert decision.state != before
        assert before.step <= decision.state.step <= before.step + 1
        assert STATES.validate_json(STATES.dump_json(decision.state)) == decision.state


every_state = pytest.mark.parametrize("state", all_states().values(), ids=lambda state: state.kind)


@every_state
def test_every_refusal_is_a_sentence_with_what_to_do_next(state: State) -> None:
    for command in all_commands(state).values():
        decision = decide(state, command, POLICY)
        if isinstance(decision, Refuse):
            trouble = decision.trouble
            assert trouble.message[0].isupper()
            assert trouble.message.endswith(".")
            assert trouble.hint.endswith(".")


@every_state
def test_no_state_goes_on_by_what_a_bot_says(state: State) -> None:
    said = [command for command in all_commands(state, ROBO).values() if isinstance(command, Human)]
    assert len(said) == 9
    assert not [command for command in said if isinstance(decide(state, command, POLICY), Proceed)]


@every_state
def test_an_answer_to_another_step_counts_for_nothing(state: State) -> None:
    for step in (state.step - 1, state.step + 1):
        late = all_commands(state.model_copy(update={"step": step})).values()
        answers = [command for command in late if isinstance(command, Answer)]
        assert len(answers) == 6
        assert all(isinstance(decide(state, answer, POLICY), Ignore) for answer in answers)


@every_state
def test_deciding_twice_says_the_same(state: State) -> None:
    for command in all_commands(state).values():
        assert decide(state, command, POLICY) == decide(state, command, POLICY)
