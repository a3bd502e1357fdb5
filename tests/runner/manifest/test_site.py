"""A script of the site: its whole folder is copied under its digest, and what runs is the copy."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.errors import Changed, NotHere, Refused
from runner.manifest import check
from runner.manifest.content import ContentStore
from runner.manifest.site_folder import MOST_BYTES, MOST_FILES, read_site_folder
from schemas.artifacts.manifest import RunManifest
from tests.runner.host.unprivileged import open_to_all, unprivileged
from tests.runner.manifest.bench import Bench, make_bench

SCRIPT = b"import helpers.words\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script with a helper, beside things that are no part of it."""
    folder = tmp_path / "site"
    (folder / "helpers").mkdir(parents=True)
    (folder / "__pycache__").mkdir()
    (folder / "our_ptq.py").write_bytes(SCRIPT)
    (folder / "helpers" / "words.py").write_bytes(b"WORDS = 1\n")
    (folder / "__pycache__" / "our_ptq.pyc").write_bytes(b"compiled")
    (folder / ".git").mkdir()
    return folder / "our_ptq.py"


@pytest.fixture
def site(tmp_path: Path, script: Path) -> Bench:
    """A runner that has such a script."""
    bench = make_bench(tmp_path)
    entry_points = {**bench.context.host.entry_points, "site": str(script)}
    return Bench(bench.folder, bench.analysis, bench.with_host(entry_points=entry_points))


def manifest_of(site: Bench) -> RunManifest:
    return site.manifest(entry_point="site", calibration={"dataset": "calibration.txt"}, evaluation_intent="none")


def test_the_folder_is_copied_whole_and_the_copy_runs(site: Bench) -> None:
    manifest = manifest_of(site)
    entry, kept = manifest.entry_point, Path(manifest.entry_point.path)
    assert (entry.name, entry.sha256) == ("site", hashlib.sha256(SCRIPT).hexdigest())
    assert entry.files == {"helpers/words.py": hashlib.sha256(b"WORDS = 1\n").hexdigest()}
    assert kept.is_relative_to(site.folder / "state" / "content")
    assert sorted(str(path.relative_to(kept.parent)) for path in kept.parent.rglob("*") if path.is_file()) == [
        "helpers/words.py",
        "our_ptq.py",
    ]
    assert manifest.argv[:2] == [str(site.context.settings.quark.python), str(kept)]
    check(manifest, site.context)
    assert manifest_of(site) == manifest


def test_it_is_told_the_common_flags_alone_and_why_it_runs_is_said(site: Bench) -> None:
    manifest = manifest_of(site)
    flags = {word for word in manifest.argv if word.startswith("--")}
    assert flags == {
        *("--model_dir", "--output_dir", "--quant_scheme", "--dataset", "--num_calib_data", "--seq_len"),
        *("--batch_size", "--device", "--skip_evaluation"),
    }
    said = {deviation.flag: deviation.reason for deviation in manifest.deviations}
    assert said["quantize_quark.py"] == "The program is site. Requested."


def test_auto_never_takes_it_unless_the_owner_names_it(site: Bench) -> None:
    assert site.plan().entry_point == "own"
    only = Bench(site.folder, site.analysis, site.with_host(entry_points={"site": "/x"}))
    assert only.plan().entry_point != "site"
    named = Bench(site.folder, site.analysis, site.with_host(default_entry_point="site"))
    assert named.plan().entry_point == "site"
    assert named.plan(entry_point="auto").entry_point == "own"


def _edit_script(script: Path) -> None:
    script.write_text("print('other')\n", encoding="utf-8")


def _edit_helper(script: Path) -> None:
    (script.parent / "helpers" / "words.py").write_text("WORDS = 2\n", encoding="utf-8")


def _add(script: Path) -> None:
    (script.parent / "torch.py").write_text("", encoding="utf-8")


def _remove(script: Path) -> None:
    (script.parent / "helpers" / "words.py").unlink()


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (_edit_script, "The script of site is"),
        (_edit_helper, "helpers/words.py beside the script of site is another one"),
        (_add, "torch.py beside the script of site is new"),
        (_remove, "helpers/words.py beside the script of site is gone"),
    ],
)
def test_an_edit_after_the_approval_is_refused(
    site: Bench, script: Path, edit: Callable[[Path], None], words: str
) -> None:
    manifest = manifest_of(site)
    edit(script)
    with pytest.raises(Changed) as refusal:
        check(manifest, site.context)
    assert refusal.value.code == "script_changed"
    assert words in refusal.value.message


def test_a_file_that_was_put_beside_the_copy_is_found(site: Bench) -> None:
    """A program imports what lies beside it."""
    manifest = manifest_of(site)
    (Path(manifest.entry_point.path).parent / "torch.py").write_text("import evil\n", encoding="utf-8")
    with pytest.raises(Changed, match=r"torch\.py was added"):
        check(manifest, site.context)


def test_a_copy_that_was_changed_is_found(site: Bench) -> None:
    kept = Path(manifest_of(site).entry_point.path).parent / "helpers" / "words.py"
    kept.chmod(0o644)
    kept.write_text("WORDS = 3\n", encoding="utf-8")
    with pytest.raises(Changed, match="another content"):
        manifest_of(site)


def _link(script: Path) -> None:
    (script.parent / "more.py").symlink_to(script)


def _link_to_folder(script: Path) -> None:
    (script.parent / "more").symlink_to("/etc")


def _pipe(script: Path) -> None:
    os.mkfifo(script.parent / "pipe")


def _many(script: Path) -> None:
    for number in range(MOST_FILES):
        (script.parent / f"{number}.txt").write_text("x", encoding="utf-8")


def _large(script: Path) -> None:
    with (script.parent / "weights.bin").open("wb") as file:
        file.truncate(MOST_BYTES)


def _invisible(script: Path) -> None:
    (script.parent / "a\u202eb.py").write_text("", encoding="utf-8")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_link, "more.py beside the site's script is a link"),
        (_link_to_folder, "more beside the site's script is a link"),
        (_pipe, "pipe beside the site's script is a link, or no file"),
        (_many, f"more than {MOST_FILES} files"),
        (_large, "more than 16 MiB"),
        (_invisible, "characters that do not show"),
    ],
)
def test_what_cannot_be_taken_whole_is_refused(script: Path, spoil: Callable[[Path], None], words: str) -> None:
    spoil(script)
    with pytest.raises(Refused) as refusal:
        read_site_folder(script)
    assert refusal.value.code == "site_script_unfit"
    assert words in refusal.value.message
    assert "\n" not in refusal.value.message


@pytest.mark.parametrize("closed", ["our_ptq.py", "helpers"])
def test_what_may_not_be_read_is_refused(script: Path, closed: str) -> None:
    open_to_all(script.parent)
    (script.parent / closed).chmod(0)
    with unprivileged(), pytest.raises(Refused, match="cannot be") as refusal:
        read_site_folder(script)
    (script.parent / closed).chmod(0o755)
    assert refusal.value.code == "site_script_unfit"


def test_a_script_that_is_gone_is_missed(script: Path) -> None:
    script.unlink()
    with pytest.raises(NotHere, match=r"our_ptq\.py is gone"):
        read_site_folder(script)


def test_a_folder_is_kept_once_and_another_one_beside_it(tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "content")
    first = store.keep_folder({"a.py": b"1", "b/c.py": b"2"})
    before = (first.path / "a.py").stat()
    assert store.keep_folder({"b/c.py": b"2", "a.py": b"1"}) == first
    assert (first.path / "a.py").stat().st_ino == before.st_ino
    assert store.keep_folder({"a.py": b"1"}).path != first.path
    assert [path.name for path in (tmp_path / "content").iterdir() if path.name.startswith(".")] == []
