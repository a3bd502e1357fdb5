from __future__ import annotations

from pathlib import Path

import pytest

from runner.intake.versions import VersionRange, is_newer, release, required_range


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("5.16.1", (5, 16, 1)),
        ("2.13.0+cpu", (2, 13, 0)),
        ("5.0.0.dev0", (5, 0, 0)),
        ("", None),
        (None, None),
        ("x", None),
    ],
)
def test_the_numbers_of_a_release(version: str | None, numbers: tuple[int, ...] | None) -> None:
    assert release(version) == numbers


@pytest.mark.parametrize(
    ("one", "other", "newer"),
    [
        ("5.17.0", "5.16.1", True),
        ("6", "5.16.1", True),
        ("5.16.9", "5.16.1", False),
        ("5.16.1", "5.16.1", False),
        ("4.57.0", "5.16.1", False),
        ("", "5.16.1", False),
        ("5.17.0", None, False),
        ("5.9.0", "5.16.1", False),
    ],
)
def test_newer_is_about_major_and_minor(one: str, other: str | None, newer: bool) -> None:
    assert is_newer(one, other) == newer


@pytest.mark.parametrize(
    ("text", "version", "inside"),
    [
        ("<5.17,>5", "5.16.1", True),
        ("<5.17,>5", "5.17.0", False),
        ("<5.17,>5", "5.0.0", False),
        ("<5.17,>5", "4.57.3", False),
        (">=4.48.0", "4.48", True),
        ("==2.13.0", "2.13.0+cpu", True),
        ("!=5.1", "5.1.0", False),
        ("<=5.16", "5.16.1", False),
        ("~=5.4", "5.9.1", True),
        ("~=5.4", "6.0", False),
        ("~=5.4.1", "5.5", False),
        ("<5.17", None, True),
        ("", "1", True),
    ],
)
def test_ranges_as_metadata_writes_them(text: str, version: str | None, inside: bool) -> None:
    assert VersionRange(text).holds(version) == inside


METADATA = """Metadata-Version: 2.4
Name: amd-quark
Version: 0.13
Requires-Dist: numpy>=2.0
Requires-Dist: transformers-stream<1; extra == "x"
Requires-Dist: transformers<5.17,>5; extra == "cli"
"""


def test_the_range_is_read_from_the_installed_metadata(tmp_path: Path) -> None:
    (tmp_path / "amd_quark-0.13.dist-info").mkdir()
    (tmp_path / "amd_quark-0.13.dist-info" / "METADATA").write_text(METADATA)
    module = str(tmp_path / "quark")
    assert required_range("transformers", "amd-quark", module) == VersionRange("<5.17,>5")
    assert required_range("torch", "amd-quark", module) is None


def test_without_metadata_there_is_no_range(tmp_path: Path) -> None:
    assert required_range("transformers", "amd-quark", str(tmp_path / "quark")) is None
    assert required_range("transformers", "amd-quark", None) is None
