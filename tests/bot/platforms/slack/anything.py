"""Cards and forms that hold anything: every block, every field, hostile and huge text."""

from __future__ import annotations

from hypothesis import strategies as st

from bot.cards.card import (
    Action,
    ActionKind,
    Block,
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
from bot.cards.form_data import Form, FormField, Option
from bot.conversation.person import Person
from bot.conversation.state import Checkpoint
from schemas.artifacts.plan import Severity
from tests.bot.cards.hostile import TEXTS

ADA = Person(id="slack:U012AB3CD", name="ada")

_PIECES = (
    "<!channel>",
    "<!here|here> <!everyone> <!subteam^S1>",
    "<<!!channel>> <!<!channel>",
    "<@U123> <#C1> <http://evil|safe>",
    "`x` ``` <http://evil|/models/safe> *a* _b_ ~c~ :tada:",
    "&lt;!channel&gt; &amp;amp;",
    "<!" * 3_000,
    "a" * 9_000,
    "word " * 2_000,
    "\N{GRINNING FACE}" * 4_000,
    "ﷺ" * 3_000,
    "",
    " ",
    "\n\n\n",
    "x",
)
TEXT = st.one_of(st.sampled_from(_PIECES), TEXTS, st.lists(st.sampled_from(_PIECES), max_size=3).map("".join))
DIGEST = st.text("0123456789abcdef", min_size=12, max_size=64)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Up to more columns and rows than Slack takes."""
    width = draw(st.sampled_from([1, 2, 3, 20, 25]))
    row = st.lists(TEXT, min_size=width, max_size=width).map(tuple)
    rows = draw(st.lists(row, min_size=1, max_size=3))
    count = draw(st.sampled_from([0, 1, 3, 99, 150]))
    return Table(
        caption=draw(TEXT),
        head=draw(row),
        rows=tuple(rows[number % len(rows)] for number in range(count)),
        numeric=draw(st.sampled_from([(), (0,), (0, 1)])),
    )


NOTES = st.builds(Note, severity=st.sampled_from(Severity), message=TEXT, hint=TEXT)
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    st.builds(Text, text=TEXT),
    st.builds(Fields, fields=st.lists(st.tuples(TEXT, TEXT), max_size=12).map(tuple)),
    tables(),
    st.builds(Notes, title=TEXT, notes=st.lists(NOTES, max_size=12).map(tuple)),
    st.builds(CommandLine, command=TEXT, digest=DIGEST | TEXT),
    st.builds(Meter, phase=TEXT, percent=st.floats(0, 100), detail=TEXT, stale=TEXT),
    st.builds(
        LogPart,
        head=st.lists(TEXT, max_size=6).map(tuple),
        left_out=st.integers(0, 10**6),
        tail=st.lists(TEXT, max_size=6).map(tuple),
    ),
)
ACTIONS = st.builds(
    Action,
    kind=st.sampled_from(ActionKind),
    conversation=st.integers(0, 10**14),
    checkpoint=st.none() | st.sampled_from(Checkpoint),
    digest=DIGEST,
    step=st.integers(0, 10**9),
)
BUTTONS = st.builds(
    Button, label=TEXT, action=ACTIONS, style=st.sampled_from(["primary", "danger", "plain"]), confirm=TEXT
)
PEOPLE = st.one_of(
    st.just(ADA), st.builds(Person, id=st.sampled_from(["web:ada", "slack:<!here>"]), name=st.text(max_size=200))
)
_CARDS = st.builds(
    Card,
    title=TEXT,
    tone=st.sampled_from(Tone),
    body=st.one_of(
        st.lists(BLOCKS, max_size=6), st.lists(BLOCKS, min_size=1, max_size=2).map(lambda one: one * 25)
    ).map(tuple),
    buttons=st.one_of(
        st.lists(BUTTONS, max_size=4), st.lists(BUTTONS, min_size=1, max_size=2).map(lambda one: one * 15)
    ).map(tuple),
    outcome=TEXT,
    alternative=TEXT,
    mention=st.none() | PEOPLE,
)


class Held:
    """A card, only the beginning of which is told where a test fails with it."""

    def __init__(self, card: Card) -> None:
        self.card = card

    def __repr__(self) -> str:
        return f"{self.card!r}"[:3_000]


CARDS = _CARDS.map(Held)


class HeldForm:
    """The same of a form."""

    def __init__(self, form: Form) -> None:
        self.form = form

    def __repr__(self) -> str:
        return f"{self.form!r}"[:3_000]


_NAMES = (
    *("global_scheme", "algorithm", "kv_cache_scheme", "exclude_layers", "output_dir", "seq_len", "min_kv_scale"),
    *("trust_remote_code", "layer_quant_config", "model", "tasks"),
)
OPTIONS = st.builds(Option, value=TEXT, label=TEXT, group=TEXT, about=TEXT)


@st.composite
def fields(draw: st.DrawFn, name: str) -> FormField:
    """One field of any kind, filled with anything, with more options than Slack takes."""
    kind = draw(st.sampled_from(["select", "number", "text", "list", "toggle"]))
    options = draw(st.lists(OPTIONS, max_size=4)) if kind in ("select", "list") else []
    many = draw(st.sampled_from([1, 1, 1, 60]))
    offered = tuple(
        option.model_copy(update={"value": f"{option.value}{number or ''}"})
        for number in range(many)
        for option in options
    )
    values = [option.value for option in offered[:3]] + [draw(TEXT)]
    value: str | tuple[str, ...] = tuple(values) if kind == "list" else draw(st.sampled_from(values))
    if kind == "number":
        value = draw(st.sampled_from(["", "1", "128", "99999999999", "1e-5", value if isinstance(value, str) else ""]))
    return FormField(
        name=name,
        label=draw(TEXT),
        kind=kind,
        section=draw(TEXT),
        value=value,
        options=offered,
        help=draw(TEXT),
        least=draw(st.sampled_from([None, 0, 1])),
        most=draw(st.sampled_from([None, 1_000_000])),
        whole=draw(st.booleans()),
    )


@st.composite
def _forms(draw: st.DrawFn) -> HeldForm:
    """A form of any fields, sometimes of more than a view takes."""
    names = draw(st.lists(st.sampled_from(_NAMES), unique=True, max_size=len(_NAMES)))
    drawn = [draw(fields(name)) for name in names]
    again = draw(st.sampled_from([0, 0, 12]))
    more = [field.model_copy(update={"name": f"{field.name}_{number}"}) for number in range(again) for field in drawn]
    return HeldForm(Form(conversation=7, title=draw(TEXT), digest=draw(DIGEST), fields=(*drawn, *more)))


FORMS = _forms()
