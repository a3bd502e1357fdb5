from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.host.hub_refusals import Asked, refusal

WITHOUT = Asked("https://huggingface.co", "org/tiny", "main", "config.json")
WITH = Asked("https://huggingface.co", "org/tiny", "main", "config.json", "HF_TOKEN of the runner")


@pytest.mark.parametrize(
    ("status", "headers", "asked", "code"),
    [
        (401, {}, WITHOUT, "hub_private_or_missing"),
        (401, {"x-error-message": "Invalid username or password."}, WITHOUT, "hub_private_or_missing"),
        (401, {"x-error-code": "RepoNotFound"}, WITHOUT, "hub_private_or_missing"),
        (401, {"x-error-code": "RepoNotFound"}, WITH, "hub_model_missing"),
        (401, {"x-error-message": "Invalid credentials in Authorization header"}, WITH, "hub_token_refused"),
        (401, {"x-error-code": "GatedRepo"}, WITHOUT, "hub_gated"),
        (403, {"x-error-code": "GatedRepo"}, WITH, "hub_gated"),
        (403, {}, WITH, "hub_forbidden"),
        (403, {"x-error-message": "Access to this resource is disabled."}, WITHOUT, "hub_forbidden"),
        (404, {"x-error-code": "RepoNotFound"}, WITH, "hub_model_missing"),
        (404, {}, WITHOUT, "hub_model_missing"),
        (404, {"x-error-code": "RevisionNotFound"}, WITHOUT, "hub_revision_missing"),
        (400, {"x-error-message": "Invalid rev id: x"}, WITHOUT, "hub_revision_missing"),
        (404, {"x-error-code": "EntryNotFound"}, WITHOUT, "hub_file_missing"),
        (400, {}, WITHOUT, "hub_refused"),
        (429, {}, WITHOUT, "hub_rate_limited"),
        (500, {}, WITHOUT, "hub_failed"),
        (504, {}, WITHOUT, "hub_failed"),
        (304, {}, WITHOUT, "hub_refused"),
    ],
)
def test_each_answer_has_its_own_code(status: int, headers: dict[str, str], asked: Asked, code: str) -> None:
    error = refusal(status, headers, asked)
    assert error.code == code
    assert error.message.endswith(".")
    assert error.hint.endswith(".")


def test_who_may_read_is_told_where_to_ask() -> None:
    assert "https://huggingface.co/org/tiny" in refusal(403, {"x-error-code": "GatedRepo"}, WITH).hint
    assert "HF_TOKEN" in refusal(401, {}, WITHOUT).hint
    assert "HF_TOKEN of the runner" in refusal(401, {}, WITH).message


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"retry-after": "120"}, "120 seconds"),
        ({"retry-after": " 3 "}, "3 seconds"),
        ({"retry-after": "soon"}, "without saying how long"),
        ({"retry-after": "-5"}, "without saying how long"),
        ({"ratelimit": '"api";r=0;t=55'}, "55 seconds"),
        ({"ratelimit": '"api";r=7;t=55'}, "without saying how long"),
        ({"retry-after": "1", "ratelimit": '"api";r=0;t=55'}, "1 seconds"),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], words: str) -> None:
    assert words in refusal(429, headers, WITHOUT).message


def test_how_long_to_wait_until_a_date() -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=600), usegmt=True)
    seconds = int(refusal(429, {"retry-after": at}, WITHOUT).message.split("to wait ")[1].split(" ")[0])
    assert 590 <= seconds <= 600


@given(
    status=st.integers(100, 999),
    headers=st.dictionaries(
        st.sampled_from(["retry-after", "ratelimit", "x-error-code", "x-error-message"]), st.text(max_size=40)
    ),
)
def test_no_answer_is_without_a_sentence(status: int, headers: dict[str, str]) -> None:
    error = refusal(status, headers, WITHOUT)
    assert error.message.isprintable()
    assert error.message.endswith(".")
