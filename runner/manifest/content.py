"""Scripts and files of a command under their own digest, so that the command that was shown is the command that runs.

    <state_dir>/content/<sha256>/<name>          a file by the digest of its content
    <state_dir>/content/<sha256>/<name> ...      a whole folder by the digest of its list of names and digests

What is kept is written once, made durable, and never changed: its folder's name says what must be in it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp, mkstemp

from runner.errors import Broken, Changed, NotHere, Refused
from runner.intake.reading import opened

_READ_ONLY = 0o444
_BLOCK = 1 << 20
_AGAIN = "Make a new manifest; remove that folder of the content store first when it was damaged."


@dataclass(frozen=True)
class Kept:
    """A file or a folder of the store, and its digest."""

    path: Path
    sha256: str


def digest_of(path: Path) -> str:
    """SHA-256 of a file's content. Raises NotHere where it cannot be read."""
    found = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                found.update(block)
    except OSError as error:
        raise NotHere("file_missing", f"{path} cannot be read: {error.strerror}.") from None
    return found.hexdigest()


class ContentStore:
    """Files by their content. Several processes may keep the same file at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, path: Path) -> Kept:
        """Copy a file into the store, if it is not there, and return where it is.

        Raises NotHere where the file cannot be read, Broken [content_not_written] where the store cannot be written,
        Changed [script_changed] where the store holds something else under its digest.
        """
        try:
            content = path.read_bytes()
        except OSError as error:
            raise NotHere("file_missing", f"{path} cannot be read: {error.strerror}.") from None
        return self.keep_bytes(path.name, content)

    def keep_bytes(self, name: str, content: bytes) -> Kept:
        """The same for content that has no file yet."""
        sha256 = hashlib.sha256(content).hexdigest()
        target = self._folder / sha256 / name
        with _writing(target):
            if not target.exists():
                self._write(target, content)
        self.verify(target, sha256)
        return Kept(target, sha256)

    def keep_folder(self, files: Mapping[str, bytes]) -> Kept:
        """Keep files together, by their paths within one folder, and return that folder.

        Nothing else may lie in it: a program finds what lies beside it. Raises Broken [content_not_written] and Changed
        [script_changed] as `keep` does.
        """
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        sha256 = hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()
        target = self._folder / sha256
        with _writing(target):
            if not target.exists():
                self._write_folder(target, files)
        self._verify_folder(target, digests)
        return Kept(target, sha256)

    def verify(self, path: Path, sha256: str) -> None:
        """Raises Changed [script_changed] unless the kept file itself is there with exactly that content.

        A link is refused, whatever it leads to: that could be another file a moment later.
        """
        self._check_no_links(path.parent)
        try:
            with opened(path, follow_links=False) as (descriptor, _), os.fdopen(os.dup(descriptor), "rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except NotHere as gone:
            raise Changed("script_changed", f"The kept file is gone: {gone.message}", _AGAIN) from None
        except (Refused, OSError) as wrong:
            why = wrong.message if isinstance(wrong, Refused) else f"{path} cannot be read: {wrong.strerror}."
            raise Changed("script_changed", f"The kept file is not what was kept: {why}", _AGAIN) from None
        if found != sha256:
            raise Changed("script_changed", f"The kept file {path} has another content than its digest says.", _AGAIN)

    def _check_no_links(self, folder: Path) -> None:
        """Refuse a folder of the store that is a link, or lies behind one. Where the store itself lies is no matter."""
        for place in (folder, *folder.parents):
            if place == self._folder:
                return
            if place.is_symlink() and place.is_relative_to(self._folder):
                raise Changed("script_changed", f"{place} was replaced by a link.", _AGAIN)

    def _verify_folder(self, folder: Path, digests: Mapping[str, str]) -> None:
        self._check_no_links(folder)
        there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}
        added = sorted(there - digests.keys())
        if added:
            raise Changed("script_changed", f"{folder / added[0]} was added to a kept folder.", _AGAIN)
        for name, sha256 in digests.items():
            self.verify(folder / name, sha256)

    def _write_folder(self, target: Path, files: Mapping[str, bytes]) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(mkdtemp(prefix=".", dir=target.parent))
        try:
            for name, content in files.items():
                (temporary / name).parent.mkdir(parents=True, exist_ok=True)
                self._write(temporary / name, content)
            temporary.chmod(0o755)
            try:
                temporary.rename(target)
            except OSError:
                if not target.is_dir():  # else somebody kept the same folder in the meantime
                    raise
            _sync(target.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _write(self, target: Path, content: bytes) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _temporary(target) as (descriptor, temporary):
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fchmod(file.fileno(), _READ_ONLY)
                os.fsync(file.fileno())
            temporary.replace(target)
        for folder in (target.parent, target.parent.parent):
            _sync(folder)


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    """Turns what the system refuses into a sentence."""
    try:
        yield
    except OSError as error:
        raise Broken(
            "content_not_written",
            f"{target} cannot be written: {error.strerror}.",
            _advice(error),
        ) from None


def _advice(error: OSError) -> str:
    """What to do about a file of the store that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "Free disk space for the runner's state folder, or raise the quota of the runner's user."
    if error.errno == errno.EROFS:
        return "Mount the file system of the runner's state folder so that it can be written, or set another state_dir."
    if error.errno in (errno.EACCES, errno.EPERM):
        return "Give the runner's user write access to its state folder."
    return "See what is wrong with the runner's state folder and the disk that it is on."


@contextmanager
def _temporary(target: Path) -> Iterator[tuple[int, Path]]:
    """A file beside the target that is gone afterwards, whatever happened, unless it was moved there."""
    descriptor, name = mkstemp(prefix=".", dir=target.parent)
    try:
        yield descriptor, Path(name)
    finally:
        with suppress(FileNotFoundError):
            Path(name).unlink()


def _sync(folder: Path) -> None:
    """Make a folder's entries durable: a name in it outlives a power cut only then."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
