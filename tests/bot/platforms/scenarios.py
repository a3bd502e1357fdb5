"""What every platform must do, told once. Each scenario goes through the real store and the real outbox.

A platform's test gives a `Stage`: the adapter, the peer behind it, and what a person sees there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from bot.cards.card import (
    Action,
    ActionKind,
    Attachment,
    Button,
    Card,
    CommandLine,
    Fields,
    LogPart,
    Meter,
    Note,
    Notes,
    Table,
    Text,
    Tone,
)
from bot.cards.outcome import decided
from bot.clock import SystemClock
from bot.conversation.person import Person, Place
from bot.conversation.request import Request
from bot.conversation.state import Analysing, Checkpoint
from bot.errors import PlatformAway
from bot.platforms.contract import Event, Platform, Said
from bot.service.outbox import Outbox
from bot.store.records import Conversation
from bot.store.store import Store
from bot.store.unit import Unit
from schemas.artifacts.plan import Severity
from schemas.base import Document

ADA = Person(id="test:ada", name="Ada")
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script> *bold* `code` <!channel> <@U1> @everyone [x](http://e.vil) &amp; ]]> \\ ``` ~~ ||"


@dataclass(frozen=True)
class Seen:
    """One message as a person sees it: all of its words, and the labels of buttons that can be pressed."""

    text: str
    buttons: tuple[str, ...] = ()


class Stage(Protocol):
    """An adapter and its peer."""

    @property
    def platform(self) -> Platform:
        """The adapter as it is now."""
        ...

    @property
    def place(self) -> Place:
        """Where a request would be made; without a thread."""
        ...

    async def seen(self, conversation: int) -> list[Seen]:
        """The thread's messages and files, in order, as the platform shows them."""
        ...

    async def restart(self) -> None:
        """Another process of the bot: the adapter is new, the peer is the same."""
        ...

    def whispers(self) -> list[str]:
        """What single people were told, where the platform itself keeps that."""
        ...


class Report(Document):
    """A document to attach."""

    answer: int = 42


@dataclass
class Play:
    """A scenario's means: a stage, the store, and the outbox between them."""

    stage: Stage
    store: Store
    clock: SystemClock

    @property
    def outbox(self) -> Outbox:
        """A fresh one, as after a restart: it remembers nothing."""
        return Outbox(self.store, self.stage.platform, self.clock)

    async def begin(self) -> Conversation:
        """A conversation that the platform does not show yet."""
        state = Analysing(request=Request(model="a/model"), requester=ADA, step=1)
        return await self.store.write(lambda unit: unit.begin(self.stage.place, ADA, state, AT))

    async def show(self, conversation: Conversation, slot: str, what: Card | Attachment) -> None:
        """Want a slot to show something."""
        await self.store.write(lambda unit: unit.show(conversation.id, slot, what, AT))

    async def deliver(self) -> None:
        """Until nothing is due."""
        while await self.outbox.round():
            pass

    async def seen(self, conversation: Conversation) -> list[Seen]:
        """The thread as people see it."""
        return await self.stage.seen(conversation.id)


def card(title: str = "A card", text: str = "some words", asks: bool = False) -> Card:
    """A small one."""
    action = Action(kind=ActionKind.APPROVE, conversation=1, checkpoint=Checkpoint.PLAN, digest="a" * 12)
    buttons = (Button(label="Approve", action=action, style="primary"),) if asks else ()
    return Card(title=title, tone=Tone.WAITING, body=(Text(text=text),), buttons=buttons, alternative=title)


def full_card() -> Card:
    """One with every kind of block."""
    return Card(
        title="Everything",
        tone=Tone.WORKING,
        body=(
            Text(text="a paragraph"),
            Fields(fields=(("Model", "tiny"), ("Layers", "12"))),
            Table(caption="numbers", head=("what", "value"), rows=(("size", "1.5 GB"),), numeric=(1,)),
            Notes(title="Findings", notes=(Note(severity=Severity.WARNS, message="mind this", hint="do that"),)),
            CommandLine(command="python3 quantize.py --scheme 'fp8'", digest="b" * 64),
            Meter(phase="calibrating", percent=42.0, detail="2 min left", stale="no news since 12:03"),
            LogPart(head=("first line",), left_out=7, tail=("last line",)),
        ),
        alternative="Everything there is",
    )


async def a_card_is_shown_once_with_all_it_says(play: Play) -> None:
    """Every word of every kind of block arrives, and a second round shows nothing again."""
    conversation = await play.begin()
    await play.show(conversation, "plan:1", full_card())
    await play.deliver()
    await play.deliver()
    (seen,) = await play.seen(conversation)
    for word in (
        *("Everything", "a paragraph", "Model", "tiny", "Layers", "12", "numbers", "1.5 GB", "Findings", "mind this"),
        *("do that", "python3 quantize.py --scheme 'fp8'", "b" * 12, "calibrating", "42", "2 min left"),
        *("no news since 12:03", "first line", "7 lines left out", "last line"),
    ):
        assert word in seen.text, word


async def the_messages_of_a_thread_keep_their_order(play: Play) -> None:
    """However many there are."""
    conversation = await play.begin()
    for number in range(5):
        await play.show(conversation, f"plan:{number}", card(f"card number {number}"))
    await play.deliver()
    titles = [seen.text for seen in await play.seen(conversation)]
    assert len(titles) == 5
    assert all(f"card number {number}" in title for number, title in enumerate(titles))


async def a_message_is_drawn_again_in_its_place(play: Play) -> None:
    """The newest card wins, what was between is not shown, and there is still one message."""
    conversation = await play.begin()
    await play.show(conversation, "run:1", card(text="ten percent"))
    await play.show(conversation, "result:1", card("Another"))
    await play.deliver()
    await play.show(conversation, "run:1", card(text="twenty percent"))
    await play.show(conversation, "run:1", card(text="thirty percent"))
    await play.stage.restart()
    await play.deliver()
    seen = await play.seen(conversation)
    assert len(seen) == 2
    assert "thirty percent" in seen[0].text


async def a_decided_card_has_no_buttons(play: Play) -> None:
    """It keeps its body, and says who decided."""
    conversation = await play.begin()
    asking = card(asks=True, text="the body")
    await play.show(conversation, "plan:1", asking)
    await play.deliver()
    assert (await play.seen(conversation))[0].buttons == ("Approve",)
    await play.show(conversation, "plan:1", decided(asking, "Approved by Ada"))
    await play.deliver()
    (seen,) = await play.seen(conversation)
    assert seen.buttons == ()
    assert "Approved by Ada" in seen.text
    assert "the body" in seen.text


async def text_is_never_markup(play: Play) -> None:
    """Words of people and models are shown letter by letter, and ping nobody."""
    conversation = await play.begin()
    await play.show(conversation, "plan:1", card(title="A title", text=HOSTILE))
    await play.deliver()
    assert HOSTILE in (await play.seen(conversation))[0].text


async def a_file_comes_once(play: Play) -> None:
    """An artifact as a file, after the card before it."""
    conversation = await play.begin()
    await play.store.write(lambda unit: unit.add_artifact(conversation.id, "plan", 1, "d" * 64, Report(), AT))
    await play.show(conversation, "plan:1", card())
    await play.show(conversation, "plan:1:file", Attachment(name="quant_plan.json", artifact="plan", number=1))
    await play.deliver()
    await play.stage.restart()
    await play.deliver()
    seen = await play.seen(conversation)
    assert len(seen) == 2
    assert "quant_plan.json" in seen[1].text


async def what_a_crash_left_is_not_shown_twice(play: Play) -> None:
    """The platform accepted a message, and the process died before that was written down."""
    conversation = await play.begin()
    await play.show(conversation, "plan:1", card(text="an older card"))
    (delivery,) = await play.store.read(lambda reader: reader.due(play.stage.platform.name, AT, 10))
    thread = await play.stage.platform.thread(delivery.place, f"ptq-{conversation.id}", "title")
    await play.store.write(lambda unit: unit.set_thread(conversation.id, thread))
    await play.store.write(lambda unit: unit.trying(delivery.shown.id, AT))
    place = delivery.place.model_copy(update={"thread": thread})
    await play.stage.platform.post(place, card(text="an older card"), delivery.key)
    await play.stage.restart()
    await play.show(conversation, "plan:1", card(text="the newest card"))
    await play.deliver()
    (seen,) = await play.seen(conversation)
    assert "the newest card" in seen.text


async def what_never_arrived_is_shown(play: Play) -> None:
    """The attempt was written down, and the process died before the platform heard of it."""
    conversation = await play.begin()
    await play.show(conversation, "plan:1", card())
    (delivery,) = await play.store.read(lambda reader: reader.due(play.stage.platform.name, AT, 10))
    await play.store.write(lambda unit: unit.trying(delivery.shown.id, AT))
    await play.stage.restart()
    await play.deliver()
    assert len(await play.seen(conversation)) == 1


async def a_thread_is_opened_once(play: Play) -> None:
    """The thread was opened, and the process died before its name was written down."""
    conversation = await play.begin()
    first = await play.stage.platform.thread(play.stage.place, f"ptq-{conversation.id}", "title")
    await play.stage.restart()
    again = await play.stage.platform.thread(play.stage.place, f"ptq-{conversation.id}", "title")
    assert first == again
    await play.show(conversation, "plan:1", card())
    await play.deliver()
    there = await play.store.read(lambda reader: reader.conversation(conversation.id))
    assert there is not None
    assert there.place.thread == first


async def a_whisper_reaches_its_person(play: Play) -> None:
    """It never raises; where the platform keeps it, it is there."""
    event = Event(key="test:1", person=ADA, place=play.stage.place, at=AT, what=Said(text="hello"))
    await play.stage.platform.whisper(event, "only for you")
    told = play.stage.whispers()
    assert not told or "only for you" in told[-1]


async def an_outage_loses_nothing(play: Play) -> None:
    """Deliveries wait while the platform is away, in order, and come when it is back."""
    conversation = await play.begin()
    await play.show(conversation, "plan:1", card("first"))
    await play.show(conversation, "plan:2", card("second"))
    away = Outbox(play.store, Away(play.stage.platform), play.clock)
    await away.round()
    assert await play.seen(conversation) == []
    await play.store.write(lambda unit: _hurry(unit, conversation))
    await play.deliver()
    assert ["first" in seen.text for seen in await play.seen(conversation)] == [True, False]


def _hurry(unit: Unit, conversation: Conversation) -> None:
    """Let the waiting deliveries be due at once."""
    for slot in ("plan:1", "plan:2"):
        shown = unit.shown(conversation.id, slot)
        assert shown is not None
        unit.postponed(shown.id, "test", AT)


class Away:
    """A platform whose service is down."""

    def __init__(self, real: Platform) -> None:
        self.name = real.name
        self.pace_seconds = real.pace_seconds

    async def thread(self, place: Place, key: str, title: str) -> str:
        """Down."""
        raise PlatformAway("down", f"{self.name} is down: {place.channel} {key} {title}")

    async def post(self, place: Place, card: Card, key: str) -> str:
        """Down."""
        raise PlatformAway("down", f"{self.name} is down: {place.channel} {key} {card.title}")

    async def update(self, place: Place, message: str, card: Card) -> str:
        """Down."""
        raise PlatformAway("down", f"{self.name} is down: {place.channel} {message} {card.title}")

    async def file(self, place: Place, name: str, content: bytes, key: str) -> str:
        """Down."""
        raise PlatformAway("down", f"{self.name} is down: {place.channel} {name} {len(content)} {key}")

    async def find(self, place: Place, key: str) -> str | None:
        """Down."""
        raise PlatformAway("down", f"{self.name} is down: {place.channel} {key}")

    async def whisper(self, event: Event, text: str) -> None:
        """Down."""
        raise PlatformAway("down", f"{self.name} is down: {event.key} {text}")


Scenario = Callable[[Play], Awaitable[None]]

SCENARIOS: list[Scenario] = [
    a_card_is_shown_once_with_all_it_says,
    the_messages_of_a_thread_keep_their_order,
    a_message_is_drawn_again_in_its_place,
    a_decided_card_has_no_buttons,
    text_is_never_markup,
    a_file_comes_once,
    what_a_crash_left_is_not_shown_twice,
    what_never_arrived_is_shown,
    a_thread_is_opened_once,
    a_whisper_reaches_its_person,
    an_outage_loses_nothing,
]
