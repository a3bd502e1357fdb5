"""The store of scripts: written once, durable, read-only, never believed without a look."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runner.errors import Broken, Changed, NotHere
from runner.manifest.content import ContentStore, digest_of

TEXT = b"print('hello')\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "quantize.py"
    path.write_bytes(TEXT)
    return path


@pytest.fixture
def store(tmp_path: Path) -> ContentStore:
    return ContentStore(tmp_path / "state" / "content")


def test_a_file_is_kept_under_its_digest_and_nobody_may_write_it(store: ContentStore, script: Path) -> None:
    kept = store.keep(script)
    assert kept.sha256 == hashlib.sha256(TEXT).hexdigest() == digest_of(kept.path)
    assert kept.path.parent.name == kept.sha256
    assert stat.S_IMODE(kept.path.stat().st_mode) == 0o444


def test_keeping_again_changes_nothing(store: ContentStore, script: Path) -> None:
    kept = store.keep(script)
    before = kept.path.stat()
    assert store.keep(script) == kept
    after = kept.path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_another_content_is_another_file_and_the_first_one_stays(store: ContentStore, script: Path) -> None:
    first = store.keep(script)
    script.write_bytes(b"print('other')\n")
    second = store.keep(script)
    assert second.path != first.path
    assert first.path.read_bytes() == TEXT


def test_a_kept_file_that_was_changed_is_refused(store: ContentStore, script: Path) -> None:
    kept = store.keep(script)
    kept.path.chmod(0o644)
    kept.path.write_bytes(b"import evil\n")
    for again in (lambda: store.keep(script), lambda: store.verify(kept.path, kept.sha256)):
        with pytest.raises(Changed) as refusal:
            again()
        assert refusal.value.code == "script_changed"


def test_a_kept_file_that_is_gone_is_missed_and_kept_again(store: ContentStore, script: Path) -> None:
    kept = store.keep(script)
    kept.path.unlink()
    with pytest.raises(Changed, match="gone"):
        store.verify(kept.path, kept.sha256)
    assert store.keep(script) == kept


def test_many_at_once_keep_one_file_and_leave_nothing_else(store: ContentStore, script: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        kept = set(pool.map(lambda _: store.keep(script).path, range(40)))
    assert len(kept) == 1
    assert [path.name for path in kept.pop().parent.iterdir()] == ["quantize.py"]


def test_a_store_that_cannot_be_written_says_so_and_leaves_no_half_file(script: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(Broken) as failure:
        ContentStore(blocked).keep(script)
    assert failure.value.code == "content_not_written"


def test_a_full_disk_leaves_no_half_file(
    store: ContentStore, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Broken, match="No space left") as failure:
        store.keep(script)
    assert "Free disk space" in failure.value.hint
    assert [path for path in (tmp_path / "state").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "Free disk space"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "Mount"),
        (errno.EACCES, "write access"),
        (errno.EIO, "the disk"),
    ],
)
def test_the_advice_fits_what_the_system_refuses(
    store: ContentStore, script: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    def refuses(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuses)
    with pytest.raises(Broken) as failure:
        store.keep(script)
    assert advice in failure.value.hint


def test_a_kept_file_or_folder_that_became_a_link_is_refused(store: ContentStore, script: Path, tmp_path: Path) -> None:
    kept = store.keep(script)
    kept.path.unlink()
    kept.path.symlink_to(script)  # of the same content, for now
    with pytest.raises(Changed) as refusal:
        store.keep(script)
    assert refusal.value.code == "script_changed"
    kept.path.unlink()
    os.mkfifo(kept.path)
    with pytest.raises(Changed):
        store.verify(kept.path, kept.sha256)
    files = {"run.py": TEXT, "parts/one.py": TEXT}
    folder = store.keep_folder(files).path
    assert store.keep_folder(files).path == folder
    for place in (folder / "parts" / "one.py", folder / "parts", folder):
        away = tmp_path / f"away-{place.name}"
        place.rename(away)
        place.symlink_to(away)
        with pytest.raises(Changed) as refusal:
            store.keep_folder(files)
        assert refusal.value.code == "script_changed"
        place.unlink()
        away.rename(place)
    assert store.keep_folder(files).path == folder


def test_a_script_that_is_not_there_is_named(store: ContentStore, tmp_path: Path) -> None:
    with pytest.raises(NotHere, match=r"nowhere\.py"):
        store.keep(tmp_path / "nowhere.py")
