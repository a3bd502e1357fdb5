"""What can be looked at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.cards.card import ActionKind, Attachment, Card, LogPart, Meter, Text, Tone
from bot.conversation.state import Checkpoint, Ending
from bot.conversation.words.understand import Intent, understand
from bot.errors import RunnerAway, RunnerError, StoreBusy
from bot.platforms.web.pages import EXAMPLES
from bot.platforms.web.standing import sayable
from bot.store.records import Outcome
from tests.bot.conversation import samples as talk
from tests.bot.platforms.web import story
from tests.bot.platforms.web.browser import Browser
from tests.bot.platforms.web.desk import Desk
from tests.bot.platforms.web.test_all_threads import row


@pytest.fixture
def desk() -> Desk:
    """An empty one."""
    return Desk()


@pytest.fixture
def browser(desk: Desk) -> Browser:
    """Ada's, on this machine."""
    return Browser(desk)


def test_the_first_page_of_a_new_bot_says_what_to_do(browser: Browser) -> None:
    answer = browser.get("/")
    assert answer.status == 200
    assert "Nobody has asked for anything yet." in answer.text
    assert answer.page.one("textarea").attributes["placeholder"] == "quantize Qwen/Qwen3-8B to fp8"


def test_the_list_shows_what_waits_for_the_reader_first(browser: Browser, desk: Desk) -> None:
    threads = story.tell(desk)
    page = browser.get("/").page
    order = [int(line.attributes["href"].rpartition("/")[2]) for line in page.all("a", class_="thread-line")]
    waiting = [threads[name] for name in ("plan", "failed", "command", "result")]
    assert order == [*waiting, threads["analysing"], threads["running"], threads["cancelled"], threads["accepted"]]
    assert len(page.all("a", class_="asks-me")) == len(waiting)
    assert page.one("a", href=f"/threads/{threads['running']}").text.startswith("Qwen/Qwen3-8B to fp8 Running")


def test_the_list_marks_only_what_the_reader_may_decide(browser: Browser, desk: Desk) -> None:
    story.tell(desk)
    desk.decides = {"slack:somebody"}
    assert not browser.get("/").page.all("a", class_="asks-me")
    assert "Nothing waits for you." in browser.get("/?show=waiting").text


def test_the_list_can_be_narrowed(browser: Browser, desk: Desk) -> None:
    threads = story.tell(desk)
    running = browser.get("/?show=running").page.all("a", class_="thread-line")
    assert {line.attributes["href"] for line in running} == {
        f"/threads/{threads[name]}" for name in ("running", "analysing")
    }
    waiting = browser.get("/?show=waiting").page
    assert len(waiting.all("a", class_="thread-line")) == 4
    assert waiting.one("a", href="/?show=waiting").attributes["aria-current"] == "page"
    garbage = browser.get("/?show=%3Cscript%3E").page
    assert len(garbage.all("a", class_="thread-line")) == len(threads)  # it means all


def test_a_long_list_leads_to_all_that_are_open(browser: Browser, desk: Desk) -> None:
    desk.rows = [row(number) for number in range(300, 0, -1)]
    page = browser.get("/").page
    assert len(page.all("a", class_="thread-line")) == 200
    assert page.one("a", href="/runs?state=open")


@pytest.mark.parametrize("number", range(1, len(EXAMPLES) + 1))
def test_every_example_is_understood(browser: Browser, number: int) -> None:
    text = browser.get(f"/?example={number}").page.one("textarea").text
    understood = understand(text, None)
    assert text == EXAMPLES[number - 1]
    assert understood.intent is Intent.REQUEST
    assert understood.changes.model


@pytest.mark.parametrize("example", ["0", "99", "-1", "x", "1" * 50, "%00"])
def test_no_other_example_fills_the_field(browser: Browser, example: str) -> None:
    assert browser.get(f"/?example={example}").page.one("textarea").text == ""


def test_what_the_help_says_is_understood(browser: Browser) -> None:
    page = browser.get("/help").page
    said = {
        line.text: [quoted.text for quoted in page.all("q") if quoted.within("tr") is line.within("tr")]
        for line in page.all("td")
    }
    for word in said["agree to an analysis or a plan"]:
        assert understand(word, Checkpoint.ANALYSIS).intent is Intent.APPROVE
        assert understand(word, Checkpoint.PLAN).intent is Intent.APPROVE
    for word in said["agree to a command"]:
        assert understand(word, Checkpoint.COMMAND).intent is Intent.APPROVE
    for word in said["change something"]:
        assert understand(word, Checkpoint.PLAN).intent is Intent.CHANGE
    accept, reject = said["decide about a result"]
    assert understand(accept, Checkpoint.RESULT).intent is Intent.APPROVE
    assert understand(reject, Checkpoint.RESULT).intent is Intent.REJECT
    assert [understand(word, None).intent for word in said["stop"]] == [Intent.CANCEL]
    assert set(said["go on after a failure"]) <= set(sayable(talk.failed()))
    assert set(said["take up what has ended"]) == set(sayable(talk.ended()))


@pytest.mark.parametrize("kind", sorted(talk.all_states()))
def test_a_thread_in_every_state_can_be_read(browser: Browser, desk: Desk, kind: str) -> None:
    number = desk.begin(talk.analysing())
    desk.go(number, talk.all_states()[kind], None, story.DOCUMENTS)
    answer = browser.get(f"/threads/{number}")
    assert answer.status == 200
    page = answer.page
    assert len(page.all("h1")) == 1
    assert len(page.one("ol", id="steps").text.split()) >= 5
    buttons = page.all("input", name="action")
    assert all(button.attributes["value"].startswith("ptq:") for button in buttons)


@pytest.mark.parametrize("ending", Ending)
def test_an_ended_thread_says_how(browser: Browser, desk: Desk, ending: Ending) -> None:
    number = desk.begin(talk.ended(ending=ending))
    page = browser.get(f"/threads/{number}").page
    assert page.one("div", id="standing").text.startswith(ending.capitalize())


def test_a_thread_tells_words_and_cards_in_order(browser: Browser, desk: Desk) -> None:
    threads = story.tell(desk)
    page = browser.get(f"/threads/{threads['command']}").page
    entries = [one for one in page.all("li", class_="entry") if one.within("ol") is page.one("ol", id="entries")]
    shown = [entry.text for entry in entries]
    assert "quantize Qwen/Qwen3-8B to fp8" in shown[0]
    assert "Approved by Ada" in shown[1]
    assert "looks good" in shown[3]
    assert "Shall I run this exact command?" in shown[-2]
    assert "Only you see this: The template knows" in shown[-3]
    closed = page.all("article", class_="closed")
    assert len(closed) == 2
    assert not [one for one in page.all("button") if one.within("article") in closed]
    assert all(one.text for one in page.all("details"))


def test_the_command_is_shown_letter_by_letter(browser: Browser, desk: Desk) -> None:
    threads = story.tell(desk)
    page = browser.get(f"/threads/{threads['command']}").page
    command = " ".join(story.MANIFEST.argv)
    assert "".join(page.one("figure", class_="command").pieces).count(command) == 1
    assert page.one("button", **{"data-copy": command})
    digest = [one for one in page.all("code") if one.attributes.get("title") == talk.MANIFEST.digest]
    assert [one.text for one in digest] == [talk.MANIFEST.digest[:12]]


def test_a_run_shows_how_far_it_is(browser: Browser, desk: Desk) -> None:
    threads = story.tell(desk)
    page = browser.get(f"/threads/{threads['running']}").page
    assert page.one("progress").attributes == {"max": "100", "value": "42.0", "aria-label": "calibrating"}
    assert page.one("a", href=f"/threads/{threads['running']}/run/log")


def test_old_news_of_a_run_are_marked(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.running())
    meter = Meter(phase="calibrating", percent=3.0, stale="since 2026-03-02 12:03 UTC: The runner does not answer.")
    desk.show(number, "run:9", Card(title="A run", tone=Tone.WORKING, body=(meter,), alternative="A run"))
    page = browser.get(f"/threads/{number}").page
    assert page.one("div", class_="stale").text.endswith("since 2026-03-02 12:03 UTC: The runner does not answer.")
    assert page.one("time", datetime="2026-03-02T12:03:00Z")


def test_a_cut_output_says_how_much_is_missing(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.failed())
    log = LogPart(head=("first",), left_out=1234, tail=("last",))
    desk.show(number, "result:9", Card(title="Output", tone=Tone.BAD, body=(log,), alternative="Output"))
    assert browser.get(f"/threads/{number}").page.one("pre", class_="log").text == "first … 1,234 lines left out … last"


def test_what_a_chat_does_not_show_is_said(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.analysing(), story.SLACK)
    card = desk.show(number, "analysis:2", Card(title="A card", tone=Tone.WORKING, alternative="A card"))
    desk.threads[number][-1] = replace(card, error="The channel is archived.")
    assert "Slack does not show this: The channel is archived." in browser.get(f"/threads/{number}").text


def test_only_its_person_is_told_what_came_of_something(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.reviewing_plan())
    mine = desk.said(number, talk.ADA, "ok", "You may not.")
    theirs = desk.said(number, talk.BOB, "yes", "Bob may not.")
    assert "You may not." in browser.get(f"/threads/{number}?told={mine.id}").page.one("div", id="told").text
    other = browser.get(f"/threads/{number}?told={theirs.id}")
    assert other.page.one("div", id="told").text == ""
    assert "Bob may not." not in other.text
    assert "yes" in other.text  # what was said is for all


def test_a_refused_click_is_shown_to_its_person_alone(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.reviewing_plan())
    story.refused_click(desk, number, talk.ADA)
    story.refused_click(desk, number, talk.BOB)
    assert browser.get(f"/threads/{number}").text.count("pressed Approve") == 1
    assert "times" not in browser.get(f"/threads/{number}").page.one("p", class_="did").text


def pressed(browser: Browser, number: int) -> list[str]:
    """What the thread says of its reader's presses."""
    return [one.text for one in browser.get(f"/threads/{number}").page.all("p", class_="did")]


def test_refused_clicks_that_follow_each_other_are_told_once(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.reviewing_plan())
    versions = set()
    for _ in range(3):
        story.refused_click(desk, number, talk.ADA)
        story.refused_click(desk, number, talk.BOB)  # nobody sees it here
        (entry,) = browser.get(f"/threads/{number}").page.all("li", class_="said")
        versions.add(entry.attributes["data-version"])
    assert pressed(browser, number) == ["pressed Approve 3 times"]
    assert browser.get(f"/threads/{number}").text.count("Only you see this") == 1
    assert len(versions) == 3  # an open page draws it again


def test_refused_clicks_are_told_apart_by_what_came_between_and_what_was_said(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.reviewing_plan())
    story.refused_click(desk, number, talk.ADA)
    story.refused_click(desk, number, talk.ADA)
    desk.said(number, talk.BOB, "wait")
    story.refused_click(desk, number, talk.ADA)
    last = desk.last
    desk.settle(last.id, Outcome(verdict="refused", text="Something else."), number)
    story.refused_click(desk, number, talk.ADA)
    story.refused_click(desk, number, talk.ADA, ActionKind.RETRY)
    assert pressed(browser, number) == [
        *("pressed Approve 2 times", "pressed Approve", "pressed Approve", "pressed Try again")
    ]


def test_the_same_words_twice_stay_two(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.reviewing_plan())
    for _ in range(2):
        desk.said(number, talk.ADA, "yes", "You may not.")
    assert len(browser.get(f"/threads/{number}").page.all("div", class_="bubble")) == 2


@pytest.mark.parametrize("kind", sorted(talk.all_states()))
def test_the_reply_shows_what_counts_now(browser: Browser, desk: Desk, kind: str) -> None:
    number = desk.begin(talk.all_states()[kind])
    examples = " · ".join(sayable(talk.all_states()[kind]))
    page = browser.get(f"/threads/{number}").page
    assert page.one("textarea").attributes["placeholder"] == examples
    part = browser.get(f"/threads/{number}/fragment").page
    assert part.one("div", id="standing").attributes["data-says"] == examples


@pytest.mark.parametrize("told", ["0", "999", "x", "-1", "9" * 40, "%00", "1e3", "²"])
def test_an_address_with_another_number_says_nothing(browser: Browser, desk: Desk, told: str) -> None:
    number = desk.begin(talk.reviewing_plan())
    answer = browser.get(f"/threads/{number}?told={told}")
    assert answer.status == 200
    assert answer.page.one("div", id="told").text == ""


@pytest.mark.parametrize("name", ["999", "0", "-1", "x", "1.5", "9" * 50, "%3Cscript%3E", "١", "²", "%00"])
@pytest.mark.parametrize(
    "page", ["", "/fragment", "/live", "/edit", "/run/log", "/run/files/a.json", "/files/plan/1/a"]
)
def test_an_unknown_thread_is_said_to_be_unknown(browser: Browser, name: str, page: str) -> None:
    answer = browser.get(f"/threads/{name}{page}")
    assert answer.status == 404
    assert "There is no thread" in answer.text


@pytest.mark.parametrize("path", ["/nothing", "/threads", "/threads/1/nothing", "/static", "/%00"])
def test_an_unknown_page_is_said_to_be_unknown(browser: Browser, path: str) -> None:
    answer = browser.get(path)
    assert answer.status == 404
    assert answer.page.one("h1").text == "Not here"


def test_a_page_that_takes_no_form_says_so(browser: Browser) -> None:
    assert browser.post("/help", {}).status == 405
    assert browser.get("/requests").status == 405


def test_a_file_is_taken_under_its_name(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.analysing())
    desk.show(number, "plan:2:file", Attachment(name="quant plan é.json", artifact="plan", number=2))
    desk.files["plan", 2] = b"{}\n"
    href = browser.get(f"/threads/{number}").page.one("a", download="").attributes["href"]
    answer = browser.get(href)
    assert (answer.status, answer.content) == (200, b"{}\n")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == (
        "attachment; filename=\"quant_plan__.json\"; filename*=UTF-8''quant%20plan%20%C3%A9.json"
    )
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    ["plan/2/other.json", "plan/1/a.json", "report/2/a.json", "plan/x/a.json", "plan/2/..%2fa.json", "plan/²/a.json"],
)
def test_only_files_of_the_thread_can_be_taken(browser: Browser, desk: Desk, path: str) -> None:
    number = desk.begin(talk.analysing())
    desk.show(number, "plan:2:file", Attachment(name="a.json", artifact="plan", number=2))
    desk.files |= {("plan", 2): b"mine", ("plan", 1): b"other", ("report", 2): b"other"}
    assert browser.get(f"/threads/{number}/files/{path}").status == 404
    other = desk.begin(talk.analysing())
    assert browser.get(f"/threads/{other}/files/plan/2/a.json").status == 404


def test_a_picture_is_shown_and_an_svg_is_not(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.analysing())
    desk.show(number, "result:1:plot", story.picture())
    desk.show(number, "result:1:svg", story.picture("evil.svg"))
    desk.files["plot", 1] = b"\x89PNG"
    page = browser.get(f"/threads/{number}").page
    picture = page.one("img", loading="lazy")
    assert picture.attributes["alt"] == "Perplexity before and after"
    shown = browser.get(picture.attributes["src"])
    assert (shown.headers["content-type"], shown.headers["content-disposition"]) == ("image/png", "inline")
    saved = browser.get(page.one("a", download="").attributes["href"])
    assert saved.headers["content-disposition"].startswith("attachment")


def test_the_log_of_a_run_is_text(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.running())
    desk.log = [b"<script>alert(1)</script>\n", b"second\n"]
    answer = browser.get(f"/threads/{number}/run/log")
    assert answer.content == b"<script>alert(1)</script>\nsecond\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_log_that_breaks_off_says_so(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.running())
    desk.log, desk.log_breaks = [b"first\n"], RunnerAway("runner_away", "The runner does not answer.", "Try again.")
    answer = browser.get(f"/threads/{number}/run/log")
    assert answer.content == b"first\n\n[The rest could not be read: The runner does not answer. Try again.]\n"


def test_a_thread_without_a_run_has_no_log(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.analysing())
    answer = browser.get(f"/threads/{number}/run/log")
    assert answer.status == 404
    assert "has no run yet" in answer.text


@pytest.mark.parametrize("name", ["../secret", "a/b", ".hidden", "a" * 200, "%00", "x y"])
def test_only_plain_names_are_asked_of_the_runner(browser: Browser, desk: Desk, name: str) -> None:
    number = desk.begin(talk.running())
    desk.run_documents[name] = b"secret"
    assert browser.get(f"/threads/{number}/run/files/{name}").status == 404


def test_the_report_of_a_run_can_be_taken(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.reviewing_result())
    desk.run_documents["validation_report.json"] = b"{}"
    href = f"/threads/{number}/run/files/validation_report.json"
    assert browser.get(f"/threads/{number}").page.one("a", href=href)
    assert browser.get(href).content == b"{}"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StoreBusy("store_busy", "The database is locked by another process.", ""), 503),
        (RunnerAway("runner_away", "The runner does not answer.", ""), 502),
        (RunnerError("no_such_run", "The runner knows no such run.", ""), 404),
        (ValueError("a secret detail"), 500),
    ],
)
@pytest.mark.parametrize("path", ["/", "/runs", "/threads/1", "/threads/1/fragment", "/threads/1/run/log"])
def test_every_failure_is_a_sentence(browser: Browser, desk: Desk, path: str, error: Exception, status: int) -> None:
    desk.begin(talk.running())
    desk.unreadable = error
    answer = browser.get(path)
    assert answer.status == status
    sentence = answer.page.one("div", role="alert").text
    assert sentence.endswith(".")
    assert "secret detail" not in answer.text
    assert "Traceback" not in answer.text


def test_supervisors_learn_whether_the_page_works(browser: Browser, desk: Desk) -> None:
    assert browser.get("/health", {"Host": "10.0.0.7:8321"}).content == b'{"status":"ok"}'
    desk.unreadable = StoreBusy("store_busy", "Locked.", "")
    answer = browser.get("/health")
    assert (answer.status, answer.content) == (503, b'{"status":"failing","code":"store_busy"}')


@pytest.mark.parametrize("name", ["page.css", "page.js", "icon.svg"])
def test_static_files_are_kept_by_browsers_until_they_change(browser: Browser, name: str) -> None:
    page = browser.get("/").page
    addresses = {one.attributes.get("href") or one.attributes.get("src") for one in page.elements}
    (address,) = [one for one in addresses if one and one.startswith(f"/static/{name}")]
    answer = browser.get(address)
    assert answer.status == 200
    assert "immutable" in answer.headers["cache-control"]
    assert browser.get(f"/static/{name}").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("name", ["..%2fapp.py", "app.py", "", "page.css%00", "%2e%2e%2fapp.py", "none.css"])
def test_nothing_else_is_static(browser: Browser, name: str) -> None:
    assert browser.get(f"/static/{name}").status == 404


def test_no_page_needs_anything_from_elsewhere(browser: Browser, desk: Desk) -> None:
    threads = story.tell(desk)
    for path in ("/", "/runs", "/help", f"/threads/{threads['plan']}", f"/threads/{threads['plan']}/edit"):
        page = browser.get(path).page
        for element in page.elements:
            for name in ("href", "src", "action"):
                assert element.attributes.get(name, "/").startswith(("/", "#")), element
            assert not [name for name in element.attributes if name.startswith("on") or name == "style"], element
        assert not [one for one in page.all("script") if one.text]
        assert not page.all("style")


def test_news_of_a_thread_come_as_a_part_of_its_page(browser: Browser, desk: Desk) -> None:
    threads = story.tell(desk)
    part = browser.get(f"/threads/{threads['plan']}/fragment").page
    assert [one.attributes["id"] for one in part.elements if one.parent is None] == [
        *("standing", "steps", "entries", "told", "asked")
    ]
    assert part.one("input", id="asked").attributes["value"] == f"plan:2:{talk.PLAN.digest}"
    listed = browser.get("/fragment?show=running").page
    assert [one.attributes["id"] for one in listed.elements if one.parent is None] == ["told", "threads"]


def test_a_request_that_took_its_time_leads_to_its_thread(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.analysing())
    asked = desk.said(number, talk.ADA, "quantize Qwen/Qwen3-8B to fp8")
    desk.events[asked.id] = replace(asked, outcome=None, conversation=None)
    assert "Recorded." in browser.get(f"/?told={asked.id}").page.one("div", id="told").text
    desk.settle(asked.id, Outcome(verdict="proceeded"), number)
    assert browser.get(f"/?told={asked.id}").target == f"/threads/{number}?told={asked.id}"
    link = browser.get(f"/fragment?told={asked.id}").page.all("a", href=f"/threads/{number}")
    assert f"thread {number}" in [one.text for one in link]


def test_text_of_cards_keeps_its_lines(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.analysing())
    desk.show(number, "plan:9", Card(title="T", tone=Tone.GOOD, body=(Text(text="one\ntwo"),), alternative="T"))
    assert "one\ntwo" in "".join(browser.get(f"/threads/{number}").page.one("article", class_="good").pieces)


def test_long_words_are_shown_by_their_beginning_and_can_be_had_whole(browser: Browser, desk: Desk) -> None:
    thread = story.tell(desk)["plan"]
    text = "the log said: " + "a line of it\n" * 7000
    stored = desk.said(thread, talk.ADA, text)
    page = browser.get(f"/threads/{thread}")
    assert len(page.content) < 100_000
    assert f"{len(text) - 4000:,} more characters" in page.text
    whole = browser.get(f"/threads/{thread}/said/{stored.id}")
    assert whole.content.decode() == text
    assert whole.headers["content-type"].startswith("text/plain")
    for nowhere in (f"/threads/{thread}/said/999999", f"/threads/{thread}/said/x", f"/threads/1000/said/{stored.id}"):
        assert browser.get(nowhere).status == 404
