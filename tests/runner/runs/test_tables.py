"""The engine's two tables are found in its log, and nothing else is taken for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.runs.reading import segments_of
from runner.runs.tables import ExclusionTable, ReplacementTable, Tables, read_tables
from tests.fixtures_folder import fixture, fixture_files

LOG = """
[QUARK-INFO]: Module exclusion from quantization summary:
|      Exclude pattern       | Number of modules excluded |
|          lm_head           |             1              |
|     *[a|b].down_proj       |             32             |
|         *nothing*          |             0              |

[QUARK-INFO]: Module replacement for quantization summary:
|            Original module             |  Number original   |  Number replaced   |
|                 Conv2d                 |         0          |         0          |
|                 Linear                 |         29         |         28         |
|                Qwen3MLP                |         4          |         0          |

[QUARK-INFO]: In-place OPs replacement end.
"""
EXPECTED = Tables(
    ExclusionTable({"lm_head": 1, "*[a|b].down_proj": 32, "*nothing*": 0}),
    ReplacementTable({"Conv2d": (0, 0), "Linear": (29, 28), "Qwen3MLP": (4, 0)}),
)
PREQUANTIZED = """|          Pre-quantized module          |  Number original   |  Number replaced   |
|               FP8Linear                |         5          |         5          |
"""


def tables(text: str) -> Tables:
    return read_tables(segments_of(text.encode()))


def test_both_tables() -> None:
    read = tables(LOG)
    assert read == EXPECTED
    assert read.exclusions is not None
    assert read.exclusions.without_effect == ["*nothing*"]
    assert read.replacements is not None
    assert read.replacements.replaced == 28


def test_coloured_and_interrupted_by_other_output() -> None:
    log = LOG.replace("\n|", "\x1b[0m\n\r  0%|          | 0/67 [00:00<?, ?it/s]\r\n[INFO]: Evaluating ...\n\x1b[32m|")
    assert tables(log) == EXPECTED


def test_a_log_without_tables() -> None:
    assert tables("") == Tables(None, None)
    assert tables("|          lm_head           |             1              |\n") == Tables(None, None)
    assert tables(LOG[LOG.index("[QUARK-INFO]: Module replacement") :]) == Tables(None, EXPECTED.replacements)


def test_a_table_without_rows() -> None:
    assert tables(LOG.splitlines()[2]) == Tables(ExclusionTable({}), None)


@pytest.mark.parametrize("before", ["", "\n[QUARK-INFO]: Pre-quantized module re-quantization summary:\n"])
def test_another_table_ends_these(before: str) -> None:
    log = LOG.replace("\n\n[QUARK-INFO]: In-place", f"\n{before}{PREQUANTIZED}\n[QUARK-INFO]: In-place")
    assert "FP8Linear" in log
    assert tables(log) == EXPECTED


def test_rows_after_the_table_are_not_taken() -> None:
    assert tables(LOG + "|  wikitext  |  2  |  0  |\n") == EXPECTED


def test_the_last_table_counts() -> None:
    assert tables(LOG.replace("29", "7") + LOG) == EXPECTED


@pytest.mark.parametrize("path", fixture_files("quark/logs/0[2-9]*.stderr"))
def test_recorded_logs(path: Path) -> None:
    read = read_tables(segments_of(path.read_bytes()))
    assert read.exclusions == ExclusionTable({"lm_head": 1})
    assert read.replacements is not None
    original, replaced = read.replacements.modules["Linear"]
    assert replaced == read.replacements.replaced == original - 1
    assert read.replacements.modules["Qwen3ForCausalLM"] == (1, 0)


def test_a_recorded_run_that_failed_before_the_tables() -> None:
    log = fixture("quark", "logs", "01_no_dataset_online.log.stderr").read_bytes()
    assert read_tables(segments_of(log)) == Tables(None, None)
