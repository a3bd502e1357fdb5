"""The table of sentences with their meaning at each checkpoint, and the program that compares one with what is read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from bot.conversation.words import Intent
from tests.agreement.words import PLACES, TableError, disagreements, main, read_table
from tests.bot.conversation.words.sentences import TABLE

HEAD = "sentence\tcheckpoint\tintent\tchanges\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "table.tsv"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_sentence_is_read_right_at_every_checkpoint() -> None:
    assert [f"{one.place}: {one.sentence!r} {said}" for one, said in disagreements(read_table(TABLE))] == []


def test_the_table_has_every_sentence_at_every_checkpoint_once() -> None:
    meanings = read_table(TABLE)
    assert len({meaning.sentence for meaning in meanings}) >= 1_500
    assert set(Counter((meaning.sentence, meaning.place) for meaning in meanings).values()) == {1}
    places = Counter(meaning.place for meaning in meanings)
    assert set(places) == set(PLACES)
    assert len(set(places.values())) == 1
    for place in ("analysis", "plan", "command", "result"):
        intents = Counter(meaning.intent for meaning in meanings if meaning.place == place)
        assert set(intents) == set(Intent)
        assert min(intents.values()) >= 30


def test_both_kinds_of_tables_are_read(tmp_path: Path) -> None:
    rows = read_table(
        written(
            tmp_path,
            f"{HEAD}ok\tanalysis,plan\tapprove\t\n"
            'use awq\t*\tchange\t{"algorithm": "awq"}\n# more\nno\\nway\tnone\treject\n',
        )
    )
    assert [(row.place, row.intent, row.section) for row in rows] == [
        ("analysis", "approve", ""),
        ("plan", "approve", ""),
        *((place, "change", "") for place in ("analysis", "plan", "command", "result")),
        ("channel", "reject", "more"),
    ]
    assert rows[-1].sentence == "no\nway"
    columns = read_table(
        written(
            tmp_path,
            "sentence\tanalysis\tplan\tcommand\tresult\nok\tapprove\tapprove\tunclear\tapprove\n"
            '"use awq"\t\t"change {""algorithm"": ""awq""}"\t\t\n',
        )
    )
    assert [(row.sentence, row.place, row.intent, row.changes) for row in columns] == [
        *(("ok", place, "unclear" if place == "command" else "approve", {}) for place in PLACES if place != "channel"),
        ('"use awq"', "plan", "change", {"algorithm": "awq"}),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the table is empty"),
        ("said\tintent\n", "line 1: there is no column called sentence"),
        ("sentence\tmeaning\n", "line 1: there is neither a column intent nor one of a checkpoint"),
        (f"{HEAD}", "the table has no sentences"),
        (f"# only a section\n{HEAD}\n# another\n", "the table has no sentences"),
        ("sentence\tintent\n", "line 1: there is a column intent, but none called checkpoint"),
        ("sentence\tcheckpoint\tintent\tchange\n", "line 1: no column is called 'change' here; known: changes, "),
        ("sentence\tplan\tlunch\n", "line 1: no column is called 'lunch' here"),
        ("sentence\tplan\tplan\n", "line 1: there are two columns called plan"),
        (f"{HEAD}ok\tplan\tapprove\t\tmore\n", "line 2: 'more' stands behind the last column"),
        (f"{HEAD}ok\tplan\tapprove\nok\tplan\n", "line 3: the row ends before its column intent"),
        (f"{HEAD}ok\n", "line 2: the row ends before its column checkpoint"),
        (f"{HEAD}ok\t\tapprove\n", "line 2: there is no checkpoint called ''"),
        ("sentence\tplan\tresult\nok\tapprove\n", "line 2: the row ends before its column result"),
        ("sentence\tplan\tresult\nok\t\t\n", "line 2: no checkpoint is named"),
        (f"{HEAD}ok\\xZZ\tplan\tapprove\n", "line 2: '\\xZZ' is no character"),
        (f"{HEAD}ok\\u12\tplan\tapprove\n", "line 2: '\\u12' is no character"),
        (f"{HEAD}ok\\Uffffffff\tplan\tapprove\n", "line 2: "),
        (f"{HEAD}ok\tplan\tmaybe\n", "line 2: 'maybe' is not a valid Intent"),
        (f"{HEAD}ok\tlunch\tapprove\n", "line 2: there is no checkpoint called 'lunch'"),
        (f"{HEAD}ok\tplan\tchange\t{{\n", "line 2: "),
        (f"{HEAD}ok\tplan\tchange\t[]\n", "line 2: changes are no object"),
    ],
)
def test_a_table_that_is_none_is_told(text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, text)
    with pytest.raises(TableError) as error:
        read_table(path)
    assert str(error.value).startswith(why)
    assert main(path) == 2
    assert why in capsys.readouterr().err


def test_characters_are_written_by_their_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEAD}" + r"a\x20b\u00e9\U0001f44d\\xZZ\models" + "\tplan\tunclear\t\t\n")
    assert [row.sentence for row in read_table(path)] == ["a b\u00e9\U0001f44d\\xZZ\\models"]


def test_each_disagreement_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        f'{HEAD}ok\t*\tapprove\nuse awq\tplan\tchange\t{{"algorithm": "gptq"}}\nuse fp8\tplan\tchange\n'
        'calibration 256\tplan\tchange\t{"num_calib_data": 256}\n'
    )
    assert main(written(tmp_path, text)) == 1
    told = capsys.readouterr().out
    assert "4 sentences with 7 meanings: 5 right, 2 wrong" in told
    assert "command: 'ok' is approve, read as unclear" in told
    assert """plan: 'use awq' is change, read as {"algorithm": "awq"}, not {"algorithm": "gptq"}""" in told
    assert "0 right, 1 wrong" in told


def test_a_table_that_agrees_gives_0(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEAD}ok\tplan\tapprove\n")
    command = [sys.executable, "-m", "tests.agreement", "words", str(path)]
    done = subprocess.run(command, cwd=Path(__file__).parents[4], env=os.environ, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 sentences with 1 meanings: 1 right, 0 wrong" in done.stdout
