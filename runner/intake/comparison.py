"""Whether an analysis that came from outside is what this runner finds in the model's folder now.

An analysis travels through files and hands before a plan, a command and a run rest on it, so it is made again each
time and compared. What it says of itself is never believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.errors import Changed, DigestMismatch
from runner.intake.files import differences
from schemas.artifacts.analysis import FileFact, ModelAnalysis, ModelFacts

_SHOWN = 3  # sentences about changed files in one message
_LONGEST = 80  # characters of one value in a sentence
_NAMED_RISKS = {"ambiguous_source": "ambiguous", "snapshot_older": "huggingface_id"}
"""Risks that come from how a model was named, not from what lies in its folder, and the source that each goes with."""


@dataclass(frozen=True)
class Difference:
    """The first place where two documents differ: its path (`size.files[2].name`) and what stands there in each."""

    path: str
    found: Any
    expected: Any

    def __str__(self) -> str:
        if isinstance(self.found, list) and isinstance(self.expected, list):
            return f"{self.path} has {_entries(self.found)} and should have {_entries(self.expected)}"
        return f"{self.path} is {_said(self.found)} and should be {_said(self.expected)}"


def check_same(given: ModelAnalysis, found: ModelAnalysis, label: str) -> None:
    """Refuse an analysis that is not the one that was `found` of the model now. `label` names the model.

    How the model was named may differ as far as that can be true: a folder's path does not tell whether a Hub id led
    to it, but only a snapshot of the Hub's cache can have been named so, and by its own commit. Raises DigestMismatch
    [analysis_changed]. Whether the files are the same is for `check_files`, and asked first: a changed model may not
    even be one that can be analysed.
    """
    if given == found:
        return
    difference = first_difference(_comparable(given), _comparable(found)) or _misnamed(given, found)
    if difference is not None:
        raise DigestMismatch(
            "analysis_changed",
            f"The analysis is not what this runner finds in {label}: {difference}.",
            "Analyse the model again.",
        )


def check_files(before: list[FileFact], now: list[FileFact]) -> None:
    """Raises Changed [model_changed] with what changed of the model's files."""
    sentences = differences(before, now)
    if sentences:
        raise Changed("model_changed", f"The model changed: {first_of(sentences)}", "Analyse it again.")


def first_of(sentences: list[str]) -> str:
    """The first few sentences as one text."""
    rest = len(sentences) - _SHOWN
    return " ".join(sentences[:_SHOWN]) + (f" ({rest} more files differ.)" if rest > 0 else "")


def first_difference(found: Any, expected: Any, path: str = "") -> Difference | None:
    """The first difference of two JSON values, or None. 1, 1.0 and true are three values."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in sorted({*found, *expected}):
            place = f"{path}.{key}" if path else key
            if key not in found or key not in expected:
                return Difference(place, found.get(key), expected.get(key))
            if difference := first_difference(found[key], expected[key], place):
                return difference
        return None
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        return next((d for i, (f, e) in pairs if (d := first_difference(f, e, f"{path}[{i}]"))), None)
    return None if found == expected and type(found) is type(expected) else Difference(path, found, expected)


def _misnamed(given: ModelAnalysis, found: ModelAnalysis) -> Difference | None:
    """What an analysis says of how its model was named, where that cannot be true of what was found."""
    said, true = _naming(given.model), _naming(found.model)
    if found.model.downloaded and said != true:
        folder = Path(found.model.model_path)
        snapshot = folder.parent.name == "snapshots" and folder.parent.parent.name.startswith("models--")
        by_id = snapshot and said["source"] == "huggingface_id"
        named = said["source"] if by_id or said["source"] == "ambiguous" else "local"
        true = {"source": named, "revision": folder.name if by_id else None, "hub_token": ""}
    codes = [risk.code for risk in given.risks if risk.code in _NAMED_RISKS]
    possible = [code for code, source in _NAMED_RISKS.items() if source == said["source"] and code in codes]
    return first_difference(said, true, "model") or first_difference(codes, possible, "risks")


def _naming(model: ModelFacts) -> dict[str, str | None]:
    return {"source": model.source, "revision": model.revision, "hub_token": model.hub_token}


def _comparable(analysis: ModelAnalysis) -> dict[str, Any]:
    """The analysis without how the model was named and without times.

    `_misnamed` judges the former, and `differences` judged the times of the files.
    """
    data = analysis.model_dump(mode="json")
    for name in ("source", "revision", "hub_token"):
        del data["model"][name]
    for file in data["size"]["files"]:
        del file["mtime_ns"]
    data["risks"] = [risk for risk in data["risks"] if risk["code"] not in _NAMED_RISKS]
    return data


def _entries(values: list[Any]) -> str:
    return f"{len(values)} {'entry' if len(values) == 1 else 'entries'}"


def _said(value: Any) -> str:
    """A value in a sentence. Documents come from anywhere: characters that do not show are written as escapes."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) and value.isprintable() and value.strip() else ascii(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
