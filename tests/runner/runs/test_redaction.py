"""No byte of a secret leaves this host, wherever a log is cut or opened."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from runner.runs.redaction import Redactor, secrets_of
from tests.fixtures_folder import fixture_files

SECRET = 'p"ss/wörd+42'
KNOWN = Redactor([SECRET, "abcdef", "cdefgh"])
NONE = Redactor()

HF = "hf_" + "aB3" * 11
SLACK = "xoxb-1234567890-" + "Zz9" * 6
APP = "xapp-1-A0B1C2D3E4-" + "f0" * 12
DISCORD = "MTA" + "x9" * 11 + ".Gh_4-z." + "Q7" * 14
GITHUB = "ghp_" + "k5J" * 12
OPENAI = "sk-proj-" + "W_4-" * 6
AWS = "AKIA" + "Q7ZB" * 4


def percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def unicode_escapes(text: str) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


def stars(secret: str) -> str:
    return "*" * len(secret.encode())


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        (f"Using token {HF}.", HF),
        (f"a\\n{HF}", HF),
        (f"SLACK_BOT_TOKEN={SLACK}", SLACK),
        (f"SLACK_APP_TOKEN='{APP}'", APP),
        ("xoxp-" + "1" * 12, "xoxp-" + "1" * 12),
        (f"login with {DISCORD}", DISCORD),
        (f"push to https://github.com with {GITHUB}", GITHUB),
        ("github_pat_" + "A1_" * 9, "github_pat_" + "A1_" * 9),
        (f"key={OPENAI},", OPENAI),
        (f"key\\n{OPENAI}", OPENAI),
        (f"key%3D{OPENAI}", OPENAI),
        (f"{AWS} is the id", AWS),
        ("Authorization: Bearer abc", "abc"),
        ("authorization=bearer  a.b-c_d", "a.b-c_d"),
        ("{'Authorization': 'Bearer s3cr3t!'}", "s3cr3t!"),
        ('{\\"authorization\\": \\"Bearer s3cr3t\\"}', "s3cr3t"),
        ("(b'Authorization', b'Bearer s3cr3t')", "s3cr3t"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("Authorization: Token " + "ab12" * 10, "ab12" * 10),
        ("-H 'BEARER " + "ab12" * 5 + "'", "ab12" * 5),
        ("postgresql+psycopg://bot:s3cr3t@db:5432/x", "bot:s3cr3t"),
        ("redis://:s3cr3t@host", ":s3cr3t"),
        ("https://oauth2:p@ss:w?rd@host/path", "oauth2:p@ss:w?rd"),
        ("https://hooks.slack.com/services/T0/B0/abcDEF123", "T0/B0/abcDEF123"),
        ("https://discord.com/api/webhooks/1234/" + "ab_-" * 15, "1234/" + "ab_-" * 15),
    ],
)
def test_what_looks_like_a_token(line: str, secret: str) -> None:
    expected = line.replace(secret, stars(secret))
    assert secret not in expected
    assert NONE.redact(line.encode()) == expected.encode()
    assert NONE.redact_text(line) == line.replace(secret, "***")


@pytest.mark.parametrize(
    "line",
    [
        "hf_format quantized model exported, hf_hub_download, hf_transfer",
        "--model_export hf_format",
        "task-management-and-scheduling-of-jobs, risk-adjusted-return-of-capital, desk-booking-system-of-x",
        "Authorization failed: bearer token missing",
        "authorization: token expired",
        "bearer authentication is required",
        "https://huggingface.co/datasets/mit-han-lab/pile-val-backup/resolve/main/README.md",
        "https://host:8080/path and user@host",
        "http://host:8080 then mail user@host",
        "model.layers.0.self_attn.q_proj and MistralForCausalLM.from_pretrained.x",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "AKIA and AKIASHORT",
        "xoxb-short, ghp_short, sk-short",
        "",
    ],
)
def test_what_is_no_secret(line: str) -> None:
    assert NONE.redact(line.encode()) == line.encode()
    assert NONE.redact_text(line) is line


@pytest.mark.parametrize("path", fixture_files("quark/logs/*"))
def test_recorded_logs_stay_as_they_are(path: Path) -> None:
    log = path.read_bytes()
    assert NONE.redact(log) == log


@pytest.mark.parametrize(
    "shown",
    [
        SECRET,
        quote(SECRET, safe=""),
        quote(SECRET),
        quote(SECRET, safe="").lower(),
        quote_plus("user " + SECRET).removeprefix("user+"),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(SECRET)[1:-1])[1:-1],
        repr(SECRET)[1:-1],
        base64.b64encode(SECRET.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
        base64.b32encode(SECRET.encode()).decode().rstrip("="),
        base64.b32encode(SECRET.encode()).decode().rstrip("=").lower(),
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        percent(SECRET),
        percent(SECRET).lower(),
        percent(SECRET[:5]) + SECRET[5:],
        SECRET[:-1] + percent(SECRET[-1]),
        unicode_escapes(SECRET),
        unicode_escapes(SECRET).upper().replace("U", "u"),
        SECRET[0] + unicode_escapes(SECRET[1:3]) + SECRET[3:],
        SECRET[0] + unicode_escapes(SECRET[1:3]).replace("\\", "\\\\") + SECRET[3:],
        SECRET[0] + unicode_escapes(SECRET[1:3]).replace("\\", "\\\\\\\\") + SECRET[3:],
        "".join(f"\\x{byte:02x}" for byte in SECRET.encode()),
        "".join(letter if letter.isalnum() else percent(letter) for letter in SECRET),
        "".join(letter if letter.isalnum() else unicode_escapes(letter) for letter in SECRET),
        percent(SECRET[:4]) + unicode_escapes(SECRET[4:8]) + SECRET[8:],
    ],
)
def test_spellings_of_a_known_secret(shown: str) -> None:
    assert Redactor([SECRET]).redact(f"<{shown}>".encode()) == f"<{stars(shown)}>".encode()


@pytest.mark.parametrize("secret", ["50%25-off", "a%41%2541", "\\\\srv\\\\x41", "%%%%%%%%"])
def test_secrets_that_look_like_escapes_themselves(secret: str) -> None:
    redactor = Redactor([secret])
    for shown in (secret, percent(secret), secret[0] + percent(secret[1:]), percent(secret[:3]) + secret[3:]):
        assert redactor.redact(f"<{shown}>".encode()) == f"<{stars(shown)}>".encode()
        for cut in range(len(shown)):
            assert streamed(redactor, pieces(f"<{shown}>".encode(), [cut])) == f"<{stars(shown)}>".encode()


def test_escapes_of_something_else_stay() -> None:
    redactor = Redactor([SECRET])
    log = b"%70%22ss/other \\u0070\\u0022 100%|#| 25% \\x1b[0m \\ud800 %zz"
    assert redactor.redact(log) == log


@pytest.mark.parametrize(
    ("plain", "sign"),
    [(HF, "_"), ("hf_oauth_" + "aB3" * 9, "_"), (APP, "-"), (SLACK, "-"), (GITHUB, "_"), (OPENAI, "-")],
)
@pytest.mark.parametrize("write", [percent, unicode_escapes])
def test_what_looks_like_a_token_with_its_signs_escaped(plain: str, sign: str, write: Callable[[str], str]) -> None:
    for written in (write(sign), write(sign).lower()):
        shown = plain.replace(sign, written)
        log = f"token={shown} and".encode()
        assert NONE.redact(log) == f"token={stars(shown)} and".encode()
        for cut in range(len(log) + 1):
            assert streamed(NONE, pieces(log, [cut])) == NONE.redact(log)


@pytest.mark.parametrize("before", ["", "u", "us", "use", "user", "user:"])
def test_base32_of_a_text_around_a_known_secret(before: str) -> None:
    secret = "correct horse"
    coded = base64.b32encode((before + secret + "xyz").encode())
    redacted = Redactor([secret]).redact(coded)
    first, last = -(len(before) * 8 // -5), len(before + secret) * 8 // 5
    assert set(redacted[first:last]) == {ord("*")}
    assert len(redacted) == len(coded)


@pytest.mark.parametrize("before", ["", "u", "us", "user:"])
@pytest.mark.parametrize("after", ["", "x", "xy"])
def test_base64_of_a_text_around_a_known_secret(before: str, after: str) -> None:
    secret = "correct horse"
    coded = base64.b64encode((before + secret + after).encode())
    redacted = Redactor([secret]).redact(coded)
    # A character at either edge also codes the neighbour; those at most stay.
    first, last = len(before) * 8 // 6 + 1, len(before + secret) * 8 // 6
    assert set(redacted[first:last]) == {ord("*")}
    assert len(redacted) == len(coded)


def test_lines_of_a_known_secret() -> None:
    lines = ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG", "short", "9w0BAQEFAASCBKcwggSj", "-----END"]
    redactor = Redactor(["\n".join(lines) + "\n"])
    assert redactor.redact("\n".join(lines).encode()) == b"*" * len("\n".join(lines))
    for line in lines:
        expected = "*" * 20 if len(line) == 20 else line
        assert redactor.redact(f"| {line} |".encode()) == f"| {expected} |".encode()


def test_short_values_are_no_secrets() -> None:
    redactor = Redactor(["", "true", "12345", "  1234  ", "sixsix"])
    assert redactor.redact(b"true 12345 sixsix") == b"true 12345 ******"


def test_secrets_that_overlap_or_hold_each_other() -> None:
    redactor = Redactor(["abcdef", "cdefgh", "bcdefghi", "aaaaaa"])
    assert redactor.redact(b"-abcdefgh-") == b"-********-"
    assert redactor.redact(b"-abcdefghij-") == b"-*********j-"
    assert redactor.redact(b"-aaaaaaa-aaaaa-") == b"-*******-aaaaa-"


def test_a_secret_that_is_no_text() -> None:
    assert Redactor(["caf\udce9-s3cret"]).redact(b"<caf\xe9-s3cret>") == b"<***********>"
    assert Redactor(["\ud800-s3cret"]).redact_text("<\ud800-s3cret>") == "<***>"


def test_texts_and_documents() -> None:
    document: JsonValue = {
        "reason": f"failed with {SECRET} and {HF}",
        "nested": [{"abcdef": None, "n": 1.5, "yes": True}, "fine"],
    }
    assert KNOWN.redact_document(document) == {
        "reason": "failed with *** and ***",
        "nested": [{"***": None, "n": 1.5, "yes": True}, "fine"],
    }
    assert KNOWN.redact_text("größe abcdefgh → x") == "größe *** → x"


# --- in pieces ---------------------------------------------------------------------------------------------------


def streamed(redactor: Redactor, feeds: Iterable[bytes]) -> bytes:
    stream = redactor.stream()
    return b"".join([*map(stream.feed, feeds), stream.finish()])


def pieces(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    places = [0, *sorted(cuts), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


LOG = "\n".join(
    [
        f"abcdefgh {SECRET} {quote(SECRET)} {base64.b64encode(SECRET.encode()).decode()}",
        f"{HF} {SLACK}\r{APP} x{OPENAI} {OPENAI} {AWS}",
        f"{DISCORD} M{DISCORD} {GITHUB}",
        f"{percent(SECRET)} {unicode_escapes(SECRET)} {SECRET.encode().hex()} {HF.replace('_', '%5F')} abc%64ef 50%",
        "https://user:p@ss@host/ 'Authorization': 'Bearer abc' hf_short abcde",
    ]
).encode()


def test_cut_at_every_position() -> None:
    whole = KNOWN.redact(LOG)
    assert whole.count(b"*") > 200
    assert len(whole) == len(LOG)
    for cut in range(len(LOG) + 1):
        assert streamed(KNOWN, pieces(LOG, [cut])) == whole
    assert streamed(KNOWN, (bytes([byte]) for byte in LOG)) == whole


@pytest.mark.parametrize(
    "text",
    [
        b"abcdefghij abcde",
        b"xabcdefabcdefgh",
        b"s://u:p@q@h ://u:p",
        b"Authorization: Bearer ab\n",
        b" AKIAABCDEFGHIJKLMNOPQ",
    ],
)
def test_cut_at_every_pair_of_positions(text: bytes) -> None:
    whole = KNOWN.redact(text)
    assert b"**" in whole
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            assert streamed(KNOWN, pieces(text, [first, second])) == whole


def test_a_stream_holds_back_no_more_than_a_beginning() -> None:
    stream = KNOWN.stream()
    assert stream.feed(b"step 1 of 2\n") == b"step 1 of 2\n"
    assert stream.feed(b"then abcd") == b"then "
    assert stream.feed(b"..") == b"abcd.."
    assert stream.feed(b"abcdef") == b"******"
    assert stream.feed(b"g") == b""
    assert stream.feed(b"h.") == b"**."
    assert stream.feed(HF.encode()) == stars(HF).encode()
    assert stream.feed(b"Zz9 ") == b"*** "
    assert stream.feed(b"hf_abc") == b""
    assert stream.finish() == b"hf_abc"
    assert stream.finish() == b""


# Pieces that meet each other often: secrets and tokens, their beginnings, and what ends them.
FRAGMENTS = st.one_of(
    st.sampled_from([SECRET, "abcdef", "cdefgh", HF, SLACK, APP, DISCORD, GITHUB, OPENAI, AWS, "://u:p@h"]),
    st.sampled_from([SECRET, HF, SLACK, DISCORD, OPENAI, AWS, "://user:p@"]).flatmap(
        lambda token: st.integers(1, len(token)).map(lambda length: token[:length])
    ),
    st.sampled_from(["Authorization", ": ", "Bearer ", "bearer", "'", "\\n", "%3D", ".", "@", ":", "/", "M", "a", "b"]),
    st.sampled_from([percent(SECRET), unicode_escapes("abcdef"), b"abcdef".hex(), HF.replace("_", "\\u005f")]),
    st.sampled_from(
        ["%", "%6", "%61", "%62", "%25", "\\", "\\u", "\\u00", "61", "\\u0063", "\\x64", "%65%66", "f", "bc"]
    ),
    st.sampled_from([" ", "\n", "\r", "word", "h", "x", "cdef", "sk-", "hf_", "ö"]),
)
LOGS = st.lists(FRAGMENTS, max_size=14).map(lambda parts: "".join(parts).encode())


@settings(max_examples=300, deadline=None)
@given(log=LOGS, cuts=st.lists(st.integers(0, 500), max_size=12))
def test_a_stream_is_the_same_however_it_is_cut(log: bytes, cuts: list[int]) -> None:
    whole = KNOWN.redact(log)
    assert len(whole) == len(log)
    assert streamed(KNOWN, pieces(log, [cut for cut in cuts if cut <= len(log)])) == whole
    for secret in (SECRET.encode(), b"abcdef", b"cdefgh", HF.encode(), AWS.encode()):
        assert secret not in whole


@settings(max_examples=150, deadline=None)
@given(log=LOGS)
def test_what_is_out_is_right_whatever_comes_later(log: bytes) -> None:
    whole = KNOWN.redact(log)
    for size in range(len(log) + 1):
        assert whole.startswith(KNOWN.stream().feed(log[:size]))


# --- by windows --------------------------------------------------------------------------------------------------


def window(redactor: Redactor, log: bytes, offset: int, length: int, size: int, final: bool) -> bytes:
    def read(start: int, count: int) -> bytes:
        assert start >= 0
        assert start + count <= size
        return log[start : start + count]

    content, following = redactor.redact_window(read, offset, length, size, final)
    assert following == offset + len(content)
    assert len(content) <= length
    return content


def test_a_window_at_every_offset() -> None:
    whole = KNOWN.redact(LOG)
    for offset in range(len(LOG) + 1):
        for length in (0, 1, 7, 1000):
            assert window(KNOWN, LOG, offset, length, len(LOG), final=True) == whole[offset : offset + length]


@settings(max_examples=200, deadline=None)
@given(log=LOGS, offset=st.integers(0, 300), length=st.integers(1, 300), size=st.integers(0, 500))
def test_a_window_of_a_growing_log(log: bytes, offset: int, length: int, size: int) -> None:
    size = min(size, len(log))
    content = window(KNOWN, log, offset, length, size, final=False)
    # What was given before the log grew is what a later reader sees, too.
    assert content == KNOWN.redact(log)[offset : offset + len(content)]
    # A stream that has read as much gives as much.
    assert offset + len(content) >= min(offset + length, len(KNOWN.stream().feed(log[:size])), size)


def test_the_beginning_of_a_secret_at_the_end_is_held_back() -> None:
    log = b"token: " + HF.encode()
    assert window(KNOWN, log, 0, 100, 10, final=False) == b"token: "
    assert window(KNOWN, log, 7, 100, 10, final=False) == b""
    assert window(KNOWN, log, 0, 100, 10, final=True) == b"token: hf_"
    assert window(KNOWN, log, 0, 100, len(log), final=False) == b"token: " + stars(HF).encode()


def test_following_a_growing_log_gives_all_of_it() -> None:
    given, size = b"", 0
    while len(given) < len(LOG):
        size = min(size + 5, len(LOG))
        given += window(KNOWN, LOG, len(given), 9, size, final=size == len(LOG))
    assert given == KNOWN.redact(LOG)


@settings(max_examples=40, deadline=None)
@given(parts=st.lists(st.tuples(st.integers(0, 5000), FRAGMENTS), max_size=8), data=st.data())
def test_windows_far_into_a_long_log(parts: list[tuple[int, str]], data: st.DataObject) -> None:
    log = (
        b"".join(b"." * distance + text.encode() for distance, text in parts) + b"authorization: bearer " + b"x" * 9000
    )
    whole = KNOWN.redact(log)
    for _ in range(6):
        offset, length = data.draw(st.integers(0, len(log))), data.draw(st.integers(0, 3000))
        assert window(KNOWN, log, offset, length, len(log), final=True) == whole[offset : offset + length]


def test_a_log_that_is_shorter_than_it_was() -> None:
    content, following = KNOWN.redact_window(lambda start, count: b"abcdefgh"[start : start + count], 4, 100, 50, True)
    assert (content, following) == (b"****", 8)
    assert KNOWN.redact_window(lambda *_: b"", 4, 100, 50, True) == (b"", 4)
    assert KNOWN.redact_window(lambda *_: b"", 60, 100, 50, False) == (b"", 60)


# --- how fast ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unit",
    [
        *(
            b"a",
            b"hf_",
            b"hf_oauth_",
            b"sk-",
            b"://",
            b"://a:",
            b"M",
            b"bearer ",
            b"authorization:bearer\t",
            b".abcdef",
        ),
        *(b"%61", b"%25", b"%", b"\\", b"\\u0061", b"\\\\\\\\u0061a", b"61", b"hf%5f"),
    ],
)
def test_no_text_takes_more_than_linear_time(unit: bytes) -> None:
    redactor = Redactor(["a" * 40, "hf_" * 20])
    data = unit * (500_000 // len(unit))
    started = time.monotonic()
    assert len(redactor.redact(data)) == len(data)
    # Eight seconds at most where this was written; quadratic work would take hours.
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("unit", [b"%25", b"%", b"\\", b"\\u005c", b"\\\\u0025"])
def test_secrets_like_escapes_take_no_more_than_linear_time(unit: bytes) -> None:
    redactor = Redactor(["%25" * 10, "\\" * 20])
    data = unit * (30_000 // len(unit))
    started = time.monotonic()
    assert len(redactor.redact(data)) == len(data)
    # Two seconds at most where this was written; trying all ways to read it would take for ever.
    assert time.monotonic() - started < 60


# --- whose values are secrets ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "PTQ_BOT_SLACK__BOT_TOKEN",
        "PTQ_BOT_SLACK__SIGNING_SECRET",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "PGPASSWORD",
        "DB_PASSWD",
        "SSHPASS",
        "DB_PASS",
        "DB_PWD",
        "apiKey",
        "OPENAI_API_KEY",
        "SOME_CREDENTIALS",
        "REGISTRY_AUTH",
        "GITHUB_PAT",
        "TOKEN2",
    ],
)
def test_names_that_say_secret(name: str) -> None:
    assert secrets_of({name: "the value"}) == {"the value"}


@pytest.mark.parametrize(
    "name",
    [
        "KEYBOARD",
        "KEYMAP",
        "MONKEY",
        "TOKENIZERS_PARALLELISM",
        "MAX_TOKENS",
        "GIT_AUTHOR_NAME",
        "SSH_AUTH_SOCK",
        "HF_TOKEN_PATH",
        "SSL_KEY_FILE",
        "SSH_ASKPASS",
        "PWD",
        "OLDPWD",
        "PATH",
        "COMPASS",
        "PATTERN",
        "",
    ],
)
def test_names_that_do_not(name: str) -> None:
    assert secrets_of({name: "the value"}) == set()


def test_values_that_only_switch_something() -> None:
    assert secrets_of({"A_TOKEN": "", "B_AUTH": "Required", "C_KEY": "x"}) == {"x"}
