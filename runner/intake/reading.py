"""Read files that anybody may have written: bounded, and never waiting for anything."""

from __future__ import annotations

import errno
import json
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runner.errors import NotHere, Refused

LONGEST_HEADER = 100_000_000  # bytes of a safetensors header, as the reference reader bounds it


@contextmanager
def opened(path: Path, *, follow_links: bool = True) -> Iterator[tuple[int, int]]:
    """The file descriptor and size in bytes of a regular file.

    Model folders may consist of links into a cache; without `follow_links`, what is itself a link is refused.
    Raises NotHere [file_missing], or Refused [file_not_readable] for what may not be opened and for links, folders,
    pipes and devices, which could make the reader wait or read for ever, or show what lies elsewhere.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        descriptor = os.open(path, flags if follow_links else flags | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise NotHere("file_missing", f"{path} does not exist.", "Complete the model folder.") from None
    except OSError as error:
        if error.errno == errno.ENXIO or (error.errno == errno.ELOOP and not follow_links):  # a socket; a link
            raise _not_regular(path) from None
        raise Refused(
            "file_not_readable",
            f"{path} cannot be read: {error.strerror}.",
            "Give the runner's user read access to the model folder and its files.",
        ) from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise _not_regular(path)
        yield descriptor, facts.st_size
    finally:
        os.close(descriptor)


def _not_regular(path: Path) -> Refused:
    return Refused("file_not_readable", f"{path} is not a regular file.", "Replace it by the file itself.")


def read_object(path: Path, limit_bytes: int, code: str) -> dict[str, Any]:
    """The JSON object in a file. Raises Refused with `code` when it is too large, not JSON, or not an object."""
    hint = f"Download {path.name} again, or repair it."
    with opened(path) as (descriptor, size):
        if size > limit_bytes:
            raise Refused(code, f"{path} is {size} bytes long; such a file has at most {limit_bytes}.", hint)
        data = read_fully(descriptor, size, 0)
    return json_object(data, str(path), code, hint)


def json_object(data: bytes, label: str, code: str, hint: str) -> dict[str, Any]:
    """The JSON object in the content of a file. `label` names the file in messages.

    Raises Refused with `code` when it is not JSON, or not an object.
    """
    try:
        document = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise Refused(code, f"{label} is not UTF-8 text.", hint) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Refused(code, f"{label} is not JSON: {error.msg} at {where}.", hint) from None
    except (ValueError, RecursionError):  # a number of thousands of digits, or nesting without end
        raise Refused(code, f"{label} is JSON that cannot be read.", hint) from None
    if not isinstance(document, dict):
        raise Refused(code, f"{label} has to hold a JSON object.", hint)
    return document


def read_fully(descriptor: int, count: int, offset: int) -> bytes:
    """Up to `count` bytes from an offset; fewer only where the file ends."""
    pieces: list[bytes] = []
    while count > 0 and (piece := os.pread(descriptor, count, offset)):
        pieces.append(piece)
        count -= len(piece)
        offset += len(piece)
    return b"".join(pieces)


def header_length(first: bytes, size: int) -> int | None:
    """Length of a header in bytes from a file's first eight; None where it cannot be that of a safetensors file."""
    if len(first) < 8:
        return None
    length: int = struct.unpack("<Q", first[:8])[0]
    return length if length <= min(LONGEST_HEADER, size - 8) else None
