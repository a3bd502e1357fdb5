"""Versions of packages, compared as far as this runner needs it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_RANGE = re.compile(r"(>=|<=|==|!=|~=|>|<)\s*(\d+(?:\.\d+)*)")
_LONGEST_METADATA = 2_000_000


def release(version: str | None) -> tuple[int, ...] | None:
    """The numbers of a release: 5.16.1 of "5.16.1.dev0+cpu"; None where it does not begin with any."""
    found = re.match(r"\d{1,9}(?:\.\d{1,9}){0,5}", version or "")
    return tuple(int(part) for part in found.group(0).split(".")) if found else None


def is_newer(one: str | None, other: str | None) -> bool:
    """Whether one version has a later major or minor number than another; false where either is unknown."""
    first, second = release(one), release(other)
    return first is not None and second is not None and _padded(first)[:2] > _padded(second)[:2]


@dataclass(frozen=True)
class VersionRange:
    """A range as a package's metadata writes it, such as `<5.17,>5`."""

    text: str

    def holds(self, version: str | None) -> bool:
        """Whether a version lies in the range; an unknown one does."""
        numbers = release(version)
        return numbers is None or all(
            _holds(operator, _padded(numbers), _padded(bound), len(bound))
            for operator, bound in ((part[0], release(part[1]) or ()) for part in _RANGE.findall(self.text))
        )


def required_range(package: str, distribution: str, module_path: str | None) -> VersionRange | None:
    """The versions of `package` that an installed distribution asks for, in whichever extra.

    Read from the METADATA beside the module, so that nothing is imported; None where it asks for none.
    """
    if module_path is None:
        return None
    stem = distribution.replace("-", "_")
    try:
        places = sorted(Path(module_path).parent.glob(f"{stem}-*.dist-info/METADATA"))
        text = places[0].read_bytes()[:_LONGEST_METADATA].decode("utf-8", "replace") if places else ""
    except OSError:
        return None
    pattern = rf"^Requires-Dist:\s*{re.escape(package)}\s*\(?([<>=!~][^;)\n]*)"
    found = re.search(pattern, text, re.MULTILINE)
    return VersionRange(found.group(1).strip()) if found else None


def _padded(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return (numbers + (0,) * 6)[:6]


def _holds(operator: str, numbers: tuple[int, ...], bound: tuple[int, ...], given: int) -> bool:
    match operator:
        case ">=":
            return numbers >= bound
        case "<=":
            return numbers <= bound
        case ">":
            return numbers > bound
        case "<":
            return numbers < bound
        case "==":
            return numbers == bound
        case "!=":
            return numbers != bound
        case _:  # ~=: at least this, and the same but for the last number given
            return numbers >= bound and numbers[: given - 1] == bound[: given - 1]
