"""The edit form of a thread."""

from __future__ import annotations

import pytest

from bot.errors import StoreFull
from bot.platforms.contract import Edited
from tests.bot.conversation import samples as talk
from tests.bot.platforms.web import story
from tests.bot.platforms.web.browser import Answer, Browser
from tests.bot.platforms.web.desk import Desk, proceeds

KEY = "a-key-of-a-form"
FULL = StoreFull("store_full", "The disk is full.", "Make room.")


@pytest.fixture
def desk() -> Desk:
    """An empty one."""
    return Desk()


@pytest.fixture
def browser(desk: Desk) -> Browser:
    """Ada's, on this machine."""
    return Browser(desk)


@pytest.fixture
def edited(desk: Desk) -> int:
    """A thread whose plan can be changed."""
    return story.tell(desk)["plan"]


def edit(browser: Browser, number: int, **typed: object) -> Answer:
    """Open the form, type, send."""
    return browser.submit(browser.get(f"/threads/{number}/edit").page, f"/threads/{number}/edit", **typed)


def test_the_form_offers_what_the_runner_has_and_shows_what_applies(browser: Browser, edited: int) -> None:
    page = browser.get(f"/threads/{edited}/edit").page
    groups = [one.attributes["label"] for one in page.all("optgroup")]
    assert groups[:2] == ["FP8", "INT8"]
    assert groups[2].startswith("INT4")
    fields = page.fields(page.form(f"/threads/{edited}/edit"))
    assert fields["global_scheme"] == "fp8"
    assert fields["num_calib_data"] == "128"
    assert fields["exclude_layers"] == "lm_head"
    assert fields["digest"] == talk.PLAN.digest


def test_only_what_was_changed_is_sent(browser: Browser, desk: Desk, edited: int) -> None:
    answer = edit(browser, edited, global_scheme="int4_wo_128", num_calib_data="256", algorithm=["", "awq"])
    assert answer.target == f"/threads/{edited}?told={desk.last.id}#told"
    what = desk.last.event.what
    assert isinstance(what, Edited)
    assert what.conversation == edited
    assert what.digest == talk.PLAN.digest
    assert what.changes.flat() == {
        "global_scheme": "int4_wo_128",
        "algorithm": "awq",
        "calibration": {"num_calib_data": 256},
    }
    shown = browser.follow(answer).text
    assert "changed scheme int4_wo_128" in shown
    assert "256" in shown


def test_a_list_is_typed_line_by_line(browser: Browser, desk: Desk, edited: int) -> None:
    edit(browser, edited, exclude_layers="lm_head\r\n*router*\r\n\r\n", layer_quant_config="*down_proj = int8")
    what = desk.last.event.what
    assert isinstance(what, Edited)
    assert what.changes.flat() == {
        "exclude_layers": ["lm_head", "*router*"],
        "layer_quant_config": {"*down_proj": "int8"},
    }


def test_what_does_not_fit_is_said_at_its_field_and_all_that_was_typed_stays(
    browser: Browser, desk: Desk, edited: int
) -> None:
    before = len(desk.events)
    answer = edit(browser, edited, num_calib_data="<b>many</b>", seq_len="-3", output_dir="/data/elsewhere")
    assert answer.status == 422
    page = answer.page
    assert len(desk.events) == before
    for name in ("num_calib_data", "seq_len"):
        field = page.one("input", id=f"f-{name}")
        assert field.attributes["aria-invalid"] == "true"
        assert page.one("p", id=f"w-{name}").text.endswith(".")
        assert f"w-{name}" in field.attributes["aria-describedby"]
        assert page.one("a", href=f"#f-{name}")
    fields = page.fields(page.form(f"/threads/{edited}/edit"))
    assert (fields["num_calib_data"], fields["seq_len"]) == ("<b>many</b>", "-3")
    assert fields["output_dir"] == "/data/elsewhere"
    again = browser.submit(page, f"/threads/{edited}/edit", num_calib_data="64", seq_len="512")
    assert again.status == 303
    what = desk.last.event.what
    assert isinstance(what, Edited)
    assert what.changes.flat() == {"output_dir": "/data/elsewhere", "calibration": {"num_calib_data": 64}}


@pytest.mark.parametrize("name", ["output_dir", "model"])
@pytest.mark.parametrize(
    "path", ["..", "../..", "../x", "a/../../b", "./../x", "~", "~/models", "~ada/x", " ../x ", "a/.././.."]
)
def test_a_path_that_climbs_or_means_a_home_is_said_at_its_field(
    browser: Browser, desk: Desk, edited: int, name: str, path: str
) -> None:
    if name == "model":
        desk.forms[edited] = story.form(edited, talk.reviewing_analysis(), None)
    before = len(desk.events)
    answer = edit(browser, edited, **{name: path})
    assert answer.status == 422
    sentence = answer.page.one("p", id=f"w-{name}").text
    assert "begins with /." in sentence
    assert ("~" if "~" in path else '".."') in sentence
    assert answer.page.one("input", id=f"f-{name}").attributes["value"] == path
    assert len(desk.events) == before


@pytest.mark.parametrize("path", ["a..b", "..a", "a/../b", "/data/../x", "a~b", "my-folder", "/~/x", "x/~"])
def test_every_other_path_is_the_runners_to_judge(browser: Browser, desk: Desk, edited: int, path: str) -> None:
    assert edit(browser, edited, output_dir=path).status == 303
    what = desk.last.event.what
    assert isinstance(what, Edited)
    assert what.changes.flat() == {"output_dir": path}


def test_a_path_that_stood_there_already_is_not_told_off(browser: Browser, desk: Desk, edited: int) -> None:
    state = talk.reviewing_plan(request=talk.REQUEST.model_copy(update={"output_dir": "../elsewhere"}))
    desk.go(edited, state, None, story.DOCUMENTS)
    desk.forms[edited] = story.form(edited, state)
    assert edit(browser, edited, num_calib_data="64").status == 303


def test_all_that_is_wrong_is_said_at_once(browser: Browser, edited: int) -> None:
    page = edit(browser, edited, output_dir="../x", num_calib_data="many").page
    assert page.one("p", id="w-output_dir")
    assert page.one("p", id="w-num_calib_data")


def test_a_form_without_changes_sends_nothing(browser: Browser, desk: Desk, edited: int) -> None:
    before = len(desk.events)
    answer = edit(browser, edited)
    assert answer.status == 422
    assert answer.page.one("p", role="alert").text == "Nothing was changed, so nothing was sent."
    assert len(desk.events) == before


def test_a_form_does_not_take_back_what_somebody_else_changed(browser: Browser, desk: Desk, edited: int) -> None:
    page = browser.get(f"/threads/{edited}/edit").page
    state = talk.reviewing_plan(
        plan=talk.PLAN.model_copy(update={"digest": talk.digest_of("plan 2"), "scheme": "int8"})
    )
    plan = story.PLAN.model_copy(update={"global_scheme": "int8"})
    desk.go(edited, state, None, story.DOCUMENTS)
    desk.forms[edited] = story.form(edited, state, plan)
    before = len(desk.events)
    answer = browser.submit(page, f"/threads/{edited}/edit", num_calib_data="64")
    assert answer.status == 409
    assert len(desk.events) == before
    again = answer.page
    fields = again.fields(again.form(f"/threads/{edited}/edit"))
    assert (fields["global_scheme"], fields["num_calib_data"]) == ("int8", "64")
    assert browser.submit(again, f"/threads/{edited}/edit").status == 303
    what = desk.last.event.what
    assert isinstance(what, Edited)
    assert what.changes.flat() == {"calibration": {"num_calib_data": 64}}
    assert what.digest == talk.digest_of("plan 2")


def test_a_double_click_on_the_form_is_one_change(browser: Browser, desk: Desk, edited: int) -> None:
    page = browser.get(f"/threads/{edited}/edit").page
    before = len(desk.events)
    first = browser.submit(page, f"/threads/{edited}/edit", num_calib_data="64")
    state = talk.planning()
    desk.go(edited, state)
    desk.forms[edited] = story.form(edited, state, None)
    second = browser.submit(page, f"/threads/{edited}/edit", num_calib_data="64")
    assert first.target == second.target
    assert len(desk.events) == before + 1


def test_a_change_that_cannot_be_kept_stays_in_the_form(browser: Browser, desk: Desk, edited: int) -> None:
    desk.unwritable = FULL
    answer = edit(browser, edited, num_calib_data="64")
    assert answer.status == 503
    assert "This was not recorded" in answer.page.one("p", role="alert").text
    assert answer.page.one("input", id="f-num_calib_data").attributes["value"] == "64"
    desk.unwritable = None
    assert browser.submit(answer.page, f"/threads/{edited}/edit").status == 303


def test_a_thread_where_nothing_can_be_changed_says_so(browser: Browser, desk: Desk) -> None:
    number = desk.begin(talk.running())
    for answer in (
        browser.get(f"/threads/{number}/edit"),
        browser.post(f"/threads/{number}/edit", {"key": KEY, "digest": ""}),
    ):
        assert answer.status == 409
        assert f"Nothing of thread {number} can be changed" in answer.text


def test_the_form_of_a_request_without_a_known_runner_can_be_typed(browser: Browser, desk: Desk) -> None:
    desk.answer = proceeds
    state = talk.reviewing_analysis()
    number = desk.begin(state)
    desk.forms[number] = story.form(number, state, None, known=False)
    answer = edit(browser, number, model="other/model", global_scheme="int8")
    assert answer.status == 303
    what = desk.last.event.what
    assert isinstance(what, Edited)
    assert what.changes.flat() == {"model": "other/model", "global_scheme": "int8"}


def test_a_toggle_can_be_switched_off(browser: Browser, desk: Desk, edited: int) -> None:
    state = talk.reviewing_plan()
    plan = story.PLAN.model_copy(update={"kv_cache_post_rope": True})
    desk.forms[edited] = story.form(edited, state, plan)
    page = browser.get(f"/threads/{edited}/edit").page
    assert "checked" in page.one("input", id="f-kv_cache_post_rope").attributes
    assert browser.submit(page, f"/threads/{edited}/edit", kv_cache_post_rope="false").status == 303
    what = desk.last.event.what
    assert isinstance(what, Edited)
    assert what.changes.flat() == {"kv_cache_post_rope": False}
